/* SPDX-License-Identifier: BSD-2-Clause */
/* Shares: a line that carries a packet at a time, and senders that keep to their shares. */

#include "support/test.h"
#include "transport/rxshare.h"

enum { PACKET = 4200, SENDERS_MAX = 1024 };

#define LINE_BPS  UINT64_C(100000000000)
#define PACKET_NS UINT64_C(336) /* on that line */
#define MS        UINT64_C(1000000)
#define ALL       UINT32_MAX

struct sender {
	struct rxshare_sender seen;
	struct rxshare_pace pace;
	uint32_t want_kbps; /* ALL: whatever there is; 0: nothing */
	uint32_t weight;    /* turns in a row, where nothing holds it */
	bool deaf;          /* agreed to no shares */
	uint64_t ready_ns;
	uint64_t packets;
};

struct line {
	struct rxshare share;
	uint64_t now_ns;
	uint32_t count, turn, turns;
	struct sender s[SENDERS_MAX];
};

static struct line l;

static void line_init(uint32_t senders)
{
	memset(&l, 0, sizeof(l));
	l.now_ns = 7 * MS; /* time does not begin at 0 */
	l.count = senders;
	rxshare_init(&l.share, false, LINE_BPS, 10000);
	for (uint32_t i = 0; i < senders; i++)
		l.s[i] = (struct sender){.want_kbps = ALL, .weight = 1};
}

static bool may_send(struct sender *s)
{
	return s->want_kbps && s->ready_ns <= l.now_ns && !rxshare_holds(&s->pace, l.now_ns);
}

/* The next sender, by turns, that may send. */
static struct sender *pick(void)
{
	for (uint32_t i = 0; i <= l.count; i++) {
		struct sender *s = &l.s[l.turn];

		if (l.turns++ < s->weight && may_send(s))
			return s;
		l.turns = 0;
		l.turn = (l.turn + 1) % l.count;
	}
	return NULL;
}

static void send(struct sender *s)
{
	rxshare_sent(&s->pace, PACKET, 0, l.now_ns);
	if (s->want_kbps != ALL) {
		if (s->ready_ns + MS < l.now_ns)
			s->ready_ns = l.now_ns;
		s->ready_ns += PACKET * UINT64_C(8000000) / s->want_kbps;
	}
	s->packets++;
	rxshare_arrived(&l.share, &s->seen, !s->deaf, PACKET, l.now_ns);
	if (!s->deaf)
		rxshare_set(&s->pace, l.share.share_kbps, l.now_ns);
}

static void run(uint64_t ns)
{
	uint64_t end_ns = l.now_ns + ns;

	for (uint32_t i = 0; i < l.count; i++)
		l.s[i].packets = 0;
	for (; l.now_ns < end_ns; l.now_ns += PACKET_NS) {
		struct sender *s = pick();

		if (s)
			send(s);
	}
}

static uint64_t sum(void)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < l.count; i++)
		n += l.s[i].packets;
	return n;
}

static uint64_t spread(uint32_t first, uint32_t end)
{
	uint64_t least = UINT64_MAX, most = 0;

	for (uint32_t i = first; i < end; i++) {
		least = l.s[i].packets < least ? l.s[i].packets : least;
		most = l.s[i].packets > most ? l.s[i].packets : most;
	}
	return most - least;
}

static void assert_used(uint64_t ns)
{
	assert_true(sum() * PACKET_NS >= ns / 100 * 98);
	assert_true(sum() * PACKET_NS <= ns + PACKET_NS);
}

/* ---- the receiver -------------------------------------------------------------------------------- */

TEST(equal_senders_get_the_same_to_the_packet)
{
	static const uint32_t counts[] = {2, 3, 16, 128, 1000};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		line_init(counts[i]);
		run(50 * MS);
		run(50 * MS);
		assert_true(spread(0, l.count) <= 1);
		assert_used(50 * MS);
	}
}

/* Shares do not depend on the senders' weights. */
TEST(greed_gets_no_more)
{
	line_init(64);
	for (uint32_t i = 0; i < l.count; i++)
		l.s[i].weight = 1 + i;
	run(50 * MS);
	run(50 * MS);
	assert_true(spread(0, l.count) <= 1);
	assert_used(50 * MS);
}

TEST(who_wants_less_leaves_it_to_the_others)
{
	uint64_t even = 100 * MS / PACKET_NS / 64;

	line_init(64);
	for (uint32_t i = 32; i < 64; i++)
		l.s[i].want_kbps = (uint32_t)(LINE_BPS / 1000 / 64 / (i - 30));
	run(100 * MS);
	run(100 * MS);
	assert_true(spread(0, 32) <= 1);
	assert_true(l.s[0].packets > even * 5 / 4);
	for (uint32_t i = 32; i < 64; i++)
		assert_true(l.s[i].packets + 2 >= even / (i - 30));
	assert_used(100 * MS);
}

/* It takes as much as it can, but no other sender gets less than its even share. */
TEST(who_does_not_obey_has_the_rest)
{
	line_init(9);
	l.s[8].deaf = true;
	l.s[8].want_kbps = (uint32_t)(LINE_BPS / 1000 / 2);
	run(100 * MS);
	run(100 * MS);
	assert_true(spread(0, 8) <= 1);
	assert_in_range(l.s[0].packets, 100 * MS / PACKET_NS * 15 / 16 / 9, 100 * MS / PACKET_NS / 9);
	assert_true(l.s[8].packets > l.s[0].packets);
	assert_used(100 * MS);
}

TEST(nothing_is_told_where_nobody_is_held_back)
{
	static const struct {
		uint32_t senders, want_kbps;
	} cases[] = {{1, ALL}, {10, 8000000}, {1000, 80000}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		line_init(cases[i].senders);
		for (uint32_t k = 0; k < l.count; k++)
			l.s[k].want_kbps = cases[i].want_kbps;
		for (int ms = 0; ms < 100; ms++) {
			run(MS);
			assert_int_equal(l.share.share_kbps, 0);
		}
	}
}

TEST(what_leavers_had_is_given_out_again)
{
	line_init(128);
	run(100 * MS);
	for (uint32_t i = 4; i < 128; i++)
		l.s[i].want_kbps = 0;
	run(20 * MS);
	run(20 * MS);
	assert_true(spread(0, 4) <= 1);
	assert_used(20 * MS);
	for (uint32_t i = 1; i < 4; i++)
		l.s[i].want_kbps = 0;
	run(20 * MS);
	run(20 * MS);
	assert_int_equal(l.share.share_kbps, 0);
	assert_true(l.s[0].packets + 1 >= 20 * MS / PACKET_NS);
}

TEST(newcomers_get_theirs_within_a_few_rounds)
{
	line_init(128);
	for (uint32_t i = 4; i < 128; i++)
		l.s[i].want_kbps = 0;
	run(20 * MS);
	for (uint32_t i = 4; i < 128; i++)
		l.s[i].want_kbps = ALL;
	run(5 * MS);
	run(20 * MS);
	assert_true(spread(0, 128) <= 1);
}

TEST(after_a_pause_nothing_is_known)
{
	line_init(16);
	run(10 * MS);
	assert_true(l.share.share_kbps);
	rxshare_arrived(&l.share, &l.s[0].seen, true, PACKET, l.now_ns + 1000 * MS);
	assert_int_equal(l.share.share_kbps, 0);
}

/* ---- crowds ---------------------------------------------------------------------------------------- */

enum { CROWD_RTT_NS = 10000 };

static struct rxshare_host hosts[SENDERS_MAX];

static void crowd_init(uint32_t senders)
{
	line_init(senders);
	memset(hosts, 0, sizeof(hosts));
	rxshare_init(&l.share, true, LINE_BPS, CROWD_RTT_NS);
}

/*
 * Each host sends `packets`, by turns. They take `apart_ns` of the line; those of one host left in a part of the time in
 * which they arrive. 0: they are not stamped.
 */
static void arrive(uint32_t packets, uint64_t apart_ns, uint32_t part)
{
	static const uint32_t stamp_ns = UINT32_MAX - 1000; /* wraps */

	for (uint32_t i = 0; i < packets * l.count; i++) {
		struct sender *s = &l.s[i % l.count];
		uint64_t gap_ns = part ? l.count * apart_ns / part : 0;

		rxshare_arrived(&l.share, &s->seen, !s->deaf, PACKET, l.now_ns);
		if (rxshare_watches(&l.share))
			rxshare_watch(&l.share, &hosts[i % l.count],
				      part ? (stamp_ns + (uint32_t)(i / l.count * gap_ns)) | 1 : 0, l.now_ns);
		l.now_ns += apart_ns;
	}
}

static uint32_t part_kbps(uint32_t part, uint32_t senders)
{
	return (uint32_t)(LINE_BPS / 1000 / part / senders);
}

TEST(crowd_gets_a_fourth_of_the_line_at_once)
{
	crowd_init(RXSHARE_CROWD);
	arrive(1, PACKET_NS, 3);
	assert_int_equal(l.share.share_kbps, 0);
	assert_false(rxshare_is_told(&l.share, l.now_ns));
	arrive(1, PACKET_NS, 3);
	assert_int_equal(l.share.share_kbps, part_kbps(4, RXSHARE_CROWD));
	assert_true(rxshare_is_told(&l.share, l.now_ns));
}

/* Fewer hosts; packets that come as they left; half of the line is free. */
TEST(others_are_no_crowd)
{
	static const struct {
		uint32_t hosts, apart_ns, part;
	} cases[] = {{RXSHARE_CROWD - 1, PACKET_NS, 3},
		     {1000, PACKET_NS, 2},
		     {1000, PACKET_NS, 1},
		     {RXSHARE_CROWD, 3 * PACKET_NS, 3}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		crowd_init(cases[i].hosts);
		arrive(50, cases[i].apart_ns, cases[i].part);
		assert_int_equal(l.share.share_kbps, 0);
		assert_false(rxshare_is_told(&l.share, l.now_ns));
	}
}

/* What was sent before a host could stamp it left within a round trip. */
TEST(queue_is_seen_in_packets_without_stamps)
{
	crowd_init(RXSHARE_CROWD);
	while (!l.share.share_kbps && l.now_ns < 8 * MS)
		arrive(1, PACKET_NS, 0);
	assert_in_range(l.now_ns - 7 * MS, 2 * CROWD_RTT_NS, 4 * CROWD_RTT_NS + 2 * RXSHARE_CROWD * PACKET_NS);
	crowd_init(RXSHARE_CROWD / 2);
	arrive(50, PACKET_NS, 0);
	assert_int_equal(l.share.share_kbps, 0);
}

/* The others have a fourth as long as there are more packets of those who obey than that. */
TEST(crowd_gets_the_line_when_its_queue_is_gone)
{
	crowd_init(128);
	for (uint32_t i = 96; i < 128; i++)
		l.s[i].deaf = true;
	arrive(20, PACKET_NS, 3);
	assert_int_equal(l.share.share_kbps, part_kbps(4, 128));
	for (int i = 0; i < 20 && l.share.share_kbps == part_kbps(4, 128); i++) { /* those who do not obey go on */
		uint32_t k = 96 + (uint32_t)i % 32;

		arrive(1, 4 * PACKET_NS, 3);
		for (int n = 0; n < 128 * 3; n++)
			rxshare_arrived(&l.share, &l.s[k].seen, false, PACKET, l.now_ns);
	}
	assert_true(l.share.share_kbps > part_kbps(2, 128));
}

TEST(half_a_crowd_is_none_and_is_told_so)
{
	uint64_t over_ns;

	crowd_init(128);
	arrive(20, PACKET_NS, 3);
	l.count = RXSHARE_CROWD / 2 - 1;
	while (l.share.share_kbps && l.now_ns < 100 * MS)
		arrive(1, 4 * PACKET_NS, 3);
	assert_int_equal(l.share.share_kbps, 0);
	for (over_ns = l.now_ns; rxshare_is_told(&l.share, over_ns) && over_ns < 100 * MS; over_ns += MS / 10)
		;
	assert_in_range(over_ns - l.now_ns, 2 * MS, 10 * MS);
}

/* ---- the sender ---------------------------------------------------------------------------------- */

TEST(gaps_do_not_drift)
{
	struct rxshare_pace p = {0};
	uint64_t now_ns = 1000 * MS, gap_ns, first_ns;

	rxshare_set(&p, 777777, now_ns);
	rxshare_sent(&p, PACKET, 0, now_ns);
	first_ns = p.next_ns;
	gap_ns = PACKET * UINT64_C(8000000) / 777777 + 1;
	for (uint64_t i = 0; i < 100000; i++) {
		assert_int_equal(p.next_ns, first_ns + i * gap_ns);
		assert_true(rxshare_holds(&p, p.next_ns - 1));
		/* Late by various times, and given the same share again. */
		now_ns = p.next_ns + i * 7919 % (3 * gap_ns);
		rxshare_set(&p, 777777, now_ns);
		assert_false(rxshare_holds(&p, now_ns));
		rxshare_sent(&p, PACKET, 0, now_ns);
	}
}

TEST(who_was_held_up_long_catches_up_a_few_packets)
{
	struct rxshare_pace p = {0};
	uint64_t now_ns = 1000 * MS;
	uint32_t n = 0;

	rxshare_set(&p, 1000000, now_ns);
	while (!rxshare_holds(&p, now_ns)) {
		rxshare_sent(&p, PACKET, 0, now_ns);
		n++;
	}
	assert_in_range(n, 2, 8);
}

TEST(no_share_stops_a_sender)
{
	static const uint32_t told[] = {1, 2, 1000, RXSHARE_KBPS_MIN, UINT32_MAX - 1, UINT32_MAX};

	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
		struct rxshare_pace p = {0};
		uint64_t now_ns = 1000 * MS;

		for (uint32_t n = 0; n < 100; n++) {
			rxshare_set(&p, told[i], now_ns);
			rxshare_sent(&p, PACKET, 0, now_ns);
			assert_true(p.next_ns <= now_ns + 10 * MS);
			now_ns = p.next_ns > now_ns ? p.next_ns : now_ns;
			assert_false(rxshare_holds(&p, now_ns));
		}
	}
}

/* Until it has to wait. */
static void send_until_held(struct rxshare_pace *p, uint64_t now_ns)
{
	while (!rxshare_holds(p, now_ns))
		rxshare_sent(p, PACKET, 0, now_ns);
}

TEST(share_of_0_is_none)
{
	struct rxshare_pace p = {0};

	rxshare_set(&p, 1, 1000 * MS);
	send_until_held(&p, 1000 * MS);
	rxshare_set(&p, 0, 1000 * MS);
	assert_false(rxshare_holds(&p, 1000 * MS));
	rxshare_sent(&p, PACKET, 0, 1000 * MS);
	assert_false(rxshare_holds(&p, 1000 * MS));
}

TEST(higher_share_ends_a_long_wait)
{
	struct rxshare_pace p = {0};

	rxshare_set(&p, RXSHARE_KBPS_MIN, 1000 * MS);
	send_until_held(&p, 1000 * MS);
	assert_true(rxshare_holds(&p, 1009 * MS));
	rxshare_set(&p, 33600, 1001 * MS);
	assert_true(rxshare_holds(&p, 1001 * MS));
	assert_false(rxshare_holds(&p, 1002 * MS));
}

TEST(old_share_is_not_believed)
{
	struct rxshare_pace p = {0};

	rxshare_set(&p, 336000, 1000 * MS); /* a packet in 100 us */
	send_until_held(&p, 1000 * MS);
	p.next_ns = UINT64_MAX;
	assert_true(rxshare_holds(&p, 1002 * MS));
	assert_false(rxshare_holds(&p, 1004 * MS));
	assert_int_equal(p.share_kbps, 0);
}

/* After a packet that left without waiting, the next one waits for no more than its gap. */
TEST(what_does_not_wait_delays_the_next_by_a_gap)
{
	struct rxshare_pace p = {0};

	rxshare_set(&p, 33600, 1000 * MS);
	for (int i = 0; i < 100; i++)
		rxshare_sent(&p, PACKET, 0, 1000 * MS);
	assert_int_equal(p.next_ns, 1001 * MS);
}
