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
	snprintf(buf, SIM_TEXT_BYTES, "%.22s%s%.19s%s", s->cc.algorithm,
		 s->cc.preset[0] ? ", " : "", s->cc.preset, s->cc.window ? "+w" : "");
	return buf;
}
