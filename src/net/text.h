/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading the small text formats of topologies and workloads from memory: words, numbers with
 * units, and an error with its line and reason. Nothing is copied; words point into the text.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TEXT_ERROR_BYTES = 240 };

struct text_error {
	uint32_t line;                  /* 1: the first line of the text; 0: not about a line */
	char message[TEXT_ERROR_BYTES]; /* what is wrong and what is allowed; NUL-terminated */
};

struct text {
	const char *at, *end;
	uint32_t line; /* of `at` */
	bool begun;    /* a word has been read */
};

struct word {
	const char *at;
	size_t len;
};

/* At the first byte; they are *borrowed*. */
void text_start(struct text *, const char *bytes, size_t size);

/* The next word, on this line or a later one. False: the text has ended. */
bool text_token(struct text *, struct word *);

/* The next word of the current line. False: the line has ended. */
bool text_word(struct text *, struct word *);

/*
 * Goes to the next line that has a word and does not begin with '#'; the first call goes to the
 * first such line.
 */
bool text_next_line(struct text *);

/* Whether it is that word, to the letter. */
bool word_is(struct word, const char *s);

/*
 * A decimal number (digits, '.', exponent) times 10^exponent, rounded to the nearest integer, half
 * up: with 12 the word "2.5" is 2 500 000 000 000. False, and *out unchanged: no number, negative,
 * or 2^64 and more.
 */
bool word_number(struct word, int exponent, uint64_t *out);

/* Digits and nothing else: a whole number up to `max`. */
bool word_count(struct word, uint64_t max, uint64_t *out);

/* "100Gbps", "25G", "1e9": bit/s. Units: those of base/quantity.h; none means bit/s. */
bool word_rate_bps(struct word, uint64_t *out);

/* "1000ns", "0.001ms": picoseconds. Units: ps, ns, us, ms, s; none means seconds. */
bool word_time_ps(struct word, uint64_t *out);

/*
 * Fills in an error and returns -EINVAL. In `format`, %s is a const char *, %u a uint64_t and %w a
 * struct word (cut to 40 characters, other than printable ones shown as '?'). `err` may be NULL.
 */
int text_fail(struct text_error *err, uint32_t line, const char *format, ...);
