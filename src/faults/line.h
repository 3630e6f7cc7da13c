/* SPDX-License-Identifier: BSD-2-Clause */
/* A line of a script while it is read. Private to src/faults. */
#pragma once

#include "faults/script.h"

enum { WORDS_MAX = 40 };

struct word {
	const char *text;
	size_t len;
};

struct line {
	const struct fault_host *host;
	struct fault_script *script;
	struct fault_rule rule;
	struct word words[WORDS_MAX];
	unsigned count, next;
	bool has_action, has_gate, has_when, names_way, names_for;
	char *why;
	size_t why_bytes;
};

/* Says what is wrong. Returns false, for the caller to return. */
bool line_say(struct line *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The next word if it is that one, which is taken. */
bool line_take(struct line *, const char *text);
/* The rule waits for that; false, and said, if it waits for something else already. */
bool line_set_event(struct line *, enum fault_event);
/* "seed" was taken: the number behind it. False, and said: it is none. */
bool line_read_seed(struct line *);
/* Takes the next word and those that belong to it. False, and said: what is wrong. */
bool line_read_word(struct line *);
