/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of a command line, by a table. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 48, LONG = 256 };

/* The place of `text` in "one|two|three", or how many words there are. */
static uint64_t place_of(const char *words, const char *text)
{
	size_t n = strlen(text);
	uint64_t place = 0;

	for (; words; words = strchr(words, '|'), words = words ? words + 1 : NULL, place++) {
		if (n && strncmp(words, text, n) == 0 && (!words[n] || words[n] == '|'))
			break;
	}
	return place;
}

static bool allowed(const struct option_row *r, double v)
{
	if (r->kind == OPTION_ONE)
		return v <= 1;
	if (r->kind == OPTION_WORD)
		return v < (double)place_of(r->what, "");
	return v >= r->least && v <= r->most && (r->kind != OPTION_POWER || !((uint64_t)v & ((uint64_t)v - 1)));
}

static double value_of(const struct option_row *r)
{
	return r->kind == OPTION_U32    ? *(uint32_t *)r->value
	       : r->kind == OPTION_REAL ? *(double *)r->value
					: (double)*(uint64_t *)r->value;
}

/* " (default)", unless the help ends with one. */
static void default_print(const struct option_row *r)
{
	const char *word = r->what;

	if (r->help && r->help[0] && r->help[strlen(r->help) - 1] == ')')
		return;
	if (r->kind >= OPTION_U32)
		printf(" (%.12g)", value_of(r));
	for (uint64_t i = 0; r->kind == OPTION_WORD && i < *(uint64_t *)r->value; i++)
		word = strchr(word, '|') + 1;
	if (r->kind == OPTION_WORD)
		printf(" (%.*s)", (int)strcspn(word, "|"), word);
}

static void usage_print(const struct option_row *rows, size_t count, const char *usage)
{
	fputs(usage, stdout);
	for (size_t i = 0; i < count; i++) {
		const struct option_row *r = &rows[i];
		const char *value = r->kind <= OPTION_ONE    ? ""
				    : r->kind == OPTION_WORD ? "NAME"
				    : r->what                ? r->what
							     : "N";
		char left[64], letter[4] = {'-', r->letter, r->name ? ',' : '\0', '\0'};

		if (r->kind == OPTION_HEADING) {
			puts(r->help);
			continue;
		}
		snprintf(left, sizeof(left), "%-3s %s%s %s", r->letter ? letter : "", r->name ? "--" : "",
			 r->name ? r->name : "", value);
		printf("  %-22s %s", left, r->help ? r->help : "");
		if (r->kind == OPTION_WORD)
			printf("%s%s", r->help ? ": " : "", r->what);
		default_print(r);
		putchar('\n');
	}
	puts("  -h, --help             this");
}

static void take(const struct option_row *r, const char *text)
{
	bool number = r->kind >= OPTION_U32;
	uint64_t whole = 0;
	char *end = NULL;
	double v = 0;

	errno = 0;
	if (r->kind == OPTION_REAL)
		v = strtod(text, &end);
	else if (number)
		v = (double)(whole = strtoull(text, &end, 0));
	else if (r->kind == OPTION_WORD)
		v = (double)(whole = place_of(r->what, text));
	if ((number && (end == text || *end || errno || *text == '-')) || (r->kind >= OPTION_WORD && !allowed(r, v))) {
		fprintf(stderr, "%s: %s%s %s: ", program_invocation_short_name, r->name ? "--" : "-",
			r->name ? r->name : (char[]){r->letter, 0}, text);
		if (number)
			fprintf(stderr, "a %s of %.12g to %.12g is allowed\n",
				r->kind == OPTION_POWER ? "power of two" : "number", r->least, r->most);
		else
			fprintf(stderr, "one of %s is allowed\n", r->what);
		exit(1);
	}
	switch (r->kind) {
	case OPTION_FLAG: *(bool *)r->value = true; break;
	case OPTION_ONE: *(uint64_t *)r->value = 1; break;
	case OPTION_EACH: ((option_fn *)r->value)(text); break;
	case OPTION_TEXT: *(const char **)r->value = text; break;
	case OPTION_U32: *(uint32_t *)r->value = (uint32_t)whole; break;
	case OPTION_REAL: *(double *)r->value = v; break;
	default: *(uint64_t *)r->value = whole;
	}
}

int options_read(int argc, char **argv, const struct option_row *rows, size_t count, const char *usage)
{
	struct option longs[ROWS_MAX + 2] = {{0}};
	char letters[2 * ROWS_MAX + 2];
	size_t long_count = 0, at = 0;
	int found;

	for (size_t i = 0; i < count && i < ROWS_MAX; i++) {
		bool has_value = rows[i].kind > OPTION_ONE;

		if (rows[i].name)
			longs[long_count++] = (struct option){rows[i].name, has_value, NULL, LONG + (int)i};
		if (rows[i].letter)
			letters[at++] = rows[i].letter;
		if (rows[i].letter && has_value)
			letters[at++] = ':';
	}
	longs[long_count] = (struct option){"help", no_argument, NULL, 'h'};
	letters[at++] = 'h';
	letters[at] = '\0';
	/* Help comes first: it shows defaults. */
	opterr = 0;
	while ((found = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		if (found == 'h') {
			usage_print(rows, count, usage);
			exit(0);
		}
	}
	opterr = 1;
	optind = 0;
	while ((found = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		size_t i = found >= LONG ? (size_t)(found - LONG) : 0;

		while (found < LONG && i < count && rows[i].letter != found)
			i++;
		if (found == '?' || i == count) {
			fprintf(stderr, "%s --help lists the options\n", program_invocation_short_name);
			exit(1);
		}
		take(&rows[i], optarg);
	}
	return optind;
}

bool options_allow(const struct option_row *rows, size_t count, const uint64_t *from, const uint64_t *to)
{
	for (size_t i = 0; i < count; i++) {
		const uint64_t *v = rows[i].value;

		if (v >= from && v < to && !allowed(&rows[i], (double)*v))
			return false;
	}
	return true;
}
