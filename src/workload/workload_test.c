/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>

#include "support/test.h"
#include "support/workload_run.h"

TEST(ranks_become_the_hosts_that_were_named)
{
	static const uint32_t hosts[] = {70, 10, 40};
	struct run r = ran("ring", (struct workload_params){.hosts = hosts, .host_count = 3, .bytes = 300});

	assert_int_equal(r.message_count, 12);
	for (size_t i = 0; i < r.message_count; i++) {
		const struct message *m = &r.messages[i];

		assert_int_equal(m->dst, m->src == 70 ? 10 : m->src == 10 ? 40 : 70);
	}
	run_free(&r);
}

TEST(parts_merge_in_time_and_keep_their_connections_apart)
{
	struct workload_params p = {.host_count = 8, .bytes = 10, .start_ps = 100, .tag = 1};
	struct workload *w = workload_create();
	struct text_error err;
	struct message m;
	uint64_t last = 0, connections[23];
	uint32_t of_part[3] = {0}, count = 0;

	assert_int_equal(workload_add(w, "incast", &p, &err), 0);
	p.start_ps = 50;
	p.jitter_ps = 100;
	assert_int_equal(workload_add(w, "permutation", &p, &err), 0);
	assert_int_equal(workload_add(w, "permutation", &p, &err), 0);
	assert_int_equal(workload_parts(w), 3);
	while (workload_next(w, &m)) {
		assert_true(m.start_ps >= last);
		for (uint32_t i = 0; i < count; i++)
			assert_int_not_equal(m.connection, connections[i]);
		connections[count++] = m.connection;
		last = m.start_ps;
		of_part[m.part]++;
	}
	assert_int_equal(of_part[0], 7);
	assert_int_equal(of_part[1], 8);
	assert_int_equal(of_part[2], 8);
	assert_int_equal(workload_add(w, "incast", &p, &err), -EINVAL);
	workload_free(w);
}

/* Reports a message of which all bytes have been sent and have arrived, and takes what that releases; returns how many.
 */
static uint32_t done(struct workload *w, const struct message *m, uint64_t now_ps, struct message *out)
{
	uint32_t count = 0;

	workload_received(w, m, now_ps);
	assert_false(workload_released(w, &out[count]));
	workload_sent(w, m, now_ps);
	while (workload_released(w, &out[count]))
		count++;
	return count;
}

TEST(a_part_begins_when_those_before_it_are_done)
{
	static const struct workload_pair pairs[] = {{0, 1}, {2, 3}};
	struct workload_params p = {.host_count = 4,
				    .bytes = 10,
				    .start_ps = 100,
				    .pairs = pairs,
				    .pair_count = 2,
				    .connections_go_on = true};
	struct workload *w = workload_create();
	struct message m[4], more[4];
	struct text_error err;

	assert_int_equal(workload_add(w, "pairs", &p, &err), 0);
	assert_int_equal(workload_add(w, "pairs", &p, &err), 0);
	p.start_ps = 7;
	p.after_count = 2;
	p.connections_of = 1;
	p.connections_go_on = false;
	assert_int_equal(workload_add(w, "pairs", &p, &err), 0);
	for (int i = 0; i < 4; i++)
		assert_true(workload_next(w, &m[i]));
	assert_false(workload_next(w, &more[0]));
	assert_int_equal(workload_held_back(w, 1, &more[0]), 0);
	assert_int_equal(workload_held_back(w, 2, &more[0]), 2);
	for (int i = 0; i < 3; i++)
		assert_int_equal(done(w, &m[i], 1000, more), 0);
	assert_int_equal(done(w, &m[3], 5000, more), 2);
	assert_int_equal(workload_held_back(w, 2, &m[3]), 0);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(more[i].part, 2);
		assert_int_equal(more[i].start_ps, 5007);
		assert_int_equal(more[i].connection, m[i].connection);
		assert_int_equal(more[i].src, m[i].src);
		assert_false(m[i].last);
		assert_true(more[i].last);
	}
	workload_free(w);
}

TEST(a_part_cannot_wait_for_what_never_ends_or_comes_later)
{
	struct workload_params p = {.host_count = 4, .bytes = 10, .senders = 1, .after_count = 1};
	struct workload *w = workload_create();
	struct text_error err;

	assert_int_equal(workload_add(w, "incast", &p, &err), -EINVAL);
	p.after_count = 0;
	p.connections_of = 1;
	assert_int_equal(workload_add(w, "incast", &p, &err), -EINVAL);
	p.connections_of = 0;
	assert_int_equal(workload_add(w, "staircase", &p, &err), 0);
	p.after_count = 1;
	assert_int_equal(workload_add(w, "incast", &p, &err), -EINVAL);
	assert_non_null(strstr(err.message, "whose end is not known"));
	workload_free(w);
}

/* A part's draws do not depend on which other kinds are beside it; two of a kind differ. */
TEST(parts_draw_for_themselves)
{
	struct workload_params p = {.host_count = 64, .bytes = 10, .seed = 5};
	uint32_t alone[64], first[64], second[64];
	struct text_error err;
	struct message m;
	struct workload *w = made("permutation", p);

	while (workload_next(w, &m))
		alone[m.src] = m.dst;
	workload_free(w);
	w = workload_create();
	assert_int_equal(workload_add(w, "incast", &p, &err), 0);
	assert_int_equal(workload_add(w, "permutation", &p, &err), 0);
	assert_int_equal(workload_add(w, "permutation", &p, &err), 0);
	while (workload_next(w, &m))
		if (m.part)
			(m.part == 1 ? first : second)[m.src] = m.dst;
	workload_free(w);
	assert_memory_equal(alone, first, sizeof(alone));
	assert_memory_not_equal(first, second, sizeof(first));
}

TEST(the_same_seed_gives_the_same_messages_on_every_machine)
{
	struct text_error err;
	struct cdf cdf;

	assert_int_equal(cdf_builtin(&cdf, "WebSearch", &err), 0);

	const struct {
		const char *kind;
		struct workload_params p;
		uint64_t hash;
	} rows[] = {
		{"incast", {.host_count = 9, .bytes = 5, .jitter_ps = US}, 0x9eabc769c65a74c0},
		{"permutation", {.host_count = 100, .bytes = 5}, 0x82e49771ca771c84},
		{"all-to-all",
		 {.host_count = 20, .bytes = 500, .order = WORKLOAD_RANDOM, .active_max = 2},
		 0x93edd536780c5ef3},
		{"moe", {.host_count = 20, .bytes = 12345678, .zipf_milli = 1234, .combine = true}, 0xf24ebebf814df0c2},
		{"poisson",
		 {.host_count = 50, .cdf = &cdf, .rate_bps = 100 * GBPS, .load_ppm = 300000, .count_max = 10000},
		 0x12db6ce5fb523c4c},
		{"poisson-incast",
		 {.host_count = 50, .senders = 9, .bytes = 9999, .rate_bps = GBPS, .load_ppm = 1000, .count_max = 1000},
		 0x5377d988910bc3df},
	};
	bool wrong = false;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct workload_params p = rows[i].p;
		uint64_t hashes[3];

		for (int k = 0; k < 3; k++) {
			p.seed = k < 2 ? 2026 : 2027;

			struct run r = ran(rows[i].kind, p);

			hashes[k] = hash_of(&r);
			run_free(&r);
		}
		assert_int_equal(hashes[0], hashes[1]);
		assert_int_not_equal(hashes[0], hashes[2]);
		if (hashes[0] != rows[i].hash) {
			print_message("%s: 0x%016llx\n", rows[i].kind, (unsigned long long)hashes[0]);
			wrong = true;
		}
	}
	cdf_free(&cdf);
	assert_false(wrong);
}

TEST(impossible_parameters_are_refused_with_the_reason)
{
	static const struct workload_pair beyond[] = {{0, 1}, {3, 4}}, to_itself[] = {{3, 3}};
	static const uint32_t twice[] = {1, 2, 1};
	static struct cdf none;
	static const struct {
		const char *kind;
		struct workload_params p;
		const char *says;
	} rows[] = {
		{"storm", {0}, "allowed are incast"},
		{"incast", {.bytes = 1}, "hosts is 0; allowed are 2 to"},
		{"incast", {.host_count = 1, .bytes = 1}, "hosts is 1"},
		{"incast", {.host_count = UINT32_MAX, .bytes = 1}, "hosts is 4294967295"},
		{"incast", {.host_count = 4}, "bytes is 0"},
		{"incast", {.host_count = 4, .bytes = UINT64_MAX}, "bytes is 18446744073709551615"},
		{"incast", {.host_count = 4, .bytes = 1, .target = 4}, "target is 4; allowed are 0 to 3"},
		{"incast", {.host_count = 4, .bytes = 1, .senders = UINT32_MAX}, "senders is"},
		{"incast", {.host_count = 4, .bytes = 1, .jitter_ps = UINT64_MAX}, "jitter, ps, is"},
		{"incast", {.host_count = 4, .bytes = 1, .start_ps = UINT64_MAX}, "start, ps, is"},
		{"incast", {.host_count = 3, .hosts = twice, .bytes = 1}, "host 1 is named twice"},
		{"permutation", {.host_count = 4}, "bytes is 0"},
		{"victim", {.host_count = 4, .bytes = 1, .victim_bytes = 1}, "are both 0"},
		{"victim", {.host_count = 4, .bytes = 1, .victim_bytes = 1, .victim_src = 1}, "is the incast's target"},
		{"victim",
		 {.host_count = 4, .bytes = 1, .victim_bytes = 1, .victim_dst = 1, .victim_src = 2, .senders = 2},
		 "2 senders; 1 hosts are left"},
		{"all-to-all", {.host_count = 4, .bytes = 3}, "bytes is 3; allowed are 4 to"},
		{"all-to-all", {.host_count = 4, .bytes = 4, .order = 7}, "order is 7"},
		{"moe", {.host_count = 4, .bytes = 4, .zipf_milli = 8001}, "zipf exponent"},
		{"ring", {.host_count = 4, .bytes = 7, .rings = 2}, "bytes is 7; allowed are 8 to"},
		{"ring", {.host_count = 4, .bytes = 7000, .rings = 1025}, "rings is 1025"},
		{"halving-doubling", {.host_count = 6, .bytes = 100}, "6 hosts; halving-doubling needs"},
		{"tree", {.host_count = 4, .bytes = 2, .chunks = 3}, "bytes is 2"},
		{"tree", {.host_count = 4, .bytes = 2, .chunks = UINT32_MAX}, "chunks is"},
		{"poisson", {.host_count = 4}, "no distribution"},
		{"poisson", {.host_count = 4, .cdf = &none}, "no distribution"},
		{"poisson-incast", {.host_count = 4, .bytes = 1, .senders = 4}, "senders is 4"},
		{"poisson-incast", {.host_count = 4, .bytes = 1, .senders = 1}, "rate, bit/s, is 0"},
		{"poisson-incast",
		 {.host_count = 4, .bytes = 1, .senders = 1, .rate_bps = GBPS},
		 "load, millionths, is 0"},
		{"poisson-incast",
		 {.host_count = 4, .bytes = 1ull << 44, .senders = 1, .rate_bps = GBPS / 1000, .load_ppm = 1},
		 "mean gap"},
		{"poisson-incast",
		 {.host_count = 4, .bytes = 1ull << 44, .senders = 2, .rate_bps = GBPS, .load_ppm = 1},
		 "together they may have"},
		{"staircase", {.host_count = 4, .bytes = 1}, "senders is 0"},
		{"staircase",
		 {.host_count = 4, .bytes = 1, .senders = 3, .interval_ps = 10, .end_ps = 39},
		 "end, ps, is 39; allowed are 40 to"},
		{"many-qps", {.host_count = 4}, "connections and senders is 0"},
		{"many-qps", {.host_count = 4, .connections = 3, .idle = 4}, "idle is 4"},
		{"pairs", {.host_count = 4, .bytes = 1}, "pairs is 0"},
		{"pairs", {.host_count = 4, .bytes = 1, .pairs = beyond, .pair_count = 2}, "a receiver is 4"},
		{"pairs", {.host_count = 5, .bytes = 1, .pairs = to_itself, .pair_count = 1}, "host 3 is to send to"},
		{"hpcc-flows", {0}, "the text ends"},
		{"htsim-matrix", {0}, "Nodes and Connections"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct workload *w = workload_create();
		struct text_error err = {0};
		struct message m;

		assert_int_equal(workload_add(w, rows[i].kind, &rows[i].p, &err), -EINVAL);
		if (!strstr(err.message, rows[i].says))
			fail_msg("row %zu: '%s' does not say '%s'", i, err.message, rows[i].says);
		assert_false(workload_next(w, &m));
		workload_free(w);
	}
}

TEST(every_kind_that_is_listed_is_known)
{
	for (int i = 0; workload_kind(i); i++) {
		struct workload *w = workload_create();
		struct workload_params p = {0};
		struct text_error err = {0};

		assert_int_equal(workload_add(w, workload_kind(i), &p, &err), -EINVAL);
		assert_null(strstr(err.message, "no workload is called"));
		workload_free(w);
	}
}
