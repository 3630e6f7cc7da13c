/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/shm_ends.h"
#include "io/clock.h"
#include "io/shm/shm_ring.h"
#include "io/shm/shm_spill.h"
#include "support/test.h"

ENDS_TEST(packets_within_the_host_go_through_memory)
{
	struct pkt pkts[BURST];
	int fds[2];

	assert_int_equal(shm_next_wanted(a->io), -1);
	assert_int_equal(send(a, B, 0, 3), 3);
	assert_int_equal(a->lower->sent, 3); /* there is no ring yet */
	assert_int_equal(shm_next_wanted(a->io), B);
	assert_int_equal(shm_next_wanted(a->io), -1);
	assert_int_equal(shm_make(a->io, B, 1, fds), 0);
	assert_int_equal(shm_make(a->io, B, 1, fds), -EEXIST);
	send(a, B, 0, 1);
	assert_int_equal(a->lower->sent, 4); /* not yet accepted */
	assert_false(shm_reaches(a->io, B));

	int given[2] = {dup(fds[0]), dup(fds[1])};

	assert_int_equal(shm_take_ring(b->io, A, getpid(), given), 0);
	assert_true(shm_reaches(a->io, B));
	assert_int_equal(send(a, B, 100, 10), 10);
	assert_int_equal(a->lower->sent, 4);
	expect(b, 100, 10);
	/* As a socket gives them: the place in the train, and how many are left of it. */
	send(a, B, 0, 3);
	assert_int_equal(io_recv(b->io, pkts, 2, 1), 2);
	assert_int_equal(pkts[1].ip_id, 1);
	assert_int_equal(pkts[1].train, 2);
	assert_int_equal(io_recv(b->io, pkts, 2, 1), 1);
	assert_int_equal(pkts[0].ip_id, 2);
	assert_int_equal(pkts[0].train, 1);
	assert_int_equal(a->counters.shm_tx_packets, 13);
	assert_int_equal(b->counters.shm_rx_packets, 13);
	assert_int_equal(b->counters.shm_rx_bytes, 13 * LEN);
}

ENDS_TEST(others_go_below_in_order)
{
	static uint8_t bytes[4][LEN];
	struct pkt pkts[4];

	connect_ends(a, A, b, B);
	for (size_t i = 0; i < 4; i++)
		fill(&pkts[i], &bytes[i], 1, B, (uint32_t)i);
	pkts[0].flow = &outward;
	memset(bytes[2] + 5, 0, 2); /* QPN 1 */
	bytes[2][7] = 1;
	bytes[3][5] = C << 1; /* no ring to it */
	assert_int_equal(io_send(a->io, pkts, 4, 1), 4);
	assert_int_equal(a->lower->sent, 3);
	expect(b, 1, 1);
	assert_int_equal(shm_next_wanted(a->io), C);
	assert_int_equal(shm_next_wanted(a->io), -1);
	/* What below takes no more of is not sent, and nothing behind it. */
	a->lower->send_max = 0;
	assert_int_equal(io_send(a->io, pkts, 4, 1), 0);
	expect_nothing(b);
}

ENDS_TEST(every_service_goes_through_memory)
{
	static const uint8_t opcodes[] = {0x0a, 0x20, 0x64, 0x81, 0xf0};
	static uint8_t bytes[1][LEN];
	struct pkt pkt;

	connect_ends(a, A, b, B);
	for (size_t i = 0; i < sizeof(opcodes); i++) {
		fill(&pkt, bytes, 1, B, 0);
		bytes[0][0] = opcodes[i];
		assert_int_equal(io_send(a->io, &pkt, 1, 1), 1);
	}
	assert_int_equal(a->lower->sent, 0);
	assert_int_equal(a->counters.shm_tx_packets, 5);
}

ENDS_TEST(what_is_in_the_sockets_is_older)
{
	struct pkt pkts[BURST];

	connect_ends(a, A, b, B);
	b->lower->pending = 100;
	send(a, B, 1000, 1);
	for (uint32_t i = 0; i < 100;) {
		size_t n = io_recv(b->io, pkts, 7, 1);

		for (size_t k = 0; k < n; k++)
			assert_int_equal(get_be32(pkts[k].data), i++);
	}
	expect(b, 1000, 1);
}

ENDS_TEST(the_sockets_are_not_forgotten)
{
	struct pkt pkts[BURST];
	size_t from_below = 0;

	connect_ends(a, A, b, B);
	pass(a, B, b, 0, 1);
	for (uint64_t now_ns = 0; now_ns < 4000000; now_ns += 1000) {
		b->lower->pending = 1;
		send_at(a, B, 0, 1, now_ns);
		from_below += io_recv(b->io, pkts, BURST, now_ns) > 1;
	}
	assert_in_range(from_below, 20, 2000);
}

/* How often the sockets are looked at in a millisecond in which packets come through memory. */
static unsigned looks_below(struct end *a, struct end *b, uint64_t from_ns)
{
	unsigned looks = b->lower->looks;

	for (uint64_t now_ns = from_ns; now_ns < from_ns + 1000000; now_ns += 1000) {
		struct pkt pkts[BURST];

		send_at(a, B, 0, 1, now_ns);
		io_recv(b->io, pkts, BURST, now_ns);
	}
	return b->lower->looks - looks;
}

static void send_outward(struct end *e, uint64_t now_ns)
{
	static uint8_t bytes[1][LEN];
	struct pkt pkt;

	fill(&pkt, bytes, 1, A, 0);
	pkt.flow = &outward;
	assert_int_equal(io_send(e->io, &pkt, 1, now_ns), 1);
}

/* A look costs a system call. */
ENDS_TEST(sockets_that_nobody_uses_are_looked_at_less_often)
{
	struct pkt pkts[BURST];

	connect_ends(a, A, b, B);
	pass(a, B, b, 0, 1);
	looks_below(a, b, 20000000);
	assert_in_range(looks_below(a, b, 21000000), 2, 5);
	/* Something came: more may. */
	b->lower->pending = 1;
	looks_below(a, b, 22000000);
	assert_int_equal(b->lower->pending, 0);
	assert_in_range(looks_below(a, b, 23000000), 15, 51);
	looks_below(a, b, 35000000);
	assert_in_range(looks_below(a, b, 36000000), 2, 5);
	/* Something was sent: there may be an answer. */
	send_outward(b, 36500000);
	assert_in_range(looks_below(a, b, 37000000), 15, 51);
	/* Where nothing comes through memory each look is at them. */
	for (uint64_t now_ns = 40000000; now_ns < 40010000; now_ns += 1000) {
		unsigned looks = b->lower->looks;

		io_recv(b->io, pkts, BURST, now_ns);
		assert_int_equal(b->lower->looks, looks + 1);
	}
}

ENDS_TEST(memory_has_all_while_sockets_are_quiet)
{
	connect_ends(a, A, b, B);
	assert_false(shm_has_all(b->io, 20000000)); /* nothing came */
	pass(a, B, b, 0, 1);
	looks_below(a, b, 20000000);
	assert_true(shm_has_all(b->io, 21000000));
	b->lower->pending = 1;
	looks_below(a, b, 22000000);
	assert_false(shm_has_all(b->io, 23000000));
	looks_below(a, b, 35000000);
	assert_true(shm_has_all(b->io, 36000000));
	assert_false(shm_has_all(b->io, 50000000));
}

static bool is_full(struct end *e, unsigned slot)
{
	return look_at(e, slot, 1)->full;
}

/* Sends until the ring to a slot is full; the next number. */
static uint32_t fill_ring(struct end *e, unsigned slot)
{
	uint32_t n = 0;

	while (!is_full(e, slot))
		assert_int_equal(send(e, slot, n++, 1), 1);
	return n;
}

ENDS_TEST(a_full_ring_loses_nothing)
{
	struct pkt pkts[BURST];
	uint32_t n, next = 0;

	connect_ends(a, A, b, B);
	n = fill_ring(a, B);
	assert_true(n >= SHM_ROOM_BYTES / 192);
	assert_int_equal(a->counters.shm_full, 1);
	/* What was under way when it was said is kept, too, and comes behind. */
	for (int i = 0; i < 12; i++, n += BURST)
		assert_int_equal(send(a, B, n, BURST), BURST);
	assert_int_equal(a->counters.shm_full, 1);
	assert_true(is_full(a, B));
	assert_in_range(shm_kept(a->io), 12 * BURST, 12 * BURST + 1);
	while (next < n) {
		size_t k = io_recv(b->io, pkts, BURST, 1);

		for (size_t i = 0; i < k; i++)
			assert_int_equal(get_be32(pkts[i].data + 12), next++);
		is_full(a, B);
	}
	assert_false(is_full(a, B));
	assert_int_equal(shm_kept(a->io), 0);
	assert_int_equal(a->counters.shm_dropped, 0);
	assert_int_equal(send(a, B, 7, 1), 1);
	expect(b, 7, 1);
}

TEST(a_full_ring_holds_up_nobody_else)
{
	struct end *a = end_new(A), *b = end_new(B), *c = end_new(C);

	connect_ends(a, A, b, B);
	connect_ends(a, A, c, C);
	fill_ring(a, B);
	assert_int_equal(send(a, B, 1, 1), 1);
	assert_int_equal(send(a, C, 70, 1), 1);
	expect(c, 70, 1);
	assert_false(is_full(a, C));
	assert_true(is_full(a, B));
	/* Its process is gone: nobody waits for it. */
	shm_lose(a->io, B, 1);
	assert_false(is_full(a, B));
	assert_int_equal(io_deadline_ns(a->io), UINT64_MAX);
	end_free(a);
	end_free(b);
	end_free(c);
}

ENDS_TEST(a_ring_that_stays_full_is_looked_at_ever_less)
{
	uint64_t now_ns = 1, last_ns = 1, end_ns = 1000000000;
	unsigned looks = 0;

	connect_ends(a, A, b, B);
	fill_ring(a, B);
	assert_int_equal(io_deadline_ns(a->io), 1 + SHM_RETRY_NS_MIN);
	for (; now_ns < end_ns; looks++) {
		last_ns = now_ns;
		now_ns = io_deadline_ns(a->io);
		assert_true(now_ns > last_ns);
		shm_turn(a->io, now_ns);
	}
	assert_in_range(looks, end_ns / SHM_RETRY_NS_MAX / 2, end_ns / SHM_RETRY_NS_MAX + 20);
}

ENDS_TEST(datagrams_get_half_of_what_is_kept)
{
	static uint8_t bytes[1][LEN];
	struct pkt pkt;
	uint32_t n;

	connect_ends(a, A, b, B);
	n = fill_ring(a, B);
	for (uint32_t i = 0; i < SHM_SPILL_PACKETS; i++) {
		fill(&pkt, bytes, 1, B, n + i);
		bytes[0][0] = 0x64;
		assert_int_equal(io_send(a->io, &pkt, 1, 1), 1);
	}
	assert_in_range(a->counters.shm_dropped, SHM_SPILL_PACKETS / 2 - 2, SHM_SPILL_PACKETS / 2 + 2);
	for (uint32_t i = 0; i < SHM_SPILL_PACKETS / 2 / BURST; i++)
		send(a, B, n, BURST);
	assert_in_range(a->counters.shm_dropped, SHM_SPILL_PACKETS / 2 - 2, SHM_SPILL_PACKETS / 2 + 2);
}

static bool is_readable(struct end *e)
{
	int fds[IO_FDS_MAX];
	size_t n = io_fds(e->io, fds, IO_FDS_MAX);
	struct pollfd p = {.fd = fds[n - 1], .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

ENDS_TEST(a_sleeper_is_woken_once)
{
	connect_ends(a, A, b, B);
	send(a, B, 0, 1);
	assert_int_equal(io_deadline_ns(b->io), 0);
	expect(b, 0, 1);
	assert_int_equal(io_deadline_ns(b->io), UINT64_MAX);
	send(a, B, 1, 1);
	assert_false(is_readable(b)); /* it does not sleep */
	io_flush(b->io);
	assert_int_equal(io_deadline_ns(b->io), 0); /* that one came before */
	expect(b, 1, 1);
	io_flush(b->io);
	assert_int_equal(io_deadline_ns(b->io), UINT64_MAX);
	assert_false(is_readable(b));
	send(a, B, 2, 1);
	assert_true(is_readable(b));
	expect(b, 2, 1);
	io_flush(b->io);
	assert_false(is_readable(b));
}

enum { AHEAD = 2 * BURST }; /* packets: more than a sleeper that need not be woken has left */

/* A has much from B, which sleeps. */
static void sleep_ahead(struct end *a, struct end *b)
{
	connect_ends(a, A, b, B);
	connect_ends(b, B, a, A);
	pass(b, A, a, 0, 1);
	pass(a, B, b, 0, 1);
	for (uint32_t n = 0; n < AHEAD; n += BURST)
		send(b, A, 1 + n, BURST);
	io_flush(b->io);
	assert_false(is_readable(b));
}

ENDS_TEST(a_sleeper_that_is_ahead_is_woken_before_its_packets_are_taken)
{
	bool woken = false;
	uint32_t n = 0;

	sleep_ahead(a, b);
	send(a, B, 1, 1);
	assert_false(is_readable(b));
	for (; n < AHEAD && !woken; n++) {
		struct pkt p;

		assert_int_equal(io_recv(a->io, &p, 1, 1), 1);
		woken = is_readable(b);
	}
	assert_in_range(n, 2, AHEAD - 1);
	expect(b, 1, 1);
}

ENDS_TEST(a_sleeper_that_is_ahead_is_woken_by_who_sleeps_too)
{
	sleep_ahead(a, b);
	send(a, B, 1, 1);
	assert_false(is_readable(b));
	io_flush(a->io);
	assert_true(is_readable(b));
	expect(b, 1, 1);
}

ENDS_TEST(a_sleeper_that_woke_by_itself_is_not_woken)
{
	sleep_ahead(a, b);
	pass(a, B, b, 1, 1);
	expect(a, 1, AHEAD);
	io_flush(a->io);
	assert_false(is_readable(b));
}

TEST(what_the_dead_sent_is_received)
{
	struct end *a = end_new(A), *b = end_new(B);

	connect_ends(a, A, b, B);
	send(a, B, 0, 5);
	shm_end_ring(b->io, A);
	end_free(a);
	expect(b, 0, 5);
	expect_nothing(b);
	end_free(b);
}

ENDS_TEST(a_lost_ring_is_wanted_again_later)
{
	int fds[2];

	connect_ends(a, A, b, B);
	assert_int_equal(a->counters.shm_peers, 1);
	shm_lose(a->io, B, 1);
	assert_int_equal(a->counters.shm_peers, 0);
	assert_int_equal(send_at(a, B, 0, 1, 2), 1);
	assert_int_equal(a->lower->sent, 1);
	assert_int_equal(shm_next_wanted(a->io), -1);
	send_at(a, B, 0, 1, 1 + SHM_AGAIN_NS);
	assert_int_equal(shm_next_wanted(a->io), B);
	assert_int_equal(shm_make(a->io, B, 2 + SHM_AGAIN_NS, fds), 0);

	int given[2] = {dup(fds[0]), dup(fds[1])};

	assert_int_equal(shm_take_ring(b->io, A, getpid(), given), 0); /* in place of the old one */
	pass(a, B, b, 40, 2);
}

TEST(rings_take_no_more_memory_than_is_allowed)
{
	struct end *a = end_new(A);
	int fds[2];

	for (unsigned slot = 20; slot < 20 + RINGS_MAX; slot++)
		assert_int_equal(shm_make(a->io, slot, 1, fds), 0);
	assert_int_equal(shm_make(a->io, B, 1, fds), -EDQUOT);
	assert_int_equal(a->counters.shm_peers, RINGS_MAX);
	assert_int_equal(send_at(a, B, 0, 1, 2), 1);
	assert_int_equal(a->lower->sent, 1);
	assert_int_equal(shm_next_wanted(a->io), -1); /* not with each packet */
	shm_lose(a->io, 20, 2);
	send_at(a, B, 0, 1, 1 + SHM_AGAIN_NS);
	assert_int_equal(shm_next_wanted(a->io), B);
	assert_int_equal(shm_make(a->io, B, 1 + SHM_AGAIN_NS, fds), 0);
	end_free(a);
}

TEST(a_process_reaches_itself)
{
	struct end *a = end_new(A);
	int fds[2];

	send(a, A, 0, 1);
	assert_int_equal(shm_next_wanted(a->io), A);
	assert_int_equal(shm_make(a->io, A, 1, fds), 0);
	send(a, A, 1, 4);
	assert_int_equal(io_deadline_ns(a->io), 0);
	expect(a, 1, 4);
	end_free(a);
}

/* The memory as a hostile process of the user has it. */
static struct shm_memory *memory_of(int fd)
{
	struct shm_memory *m = mmap(NULL, SHM_MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	assert_ptr_not_equal(m, MAP_FAILED);
	return m;
}

/* Connects A's end with B's; A's memory. */
static struct shm_memory *connect_to_hostile(struct end *a, struct end *b)
{
	struct shm_memory *m;
	int fds[2], given[2];

	assert_int_equal(shm_make(a->io, B, 1, fds), 0);
	m = memory_of(fds[0]);
	given[0] = dup(fds[0]);
	given[1] = dup(fds[1]);
	assert_int_equal(shm_take_ring(b->io, A, getpid(), given), 0);
	return m;
}

/* Those of the record at a position. */
static uint8_t *bytes_of(struct shm_memory *m, uint32_t at)
{
	return (uint8_t *)m + SHM_HEADER_BYTES + at;
}

enum { SEGMENT_AT = 4, KIND_AT = 6 }; /* in a record, whose length is first */

TEST(nonsense_ends_that_ring_alone)
{
	struct end *a = end_new(A), *b = end_new(B), *c = end_new(C);
	struct shm_memory *m;
	uint32_t at;

	connect_ends(c, C, b, B);
	m = connect_to_hostile(a, b);
	pass(a, B, b, 0, 1);
	at = atomic_load(&m->tail);
	send(a, B, 1, 1);
	bytes_of(m, at)[KIND_AT] = 9;
	pass(c, B, b, 5, 2);
	assert_int_equal(b->counters.shm_broken, 1);
	send(a, B, 9, 1);
	expect_nothing(b);
	/* And at the other end: a head that is none. */
	atomic_store(&m->head, 1);
	for (uint32_t i = 0; i < SHM_ROOM_BYTES / SHM_UNIT_BYTES && !a->counters.shm_broken; i++)
		send(a, B, i, 1);
	assert_int_equal(a->counters.shm_broken, 1);
	munmap(m, SHM_MEMORY_BYTES);
	end_free(a);
	end_free(b);
	end_free(c);
}

/* All around it there is a record, of packets for nobody here. */
TEST(a_ring_without_an_end_is_left)
{
	struct end *a = end_new(A), *b = end_new(B), *c = end_new(C);
	struct shm_memory *m = connect_to_hostile(a, b);
	struct pkt pkts[BURST];

	connect_ends(c, C, b, B);
	pass(a, B, b, 0, 1);
	for (uint32_t at = 0; at < SHM_ROOM_BYTES; at += SHM_UNIT_BYTES) {
		memset(bytes_of(m, at), 0, SHM_UNIT_BYTES);
		bytes_of(m, at)[0] = bytes_of(m, at)[SEGMENT_AT] = 16;
		bytes_of(m, at)[KIND_AT] = 2;
	}
	pass(c, B, b, 5, 2);
	/* Its process has ended; what it left behind does not. */
	shm_end_ring(b->io, A);
	for (int i = 0; i < LOOKS && io_deadline_ns(b->io) == 0; i++)
		assert_int_equal(io_recv(b->io, pkts, BURST, 1), 0);
	assert_int_not_equal(io_deadline_ns(b->io), 0);
	munmap(m, SHM_MEMORY_BYTES);
	end_free(a);
	end_free(b);
	end_free(c);
}

/* Puts one packet as a process may that is not ours in code. */
static void put_raw(struct shm_memory *m, unsigned slot, const struct flow *flow)
{
	uint8_t data[LEN] = {[5] = (uint8_t)(slot << 1), [7] = 17};
	struct shm_putter p;

	shm_putter_init(&p, m);
	assert_int_equal(shm_put(&p, flow, data, &(struct shm_train){.len = LEN, .segment = LEN}), SHM_DONE);
	shm_publish(&p);
}

TEST(packets_of_others_are_not_taken)
{
	for (int from_afar = 0; from_afar < 2; from_afar++) {
		struct end *a = end_new(A), *b = end_new(B);
		struct shm_memory *m;
		int fds[2];

		assert_int_equal(shm_make(a->io, B, 1, fds), 0);
		m = memory_of(fds[0]);

		int given[2] = {dup(fds[0]), dup(fds[1])};

		assert_int_equal(shm_take_ring(b->io, A, getpid(), given), 0);
		put_raw(m, from_afar ? B : C, from_afar ? &outward : &within);
		expect_nothing(b);
		assert_int_equal(b->counters.shm_dropped, 1);
		assert_int_equal(b->counters.shm_broken, 0);
		munmap(m, SHM_MEMORY_BYTES);
		end_free(a);
		end_free(b);
	}
}

/* An address goes and returns; the two ends hear of it one after the other. */
ENDS_TEST(packets_follow_the_hosts_addresses)
{
	const uint8_t(*own)[16] = (const uint8_t(*)[16])within.dst;

	connect_ends(a, A, b, B);
	pass(a, B, b, 0, 2);
	shm_set_addresses(b->io, own, 0);
	send(a, B, 2, 1);
	expect_nothing(b);
	assert_int_equal(b->counters.shm_dropped, 1);
	shm_set_addresses(a->io, own, 0);
	send(a, B, 3, 1);
	assert_int_equal(a->lower->sent, 1);
	shm_set_addresses(a->io, own, 1);
	send(a, B, 4, 1);
	expect_nothing(b);
	shm_set_addresses(b->io, own, 1);
	pass(a, B, b, 5, 1);
	assert_int_equal(a->lower->sent, 1);
	assert_int_equal(a->counters.shm_broken + b->counters.shm_broken, 0);
}

ENDS_TEST(a_bell_that_rings_for_ever_is_not_heard_for_ever)
{
	uint64_t one = 1;
	int fds[2];

	assert_int_equal(shm_make(a->io, B, 1, fds), 0);

	int given[2] = {dup(fds[0]), dup(fds[1])};

	assert_int_equal(shm_take_ring(b->io, A, getpid(), given), 0);
	for (int i = 0; i < 2000; i++) {
		assert_int_equal(write(fds[1], &one, sizeof(one)), sizeof(one));
		io_flush(b->io);
	}
	assert_int_equal(b->counters.shm_broken, 1);
	assert_false(is_readable(b));
}

TEST(what_is_no_ring_is_refused)
{
	struct end *b = end_new(B);
	int good[2], fds[2];
	struct end *a = end_new(A);

	assert_int_equal(shm_make(a->io, B, 1, good), 0);
	/* Unsealed: it could shrink, and an access be a signal. */
	fds[0] = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(fds[0], SHM_MEMORY_BYTES), 0);
	fds[1] = dup(good[1]);
	assert_int_equal(shm_take_ring(b->io, A, getpid(), fds), -EPROTO);
	/* Too short. */
	fds[0] = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(fds[0], 4096), 0);
	assert_int_equal(fcntl(fds[0], F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
	fds[1] = dup(good[1]);
	assert_int_equal(shm_take_ring(b->io, A, getpid(), fds), -EPROTO);
	/* Of another version. */
	fds[0] = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(fds[0], SHM_MEMORY_BYTES), 0);
	assert_int_equal(fcntl(fds[0], F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
	fds[1] = dup(good[1]);
	assert_int_equal(shm_take_ring(b->io, A, getpid(), fds), -EPROTO);
	/* A bell that would block. */
	fds[0] = dup(good[0]);
	fds[1] = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(shm_take_ring(b->io, A, getpid(), fds), -EPROTO);
	/* Nobody's slot, and our own. */
	fds[0] = dup(good[0]);
	fds[1] = dup(good[1]);
	assert_int_equal(shm_take_ring(b->io, SHM_SLOTS, getpid(), fds), -EINVAL);
	fds[0] = dup(good[0]);
	fds[1] = dup(good[1]);
	assert_int_equal(shm_take_ring(b->io, B, getpid(), fds), -EINVAL);
	end_free(a);
	end_free(b);
}

/* A process sends numbered packets and is killed in the middle: what arrives is a beginning of them. */
ENDS_TEST(a_killed_process_leaves_no_gap)
{
	uint32_t next = 0;
	uint64_t quiet_ns = 0;
	pid_t pid;

	connect_ends(a, A, b, B);
	pid = fork();
	assert_true(pid >= 0);
	for (uint32_t i = 0; pid == 0; i++) {
		send(a, B, i, 1);
		while (is_full(a, B))
			sched_yield();
	}
	while (!quiet_ns || clock_now_ns() - quiet_ns < 20000000) {
		struct pkt pkts[BURST];
		size_t n = io_recv(b->io, pkts, BURST, clock_now_ns());

		for (size_t i = 0; i < n; i++)
			assert_int_equal(get_be32(pkts[i].data + 12), next++);
		if (next > MANY && pid) {
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
			shm_end_ring(b->io, A);
			pid = 0;
		}
		if (n || pid)
			quiet_ns = pid ? 0 : clock_now_ns();
		else if (!quiet_ns)
			quiet_ns = clock_now_ns();
	}
	assert_true(next > MANY);
}
