/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <linux/limits.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/byteorder.h"
#include "sdr/cp_attributes.h"
#include "sdr/meet.h"

enum { HEADER_LEN = 6, NAMES_MAX = 4096, NAMES_BYTES = 1 << 16 };

/* ---- extended attributes */

static bool begins(const char *name, const char *with)
{
	return !strncmp(name, with, strlen(with));
}

static bool is_copied(const char *name)
{
	if (begins(name, "user.") || begins(name, "system.posix_acl_"))
		return true;
	return !geteuid() && strcmp(name, "security.selinux") &&
	       (begins(name, "trusted.") || begins(name, "security."));
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

struct names {
	char text[NAMES_BYTES], *name[NAMES_MAX];
	size_t count;
};

/* Those that are copied, in order. False and errno. */
static bool names_get(int fd, struct names *n)
{
	ssize_t len = flistxattr(fd, n->text, sizeof(n->text));

	n->count = 0;
	if (len < 0)
		return errno == ENOTSUP;
	for (char *name = n->text; name < n->text + len && n->count < NAMES_MAX; name += strlen(name) + 1) {
		if (is_copied(name))
			n->name[n->count++] = name;
	}
	qsort(n->name, n->count, sizeof(n->name[0]), by_text);
	return true;
}

/* Writes one to p, which has room bytes; 0 and errno if it cannot be had, or is too long. */
static size_t attribute_read(int fd, const char *name, uint8_t *p, size_t room)
{
	size_t len = strlen(name), fixed = HEADER_LEN + len;
	ssize_t n;

	errno = E2BIG;
	if (fixed >= room)
		return 0;
	n = fgetxattr(fd, name, p + fixed, room - fixed);
	if (n < 0)
		return 0;
	put_be16(p, (uint16_t)len);
	put_be32(p + 2, (uint32_t)n);
	memcpy(p + HEADER_LEN, name, len);
	return fixed + (size_t)n;
}

/* All of a file's attributes; -1 and errno. */
static ssize_t attributes_get(int fd, uint8_t *p)
{
	static struct names names;
	size_t at = 0;

	if (!names_get(fd, &names))
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		size_t n = attribute_read(fd, names.name[i], p + at, CP_ATTRIBUTES_MAX - at);

		if (!n)
			return -1;
		at += n;
	}
	return (ssize_t)at;
}

bool cp_attributes_read(struct cp_entry *e, int fd)
{
	static uint8_t all[CP_ATTRIBUTES_MAX];
	ssize_t n = attributes_get(fd, all);

	if (n <= 0)
		return !n;
	e->attributes = malloc((size_t)n);
	if (!e->attributes)
		die("no memory");
	memcpy(e->attributes, all, (size_t)n);
	e->attributes_len = (uint32_t)n;
	return true;
}

bool cp_attributes_same(const struct cp_entry *e, int fd)
{
	static uint8_t all[CP_ATTRIBUTES_MAX];
	ssize_t n = attributes_get(fd, all);

	return n == (ssize_t)e->attributes_len && (!n || !memcmp(all, e->attributes, (size_t)n));
}

/* The next attribute at *at of an entry's; false: there is none, or what a peer says is none. */
static bool attribute_next(const struct cp_entry *e, size_t *at, char name[XATTR_NAME_MAX + 1], const uint8_t **value,
			   size_t *value_len)
{
	const uint8_t *p = e->attributes + *at;
	size_t left = e->attributes_len - *at, len;

	if (left < HEADER_LEN)
		return false;
	len = get_be16(p);
	*value_len = get_be32(p + 2);
	if (!len || len > XATTR_NAME_MAX || left - HEADER_LEN < len || left - HEADER_LEN - len < *value_len)
		return false;
	memcpy(name, p + HEADER_LEN, len);
	name[len] = 0;
	*value = p + HEADER_LEN + len;
	*at += HEADER_LEN + len + *value_len;
	return true;
}

static bool has(const struct cp_entry *e, const char *wanted)
{
	char name[XATTR_NAME_MAX + 1];
	const uint8_t *value;
	size_t at = 0, len;

	while (attribute_next(e, &at, name, &value, &len)) {
		if (!strcmp(name, wanted))
			return true;
	}
	return false;
}

/* Exactly those of the entry are there afterwards. */
static bool attributes_put(const struct cp_entry *e, int fd)
{
	static struct names names;
	char name[XATTR_NAME_MAX + 1];
	const uint8_t *value;
	size_t at = 0, len;
	bool all = names_get(fd, &names);

	for (size_t i = 0; i < names.count; i++) {
		if (!has(e, names.name[i]))
			all &= !fremovexattr(fd, names.name[i]);
	}
	while (attribute_next(e, &at, name, &value, &len))
		all &= is_copied(name) && !fsetxattr(fd, name, value, len, 0);
	return all;
}

/* ---- all of them */

static void times_of(const struct cp_entry *e, struct timespec times[2])
{
	times[0] = (struct timespec){.tv_nsec = UTIME_OMIT};
	times[1] = (struct timespec){.tv_sec = e->seconds, .tv_nsec = (long)e->nanoseconds};
}

uint16_t cp_mode(const struct cp_entry *e, const struct cp_wants *w, uint32_t owner, uint32_t group)
{
	bool own = w->owners && owner == e->owner && group == e->group;

	return own ? e->mode : e->mode & ~CP_SET_ID;
}

bool cp_attributes_set(const struct cp_entry *e, const struct cp_wants *w, int fd)
{
	struct timespec times[2];
	bool all = true;
	struct stat st;

	times_of(e, times);
	/* An owner takes capabilities away, and a mode may forbid to write attributes. */
	if (w->owners && fchown(fd, e->owner, e->group))
		all = false;
	if (w->attributes && !cp_attributes_same(e, fd))
		all &= (!fstat(fd, &st) && !fchmod(fd, (st.st_mode & 0777) | 0600)) & attributes_put(e, fd);
	if (fstat(fd, &st) || fchmod(fd, cp_mode(e, w, st.st_uid, st.st_gid)) || futimens(fd, times))
		all = false;
	return all;
}

bool cp_attributes_set_link(const struct cp_entry *e, const struct cp_wants *w, int at, const char *name)
{
	struct timespec times[2];

	times_of(e, times);
	if (w->owners && fchownat(at, name, e->owner, e->group, AT_SYMLINK_NOFOLLOW))
		return false;
	return !utimensat(at, name, times, AT_SYMLINK_NOFOLLOW);
}
