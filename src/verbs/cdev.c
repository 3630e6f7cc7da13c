/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls that make a descriptor look like the character device of rdma_cm. Which descriptors may be some is a bit
 * each, and whether one really is, the owner of the device says: numbers are used again. A process that has none pays
 * one load a call.
 */
#undef _FORTIFY_SOURCE /* the calls are defined here, not called */
#include "verbs/cdev.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verbs/next.h"

enum { FDS_MAX = 65536, BITS = 64 };

static const struct cdev_ops *device; /* NULL: nobody implements one */
static uint64_t marks[FDS_MAX / BITS];
static bool any_mark;

EXPORT void verbena_cdev_register(const struct cdev_ops *);
void verbena_cdev_register(const struct cdev_ops *ops)
{
	__atomic_store_n(&device, ops, __ATOMIC_RELEASE);
}

static void mark(int fd)
{
	__atomic_fetch_or(&marks[fd / BITS], UINT64_C(1) << fd % BITS, __ATOMIC_RELAXED);
	__atomic_store_n(&any_mark, true, __ATOMIC_RELAXED);
}

static void unmark(int fd)
{
	__atomic_fetch_and(&marks[fd / BITS], ~(UINT64_C(1) << fd % BITS), __ATOMIC_RELAXED);
}

static bool is_marked(int fd)
{
	return __atomic_load_n(&any_mark, __ATOMIC_RELAXED) && fd >= 0 && fd < FDS_MAX &&
	       __atomic_load_n(&marks[fd / BITS], __ATOMIC_RELAXED) >> fd % BITS & 1;
}

bool cdev_open_path(const char *path, int flags, int *fd)
{
	const struct cdev_ops *ops = __atomic_load_n(&device, __ATOMIC_ACQUIRE);

	if (!ops || !path || strcmp(path, CDEV_PATH))
		return false;
	*fd = ops->open(flags);
	if (*fd >= FDS_MAX) {
		close(*fd);
		*fd = -1;
		errno = EMFILE;
	}
	if (*fd >= 0)
		mark(*fd);
	return true;
}

/* ---- the calls --------------------------------------------------------------------------------- */

static int missing(void)
{
	errno = ENOSYS;
	return -1;
}

#define NEXT_MISSING missing()

typedef ssize_t write_type(int, const void *, size_t);
typedef int dup_type(int);
typedef int dup2_type(int, int);
typedef int dup3_type(int, int, int);
typedef int fcntl_type(int, int, ...);
typedef int fcntl64_type(int, int, ...);
typedef int socket_type(int, int, int);
typedef int fstat_type(int, struct stat *);
typedef int fstat64_type(int, struct stat64 *);
typedef int __fxstat_type(int, int, struct stat *);
typedef int __fxstat64_type(int, int, struct stat64 *);

EXPORT ssize_t write(int fd, const void *buf, size_t len)
{
	ssize_t written;
	NEXT(write);
	if (is_marked(fd)) {
		if (device->write(fd, buf, len, &written))
			return written;
		unmark(fd);
	}
	return call(fd, buf, len);
}

/* A copy is the same file. A mark too many does no harm: whether the number is a channel is asked when it is written
 * to. */
static int copied(int from, int to)
{
	if (is_marked(from) && to >= 0 && to < FDS_MAX)
		mark(to);
	return to;
}

EXPORT int dup(int fd)
{
	NEXT(dup);
	return copied(fd, call(fd));
}

EXPORT int dup2(int fd, int to)
{
	NEXT(dup2);
	return copied(fd, call(fd, to));
}

EXPORT int dup3(int fd, int to, int flags)
{
	NEXT(dup3);
	return copied(fd, call(fd, to, flags));
}

/* clang-format off */
/* Whatever a command's argument is, it is one word. */
#define WRAP_FCNTL(name)                                                                           \
	EXPORT int name(int fd, int command, ...)                                                  \
	{                                                                                          \
		NEXT(name);                                                                        \
		va_list ap;                                                                        \
		va_start(ap, command);                                                             \
		void *arg = va_arg(ap, void *);                                                    \
		va_end(ap);                                                                        \
		int rc = call(fd, command, arg);                                                   \
		return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? copied(fd, rc) : rc;     \
	}

WRAP_FCNTL(fcntl)
WRAP_FCNTL(fcntl64)
/* clang-format on */

/*
 * Where the host has RDMA of its own, its kernel would be asked for the number of the real device, and ours refused for
 * another. librdmacm goes on without an answer.
 */
EXPORT int socket(int domain, int type, int protocol)
{
	NEXT(socket);
	if (domain == AF_NETLINK && protocol == NETLINK_RDMA && __atomic_load_n(&device, __ATOMIC_RELAXED)) {
		errno = EPROTONOSUPPORT;
		return -1;
	}
	return call(domain, type, protocol);
}

/* clang-format off */
#define WRAP_FSTAT(name, params, args)                                                             \
	EXPORT int name params;                                                                    \
	int name params                                                                            \
	{                                                                                          \
		NEXT(name);                                                                        \
		int rc = call args;                                                                \
		if (!rc && is_marked(fd) && device->has(st->st_dev, st->st_ino))                   \
			st->st_mode = (st->st_mode & ~(mode_t)S_IFMT) | S_IFCHR;                   \
		return rc;                                                                         \
	}

WRAP_FSTAT(fstat, (int fd, struct stat *st), (fd, st))
WRAP_FSTAT(fstat64, (int fd, struct stat64 *st), (fd, st))
WRAP_FSTAT(__fxstat, (int version, int fd, struct stat *st), (version, fd, st))
WRAP_FSTAT(__fxstat64, (int version, int fd, struct stat64 *st), (version, fd, st))
/* clang-format on */
