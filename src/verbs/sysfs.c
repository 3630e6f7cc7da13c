/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's description of the device, as this process reads it: from the tree that
 * VERBENA_SYSFS names, or, without one, from the text that such a tree would have.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	const char *ours = device_get()->ibdev_path;
	char path[4096];
	ssize_t len;

	if (!private_tree() && !strcmp(dir, ours)) {
		const struct tree_facts facts = { .guid = hostid_guid() };

		snprintf(path, sizeof(path), "class/infiniband/" DEVICE_NAME "/%s", file);
		len = tree_read(&facts, path, buf, size);
		return len < 0 ? fail_minus_one((int)-len) : (int)len;
	}
	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, file) >= sizeof(path))
		return fail_minus_one(ENAMETOOLONG);
	return read_file(path, buf, size);
}
