/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the list of files to send. Links are copied as links, but for the paths that the user gave. */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sdr/cp_attributes.h"
#include "sdr/cp_filter.h"
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

/* What is left out is said, and counted. */
static uint32_t leave_out(const FTSENT *f, const char *why)
{
	fprintf(stderr, "sdr_cp: %s: %s: left out\n", f->fts_path, why);
	return 1;
}

/* ---- files with several names */

/* The first name of each, by device and inode: a table that doubles. */
struct first_name {
	dev_t device;
	ino_t inode;
	uint32_t entry; /* 0: free, and so entry 0 is none, which has one name alone */
};

struct first_names {
	struct first_name *slot;
	size_t slots, count;
};

static struct first_name *slot_of(const struct first_names *n, dev_t device, ino_t inode)
{
	size_t at = (size_t)((uint64_t)inode * 0x9e3779b97f4a7c15 ^ device) & (n->slots - 1);

	while (n->slot[at].entry && (n->slot[at].inode != inode || n->slot[at].device != device))
		at = (at + 1) & (n->slots - 1);
	return &n->slot[at];
}

static void names_grow(struct first_names *n)
{
	struct first_names old = *n;

	n->slots = old.slots ? 2 * old.slots : 64;
	n->slot = calloc(n->slots, sizeof(*n->slot));
	if (!n->slot)
		die("no memory");
	for (size_t i = 0; i < old.slots; i++) {
		if (old.slot[i].entry)
			*slot_of(n, old.slot[i].device, old.slot[i].inode) = old.slot[i];
	}
	free(old.slot);
}

/* The entry of a file's first name, which is `entry` if it had none; 0: of no interest. */
static uint32_t first_name(struct first_names *n, const struct stat *st, uint32_t entry)
{
	struct first_name *slot;

	if (!entry || st->st_nlink < 2)
		return 0;
	if (2 * n->count >= n->slots)
		names_grow(n);
	slot = slot_of(n, st->st_dev, st->st_ino);
	if (slot->entry)
		return slot->entry;
	*slot = (struct first_name){st->st_dev, st->st_ino, entry};
	n->count++;
	return 0;
}

/* ---- entries */

struct walk {
	struct cp_list *list;
	const struct cp_walk *how;
	struct first_names names;
	bool several; /* entry 0 is a CP_PLACE */
};

/* Why it cannot be in a list; NULL: it can. */
static const char *unfit(const struct walk *w, const FTSENT *f)
{
	if (!strncmp(f->fts_name, CP_PART_PREFIX, strlen(CP_PART_PREFIX)) &&
	    (f->fts_level > FTS_ROOTLEVEL || w->several))
		return "a name that begins with " CP_PART_PREFIX " is for what has not arrived yet";
	if (f->fts_level >= CP_DEPTH_MAX)
		return "too deep in folders";
	if (f->fts_level == FTS_ROOTLEVEL && w->several &&
	    strspn(base_name(f->fts_path), ".") == strlen(base_name(f->fts_path)))
		return "without a name of its own";
	return NULL;
}

static char *link_read(const FTSENT *f)
{
	char text[CP_LINK_MAX + 1];
	ssize_t n = readlink(f->fts_accpath, text, sizeof(text));

	return n > 0 && (size_t)n < sizeof(text) ? cp_text(text, (size_t)n) : NULL;
}

static void entry_fill(struct walk *w, FTSENT *f, enum cp_kind kind)
{
	const struct stat *st = f->fts_statp;
	struct cp_list *l = w->list;
	bool root = f->fts_level == FTS_ROOTLEVEL;
	struct cp_entry *e = cp_entry_new(l);

	e->kind = kind;
	e->parent = root ? 0 : (uint32_t)f->fts_parent->fts_number;
	e->depth = l->count > 1 ? (uint16_t)(l->entry[e->parent].depth + 1) : 0;
	e->mode = st->st_mode & CP_MODES;
	e->owner = st->st_uid;
	e->group = st->st_gid;
	e->seconds = st->st_mtim.tv_sec;
	e->nanoseconds = (uint32_t)st->st_mtim.tv_nsec;
	e->bytes = kind == CP_FILE ? (uint64_t)st->st_size : 0;
	if (root && !w->several)
		e->name = cp_text(kind == CP_FILE ? base_name(f->fts_path) : "", CP_NAME_MAX);
	else
		e->name = cp_text(root ? base_name(f->fts_path) : f->fts_name, CP_NAME_MAX);
	f->fts_number = (long)l->count - 1;
	if (root)
		cp_source_add(l, l->count - 1, f->fts_path);
	if (e->bytes > CP_FILE_MAX || e->bytes > CP_TOTAL_MAX - l->bytes)
		die("%s: more bytes than can be copied", f->fts_path);
	if (l->count > CP_ENTRIES_MAX)
		die("more than %d files", CP_ENTRIES_MAX);
	l->bytes += e->bytes;
}

static bool attributes_add(struct walk *w, const FTSENT *f)
{
	int fd = open(f->fts_accpath, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	bool read = fd >= 0 && cp_attributes_read(&w->list->entry[w->list->count - 1], fd);
	int err = errno;

	if (fd >= 0)
		close(fd);
	errno = err;
	return read;
}

/* A file or a folder. */
static uint32_t take_one(struct walk *w, FTSENT *f, enum cp_kind kind)
{
	uint32_t first = kind == CP_FILE && w->how->names ? first_name(&w->names, f->fts_statp, w->list->count) : 0;

	entry_fill(w, f, kind);
	if (first) {
		struct cp_entry *e = &w->list->entry[w->list->count - 1];

		w->list->bytes -= e->bytes;
		e->kind = CP_NAME;
		e->bytes = first;
		return 0;
	}
	if (w->how->attributes && !attributes_add(w, f)) {
		fprintf(stderr, "sdr_cp: %s: its attributes: %s\n", f->fts_path, strerror(errno));
		return 1;
	}
	return 0;
}

static uint32_t take_link(struct walk *w, FTSENT *f)
{
	char *link = link_read(f);

	if (!w->list->count)
		die("%s: %s", f->fts_path, strerror(ENOENT));
	if (!link)
		return leave_out(f, "where the link points cannot be read");
	entry_fill(w, f, CP_LINK);
	w->list->entry[w->list->count - 1].link = link;
	return 0;
}

/* Its path as the list will have it is looked at. */
static bool is_dropped(const struct walk *w, const FTSENT *f)
{
	bool root = f->fts_level == FTS_ROOTLEVEL;
	uint32_t parent = root ? 0 : (uint32_t)f->fts_parent->fts_number;
	const char *name = root ? base_name(f->fts_path) : f->fts_name;
	char path[PATH_MAX];
	size_t len = 0;

	if (!w->how->filter || (root && !w->several))
		return false;
	if (parent && !cp_list_name(w->list, parent, path, sizeof(path)))
		return false;
	len = parent ? strlen(path) : 0;
	snprintf(path + len, sizeof(path) - len, "%s%s", parent ? "/" : "", name);
	return cp_filter_drops(w->how->filter, path, f->fts_info == FTS_D);
}

/* How many things are left out. */
static uint32_t take(struct walk *w, FTS *fts, FTSENT *f)
{
	const char *why = unfit(w, f);
	bool root = f->fts_level == FTS_ROOTLEVEL;

	if (f->fts_info == FTS_DP)
		return 0;
	if (is_dropped(w, f) || why) {
		fts_set(fts, f, FTS_SKIP);
		return why ? leave_out(f, why) : 0;
	}
	switch (f->fts_info) {
	case FTS_D: return take_one(w, f, CP_FOLDER);
	case FTS_F:
		if (!faccessat(AT_FDCWD, f->fts_accpath, R_OK, AT_EACCESS))
			return take_one(w, f, CP_FILE);
		if (root)
			die("%s: %s", f->fts_path, strerror(errno));
		return leave_out(f, strerror(errno));
	case FTS_SL:
	case FTS_SLNONE: return take_link(w, f);
	case FTS_DEFAULT: return leave_out(f, "neither a file nor a folder nor a link");
	case FTS_DC: return leave_out(f, "a folder in itself");
	case FTS_DNR: return leave_out(f, strerror(f->fts_errno)); /* the folder itself is in the list already */
	default:
		if (root)
			die("%s: %s", f->fts_path, strerror(f->fts_errno));
		return leave_out(f, strerror(f->fts_errno));
	}
}

/* A folder that others are in, of which nothing else is known. */
static void place_add(struct walk *w)
{
	struct cp_entry *e = cp_entry_new(w->list);

	e->kind = CP_PLACE;
	e->name = cp_text("", 0);
	w->several = true;
}

uint32_t cp_list_walk(struct cp_list *l, const struct cp_walk *how, char *const *paths, size_t count)
{
	/* Of a link that the user named itself, what it points to is copied. */
	FTS *fts = fts_open((char *const *)paths, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, by_name);
	struct walk w = {.list = l, .how = how};
	uint32_t left_out = 0;
	FTSENT *f;

	if (!fts)
		die("%s: %s", paths[0], strerror(errno));
	if (count > 1)
		place_add(&w);
	while (errno = 0, (f = fts_read(fts)))
		left_out += take(&w, fts, f);
	if (errno)
		die("%s: %s", paths[0], strerror(errno));
	fts_close(fts);
	free(w.names.slot);
	if (!l->count)
		die("%s: neither a file nor a folder", paths[0]);
	return left_out;
}
