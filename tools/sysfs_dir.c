/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The directory's name contains a hash of its content, as it was at first. The directory is rendered beside its place
 * and renamed into it, so no process sees half of it; if one with the right owner and content exists already, it is
 * used. Before that, unused directories of ours are removed, which killed processes have left.
 */
#include "tool.h"
#include "sysfs_dir.h"

#include <dirent.h>
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
#include "verbs/tree_use.h"

enum { OPEN_DIRS_MAX = 4, ATTEMPTS = 8, PLACES_MAX = 3, NAME_BYTES = 64 };

/* nftw() has no argument for its callback. */
static uint64_t walk_hash;
static size_t walk_root_len;

/* FNV-1a: distinguishes contents; it need not resist attacks. */
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
	walk_hash += h; /* a sum, because the file system decides the order of entries */
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

static bool is_private(const char *dir)
{
	struct stat st;

	return !lstat(dir, &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 077) == 0;
}

/* Places for private directories, the best first. */
static size_t places(const char *found[PLACES_MAX])
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	size_t n = 0;

	if (runtime && runtime[0] == '/' && is_private(runtime))
		found[n++] = runtime;
	found[n++] = "/dev/shm";
	found[n++] = "/tmp";
	return n;
}

static void clean(const char *place)
{
	char prefix[NAME_BYTES], path[PATH_MAX];
	int len = snprintf(prefix, sizeof(prefix), "verbena-%u", geteuid());
	DIR *d = opendir(place);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		if (strncmp(e->d_name, prefix, (size_t)len) || (e->d_name[len] != '-' && e->d_name[len] != '.'))
			continue;
		snprintf(path, sizeof(path), "%s/%s", place, e->d_name);
		if (is_private(path))
			tree_remove_unused(path);
	}
	if (d)
		closedir(d);
}

struct sysfs_devices sysfs_devices_of(const struct config *c, const struct gid_table *tables)
{
	return (struct sysfs_devices){tables,   c->devices.count, c->devices.iwarp,
				      c->pkeys, c->device,        c->transport.protocol == PROTOCOL_ROCEV1};
}

static int device_render(const char *dir, const struct sysfs_devices *devices, unsigned d)
{
	const struct gid_table *t = &devices->tables[d];
	struct tree_gid gids[NIC_GIDS_MAX];
	struct tree_facts facts = {.guid = hostid_guid(),
				   .device_first = d,
				   .device_count = d + 1,
				   .iwarp = devices->iwarp,
				   .given = devices->given,
				   .pkeys = devices->pkeys,
				   .rocev1 = devices->rocev1,
				   .port = t->port,
				   .gids = gids,
				   .gid_count = t->count};

	memset(gids, 0, sizeof(gids));
	while (facts.pkey_count < NIC_PKEYS_MAX && devices->pkeys[facts.pkey_count])
		facts.pkey_count++;
	for (uint32_t i = 0; i < t->count; i++) {
		memcpy(gids[i].raw, t->gids[i].raw, sizeof(gids[i].raw));
		memcpy(gids[i].interface, t->interfaces[i].name, sizeof(gids[i].interface));
	}
	return tree_render(dir, &facts);
}

int sysfs_render(const char *dir, const struct sysfs_devices *devices)
{
	int rc = 0;

	for (unsigned d = 0; d < devices->count && !rc; d++)
		rc = device_render(dir, devices, d);
	return rc;
}

struct fresh {
	char path[PATH_MAX];
	uint64_t hash;
	int use;
};

/* Renders into a directory of a name of its own. 0, or a negative errno with nothing left behind. */
static int fresh_make(struct fresh *f, const struct sysfs_devices *devices, const char *place)
{
	int rc = -ENOENT;

	/* A process that cleans up may remove it before it is locked. */
	for (int i = 0; i < ATTEMPTS && rc == -ENOENT; i++) {
		snprintf(f->path, sizeof(f->path), "%s/verbena-%u.XXXXXX", place, geteuid());
		if (!mkdtemp(f->path)) /* mode 0700 */
			return -errno;
		rc = f->use = tree_use(f->path);
	}
	if (rc >= 0)
		rc = sysfs_render(f->path, devices);
	if (!rc && tree_hash(f->path, &f->hash))
		rc = -errno;
	if (rc) {
		tree_remove(f->path);
		if (f->use >= 0)
			close(f->use);
	}
	return rc;
}

static void fresh_drop(struct fresh *f)
{
	tree_remove(f->path);
	close(f->use);
}

/*
 * Renames it to the name with its hash, or takes the directory that has this name if it has that content still:
 * programs that use it keep it true. Returns the descriptor to keep.
 */
static int settle(struct fresh *f, const char *place, char *path, size_t path_bytes)
{
	uint64_t there;

	snprintf(path, path_bytes, "%s/verbena-%u-%016" PRIx64, place, geteuid(), f->hash);
	for (int i = 0; i < ATTEMPTS; i++) {
		int use;

		if (!rename(f->path, path))
			return f->use;
		use = is_private(path) ? tree_use(path) : -EPERM;
		if (use == -ENOENT)
			continue;
		if (use < 0)
			break;
		if (!tree_hash(path, &there) && there == f->hash) {
			fresh_drop(f);
			return use;
		}
		close(use);
		break;
	}
	/* A directory of this run alone. */
	snprintf(path, path_bytes, "%s", f->path);
	return f->use;
}

int sysfs_dir_get(const struct sysfs_devices *devices, char *path, size_t path_bytes, char *why, size_t why_bytes)
{
	const char *found[PLACES_MAX];
	size_t n = places(found), len = 0;
	struct fresh f;
	int rc = 0;

	for (size_t i = 0; i < n; i++)
		clean(found[i]);
	len = (size_t)snprintf(why, why_bytes, "there is no room for the device's files:");
	for (size_t i = 0; i < n; i++) {
		rc = fresh_make(&f, devices, found[i]);
		if (!rc)
			return settle(&f, found[i], path, path_bytes);
		if (len < why_bytes)
			len += (size_t)snprintf(why + len, why_bytes - len, " %s: %s;", found[i], strerror(-rc));
	}
	if (len < why_bytes)
		snprintf(why + len, why_bytes - len,
			 " set XDG_RUNTIME_DIR to a directory of yours, of mode 0700, "
			 "that can be written to");
	return rc;
}
