/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sdr/cp_target.h"
#include "sdr/meet.h"

#define NONE UINT32_MAX

enum { PART_BYTES = 32 };

static void __attribute__((noreturn)) failed(const struct cp_target *t, uint32_t i, int err)
{
	char path[PATH_MAX];

	if (!cp_list_path(t->list, i, t->path, path, sizeof(path)))
		snprintf(path, sizeof(path), "%s/../%s", t->path, t->list->entry[i].name);
	if (err == ELOOP || err == ENOTDIR)
		die("%s: a link or a file is in the way, or lies above it", path);
	die("%s: %s", path, strerror(err));
}

static struct cp_entry *entry_of(const struct cp_target *t, uint32_t i)
{
	return &t->list->entry[i];
}

/* ---- folders */

static void folder_release(struct cp_target *t)
{
	if (t->folder != NONE && t->folder_fd != t->root)
		close(t->folder_fd);
	t->folder = NONE;
}

static int enter(int at, const char *name)
{
	return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* The descriptor of folder i, which stays open until another one is wanted. */
static int folder_open(struct cp_target *t, uint32_t i)
{
	uint32_t way[CP_DEPTH_MAX + 1], n = 0;
	int fd = t->root;

	if (t->folder == i)
		return t->folder_fd;
	folder_release(t);
	for (uint32_t at = i; at; at = entry_of(t, at)->parent)
		way[n++] = at;
	while (n) {
		int next = enter(fd, entry_of(t, way[--n])->name), err = errno;

		if (fd != t->root)
			close(fd);
		if (next < 0)
			failed(t, way[n], err);
		fd = next;
	}
	t->folder = i;
	t->folder_fd = fd;
	return fd;
}

static int parent_open(struct cp_target *t, uint32_t i)
{
	return folder_open(t, i ? entry_of(t, i)->parent : 0);
}

/* One that is there may be without permissions that are needed now. */
static void folder_make(struct cp_target *t, uint32_t i)
{
	const char *name = entry_of(t, i)->name;
	int at = parent_open(t, i);
	struct stat st;

	if (mkdirat(at, name, 0700) && errno != EEXIST)
		failed(t, i, errno);
	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW))
		failed(t, i, errno);
	if (!S_ISDIR(st.st_mode))
		failed(t, i, ENOTDIR);
	if ((st.st_mode & 0700) != 0700 && fchmod(folder_open(t, i), (st.st_mode & 07777) | 0700))
		failed(t, i, errno);
}

/* ---- the target itself */

static void root_folder(struct cp_target *t)
{
	if (mkdir(t->path, 0700) && errno != EEXIST)
		die("%s: %s", t->path, strerror(errno));
	t->root = open(t->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->root < 0)
		die("%s: %s", t->path, strerror(errno));
}

/* The name is the target's unless that is a folder. */
static void root_file(struct cp_target *t)
{
	struct cp_entry *e = entry_of(t, 0);
	char *copy;

	t->root = open(t->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->root >= 0)
		return;
	if (errno != ENOTDIR && errno != ENOENT)
		die("%s: %s", t->path, strerror(errno));
	copy = strdup(t->path);
	free(e->name);
	e->name = copy ? strdup(basename(copy)) : NULL;
	if (!e->name)
		die("no memory");
	t->root = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->root < 0)
		die("%s: %s", t->path, strerror(errno));
	free(copy);
}

void cp_target_open(struct cp_target *t, struct cp_list *list, const char *path)
{
	*t = (struct cp_target){.list = list, .path = path, .folder = NONE, .file = NONE};
	if (list->entry[0].kind == CP_FILE)
		root_file(t);
	else
		root_folder(t);
	for (uint32_t i = 1; i < list->count; i++) {
		if (list->entry[i].kind == CP_FOLDER)
			folder_make(t, i);
	}
}

/* ---- files */

static void part_name(const struct cp_target *t, uint32_t i, char name[PART_BYTES])
{
	const char *of = entry_of(t, i)->name;

	snprintf(name, PART_BYTES, CP_PART_PREFIX "%016llx", (unsigned long long)XXH3_64bits(of, strlen(of)));
}

/* Some file systems say only now that the disk is full. */
static void file_release(struct cp_target *t)
{
	uint32_t i = t->file;

	t->file = NONE;
	if (i != NONE && close(t->file_fd))
		failed(t, i, errno);
}

/* A file that has another name besides is somebody else's too, and is not written. */
static int part_open(struct cp_target *t, uint32_t i)
{
	const int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	int at = parent_open(t, i), fd;
	char name[PART_BYTES];
	struct stat st;

	part_name(t, i, name);
	fd = openat(at, name, flags, 0600);
	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_nlink == 1)
		return fd;
	if (fd >= 0)
		close(fd);
	unlinkat(at, name, 0);
	fd = openat(at, name, flags | O_EXCL, 0600);
	if (fd < 0)
		failed(t, i, errno);
	return fd;
}

static int file_open(struct cp_target *t, uint32_t i)
{
	if (t->file == i)
		return t->file_fd;
	file_release(t);
	t->file_fd = part_open(t, i);
	t->file = i;
	return t->file_fd;
}

/* Bytes that were read of block b. */
static uint64_t block_read(int fd, uint32_t b, uint8_t *p, uint64_t bytes)
{
	uint64_t at = 0;

	while (at < bytes) {
		ssize_t n = pread(fd, p + at, bytes - at, (off_t)((uint64_t)b * CP_BLOCK + at));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		at += (uint64_t)n;
	}
	return at;
}

static uint32_t blocks_hash(int fd, struct cp_entry *e)
{
	uint8_t *memory = malloc(CP_BLOCK);
	uint32_t b = 0;

	if (!memory)
		die("no memory");
	cp_entry_hashes(e);
	for (; b < cp_blocks(e); b++) {
		uint64_t bytes = cp_block_bytes(e, b);

		if (block_read(fd, b, memory, bytes) < bytes)
			break;
		e->hash[b] = XXH3_128bits(memory, bytes);
	}
	free(memory);
	return b;
}

static int there_open(int at, const char *name, struct stat *st)
{
	int fd = openat(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0 && !fstat(fd, st) && S_ISREG(st->st_mode))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static int file_there(struct cp_target *t, uint32_t i)
{
	struct stat st;
	int fd = there_open(parent_open(t, i), entry_of(t, i)->name, &st);

	if (fd >= 0 && (uint64_t)st.st_size != entry_of(t, i)->bytes) {
		close(fd);
		return -1;
	}
	return fd;
}

/* A part is hashed as far as it goes, or else a file that has the name already if it has the length. */
void cp_target_compare(struct cp_target *t, uint32_t i)
{
	struct cp_entry *e = entry_of(t, i);
	char name[PART_BYTES];
	struct stat st;
	int fd;

	part_name(t, i, name);
	fd = there_open(parent_open(t, i), name, &st);
	if (fd < 0)
		fd = file_there(t, i);
	if (fd < 0)
		return;
	e->here = blocks_hash(fd, e);
	close(fd);
}

static void write_all(struct cp_target *t, uint32_t i, uint64_t at, const uint8_t *p, uint64_t bytes)
{
	int fd = file_open(t, i);

	while (bytes) {
		ssize_t n = pwrite(fd, p, bytes, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			failed(t, i, n ? errno : EIO);
		p += n;
		at += (uint64_t)n;
		bytes -= (uint64_t)n;
	}
}

void cp_target_write(struct cp_target *t, uint32_t i, uint32_t block, const uint8_t *p)
{
	struct cp_entry *e = entry_of(t, i);
	uint64_t bytes = cp_block_bytes(e, block);

	cp_entry_hashes(e);
	e->hash[block] = XXH3_128bits(p, bytes);
	write_all(t, i, (uint64_t)block * CP_BLOCK, p, bytes);
}

static bool is_without_part(struct cp_target *t, uint32_t i)
{
	struct stat st;
	char name[PART_BYTES];

	part_name(t, i, name);
	return fstatat(parent_open(t, i), name, &st, AT_SYMLINK_NOFOLLOW) != 0;
}

static bool all_kept(const struct cp_entry *e)
{
	return e->bytes && e->kept_bytes == e->bytes;
}

static void block_copy(struct cp_target *t, uint32_t i, uint32_t b, int from, uint8_t *memory)
{
	struct cp_entry *e = entry_of(t, i);
	uint64_t bytes = cp_block_bytes(e, b);

	if (block_read(from, b, memory, bytes) < bytes || !XXH128_isEqual(XXH3_128bits(memory, bytes), e->hash[b]))
		die("%s has changed meanwhile", e->name);
	write_all(t, i, (uint64_t)b * CP_BLOCK, memory, bytes);
}

/* A file under its own name is never written: it may be in use, and stays what it was until the new one is whole. */
void cp_target_keep(struct cp_target *t, uint32_t i)
{
	const struct cp_entry *e = entry_of(t, i);
	uint8_t *memory;
	int from;

	if (!e->kept_bytes || all_kept(e) || !is_without_part(t, i))
		return;
	from = file_there(t, i);
	memory = malloc(CP_BLOCK);
	if (from < 0 || !memory)
		die("%s has changed meanwhile", e->name);
	for (uint32_t b = 0; b < e->here; b++) {
		if (cp_kept(e, b))
			block_copy(t, i, b, from, memory);
	}
	free(memory);
	close(from);
}

/* ---- what is whole */

static void times_of(const struct cp_entry *e, struct timespec times[2])
{
	times[0] = (struct timespec){.tv_nsec = UTIME_OMIT};
	times[1] = (struct timespec){.tv_sec = e->seconds, .tv_nsec = (long)e->nanoseconds};
}

static void attributes_set(struct cp_target *t, uint32_t i, int fd)
{
	const struct cp_entry *e = entry_of(t, i);
	struct timespec times[2];

	times_of(e, times);
	if (fchmod(fd, e->mode) || futimens(fd, times))
		failed(t, i, errno);
}

/* Every block was there under the file's own name. */
static void file_kept(struct cp_target *t, uint32_t i)
{
	struct stat st;
	int fd = there_open(parent_open(t, i), entry_of(t, i)->name, &st);

	if (fd < 0)
		failed(t, i, errno);
	attributes_set(t, i, fd);
	close(fd);
}

static void file_finish(struct cp_target *t, uint32_t i, bool wrong)
{
	const struct cp_entry *e = entry_of(t, i);
	int at = parent_open(t, i), fd;
	char name[PART_BYTES];

	part_name(t, i, name);
	if (wrong) {
		unlinkat(at, name, 0);
		return;
	}
	if (all_kept(e) && is_without_part(t, i)) {
		file_kept(t, i);
		return;
	}
	fd = file_open(t, i);
	if (ftruncate(fd, (off_t)e->bytes))
		failed(t, i, errno);
	attributes_set(t, i, fd);
	file_release(t);
	if (renameat(at, name, at, e->name))
		failed(t, i, errno);
}

static void link_make(struct cp_target *t, uint32_t i)
{
	const struct cp_entry *e = entry_of(t, i);
	int at = parent_open(t, i);
	char name[PART_BYTES];
	struct timespec times[2];

	part_name(t, i, name);
	unlinkat(at, name, 0);
	times_of(e, times);
	if (symlinkat(e->link, at, name) || utimensat(at, name, times, AT_SYMLINK_NOFOLLOW) ||
	    renameat(at, name, at, e->name))
		failed(t, i, errno);
}

void cp_target_finish(struct cp_target *t, uint32_t i, bool wrong)
{
	if (entry_of(t, i)->kind == CP_FILE)
		file_finish(t, i, wrong);
	else if (entry_of(t, i)->kind == CP_LINK)
		link_make(t, i);
	if (t->file == i)
		file_release(t);
}

/* A folder stands before its entries in the list: backwards, its time is set after they have changed it. */
void cp_target_close(struct cp_target *t, bool sync)
{
	for (uint32_t i = t->list->count; i-- > 0;) {
		if (entry_of(t, i)->kind == CP_FOLDER)
			attributes_set(t, i, i ? folder_open(t, i) : t->root);
	}
	if (sync && syncfs(t->root))
		die("%s: %s", t->path, strerror(errno));
	folder_release(t);
	close(t->root);
}
