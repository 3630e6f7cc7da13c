/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a receive worker of SDR does for a packet once its completion was polled: judges it, notes it in the bitmaps,
 * and publishes its chunk if it was the last one of it. Workers are threads; channel c is worker c mod threads, as in
 * the library, and packets take the channels in turn, so all workers write into the same words. There is no network.
 *
 *   build/bench/sdr_worker [threads-max [rounds]]
 *
 * Prints for each number of threads and each size of a chunk: packets a microsecond by the clock, all together; the
 * same by the processors' time, where other processes do not count; and what posting and completing a message takes.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "sdr/receiver.h"

enum { PACKETS = 4096, MTU = 64, SLOTS = 64, CHANNELS = 128, BATCH = 64, THREADS_MAX = 128 };

static struct bench {
	struct shape shape;
	struct receiver receiver;
	unsigned threads, rounds;
	uint64_t first; /* the number of the round's first message */
	pthread_barrier_t begin, end;
} b;

struct thread {
	pthread_t id;
	unsigned number;
	uint64_t cpu_ns;
	struct worker worker;
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void *get(void *ctx, size_t n)
{
	size_t whole = (n + 63) / 64 * 64;
	void *p = aligned_alloc(64, whole);

	(void)ctx;
	return p ? memset(p, 0, whole) : NULL;
}

static void put(void *ctx, void *p, size_t n)
{
	(void)ctx;
	(void)n;
	free(p);
}

static const struct alloc heap = {.get = get, .put = put};

static void die(const char *why)
{
	fprintf(stderr, "sdr_worker: %s\n", why);
	exit(1);
}

/* All packets of one message that come by this thread's channels, a batch of a channel after the other. */
static void take_message(struct thread *t, uint64_t number)
{
	struct imm imm = {.id = shape_slot(&b.shape, number)};
	uint32_t generation = shape_generation(&b.shape, number), n = 0;

	for (uint32_t at = 0; at < PACKETS; at += CHANNELS) {
		for (uint32_t c = t->number; c < CHANNELS; c += b.threads) {
			imm.offset = at + c;
			worker_note(&t->worker, &b.receiver, generation, imm_pack(b.shape.split, imm), MTU);
			if (++n % BATCH == 0)
				worker_rest(&t->worker);
		}
	}
	worker_rest(&t->worker);
}

static void *work(void *arg)
{
	struct thread *t = arg;

	for (unsigned r = 0; r < b.rounds; r++) {
		uint64_t start_ns;

		pthread_barrier_wait(&b.begin);
		start_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		for (uint64_t n = b.first; n < b.first + SLOTS; n++)
			take_message(t, n);
		t->cpu_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
		pthread_barrier_wait(&b.end);
	}
	return NULL;
}

/* Posts every slot, or completes all of them. Every chunk must have come. */
static void post_all(void)
{
	uint64_t number;

	for (int i = 0; i < SLOTS; i++) {
		if (receiver_post(&b.receiver, (uint64_t)PACKETS * MTU, &number))
			die("a slot is taken");
		if (!i)
			b.first = number;
	}
}

static void complete_all(void)
{
	for (uint64_t n = b.first; n < b.first + SLOTS; n++) {
		struct slot *slot = receiver_complete(&b.receiver, n);

		for (uint32_t w = 0; w < slot->chunks / 64; w++) {
			if (~atomic_load(&slot->chunk_bits[w]))
				die("a chunk is missing");
		}
		slot_reset(slot);
	}
}

static void run(unsigned threads, unsigned chunk_packets, unsigned rounds)
{
	static struct thread thread[THREADS_MAX];
	uint64_t wall_ns = 0, cpu_ns = 0, post_ns = 0, packets = (uint64_t)rounds * SLOTS * PACKETS;

	b.threads = threads;
	b.rounds = rounds;
	b.shape = (struct shape){.split = {10, 18, 4},
				 .mtu = MTU,
				 .chunk_bytes = chunk_packets * MTU,
				 .slots = SLOTS,
				 .generations = 4,
				 .channels = CHANNELS,
				 .message_bytes = (uint64_t)PACKETS * MTU};
	if (!shape_valid(&b.shape) || receiver_init(&b.receiver, &b.shape, &heap))
		die("no memory");
	pthread_barrier_init(&b.begin, NULL, threads + 1);
	pthread_barrier_init(&b.end, NULL, threads + 1);
	for (unsigned i = 0; i < threads; i++) {
		thread[i] = (struct thread){.number = i, .worker = {.id = i}};
		if (pthread_create(&thread[i].id, NULL, work, &thread[i]))
			die("no thread");
	}
	for (unsigned r = 0; r < rounds; r++) {
		uint64_t start_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);

		post_all();
		post_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
		start_ns = clock_ns(CLOCK_MONOTONIC);
		pthread_barrier_wait(&b.begin);
		pthread_barrier_wait(&b.end);
		wall_ns += clock_ns(CLOCK_MONOTONIC) - start_ns;
		start_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		complete_all();
		post_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
	}
	for (unsigned i = 0; i < threads; i++) {
		pthread_join(thread[i].id, NULL);
		cpu_ns += thread[i].cpu_ns;
	}
	printf("%-8u %-6u %9.1f %9.1f %12.1f %12.0f\n", threads, chunk_packets, (double)packets * 1e3 / (double)wall_ns,
	       (double)packets * 1e3 * threads / (double)cpu_ns, (double)cpu_ns / (double)packets,
	       (double)post_ns / (double)(rounds * SLOTS));
	receiver_free(&b.receiver);
	pthread_barrier_destroy(&b.begin);
	pthread_barrier_destroy(&b.end);
}

int main(int argc, char **argv)
{
	unsigned threads_max = argc > 1 ? (unsigned)atoi(argv[1]) : 2, rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 40;

	if (threads_max < 1 || threads_max > THREADS_MAX || rounds < 1) {
		fprintf(stderr, "usage: sdr_worker [THREADS-MAX [ROUNDS]]    1 to %d threads\n", THREADS_MAX);
		return 1;
	}
	printf("threads  chunk    Mpps, clock  Mpps, cpu  ns a packet  ns a message\n");
	for (unsigned t = 1; t <= threads_max; t *= 2) {
		for (unsigned chunk = 1; chunk <= 64; chunk *= 4)
			run(t, chunk, rounds);
	}
	return 0;
}
