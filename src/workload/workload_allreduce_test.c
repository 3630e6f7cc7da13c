/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>

#include "support/test.h"
#include "support/workload_run.h"

TEST(a_ring_allreduce_moves_2_n_minus_1_over_n_of_s_per_host)
{
	static const struct {
		uint32_t hosts, rings;
	} rows[] = {{2, 1}, {3, 1}, {8, 1}, {8, 4}, {9, 3}, {16, 0}, {5, 9}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t n = rows[i].hosts, rings = rows[i].rings ? rows[i].rings : 1;
		uint64_t s = 1000ull * n * rings, sent[16] = {0}, got[16] = {0};
		struct run r =
			ran("ring", (struct workload_params){
					    .host_count = n, .bytes = s, .rings = rows[i].rings, .step_gap_ps = 3});

		assert_int_equal(r.message_count, 2 * (n - 1) * n * rings);
		for (size_t m = 0; m < r.message_count; m++) {
			sent[r.messages[m].src] += r.messages[m].bytes;
			got[r.messages[m].dst] += r.messages[m].bytes;
		}
		for (uint32_t h = 0; h < n; h++) {
			assert_int_equal(sent[h], 2 * (n - 1) * s / n);
			assert_int_equal(got[h], 2 * (n - 1) * s / n);
		}
		run_free(&r);
	}
}

/*
 * An allreduce modelled by sets: for each chunk a host has the set of hosts whose contribution is
 * in it. A ring step carries one chunk, and at the end every host must have all contributions to
 * every chunk.
 */
TEST(after_a_ring_allreduce_everyone_has_everything)
{
	enum { N = 7, STEPS = 2 * (N - 1) };
	static uint32_t holds[N][N]; /* by host and chunk */
	struct workload *w = made("ring", (struct workload_params){.host_count = N, .bytes = 703});
	struct run r = run_workload(w, 5, SIZE_MAX);

	for (uint32_t h = 0; h < N; h++)
		for (uint32_t c = 0; c < N; c++)
			holds[h][c] = 1u << h;
	/* Starts are in order of time, and a message carries the sets that its sender had then. */
	for (size_t i = 0; i < r.message_count; i++) {
		const struct message *m = &r.messages[i];
		uint32_t step = (uint32_t)(m->number / N), pos = (uint32_t)(m->number % N);
		uint32_t chunk = (pos + 2 * N - step) % N;

		/* The remainder's bytes are in the first chunks. */
		assert_int_equal(m->bytes, 100 + (chunk < 3));
		if (step < N - 1)
			holds[m->dst][chunk] |= holds[m->src][chunk];
		else
			holds[m->dst][chunk] = holds[m->src][chunk];
	}
	for (uint32_t h = 0; h < N; h++)
		for (uint32_t c = 0; c < N; c++)
			assert_int_equal(holds[h][c], (1u << N) - 1);
	run_free(&r);
	workload_free(w);
}

TEST(a_step_starts_when_the_one_before_has_arrived)
{
	struct workload *w = made("ring", (struct workload_params){.host_count = 4, .bytes = 400, .step_gap_ps = 11});
	struct message m, first[4], next;

	for (int i = 0; i < 4; i++)
		assert_true(workload_next(w, &first[i]));
	assert_false(workload_next(w, &m));
	workload_sent(w, &first[1], 50);
	assert_false(workload_released(w, &next));
	workload_received(w, &first[1], 100);
	assert_true(workload_released(w, &next));
	assert_int_equal(next.src, first[1].dst);
	assert_int_equal(next.dst, (first[1].dst + 1) % 4);
	assert_int_equal(next.start_ps, 111);
	assert_int_equal(next.connection, first[2].connection);
	assert_false(next.last);
	assert_false(workload_released(w, &next));
	workload_free(w);
}

TEST(halving_doubling_takes_2_log2_n_steps_and_the_rings_volume)
{
	for (uint32_t n = 2; n <= 64; n *= 2) {
		uint64_t sent[64] = {0}, log2 = (uint64_t)__builtin_ctz(n);
		struct run r = ran("halving-doubling", (struct workload_params){.host_count = n, .bytes = 64000});

		assert_int_equal(r.message_count, 2 * log2 * n);
		for (size_t m = 0; m < r.message_count; m++)
			sent[r.messages[m].src] += r.messages[m].bytes;
		for (uint32_t h = 0; h < n; h++)
			assert_int_equal(sent[h], 2 * (n - 1) * 64000ull / n);
		run_free(&r);
	}
}

/* Even if messages are late, no host sends a step before all earlier ones have reached it. */
TEST(halving_doubling_never_overtakes)
{
	enum { N = 16, BITS = 4 };

	for (uint64_t seed = 0; seed < 20; seed++) {
		struct workload *w = made("halving-doubling", (struct workload_params){.host_count = N, .bytes = N});
		struct run r = run_workload(w, seed, SIZE_MAX);
		uint32_t next[N] = {0};

		assert_int_equal(r.message_count, 2 * BITS * N);
		for (size_t i = 0; i < r.message_count; i++) {
			const struct message *m = &r.messages[i];

			assert_int_equal(m->number / N, next[m->src]);
			/* Its partner of the step before had started that step by then. */
			if (next[m->src])
				assert_true(m->start_ps >= US);
			next[m->src]++;
		}
		run_free(&r);
		workload_free(w);
	}
}

/* A step that comes early has no effect before the late message of the step before has come. */
TEST(halving_doubling_waits_for_every_earlier_step)
{
	struct workload *w = made("halving-doubling", (struct workload_params){.host_count = 4, .bytes = 400});
	struct message first[4], early, m;

	for (int i = 0; i < 4; i++)
		assert_true(workload_next(w, &first[i]));
	assert_int_equal(first[3].dst, 1);
	workload_received(w, &first[3], 10);
	assert_true(workload_released(w, &early));
	assert_int_equal(early.src, 1);
	assert_int_equal(early.dst, 0);
	assert_int_equal(early.bytes, 100);
	assert_false(workload_released(w, &m));
	workload_received(w, &early, 20);
	assert_false(workload_released(w, &m));
	assert_int_equal(first[2].dst, 0);
	workload_received(w, &first[2], 30);
	assert_true(workload_released(w, &m));
	assert_int_equal(m.dst, 1);
	assert_int_equal(m.bytes, 100);
	assert_true(workload_released(w, &m));
	assert_int_equal(m.dst, 1);
	assert_int_equal(m.number, 2 * 4);
	assert_int_equal(m.start_ps, 30);
	assert_false(workload_released(w, &m));
	workload_free(w);
}

TEST(a_tree_node_waits_for_both_children)
{
	struct workload *w = made("tree", (struct workload_params){.host_count = 5, .bytes = 9});
	struct message leaf[3], up, m;

	for (int i = 0; i < 3; i++)
		assert_true(workload_next(w, &leaf[i]));
	assert_false(workload_next(w, &m));
	/* Host 2 is a leaf; 3 and 4 are the children of 1. */
	assert_int_equal(leaf[0].src, 2);
	workload_received(w, &leaf[1], 5);
	assert_false(workload_released(w, &m));
	workload_received(w, &leaf[2], 6);
	assert_true(workload_released(w, &up));
	assert_int_equal(up.src, 1);
	assert_int_equal(up.dst, 0);
	workload_received(w, &up, 7);
	assert_false(workload_released(w, &m));
	workload_received(w, &leaf[0], 8);
	assert_true(workload_released(w, &m));
	assert_int_equal(m.dst, 1);
	assert_true(workload_released(w, &m));
	assert_int_equal(m.dst, 2);
	assert_false(workload_released(w, &m));
	workload_free(w);
}

TEST(a_tree_sends_every_edge_up_and_down_once_a_chunk)
{
	for (uint32_t n = 2; n <= 20; n++)
		for (uint32_t chunks = 1; chunks <= 3; chunks++) {
			uint64_t up[20] = {0}, down[20] = {0};
			struct run r =
				ran("tree", (struct workload_params){.host_count = n, .bytes = 1000, .chunks = chunks});

			assert_int_equal(r.message_count, 2 * (n - 1) * chunks);
			for (size_t i = 0; i < r.message_count; i++) {
				const struct message *m = &r.messages[i];

				if (m->src > m->dst) {
					assert_int_equal(m->dst, (m->src - 1) / 2);
					up[m->src] += m->bytes;
				} else {
					assert_int_equal(m->src, (m->dst - 1) / 2);
					down[m->dst] += m->bytes;
				}
			}
			for (uint32_t h = 1; h < n; h++) {
				assert_int_equal(up[h], 1000);
				assert_int_equal(down[h], 1000);
			}
			run_free(&r);
		}
}
