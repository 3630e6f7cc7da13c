/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/test.h"
#include "transport/paths/tx_space.h"

enum { BYTES = 100 };

/* Just before the wrap, so that every test goes over it. */
static const uint32_t first = 0xfffffe;

static bool dry;

static void *get(void *ctx, size_t bytes)
{
	void *p = dry ? NULL : aligned_alloc(64, (bytes + 63) / 64 * 64);

	return p ? memset(p, 0, bytes) : NULL;
}

static void put(void *ctx, void *p, size_t bytes)
{
	free(p);
}

struct fixture {
	struct pool pool;
	struct tx_space s;
	struct tx_news news;
	uint64_t now_ns;
};

static struct fixture *start(struct fixture *f)
{
	static const struct alloc alloc = {get, put, NULL};

	dry = false;
	*f = (struct fixture){.now_ns = 1000};
	pool_init(&f->pool, &alloc);
	tx_space_init(&f->s, first);
	return f;
}

static void end(struct fixture *f)
{
	tx_space_drop(&f->s, &f->pool);
	assert_null(f->s.ring);
	assert_int_equal(f->s.una, f->s.nxt);
	assert_int_equal(pool_lent_bytes(&f->pool), 0);
	pool_fini(&f->pool);
}

/* A test of `f`. */
#define FIXTURE_TEST(name) TEST_OF(name, struct fixture *, f, start(&(struct fixture){0}), end(f))

static uint32_t nth(uint32_t i)
{
	return psn_add(first, i);
}

/* One a nanosecond; the item is the packet's number. */
static void send(struct fixture *f, uint32_t count, uint8_t path)
{
	while (count--) {
		assert_true(tx_space_reserve(&f->s, &f->pool));
		tx_space_sent(&f->s,
			      &(struct tx_run){
				      .item = (f->s.nxt - first) & PSN_MASK, .count = 1, .bytes = BYTES, .path = path},
			      f->now_ns++);
	}
}

static struct tx_news *ack_to(struct fixture *f, uint32_t i)
{
	f->news = (struct tx_news){0};
	tx_space_ack_to(&f->s, &f->pool, nth(i), NULL, f->now_ns, &f->news);
	return &f->news;
}

static struct tx_news *ack_one(struct fixture *f, uint32_t i)
{
	f->news = (struct tx_news){0};
	tx_space_ack_one(&f->s, nth(i), NULL, f->now_ns, &f->news);
	return &f->news;
}

/* The list from `head` on holds these packets and no others, and can be walked backwards. */
static void expect_list(const struct tx_space *s, uint32_t head, uint32_t tail, int count, ...)
{
	uint32_t prev = TX_NIL;
	va_list args;

	va_start(args, count);
	for (int i = 0; i < count; i++) {
		assert_int_equal(head, nth(va_arg(args, uint32_t)));
		assert_int_equal(tx_record(s, head)->prev, prev);
		prev = head;
		head = tx_record(s, head)->next;
	}
	va_end(args);
	assert_int_equal(head, TX_NIL);
	assert_int_equal(tail, prev);
}

FIXTURE_TEST(a_fresh_space_has_nothing_outstanding_and_takes_no_memory)
{
	assert_int_equal(tx_outstanding(&f->s), 0);
	assert_false(tx_is_outstanding(&f->s, first));
	assert_null(f->s.ring);
	assert_int_equal(pool_lent_bytes(&f->pool), 0);
}

FIXTURE_TEST(a_psn_is_outstanding_from_sending_to_acknowledgement)
{
	send(f, 4, 0);
	assert_int_equal(tx_outstanding(&f->s), 4);
	assert_int_equal(f->s.nxt, 2); /* over the wrap */
	for (uint32_t i = 0; i < 4; i++)
		assert_true(tx_is_outstanding(&f->s, nth(i)));
	assert_false(tx_is_outstanding(&f->s, nth(4)));
	assert_false(tx_is_outstanding(&f->s, first - 1));
	ack_to(f, 1);
	assert_int_equal(f->s.una, nth(2));
	assert_false(tx_is_outstanding(&f->s, nth(1)));
	assert_true(tx_is_outstanding(&f->s, nth(2)));
}

FIXTURE_TEST(the_ring_grows_and_keeps_every_record)
{
	enum { N = TX_RING_MIN };

	send(f, N, 3);
	for (uint32_t i = 0; i < N; i += 2)
		tx_space_lose(&f->s, nth(i));
	send(f, N, 3);
	assert_true(f->s.size > N);
	for (uint32_t i = 0; i < 2 * N; i++) {
		const struct tx_record *r = tx_record(&f->s, nth(i));

		assert_int_equal(r->item, i);
		assert_int_equal(r->tx_ns, 1000 + i);
		assert_int_equal(r->path, 3);
		assert_int_equal(r->order, i);
		assert_int_equal(r->state, i < N && i % 2 == 0 ? TX_LOST : TX_FLYING);
	}
	for (uint32_t i = 0, psn = f->s.again_head; i < N; i += 2, psn = tx_record(&f->s, psn)->next)
		assert_int_equal(psn, nth(i));
	assert_int_equal(f->s.flying, 2 * N - N / 2);
	assert_int_equal(f->s.lost, N / 2);
}

FIXTURE_TEST(no_more_than_the_largest_window_is_ever_outstanding)
{
	send(f, TX_WINDOW_MAX, 0);
	assert_false(tx_space_reserve(&f->s, &f->pool));
	assert_int_equal(tx_outstanding(&f->s), TX_WINDOW_MAX);
	for (uint32_t i = 0; i < 2 * TX_CHUNK; i++) {
		ack_to(f, i);
		send(f, 1, 0);
		assert_false(tx_space_reserve(&f->s, &f->pool));
	}
	ack_to(f, TX_WINDOW_MAX / 2);
	send(f, TX_WINDOW_MAX - tx_outstanding(&f->s), 0);
	assert_false(tx_space_reserve(&f->s, &f->pool));
	for (uint32_t psn = f->s.una; psn != f->s.nxt; psn = psn_add(psn, 1))
		assert_int_equal(tx_record(&f->s, psn)->item, (psn - first) & PSN_MASK);
}

FIXTURE_TEST(a_dry_pool_refuses_and_changes_nothing)
{
	dry = true;
	assert_false(tx_space_reserve(&f->s, &f->pool));
	assert_null(f->s.ring);
	dry = false;
	send(f, TX_CHUNK, 0);
	dry = true;
	/* The pool may still have pieces of its slabs. */
	while (tx_space_reserve(&f->s, &f->pool))
		tx_space_sent(&f->s, &(struct tx_run){.item = tx_outstanding(&f->s), .count = 1, .bytes = BYTES}, 0);
	for (uint32_t i = 0; i < tx_outstanding(&f->s); i++)
		assert_int_equal(tx_record(&f->s, nth(i))->item, i);
	dry = false;
	assert_true(tx_space_reserve(&f->s, &f->pool));
}

FIXTURE_TEST(packets_of_a_path_fly_in_the_order_sent)
{
	const struct tx_path *p;

	send(f, 2, 1);
	send(f, 1, 2);
	send(f, 2, 1);
	p = f->s.ring->paths;
	expect_list(&f->s, p[1].head, p[1].tail, 4, 0, 1, 3, 4);
	expect_list(&f->s, p[2].head, p[2].tail, 1, 2);
	expect_list(&f->s, p[0].head, p[0].tail, 0);
	assert_int_equal(p[1].flying, 4);
	assert_int_equal(p[1].sent, 4);
	assert_int_equal(f->s.flying, 5);
	ack_one(f, 3);
	expect_list(&f->s, p[1].head, p[1].tail, 3, 0, 1, 4);
	ack_one(f, 0);
	expect_list(&f->s, p[1].head, p[1].tail, 2, 1, 4);
	ack_one(f, 4);
	expect_list(&f->s, p[1].head, p[1].tail, 1, 1);
	assert_int_equal(p[1].flying, 1);
	assert_int_equal(f->s.flying, 2);
}

FIXTURE_TEST(lost_packets_leave_their_path_and_queue_up_in_the_order_of_loss)
{
	const struct tx_path *p;

	send(f, 5, 1);
	p = &f->s.ring->paths[1];
	tx_space_lose(&f->s, nth(3));
	tx_space_lose(&f->s, nth(0));
	tx_space_lose(&f->s, nth(3)); /* harmless */
	expect_list(&f->s, f->s.again_head, f->s.again_tail, 2, 3, 0);
	expect_list(&f->s, p->head, p->tail, 3, 1, 2, 4);
	assert_int_equal(f->s.lost, 2);
	assert_int_equal(f->s.flying, 3);
}

FIXTURE_TEST(one_in_a_hurry_goes_first)
{
	send(f, 5, 1);
	for (uint32_t i = 0; i < 4; i++)
		tx_space_lose(&f->s, nth(i));
	tx_space_hurry(&f->s, nth(2));
	expect_list(&f->s, f->s.again_head, f->s.again_tail, 4, 2, 0, 1, 3);
	tx_space_hurry(&f->s, nth(3));
	expect_list(&f->s, f->s.again_head, f->s.again_tail, 4, 3, 2, 0, 1);
	tx_space_hurry(&f->s, nth(3));
	expect_list(&f->s, f->s.again_head, f->s.again_tail, 4, 3, 2, 0, 1);
}

FIXTURE_TEST(a_copy_flies_behind_what_was_sent_before_it)
{
	const struct tx_path *p;

	send(f, 3, 1);
	p = f->s.ring->paths;
	tx_space_lose(&f->s, nth(0));
	tx_record(&f->s, nth(0))->probe = true;
	tx_space_resent(&f->s, nth(0), 1, 5000);
	expect_list(&f->s, p[1].head, p[1].tail, 3, 1, 2, 0);
	expect_list(&f->s, f->s.again_head, f->s.again_tail, 0);
	assert_int_equal(tx_record(&f->s, nth(0))->order, 3);
	assert_int_equal(tx_record(&f->s, nth(0))->copies, 2);
	assert_int_equal(tx_record(&f->s, nth(0))->tx_ns, 5000);
	assert_false(tx_record(&f->s, nth(0))->probe);
	tx_space_lose(&f->s, nth(1));
	tx_space_resent(&f->s, nth(1), 2, 5001);
	expect_list(&f->s, p[1].head, p[1].tail, 2, 2, 0);
	expect_list(&f->s, p[2].head, p[2].tail, 1, 1);
	assert_int_equal(p[1].sent, 4);
	assert_int_equal(f->s.lost, 0);
	assert_int_equal(f->s.flying, 3);
	for (int i = 0; i < 300; i++) {
		tx_space_lose(&f->s, nth(2));
		tx_space_resent(&f->s, nth(2), 1, 6000);
	}
	assert_int_equal(tx_record(&f->s, nth(2))->copies, UINT8_MAX);
}

FIXTURE_TEST(news_tell_by_path_what_flew)
{
	struct tx_news *n;

	send(f, 3, 1); /* at 1000 .. 1002 */
	send(f, 2, 7); /* at 1003, 1004 */
	n = ack_to(f, 3);
	assert_int_equal(n->packets, 4);
	assert_int_equal(n->spurious, 0);
	assert_int_equal(n->paths, 1 << 1 | 1 << 7);
	assert_int_equal(n->path[1].bytes, 3 * BYTES);
	assert_int_equal(n->path[1].packets, 3);
	assert_int_equal(n->path[1].newest_tx_ns, 1002);
	assert_int_equal(n->path[7].bytes, BYTES);
	assert_int_equal(n->path[7].newest_tx_ns, 1003);
	assert_int_equal(f->s.ring->paths[1].newest_tx_ns, 1002);
}

FIXTURE_TEST(what_was_acknowledged_before_is_no_news)
{
	send(f, 4, 0);
	assert_int_equal(ack_one(f, 2)->packets, 1);
	assert_int_equal(ack_one(f, 2)->packets, 0);
	assert_int_equal(ack_to(f, 2)->packets, 2);
	assert_int_equal(f->s.una, nth(3));
}

/* Karn: which of the copies is acknowledged is not known. */
FIXTURE_TEST(copies_are_not_timed)
{
	struct tx_news *n;

	send(f, 2, 0);
	tx_space_lose(&f->s, nth(1));
	tx_space_resent(&f->s, nth(1), 0, 9000);
	n = ack_one(f, 1);
	assert_int_equal(n->path[0].bytes, BYTES);
	assert_int_equal(n->path[0].newest_tx_ns, 0);
	assert_int_equal(f->s.ring->paths[0].newest_tx_ns, 0);
}

FIXTURE_TEST(lost_packets_flew_nowhere_when_they_are_acknowledged)
{
	struct tx_news *n;

	send(f, 2, 0);
	tx_space_lose(&f->s, nth(0));
	n = ack_one(f, 0);
	assert_int_equal(n->packets, 1);
	assert_int_equal(n->paths, 0);
	expect_list(&f->s, f->s.again_head, f->s.again_tail, 0);
	assert_int_equal(f->s.lost, 0);
}

TEST(a_copy_answered_sooner_than_a_round_trip_was_sent_in_vain)
{
	static const struct {
		uint64_t after_ns;
		bool known;
		uint32_t spurious;
	} rows[] = {{499, true, 1}, {501, true, 0}, {499, false, 0}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t min_rtt_ns[PATHS_MAX] = {[4] = 1000};
		struct fixture f;

		start(&f);
		send(&f, 2, 4);
		tx_space_lose(&f.s, nth(0));
		tx_space_resent(&f.s, nth(0), 4, 7000);
		tx_space_ack_to(&f.s, &f.pool, nth(1), rows[i].known ? min_rtt_ns : NULL, 7000 + rows[i].after_ns,
				&f.news);
		assert_int_equal(f.news.spurious, rows[i].spurious);
		assert_int_equal(f.news.packets, 2);
		end(&f);
	}
}

/* veRoCE 7.2: an RNR NAK takes an acknowledgement back. */
FIXTURE_TEST(an_acknowledged_packet_can_be_lost_again)
{
	send(f, 3, 0);
	ack_one(f, 1);
	assert_int_equal(f->s.flying, 2);
	tx_space_lose(&f->s, nth(1));
	expect_list(&f->s, f->s.again_head, f->s.again_tail, 1, 1);
	assert_int_equal(f->s.flying, 2);
	tx_space_resent(&f->s, nth(1), 0, 2000);
	assert_int_equal(f->s.flying, 3);
	assert_int_equal(ack_to(f, 2)->packets, 3);
}

/* A ring and a chunk, which are pieces of 1024 bytes. */
enum { KEPT_BYTES = 2048 };

TEST(all_but_the_smallest_is_given_back_with_the_last_acknowledgement)
{
	static const struct {
		uint32_t count;
		size_t bytes;
	} rows[] = {{1, KEPT_BYTES}, {TX_CHUNK, KEPT_BYTES}, {100, KEPT_BYTES}, {2 * TX_RING_MIN, 0}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fixture f;

		start(&f);
		for (uint32_t round = 0; round < 3; round++) {
			uint32_t last = round * rows[i].count + rows[i].count - 1;

			send(&f, rows[i].count, 5);
			assert_true(pool_lent_bytes(&f.pool) >= rows[i].count * sizeof(struct tx_record));
			ack_one(&f, last); /* alone it frees nothing */
			assert_true(pool_lent_bytes(&f.pool) >= rows[i].count * sizeof(struct tx_record));
			assert_int_equal(ack_to(&f, last)->packets, rows[i].count - 1);
			assert_int_equal(pool_lent_bytes(&f.pool), rows[i].bytes);
			assert_int_equal(f.s.flying, 0);
			assert_int_equal(f.s.una, nth(last + 1));
		}
		end(&f);
	}
}

FIXTURE_TEST(what_is_kept_serves_the_next_packets)
{
	struct tx_ring *ring;

	send(f, 1, 0);
	ring = f->s.ring;
	dry = true;
	for (uint32_t i = 1; i < 10 * TX_CHUNK; i++) {
		ack_to(f, i - 1);
		assert_int_equal(pool_lent_bytes(&f->pool), KEPT_BYTES);
		send(f, 1, 0);
		assert_ptr_equal(f->s.ring, ring);
		assert_int_equal(f->s.ring->paths[0].sent, 1); /* it knows nothing of before */
	}
	tx_space_drop(&f->s, &f->pool);
	assert_int_equal(pool_lent_bytes(&f->pool), 0);
}

/* However many PSNs go by, and whatever was outstanding once. */
FIXTURE_TEST(memory_follows_what_is_outstanding)
{
	enum { BURST = 1000, WINDOW = 40, ROUNDS = 3 * TX_RING_MIN };
	/* Chunks of the window, cut anywhere, and the room ahead of it. */
	const size_t bytes_max = (1 + 2 + WINDOW / TX_CHUNK + TX_AHEAD / TX_CHUNK) * 1024;

	send(f, BURST, 0);
	ack_to(f, BURST - WINDOW - 1);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		assert_true(pool_lent_bytes(&f->pool) <= bytes_max);
		send(f, 1, 0);
		ack_to(f, BURST - WINDOW + i);
	}
	for (uint32_t i = 0; i < WINDOW; i++)
		assert_int_equal(tx_record(&f->s, psn_add(f->s.una, i))->item, BURST + ROUNDS - WINDOW + i);
}

/* For a long train, which is entered at once. */
FIXTURE_TEST(room_for_a_train_is_made_where_much_is_outstanding)
{
	assert_int_equal(tx_space_room(&f->s), 0);
	send(f, 1, 0);
	assert_true(tx_space_room(&f->s) < TX_CHUNK);
	send(f, 2 * TX_AHEAD, 0);
	while (tx_space_room(&f->s))
		send(f, 1, 0);
	assert_true(tx_space_reserve(&f->s, &f->pool));
	assert_int_equal(tx_space_room(&f->s), TX_AHEAD);
}

FIXTURE_TEST(a_dropped_space_goes_on_behind_what_was_sent)
{
	send(f, 10, 0);
	tx_space_lose(&f->s, nth(4));
	tx_space_drop(&f->s, &f->pool);
	assert_int_equal(f->s.una, nth(10));
	assert_int_equal(f->s.lost, 0);
	assert_int_equal(f->s.again_head, TX_NIL);
	assert_int_equal(pool_lent_bytes(&f->pool), 0);
	send(f, 1, 0);
	assert_true(tx_is_outstanding(&f->s, nth(10)));
}
