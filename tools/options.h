/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of a command line: a table of rows, by which they are read and --help is printed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_kind {
	OPTION_HEADING, /* a line of --help: `help` */
	OPTION_FLAG,    /* bool */
	OPTION_ONE,     /* uint64_t, which becomes 1 */
	OPTION_TEXT,    /* const char * */
	OPTION_EACH,    /* a function, which is called with the text each time */
	OPTION_WORD,    /* uint64_t: the place of a word among `what`, "one|two|three" */
	OPTION_U32,
	OPTION_U64,
	OPTION_POWER, /* uint64_t: a power of two, or 0 if that is allowed */
	OPTION_REAL   /* double */
};

struct option_row {
	char letter;      /* 0: none */
	const char *name; /* NULL: none */
	enum option_kind kind;
	void *value;        /* has the default; of OPTION_EACH an option_fn */
	double least, most; /* of a number */
	const char *what;   /* names the value in --help; NULL: N */
	const char *help;   /* or NULL; the default is added, unless it ends with one in brackets */
};

typedef void option_fn(const char *text);

/*
 * Reads options as getopt_long() does, and returns the place of the first argument that is none. --help prints `usage`
 * and the table, and ends the program; so does an option that is not in the table or not allowed, with a sentence and
 * status 1.
 */
int options_read(int argc, char **argv, const struct option_row *, size_t count, const char *usage);

/* Whether those of the numbers [from, to) that rows are about are allowed: for numbers of a peer. */
bool options_allow(const struct option_row *, size_t count, const uint64_t *from, const uint64_t *to);

#define OPTION_COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
