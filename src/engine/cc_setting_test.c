/* SPDX-License-Identifier: BSD-2-Clause */
/* VERBENA_CC: which values are accepted; an error names the mistake and what is allowed. */
#include "engine/cc_setting.h"
#include "support/test.h"

#include <errno.h>
#include <stdio.h>

static struct cc_setting parsed(const char *text)
{
	struct cc_setting s;
	char why[512] = "";

	memset(&s, 0x5a, sizeof(s));
	if (cc_setting_parse(text, &s, why, sizeof(why)))
		fail_msg("%s: %s", text, why);
	return s;
}

TEST(every_algorithm_that_needs_no_telemetry_is_taken_by_name)
{
	for (int i = 0; i < CC_ALGORITHMS; i++) {
		enum cc_algorithm a = (enum cc_algorithm)i;
		struct cc_setting s;
		char why[512] = "";
		int rc = cc_setting_parse(cc_name(a), &s, why, sizeof(why));

		if (cc_needs_int(a)) {
			assert_int_equal(rc, -EINVAL);
			assert_non_null(strstr(why, "needs telemetry (INT)"));
			assert_null(strstr(why, "hpcc,"));
			continue;
		}
		assert_int_equal(rc, 0);
		assert_true(s.given);
		assert_int_equal(s.params.algorithm, a);
	}
}

TEST(every_preset_is_taken)
{
	size_t n;
	const struct cc_preset_info *p = cc_presets_table(&n);

	for (; n--; p++) {
		struct cc_params expected;
		struct cc_setting s;
		char text[128];

		if (cc_needs_int(p->algorithm))
			continue;
		snprintf(text, sizeof(text), "%s:%s", cc_name(p->algorithm), p->name);
		cc_params_default(&expected, p->algorithm);
		assert_int_equal(cc_params_preset(&expected, p->name), 0);
		s = parsed(text);
		assert_memory_equal(&s.params, &expected, sizeof(expected));
	}
}

TEST(parameters_come_on_top_of_the_preset)
{
	struct cc_setting s = parsed("dcqcn_fw:connectx,rate_ai=7Mbps,loss=halve,window=on");

	assert_int_equal(s.params.dcqcn_fw.rate_ai, 7000000);
	assert_int_equal(s.params.rate_min, parsed("dcqcn_fw:connectx").params.rate_min);
	assert_int_equal(s.params.loss, CC_LOSS_HALVE);
	assert_true(s.params.window);
	assert_int_equal(parsed("swift,swift.base=30us").params.swift.base_ns, 30000);
	assert_int_equal(parsed("swift:default").params.swift.base_ns, 0);
}

TEST(delay_is_that_of_hosts_unless_a_preset_is_named)
{
	struct cc_params own;

	cc_params_default(&own, CC_TIMELY);
	assert_int_equal(parsed("timely").params.timely.t_low, 2000000);
	assert_int_equal(parsed("timely").params.timely.t_high, 10000000);
	assert_int_equal(parsed("timely,t_high=7ms").params.timely.t_high, 7000000);
	assert_int_equal(parsed("timely:default").params.timely.t_low, own.timely.t_low);
	assert_int_equal(parsed("timely:authors").params.timely.t_low, 50000);
	assert_int_equal(parsed("timely_patched").params.timely.min_rtt, 2000000);
	assert_int_equal(parsed("rttcc").params.rttcc.max_delay_ns, 10000000);
	assert_int_equal(parsed("rttcc:default").params.rttcc.max_delay_ns, 150000);
}

TEST(auto_is_no_algorithm)
{
	assert_false(parsed("auto").given);
}

TEST(swift_has_a_target_if_one_was_named)
{
	static const struct {
		const char *text;
		bool has;
	} rows[] = {
		{"auto", false},         {"swift", false},
		{"swift:plain", false},  {"swift,beta=0.5", false},
		{"swift:htsim", true},   {"swift,base=30us", true},
		{"swift,base=0", false}, {"swift,base_slack=50us", true},
		{"dctcp", false},        {"timely", false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cc_setting s = parsed(rows[i].text);

		if (cc_setting_has_target(&s) != rows[i].has)
			fail_msg("%s", rows[i].text);
	}
}

TEST(mistakes_are_named_with_what_is_allowed)
{
	static const struct {
		const char *text;
		const char *told;
	} rows[] = {
		{"", "no congestion control ''; allowed is one of auto, none, swift, dctcp, dcqcn, dcqcn_fw, timely"},
		{"cubic", "no congestion control 'cubic'; allowed is one of auto, none, swift"},
		{"SWIFT", "no congestion control 'SWIFT'"},
		{" swift", "no congestion control ' swift'"},
		{"swift ", "no congestion control 'swift '"},
		{"auto:x", "no congestion control 'auto'"},
		{"auto,g=1", "no congestion control 'auto'"},
		{",swift", "no congestion control ''"},
		{"hpcc", "hpcc needs telemetry (INT)"},
		{"hpcc:paper,eta=0.9", "hpcc needs telemetry (INT)"},
		{"dcqcn:connectx", "dcqcn has no preset 'connectx'; allowed is one of default, paper, authors-sim"},
		{"dcqcn:", "dcqcn has no preset ''"},
		{"dcqcn,", "'' is not of the form parameter=value; allowed is one of window, loss, rate_min, "},
		{"dcqcn,paper", "'paper' is not of the form parameter=value"},
		{"dcqcn,base=30us", "dcqcn has no parameter 'base'; allowed is one of window, loss, rate_min, "},
		{"dcqcn,=1", "dcqcn has no parameter ''"},
		{"dcqcn, f=5", "dcqcn has no parameter ' f'"},
		{"swift,base=30", "base=30: allowed is a time such as 50us from 0 to 1s"},
		{"swift,base=", "base=: allowed is a time"},
		{"swift,base=2s", "base=2s: allowed is a time such as 50us from 0 to 1s"},
		{"swift,base=1us,base=2us", "base is given twice"},
		{"swift,base=1us,swift.base=2us", "swift.base is given twice"},
		{"swift,doubling=yes", "doubling=yes: allowed is on or off"},
		{"swift,loss=nothing", "loss=nothing: allowed is one of own|ignore|cnp|halve"},
		{"dcqcn,f=1.5", "f=1.5: allowed is a whole number from "},
		{"dcqcn,rate_ai=40", "rate_ai=40: allowed is a rate such as 40Mbps from "},
		{"dcqcn,g=2", "g=2: allowed is a ratio such as 0.5 or 1/16 from "},
		{"dcqcn,bytes=10", "bytes=10: allowed is a size such as 10KB from "},
		{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		 "no algorithm has so long a name; allowed is one of "},
		{"swift,aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa=1",
		 "swift has no parameter 'aaa"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cc_setting s = {.given = true, .params = {.rate_min = 77}};
		char why[512] = "";

		assert_int_equal(cc_setting_parse(rows[i].text, &s, why, sizeof(why)), -EINVAL);
		if (!strstr(why, rows[i].told))
			fail_msg("%s: told '%s', not '%s'", rows[i].text, why, rows[i].told);
		assert_int_equal(s.params.rate_min, 77);
	}
}

TEST(a_small_buffer_holds_the_beginning_of_the_sentence)
{
	struct cc_setting s;
	char why[20];

	for (size_t n = 1; n < sizeof(why); n++) {
		memset(why, 'x', sizeof(why));
		assert_int_equal(cc_setting_parse("cubic", &s, why, n), -EINVAL);
		assert_int_equal(strlen(why), n - 1);
		assert_int_equal(why[n], 'x');
	}
}
