/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One walk names every file with its text, as the kernel prints it; rendering and reading are two
 * visitors of it. Counters are left out, because a file cannot count.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verbs/hostid.h"
#include "verbs/tree.h"

#define DEV  "class/infiniband/" DEVICE_NAME "/"
#define PORT DEV "ports/1/"

enum { PATH_BYTES = 4096, TEXT_BYTES = 128, GID_TABLE_LEN = 64 };

/* A path that ends in a slash is a directory. False ends the walk. */
typedef bool (*tree_visit)(void *arg, const char *path, const char *text);

static const struct {
	const char *path;
	const char *text;
} constant[] = {
	{ "class/infiniband_verbs/abi_version", "6" },
	{ "class/infiniband_verbs/" DEVICE_UVERBS "/ibdev", DEVICE_NAME },
	{ "class/infiniband_verbs/" DEVICE_UVERBS "/abi_version", "1" },
	{ DEV "node_type", "1: CA" },
	{ DEV "node_desc", DEVICE_NAME },
	{ DEV "fw_ver", VERBENA_VERSION },
	{ DEV "board_id", DEVICE_BOARD_ID },
	{ DEV "hca_type", "verbena" },
	{ DEV "hw_rev", "0" },
	{ DEV "device/vendor", "0x025642" },
	{ DEV "device/device", "0x0001" },
	{ DEV "device/numa_node", "-1" },
	{ DEV "device/net/", NULL },
	{ DEV "device/drivers/verbena/", NULL },
	{ PORT "state", "4: ACTIVE" },
	{ PORT "phys_state", "5: LinkUp" },
	{ PORT "rate", "100 Gb/sec (4X EDR)" },
	{ PORT "link_layer", "Ethernet" },
	{ PORT "lid", "0x0" },
	{ PORT "lid_mask_count", "0" },
	{ PORT "sm_lid", "0x0" },
	{ PORT "sm_sl", "0" },
	{ PORT "cap_mask", "0x04010000" },
	{ PORT "pkeys/0", "0xffff" },
	{ PORT "gids/", NULL },
	{ PORT "gid_attrs/types/", NULL },
	{ PORT "gid_attrs/ndevs/", NULL },
	{ PORT "counters/", NULL },
	{ PORT "hw_counters/", NULL },
	{ "dev/infiniband/", NULL },
};

/*
 * Launchers choose by the name of a device's driver, which they read from a link's target. Unlike the
 * kernel's link this one does not lead to the bus, where they could not follow it (paths.c).
 */
static const struct {
	const char *path;
	const char *target;
} links[] = {
	{ "dev/infiniband/" DEVICE_UVERBS, "/dev/null" },
	{ "dev/infiniband/rdma_cm", "/dev/null" },
	{ DEV "device/driver", "drivers/verbena" },
};

static bool visit_guids(const struct tree_facts *f, tree_visit visit, void *arg)
{
	char text[TEXT_BYTES];

	snprintf(text, sizeof(text), "%04x:%04x:%04x:%04x", (unsigned int)(f->guid >> 48),
		 (unsigned int)(f->guid >> 32 & 0xffff), (unsigned int)(f->guid >> 16 & 0xffff),
		 (unsigned int)(f->guid & 0xffff));
	return visit(arg, DEV "node_guid", text) && visit(arg, DEV "sys_image_guid", text);
}

static bool visit_gid(const struct tree_gid *gid, size_t index, tree_visit visit, void *arg)
{
	static const struct tree_gid none;
	char path[TEXT_BYTES], text[TEXT_BYTES];
	size_t at = 0;

	if (!gid)
		gid = &none;
	for (int i = 0; i < 16; i += 2)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%02x%02x", i ? ":" : "",
				       gid->raw[i], gid->raw[i + 1]);
	snprintf(path, sizeof(path), PORT "gids/%zu", index);
	if (!visit(arg, path, text))
		return false;
	if (gid == &none)
		return true;
	snprintf(path, sizeof(path), PORT "gid_attrs/types/%zu", index);
	if (!visit(arg, path, "RoCE v2"))
		return false;
	snprintf(path, sizeof(path), PORT "gid_attrs/ndevs/%zu", index);
	if (!visit(arg, path, gid->interface))
		return false;
	snprintf(path, sizeof(path), DEV "device/net/%s/", gid->interface);
	return visit(arg, path, NULL);
}

static void walk(const struct tree_facts *f, tree_visit visit, void *arg)
{
	for (size_t i = 0; i < sizeof(constant) / sizeof(constant[0]); i++)
		if (!visit(arg, constant[i].path, constant[i].text))
			return;
	if (!visit_guids(f, visit, arg))
		return;
	for (size_t i = 0; i < GID_TABLE_LEN; i++)
		if (!visit_gid(i < f->gid_count ? &f->gids[i] : NULL, i, visit, arg))
			return;
}

struct rendering {
	const char *dir;
	int err;
};

/* Makes the directories on the way to path, from `below` on. */
static int directories_make(char *path, char *below)
{
	for (char *slash = strchr(below, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0755) && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return 0;
}

static int file_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	size_t len = strlen(text);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, len) != (ssize_t)len || write(fd, "\n", 1) != 1)
		err = errno ? -errno : -EIO;
	close(fd);
	return err;
}

static bool render_one(void *arg, const char *relative, const char *text)
{
	struct rendering *r = arg;
	char path[PATH_BYTES];

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", r->dir, relative) >= sizeof(path))
		r->err = -ENAMETOOLONG;
	else
		r->err = directories_make(path, path + strlen(r->dir) + 1);
	if (!r->err && text)
		r->err = file_write(path, text);
	return !r->err;
}

static int link_make(const char *dir, const char *relative, const char *target)
{
	char path[PATH_BYTES];

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, relative) >= sizeof(path))
		return -ENAMETOOLONG;
	return symlink(target, path) && errno != EEXIST ? -errno : 0;
}

int tree_render(const char *dir, const struct tree_facts *f)
{
	struct rendering r = { .dir = dir };

	walk(f, render_one, &r);
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]) && !r.err; i++)
		r.err = link_make(dir, links[i].path, links[i].target);
	return r.err;
}

struct reading {
	const char *path;
	char *buf;
	size_t size;
	ssize_t len;
};

static bool read_one(void *arg, const char *path, const char *text)
{
	struct reading *r = arg;

	if (!text || strcmp(path, r->path))
		return true;
	r->len = (ssize_t)strnlen(text, r->size);
	memcpy(r->buf, text, (size_t)r->len);
	if ((size_t)r->len < r->size)
		r->buf[r->len] = '\0';
	return false;
}

ssize_t tree_read(const struct tree_facts *f, const char *path, char *buf, size_t size)
{
	struct reading r = { .path = path, .buf = buf, .size = size, .len = -ENOENT };

	walk(f, read_one, &r);
	return r.len;
}
