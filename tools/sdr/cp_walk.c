/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the list of files to send. Links are copied as links, but for the path that the user gave. */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sdr/cp_list.h"
#include "sdr/meet.h"

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static char *link_read(const FTSENT *f)
{
	char text[CP_LINK_MAX + 1];
	ssize_t n = readlink(f->fts_accpath, text, sizeof(text));

	if (n < 0 || (size_t)n >= sizeof(text))
		die("%s: %s", f->fts_path, n < 0 ? strerror(errno) : "a link as long as that is not copied");
	return cp_text(text, (size_t)n);
}

static void entry_fill(struct cp_list *l, FTSENT *f, enum cp_kind kind)
{
	const struct stat *st = f->fts_statp;
	bool root = f->fts_level == FTS_ROOTLEVEL;
	struct cp_entry *e = cp_entry_new(l);

	if (!strncmp(f->fts_name, CP_PART_PREFIX, strlen(CP_PART_PREFIX)) && !root)
		die("%s: a name that begins with " CP_PART_PREFIX " is for what has not arrived yet", f->fts_path);
	e->kind = kind;
	e->parent = root ? 0 : (uint32_t)f->fts_parent->fts_number;
	e->depth = root ? 0 : (uint16_t)(l->entry[e->parent].depth + 1);
	e->mode = st->st_mode & CP_MODES;
	e->seconds = st->st_mtim.tv_sec;
	e->nanoseconds = (uint32_t)st->st_mtim.tv_nsec;
	e->bytes = kind == CP_FILE ? (uint64_t)st->st_size : 0;
	e->link = kind == CP_LINK ? link_read(f) : NULL;
	if (root)
		e->name = cp_text(kind == CP_FILE ? base_name(f->fts_path) : "", CP_NAME_MAX);
	else
		e->name = cp_text(f->fts_name, CP_NAME_MAX);
	f->fts_number = (long)l->count - 1;
	if (e->depth > CP_DEPTH_MAX)
		die("%s: deeper than %d folders", f->fts_path, CP_DEPTH_MAX);
	if (e->bytes > CP_FILE_MAX || e->bytes > CP_TOTAL_MAX - l->bytes)
		die("%s: more bytes than can be copied", f->fts_path);
	if (l->count > CP_ENTRIES_MAX)
		die("more than %d files", CP_ENTRIES_MAX);
	l->bytes += e->bytes;
}

/* 1 if it is left out. */
static uint32_t take(struct cp_list *l, FTSENT *f)
{
	switch (f->fts_info) {
	case FTS_D: entry_fill(l, f, CP_FOLDER); return 0;
	case FTS_DP: return 0;
	case FTS_F:
		if (faccessat(AT_FDCWD, f->fts_accpath, R_OK, AT_EACCESS))
			die("%s: %s", f->fts_path, strerror(errno));
		entry_fill(l, f, CP_FILE);
		return 0;
	case FTS_SL:
	case FTS_SLNONE: entry_fill(l, f, CP_LINK); return 0;
	case FTS_DEFAULT:
		fprintf(stderr, "%s: neither a file nor a folder nor a link: left out\n", f->fts_path);
		return 1;
	default: die("%s: %s", f->fts_path, f->fts_info == FTS_DC ? "a folder in itself" : strerror(f->fts_errno));
	}
}

uint32_t cp_list_walk(struct cp_list *l, const char *path)
{
	char *paths[] = {(char *)(uintptr_t)path, NULL};
	FTS *fts = fts_open(paths, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, by_name);
	uint32_t left_out = 0;
	FTSENT *f;

	if (!fts)
		die("%s: %s", path, strerror(errno));
	while (errno = 0, (f = fts_read(fts)))
		left_out += take(l, f);
	if (errno)
		die("%s: %s", path, strerror(errno));
	fts_close(fts);
	if (!l->count)
		die("%s: neither a file nor a folder", path);
	return left_out;
}
