/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The character device of rdma_cm, which librdmacm opens and writes commands to. The library that `verbena run`
 * preloads stands before the calls that it makes; who implements the device is libibverbs.so.1, which says so when it
 * is loaded. librdmacm depends on that, so it is always there first.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define CDEV_PATH "/dev/infiniband/rdma_cm"

struct cdev_ops {
	/* As open(): a descriptor, or -1 and errno. */
	int (*open)(int flags);
	/* As write(). False: the descriptor is none of ours, whatever its number was before, and nothing was done. */
	bool (*write)(int fd, const void *buf, size_t len, ssize_t *written);
	/* Whether a file of which fstat() returns these numbers is ours. Keeps errno. */
	bool (*has)(dev_t, ino_t);
};

/* How libibverbs.so.1 finds the preloaded library, by this name; borrowed for good. */
typedef void cdev_register_fn(const struct cdev_ops *);
#define CDEV_REGISTER "verbena_cdev_register"

/* Within the preloaded library. Whether the path is the device's, and somebody implements it: *fd is set as by open().
 */
bool cdev_open_path(const char *path, int flags, int *fd);
