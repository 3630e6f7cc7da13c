/* SPDX-License-Identifier: BSD-2-Clause */
/* Splits the text; the tables of src/cc say what is allowed, as for the simulator. */
#include "engine/cc_setting.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { WORD_BYTES = 64 }; /* more than any algorithm, preset, parameter or value needs */

/*
 * The values where no preset is named. Algorithms that use delay have defaults for hardware NICs; here
 * delays are those of threads that wait for a processor, as in Swift's target (start.c).
 */
static const struct {
	enum cc_algorithm algorithm;
	const char *name, *value;
} host_values[] = {
	{CC_TIMELY, "t_low", "2ms"},
	{CC_TIMELY, "t_high", "10ms"},
	{CC_TIMELY, "min_rtt", "2ms"},
	{CC_TIMELY_PATCHED, "t_low", "2ms"},
	{CC_TIMELY_PATCHED, "t_high", "10ms"},
	{CC_TIMELY_PATCHED, "min_rtt", "2ms"},
	{CC_RTTCC, "alpha", "10"},
	{CC_RTTCC, "max_delay", "10ms"},
};

/* Appends to a sentence; words that do not fit are left out. */
struct sentence {
	char *text;
	size_t bytes;
	size_t len;
};

static void say(struct sentence *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void say(struct sentence *s, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (s->len + 1 >= s->bytes)
		return;
	va_start(ap, fmt);
	n = vsnprintf(s->text + s->len, s->bytes - s->len, fmt, ap);
	va_end(ap);
	s->len += n > 0 ? (size_t)n : 0;
}

static void say_algorithms(struct sentence *s)
{
	say(s, "allowed is one of auto");
	for (int i = 0; i < CC_ALGORITHMS; i++) {
		if (!cc_needs_int((enum cc_algorithm)i))
			say(s, ", %s", cc_name((enum cc_algorithm)i));
	}
}

static void say_presets(struct sentence *s, enum cc_algorithm algorithm)
{
	size_t n;
	const struct cc_preset_info *p = cc_presets_table(&n);

	say(s, "allowed is one of default");
	for (; n--; p++) {
		if (p->algorithm == algorithm)
			say(s, ", %s", p->name);
	}
}

/* Without the algorithm's name, which is known. */
static void say_parameters(struct sentence *s, enum cc_algorithm algorithm)
{
	const char *between = "allowed is one of ";
	size_t n;
	const struct cc_param_info *p = cc_params_table(&n);

	for (; n--; p++) {
		const char *dot = strchr(p->name, '.');

		if (!(p->algorithms & UINT32_C(1) << algorithm))
			continue;
		say(s, "%s%s", between, dot ? dot + 1 : p->name);
		between = ", ";
	}
}

static void say_values(struct sentence *s, const struct cc_param_info *p)
{
	static const struct {
		const char *unit;
		const char *form;
	} forms[] = {
		{"ratio", "a ratio such as 0.5 or 1/16"}, {"count", "a whole number"},
		{"time", "a time such as 50us"},          {"rate", "a rate such as 40Mbps"},
		{"bytes", "a size such as 10KB"},         {"switch", "on or off"},
	};
	const char *form = NULL;

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (!strcmp(p->unit, forms[i].unit))
			form = forms[i].form;
	}
	if (!form) { /* a choice: its unit lists the words */
		say(s, "one of %s", p->unit);
		return;
	}
	say(s, "%s", form);
	if (p->value_min[0])
		say(s, " from %s to %s", p->value_min, p->value_max);
}

static void set_known(struct cc_params *out, const char *name, const char *value)
{
	int rc = cc_params_set(out, name, value);

	assert(!rc);
	(void)rc;
}

static int parse_head(const char *head, size_t len, struct cc_params *out, struct sentence *why)
{
	char name[WORD_BYTES], *preset;
	enum cc_algorithm algorithm;

	if (len >= sizeof(name)) {
		say(why, "no algorithm has so long a name; ");
		say_algorithms(why);
		return -EINVAL;
	}
	memcpy(name, head, len);
	name[len] = 0;
	preset = strchr(name, ':');
	if (preset)
		*preset++ = 0;
	if (!cc_by_name(name, &algorithm)) {
		say(why, "no congestion control '%s'; ", name);
		say_algorithms(why);
		return -EINVAL;
	}
	if (cc_needs_int(algorithm)) {
		say(why, "%s needs telemetry (INT) that no real network gives us; ", name);
		say_algorithms(why);
		return -EINVAL;
	}
	cc_params_default(out, algorithm);
	for (size_t i = 0; !preset && i < sizeof(host_values) / sizeof(host_values[0]); i++) {
		if (host_values[i].algorithm == algorithm)
			set_known(out, host_values[i].name, host_values[i].value);
	}
	if (preset && cc_params_preset(out, preset)) {
		say(why, "%s has no preset '%s'; ", name, preset);
		say_presets(why, algorithm);
		return -EINVAL;
	}
	return 0;
}

static int parse_parameter(const char *text, size_t len, struct cc_params *out, uint64_t *seen, struct sentence *why)
{
	char name[WORD_BYTES] = "", *value;
	const struct cc_param_info *p = NULL;
	size_t n;

	if (len < sizeof(name)) {
		memcpy(name, text, len);
		name[len] = 0;
		value = strchr(name, '=');
		if (!value) {
			say(why, "'%s' is not of the form parameter=value; ", name);
			say_parameters(why, out->algorithm);
			return -EINVAL;
		}
		*value++ = 0;
		p = cc_param_find(out->algorithm, name);
	}
	if (!p) {
		say(why, "%s has no parameter '%.*s'; ", cc_name(out->algorithm), (int)strcspn(text, "=,"), text);
		say_parameters(why, out->algorithm);
		return -EINVAL;
	}
	n = (size_t)(p - cc_params_table(&(size_t){0}));
	if (n < 128 && seen[n / 64] >> n % 64 & 1) {
		say(why, "%s is given twice", name);
		return -EINVAL;
	}
	if (n < 128)
		seen[n / 64] |= UINT64_C(1) << n % 64;
	if (cc_params_set(out, name, value)) {
		say(why, "%s=%s: allowed is ", name, value);
		say_values(why, p);
		return -EINVAL;
	}
	return 0;
}

int cc_setting_parse(const char *text, struct cc_setting *out, char *why, size_t why_bytes)
{
	struct sentence s = {.text = why, .bytes = why_bytes};
	struct cc_params params;
	uint64_t seen[2] = {0};
	size_t len = strcspn(text, ",");
	int rc;

	if (!strcmp(text, "auto")) {
		memset(out, 0, sizeof(*out));
		return 0;
	}
	if (why_bytes)
		why[0] = 0;
	rc = parse_head(text, len, &params, &s);
	while (!rc && text[len] == ',') {
		text += len + 1;
		len = strcspn(text, ",");
		rc = parse_parameter(text, len, &params, seen, &s);
	}
	if (!rc)
		*out = (struct cc_setting){.given = true, .params = params};
	return rc;
}

bool cc_setting_has_target(const struct cc_setting *s)
{
	struct cc_params own;

	if (!s->given || s->params.algorithm != CC_SWIFT)
		return false;
	cc_params_default(&own, CC_SWIFT);
	return s->params.swift.base_ns != own.swift.base_ns || s->params.swift.base_slack_ns != own.swift.base_slack_ns;
}
