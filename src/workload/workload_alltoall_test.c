/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>

#include "support/test.h"
#include "support/workload_run.h"

TEST(all_to_all_covers_each_ordered_pair_once)
{
	static const struct {
		uint32_t hosts, active;
		enum workload_order order;
	} rows[] = {
		{2, 0, WORKLOAD_SHIFTED}, {7, 0, WORKLOAD_SHIFTED}, {7, 1, WORKLOAD_SHIFTED}, {33, 4, WORKLOAD_RANDOM},
		{2, 1, WORKLOAD_RANDOM},  {64, 1, WORKLOAD_RANDOM}, {64, 0, WORKLOAD_RANDOM}, {64, 99, WORKLOAD_RANDOM},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t n = rows[i].hosts;
		uint8_t seen[64][64] = {0};
		struct run r = ran("all-to-all", (struct workload_params){.host_count = n,
									  .bytes = 1000 * n + 1,
									  .active_max = rows[i].active,
									  .order = rows[i].order});

		assert_int_equal(r.message_count, n * (n - 1));
		for (size_t m = 0; m < r.message_count; m++) {
			assert_int_equal(r.messages[m].bytes, 1000 + (r.messages[m].dst == 0));
			assert_int_equal(seen[r.messages[m].src][r.messages[m].dst]++, 0);
		}
		if (rows[i].active && rows[i].active < n)
			assert_int_equal(r.underway_max, rows[i].active);
		else
			assert_int_equal(r.underway_max, n - 1);
		run_free(&r);
	}
}

TEST(shifted_order_gives_every_receiver_one_sender_a_step)
{
	struct workload *w = made("all-to-all", (struct workload_params){.host_count = 8, .bytes = 8});
	struct message m;

	for (uint32_t step = 0; step < 7; step++)
		for (uint32_t host = 0; host < 8; host++) {
			assert_true(workload_next(w, &m));
			assert_int_equal(m.src, host);
			assert_int_equal(m.dst, (host + step + 1) % 8);
		}
	assert_false(workload_next(w, &m));
	workload_free(w);
}

TEST(a_thousand_hosts_all_to_all_is_a_million_messages)
{
	struct workload *w = made("all-to-all", (struct workload_params){.host_count = 1024, .bytes = 1 << 30});
	struct workload_facts facts;
	struct message m;
	uint64_t count = 0;

	workload_facts(w, 0, &facts);
	assert_int_equal(facts.message_count, 1047552);
	assert_int_equal(facts.bytes, 1047552ull << 20);
	while (workload_next(w, &m))
		count++;
	assert_int_equal(count, 1047552);
	workload_free(w);
}

TEST(moe_bytes_follow_zipf_and_come_back)
{
	enum { N = 16 };
	uint64_t to[N] = {0}, back[N] = {0}, sorted[N];
	struct run r = ran("moe", (struct workload_params){.host_count = N,
							   .bytes = 10000000,
							   .zipf_milli = 1000,
							   .active_max = 3,
							   .order = WORKLOAD_RANDOM,
							   .combine = true});

	assert_int_equal(r.message_count, 2 * N * (N - 1));
	for (size_t i = 0; i < r.message_count; i++) {
		const struct message *m = &r.messages[i];

		if (m->number < N * (N - 1))
			to[m->dst] = m->bytes;
		else
			back[m->src] = m->bytes;
	}
	for (int i = 0; i < N; i++) {
		assert_int_equal(to[i], back[i]);
		sorted[i] = to[i];
	}
	for (int i = 0; i < N; i++)
		for (int j = i + 1; j < N; j++)
			if (sorted[j] > sorted[i]) {
				uint64_t t = sorted[i];

				sorted[i] = sorted[j];
				sorted[j] = t;
			}
	/* Shares 1, 1/2, 1/3 .. of their sum, the 16th harmonic number 3.380728993... */
	for (uint64_t i = 0; i < N; i++)
		assert_in_range(sorted[i], 2957942 / (i + 1) - 1, 2957944 / (i + 1) + 1);
	run_free(&r);
}

TEST(zipf_0_is_uniform)
{
	struct run r = ran("moe", (struct workload_params){.host_count = 8, .bytes = 8000});

	assert_int_equal(r.message_count, 56);
	for (size_t i = 0; i < r.message_count; i++)
		assert_int_equal(r.messages[i].bytes, 1000);
	run_free(&r);
}
