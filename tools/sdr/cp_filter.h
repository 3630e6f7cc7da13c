/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which files are left out, by patterns of which the first that fits counts, as rsync has them: one that begins with '/'
 * is of a path below what is copied; one with another '/' is of the end of a path; else it is of a name. One that ends
 * with '/' is of folders alone. '*' and '?' stand for no '/', "**" does. What is in a folder that is left out is, too.
 *
 * Private to tools/sdr.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CP_PATTERN_MAX = 4096, CP_PATTERNS_MAX = 1024 };

struct cp_pattern {
	bool include;
	char *text;
};

struct cp_filter {
	struct cp_pattern pattern[CP_PATTERNS_MAX];
	uint32_t count;
};

/* Adds a copy of a pattern behind the others. False: it is empty, too long, or one too many. */
bool cp_filter_add(struct cp_filter *, bool include, const char *text, size_t len);
void cp_filter_clear(struct cp_filter *);
/* Whether a path, as cp_list_name() writes it, is left out. */
bool cp_filter_drops(const struct cp_filter *, const char *path, bool folder);
