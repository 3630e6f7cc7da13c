/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any configuration and any sequence of events: the window stays between its bounds, the rate stays
 * positive, no timer is armed for longer than a second, a copy of the block that gets the same
 * events gives the same numbers, and a block that gets no more events has no timer within a second.
 * The first bytes are the configuration; then each byte is an event, with its arguments behind it.
 * Numbers are written as a mantissa and a shift, so that extremes are common.
 */
#include <string.h>

#include "cc/cc.h"
#include "cc/params.h"
#include "support/fuzz_input.h"

#define SECOND_NS UINT64_C(1000000000)

/* 0 .. 2^64 - 1 in two bytes. */
static uint64_t number(struct input *in)
{
	uint64_t mantissa = next_byte(in);
	unsigned int shift = next_byte(in);

	return shift >= 0xf0 ? UINT64_MAX - mantissa : mantissa << (shift & 63);
}

static uint64_t bound(uint64_t bytes, uint64_t otherwise)
{
	if (!bytes)
		return otherwise;
	return bytes < CC_CWND_BYTES_LIMIT ? bytes : CC_CWND_BYTES_LIMIT;
}

/* Telemetry that a peer could send: any words, and any count of them that the decoder accepts. */
static void stack(struct input *in, struct int_stack *s)
{
	uint8_t b = next_byte(in);

	int_stack_init(s);
	s->hops = (b & 7) + 1;
	s->path_id = b >> 7;
	for (unsigned int i = 0; i < s->hops; i++)
		s->hop[i] = number(in) ^ (uint64_t)(b & 0x70) << 56;
}

/* Some parameters at the least or the most that the table allows. */
static void configure(struct input *in, struct cc_params *p, enum cc_algorithm algorithm)
{
	size_t n;
	const struct cc_param_info *info = cc_params_table(&n);
	uint8_t few = next_byte(in) & 15;

	cc_params_default(p, algorithm);
	while (few--) {
		const struct cc_param_info *i = &info[next_byte(in) % n];
		bool most = next_byte(in) & 1;

		if (*i->value_min)
			cc_params_set(p, i->name, most ? i->value_max : i->value_min);
		else
			cc_params_set(p, i->name, "on");
	}
	p->loss = (enum cc_loss_policy)(next_byte(in) % CC_LOSS_POLICIES);
}

static void event(struct cc *c, struct input *in, uint64_t *now_ns, uint64_t *seq)
{
	uint8_t what = next_byte(in);
	struct cc_ack ack = {0};
	struct int_stack s;

	*now_ns += number(in) >> 20;
	switch (what & 7) {
	case 0: cc_on_sent(c, *now_ns, *seq, (uint32_t)number(in)); break;
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
		ack.hops = next_byte(in);
		if (what & 0x10) {
			stack(in, &s);
			ack.int_stack = &s;
		}
		if (what & 0x20)
			ack.peer_ns = number(in);
		if (what & 0x40)
			ack.back_ns = number(in);
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
		if (what & 0x80) {
			stack(in, &s);
			ack.int_stack = &s;
		}
		cc_on_ack(c, *now_ns, &ack);
		break;
	case 4: cc_on_cnp(c, *now_ns); break;
	case 5: cc_on_rtt(c, *now_ns, number(in)); break;
	case 6:
		if (what & 0x10)
			cc_on_probe(c, *now_ns);
		else if (what & 8 && c->deadline_ns != CC_NO_DEADLINE && c->deadline_ns > *now_ns)
			cc_on_timer(c, *now_ns = c->deadline_ns);
		else
			cc_on_timer(c, *now_ns);
		break;
	case 7: cc_on_loss(c, *now_ns, (enum cc_loss)(what >> 3 & 3)); break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	enum cc_algorithm algorithm = (enum cc_algorithm)(next_byte(&in) % CC_ALGORITHMS);
	uint64_t now_ns, seq = 0, now_twin, seq_twin = 0;
	struct cc_params params;
	struct cc_config config;
	struct cc c, twin;
	uint8_t what;
	uint64_t min, max;

	memset(&config, 0, sizeof(config));
	what = next_byte(&in);
	config.loss_ignored = what & 1;
	if (what & 2) {
		configure(&in, &params, algorithm);
		config.params = &params;
	}
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
	while (in.size) {
		struct input again = in;

		must(c.cwnd_bytes >= min && c.cwnd_bytes <= max && c.cwnd_bytes > 0);
		must(c.rate_bps > 0);
		must(c.deadline_ns == CC_NO_DEADLINE || c.deadline_ns - now_ns <= SECOND_NS || c.deadline_ns <= now_ns);
		event(&c, &in, &now_ns, &seq);
		event(&twin, &again, &now_twin, &seq_twin);
		must(c.cwnd_bytes == twin.cwnd_bytes && c.rate_bps == twin.rate_bps);
		must(c.deadline_ns == twin.deadline_ns && c.probe_wanted == twin.probe_wanted);
		if (algorithm == CC_DCTCP)
			must(c.dctcp.alpha_q32 <= UINT64_C(1) << 32);
	}
	must(c.cwnd_bytes >= min && c.cwnd_bytes <= max);
	/* Left alone, it falls asleep. */
	for (uint64_t since_ns = now_ns; c.deadline_ns != CC_NO_DEADLINE;) {
		if (c.deadline_ns > now_ns)
			now_ns = c.deadline_ns;
		must(now_ns - since_ns <= SECOND_NS);
		cc_on_timer(&c, now_ns);
	}
	return 0;
}
