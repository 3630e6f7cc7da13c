/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's description of the device, as this process reads it: from the tree that
 * VERBENA_SYSFS names, or, without one, from the text that such a tree would have.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs/cdev.h"
#include "verbs/explain.h"
#include "verbs/hostid.h"
#include "verbs/objects.h"
#include "verbs/private.h"
#include "verbs/tree.h"

static const char *private_tree(void)
{
	const char *root = getenv("VERBENA_SYSFS");

	return root && root[0] == '/' ? root : NULL;
}

const char *ibv_get_sysfs_path(void)
{
	const char *root = private_tree();

	return root ? root : "/sys";
}

static int read_file(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len;
	int saved;

	if (fd < 0)
		return -1;
	len = read(fd, buf, size);
	saved = errno;
	close(fd);
	if (len < 0)
		return fail_minus_one(saved);
	if (len > 0 && buf[len - 1] == '\n')
		len--;
	if ((size_t)len < size)
		buf[len] = '\0';
	return (int)len;
}

static const struct ibv_device *device_at(const char *dir)
{
	const struct ibv_device *d;

	for (unsigned i = 0; (d = device_get(i)); i++) {
		if (!strcmp(dir, d->ibdev_path))
			return d;
	}
	return NULL;
}

int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	const struct ibv_device *d = private_tree() ? NULL : device_at(dir);
	char path[4096];
	ssize_t len;

	if (d) {
		char given[DEVICE_NAME_BYTES];
		const struct tree_facts facts = {.guid = hostid_guid(),
						 .given = given,
						 .device_count = (unsigned)device_index(d) + 1,
						 .iwarp = engine_iwarp_devices(),
						 .port.active = true};

		engine_device_given(given);
		snprintf(path, sizeof(path), "class/infiniband/%s/%s", d->name, file);
		len = tree_read(&facts, path, buf, size);
		return len < 0 ? fail_minus_one((int)-len) : (int)len;
	}
	/* librdmacm's first question. */
	if (!strcmp(file, "class/misc/rdma_cm/abi_version") && !dlsym(RTLD_DEFAULT, CDEV_REGISTER))
		return fail_minus_one(EXPLAIN(ENOENT,
					      "rdma_cm: there is no device, because this process has not loaded "
					      "verbena-paths.so; start the program with `verbena run`"));
	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, file) >= sizeof(path))
		return fail_minus_one(ENAMETOOLONG);
	return read_file(path, buf, size);
}
