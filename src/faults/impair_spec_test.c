/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "faults/script.h"
#include "support/test.h"

enum { MS = 1000000 };

TEST(good_specifications_are_read)
{
	static const struct {
		const char *text;
		struct impair_config want;
	} rows[] = {
		{"", {.limit = 8192, .seed = 1}},
		{"drop=1%,dup=0.5%,reorder=2%,corrupt=0.1%,delay=5ms,jitter=1ms,rate=1G,seed=42",
		 {.drop = 0.01,
		  .dup = 0.005,
		  .reorder = 0.02,
		  .corrupt = 0.001,
		  .delay_ns = 5 * MS,
		  .jitter_ns = MS,
		  .rate_bps = 1000000000,
		  .limit = 8192,
		  .seed = 42}},
		{"drop=1e-3", {.drop = 0.001, .limit = 8192, .seed = 1}},
		{"drop=.5", {.drop = 0.5, .limit = 8192, .seed = 1}},
		{"drop=0.1", {.drop = 0.1, .limit = 8192, .seed = 1}},
		{"delay=1.5e1ms", {.delay_ns = 15000000, .limit = 8192, .seed = 1}},
		{"delay=0.4ns,jitter=0.5ns", {.jitter_ns = 1, .limit = 8192, .seed = 1}},
		{"rate=10T", {.rate_bps = 10000000000000, .limit = 8192, .seed = 1}},
		{"rate=1500", {.rate_bps = 1500, .limit = 8192, .seed = 1}},
		{"rate=25Gbps", {.rate_bps = 25000000000, .limit = 8192, .seed = 1}},
		{"seed=0x1F", {.limit = 8192, .seed = 31}},
		{"seed=010", {.limit = 8192, .seed = 10}},
		{"drop=0.25", {.drop = 0.25, .limit = 8192, .seed = 1}},
		{"drop=100%", {.drop = 1, .limit = 8192, .seed = 1}},
		{"drop=1%,burst=16", {.drop = 0.01, .burst = 16, .limit = 8192, .seed = 1}},
		{"ce=3%", {.ce = 0.03, .limit = 8192, .seed = 1}},
		{"delay=0", {.limit = 8192, .seed = 1}},
		{"delay=1.5us", {.delay_ns = 1500, .limit = 8192, .seed = 1}},
		{"delay=2s", {.delay_ns = 2000000000, .limit = 8192, .seed = 1}},
		{"rate=64k,limit=10", {.rate_bps = 64000, .limit = 10, .seed = 1}},
		{"rate=2.5M", {.rate_bps = 2500000, .limit = 8192, .seed = 1}},
		{"seed=0xffffffffffffffff", {.limit = 8192, .seed = UINT64_MAX}},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct impair_config got;
		char why[256] = "";

		if (impair_parse(rows[i].text, &got, why, sizeof(why)) != 0)
			fail_msg("%s: %s", rows[i].text, why);
		assert_true(fabs(got.drop - rows[i].want.drop) < 1e-12);
		assert_true(fabs(got.dup - rows[i].want.dup) < 1e-12);
		assert_true(fabs(got.reorder - rows[i].want.reorder) < 1e-12);
		assert_true(fabs(got.corrupt - rows[i].want.corrupt) < 1e-12);
		assert_true(fabs(got.ce - rows[i].want.ce) < 1e-12);
		assert_int_equal(got.delay_ns, rows[i].want.delay_ns);
		assert_int_equal(got.jitter_ns, rows[i].want.jitter_ns);
		assert_int_equal(got.rate_bps, rows[i].want.rate_bps);
		assert_int_equal(got.burst, rows[i].want.burst);
		assert_int_equal(got.limit, rows[i].want.limit);
		assert_int_equal(got.seed, rows[i].want.seed);
	}
}

TEST(bad_specifications_are_explained)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{"drop", "\"drop\" is not key=value"},
		{"drop=1%,", "\"\" is not key=value"},
		{",", "is not key=value"},
		{"lose=1%", "\"lose\" is not a key; the keys are drop, burst, dup, reorder, corrupt, ce, delay"},
		{"drop=2", "drop=2: must be a probability: 0 to 1, or 0% to 100%"},
		{"drop=101%", "drop=101%: must be"},
		{"drop=-1", "drop=-1: must be"},
		{"drop=nan", "drop=nan: must be"},
		{"drop=inf", "drop=inf: must be"},
		{"drop=0x1", "drop=0x1: must be"},
		{"drop= 1", "drop= 1: must be"},
		{"drop=1%x", "drop=1%x: must be"},
		{"drop=", "drop=: must be"},
		{"ce=2", "ce=2: must be a probability: 0 to 1, or 0% to 100%"},
		{"drop=1%,drop=2%", "drop is given twice"},
		{"delay=5", "delay=5: must be a time up to 60s with its unit: ns, us, ms or s"},
		{"delay=61s", "delay=61s: must be"},
		{"jitter=1h", "jitter=1h: must be"},
		{"rate=0", "rate=0: must be bits a second, 1k to 10T, with k, M, G or T"},
		{"rate=1Gbit", "rate=1Gbit: must be"},
		{"rate=1e30", "rate=1e30: must be"},
		{"seed=0x", "seed=0x: must be"},
		{"burst=0", "burst=0: must be packets, 1 to 1000000"},
		{"burst=1000001", "burst=1000001: must be packets"},
		{"limit=0", "limit=0: must be packets, 1 to 65536"},
		{"limit=65537", "limit=65537: must be"},
		{"seed=-1", "seed=-1: must be"},
		{"seed=18446744073709551616", "must be an unsigned 64-bit integer"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct impair_config got = {.limit = 77};
		char why[256] = "";

		assert_int_equal(impair_parse(rows[i].text, &got, why, sizeof(why)), -EINVAL);
		if (!strstr(why, rows[i].says))
			fail_msg("%s: \"%s\" does not say \"%s\"", rows[i].text, why, rows[i].says);
		assert_int_equal(got.limit, 77);
	}
}
