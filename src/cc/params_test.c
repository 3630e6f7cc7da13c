/* SPDX-License-Identifier: BSD-2-Clause */
#include "cc/params.h"

#include <errno.h>

#include "cc/relative.h"
#include "support/test.h"

static enum cc_algorithm one_of(uint32_t algorithms)
{
	for (enum cc_algorithm a = CC_NONE; a < CC_ALGORITHMS; a++) {
		if (algorithms >> a & 1)
			return a;
	}
	fail_msg("a parameter of nothing");
	return CC_NONE;
}

TEST(the_table_tells_the_defaults_that_the_algorithms_have)
{
	size_t n;
	const struct cc_param_info *p = cc_params_table(&n);

	for (size_t i = 0; i < n; i++) {
		for (enum cc_algorithm a = CC_NONE; a < CC_ALGORITHMS; a++) {
			struct cc_params before, after;

			if (!(p[i].algorithms >> a & 1))
				continue;
			cc_params_default(&before, a);
			after = before;
			if (cc_params_set(&after, p[i].name, p[i].value_default))
				fail_msg("%s=%s is refused", p[i].name, p[i].value_default);
			if (memcmp(&before, &after, sizeof(before)))
				fail_msg("%s: %s is not the default", p[i].name, p[i].value_default);
		}
	}
}

TEST(bounds_are_taken_and_lie_in_order)
{
	size_t n;
	const struct cc_param_info *p = cc_params_table(&n);

	for (size_t i = 0; i < n; i++) {
		struct cc_params params;

		assert_true(*p[i].help && *p[i].unit && p[i].algorithms);
		if (!*p[i].value_min)
			continue;
		cc_params_default(&params, one_of(p[i].algorithms));
		assert_int_equal(cc_params_set(&params, p[i].name, p[i].value_min), 0);
		assert_int_equal(cc_params_set(&params, p[i].name, p[i].value_max), 0);
	}
}

TEST(values_are_taken_exactly)
{
	struct cc_params p;

	cc_params_default(&p, CC_DCQCN_FW);
	assert_int_equal(cc_params_set(&p, "dcqcn_fw.t_inc", "300us"), 0);
	assert_int_equal(p.dcqcn_fw.t_inc_ns, 300000);
	assert_int_equal(cc_params_set(&p, "t_inc", "12.24us"), 0);
	assert_int_equal(p.dcqcn_fw.t_inc_ns, 12240);
	assert_int_equal(cc_params_set(&p, "t_inc", "0.000001s"), 0);
	assert_int_equal(p.dcqcn_fw.t_inc_ns, 1000);
	assert_int_equal(cc_params_set(&p, "rate_ai", "20Mbps"), 0);
	assert_int_equal(p.dcqcn_fw.rate_ai, 20000000);
	assert_int_equal(cc_params_set(&p, "rate_ai", "1.000000001Gbps"), 0);
	assert_int_equal(p.dcqcn_fw.rate_ai, 1000000001);
	assert_int_equal(cc_params_set(&p, "rate_ai", "line/1000"), 0);
	assert_int_equal(cc_rate_bps(p.dcqcn_fw.rate_ai, 25000000000), 25000000);
	assert_int_equal(cc_params_set(&p, "g", "5/1024"), 0);
	assert_int_equal(p.dcqcn_fw.g_q32, UINT64_C(5) << 22);
	assert_int_equal(cc_params_set(&p, "g", ".5"), 0);
	assert_int_equal(p.dcqcn_fw.g_q32, UINT64_C(1) << 31);
	assert_int_equal(cc_params_set(&p, "g", "1."), 0);
	assert_int_equal(p.dcqcn_fw.g_q32, UINT64_C(1) << 32);
	assert_int_equal(cc_params_set(&p, "clamp", "on"), 0);
	assert_true(p.dcqcn_fw.clamp);
	assert_int_equal(cc_params_set(&p, "window", "on"), 0);
	assert_true(p.window);
	assert_int_equal(cc_params_set(&p, "loss", "halve"), 0);
	assert_int_equal(p.loss, CC_LOSS_HALVE);
	assert_int_equal(cc_params_set(&p, "rate_min", "100Mbps"), 0);
	assert_int_equal(p.rate_min, 100000000);

	cc_params_default(&p, CC_HPCC);
	assert_int_equal(cc_params_set(&p, "hpcc.eta", "0.95"), 0);
	assert_int_equal(p.hpcc.eta_q32, 4080218931); /* to nearest */
	assert_int_equal(cc_params_set(&p, "hpcc.max_stage", "0"), 0);
	assert_int_equal(p.hpcc.max_stage, 0);
	assert_int_equal(cc_params_set(&p, "w_ai", "4KiB"), 0);
	assert_int_equal(p.hpcc.w_ai_bytes, 4096);
	assert_int_equal(cc_params_set(&p, "w_ai", "4KB"), 0);
	assert_int_equal(p.hpcc.w_ai_bytes, 4000);
	assert_int_equal(cc_params_set(&p, "t", "1.25rtt"), 0);
	assert_int_equal(cc_time_ns(p.hpcc.t, 12000), 15000);
	assert_int_equal(cc_params_set(&p, "t", "9us"), 0);
	assert_int_equal(cc_time_ns(p.hpcc.t, 12000), 9000);
}

TEST(what_is_no_value_is_refused_and_changes_nothing)
{
	static const struct {
		const char *name, *value;
	} bad[] = {
		{"hpcc.eta", ""},
		{"hpcc.eta", "."},
		{"hpcc.eta", "-1"},
		{"hpcc.eta", "0.95 "},
		{"hpcc.eta", "1/0"},
		{"hpcc.eta", "0.5/2"},
		{"hpcc.eta", "0"},
		{"hpcc.eta", "2.0001"},
		{"hpcc.eta", "1e3"},
		{"hpcc.eta", "0.95%"},
		{"hpcc.eta", "inf"},
		{"hpcc.max_stage", "1.0"},
		{"hpcc.max_stage", "1001"},
		{"hpcc.max_stage", "4294967296"},
		{"hpcc.max_stage", "18446744073709551616"},
		{"hpcc.t", "10"},
		{"hpcc.t", "0"},
		{"hpcc.t", "2s"},
		{"hpcc.t", "0rtt"},
		{"hpcc.t", "1001rtt"},
		{"hpcc.t", "1.5ns"},
		{"hpcc.t", "10 us"},
		{"hpcc.rate_ai", "50"},
		{"hpcc.rate_ai", "50mbps"},
		{"hpcc.rate_ai", "line/0"},
		{"hpcc.rate_ai", "line/"},
		{"hpcc.rate_ai", "line/1.5"},
		{"hpcc.rate_ai", "1001Gbps"},
		{"hpcc.rate_ai", "line/1000000001"},
		{"hpcc.w_ai", "1.5B"},
		{"window", "yes"},
		{"window", "o"},
		{"window", "offf"},
		{"loss", "ignor"},
		{"loss", ""},
		{"loss", "own|ignore"},
		{"eta2", "1"},
		{"", "1"},
		{".", "1"},
		{"hpcc.", "1"},
		{"hpcc", "1"},
		{".eta", "0.9"},
		{"dcqcn_fw.t_inc", "300us"},
		{"t_inc", "300us"},
		{"hpcc.window", "on"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct cc_params p, before;

		cc_params_default(&p, CC_HPCC);
		before = p;
		if (cc_params_set(&p, bad[i].name, bad[i].value) != -EINVAL)
			fail_msg("%s=%s was taken", bad[i].name, bad[i].value);
		assert_memory_equal(&p, &before, sizeof(p));
	}
}

TEST(every_preset_can_be_taken)
{
	size_t n;
	const struct cc_preset_info *preset = cc_presets_table(&n);

	for (size_t i = 0; i < n; i++) {
		struct cc_params p, q;
		const char *at = preset[i].values;

		cc_params_default(&p, preset[i].algorithm);
		q = p;
		assert_int_equal(cc_params_preset(&p, preset[i].name), 0);
		/* one by one by the way that a user has */
		while (*at) {
			char word[64] = {0};
			char *equals;

			strncpy(word, at, strcspn(at, " ") < 63 ? strcspn(at, " ") : 63);
			equals = strchr(word, '=');
			assert_non_null(equals);
			*equals = 0;
			assert_int_equal(cc_params_set(&q, word, equals + 1), 0);
			at += strcspn(at, " ");
			at += strspn(at, " ");
		}
		assert_memory_equal(&p, &q, sizeof(p));
	}
}

TEST(a_preset_is_of_an_algorithm_and_on_top_of_the_defaults)
{
	struct cc_params p, before;

	cc_params_default(&p, CC_HPCC);
	assert_int_equal(cc_params_set(&p, "flows", "7"), 0);
	before = p;
	assert_int_equal(cc_params_preset(&p, "connectx"), -EINVAL);
	assert_memory_equal(&p, &before, sizeof(p));
	assert_int_equal(cc_params_preset(&p, "hpcc-eval"), 0);
	assert_int_equal(p.hpcc.max_stage, 0);
	assert_int_equal(p.hpcc.flows, 100);
	assert_int_equal(cc_params_preset(&p, "default"), 0);
	cc_params_default(&before, CC_HPCC);
	assert_memory_equal(&p, &before, sizeof(p));
}

TEST(receivers_are_told_how_often)
{
	struct cc_params p;

	cc_params_default(&p, CC_DCQCN);
	assert_int_equal(cc_params_cnp_gap_ns(&p), 50000);
	assert_int_equal(cc_params_set(&p, "t_cnp", "7us"), 0);
	assert_int_equal(cc_params_cnp_gap_ns(&p), 7000);
	cc_params_default(&p, CC_DCQCN_FW);
	assert_int_equal(cc_params_cnp_gap_ns(&p), 0);
	assert_int_equal(cc_params_preset(&p, "connectx"), 0);
	assert_int_equal(cc_params_cnp_gap_ns(&p), 4000);
	cc_params_default(&p, CC_RTTCC);
	assert_int_equal(cc_params_cnp_gap_ns(&p), 50000);
}
