/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any COUNTs, while packets are sent as far as they may be: the count of what has arrived never exceeds what was sent, no
 * more is in flight than the window and an eighth, or what is sent between answers that come in groups, but for one packet,
 * and an answer is taken once.
 */
#include <string.h>

#include "sdr/rate/auto_rate.h"
#include "support/fuzz_input.h"

enum { MTU = 1024 };

static uint64_t number(struct input *in)
{
	uint64_t mantissa = next_byte(in);
	unsigned int shift = next_byte(in);

	return shift >= 0xf0 ? UINT64_MAX - mantissa : mantissa << (shift & 63);
}

static void count(struct auto_rate *r, struct input *in, uint64_t now_ns)
{
	uint8_t what = next_byte(in);
	uint64_t stamp = what & 1 ? r->pings - 1 - what / 2 : number(in);
	uint64_t bytes = what & 0x80 ? number(in) : r->got + number(in) % (UINT64_C(1) << 24);

	if (auto_rate_count(r, stamp, bytes, number(in), now_ns))
		must(!auto_rate_count(r, stamp, bytes, 0, now_ns) && !auto_rate_pong(r, stamp, now_ns));
}

static uint64_t most_in_flight(const struct auto_rate *r)
{
	uint64_t part = r->cc.cwnd_bytes / 8, between = (uint64_t)((double)r->cc.rate_bps / 8e9 * (double)r->apart_ns);

	return r->cc.cwnd_bytes + (part > between ? part : between);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	uint64_t now_ns = 1 + (number(&in) >> 2);
	struct auto_rate r;

	auto_rate_init(&r, true, MTU, number(&in), now_ns);
	while (in.size) {
		uint8_t what = next_byte(&in);

		now_ns += number(&in) >> 28;
		for (int i = 0; i < (what >> 2) && auto_rate_may_send(&r, MTU, now_ns); i++) {
			auto_rate_sent(&r, MTU);
			must(!auto_rate_bps(&r) || r.sent - r.acked <= MTU || r.sent - r.acked <= most_in_flight(&r));
		}
		if (what & 1)
			auto_rate_ping(&r, now_ns);
		if (what & 2)
			count(&r, &in, now_ns);
		must(r.got <= r.sent && r.acked <= r.sent && r.answered <= r.pings);
		must(r.apart_ns <= 50000000 && r.cc.rate_bps > 0 && r.cc.cwnd_bytes >= MTU);
	}
	return 0;
}
