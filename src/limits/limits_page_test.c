/* SPDX-License-Identifier: BSD-2-Clause */
/* Tokens and shares in virtual time, and quotas between places. */
#include "limits/limits_page.h"
#include "support/test.h"

#include <stdlib.h>

enum { STEP_NS = 10000, TRAIN = 16 << 10, MS = 1000000 };

#define GBPS UINT64_C(1000000000)
#define LINE (10 * GBPS)
#define T0   (1000 * UINT64_C(1000000000))

static struct limits_page *page;

/* A program that sends a train whenever it may; greedy, or `bps` at most. */
struct sender {
	struct limits_row *row;
	uint32_t burst;
	uint64_t bps; /* 0: greedy */
	bool idle;
	uint64_t begun_ns, sent, most_in_100ms, window_at, window_sent;
};

static struct sender sender_of(unsigned at, const struct limits_config *c)
{
	struct limits_row *row = &page->rows[at];

	atomic_store(&row->key, at + 1);
	row_begin(row, c, T0);
	return (struct sender){.row = row, .burst = c->burst_bytes, .begun_ns = T0, .window_at = T0};
}

static bool wants(const struct sender *s, uint64_t now_ns)
{
	return !s->idle && (!s->bps || s->sent * 8 < (double)s->bps * (double)(now_ns - s->begun_ns) / 1e9);
}

static void step(struct sender *s, uint64_t now_ns)
{
	if (now_ns - s->window_at >= 100 * MS) {
		s->window_at = now_ns;
		s->window_sent = 0;
	}
	while (wants(s, now_ns) && row_due_ns(page, s->row, LINE, now_ns) <= now_ns) {
		row_send(page, s->row, s->burst, LINE, TRAIN, now_ns);
		s->sent += TRAIN;
		s->window_sent += TRAIN;
	}
	if (s->window_sent > s->most_in_100ms)
		s->most_in_100ms = s->window_sent;
}

static uint64_t run(struct sender *s, unsigned n, uint64_t from_ns, uint64_t ns)
{
	for (uint64_t t = from_ns; t < from_ns + ns; t += STEP_NS)
		for (unsigned i = 0; i < n; i++)
			step(&s[i], t);
	return from_ns + ns;
}

static double gbps(uint64_t bytes, uint64_t ns)
{
	return (double)bytes * 8 / (double)ns;
}

static int make_page(void **state)
{
	page = aligned_alloc(64, sizeof(*page));
	memset(page, 0, sizeof(*page));
	return 0;
}

static int free_page(void **state)
{
	free(page);
	return 0;
}

#define PAGE_TEST(name) TEST_AS(name, TEST_IN_ONE, make_page, free_page)

PAGE_TEST(a_rate_is_that_of_all_processes_and_is_never_passed)
{
	const struct limits_config c = {.rate_bps = 2 * GBPS, .burst_bytes = 128 << 10};
	struct sender s[3] = {sender_of(0, &c), sender_of(0, &c), sender_of(0, &c)};
	uint64_t sent, ns = 1000 * MS;

	run(s, 3, T0, ns);
	sent = s[0].sent + s[1].sent + s[2].sent;
	assert_true(gbps(sent, ns) > 1.99 && gbps(sent, ns) < 2.01);
	assert_true(gbps(s[0].most_in_100ms + s[1].most_in_100ms + s[2].most_in_100ms, 100 * MS) < 2.2);
	assert_int_equal(atomic_load(&s[0].row->bytes), sent);
}

PAGE_TEST(what_was_not_used_is_no_more_than_the_burst)
{
	const struct limits_config c = {.rate_bps = GBPS, .burst_bytes = 128 << 10};
	struct sender s = sender_of(0, &c);

	s.idle = true;
	run(&s, 1, T0, 100 * MS);
	s.idle = false;
	step(&s, T0 + 100 * MS);
	assert_in_range(s.sent, 128 << 10, (128 << 10) + TRAIN);
}

PAGE_TEST(shares_are_as_weights_and_the_idle_ones_are_the_others)
{
	const struct limits_config three = {.weight = 3}, one = {.weight = 1};
	struct sender s[2] = {sender_of(0, &three), sender_of(1, &one)};
	uint64_t now = run(s, 2, T0, 100 * MS), before[2];

	before[0] = s[0].sent;
	before[1] = s[1].sent;
	now = run(s, 2, now, 1000 * MS);
	assert_true(gbps(s[0].sent - before[0], 1000 * MS) / 10 > 0.73 &&
		    gbps(s[0].sent - before[0], 1000 * MS) / 10 < 0.77);
	assert_true(gbps(s[1].sent - before[1], 1000 * MS) / 10 > 0.23 &&
		    gbps(s[1].sent - before[1], 1000 * MS) / 10 < 0.27);
	/* Within ten milliseconds the other one has the line. */
	s[0].idle = true;
	now = run(s, 2, now, 10 * MS);
	before[1] = s[1].sent;
	now = run(s, 2, now, 100 * MS);
	assert_true(gbps(s[1].sent - before[1], 100 * MS) > 9.5);
	/* And within ten more it has its own again. */
	s[0].idle = false;
	now = run(s, 2, now, 10 * MS);
	before[0] = s[0].sent;
	run(s, 2, now, 100 * MS);
	assert_true(gbps(s[0].sent - before[0], 100 * MS) > 7.3);
}

PAGE_TEST(who_sends_little_leaves_the_rest_of_its_share)
{
	const struct limits_config nine = {.weight = 9}, one = {.weight = 1};
	struct sender s[2] = {sender_of(0, &nine), sender_of(1, &one)};
	uint64_t now, before;

	s[0].bps = GBPS;
	now = run(s, 2, T0, 100 * MS);
	before = s[1].sent;
	run(s, 2, now, 500 * MS);
	assert_true(gbps(s[1].sent - before, 500 * MS) > 8.5);
	assert_true(gbps(s[0].sent, 600 * MS) > 0.98);
}

PAGE_TEST(a_share_is_no_more_than_the_rate_and_the_others_have_what_is_over)
{
	const struct limits_config slow = {.weight = 1, .rate_bps = GBPS}, one = {.weight = 1};
	struct sender s[2] = {sender_of(0, &slow), sender_of(1, &one)};

	run(s, 2, T0, 500 * MS);
	assert_true(gbps(s[0].sent, 500 * MS) > 0.98 && gbps(s[0].sent, 500 * MS) < 1.02);
	assert_true(gbps(s[1].sent, 500 * MS) > 8.5);
}

PAGE_TEST(rubbish_in_the_page_holds_nobody_up_for_long)
{
	const struct limits_config c = {.rate_bps = GBPS, .weight = 1};
	struct sender s = sender_of(0, &c);

	memset((void *)page->rows, 0xff, sizeof(page->rows));
	atomic_store(&s.row->rate_bps, GBPS);
	assert_in_range(row_due_ns(page, s.row, LINE, T0), T0, T0 + 60 * UINT64_C(1000000000));
	row_send(page, s.row, 0, LINE, TRAIN, T0);
	assert_int_equal(row_used(s.row, LIMIT_QPS), UINT64_MAX);
}

static const struct limits_config ten = {.quota = {[LIMIT_QPS] = 10, [LIMIT_MR_BYTES] = 1000}};

PAGE_TEST(a_quota_is_that_of_all_places)
{
	struct limits_row *row = &page->rows[0];
	struct limits_place *a = &row->place[0], *b = &row->place[5];
	enum limit over = LIMITS;

	atomic_store(&row->places, 6);
	place_set(a, &ten);
	place_set(b, &ten);
	assert_true(row_take(row, a, (uint64_t[LIMITS]){[LIMIT_QPS] = 7, [LIMIT_CQS] = 1000}, &over));
	assert_true(row_take(row, b, (uint64_t[LIMITS]){[LIMIT_QPS] = 3}, &over));
	assert_false(row_take(row, b, (uint64_t[LIMITS]){[LIMIT_QPS] = 4}, &over));
	assert_int_equal(over, LIMIT_QPS);
	assert_int_equal(row_used(row, LIMIT_QPS), 10);
	/* Another kind is not in the way. */
	assert_true(row_take(row, b, (uint64_t[LIMITS]){[LIMIT_QPS] = 3, [LIMIT_MR_BYTES] = 1000}, &over));
	assert_false(row_take(row, a, (uint64_t[LIMITS]){[LIMIT_QPS] = 7, [LIMIT_MR_BYTES] = UINT64_MAX}, &over));
	assert_int_equal(over, LIMIT_MR_BYTES);
	place_note(a, (uint64_t[LIMITS]){[LIMIT_QPS] = 6});
	assert_true(row_take(row, b, (uint64_t[LIMITS]){[LIMIT_QPS] = 4, [LIMIT_MR_BYTES] = 1000}, &over));
}
