/* SPDX-License-Identifier: BSD-2-Clause */
/* The rate of a line: that of the scenario, or one that finds itself by PINGs and COUNTs (sdr/rate/auto_rate.h). */
#include "base/byteorder.h"
#include "sim/sdr_line_state.h"

uint64_t sdr_rate_ns(const struct sdr_line *l, uint64_t bytes)
{
	uint64_t bps = l->config->rate_auto ? l->rate.cc.rate_bps : l->config->rate_bps;

	return bps ? (uint64_t)((double)bytes * 8e9 / (double)bps) : 0;
}

bool sdr_rate_may_post(const struct sdr_line *l, uint64_t now_ns)
{
	return now_ns >= l->pace_ns && auto_rate_may_send(&l->rate, l->shape.mtu, now_ns);
}

void sdr_rate_posted(struct sdr_line *l, uint32_t bytes, uint64_t now_ns)
{
	auto_rate_sent(&l->rate, bytes);
	l->pace_ns = (l->pace_ns > now_ns ? l->pace_ns : now_ns) + sdr_rate_ns(l, bytes);
}

uint64_t sdr_rate_due(const struct sdr_line *l, uint64_t now_ns)
{
	uint64_t at_ns = auto_rate_due(&l->rate), soon_ns = now_ns + sdr_rate_ns(l, l->shape.mtu) + 1;

	if (now_ns < l->pace_ns)
		soon_ns = l->pace_ns;
	if (l->transfers && (now_ns < l->pace_ns || l->rate.on) && soon_ns < at_ns)
		at_ns = soon_ns;
	return at_ns > now_ns ? at_ns : now_ns + 1;
}

void sdr_rate_expire(struct sdr_line *l, uint64_t now_ns)
{
	const struct control c = {.type = CONTROL_PING, .length = PING_LEN, .flags = CONTROL_WANTS_COUNT};
	uint8_t payload[PING_LEN];

	if (auto_rate_due(&l->rate) > now_ns)
		return;
	put_be64(payload, auto_rate_ping(&l->rate, now_ns));
	sdr_line_say(l, SDR_SENDING, &c, payload);
}

static void answer_ping(struct sdr_line *l, const uint8_t *payload, uint64_t now_ns)
{
	const struct control c = {.type = CONTROL_COUNT, .length = COUNT_LEN};
	uint8_t count[COUNT_LEN];

	count_encode(count, &(struct count){get_be64(payload), l->worker.bytes, now_ns});
	sdr_line_say(l, SDR_RECEIVING, &c, count);
}

static void take_count(struct sdr_line *l, const uint8_t *payload, uint64_t now_ns)
{
	struct count c;

	count_decode(&c, payload);
	auto_rate_count(&l->rate, c.stamp, c.bytes, c.time_ns, now_ns);
}

bool sdr_rate_hear(struct sdr_line *l, enum sdr_end end, const struct control *c, const uint8_t *payload,
		   uint64_t now_ns)
{
	if (c->type == CONTROL_PING && end == SDR_RECEIVING)
		answer_ping(l, payload, now_ns);
	if (c->type == CONTROL_COUNT && end == SDR_SENDING)
		take_count(l, payload, now_ns);
	return c->type == CONTROL_PING || c->type == CONTROL_COUNT;
}
