/* SPDX-License-Identifier: BSD-2-Clause */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "sdr/cp_filter.h"
#include "sdr/cp_list.h"

bool cp_filter_add(struct cp_filter *f, bool include, const char *text, size_t len)
{
	if (!len || len > CP_PATTERN_MAX || memchr(text, 0, len) || f->count == CP_PATTERNS_MAX)
		return false;
	f->pattern[f->count++] = (struct cp_pattern){include, cp_text(text, len)};
	return true;
}

void cp_filter_clear(struct cp_filter *f)
{
	while (f->count)
		free(f->pattern[--f->count].text);
}

/* Of the whole path, or with `ends` also of what is behind one of its slashes. */
static bool fits_path(const char *pattern, const char *path, bool ends)
{
	int flags = strstr(pattern, "**") ? 0 : FNM_PATHNAME;

	for (; path; path = strchr(path, '/'), path = path ? path + 1 : NULL) {
		if (!fnmatch(pattern, path, flags))
			return true;
		if (!ends)
			break;
	}
	return false;
}

static bool fits(const char *text, const char *path, bool folder)
{
	char pattern[CP_PATTERN_MAX + 1];
	const char *slash = strrchr(path, '/');
	size_t len = strlen(text);

	memcpy(pattern, text, len + 1);
	if (len > 1 && pattern[len - 1] == '/') {
		if (!folder)
			return false;
		pattern[len - 1] = 0;
	}
	if (pattern[0] == '/')
		return fits_path(pattern + 1, path, false);
	if (strchr(pattern, '/') || strstr(pattern, "**"))
		return fits_path(pattern, path, true);
	return !fnmatch(pattern, slash ? slash + 1 : path, 0);
}

bool cp_filter_drops(const struct cp_filter *f, const char *path, bool folder)
{
	for (uint32_t i = 0; i < f->count; i++) {
		if (fits(f->pattern[i].text, path, folder))
			return !f->pattern[i].include;
	}
	return false;
}
