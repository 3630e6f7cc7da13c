/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>

#include "support/test.h"
#include "support/workload_run.h"

TEST(a_poisson_load_is_what_was_asked_for)
{
	static const struct {
		const char *cdf;
		uint32_t load_ppm;
		uint64_t ms, percent;
	} rows[] = {
		{"WebSearch", 300000, 200, 2},
		{"WebSearch", 500000, 200, 2},
		{"FB_Hadoop", 300000, 20, 3},
		{"AliStorage2019", 800000, 4, 3},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct text_error err;
		struct cdf cdf;
		struct message m;
		uint64_t bytes = 0, last = 0, want;

		assert_int_equal(cdf_builtin(&cdf, rows[i].cdf, &err), 0);

		struct workload *w = made("poisson", (struct workload_params){.host_count = 320,
									      .seed = 42,
									      .cdf = &cdf,
									      .rate_bps = 100 * GBPS,
									      .load_ppm = rows[i].load_ppm,
									      .end_ps = rows[i].ms * MS});

		cdf_free(&cdf);
		while (workload_next(w, &m)) {
			assert_true(m.src < 320 && m.dst < 320 && m.src != m.dst);
			assert_true(m.start_ps >= last && m.start_ps < rows[i].ms * MS);
			assert_true(m.bytes > 0);
			last = m.start_ps;
			bytes += m.bytes;
		}
		want = 320ull * 100 * GBPS / 8 * rows[i].ms / 1000 / 1000000 * rows[i].load_ppm;
		assert_in_range(bytes, want - want * rows[i].percent / 100, want + want * rows[i].percent / 100);
		workload_free(w);
	}
}

TEST(poisson_gaps_are_exponential_and_destinations_uniform)
{
	enum { N = 8, COUNT = 80000, MEAN = 80000 /* ps: 1000 B at 100 Gbit/s */ };
	struct cdf cdf;
	uint64_t last[N] = {0}, to[N] = {0}, longer[4] = {0}, gaps = 0;
	struct text_error err;
	struct message m;

	assert_int_equal(cdf_read(&cdf, "1000 100\n", 9, &err), 0);

	struct workload *w = made("poisson", (struct workload_params){.host_count = N,
								      .seed = 7,
								      .cdf = &cdf,
								      .rate_bps = 100 * GBPS,
								      .load_ppm = 1000000,
								      .count_max = COUNT});

	while (workload_next(w, &m)) {
		uint64_t gap = m.start_ps - last[m.src];

		for (uint64_t k = 0; k < 4; k++)
			longer[k] += gap > k * MEAN;
		gaps++;
		last[m.src] = m.start_ps;
		to[(m.dst - m.src + N) % N]++;
		assert_int_equal(m.bytes, 1000);
	}
	assert_int_equal(gaps, COUNT);
	/* e^-1, e^-2, e^-3 of them. */
	assert_in_range(longer[1], 29430 - 500, 29430 + 500);
	assert_in_range(longer[2], 10827 - 400, 10827 + 400);
	assert_in_range(longer[3], 3983 - 250, 3983 + 250);
	assert_int_equal(to[0], 0);
	for (int i = 1; i < N; i++)
		assert_in_range(to[i], COUNT / 7 - 400, COUNT / 7 + 400);
	cdf_free(&cdf);
	workload_free(w);
}

TEST(another_host_changes_no_ones_gaps_and_sizes)
{
	enum { COUNT = 5000, HOSTS = 10 };
	static struct message a[COUNT], b[COUNT];
	uint32_t common = 0;
	struct text_error err;
	struct cdf cdf;

	assert_int_equal(cdf_builtin(&cdf, "FB_Hadoop", &err), 0);
	for (int i = 0; i < 2; i++) {
		struct workload *w = made("poisson", (struct workload_params){.host_count = HOSTS + i,
									      .seed = 3,
									      .cdf = &cdf,
									      .rate_bps = GBPS,
									      .load_ppm = 500000,
									      .count_max = COUNT});

		for (int k = 0; k < COUNT; k++)
			assert_true(workload_next(w, i ? &b[k] : &a[k]));
		workload_free(w);
	}
	/*
	 * The k-th message of a host is the same in both, except for its destination and its
	 * number.
	 */
	for (uint32_t h = 0; h < HOSTS; h++)
		for (uint32_t i = 0, j = 0; i < COUNT && j < COUNT; i++, j++) {
			while (i < COUNT && a[i].src != h)
				i++;
			while (j < COUNT && b[j].src != h)
				j++;
			if (i == COUNT || j == COUNT)
				break;
			assert_int_equal(a[i].start_ps, b[j].start_ps);
			assert_int_equal(a[i].bytes, b[j].bytes);
			common++;
		}
	assert_true(common > 4000);
	cdf_free(&cdf);
}

TEST(repeated_incasts_add_the_load_asked_for)
{
	/* 60 x 500 KB at 2 % of 320 hosts' 100 Gbit/s: one each 375 us. */
	struct workload *w = made("poisson-incast", (struct workload_params){.host_count = 320,
									     .senders = 60,
									     .bytes = 500000,
									     .seed = 9,
									     .rate_bps = 100 * GBPS,
									     .load_ppm = 20000,
									     .end_ps = 1000 * MS});
	struct message m;
	uint64_t bytes = 0, want = 320ull * 100 * GBPS / 8 / 50, incast = UINT64_MAX, at = 0;
	bool senders[320];
	uint32_t target = 0;

	while (workload_next(w, &m)) {
		if (m.number / 60 != incast) {
			incast = m.number / 60;
			target = m.dst;
			at = m.start_ps;
			memset(senders, 0, sizeof(senders));
		}
		assert_int_equal(m.dst, target);
		assert_int_equal(m.start_ps, at);
		assert_false(senders[m.src]);
		senders[m.src] = true;
		bytes += m.bytes;
	}
	assert_in_range(bytes, want * 95 / 100, want * 105 / 100);
	workload_free(w);
}
