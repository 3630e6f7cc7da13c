/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any configuration and any sequence of events: the window stays between its bounds, the rate stays
 * positive, no timer is armed by an algorithm without one, and a copy of the block that hears the
 * same says the same. Bytes 0 to 15 are the configuration, then an event a byte, each with the
 * bytes of argument it wants. Numbers are written as a mantissa and a shift, so that extremes are
 * common.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cc/cc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *at;
	const uint8_t *end;
};

static void must(int claim)
{
	if (!claim)
		abort();
}

static uint8_t byte(struct input *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

/* 0 .. 2^64 - 1 in two bytes. */
static uint64_t number(struct input *in)
{
	uint64_t mantissa = byte(in);
	unsigned int shift = byte(in);

	return shift >= 0xf0 ? UINT64_MAX - mantissa : mantissa << (shift & 63);
}

static uint64_t bound(uint64_t bytes, uint64_t otherwise)
{
	if (!bytes)
		return otherwise;
	return bytes < CC_CWND_BYTES_LIMIT ? bytes : CC_CWND_BYTES_LIMIT;
}

static void event(struct cc *c, struct input *in, uint64_t *now_ns, uint64_t *seq)
{
	uint8_t what = byte(in);
	struct cc_ack ack = {0};

	*now_ns += number(in) >> 20;
	switch (what & 7) {
	case 0:
		cc_on_sent(c, *now_ns, *seq, (uint32_t)number(in));
		break;
	case 1: /* any ACK */
		ack.acked_bytes = number(in);
		ack.acked_packets = (uint32_t)number(in);
		ack.ack_seq = number(in);
		ack.snd_nxt = number(in);
		ack.ecn_packets = (uint32_t)number(in);
		ack.ecn_bytes = number(in);
		ack.rtt_ns = number(in);
		ack.remote_ns = number(in);
		ack.local_ns = number(in);
		ack.hops = byte(in);
		cc_on_ack(c, *now_ns, &ack);
		break;
	case 2: /* a round trip that uses the window */
	case 3:
		*seq += c->cwnd_bytes;
		ack.acked_bytes = c->cwnd_bytes;
		ack.acked_packets = 4;
		ack.ack_seq = *seq;
		ack.snd_nxt = *seq;
		ack.ecn_packets = what >> 3 & 3;
		ack.rtt_ns = number(in);
		ack.remote_ns = what & 0x20 ? number(in) : 0;
		cc_on_ack(c, *now_ns, &ack);
		break;
	case 4:
		cc_on_cnp(c, *now_ns);
		break;
	case 5:
		cc_on_rtt(c, *now_ns, number(in));
		break;
	case 6:
		cc_on_timer(c, *now_ns);
		break;
	case 7:
		cc_on_loss(c, *now_ns, (enum cc_loss)(what >> 3 & 3));
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, data + size};
	enum cc_algorithm algorithm = (enum cc_algorithm)(byte(&in) % CC_ALGORITHMS);
	uint64_t now_ns, seq = 0, now_twin, seq_twin = 0;
	struct cc_config config;
	struct cc c, twin;
	uint64_t min, max;

	memset(&config, 0, sizeof(config));
	config.loss_ignored = byte(&in) & 1;
	config.line_rate_bps = number(&in);
	config.base_rtt_ns = number(&in);
	config.mtu_bytes = (uint32_t)number(&in);
	config.cwnd_bytes_start = number(&in);
	config.cwnd_bytes_min = number(&in);
	config.cwnd_bytes_max = number(&in);
	config.target_ns = number(&in);
	now_ns = now_twin = number(&in) >> 1;

	max = bound(config.cwnd_bytes_max, CC_CWND_BYTES_LIMIT);
	min = bound(config.cwnd_bytes_min, 1);
	if (algorithm == CC_NONE)
		min = max = config.cwnd_bytes_max ? config.cwnd_bytes_max : CC_CWND_BYTES_LIMIT;
	if (min > max)
		min = max;

	cc_init(&c, algorithm, &config, now_ns);
	cc_init(&twin, algorithm, &config, now_ns);
	while (in.at < in.end) {
		struct input again = in;

		must(c.cwnd_bytes >= min && c.cwnd_bytes <= max && c.cwnd_bytes > 0);
		must(c.rate_bps > 0);
		must(c.deadline_ns == CC_NO_DEADLINE);
		event(&c, &in, &now_ns, &seq);
		event(&twin, &again, &now_twin, &seq_twin);
		must(c.cwnd_bytes == twin.cwnd_bytes && c.rate_bps == twin.rate_bps);
		if (algorithm == CC_DCTCP)
			must(c.dctcp.alpha_q32 <= UINT64_C(1) << 32);
	}
	must(c.cwnd_bytes >= min && c.cwnd_bytes <= max);
	return 0;
}
