/* SPDX-License-Identifier: BSD-2-Clause */
/* What is in the list's folders and not in the list. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sdr/cp.h"
#include "sdr/cp_filter.h"
#include "sdr/cp_items.h"
#include "sdr/cp_target.h"
#include "sdr/meet.h"

struct deleting {
	struct cp *cp;
	struct cp_target *target;
	const struct cp_filter *filter;
	uint32_t *by_name; /* entries, by their parents and names */
};

static const struct cp_entry *sorted; /* qsort() has no argument for it */

static int compare_names(const void *a, const void *b)
{
	const struct cp_entry *x = &sorted[*(const uint32_t *)a], *y = &sorted[*(const uint32_t *)b];

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	return strcmp(x->name, y->name);
}

static bool is_listed(const struct deleting *d, uint32_t folder, const char *name)
{
	const struct cp_list *l = &d->cp->list;
	uint32_t low = 0, high = l->count - 1;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct cp_entry *e = &l->entry[d->by_name[middle]];
		int order = e->parent == folder ? strcmp(e->name, name) : e->parent < folder ? -1 : 1;

		if (!order)
			return true;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

/* What `path` and `name` are together; false: too long. */
static bool join(char *out, const char *path, const char *name)
{
	bool top = !strcmp(path, ".");

	return snprintf(out, PATH_MAX, "%s%s%s", top ? "" : path, top ? "" : "/", name) < PATH_MAX;
}

static void drop(struct deleting *d, int at, const char *name, const char *path);

/* All in an open folder that is not listed, or with `folder` UINT32_MAX all; the descriptor is closed. */
static void drop_in(struct deleting *d, int fd, uint32_t folder, const char *path)
{
	DIR *dir = fdopendir(fd);
	struct dirent *f;
	char full[PATH_MAX];

	if (!dir) {
		close(fd);
		return;
	}
	while ((f = readdir(dir))) {
		if (!strcmp(f->d_name, ".") || !strcmp(f->d_name, "..") || !join(full, path, f->d_name))
			continue;
		if (folder == UINT32_MAX || !is_listed(d, folder, f->d_name))
			drop(d, fd, f->d_name, full);
	}
	closedir(dir);
}

/* A folder that has something that stays, stays too. */
static void drop(struct deleting *d, int at, const char *name, const char *path)
{
	struct stat st;
	bool folder;
	int fd;

	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW))
		return;
	folder = S_ISDIR(st.st_mode);
	if (cp_filter_drops(d->filter, path, folder))
		return;
	fd = folder ? openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
	if (fd >= 0)
		drop_in(d, fd, UINT32_MAX, path);
	if (!d->target->dry && unlinkat(at, name, folder ? AT_REMOVEDIR : 0)) {
		if (errno == ENOTEMPTY)
			return;
		fprintf(stderr, "sdr_cp: %s: not deleted: %s\n", path, strerror(errno));
		d->target->failed++;
		return;
	}
	cp_item_deleted(d->cp, path);
}

void cp_delete(struct cp *cp, struct cp_target *t, const struct cp_filter *filter)
{
	struct deleting d = {.cp = cp, .target = t, .filter = filter};
	uint32_t count = cp->list.count;
	char path[PATH_MAX];

	d.by_name = calloc(count, sizeof(*d.by_name));
	if (!d.by_name)
		die("no memory");
	/* Entry 0 is in no folder. */
	for (uint32_t i = 1; i < count; i++)
		d.by_name[i - 1] = i;
	sorted = cp->list.entry;
	qsort(d.by_name, count - 1, sizeof(*d.by_name), compare_names);
	for (uint32_t i = 0; i < count; i++) {
		int folder = cp->list.entry[i].kind == CP_FOLDER ? cp_target_folder(t, i) : -1;
		int fd = folder >= 0 ? openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

		if (fd >= 0 && cp_list_name(&cp->list, i, path, sizeof(path)))
			drop_in(&d, fd, i, path);
		else if (fd >= 0)
			close(fd);
	}
	free(d.by_name);
}
