/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/ideal.h"

#include "base/prng.h"
#include "support/test.h"

#define GBPS UINT64_C(1000000000)
#define US   UINT64_C(1000000)

enum { MTU = 1000 };

static uint64_t takes_ps(uint64_t bytes, uint64_t rate_bps)
{
	return bytes * 8 * 1000 * GBPS / rate_bps;
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Packet by packet, link by link. */
static uint64_t model_ps(const struct ideal_way *w, const struct host_message *m)
{
	uint64_t free_ps[IDEAL_LINKS_MAX + 1] = {0}, read_ps = 0, at_ps = 0;

	for (uint64_t i = 0; i < m->packets; i++) {
		uint32_t bytes = i + 1 == m->packets ? m->last_bytes : i ? m->full_bytes : m->first_bytes;

		at_ps = w->read_bps ? later(read_ps, free_ps[0]) : 0;
		if (w->read_bps)
			read_ps = later(at_ps, free_ps[0]) + takes_ps(MTU, w->read_bps);
		for (uint32_t k = 0; k < w->links; k++) {
			free_ps[k] = at_ps = later(at_ps, free_ps[k]) + takes_ps(bytes, w->rates_bps[k]);
		}
		if (w->drain_bps)
			free_ps[w->links] = at_ps = later(at_ps, free_ps[w->links]) + takes_ps(bytes, w->drain_bps);
	}
	for (uint32_t k = 0; k < w->links; k++)
		at_ps += takes_ps(m->ack_bytes, w->rates_bps[k]);
	return at_ps + w->hosts_ps + 2 * (w->delay_ps + (w->links - 1) * w->latency_ps);
}

TEST(a_packet_is_stored_and_forwarded)
{
	static const uint64_t rates[] = {100 * GBPS, 100 * GBPS};
	const struct host_message m = {.packets = 1, .last_bytes = 1100, .ack_bytes = 86};
	const struct ideal_way w = {
		.rates_bps = rates, .links = 2, .delay_ps = 2 * US, .latency_ps = 600000, .hosts_ps = 7};

	/* Twice on a wire, there and back, through one switch each way. */
	assert_int_equal(ideal_ps(&w, &m, MTU), 2 * 88000 + 2 * 6880 + 4 * US + 2 * 600000 + 7);
}

TEST(a_long_message_takes_its_time_on_the_narrowest_link)
{
	static const uint64_t rates[] = {100 * GBPS, 25 * GBPS, 400 * GBPS};
	const struct host_message m = {.packets = 1000, .first_bytes = 1100, .full_bytes = 1100, .last_bytes = 1100};
	const struct ideal_way w = {.rates_bps = rates, .links = 3};

	assert_int_equal(ideal_ps(&w, &m, MTU), 88000 + 1000 * 352000 + 22000);
}

TEST(every_message_takes_what_its_packets_take_one_by_one)
{
	static const uint64_t speeds[] = {10 * GBPS, 25 * GBPS, 40 * GBPS, 100 * GBPS, 400 * GBPS};
	struct prng prng;

	prng_init(&prng, 1);
	for (int run = 0; run < 20000; run++) {
		uint64_t rates[6];
		struct ideal_way w = {.rates_bps = rates, .links = 1 + (uint32_t)prng_below(&prng, 6)};
		struct host_message m = {.packets = 1 + prng_below(&prng, prng_below(&prng, 2) ? 5 : 60)};

		for (uint32_t k = 0; k < w.links; k++)
			rates[k] = speeds[prng_below(&prng, 5)];
		w.delay_ps = prng_below(&prng, 2 * US);
		w.latency_ps = prng_below(&prng, US);
		w.read_bps = prng_below(&prng, 3) ? 0 : speeds[prng_below(&prng, 5)];
		w.drain_bps = prng_below(&prng, 3) ? 0 : speeds[prng_below(&prng, 5)];
		m.full_bytes = 1100;
		m.first_bytes = 1100 + (uint32_t)prng_below(&prng, 2) * 16;
		m.last_bytes = 100 + (uint32_t)prng_below(&prng, 1001);
		m.ack_bytes = 86;
		if (ideal_ps(&w, &m, MTU) != model_ps(&w, &m))
			fail_msg("run %d: %llu, one by one %llu", run, (unsigned long long)ideal_ps(&w, &m, MTU),
				 (unsigned long long)model_ps(&w, &m));
	}
}
