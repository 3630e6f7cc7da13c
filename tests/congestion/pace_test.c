/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pace, in both engines: no packet leaves before the rate lets it, slack allows trains but no longer
 * bursts, and a late packet costs no rate. READs are paced by the bytes that they request.
 */
#include "congestion/congestion.h"
#include "support/test.h"

enum { MTU = 1024, OVERHEAD = 66, MESSAGE = 256 * 1024 };

/* Without marks dcqcn keeps the line rate. */
static struct sim start(uint64_t line_bps, uint64_t slack_ns, enum protocol protocol)
{
	struct congestion_options c = congestion_options(CC_DCQCN);
	struct duo_options o = duo_options();
	struct sim s;

	c.line_rate_bps = line_bps;
	c.slack_ns = slack_ns;
	c.overhead_bytes = OVERHEAD;
	c.window_bytes = 2 * MESSAGE;
	c.protocol = protocol;
	s = congestion_start_sim(&c, &o, 1, 4 << 20);
	if (protocol == PROTOCOL_VEROCE)
		duo_idle(s.duo); /* capabilities are known */
	return s;
}

static uint64_t wire_ns(uint64_t bytes, uint64_t bps)
{
	return bytes * 8 * 1000000000 / bps;
}

/*
 * From any packet on, no more bytes have left by any time than the rate allows for that time and
 * slack_ns more. Returns how many times packets left.
 */
static size_t check_pace(const struct sim *s, uint64_t bps, uint64_t slack_ns)
{
	uint64_t free_ns = 0, last_ns = 0;
	size_t times = 0;

	for (size_t i = 0; i < s->duo->wire_count; i++) {
		const struct duo_packet *p = &s->duo->wire[i];

		if (p->from != DUO_A || !congestion_is_data(p))
			continue;
		DUO_CHECK(s->duo, p->sent_ns + slack_ns + 2 >= free_ns);
		free_ns = (free_ns > p->sent_ns ? free_ns : p->sent_ns) + wire_ns(p->len + OVERHEAD, bps);
		times += p->sent_ns != last_ns;
		last_ns = p->sent_ns;
	}
	return times;
}

TEST(nothing_leaves_before_its_time)
{
	static const enum protocol protocols[] = {PROTOCOL_ROCEV2, PROTOCOL_VEROCE};
	static const uint64_t rates[] = {10000000, 1000000000, 7777777777, 100000000000};

	for (size_t i = 0; i < COUNT(protocols) * COUNT(rates); i++) {
		uint64_t bps = rates[i / COUNT(protocols)];
		struct sim s = start(bps, 0, protocols[i % COUNT(protocols)]);
		uint64_t began = s.duo->now_ns, took;

		congestion_write(&s, 1, MESSAGE);
		duo_wait(s.duo, &s.a->sent, 1);
		took = s.duo->now_ns - began;
		DUO_CHECK(s.duo, check_pace(&s, bps, 0) >= MESSAGE / MTU);
		/*
		 * No time is wasted: there is time for the packets, the most headers, and the last
		 * acknowledgement.
		 */
		DUO_CHECK(s.duo, took >= wire_ns(MESSAGE, bps) &&
					 took <= wire_ns(MESSAGE / MTU * (MTU + OVERHEAD + 64), bps) + 150000);
		duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
		sim_end(&s);
	}
}

TEST(slack_makes_trains_and_keeps_the_rate)
{
	static const enum protocol protocols[] = {PROTOCOL_ROCEV2, PROTOCOL_VEROCE};
	enum { SLACK_NS = 100000 };
	const uint64_t bps = 2000000000;

	for (size_t i = 0; i < COUNT(protocols); i++) {
		struct sim s = start(bps, SLACK_NS, protocols[i]);
		uint64_t began = s.duo->now_ns, took;
		size_t times;

		congestion_write(&s, 1, 4 * MESSAGE);
		duo_wait(s.duo, &s.a->sent, 1);
		took = s.duo->now_ns - began;
		times = check_pace(&s, bps, SLACK_NS);
		if (times > took / (SLACK_NS / 2) + 2)
			fail_msg("%zu wake-ups in %ju us", times, (uintmax_t)took / 1000);
		DUO_CHECK(s.duo, took >= wire_ns(4 * MESSAGE, bps) - SLACK_NS &&
					 took <= wire_ns(4 * MESSAGE / MTU * (MTU + OVERHEAD + 64), bps) + SLACK_NS);
		duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
		sim_end(&s);
	}
}

/*
 * One wake-up in time is enough for a pace: packets that wait have a deadline, which is not too
 * early.
 */
TEST(deadline_is_when_the_pace_lets_go)
{
	const uint64_t bps = 100000000;
	struct sim s = start(bps, 0, PROTOCOL_ROCEV2);
	struct pkt burst[8];
	struct nic *nic = s.a->host->nic;
	uint64_t now = s.duo->now_ns, due;

	congestion_write(&s, 1, 8 * MTU);
	for (int i = 0; i < 7; i++) {
		assert_int_equal(nic_output(nic, burst, 8, now), 1);
		assert_int_equal(nic_output(nic, burst, 8, now), 0);
		due = now + wire_ns(burst[0].len + OVERHEAD, bps);
		assert_in_range(nic_deadline(nic), due, due + 1);
		now = nic_deadline(nic) - 1;
		nic_expire(nic, now);
		assert_int_equal(nic_output(nic, burst, 8, now), 0);
		nic_expire(nic, ++now);
	}
	assert_int_equal(nic_output(nic, burst, 8, now), 1);
	s.duo->now_ns = now;
	duo_idle(s.duo); /* all were lost: the timer has them sent again, no faster */
	check_pace(&s, bps, 0);
	duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
	sim_end(&s);
}

TEST(reads_ask_at_the_pace)
{
	const uint64_t bps = 1000000000;
	enum { READS = 32, BYTES = 32 * 1024 };
	struct sim s = start(bps, 0, PROTOCOL_ROCEV2);
	uint64_t began = s.duo->now_ns;

	for (uint64_t i = 0; i < READS; i++)
		congestion_read(&s, i, BYTES);
	duo_wait(s.duo, &s.a->sent, READS);
	/* The last READ is requested when all before it have had their time. */
	assert_true(s.duo->now_ns - began >= wire_ns((READS - 1) * BYTES, bps));
	assert_true(s.duo->now_ns - began <= wire_ns((READS + 1) * (BYTES + BYTES / 8), bps));
	assert_memory_equal(s.abuf->p, s.bbuf->p, BYTES);
	for (uint64_t i = 0; i < READS; i++)
		duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS);
	sim_end(&s);
}

/* A pause in sending saves up only the slack. */
TEST(idle_time_is_not_saved_up)
{
	enum { SLACK_NS = 20000 };
	const uint64_t bps = 1000000000;
	struct sim s = start(bps, SLACK_NS, PROTOCOL_ROCEV2);

	for (uint64_t i = 0; i < 5; i++) {
		congestion_write(&s, i, 64 * MTU);
		duo_wait(s.duo, &s.a->sent, i + 1);
		duo_run_for(s.duo, 50000000);
		duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS);
	}
	check_pace(&s, bps, SLACK_NS);
	sim_end(&s);
}
