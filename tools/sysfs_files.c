/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's tree as files, in a directory that the user names. What changes is written beside its place and renamed,
 * so that no reader sees half of it.
 */
#include "sysfs_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/engine.h"
#include "engine/gids.h"
#include "export_rows.h"
#include "sysfs_dir.h"
#include "tool.h"
#include "verbs/hostid.h"
#include "verbs/tree_use.h"

/* Milliseconds after which counters may be out of date: the engine writes them every 10 ms. */
#define LIFESPAN "10"

struct sysfs_files {
	const char *dir;
	const char *name;
	const struct config *config;
	struct gid_table gids[ENGINE_DEVICES_MAX], next[ENGINE_DEVICES_MAX];
	uint64_t *written[ENGINE_DEVICES_MAX]; /* by row; NULL: nothing is */
	int mark_fd;                           /* -1: it is not ours */
};

static const char *const parts[] = {"class", "devices", "bus", "dev"};

enum { PARTS = sizeof(parts) / sizeof(parts[0]) };

static const char mark[] = ".verbena", fresh[] = ".fresh";

/* ---- files --------------------------------------------------------------------------------------- */

/* The name of a device; that of the first may be the user's, and then the number at its end counts up. */
static void name_of(const struct sysfs_files *f, unsigned device, char name[SYSFS_NAME_BYTES])
{
	size_t len = f->name ? strlen(f->name) : 0;

	if (!f->name) {
		device_name(name, f->config->devices.iwarp, f->config->device, device);
		return;
	}
	while (len && f->name[len - 1] >= '0' && f->name[len - 1] <= '9')
		len--;
	if (!device)
		snprintf(name, SYSFS_NAME_BYTES, "%s", f->name);
	else
		snprintf(name, SYSFS_NAME_BYTES, "%.*s%lu", (int)len, f->name,
			 strtoul(f->name + len, NULL, 10) % SYSFS_NUMBER_MAX + device);
}

/* 0 or a negative errno, as all below. */
static int text_write(const struct sysfs_files *f, const char *path, const char *text)
{
	char beside[PATH_MAX];
	FILE *to;
	int err;

	snprintf(beside, sizeof(beside), "%s/%s.number", f->dir, mark);
	to = fopen(beside, "we");
	if (!to)
		return -errno;
	err = fprintf(to, "%s\n", text) < 0 ? -EIO : 0;
	if (fclose(to) || (!err && rename(beside, path)))
		err = -errno;
	return err;
}

static int number_write(const struct sysfs_files *f, const char *path, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	return text_write(f, path, text);
}

/* Those that have changed, or `all`. */
static int counters_write(struct sysfs_files *f, const char *below, const struct tally *t, bool all)
{
	char path[PATH_MAX], name[SYSFS_NAME_BYTES];
	int err = 0;

	for (unsigned d = 0; d < f->config->devices.count; d++) {
		name_of(f, d, name);
		for (size_t i = 0; i < export_row_count && !err; i++) {
			const struct export_row *r = &export_rows[i];
			uint64_t value = export_value(t, r, t->sums[d]) / r->unit;

			if (!r->file || (!all && value == f->written[d][i]))
				continue;
			snprintf(path, sizeof(path), "%s/%s/class/infiniband/%s/ports/1/%s", f->dir, below, name,
				 r->file);
			err = number_write(f, path, value);
			f->written[d][i] = value;
		}
	}
	return err;
}

/* What a tree that was rendered lacks: the user's name for the device, and a file that is no counter. */
static int device_finish(const struct sysfs_files *f, unsigned device)
{
	char from[PATH_MAX], to[PATH_MAX], ours[DEVICE_NAME_BYTES], name[SYSFS_NAME_BYTES];
	int err = 0;

	device_name(ours, f->config->devices.iwarp, f->config->device, device);
	name_of(f, device, name);
	if (strcmp(ours, name)) {
		snprintf(from, sizeof(from), "%s/%s/class/infiniband/%s", f->dir, fresh, ours);
		snprintf(to, sizeof(to), "%s/%s/class/infiniband/%s", f->dir, fresh, name);
		err = rename(from, to) ? -errno : 0;
		snprintf(to, sizeof(to), "%s/%s/class/infiniband_verbs/" DEVICE_UVERBS "/ibdev", f->dir, fresh, device);
		if (!err)
			err = text_write(f, to, name);
	}
	snprintf(to, sizeof(to), "%s/%s/class/infiniband/%s/ports/1/hw_counters/lifespan", f->dir, fresh, name);
	return err ? err : text_write(f, to, LIFESPAN);
}

static int part_replace(const struct sysfs_files *f, const char *part)
{
	char from[PATH_MAX], to[PATH_MAX];

	snprintf(from, sizeof(from), "%s/%s/%s", f->dir, fresh, part);
	snprintf(to, sizeof(to), "%s/%s", f->dir, part);
	if (!renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE))
		return 0;
	tree_remove(to); /* there is none yet, or the file system cannot exchange */
	return rename(from, to) ? -errno : 0;
}

static int renew(struct sysfs_files *f, const struct tally *t)
{
	const struct sysfs_devices devices = sysfs_devices_of(f->config, f->gids);
	char path[PATH_MAX];
	int err;

	snprintf(path, sizeof(path), "%s/%s", f->dir, fresh);
	tree_remove(path);
	err = mkdir(path, 0755) ? -errno : sysfs_render(path, &devices);
	for (unsigned d = devices.count; d-- && !err;) /* from the last one, whose new name may be that of one before */
		err = device_finish(f, d);
	if (!err)
		err = counters_write(f, fresh, t, true);
	for (int i = 0; i < PARTS && !err; i++)
		err = part_replace(f, parts[i]);
	tree_remove(path);
	return err;
}

/* ---- the directory ------------------------------------------------------------------------------- */

/* Nothing of anybody's is overwritten: it is empty, or an earlier run left its mark. The mark's descriptor, or an errno. */
static int dir_take(const char *dir)
{
	char path[PATH_MAX];
	struct dirent *e;
	bool empty = true;
	DIR *d;
	int fd, err;

	if (mkdir(dir, 0755) && errno != EEXIST)
		return -errno;
	d = opendir(dir);
	if (!d)
		return -errno;
	while ((e = readdir(d)))
		empty &= !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..");
	closedir(d);
	snprintf(path, sizeof(path), "%s/%s", dir, mark);
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | (empty ? O_CREAT : 0), 0644);
	if (fd < 0)
		return errno == ENOENT ? -ENOTEMPTY : -errno;
	if (!lockf(fd, F_TLOCK, 0))
		return fd;
	err = -errno;
	close(fd);
	return err == -EACCES || err == -EAGAIN ? -EBUSY : err;
}

static void dir_leave(const char *dir)
{
	static const char *const others[] = {".verbena.number", ".verbena"};
	char path[PATH_MAX];

	for (int i = 0; i < PARTS; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, parts[i]);
		tree_remove(path);
	}
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, others[i]);
		unlink(path);
	}
}

/* ---- from outside -------------------------------------------------------------------------------- */

/* The tables are new, or the addresses have changed. While there are none, the last ones stay. */
static bool gids_change(struct sysfs_files *f, char *why, size_t why_bytes)
{
	memset(f->next, 0, sizeof(f->next));
	if (gids_load_all(f->next, f->config, why, why_bytes) || !memcmp(f->next, f->gids, sizeof(f->next)))
		return false;
	memcpy(f->gids, f->next, sizeof(f->gids));
	return true;
}

struct sysfs_files *sysfs_files_open(const char *dir, const char *name, const struct config *c, const struct tally *t)
{
	struct sysfs_files *f = calloc(1, sizeof(*f));
	char why[1024] = "out of memory";
	bool ready = f;
	int err = 0;

	for (unsigned d = 0; ready && d < c->devices.count; d++)
		ready = (f->written[d] = calloc(export_row_count, sizeof(uint64_t)));
	if (ready) {
		f->dir = dir;
		f->name = name;
		f->config = c;
		f->mark_fd = -1;
		ready = gids_change(f, why, sizeof(why));
	}
	if (!ready) {
		complain("%s", why);
		sysfs_files_close(f);
		return NULL;
	}
	umask(022); /* others' programs read them */
	f->mark_fd = dir_take(dir);
	err = f->mark_fd < 0 ? f->mark_fd : renew(f, t);
	if (!err)
		return f;
	complain("%s: %s", dir,
		 err == -ENOTEMPTY ? "the directory is not empty"
		 : err == -EBUSY   ? "another process keeps it"
				   : strerror(-err));
	sysfs_files_close(f);
	return NULL;
}

int sysfs_files_update(struct sysfs_files *f, const struct tally *t)
{
	char why[1024];

	return gids_change(f, why, sizeof(why)) ? renew(f, t) : counters_write(f, ".", t, false);
}

void sysfs_files_close(struct sysfs_files *f)
{
	if (!f)
		return;
	if (f->mark_fd >= 0) {
		dir_leave(f->dir);
		close(f->mark_fd);
	}
	for (unsigned d = 0; d < ENGINE_DEVICES_MAX; d++)
		free(f->written[d]);
	free(f);
}
