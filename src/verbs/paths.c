/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A library to preload: it redirects calls that name /sys/class/infiniband*, what its links lead to, or /dev/infiniband
 * to the tree that VERBENA_SYSFS names (see tree.h), and the device nodes to /dev/null, which is a character device
 * that anyone may open. VERBENA_PATHS=off leaves every call alone.
 *
 * It lives in every child of the process, vfork children included: no call of its own allocates,
 * locks or changes errno. Only at the end of a process it does more: the last user of the tree removes
 * it (tree_use.h).
 */
#undef _FORTIFY_SOURCE /* the calls are defined here, not called */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs/cdev.h"
#include "verbs/next.h"
#include "verbs/tree_use.h"

static char root[PATH_MAX]; /* empty: leave every call alone */
static char tree[PATH_MAX]; /* empty: there is none, or we must not remove it */
static int tree_fd = -1;    /* shows that we use it */

/* ---- where a path leads ------------------------------------------------------------------------ */

__attribute__((constructor)) static void root_find(void)
{
	int saved = errno;
	const char *dir = getenv("VERBENA_SYSFS");
	const char *paths = getenv("VERBENA_PATHS");

	if (dir && dir[0] == '/' && strlen(dir) < sizeof(root)) {
		const char *use = getenv("VERBENA_SYSFS_USE");

		if (!(paths && !strcmp(paths, "off")))
			strcpy(root, dir);
		/* A tree that another program made has no such descriptor. */
		if (use)
			strcpy(tree, dir);
		if (use)
			tree_fd = tree_use_inherited(dir, atoi(use));
	}
	errno = saved;
}

/* A child that lives on has the descriptor too, so the tree is still in use. */
__attribute__((destructor)) static void tree_leave(void)
{
	int saved = errno;

	if (tree_fd >= 0)
		close(tree_fd);
	if (tree[0])
		tree_remove_unused(tree);
	errno = saved;
}

/* Shells and children of fork end this way. */
static _Noreturn void end(int status)
{
	tree_leave();
	for (;;)
		syscall(SYS_exit_group, status);
}

EXPORT void _exit(int status)
{
	end(status);
}

EXPORT void _Exit(int status)
{
	end(status);
}

/* The rest of path after prefix, or NULL if it does not begin with it. */
static const char *after(const char *path, const char *prefix)
{
	size_t len = strlen(prefix);

	return strncmp(path, prefix, len) ? NULL : path + len;
}

/* Whether the tree has a node of that name in /dev/infiniband. */
static bool is_node(const char *name)
{
	static const char below[] = "/dev/infiniband/";
	size_t base = strlen(root), len = strlen(name);
	int saved = errno;
	char path[PATH_MAX];
	bool there;

	if (!*name || strchr(name, '/') || base + sizeof(below) + len > sizeof(path))
		return false;
	memcpy(path, root, base);
	memcpy(path + base, below, sizeof(below) - 1);
	memcpy(path + base + sizeof(below) - 1, name, len + 1);
	there = !syscall(SYS_faccessat, AT_FDCWD, path, F_OK);
	errno = saved;
	return there;
}

/* Below /sys: the classes, and what their links lead to. */
static bool is_in_tree(const char *below)
{
	return after(below, "class/infiniband") || after(below, "devices/virtual/verbena") ||
	       after(below, "bus/verbena");
}

/*
 * The path to use instead: `path` itself, or one in buf of PATH_MAX bytes. A path that is too long
 * stays unchanged; there is no such file in /sys either.
 */
static const char *lead(const char *path, char *buf)
{
	const char *rest;
	size_t base, len;

	if (!root[0] || !path || path[0] != '/')
		return path;
	rest = after(path, "/dev/infiniband/");
	if (rest && is_node(rest))
		return "/dev/null";
	rest = after(path, "/sys/");
	if (rest && is_in_tree(rest)) {
		rest--;
	} else {
		rest = after(path, "/dev/infiniband");
		if (!rest || (*rest && *rest != '/'))
			return path;
		rest = path;
	}
	base = strlen(root);
	len = strlen(rest);
	if (base + len >= PATH_MAX)
		return path;
	memcpy(buf, root, base);
	memcpy(buf + base, rest, len + 1);
	return buf;
}

/* ---- the calls --------------------------------------------------------------------------------- */

__attribute__((constructor)) static void next_find_all(void)
{
	for (const struct next *n = __start_paths_next; n < __stop_paths_next; n++)
		next_find(n);
}

static int missing(void)
{
	errno = ENOSYS;
	return -1;
}

#define NEXT_MISSING missing()

typedef int open_fn(const char *, int, ...);
typedef int openat_fn(int, const char *, int, ...);
typedef int open_2_fn(const char *, int);
typedef int openat_2_fn(int, const char *, int);
typedef int access_fn(const char *, int);
typedef int faccessat_fn(int, const char *, int, int);
typedef int stat_fn(const char *, struct stat *);
typedef int stat64_fn(const char *, struct stat64 *);
typedef int xstat64_fn(int, const char *, struct stat64 *);
typedef int fstatat64_fn(int, const char *, struct stat64 *, int);
typedef int fxstatat64_fn(int, int, const char *, struct stat64 *, int);
typedef int scandir64_fn(const char *, struct dirent64 ***, int (*)(const struct dirent64 *),
			 int (*)(const struct dirent64 **, const struct dirent64 **));
typedef int xstat_fn(int, const char *, struct stat *);
typedef int fstatat_fn(int, const char *, struct stat *, int);
typedef int fxstatat_fn(int, int, const char *, struct stat *, int);
typedef int statx_fn(int, const char *, int, unsigned int, struct statx *);
typedef int scandir_fn(const char *, struct dirent ***, int (*)(const struct dirent *),
		       int (*)(const struct dirent **, const struct dirent **));
typedef ssize_t readlink_fn(const char *, char *, size_t);
typedef ssize_t readlink_chk_fn(const char *, char *, size_t, size_t);
typedef ssize_t readlinkat_fn(int, const char *, char *, size_t);
typedef ssize_t readlinkat_chk_fn(int, const char *, char *, size_t, size_t);
typedef FILE *fopen_fn(const char *, const char *);
typedef DIR *opendir_fn(const char *);
typedef char *realpath_fn(const char *, char *);
typedef char *realpath_chk_fn(const char *, char *, size_t);
typedef char *canonicalize_fn(const char *);

static bool takes_mode(int flags)
{
	return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
}

/* clang-format off */
#define WRAP_OPEN(name)                                                                            \
	EXPORT int name(const char *path, int flags, ...);                                         \
	int name(const char *path, int flags, ...)                                                 \
	{                                                                                          \
		char buf[PATH_MAX];                                                                \
		mode_t mode = 0;                                                                   \
		int fd;                                                                            \
		NEXT(name);                                                            \
		if (takes_mode(flags)) {                                                           \
			va_list args;                                                              \
			va_start(args, flags);                                                     \
			mode = va_arg(args, mode_t);                                               \
			va_end(args);                                                              \
		}                                                                                  \
		if (cdev_open_path(path, flags, &fd))                                              \
			return fd;                                                                 \
		return call(lead(path, buf), flags, mode);                                         \
	}

#define WRAP_OPENAT(name)                                                                          \
	EXPORT int name(int dir, const char *path, int flags, ...);                                \
	int name(int dir, const char *path, int flags, ...)                                        \
	{                                                                                          \
		char buf[PATH_MAX];                                                                \
		mode_t mode = 0;                                                                   \
		NEXT(name);                                                          \
		if (takes_mode(flags)) {                                                           \
			va_list args;                                                              \
			va_start(args, flags);                                                     \
			mode = va_arg(args, mode_t);                                               \
			va_end(args);                                                              \
		}                                                                                  \
		return call(dir, lead(path, buf), flags, mode);                                    \
	}

/* A call whose path is the parameter `path`. */
#define WRAP(type, name, params, args)                                                             \
	EXPORT type name params;                                                                   \
	type name params                                                                           \
	{                                                                                          \
		char buf[PATH_MAX];                                                                \
		NEXT(name);                                                        \
		return call args;                                                                  \
	}

#define open_type open_fn
#define open64_type open_fn
#define openat_type openat_fn
#define openat64_type openat_fn
WRAP_OPEN(open)
WRAP_OPEN(open64)
WRAP_OPENAT(openat)
WRAP_OPENAT(openat64)

#define __open_2_type open_2_fn
#define __open64_2_type open_2_fn
#define __openat_2_type openat_2_fn
#define __openat64_2_type openat_2_fn
WRAP(int, __open_2, (const char *path, int flags), (lead(path, buf), flags))
WRAP(int, __open64_2, (const char *path, int flags), (lead(path, buf), flags))
WRAP(int, __openat_2, (int dir, const char *path, int flags), (dir, lead(path, buf), flags))
WRAP(int, __openat64_2, (int dir, const char *path, int flags), (dir, lead(path, buf), flags))

#define access_type access_fn
#define euidaccess_type access_fn
#define eaccess_type access_fn
#define faccessat_type faccessat_fn
WRAP(int, access, (const char *path, int mode), (lead(path, buf), mode))
WRAP(int, euidaccess, (const char *path, int mode), (lead(path, buf), mode))
WRAP(int, eaccess, (const char *path, int mode), (lead(path, buf), mode))
WRAP(int, faccessat, (int dir, const char *path, int mode, int flags),
     (dir, lead(path, buf), mode, flags))

#define stat_type stat_fn
#define lstat_type stat_fn
#define stat64_type stat64_fn
#define lstat64_type stat64_fn
#define fstatat_type fstatat_fn
#define fstatat64_type fstatat64_fn
#define statx_type statx_fn
#define __xstat_type xstat_fn
#define __lxstat_type xstat_fn
#define __xstat64_type xstat64_fn
#define __lxstat64_type xstat64_fn
#define __fxstatat_type fxstatat_fn
#define __fxstatat64_type fxstatat64_fn
WRAP(int, stat, (const char *path, struct stat *st), (lead(path, buf), st))
WRAP(int, lstat, (const char *path, struct stat *st), (lead(path, buf), st))
WRAP(int, fstatat, (int dir, const char *path, struct stat *st, int flags),
     (dir, lead(path, buf), st, flags))
WRAP(int, statx, (int dir, const char *path, int flags, unsigned int mask, struct statx *st),
     (dir, lead(path, buf), flags, mask, st))
WRAP(int, __xstat, (int ver, const char *path, struct stat *st), (ver, lead(path, buf), st))
WRAP(int, __lxstat, (int ver, const char *path, struct stat *st), (ver, lead(path, buf), st))
WRAP(int, __fxstatat, (int ver, int dir, const char *path, struct stat *st, int flags),
     (ver, dir, lead(path, buf), st, flags))

WRAP(int, stat64, (const char *path, struct stat64 *st), (lead(path, buf), st))
WRAP(int, lstat64, (const char *path, struct stat64 *st), (lead(path, buf), st))
WRAP(int, fstatat64, (int dir, const char *path, struct stat64 *st, int flags),
     (dir, lead(path, buf), st, flags))
WRAP(int, __xstat64, (int ver, const char *path, struct stat64 *st), (ver, lead(path, buf), st))
WRAP(int, __lxstat64, (int ver, const char *path, struct stat64 *st), (ver, lead(path, buf), st))
WRAP(int, __fxstatat64, (int ver, int dir, const char *path, struct stat64 *st, int flags),
     (ver, dir, lead(path, buf), st, flags))

#define scandir_type scandir_fn
WRAP(int, scandir,
     (const char *path, struct dirent ***list, int (*filter)(const struct dirent *),
      int (*compare)(const struct dirent **, const struct dirent **)),
     (lead(path, buf), list, filter, compare))

#define scandir64_type scandir64_fn
WRAP(int, scandir64,
     (const char *path, struct dirent64 ***list, int (*filter)(const struct dirent64 *),
      int (*compare)(const struct dirent64 **, const struct dirent64 **)),
     (lead(path, buf), list, filter, compare))

#define readlink_type readlink_fn
#define __readlink_chk_type readlink_chk_fn
#define readlinkat_type readlinkat_fn
#define __readlinkat_chk_type readlinkat_chk_fn
WRAP(ssize_t, readlink, (const char *path, char *to, size_t size), (lead(path, buf), to, size))
WRAP(ssize_t, __readlink_chk, (const char *path, char *to, size_t size, size_t room),
     (lead(path, buf), to, size, room))
WRAP(ssize_t, readlinkat, (int dir, const char *path, char *to, size_t size),
     (dir, lead(path, buf), to, size))
WRAP(ssize_t, __readlinkat_chk, (int dir, const char *path, char *to, size_t size, size_t room),
     (dir, lead(path, buf), to, size, room))

#undef NEXT_MISSING
#define NEXT_MISSING (missing(), NULL)

#define fopen_type fopen_fn
#define fopen64_type fopen_fn
#define opendir_type opendir_fn
#define realpath_type realpath_fn
#define __realpath_chk_type realpath_chk_fn
#define canonicalize_file_name_type canonicalize_fn
WRAP(FILE *, fopen, (const char *path, const char *mode), (lead(path, buf), mode))
WRAP(FILE *, fopen64, (const char *path, const char *mode), (lead(path, buf), mode))
WRAP(DIR *, opendir, (const char *path), (lead(path, buf)))
WRAP(char *, realpath, (const char *path, char *to), (lead(path, buf), to))
WRAP(char *, __realpath_chk, (const char *path, char *to, size_t room), (lead(path, buf), to, room))
WRAP(char *, canonicalize_file_name, (const char *path), (lead(path, buf)))
/* clang-format on */
