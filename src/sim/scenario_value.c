/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Values of a scenario: text becomes a field if all of it can be read, or is an error. Numbers are
 * quantities (base/quantity.h); scenario_list.c has lists.
 */
#include "base/quantity.h"
#include "sim/scenario_list.h"
#include "sim/scenario_row.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A length stands for the time of light in a fibre. */
static const struct quantity_unit fibre[] = {{"km", 5, -6, 0}, {NULL, 0, 0, 0}};

static const struct quantity_form rates = {quantity_rates, NULL, 0, 0, QUANTITY_UNIT | QUANTITY_BLANK},
				  times = {quantity_times, fibre, 12, 0, QUANTITY_UNIT | QUANTITY_BLANK},
				  sizes = {quantity_bytes, NULL, 0, 0, QUANTITY_BLANK},
				  counts = {quantity_counts, NULL, 0, 0, QUANTITY_BLANK},
				  shares = {quantity_shares, NULL, 9, 0, QUANTITY_BLANK | QUANTITY_FRACTION};

/* What each kind is called, how one writes it, and what it takes. */
static const struct {
	const char *type;
	const char *example;
	const struct quantity_form *form;
} kinds[] = {
	[SCENARIO_RATE] = {"rate", "bps, kbps, Mbps, Gbps or Tbps", &rates},
	[SCENARIO_TIME] = {"time", "ps, ns, us, ms, s, or km of fibre", &times},
	[SCENARIO_BYTES] = {"bytes", "B, KB, MB, GB, KiB, MiB or GiB", &sizes},
	[SCENARIO_COUNT] = {"number", "k, M, G, Ki or Mi, or nothing", &counts},
	[SCENARIO_SHARE] = {"share", "%, or nothing; or a fraction as 1/8", &shares},
	[SCENARIO_SWITCH] = {"off|on", NULL, NULL},
	[SCENARIO_NAME] = {"name", NULL, NULL},
	[SCENARIO_TEXT] = {"text", NULL, NULL},
	[SCENARIO_PATH] = {"file", NULL, NULL},
	[SCENARIO_RANGES] = {"hosts", NULL, NULL},
	[SCENARIO_FLOWS] = {"flows", NULL, NULL},
	[SCENARIO_LOST] = {"flow:n,...", NULL, NULL},
	[SCENARIO_LINK] = {"node-node", NULL, NULL},
	[SCENARIO_SLOW] = {"host:factor@from-to,...", NULL, NULL},
	[SCENARIO_WEIGHTS] = {"8 numbers", NULL, NULL},
	[SCENARIO_PLACED] = {"packed|round-robin|random|file", NULL, NULL},
	[SCENARIO_ARRIVE] = {"poisson number", NULL, NULL},
	[SCENARIO_CDF_NAME] = {"WebSearch|FB_Hadoop|AliStorage2019|GoogleRPC2008|file", NULL, NULL},
};

const char *scenario_value_type(const struct scenario_row *r)
{
	return r->kind == SCENARIO_CHOICE ? r->choices : kinds[r->kind].type;
}

/* A value in its notation, for the bounds in messages. */
static void number_text(const struct scenario_row *r, uint64_t v, char text[QUANTITY_TEXT_BYTES])
{
	if (r->kind == SCENARIO_SHARE)
		snprintf(text, QUANTITY_TEXT_BYTES, "%.9g", (double)v / 1e9);
	else
		quantity_write(kinds[r->kind].form, v, text);
}

static bool number_refuse(const struct scenario_row *r, const char *text, const char *wrong, char *why,
			  size_t why_bytes)
{
	char min[QUANTITY_TEXT_BYTES], max[QUANTITY_TEXT_BYTES];

	number_text(r, r->min, min);
	number_text(r, r->max, max);
	return scenario_refuse(why, why_bytes, "'%.64s': %s; allowed is a %s from %s to %s, with the unit %s%s%s", text,
			       wrong, kinds[r->kind].type, min, r->max == UINT64_MAX - 1 ? "2^64 - 2" : max,
			       kinds[r->kind].example, r->word ? "; or " : "", r->word ? r->word : "");
}

static bool number_set(const struct scenario_row *r, uint64_t *field, const char *text, char *why, size_t why_bytes)
{
	enum quantity_fault wrong;
	uint64_t v;

	for (const char *w = r->word; w; w = w[strcspn(w, "|")] ? w + strcspn(w, "|") + 1 : NULL) {
		if (strlen(text) == strcspn(w, "|") && !strncmp(text, w, strlen(text))) {
			*field = w == r->word ? UINT64_MAX : UINT64_MAX - 1;
			return true;
		}
	}
	wrong = quantity_parse(text, strlen(text), kinds[r->kind].form, &v);
	if (wrong)
		return number_refuse(r, text, quantity_fault_text(wrong), why, why_bytes);
	if (v < r->min || v > r->max)
		return number_refuse(r, text, "out of range", why, why_bytes);
	*field = v;
	return true;
}

static bool choice_set(const struct scenario_row *r, unsigned *field, const char *text, char *why, size_t why_bytes)
{
	const char *p = r->choices;
	size_t n;

	for (unsigned i = 0;; i++) {
		n = strcspn(p, "|");
		if (strlen(text) == n && !strncmp(text, p, n)) {
			*field = r->choice_values ? r->choice_values[i] : i;
			return true;
		}
		if (!p[n])
			break;
		p += n + 1;
	}
	scenario_refuse(why, why_bytes, "'%.64s': allowed is ", text);
	for (p = r->choices; *p; p += n + (p[n] == '|')) {
		size_t used = strlen(why);

		n = strcspn(p, "|");
		snprintf(why + used, why_bytes - used, "%s%.*s",
			 p == r->choices ? ""
			 : p[n]          ? ", "
					 : " or ",
			 (int)n, p);
	}
	return false;
}

/* Length of the UTF-8 character at p; 0: there is none (RFC 3629). */
static size_t utf8_length(const unsigned char *p)
{
	size_t n = p[0] < 0x80                    ? 1
		   : p[0] >= 0xc2 && p[0] <= 0xdf ? 2
		   : (p[0] & 0xf0) == 0xe0        ? 3
		   : p[0] >= 0xf0 && p[0] <= 0xf4 ? 4
						  : 0;

	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	}
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf0 && p[1] < 0x90) ||
	    (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

static bool text_set(char *field, size_t field_bytes, const char *text, char *why, size_t why_bytes)
{
	if (strlen(text) >= field_bytes)
		return scenario_refuse(why, why_bytes, "'%.64s...': allowed are at most %zu characters", text,
				       field_bytes - 1);
	for (const unsigned char *p = (const unsigned char *)text; *p; p += utf8_length(p)) {
		if (*p < 0x20 || *p == 0x7f)
			return scenario_refuse(why, why_bytes, "holds a control character (%d)", *p);
		if (!utf8_length(p))
			return scenario_refuse(why, why_bytes, "is not UTF-8 (byte %d)", *p);
	}
	memset(field, 0, field_bytes);
	memcpy(field, text, strlen(text));
	return true;
}

static bool cdf_set(struct scenario_workload *w, const char *text, char *why, size_t why_bytes)
{
	const char *names = kinds[SCENARIO_CDF_NAME].type;
	size_t n;

	for (const char *p = names; *p; p += n + (p[n] == '|')) {
		n = strcspn(p, "|");
		if (p[n] && strlen(text) == n && !strncasecmp(text, p, n)) {
			memset(&w->cdf_file, 0, sizeof(w->cdf_file));
			memset(w->cdf, 0, sizeof(w->cdf));
			memcpy(w->cdf, p, n);
			return true;
		}
	}
	if (!strpbrk(text, "./"))
		return scenario_refuse(why, why_bytes,
				       "'%.64s': allowed is WebSearch, FB_Hadoop, AliStorage2019, "
				       "GoogleRPC2008, or the path of a file, with a '.' or '/' in it",
				       text);
	if (!text_set(w->cdf_file.path, sizeof(w->cdf_file.path), text, why, why_bytes))
		return false;
	memset(w->cdf, 0, sizeof(w->cdf));
	return true;
}

static bool placement_set(struct scenario_placement_of *field, const char *text, char *why, size_t why_bytes)
{
	static const char *const words[] = {"packed", "round-robin", "random"};
	struct scenario_placement_of p = {.by = SCENARIO_PLACE_FILE};

	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!strcmp(text, words[i])) {
			*field = (struct scenario_placement_of){.by = i};
			return true;
		}
	}
	if (!strpbrk(text, "./"))
		return scenario_refuse(why, why_bytes,
				       "'%.64s': allowed is packed, round-robin, random, or the path of a file, with a "
				       "'.' or '/' in it",
				       text);
	if (!text_set(p.file.path, sizeof(p.file.path), text, why, why_bytes))
		return false;
	*field = p;
	return true;
}

bool scenario_value_set(const struct scenario_row *r, void *base, const char *text, char *why, size_t why_bytes)
{
	void *field = (char *)base + r->offset;

	switch (r->kind) {
	case SCENARIO_RATE:
	case SCENARIO_TIME:
	case SCENARIO_BYTES:
	case SCENARIO_COUNT:
	case SCENARIO_SHARE: return number_set(r, field, text, why, why_bytes);
	case SCENARIO_CHOICE: return choice_set(r, field, text, why, why_bytes);
	case SCENARIO_SWITCH:
		if (strcmp(text, "on") && strcmp(text, "off"))
			return scenario_refuse(why, why_bytes, "'%.64s': allowed is off or on", text);
		*(bool *)field = text[1] == 'n';
		return true;
	case SCENARIO_NAME: return text_set(field, SCENARIO_NAME_BYTES, text, why, why_bytes);
	case SCENARIO_TEXT: return text_set(field, SCENARIO_TEXT_BYTES, text, why, why_bytes);
	case SCENARIO_PATH:
		return text_set(((struct scenario_file *)field)->path, SCENARIO_PATH_BYTES, text, why, why_bytes);
	case SCENARIO_RANGES: return scenario_ranges_set(field, strcmp(text, "all") ? text : "", why, why_bytes);
	case SCENARIO_FLOWS: {
		struct scenario_output *o = (void *)((char *)field - offsetof(struct scenario_output, cc_trace));
		bool all = !strcmp(text, "all");

		if (!scenario_ranges_set(&o->cc_trace, all || !strcmp(text, "none") ? "" : text, why, why_bytes))
			return false;
		o->cc_trace_all = all;
		return true;
	}
	case SCENARIO_LOST:
		return scenario_lost_set((void *)((char *)field - offsetof(struct scenario_link, lost)), text, why,
					 why_bytes);
	case SCENARIO_SLOW:
		return scenario_slow_set((void *)((char *)field - offsetof(struct scenario_host, slow)), text, why,
					 why_bytes);
	case SCENARIO_LINK: return scenario_link_set(field, text, why, why_bytes);
	case SCENARIO_WEIGHTS: return scenario_weights_set(field, text, why, why_bytes);
	case SCENARIO_PLACED: return placement_set(field, text, why, why_bytes);
	case SCENARIO_ARRIVE: return scenario_arrive_set(field, text, why, why_bytes);
	case SCENARIO_CDF_NAME:
		return cdf_set((void *)((char *)field - offsetof(struct scenario_workload, cdf)), text, why, why_bytes);
	}
	return scenario_refuse(why, why_bytes, "cannot be set");
}
