/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The name of the directory holds a hash of all that is in it. It is rendered beside its place and
 * renamed into it, so nobody sees half of it; where one is there already, of the right owner and
 * contents, that one is used.
 */
#include "tool.h"
#include "sysfs_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verbs/hostid.h"
#include "verbs/tree.h"

enum { OPEN_DIRS_MAX = 16, ATTEMPTS = 3 };

/* nftw() has no argument for its callback. */
static uint64_t walk_hash;
static size_t walk_root_len;

/* FNV-1a: tells contents apart, and nobody has an interest in fooling it. */
static uint64_t hash_bytes(uint64_t h, const void *p, size_t n)
{
	for (const uint8_t *b = p; n--; b++)
		h = (h ^ *b) * 0x100000001b3u;
	return h;
}

static int hash_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	uint64_t h = 0xcbf29ce484222325u;
	char buf[4096];
	ssize_t n = 0;
	int fd;

	if (ftw->level == 0)
		return 0;
	h = hash_bytes(h, path + walk_root_len, strlen(path + walk_root_len) + 1);
	if (type == FTW_SL) {
		n = readlink(path, buf, sizeof(buf));
		if (n < 0)
			return -1;
		h = hash_bytes(h, buf, (size_t)n);
	} else if (type == FTW_F) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return -1;
		while ((n = read(fd, buf, sizeof(buf))) > 0)
			h = hash_bytes(h, buf, (size_t)n);
		close(fd);
	}
	walk_hash += h; /* a sum, because the order of entries is the file system's */
	return n < 0 ? -1 : 0;
}

static int tree_hash(const char *dir, uint64_t *out)
{
	walk_hash = 0;
	walk_root_len = strlen(dir);
	if (nftw(dir, hash_one, OPEN_DIRS_MAX, FTW_PHYS))
		return -1;
	*out = walk_hash;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static void tree_remove(const char *dir)
{
	nftw(dir, remove_one, OPEN_DIRS_MAX, FTW_PHYS | FTW_DEPTH);
}

static bool is_private(const char *dir)
{
	struct stat st;

	return !lstat(dir, &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       (st.st_mode & 077) == 0;
}

/* Where private directories may be made: the first that is there and can be written to. */
static const char *place(void)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");

	if (runtime && runtime[0] == '/' && is_private(runtime) && !access(runtime, W_OK | X_OK))
		return runtime;
	return access("/dev/shm", W_OK | X_OK) ? "/tmp" : "/dev/shm";
}

static int render(const char *dir, const struct gid_table *t)
{
	struct tree_gid gids[NIC_GIDS_MAX];
	struct tree_facts facts = {.guid = hostid_guid(), .gids = gids, .gid_count = t->count};

	memset(gids, 0, sizeof(gids));
	for (uint32_t i = 0; i < t->count; i++) {
		memcpy(gids[i].raw, t->gids[i].raw, sizeof(gids[i].raw));
		memcpy(gids[i].interface, t->interfaces[i].name, sizeof(gids[i].interface));
	}
	return tree_render(dir, &facts);
}

int sysfs_dir_get(const struct gid_table *t, char *path, size_t path_bytes, char *why,
		  size_t why_bytes)
{
	char fresh[PATH_MAX], aside[PATH_MAX];
	uint64_t wanted = 0, there;
	int rc;

	snprintf(fresh, sizeof(fresh), "%s/verbena-%u.XXXXXX", place(), geteuid());
	if (!mkdtemp(fresh)) { /* mode 0700 */
		rc = -errno;
		snprintf(why, why_bytes,
			 "cannot make the directory %s: %s; name a directory that you own, of mode "
			 "0700, in XDG_RUNTIME_DIR",
			 fresh, strerror(-rc));
		return rc;
	}
	rc = render(fresh, t);
	if (!rc && tree_hash(fresh, &wanted))
		rc = -errno;
	if (rc) {
		snprintf(why, why_bytes,
			 "cannot write the device's files to %s: %s; name another directory that "
			 "you own, of mode 0700, in XDG_RUNTIME_DIR",
			 fresh, strerror(-rc));
		tree_remove(fresh);
		return rc;
	}

	snprintf(path, path_bytes, "%s/verbena-%u-%016" PRIx64, place(), geteuid(), wanted);
	for (int i = 0; i < ATTEMPTS; i++) {
		if (!rename(fresh, path))
			return 0;
		if (!is_private(path))
			break;
		if (!tree_hash(path, &there) && there == wanted) {
			tree_remove(fresh);
			return 0;
		}
		/* Somebody cleaned up in there: put it out of the way and try again. */
		snprintf(aside, sizeof(aside), "%s/verbena-%u.old.XXXXXX", place(), geteuid());
		if (mkdtemp(aside) && !rename(path, aside))
			tree_remove(aside);
	}
	/* The name is taken by somebody else: a directory of this run alone. */
	snprintf(path, path_bytes, "%s", fresh);
	return 0;
}
