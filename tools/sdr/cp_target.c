/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sdr/cp_items.h"
#include "sdr/cp_target.h"
#include "sdr/meet.h"

#define NONE UINT32_MAX

enum { PART_BYTES = 32 };

static void name_write(const struct cp_target *t, uint32_t i, char path[PATH_MAX])
{
	if (!cp_list_path(t->list, i, path, PATH_MAX))
		snprintf(path, PATH_MAX, "%s", t->list->entry[i].name);
}

static void __attribute__((noreturn)) failed(const struct cp_target *t, uint32_t i, int err)
{
	char path[PATH_MAX];

	name_write(t, i, path);
	if (err == ELOOP || err == ENOTDIR)
		die("%s: a link or a file is in the way, or lies above it", path);
	die("%s: %s", path, strerror(err));
}

static struct cp_entry *entry_of(const struct cp_target *t, uint32_t i)
{
	return &t->list->entry[i];
}

/* What could not be set is not the end of the copy. */
static void unset(struct cp_target *t, uint32_t i)
{
	int err = errno;
	char path[PATH_MAX];

	name_write(t, i, path);
	fprintf(stderr, "sdr_cp: %s: not all of its attributes could be set: %s\n", path, strerror(err));
	t->failed++;
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

int cp_target_folder(struct cp_target *t, uint32_t i)
{
	uint32_t way[CP_DEPTH_MAX + 1], n = 0;
	int fd = t->root;

	if (t->folder == i)
		return t->folder_fd;
	if (fd < 0 || (t->dry && entry_of(t, i)->item & ITEM_FRESH))
		return -1;
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

/* A file that is entry 0 is in the root. */
static int parent_open(struct cp_target *t, uint32_t i)
{
	return i ? cp_target_folder(t, entry_of(t, i)->parent) : t->root;
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
	if ((st.st_mode & 0700) != 0700 && fchmod(cp_target_folder(t, i), (st.st_mode & 07777) | 0700))
		failed(t, i, errno);
}

/* ---- the target itself */

/* The folder at a path of the user's; -1 and errno. */
static int path_open(const struct cp_target *t, const char *path)
{
	struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};

	if (t->base < 0)
		return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return (int)syscall(SYS_openat2, t->base, path, &how, sizeof(how));
}

/* The folder that the target is in, or is to be in, and its name there. */
static int above_open(const struct cp_target *t, char **name)
{
	char *copy = strdup(t->path), *again = strdup(t->path);
	int fd;

	if (!copy || !again)
		die("no memory");
	*name = strdup(basename(again));
	fd = path_open(t, dirname(copy));
	free(copy);
	free(again);
	if (fd < 0)
		die("%s: %s", t->path, strerror(errno));
	return fd;
}

/* One that others come into is made as mkdir(1) does it. */
static void root_make(struct cp_target *t)
{
	char *name;
	int above = above_open(t, &name);

	if (mkdirat(above, name, entry_of(t, 0)->kind == CP_PLACE ? 0777 : 0700))
		die("%s: %s", t->path, strerror(errno));
	t->root = enter(above, name);
	close(above);
	free(name);
}

static void root_folder(struct cp_target *t)
{
	bool fresh;

	t->root = path_open(t, t->path);
	fresh = t->root < 0 && errno == ENOENT;
	entry_of(t, 0)->item = fresh ? ITEM_FRESH : 0;
	if (fresh && t->dry)
		return;
	if (fresh)
		root_make(t);
	if (t->root < 0)
		die("%s: %s", t->path, strerror(errno));
}

/* The name is the target's unless that is a folder. */
static void root_file(struct cp_target *t)
{
	struct cp_entry *e = entry_of(t, 0);

	t->root = path_open(t, t->path);
	if (t->root >= 0)
		return;
	if (errno != ENOTDIR && errno != ENOENT)
		die("%s: %s", t->path, strerror(errno));
	free(e->name);
	t->root = above_open(t, &e->name);
}

void cp_target_open(struct cp_target *t)
{
	t->folder = NONE;
	t->file = NONE;
	cp_source_add(t->list, 0, t->path);
	if (entry_of(t, 0)->kind == CP_FILE)
		root_file(t);
	else
		root_folder(t);
}

/* ---- what is there */

static int there_open(int at, const char *name, struct stat *st)
{
	int fd = openat(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0 && !fstat(fd, st) && (S_ISREG(st->st_mode) || S_ISDIR(st->st_mode)))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static bool is_kind(const struct cp_entry *e, const struct stat *st)
{
	return cp_is_folder(e)      ? S_ISDIR(st->st_mode)
	       : e->kind == CP_LINK ? S_ISLNK(st->st_mode)
				    : S_ISREG(st->st_mode);
}

static bool points_same(int at, const struct cp_entry *e)
{
	char text[CP_LINK_MAX + 1];
	ssize_t n = readlinkat(at, e->name, text, sizeof(text));

	return n == (ssize_t)strlen(e->link) && !memcmp(text, e->link, (size_t)n);
}

static bool attributes_differ(int at, const struct cp_entry *e)
{
	struct stat st;
	int fd = there_open(at, e->name[0] ? e->name : ".", &st);
	bool differ = fd >= 0 && !cp_attributes_same(e, fd);

	if (fd >= 0)
		close(fd);
	return differ;
}

static unsigned owners_differ(const struct cp_entry *e, const struct stat *st)
{
	return (st->st_uid != e->owner ? ITEM_OWNER : 0u) | (st->st_gid != e->group ? ITEM_GROUP : 0u);
}

/* Of something of the entry's kind. */
static unsigned differences(struct cp_target *t, int at, const struct cp_entry *e, const struct stat *st)
{
	unsigned item = 0;

	if (e->kind == CP_FILE && (uint64_t)st->st_size != e->bytes)
		item |= ITEM_SIZE;
	if (st->st_mtim.tv_sec != e->seconds || (uint32_t)st->st_mtim.tv_nsec != e->nanoseconds)
		item |= ITEM_TIME;
	if (t->wants.owners)
		item |= owners_differ(e, st);
	if (e->kind == CP_LINK)
		return item | (points_same(at, e) ? 0 : ITEM_CONTENT);
	if ((st->st_mode & 07777) != cp_mode(e, &t->wants, t->wants.owners ? e->owner : st->st_uid, e->group))
		item |= ITEM_MODE;
	if (t->wants.attributes && attributes_differ(at, e))
		item |= ITEM_ATTRIBUTES;
	return item;
}

/* One more name of a file is the same if it is the first one's file, and stays it. */
static unsigned name_differs(struct cp_target *t, const struct cp_entry *e, const struct stat *st)
{
	const struct cp_entry *first = entry_of(t, (uint32_t)e->bytes);
	int at = parent_open(t, (uint32_t)e->bytes);
	struct stat other;

	if (!first->same || at < 0 || fstatat(at, first->name, &other, AT_SYMLINK_NOFOLLOW))
		return ITEM_FRESH;
	return other.st_ino == st->st_ino && other.st_dev == st->st_dev ? 0 : ITEM_FRESH;
}

void cp_target_look(struct cp_target *t, uint32_t i)
{
	struct cp_entry *e = entry_of(t, i);
	int at = i || !cp_is_folder(e) ? parent_open(t, i) : t->root;
	struct stat st;

	if (e->kind == CP_PLACE || e->item & ITEM_FRESH)
		return;
	if (at < 0 || fstatat(at, e->name[0] ? e->name : ".", &st, AT_SYMLINK_NOFOLLOW) || !is_kind(e, &st))
		e->item = ITEM_FRESH;
	else
		e->item = (uint8_t)(e->kind == CP_NAME ? name_differs(t, e, &st) : differences(t, at, e, &st));
	if (e->kind == CP_FILE && !(e->item & (ITEM_FRESH | ITEM_SIZE | ITEM_TIME)) && !t->checksum)
		cp_keep_all(e);
	if (i && e->kind == CP_FOLDER && !t->dry)
		folder_make(t, i);
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
	struct stat st;

	if (t->file == i)
		return t->file_fd;
	file_release(t);
	t->file_fd = part_open(t, i);
	t->file = i;
	if (fstat(t->file_fd, &st))
		failed(t, i, errno);
	t->file_end = (uint64_t)st.st_size;
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

static int file_there(struct cp_target *t, uint32_t i)
{
	struct stat st;
	int fd = there_open(parent_open(t, i), entry_of(t, i)->name, &st);

	if (fd >= 0 && (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != entry_of(t, i)->bytes)) {
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

	if (e->same || parent_open(t, i) < 0)
		return;
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
	t->file_end = at > t->file_end ? at : t->file_end;
}

enum { PAGE = 4096 };

static bool is_zero(const uint8_t *p, uint64_t bytes)
{
	return !p[0] && !memcmp(p, p + 1, bytes - 1);
}

/* How many bytes are alike in being zero or not, a page each, and which. */
static uint64_t run_of(const uint8_t *p, uint64_t bytes, bool *zero)
{
	uint64_t at = 0;

	while (at < bytes) {
		uint64_t n = bytes - at < PAGE ? bytes - at : PAGE;
		bool z = is_zero(p + at, n);

		if (at && z != *zero)
			break;
		*zero = z;
		at += n;
	}
	return at;
}

/* What is behind the end is zero already. */
static void data_write(struct cp_target *t, uint32_t i, uint64_t at, const uint8_t *p, uint64_t bytes)
{
	file_open(t, i);
	while (bytes) {
		bool zero = false;
		uint64_t n = run_of(p, bytes, &zero);

		if (!zero || at < t->file_end)
			write_all(t, i, at, p, n);
		at += n;
		p += n;
		bytes -= n;
	}
}

void cp_target_write(struct cp_target *t, uint32_t i, uint32_t block, const uint8_t *p)
{
	static const uint8_t zeroes[CP_BLOCK];
	const struct cp_entry *e = entry_of(t, i);

	data_write(t, i, (uint64_t)block * CP_BLOCK, p ? p : zeroes, cp_block_bytes(e, block));
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
	return e->same || (e->bytes && e->kept_bytes == e->bytes);
}

static void block_copy(struct cp_target *t, uint32_t i, uint32_t b, int from, uint8_t *memory)
{
	struct cp_entry *e = entry_of(t, i);
	uint64_t bytes = cp_block_bytes(e, b);

	if (block_read(from, b, memory, bytes) < bytes || !XXH128_isEqual(XXH3_128bits(memory, bytes), e->hash[b]))
		die("%s has changed meanwhile", e->name);
	data_write(t, i, (uint64_t)b * CP_BLOCK, memory, bytes);
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

/* Every block was there under the file's own name. */
static void file_kept(struct cp_target *t, uint32_t i)
{
	struct stat st;
	int fd = there_open(parent_open(t, i), entry_of(t, i)->name, &st);

	if (fd < 0 || !cp_attributes_set(entry_of(t, i), &t->wants, fd))
		unset(t, i);
	if (fd >= 0)
		close(fd);
}

static void file_finish(struct cp_target *t, uint32_t i)
{
	const struct cp_entry *e = entry_of(t, i);
	int at = parent_open(t, i), fd;
	char name[PART_BYTES];

	if (e->same && !e->item)
		return;
	part_name(t, i, name);
	if (e->bad) {
		unlinkat(at, name, 0);
		return;
	}
	if (e->same || (all_kept(e) && is_without_part(t, i))) {
		file_kept(t, i);
		return;
	}
	fd = file_open(t, i);
	if (ftruncate(fd, (off_t)e->bytes))
		failed(t, i, errno);
	if (!cp_attributes_set(e, &t->wants, fd))
		unset(t, i);
	file_release(t);
	if (renameat(at, name, at, e->name))
		failed(t, i, errno);
}

static void link_make(struct cp_target *t, uint32_t i)
{
	const struct cp_entry *e = entry_of(t, i);
	int at = parent_open(t, i);
	char name[PART_BYTES];

	if (e->item & (ITEM_FRESH | ITEM_CONTENT)) {
		part_name(t, i, name);
		unlinkat(at, name, 0);
		if (symlinkat(e->link, at, name) || renameat(at, name, at, e->name))
			failed(t, i, errno);
	}
	if (e->item && !cp_attributes_set_link(e, &t->wants, at, e->name))
		unset(t, i);
}

/* A bad file has none, so it gets no more. */
static void name_make(struct cp_target *t, uint32_t i)
{
	const struct cp_entry *e = entry_of(t, i), *first = entry_of(t, (uint32_t)e->bytes);
	int from, at, err;
	char name[PART_BYTES];

	if (!e->item || first->bad)
		return;
	from = dup(parent_open(t, (uint32_t)e->bytes));
	at = parent_open(t, i);
	part_name(t, i, name);
	unlinkat(at, name, 0);
	err = linkat(from, first->name, at, name, 0) || renameat(at, name, at, e->name) ? errno : 0;
	/* If it was that file already, nothing was renamed. */
	unlinkat(at, name, 0);
	close(from);
	if (err)
		failed(t, i, err);
}

void cp_target_finish(struct cp_target *t, uint32_t i)
{
	switch (entry_of(t, i)->kind) {
	case CP_FILE: file_finish(t, i); break;
	case CP_LINK: link_make(t, i); break;
	case CP_NAME: name_make(t, i); break;
	default: break;
	}
	if (t->file == i)
		file_release(t);
}

/* A folder stands before its entries in the list: backwards, its time is set after they have changed it. */
void cp_target_close(struct cp_target *t, bool sync)
{
	for (uint32_t i = t->list->count; i-- > 0 && !t->dry;) {
		if (entry_of(t, i)->kind == CP_FOLDER &&
		    !cp_attributes_set(entry_of(t, i), &t->wants, i ? cp_target_folder(t, i) : t->root))
			unset(t, i);
	}
	if (sync && !t->dry && syncfs(t->root))
		die("%s: %s", t->path, strerror(errno));
	folder_release(t);
	if (t->root >= 0)
		close(t->root);
}
