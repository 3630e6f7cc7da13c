/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of parameters, and the parser that uses it. Defaults and bounds are text in the table
 * and go through the same parser; the test compares the defaults with the numbers in the
 * algorithms' files.
 */
#include "cc/params.h"

#include <errno.h>
#include <string.h>

#include "base/quantity.h"
#include "cc/relative.h"

enum kind {
	KIND_RATIO, /* u64, Q32 */
	KIND_SMALL, /* a ratio in u32, Q16 */
	KIND_COUNT, /* u32 */
	KIND_TIME,  /* u64, ns or base RTTs */
	KIND_NS,    /* u64, ns and nothing else */
	KIND_RATE,  /* u64, bit/s or a part of the line */
	KIND_BYTES, /* u64 */
	KIND_SWITCH,
	KIND_CHOICE, /* u32, index of the word in the unit */
	KINDS
};

#define ONLY(algorithm) (UINT32_C(1) << (algorithm))
#define SWIFT           ONLY(CC_SWIFT)
#define DCTCP           ONLY(CC_DCTCP)
#define DCQCN_FW        ONLY(CC_DCQCN_FW)
#define DCQCN           ONLY(CC_DCQCN)
#define HPCC            ONLY(CC_HPCC)
#define PATCHED         ONLY(CC_TIMELY_PATCHED)
#define TIMELY          (ONLY(CC_TIMELY) | PATCHED)
#define RTTCC           ONLY(CC_RTTCC)
#define DELIVERY        ONLY(CC_DELIVERY)
#define ALL             ((UINT32_C(1) << CC_ALGORITHMS) - 1)

#define ROW_OF(member, kind_, unit_, name_, default_, min_, max_, algorithms_, help_)                                 \
	{                                                                                                             \
		.name = name_, .unit = unit_, .value_default = default_, .value_min = min_, .value_max = max_,        \
		.help = help_, .algorithms = algorithms_, .kind = kind_, .offset = offsetof(struct cc_params, member) \
	}
#define RATIO(member, ...) ROW_OF(member, KIND_RATIO, "ratio", __VA_ARGS__)
#define SMALL(member, ...) ROW_OF(member, KIND_SMALL, "ratio", __VA_ARGS__)
#define COUNT(member, ...) ROW_OF(member, KIND_COUNT, "count", __VA_ARGS__)
#define TIME(member, ...)  ROW_OF(member, KIND_TIME, "time", __VA_ARGS__)
#define NS(member, ...)    ROW_OF(member, KIND_NS, "time", __VA_ARGS__)
#define RATE(member, ...)  ROW_OF(member, KIND_RATE, "rate", __VA_ARGS__)
#define BYTES(member, ...) ROW_OF(member, KIND_BYTES, "bytes", __VA_ARGS__)
#define SWITCH(member, name_, default_, algorithms_, help_) \
	ROW_OF(member, KIND_SWITCH, "switch", name_, default_, "", "", algorithms_, help_)
#define CHOICE(member, words, name_, default_, algorithms_, help_) \
	ROW_OF(member, KIND_CHOICE, words, name_, default_, "", "", algorithms_, help_)

/* clang-format off */
static const struct cc_param_info table[] = {
	SWITCH(window, "window", "off", ALL,
	       "a window that shrinks with the rate (+w), where a rate is set"),
	CHOICE(loss, "own|ignore|cnp|halve", "loss", "own", ALL,
	       "what a loss is: the algorithm's own idea, nothing if a SACK hole, a CNP, a half"),
	RATE(rate_min, "rate_min", "0", "0", "1000Gbps", ALL,
	     "no rate is lower; times the flows it must stay below the link; 0: the algorithm's own"),

	CHOICE(rxshare, "crowd|on|off", "rxshare", "crowd", ALL,
	       "to whom a veRoCE receiver tells an equal rate, which holds beside the window: a crowd, all that send, nobody"),

	SMALL(swift.ai_q16, "swift.ai", "1", "0.001", "1000", SWIFT,
	      "additive increase, packets a round trip"),
	RATIO(swift.beta_q32, "swift.beta", "0.8", "0", "1", SWIFT,
	      "how hard delay over target is answered"),
	RATIO(swift.max_mdf_q32, "swift.max_mdf", "0.5", "0.01", "0.99", SWIFT,
	      "the largest share that one cut takes"),
	NS(swift.base_ns, "swift.base", "0", "0", "1s", SWIFT,
	   "base target; 0: base RTT + base_slack"),
	NS(swift.base_slack_ns, "swift.base_slack", "3us", "0", "1s", SWIFT,
	   "target above the base RTT"),
	NS(swift.hop_ns, "swift.hop", "1500ns", "0", "1ms", SWIFT,
	   "target for each switch passed"),
	NS(swift.fs_range_ns, "swift.fs_range", "0", "0", "1s", SWIFT,
	   "most that flow scaling adds to the target; 0: fs_factor x base"),
	RATIO(swift.fs_range_q32, "swift.fs_factor", "2", "0", "1000", SWIFT,
	      "flow scaling's range, of the base target"),
	RATIO(swift.fs_min_q32, "swift.fs_min", "0.1", "0.001", "1", SWIFT,
	      "window in packets at which scaling adds its whole range"),
	RATIO(swift.fs_max_q32, "swift.fs_max", "100", "1.5", "1000000", SWIFT,
	      "window in packets at which scaling adds nothing"),
	COUNT(swift.retx_reset, "swift.retx_reset", "5", "1", "255", SWIFT,
	      "timeouts in a row after which the window falls to its least"),
	NS(swift.host_target_ns, "swift.host_target", "100us", "1us", "1s", SWIFT,
	   "delay that the hosts may add"),
	SWITCH(swift.doubling, "swift.doubling", "on", SWIFT,
	       "begin with a window that doubles a round trip"),
	COUNT(swift.hyper_rounds, "swift.hyper_rounds", "5", "0", "255", SWIFT,
	      "calm rounds until the increase becomes a share of the window; 0: never"),
	COUNT(swift.hyper_shift, "swift.hyper_shift", "3", "1", "16", SWIFT,
	      "... of 1/2^n a round trip"),
	RATIO(swift.cnp_mdf_q32, "swift.cnp_mdf", "0.125", "0", "0.99", SWIFT,
	      "share that a CNP takes"),
	SWITCH(swift.one_way, "swift.one_way", "off", SWIFT,
	       "queues on the way back do not count, over veRoCE and while both hosts' clocks run alike"),

	RATIO(dctcp.g_q32, "dctcp.g", "1/16", "1/65536", "1", DCTCP, "gain of alpha"),
	RATIO(dctcp.alpha_start_q32, "dctcp.alpha_start", "1", "0", "1", DCTCP, "first alpha"),
	SWITCH(dctcp.doubling, "dctcp.doubling", "on", DCTCP, "begin with slow start"),
	RATE(dctcp.rate_ai, "dctcp.rate_ai", "0", "0", "1000Gbps", DCTCP,
	     "additive increase a round trip, times the base RTT; 0: one MTU"),
	SWITCH(dctcp.paced, "dctcp.paced", "off", DCTCP,
	       "spread the window over the base RTT"),
	SWITCH(dctcp.bounded, "dctcp.bounded", "off", DCTCP,
	       "the window never exceeds the first one"),

	NS(dcqcn.t_cnp_ns, "dcqcn.t_cnp", "50us", "0", "100ms", DCQCN,
	   "least time between a receiver's CNPs for one flow; 0: one for each marked packet"),
	NS(dcqcn.t_alpha_ns, "dcqcn.t_alpha", "55us", "100ns", "100ms", DCQCN,
	   "alpha decays once for each of these without a CNP"),
	NS(dcqcn.t_inc_ns, "dcqcn.t_inc", "55us", "1us", "100ms", DCQCN,
	   "between increases by time"),
	BYTES(dcqcn.bytes, "dcqcn.bytes", "10MB", "0", "10GB", DCQCN,
	      "between increases by bytes; 0: none"),
	RATIO(dcqcn.g_q32, "dcqcn.g", "1/256", "1/65536", "1", DCQCN, "gain of alpha"),
	COUNT(dcqcn.rounds, "dcqcn.f", "5", "0", "1000", DCQCN, "rounds of fast recovery"),
	RATE(dcqcn.rate_ai, "dcqcn.rate_ai", "line/1000", "1bps", "1000Gbps", DCQCN,
	     "additive increase"),
	RATE(dcqcn.rate_hai, "dcqcn.rate_hai", "line/200", "1bps", "1000Gbps", DCQCN,
	     "hyper increase, times the rounds that it lasts"),
	SWITCH(dcqcn.ai_bounded, "dcqcn.ai_bounded", "off", DCQCN,
	       "no increase is more than a quarter of the rate"),

	NS(dcqcn_fw.t_cnp_ns, "dcqcn_fw.t_cnp", "0", "0", "100ms", DCQCN_FW,
	   "least time between a receiver's CNPs for one flow; 0: one for each marked packet"),
	NS(dcqcn_fw.t_alpha_ns, "dcqcn_fw.t_alpha", "1us", "100ns", "100ms", DCQCN_FW,
	   "between updates of alpha"),
	NS(dcqcn_fw.t_dec_ns, "dcqcn_fw.t_dec", "4us", "100ns", "100ms", DCQCN_FW,
	   "between looks whether to cut"),
	NS(dcqcn_fw.t_inc_ns, "dcqcn_fw.t_inc", "300us", "1us", "100ms", DCQCN_FW,
	   "between increases"),
	RATIO(dcqcn_fw.g_q32, "dcqcn_fw.g", "1/256", "1/65536", "1", DCQCN_FW, "gain of alpha"),
	RATIO(dcqcn_fw.alpha_start_q32, "dcqcn_fw.alpha_start", "1", "0", "1", DCQCN_FW,
	      "alpha at the first CNP"),
	COUNT(dcqcn_fw.rounds, "dcqcn_fw.f", "1", "0", "1000", DCQCN_FW,
	      "rounds of fast recovery"),
	RATE(dcqcn_fw.rate_ai, "dcqcn_fw.rate_ai", "line/5000", "1bps", "1000Gbps", DCQCN_FW,
	     "additive increase"),
	RATE(dcqcn_fw.rate_hai, "dcqcn_fw.rate_hai", "line/500", "1bps", "1000Gbps", DCQCN_FW,
	     "hyper increase"),
	RATIO(dcqcn_fw.rate_first_q32, "dcqcn_fw.rate_first", "1", "0.0001", "1", DCQCN_FW,
	      "share of the rate that the first CNP leaves at once"),
	SWITCH(dcqcn_fw.clamp, "dcqcn_fw.clamp", "off", DCQCN_FW,
	       "a cut lowers the target even if no increase came since the last"),

	RATIO(hpcc.eta_q32, "hpcc.eta", "0.95", "0.01", "2", HPCC, "the utilisation to be at"),
	COUNT(hpcc.max_stage, "hpcc.max_stage", "5", "0", "1000", HPCC,
	      "additive rounds in a row; 0: every round is multiplicative"),
	COUNT(hpcc.flows, "hpcc.flows", "100", "1", "1000000", HPCC,
	      "flows that share what eta leaves, if neither w_ai nor rate_ai is given"),
	BYTES(hpcc.w_ai_bytes, "hpcc.w_ai", "0", "0", "1GB", HPCC,
	      "additive increase of the window; 0: from rate_ai"),
	RATE(hpcc.rate_ai, "hpcc.rate_ai", "0", "0", "1000Gbps", HPCC,
	     "additive increase, times T; 0: from eta and flows"),
	TIME(hpcc.t, "hpcc.t", "1.04rtt", "1ns", "1s", HPCC,
	     "T, the one base RTT of the network"),

	RATIO(timely.a_q32, "timely.a", "0.02", "0.0001", "1", TIMELY,
	      "weight of the newest difference of round trips"),
	RATIO(timely.beta_q32, "timely.beta", "0.8", "0", "1", TIMELY,
	      "of a decrease"),
	RATIO(timely.beta_patched_q32, "timely.beta_patched", "0.008", "0", "1", PATCHED,
	      "of a decrease between t_low and t_high"),
	RATE(timely.rate_ai, "timely.rate_ai", "line/1000", "1bps", "1000Gbps", TIMELY,
	     "additive increase (delta); five times that after hai_after"),
	TIME(timely.t_low, "timely.t_low", "1.25rtt", "0", "1s", TIMELY,
	     "the rate rises below this round trip"),
	TIME(timely.t_high, "timely.t_high", "5rtt", "0", "1s", TIMELY,
	     "the rate falls above this round trip"),
	TIME(timely.min_rtt, "timely.min_rtt", "1rtt", "1ns", "1s", TIMELY,
	     "what the gradient is measured in"),
	COUNT(timely.hai_after, "timely.hai_after", "5", "1", "1000000", TIMELY,
	      "steps up in a row until the step is five times as large"),
	CHOICE(timely.hai_counts, "falling|any", "timely.hai_counts", "falling", TIMELY,
	       "which steps those are: of round trips that do not rise, or those below t_low too"),
	CHOICE(timely.sample, "ack|rtt", "timely.sample", "ack", TIMELY,
	       "take every ACK's round trip, or one a round trip"),
	SWITCH(timely.scaled, "timely.scaled", "on", TIMELY,
	       "a sample that comes sooner than min_rtt counts for that part"),

	RATIO(rttcc.alpha_q32, "rttcc.alpha", "0.1", "0", "10", RTTCC,
	      "target RTT above the base at line rate, of the base; grows with 1/sqrt(rate)"),
	RATIO(rttcc.beta_q32, "rttcc.beta", "0.8", "0", "1", RTTCC,
	      "how hard an RTT over target is answered"),
	RATIO(rttcc.max_dec_q32, "rttcc.max_dec", "0.5", "0.01", "0.99", RTTCC,
	      "the largest share that one cut takes"),
	RATIO(rttcc.max_inc_q32, "rttcc.max_inc", "0.5", "0.001", "1", RTTCC,
	      "the largest increase, of the rate"),
	RATE(rttcc.rate_ai, "rttcc.rate_ai", "line/2000", "1bps", "1000Gbps", RTTCC,
	     "additive increase a sample"),
	RATE(rttcc.rate_hai, "rttcc.rate_hai", "line/100", "1bps", "1000Gbps", RTTCC,
	     "hyper increase a sample"),
	COUNT(rttcc.hai_period, "rttcc.hai_period", "5", "1", "1000000", RTTCC,
	      "good samples in a row until hyper increase"),
	NS(rttcc.max_delay_ns, "rttcc.max_delay", "150us", "1us", "1s", RTTCC,
	   "an RTT that is answered with max_dec"),
	RATIO(rttcc.rate_first_q32, "rttcc.rate_first", "1", "0.0001", "1", RTTCC,
	      "share of the line that the first congestion leaves at most"),
	NS(rttcc.timeout_ns, "rttcc.timeout", "300us", "1us", "10ms", RTTCC,
	   "until a probe is given up; doubles with each in a row, four times at most"),
	SWITCH(rttcc.probes, "rttcc.probes", "on", RTTCC,
	       "measure with probes; off: with one ACK a round trip"),

	RATIO(delivery.queue_q32, "delivery.queue", "0.08", "0.001", "1", DELIVERY,
	      "queue wanted for each halving of the rate below 16 Gbit/s, of the base RTT; besides 1/20 of that"),
};

static const struct cc_preset_info presets[] = {
	{CC_SWIFT, "plain", "the paper's algorithm without what a software NIC adds to it",
	 "doubling=off hyper_rounds=0"},
	{CC_SWIFT, "htsim", "what the htsim simulator takes",
	 "doubling=off hyper_rounds=0 base=20us hop=3053ns fs_range=100us"},
	{CC_DCTCP, "rfc", "RFC 8257", ""},
	{CC_DCTCP, "hpcc-eval", "the HPCC evaluation",
	 "g=1/16 doubling=off rate_ai=615Mbps paced=on bounded=on"},
	{CC_DCQCN, "paper", "the paper at 40 Gbit/s; it leaves rate_hai open",
	 "t_cnp=50us t_alpha=55us t_inc=55us bytes=10MB g=1/256 f=5 rate_ai=40Mbps rate_hai=200Mbps"},
	{CC_DCQCN, "authors-sim", "the authors' simulator, its defaults",
	 "t_cnp=50us t_alpha=55us t_inc=1500us bytes=150KB g=1/16 f=5 rate_ai=5Mbps rate_hai=50Mbps "
	 "rate_min=100Mbps"},
	{CC_DCQCN, "authors-sample", "the authors' simulator, its sample of 40 Gbit/s",
	 "t_cnp=50us t_alpha=55us t_inc=60us bytes=300MB g=1/256 f=5 rate_ai=40Mbps rate_hai=200Mbps "
	 "rate_min=100Mbps"},
	{CC_DCQCN_FW, "hpcc-eval", "the HPCC evaluation, scaled to the line",
	 "t_cnp=0 t_alpha=1us t_dec=4us t_inc=300us g=1/256 f=1 rate_ai=line/5000 rate_hai=line/500 "
	 "rate_min=100Mbps"},
	{CC_DCQCN_FW, "hpcc-eval-paper", "the HPCC evaluation's DCQCN with the paper's periods",
	 "t_cnp=0 t_alpha=50us t_dec=50us t_inc=55us g=1/256 f=1 rate_ai=line/5000 "
	 "rate_hai=line/500 rate_min=100Mbps"},
	{CC_DCQCN_FW, "connectx", "the firmware's defaults, without its byte counter",
	 "t_cnp=4us t_alpha=1us t_dec=4us t_inc=300us g=5/1024 alpha_start=1023/1024 f=1 "
	 "rate_ai=5Mbps rate_hai=50Mbps rate_min=1Mbps"},
	{CC_HPCC, "hpcc-eval", "the paper's simulations",
	 "eta=0.95 max_stage=0 rate_ai=50Mbps t=1rtt rate_min=100Mbps"},
	{CC_HPCC, "paper", "the paper's testbed",
	 "eta=0.95 max_stage=5 w_ai=80B t=9us"},
	{CC_HPCC, "later", "what the authors advised later",
	 "eta=0.99 max_stage=0 rate_ai=50Mbps t=1rtt"},
	{CC_TIMELY, "authors", "the authors' advice for 64 KB segments",
	 "a=0.02 beta=0.8 rate_ai=line/1000 t_low=50us t_high=500us"},
	{CC_TIMELY, "hpcc-eval", "the HPCC evaluation, scaled to the line",
	 "a=0.875 beta=0.8 rate_ai=line/1000 t_low=50us t_high=500us min_rtt=20us sample=rtt "
	 "scaled=off hai_after=6 hai_counts=any rate_min=100Mbps"},
	{CC_TIMELY_PATCHED, "authors", "the plain form's times, for comparison with it",
	 "a=0.02 rate_ai=line/1000 t_low=50us t_high=500us"},
};
/* clang-format on */

enum { PARAMS = sizeof(table) / sizeof(table[0]), PRESETS = sizeof(presets) / sizeof(presets[0]) };

static_assert(sizeof(struct cc_params) <= UINT16_MAX, "offsets fit");

const struct cc_param_info *cc_params_table(size_t *n)
{
	*n = PARAMS;
	return table;
}

const struct cc_preset_info *cc_presets_table(size_t *n)
{
	*n = PRESETS;
	return presets;
}

/* A part of a string. */
struct text {
	const char *at;
	size_t len;
};

static bool text_is(struct text t, const char *word)
{
	return strlen(word) == t.len && !memcmp(t.at, word, t.len);
}

static struct text text_of(const char *s)
{
	return (struct text){s, strlen(s)};
}

static bool parse_form(struct text t, const struct quantity_form *form, uint64_t *value)
{
	return quantity_parse(t.at, t.len, form, value) == QUANTITY_GOOD && !cc_is_relative(*value);
}

static bool parse_ratio(struct text t, uint8_t bits, uint64_t *value)
{
	return parse_form(t, &(struct quantity_form){.shift = bits, .flags = QUANTITY_FRACTION | QUANTITY_NEAREST},
			  value);
}

static bool parse_ns(struct text t, uint64_t *value)
{
	static const struct quantity_form form = {.units = quantity_times, .exponent = 9, .flags = QUANTITY_UNIT};

	return parse_form(t, &form, value);
}

static bool parse_time(struct text t, uint64_t *value)
{
	static const char rtt[] = "rtt";
	static const struct quantity_form form = {.shift = 32, .flags = QUANTITY_NEAREST};
	size_t len = sizeof(rtt) - 1;

	if (t.len < len || memcmp(t.at + t.len - len, rtt, len))
		return parse_ns(t, value);
	t.len -= len;
	if (!parse_form(t, &form, value) || !*value || *value > 1000 * Q32_ONE)
		return false;
	*value |= CC_RELATIVE;
	return true;
}

static bool parse_rate(struct text t, uint64_t *value)
{
	static const char line[] = "line/";
	static const struct quantity_form form = {.units = quantity_rates, .flags = QUANTITY_UNIT};
	size_t len = sizeof(line) - 1;
	uint64_t part;

	if (t.len < len || memcmp(t.at, line, len))
		return parse_form(t, &form, value);
	t.at += len;
	t.len -= len;
	if (!parse_form(t, &quantity_whole, &part) || !part || part > UINT64_C(1000000000))
		return false;
	*value = CC_LINE_PART(part);
	return true;
}

static bool parse_bytes(struct text t, uint64_t *value)
{
	static const struct quantity_form form = {.units = quantity_bytes, .flags = QUANTITY_UNIT};

	return parse_form(t, &form, value);
}

static bool parse_choice(struct text t, const char *words, uint64_t *value)
{
	for (*value = 0;; ++*value) {
		size_t len = strcspn(words, "|");

		if (len == t.len && !memcmp(words, t.at, len))
			return true;
		if (!words[len])
			return false;
		words += len + 1;
	}
}

static bool parse(enum kind kind, const char *words, struct text t, uint64_t *value)
{
	switch (kind) {
	case KIND_RATIO: return parse_ratio(t, 32, value);
	case KIND_SMALL: return parse_ratio(t, 16, value);
	case KIND_COUNT: return parse_form(t, &quantity_whole, value);
	case KIND_TIME: return parse_time(t, value);
	case KIND_NS: return parse_ns(t, value);
	case KIND_RATE: return parse_rate(t, value);
	case KIND_BYTES: return parse_bytes(t, value);
	case KIND_SWITCH: return parse_choice(t, "off|on", value);
	case KIND_CHOICE: return parse_choice(t, words, value);
	case KINDS: break;
	}
	return false;
}

/* Bounds hold for plain numbers; a relative value may have any size that parses. */
static bool in_bounds(const struct cc_param_info *p, uint64_t value)
{
	uint64_t min, max;

	if (!*p->value_min || cc_is_relative(value))
		return true;
	return parse((enum kind)p->kind, p->unit, text_of(p->value_min), &min) &&
	       parse((enum kind)p->kind, p->unit, text_of(p->value_max), &max) && value >= min && value <= max;
}

static void store(struct cc_params *params, const struct cc_param_info *p, uint64_t value)
{
	char *at = (char *)params + p->offset;
	uint32_t narrow = (uint32_t)value;
	bool on = value;

	switch ((enum kind)p->kind) {
	case KIND_SWITCH: memcpy(at, &on, sizeof(on)); break;
	case KIND_SMALL:
	case KIND_COUNT:
	case KIND_CHOICE: memcpy(at, &narrow, sizeof(narrow)); break;
	default: memcpy(at, &value, sizeof(value));
	}
}

static const struct cc_param_info *find(enum cc_algorithm algorithm, struct text name)
{
	const char *own = cc_name(algorithm);
	size_t own_len = strlen(own);

	for (size_t i = 0; i < PARAMS; i++) {
		const char *dot = strchr(table[i].name, '.');

		if (!(table[i].algorithms & ONLY(algorithm)))
			continue;
		if (text_is(name, table[i].name) || (dot && text_is(name, dot + 1)))
			return &table[i];
		/* A variant of an algorithm may also use its own name. */
		if (dot && name.len > own_len && !memcmp(name.at, own, own_len) &&
		    text_is((struct text){name.at + own_len, name.len - own_len}, dot))
			return &table[i];
	}
	return NULL;
}

const struct cc_param_info *cc_param_find(enum cc_algorithm algorithm, const char *name)
{
	return find(algorithm, text_of(name));
}

static int set(struct cc_params *params, struct text name, struct text value)
{
	const struct cc_param_info *p = find(params->algorithm, name);
	uint64_t v;

	if (!p || !parse((enum kind)p->kind, p->unit, value, &v) || !in_bounds(p, v))
		return -EINVAL;
	store(params, p, v);
	return 0;
}

int cc_params_set(struct cc_params *params, const char *name, const char *value)
{
	return set(params, text_of(name), text_of(value));
}

int cc_params_preset(struct cc_params *params, const char *name)
{
	struct cc_params p;
	const char *at = NULL;

	if (!strcmp(name, "default"))
		at = "";
	for (size_t i = 0; i < PRESETS && !at; i++) {
		if (presets[i].algorithm == params->algorithm && !strcmp(presets[i].name, name))
			at = presets[i].values;
	}
	if (!at)
		return -EINVAL;
	cc_params_default(&p, params->algorithm);
	while (*at) {
		size_t len = strcspn(at, " "), name_len = strcspn(at, "=");
		int r = set(&p, (struct text){at, name_len}, (struct text){at + name_len + 1, len - name_len - 1});

		assert(!r);
		(void)r;
		at += len;
		at += strspn(at, " ");
	}
	*params = p;
	return 0;
}

void cc_params_default(struct cc_params *params, enum cc_algorithm algorithm)
{
	const struct cc_kind *kind = cc_kind_of(algorithm);

	memset(params, 0, sizeof(*params));
	params->algorithm = algorithm;
	if (kind->params)
		memcpy(params->of_kind, kind->params, kind->params_bytes);
}

uint64_t cc_params_cnp_gap_ns(const struct cc_params *params)
{
	const struct cc_kind *kind = cc_params_kind(params);

	return kind->cnp_gap_ns ? kind->cnp_gap_ns(params) : dcqcn_params_default.t_cnp_ns;
}
