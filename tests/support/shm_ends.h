/* SPDX-License-Identifier: BSD-2-Clause */
/* Ends of processes that reach each other through memory, for the tests of shm.h: a fake back end is below each. */
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/io_fake.h"
#include "io/shm/shm.h"
#include "io/shm/shm_ring.h"
#include "support/test.h"

enum { A = 3, B = 5, C = 9, LEN = 64, BURST = 64, LOOKS = 200, MANY = 20000, RINGS_MAX = 3 };

/* One process's end. */
struct end {
	struct io *io;
	struct fake *lower;
	struct io_counters counters;
	struct shm_peer peers[SHM_SLOTS]; /* as shm_next_change() said last */
};

static struct flow within = {.dst = {[10] = 0xff, 0xff, 127, 0, 0, 1}, .sport = 50000, .dport = 4791};
static struct flow outward = {.dst = {[10] = 0xff, 0xff, 10, 0, 0, 1}, .sport = 50000, .dport = 4791};

/* What the end would tell its nic of a slot. */
static inline const struct shm_peer *look_at(struct end *e, unsigned slot, uint64_t now_ns)
{
	struct shm_peer p;

	shm_turn(e->io, now_ns);
	while (shm_next_change(e->io, &p))
		e->peers[p.slot] = p;
	return &e->peers[slot];
}

static inline struct end *end_new(unsigned slot)
{
	struct end *e = calloc(1, sizeof(*e));
	struct shm_config c = {
		.slot = slot, .address_count = 1, .bytes_max = RINGS_MAX * SHM_MEMORY_BYTES, .counters = &e->counters};

	memcpy(within.src, within.dst, 16);
	memcpy(outward.src, within.dst, 16);
	memcpy(c.addresses[0], within.dst, 16);
	e->lower = fake_new(LEN);
	assert_int_equal(shm_open_io(&e->io, &e->lower->io, &c), 0);
	return e;
}

static inline void end_free(struct end *e)
{
	io_close(e->io);
	free(e);
}

/* A test of `a` and `b`, two ends in slots A and B. */
#define ENDS_TEST(name)                                      \
	static void name##_of(struct end *a, struct end *b); \
	TEST(name)                                           \
	{                                                    \
		struct end *a = end_new(A), *b = end_new(B); \
                                                             \
		name##_of(a, b);                             \
		end_free(a);                                 \
		end_free(b);                                 \
	}                                                    \
	static void name##_of(struct end *a, struct end *b)

/* Fills in n packets for a slot, numbered from `first` on, as one train. */
static inline void fill(struct pkt *pkts, uint8_t bytes[][LEN], size_t n, unsigned slot, uint32_t first)
{
	for (size_t i = 0; i < n; i++) {
		memset(bytes[i], 0, LEN);
		bytes[i][5] = (uint8_t)(slot << 1);
		bytes[i][7] = 17;
		put_be32(bytes[i] + 12, first + (uint32_t)i);
		pkts[i] = (struct pkt){.data = bytes[i],
				       .flow = &within,
				       .len = LEN,
				       .ip_id = (uint16_t)i,
				       .train = (uint16_t)(n - i)};
	}
}

static inline size_t send_at(struct end *e, unsigned slot, uint32_t first, size_t n, uint64_t now_ns)
{
	static uint8_t bytes[BURST][LEN];
	struct pkt pkts[BURST];

	fill(pkts, bytes, n, slot, first);
	return io_send(e->io, pkts, n, now_ns);
}

static inline size_t send(struct end *e, unsigned slot, uint32_t first, size_t n)
{
	return send_at(e, slot, first, n, 1);
}

/* Takes packets until `n` have come through memory, which are numbered from `first` on. */
static inline void expect(struct end *e, uint32_t first, size_t n)
{
	struct pkt pkts[BURST];
	size_t got = 0;

	for (int i = 0; i < LOOKS && got < n; i++) {
		size_t k = io_recv(e->io, pkts, BURST, 1);

		for (size_t j = 0; j < k; j++) {
			assert_int_equal(pkts[j].len, LEN);
			assert_int_equal(get_be32(pkts[j].data + 12), first + got++);
			assert_memory_equal(pkts[j].flow, &within, offsetof(struct flow, neighbour));
			assert_in_range(pkts[j].flow->neighbour, 1 + A, 1 + C);
		}
	}
	assert_int_equal(got, n);
}

/* Sends n packets to the end in that slot, which take the way through memory. */
static inline void pass(struct end *from, unsigned slot, struct end *to, uint32_t first, size_t n)
{
	send(from, slot, first, n);
	expect(to, first, n);
}

static inline void expect_nothing(struct end *e)
{
	struct pkt pkts[BURST];

	for (int i = 0; i < LOOKS; i++)
		assert_int_equal(io_recv(e->io, pkts, BURST, 1), 0);
}

static inline void connect_ends(struct end *from, unsigned from_slot, struct end *to, unsigned to_slot)
{
	int fds[2], given[2];

	assert_int_equal(shm_make(from->io, to_slot, 1, fds), 0);
	given[0] = dup(fds[0]);
	given[1] = dup(fds[1]);
	assert_int_equal(shm_take_ring(to->io, from_slot, getpid(), given), 0);
}

/* Another process, whose memory is this one's but for what change(ctx) does there; as if it had the id of an end that
 * is gone. */
static inline pid_t stranger_new(void (*change)(void *ctx), void *ctx)
{
	int ready[2];
	uint8_t junk;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		change(ctx);
		if (write(ready[1], &junk, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &junk, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static inline void stranger_end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}
