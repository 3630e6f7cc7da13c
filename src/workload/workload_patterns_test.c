/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>

#include "support/test.h"
#include "support/workload_run.h"

TEST(an_incast_has_its_senders_in_turn)
{
	static const struct {
		uint32_t hosts, senders, target, messages;
	} rows[] = {{8, 0, 0, 7}, {8, 7, 3, 7}, {8, 3, 7, 3}, {128, 128, 0, 128}, {9, 128, 8, 128}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t sent[128] = {0};
		struct run r = ran("incast", (struct workload_params){.host_count = rows[i].hosts,
								      .senders = rows[i].senders,
								      .target = rows[i].target,
								      .bytes = 1000,
								      .start_ps = 5 * US});

		assert_int_equal(r.message_count, rows[i].messages);
		for (size_t m = 0; m < r.message_count; m++) {
			assert_int_equal(r.messages[m].dst, rows[i].target);
			assert_int_equal(r.messages[m].start_ps, 5 * US);
			assert_int_equal(r.messages[m].connection, m);
			sent[r.messages[m].src]++;
		}
		for (uint32_t h = 0; h < rows[i].hosts; h++) {
			uint32_t share = rows[i].messages / (rows[i].hosts - 1);

			if (h == rows[i].target)
				assert_int_equal(sent[h], 0);
			else
				assert_in_range(sent[h], share, share + 1);
		}
		run_free(&r);
	}
}

TEST(jitter_stays_within_its_bound_and_messages_in_order)
{
	struct run r = ran("incast",
			   (struct workload_params){.host_count = 1000, .bytes = 1, .jitter_ps = 100, .start_ps = 50});
	uint64_t last = 0, distinct = 0;

	for (size_t m = 0; m < r.message_count; m++) {
		assert_in_range(r.messages[m].start_ps, 50, 150);
		assert_true(r.messages[m].start_ps >= last);
		distinct += r.messages[m].start_ps != last;
		last = r.messages[m].start_ps;
	}
	assert_true(distinct > 90);
	run_free(&r);
}

TEST(a_permutation_has_no_fixed_point_and_each_receiver_once)
{
	for (uint64_t seed = 0; seed < 50; seed++)
		for (uint32_t n = 2; n < 40; n += 3) {
			bool seen[40] = {0};
			struct run r =
				ran("permutation", (struct workload_params){.host_count = n, .seed = seed, .bytes = 7});

			assert_int_equal(r.message_count, n);
			for (size_t m = 0; m < n; m++) {
				assert_int_not_equal(r.messages[m].src, r.messages[m].dst);
				assert_false(seen[r.messages[m].dst]);
				seen[r.messages[m].dst] = true;
			}
			run_free(&r);
		}
}

/* Of 4 hosts there are 9 derangements; each should be as likely as the others. */
TEST(pairs_are_messages_in_the_order_given)
{
	static const struct workload_pair pairs[] = {{2, 0}, {0, 1}, {2, 0}};
	struct workload *w =
		made("pairs", (struct workload_params){
				      .host_count = 3, .pairs = pairs, .pair_count = 3, .start_ps = 7, .bytes = 1000});
	struct message m;

	for (uint64_t i = 0; i < 3; i++) {
		assert_true(workload_next(w, &m));
		assert_int_equal(m.src, pairs[i].src);
		assert_int_equal(m.dst, pairs[i].dst);
		assert_int_equal(m.bytes, 1000);
		assert_int_equal(m.start_ps, 7);
		assert_int_equal(m.connection & 0xff, i); /* each its own */
	}
	assert_false(workload_next(w, &m));
	workload_free(w);
}

TEST(every_derangement_is_as_likely)
{
	uint32_t counts[256] = {0}, kinds = 0;

	for (uint64_t seed = 0; seed < 9000; seed++) {
		uint32_t code = 0;
		struct workload *w =
			made("permutation", (struct workload_params){.host_count = 4, .seed = seed, .bytes = 1});
		struct message m;

		while (workload_next(w, &m))
			code = code << 2 | m.dst;
		counts[code]++;
		workload_free(w);
	}
	for (int i = 0; i < 256; i++) {
		kinds += counts[i] > 0;
		if (counts[i])
			assert_in_range(counts[i], 850, 1150);
	}
	assert_int_equal(kinds, 9);
}

TEST(a_victim_has_a_tag_and_a_receiver_of_its_own)
{
	struct run r = ran("victim", (struct workload_params){.host_count = 16,
							      .target = 8,
							      .victim_src = 1,
							      .victim_dst = 9,
							      .bytes = 100,
							      .victim_bytes = 5000,
							      .senders = 4,
							      .tag = 6});
	uint32_t victims = 0;

	assert_int_equal(r.message_count, 5);
	for (size_t i = 0; i < r.message_count; i++) {
		const struct message *m = &r.messages[i];

		if (m->tag == 7) {
			assert_int_equal(m->src, 1);
			assert_int_equal(m->dst, 9);
			assert_int_equal(m->bytes, 5000);
			victims++;
		} else {
			assert_int_equal(m->tag, 6);
			assert_int_equal(m->dst, 8);
			assert_int_not_equal(m->src, 1);
		}
	}
	assert_int_equal(victims, 1);
	run_free(&r);
}

TEST(staircase_flows_join_and_leave_at_their_times)
{
	enum { FLOWS = 4, DEPTH = 3 };
	struct run r = ran("staircase", (struct workload_params){.host_count = 5,
								 .target = 2,
								 .senders = FLOWS,
								 .bytes = 1000,
								 .active_max = DEPTH,
								 .interval_ps = 100 * US,
								 .start_ps = 10 * US,
								 .end_ps = 900 * US});
	uint64_t first[FLOWS], last[FLOWS] = {0};

	memset(first, 0xff, sizeof(first));
	for (size_t i = 0; i < r.message_count; i++) {
		const struct message *m = &r.messages[i];
		uint64_t flow = m->connection;

		assert_true(flow < FLOWS);
		assert_int_equal(m->dst, 2);
		assert_int_equal(m->src, flow + (flow >= 2));
		if (m->start_ps < first[flow])
			first[flow] = m->start_ps;
		last[flow] = m->start_ps;
	}
	for (uint64_t f = 0; f < FLOWS; f++) {
		assert_int_equal(first[f], 10 * US + f * 100 * US);
		assert_in_range(last[f], 895 * US - f * 100 * US, 900 * US - f * 100 * US);
	}
	assert_int_equal(r.underway_max, DEPTH);
	run_free(&r);
}

TEST(idle_qps_exist_and_send_nothing)
{
	struct run r = ran("many-qps", (struct workload_params){.host_count = 5,
								.connections = 131072,
								.idle = 130000,
								.bytes = 64,
								.senders = 2,
								.victim_bytes = 1000000,
								.end_ps = 10 * MS});
	uint32_t idle = 0, slow = 0, fast = 0;

	assert_int_equal(r.message_count, 131074);
	for (size_t i = 0; i < r.message_count; i++) {
		assert_int_equal(r.messages[i].src, 0);
		idle += r.messages[i].bytes == 0;
		slow += r.messages[i].bytes == 64;
		fast += r.messages[i].tag == 1;
	}
	assert_int_equal(idle, 130000);
	assert_int_equal(slow, 1072);
	assert_int_equal(fast, 2);
	run_free(&r);
}
