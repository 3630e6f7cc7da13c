/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fence_indicator: work requests whose bytes meet behave as if executed one after the other, on any network,
 * and no others wait (out-of-order R22). Without it each test shows the damage.
 */
#include "support/test.h"
#include "veroce/veroce.h"

enum { PACKETS = 4 };

/* Packets that are late: from `psn` on, in either space. */
struct late {
	bool responses;
	uint32_t psn, count;
	uint64_t ns;
	uint64_t lost; /* bit i: of psn + i the first copy is */
};

static bool delay(void *ctx, const struct duo_packet *p, enum duo_fate *fate, uint64_t *n)
{
	const struct late *l = ctx;
	uint32_t i = (p->bth.psn - l->psn) & PSN_MASK;

	if (!veroce_is_data(p) || p->bth.retrans || i >= l->count || !(p->info->flags & F_RESPONSE) == l->responses)
		return false;
	*fate = l->lost >> i & 1 ? DUO_DROP : DUO_DELAY;
	*n = l->ns - 100 * i; /* last to first */
	return true;
}

static struct sim start(bool on, const struct veroce_options *variant, const struct duo_options *o)
{
	struct veroce_options v = *variant;

	v.fence_indicator = on;
	v.order = ORDER_WEAK;
	return veroce_start_sim(&v, o, 1);
}

static uint64_t waited(const struct sim *s)
{
	return nic_counters(s->a->host->nic)->overlaps_fenced;
}

static void set_late(struct sim *s, struct late *l)
{
	s->duo->script = delay;
	s->duo->script_ctx = l;
}

static void post_all(struct sim *s, const struct duo_wr *w, uint32_t count)
{
	assert_true(duo_post_chain(s->a, w, count));
	duo_idle(s->duo);
	for (uint32_t i = 0; i < count; i++)
		duo_expect(s->duo, &s->a->sent, w[i].wr_id, WC_SUCCESS);
}

/*
 * Runs `test` for every variant, with the indicator and without: with it everything is in order,
 * without it is not.
 */
static void run(bool (*in_order)(struct sim *, const struct duo_options *))
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();

	for (unsigned i = 0; veroce_variant(&v, &o, i); i++) {
		for (int on = 0; on < 2; on++) {
			struct sim s = start(on, &v, &o);

			assert_int_equal(in_order(&s, &o), on);
			assert_int_equal(waited(&s), on);
			s.duo->script = NULL;
			sim_end(&s);
		}
	}
}

/* ---- what weak order does, and what it does not do any more --------------------------------------- */

static bool write_sends_what_the_read_brought(struct sim *s, const struct duo_options *o)
{
	uint32_t mtu = o->mtu, len = PACKETS * mtu;
	struct late l = {.responses = true, .psn = o->psn[DUO_A], .count = PACKETS, .ns = 5000, .lost = 2};
	struct duo_wr w[] = {duo_read_wr(1, s->abuf, 0, len, s->bbuf, 0),
			     duo_write_wr(2, s->abuf, mtu, len, s->bbuf, 2 * len)};
	uint8_t *before = malloc(mtu);
	bool right;

	/*
	 * The first three packets of the WRITE send bytes of the READ's result, the fourth does
	 * not.
	 */
	memcpy(before, s->abuf->p + len, mtu);
	set_late(s, &l);
	post_all(s, w, COUNT(w));
	assert_memory_equal(s->abuf->p, s->bbuf->p, len);
	assert_memory_equal(s->bbuf->p + 2 * len + 3 * mtu, before, mtu);
	right = !memcmp(s->bbuf->p + 2 * len, s->bbuf->p + mtu, 3 * mtu);
	free(before);
	return right;
}

static bool send_sends_what_the_read_brought(struct sim *s, const struct duo_options *o)
{
	uint32_t len = PACKETS * o->mtu;
	struct late l = {.responses = true, .psn = o->psn[DUO_A], .count = PACKETS, .ns = 5000};
	struct duo_wr w[] = {duo_read_wr(1, s->abuf, 100, len, s->bbuf, 0), duo_send_wr(2, s->abuf, len + 99, 1)};

	s->abuf->p[len + 99] = (uint8_t)~s->bbuf->p[len - 1];
	assert_true(duo_recv(s->b, 7, s->bbuf, 3 * len, 1));
	set_late(s, &l);
	post_all(s, w, COUNT(w));
	duo_expect(s->duo, &s->b->received, 7, WC_SUCCESS);
	return s->bbuf->p[3 * len] == s->bbuf->p[len - 1];
}

static bool later_write_stays(struct sim *s, const struct duo_options *o)
{
	uint32_t mtu = o->mtu, len = PACKETS * mtu;
	struct late l = {.psn = o->psn[DUO_A], .count = PACKETS, .ns = 5000, .lost = 1};
	struct duo_wr w[] = {duo_write_wr(1, s->abuf, 0, len, s->bbuf, 0),
			     duo_write_wr(2, s->abuf, len, 2 * mtu, s->bbuf, mtu / 2)};

	set_late(s, &l);
	post_all(s, w, COUNT(w));
	assert_memory_equal(s->bbuf->p, s->abuf->p, mtu / 2);
	assert_memory_equal(s->bbuf->p + 3 * mtu, s->abuf->p + 3 * mtu, mtu);
	return !memcmp(s->bbuf->p + mtu / 2, s->abuf->p + len, 2 * mtu);
}

static bool read_sees_what_was_there(struct sim *s, const struct duo_options *o)
{
	uint32_t len = PACKETS * o->mtu;
	struct late l = {.psn = o->psn[DUO_A], .count = 1, .ns = 5000};
	struct duo_wr w[] = {duo_read_wr(1, s->abuf, 0, len, s->bbuf, 0),
			     duo_write_wr(2, s->abuf, 2 * len, 1, s->bbuf, len - 1)};
	uint8_t before = s->bbuf->p[len - 1];

	s->abuf->p[2 * len] = (uint8_t)~before;
	set_late(s, &l);
	post_all(s, w, COUNT(w));
	assert_int_equal(s->bbuf->p[len - 1], (uint8_t)~before);
	return s->abuf->p[len - 1] == before;
}

static bool read_does_not_see_the_atomic(struct sim *s, const struct duo_options *o)
{
	uint32_t len = PACKETS * o->mtu;
	struct late l = {.responses = true, .psn = o->psn[DUO_A], .count = 1, .ns = 5000, .lost = 1};
	struct duo_wr w[] = {duo_read_wr(1, s->abuf, 0, len, s->bbuf, 0),
			     duo_fetch_add_wr(2, s->abuf, 2 * len, s->bbuf, 0, 1)};
	uint64_t before, read, found, after;

	memcpy(&before, s->bbuf->p, 8);
	set_late(s, &l);
	post_all(s, w, COUNT(w));
	memcpy(&read, s->abuf->p, 8);
	memcpy(&found, s->abuf->p + 2 * len, 8);
	memcpy(&after, s->bbuf->p, 8);
	assert_true(found == before && after == before + 1);
	return read == before;
}

static bool later_read_stays(struct sim *s, const struct duo_options *o)
{
	uint32_t mtu = o->mtu, len = PACKETS * mtu;
	struct late l = {.responses = true, .psn = o->psn[DUO_A], .count = PACKETS, .ns = 5000};
	struct duo_wr w[] = {duo_read_wr(1, s->abuf, 0, len, s->bbuf, 0),
			     duo_read_wr(2, s->abuf, mtu, mtu, s->bbuf, len)};

	set_late(s, &l);
	post_all(s, w, COUNT(w));
	assert_memory_equal(s->abuf->p, s->bbuf->p, mtu);
	assert_memory_equal(s->abuf->p + 2 * mtu, s->bbuf->p + 2 * mtu, 2 * mtu);
	return !memcmp(s->abuf->p + mtu, s->bbuf->p + len, mtu);
}

TEST(write_out_of_what_a_read_fetches_sends_what_it_brought)
{
	run(write_sends_what_the_read_brought);
}

TEST(send_out_of_what_a_read_fetches_sends_what_it_brought)
{
	run(send_sends_what_the_read_brought);
}

TEST(of_writes_that_overlap_the_later_stays)
{
	run(later_write_stays);
}

TEST(read_sees_what_was_there_before_the_write_behind_it)
{
	run(read_sees_what_was_there);
}

TEST(read_that_is_answered_again_does_not_see_the_atomic_behind_it)
{
	run(read_does_not_see_the_atomic);
}

TEST(of_reads_into_the_same_bytes_the_later_stays)
{
	run(later_read_stays);
}

/*
 * ---- which requests wait, and for how long
 * ------------------------------------------------------------------
 */

enum { CHAIN = 20 };

/* WRITEs, READs and SENDs that share only bytes that they read; returns the trace. */
static uint64_t run_chain(bool on)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();
	struct sim s = start(on, &v, &o);
	struct duo_wr w[CHAIN];
	const struct duo_packet *last;
	uint64_t trace;

	for (uint32_t i = 0; i < CHAIN; i++) {
		uint32_t off = i * 3000;

		assert_true(duo_recv(s.b, i, s.bbuf, 0, 0));
		w[i] = i % 4 == 0   ? duo_write_wr(i, s.abuf, 0, 3000, s.bbuf, off)
		       : i % 4 == 1 ? duo_read_wr(i, s.abuf, off + 3000, 3000, s.bbuf, off)
		       : i % 4 == 2 ? duo_send_wr(i, s.abuf, 0, 0)
				    : duo_fetch_add_wr(i, s.abuf, off - off % 8, s.bbuf, 61440 + 8 * i, 1);
	}
	assert_true(duo_post_chain(s.a, w, CHAIN));
	duo_run_for(s.duo, 500);
	/* All left at once. */
	last = veroce_last(s.duo, DUO_A, OP_RC_FETCH_ADD);
	DUO_CHECK(s.duo, last && last->msn == CHAIN);
	duo_idle(s.duo);
	for (uint32_t i = 0; i < CHAIN; i++)
		duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS);
	for (uint32_t i = 2; i < CHAIN; i += 4)
		duo_expect(s.duo, &s.b->received, i / 4, WC_SUCCESS);
	assert_int_equal(waited(&s), 0);
	trace = s.duo->trace;
	sim_end(&s);
	return trace;
}

TEST(who_meets_nobody_does_not_wait)
{
	assert_true(run_chain(true) == run_chain(false));
}

/* When it was first sent; UINT64_MAX: not yet. */
static uint64_t sent_ns(const struct sim *s, uint32_t msn)
{
	for (size_t i = 0; i < s->duo->wire_count; i++) {
		const struct duo_packet *p = &s->duo->wire[i];

		if (p->from == DUO_A && veroce_is_data(p) && p->info->flags & F_REQUEST && p->msn == msn)
			return p->sent_ns;
	}
	return UINT64_MAX;
}

/* 3 meets 1 and waits for it, but not for the unanswered READ between them; 5 meets that READ. */
TEST(it_waits_for_what_it_meets_and_for_no_more)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();
	struct sim s = start(true, &v, &o);
	struct duo_rule *answer = duo_drop(s.duo, DUO_B, OP_RC_READ_RESPONSE_ONLY, DUO_ANY);
	struct duo_wr w[] = {
		duo_write_wr(1, s.abuf, 0, 100, s.bbuf, 0),       duo_read_wr(2, s.abuf, 1000, 100, s.bbuf, 1000),
		duo_write_wr(3, s.abuf, 2000, 100, s.bbuf, 99),   duo_write_wr(4, s.abuf, 3000, 100, s.bbuf, 3000),
		duo_write_wr(5, s.abuf, 3000, 100, s.bbuf, 1099), duo_write_wr(6, s.abuf, 3000, 100, s.bbuf, 5000)};

	assert_true(duo_post_chain(s.a, w, COUNT(w)));
	duo_run_for(s.duo, 20000);
	assert_true(sent_ns(&s, 1) == sent_ns(&s, 2));
	assert_true(sent_ns(&s, 3) > sent_ns(&s, 1) && sent_ns(&s, 3) < UINT64_MAX);
	assert_true(sent_ns(&s, 4) == sent_ns(&s, 3));
	/* A request behind one that waits also waits. */
	assert_true(sent_ns(&s, 5) == UINT64_MAX && sent_ns(&s, 6) == UINT64_MAX);
	answer->off = true;
	duo_idle(s.duo);
	for (uint32_t i = 1; i <= COUNT(w); i++)
		duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS);
	assert_int_equal(waited(&s), 2);
	sim_end(&s);
}

/* A request meets two of those under way; it waits for the newest, and by then the other is done. */
TEST(of_several_it_meets_it_waits_for_all)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();
	struct sim s = start(true, &v, &o);
	struct duo_wr w[] = {duo_write_wr(1, s.abuf, 0, 100, s.bbuf, 0),
			     duo_write_wr(2, s.abuf, 1000, 100, s.bbuf, 100),
			     duo_write_wr(3, s.abuf, 2000, 2, s.bbuf, 99)};
	struct late l = {.psn = o.psn[DUO_A], .count = 2, .ns = 9000};

	set_late(&s, &l);
	post_all(&s, w, COUNT(w));
	assert_int_equal(waited(&s), 1);
	assert_memory_equal(s.bbuf->p, s.abuf->p, 99);
	assert_memory_equal(s.bbuf->p + 99, s.abuf->p + 2000, 2);
	assert_memory_equal(s.bbuf->p + 101, s.abuf->p + 1001, 99);
	s.duo->script = NULL;
	sim_end(&s);
}

/* With any position of the queue's indices, and with unsignaled WQEs. */
TEST(a_queue_that_is_always_full_goes_on)
{
	enum { ROUNDS = 500 };
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();
	struct sim s = start(true, &v, &o);
	uint64_t posted = 0, done = 0;

	s.duo->faults[DUO_A] = (struct duo_faults){.drop_ppm = 50000, .delay_ppm = 300000, .delay_ns_max = 9000};
	s.duo->faults[DUO_B] = s.duo->faults[DUO_A];
	while (done < ROUNDS) {
		struct duo_wr w = duo_write_wr(posted, s.abuf, posted * 8 % 4096, 8, s.bbuf, posted % 5 * 7);

		if (posted % 8 != 7)
			w.flags = 0;
		if (posted < ROUNDS && duo_post(s.a, &w)) {
			posted++;
			continue;
		}
		duo_run_for(s.duo, 1000);
		while (s.a->sent.taken < s.a->sent.n)
			done = s.a->sent.e[s.a->sent.taken++].wr_id + 1;
		if (posted == ROUNDS && done + 8 > ROUNDS)
			done = ROUNDS;
	}
	duo_idle(s.duo);
	s.a->sent.taken = s.a->sent.n;
	/* Each place has what was last written to it. */
	for (uint64_t i = 0, at[5 * 7 + 8] = {0}; i < ROUNDS; i++) {
		for (uint64_t k = 0; k < 8; k++)
			at[i % 5 * 7 + k] = i * 8 % 4096 + k;
		for (uint64_t k = 0; i + 1 == ROUNDS && k < 4 * 7 + 8; k++)
			DUO_CHECK(s.duo, s.bbuf->p[k] == s.abuf->p[at[k]]);
	}
	assert_true(waited(&s) > 0);
	sim_end(&s);
}
