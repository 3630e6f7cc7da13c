/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of a benchmark: a table of rows, from which they are read, and the usage is printed. Private to bench. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum option_kind { OPTION_FLAG, OPTION_U32, OPTION_U64, OPTION_REAL, OPTION_TEXT, OPTION_WORD };

struct option_row {
	const char *name; /* one letter: -n, else --name */
	enum option_kind kind;
	void *value; /* bool, uint32_t, uint64_t, double, const char *; of a word uint32_t, its place among the words */
	double least, most;
	const char *words; /* "one|two", or what the value is: "BYTES" */
};

#define OPTION_KIND(to)                            _Generic(*(to), uint32_t : OPTION_U32, uint64_t : OPTION_U64, double : OPTION_REAL)
#define OPTION_ROW(...)                            ((struct option_row){__VA_ARGS__})
#define OPTION_NUMBER(name, to, least, most, what) OPTION_ROW(name, OPTION_KIND(to), to, least, most, what)
#define OPTION_WORDS(name, to, words)              OPTION_ROW(name, OPTION_WORD, to, 0, 0, words)
#define OPTION_STRING(name, to, what)              OPTION_ROW(name, OPTION_TEXT, to, 0, 0, what)
#define OPTION_ON(name, to)                        OPTION_ROW(name, OPTION_FLAG, to, 0, 0, NULL)

static _Noreturn void options_wrong(const char *program, const struct option_row *rows, size_t count, const char *rest)
{
	fprintf(stderr, "usage: %s", program);
	for (size_t i = 0; i < count; i++) {
		const struct option_row *r = &rows[i];

		fprintf(stderr, " [%s%s%s%s", r->name[1] ? "--" : "-", r->name, r->words ? " " : "",
			r->words ? r->words : "");
		if (r->kind >= OPTION_U32 && r->kind <= OPTION_REAL)
			fprintf(stderr, " (%.12g to %.12g)", r->least, r->most);
		fputc(']', stderr);
	}
	fprintf(stderr, " %s\n", rest);
	exit(2);
}

/* The place of `text` in "one|two|three"; false: it is none of them. */
static bool option_word(const char *words, const char *text, uint32_t *place)
{
	size_t n = strlen(text);

	for (*place = 0; words; words = strchr(words, '|'), words = words ? words + 1 : NULL, ++*place) {
		if (n && strncmp(words, text, n) == 0 && (!words[n] || words[n] == '|'))
			return true;
	}
	return false;
}

static bool option_set(const struct option_row *r, const char *text)
{
	char *end;
	double v;

	if (r->kind == OPTION_TEXT)
		*(const char **)r->value = text;
	if (r->kind == OPTION_TEXT)
		return true;
	if (r->kind == OPTION_WORD)
		return option_word(r->words, text, r->value);
	errno = 0;
	v = strtod(text, &end);
	if (errno || end == text || *end || !(v >= r->least && v <= r->most))
		return false;
	switch (r->kind) {
	case OPTION_U32: *(uint32_t *)r->value = (uint32_t)v; break;
	case OPTION_U64: *(uint64_t *)r->value = (uint64_t)strtoull(text, NULL, 0); break;
	default: *(double *)r->value = v;
	}
	return true;
}

/*
 * Reads `--name value`, `--name=value` and flags. Returns the place of the first argument that is no option. What is
 * not in the table or not allowed ends the program, with a usage that ends in `rest`.
 */
static int options_read(int argc, char **argv, const struct option_row *rows, size_t count, const char *rest)
{
	int at = 1;

	while (at < argc && argv[at][0] == '-' && argv[at][1]) {
		const char *name = argv[at] + 1 + (argv[at][1] == '-'), *value = strchr(name, '=');
		size_t n = value ? (size_t)(value - name) : strlen(name), i = 0;

		while (i < count && (strlen(rows[i].name) != n || strncmp(rows[i].name, name, n) != 0))
			i++;
		if (i == count)
			options_wrong(argv[0], rows, count, rest);
		at++;
		if (rows[i].kind == OPTION_FLAG) {
			*(bool *)rows[i].value = true;
			continue;
		}
		if (!value && at == argc)
			options_wrong(argv[0], rows, count, rest);
		if (!option_set(&rows[i], value ? value + 1 : argv[at++]))
			options_wrong(argv[0], rows, count, rest);
	}
	return at;
}

#define OPTIONS_READ(argc, argv, rows, rest) options_read(argc, argv, rows, sizeof(rows) / sizeof((rows)[0]), rest)

#endif
