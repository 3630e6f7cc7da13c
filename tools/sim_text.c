/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers for people: four digits and a unit. */
#include "sim.h"

#include <inttypes.h>
#include <string.h>

struct scale {
	double from;
	const char *unit;
};

static const char *scaled(double v, const struct scale *s, char buf[SIM_TEXT_BYTES])
{
	double x;
	int digits;

	while (s->from > 1 && v < s->from)
		s++;
	x = v / s->from;
	digits = x >= 999.95 || x == (double)(long)x ? 0 : x >= 99.995 ? 1 : x >= 9.9995 ? 2 : 3;
	snprintf(buf, SIM_TEXT_BYTES, "%.*f %s", digits, x, s->unit);
	return buf;
}

const char *time_text(uint64_t ps, char buf[SIM_TEXT_BYTES])
{
	static const struct scale scales[] = {
		{1e12, "s"}, {1e9, "ms"}, {1e6, "us"}, {1e3, "ns"}, {1, "ps"},
	};

	return scaled((double)ps, scales, buf);
}

const char *rate_text(uint64_t bps, char buf[SIM_TEXT_BYTES])
{
	static const struct scale scales[] = {
		{1e12, "Tbit/s"}, {1e9, "Gbit/s"}, {1e6, "Mbit/s"}, {1e3, "kbit/s"}, {1, "bit/s"},
	};

	return scaled((double)bps, scales, buf);
}

const char *bytes_text(uint64_t bytes, char buf[SIM_TEXT_BYTES])
{
	static const struct scale scales[] = {
		{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "KB"}, {1, "B"},
	};

	return scaled((double)bytes, scales, buf);
}

const char *count_text(uint64_t n, char buf[SIM_TEXT_BYTES])
{
	char digits[24];
	size_t len, k = 0;

	snprintf(digits, sizeof(digits), "%" PRIu64, n);
	len = strlen(digits);
	for (size_t i = 0; i < len; i++) {
		if (i && len > 4 && (len - i) % 3 == 0)
			buf[k++] = ' ';
		buf[k++] = digits[i];
	}
	buf[k] = 0;
	return buf;
}

const char *transport_text(const struct scenario *s, const struct results *r)
{
	if (r->transport[0])
		return r->transport;
	static const char *const names[] = {
		[SCENARIO_VEROCE] = "veRoCE", [SCENARIO_ROCEV2] = "RoCEv2", [SCENARIO_SDR] = "SDR"};

	return names[s->transport.protocol];
}

const char *cc_text(const struct scenario *s, const struct results *r, char buf[SIM_TEXT_BYTES])
{
	if (r->cc[0])
		return r->cc;
	snprintf(buf, SIM_TEXT_BYTES, "%.22s%s%.19s%s", s->cc.algorithm, s->cc.preset[0] ? ", " : "", s->cc.preset,
		 s->cc.window ? "+w" : "");
	return buf;
}

static const char *base_rtt_text(const struct scenario *s, char buf[SIM_TEXT_BYTES + 32], const struct results *r)
{
	char t[SIM_TEXT_BYTES];
	bool own = s->cc.base_rtt_ps == SCENARIO_AUTO && !r->one_base_rtt;

	snprintf(buf, SIM_TEXT_BYTES + 32, own ? "own of each pair, up to %s" : "%s for all",
		 time_text(s->cc.base_rtt_ps < SCENARIO_LONGEST ? s->cc.base_rtt_ps : r->base_rtt_ps, t));
	return buf;
}

const char *settings_text(const struct scenario *s, const struct results *r, char buf[SETTINGS_TEXT_BYTES])
{
	char rtt[SIM_TEXT_BYTES + 32], window[SIM_TEXT_BYTES], acks[SIM_TEXT_BYTES];
	uint64_t bytes = s->transport.window_bytes;

	if (s->transport.ack_every == SCENARIO_AUTO)
		snprintf(acks, sizeof(acks), r->acks_each ? "each packet" : "as the NIC does");
	else
		snprintf(acks, sizeof(acks), "%" PRIu64 " packets at most", s->transport.ack_every);
	snprintf(buf, SETTINGS_TEXT_BYTES, "base RTT %s; window %s; ACKs %s; ideal alone on one path",
		 base_rtt_text(s, rtt, r),
		 bytes == SCENARIO_AUTO        ? "two BDP of the longest"
		 : bytes == SCENARIO_NO_WINDOW ? "none"
					       : bytes_text(bytes, window),
		 acks);
	return buf;
}
