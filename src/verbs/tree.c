/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One walk names every file with its text, as the kernel prints it; rendering and reading are two
 * visitors of it. Counters are left out, because a file cannot count.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verbs/hostid.h"
#include "verbs/port.h"
#include "verbs/tree.h"

enum { PATH_BYTES = 4096, TEXT_BYTES = 128, GID_TABLE_LEN = 64 };

/* A path that ends in a slash is a directory; another one without a text is not there. False ends the walk. */
typedef bool (*tree_visit)(void *arg, const char *path, const char *text);

struct file {
	const char *path;
	const char *text; /* NULL: the device's name */
};

/* Below class/infiniband/<device>/. A path that ends in a slash needs no text. */
static const struct file device_files[] = {
	{"node_desc", NULL},
	{"fw_ver", VERBENA_VERSION},
	{"board_id", DEVICE_BOARD_ID},
	{"hca_type", "verbena"},
	{"hw_rev", "0"},
	{"device/vendor", "0x025642"},
	{"device/device", "0x0001"},
	{"device/numa_node", "-1"},
	{"device/net/", NULL},
	{"ports/1/link_layer", "Ethernet"},
	{"ports/1/lid", "0x0"},
	{"ports/1/lid_mask_count", "0"},
	{"ports/1/sm_lid", "0x0"},
	{"ports/1/sm_sl", "0"},
	{"ports/1/cap_mask", "0x04010000"},
	{"ports/1/gids/", NULL},
	{"ports/1/gid_attrs/types/", NULL},
	{"ports/1/gid_attrs/ndevs/", NULL},
	{"ports/1/counters/", NULL},
	{"ports/1/hw_counters/", NULL},
};

/* A walk in progress: its callback, and the device that it is at. */
struct walk {
	tree_visit visit;
	void *arg;
	unsigned device;
	char name[DEVICE_NAME_BYTES];
};

static const char *given_of(const struct tree_facts *f)
{
	return f->given ? f->given : "";
}

static bool visit_file(const struct walk *w, const char *path, const char *text)
{
	char full[2 * TEXT_BYTES];

	snprintf(full, sizeof(full), "class/infiniband/%s/%s", w->name, path);
	return w->visit(w->arg, full, text);
}

static bool visit_guid(const struct walk *w, const char *path, uint64_t guid)
{
	char text[TEXT_BYTES];

	snprintf(text, sizeof(text), "%04x:%04x:%04x:%04x", (unsigned int)(guid >> 48),
		 (unsigned int)(guid >> 32 & 0xffff), (unsigned int)(guid >> 16 & 0xffff),
		 (unsigned int)(guid & 0xffff));
	return visit_file(w, path, text);
}

static bool is_empty(const struct tree_gid *gid)
{
	static const struct tree_gid none;

	return !memcmp(gid->raw, none.raw, sizeof(gid->raw));
}

/*
 * Programs take the first interface of a device for the one that it is a port of (pyverbs, to find the device's
 * address). So the loopback interface is there only where it is the only one.
 */
static bool is_port(const struct tree_facts *f, const char *interface)
{
	bool others = false, has = false;

	for (size_t i = 0; i < f->gid_count; i++) {
		if (is_empty(&f->gids[i]))
			continue;
		others |= strcmp(f->gids[i].interface, "lo") != 0;
		has |= !strcmp(f->gids[i].interface, interface);
	}
	return has && (!others || strcmp(interface, "lo") != 0);
}

static bool visit_gid(const struct walk *w, const struct tree_facts *f, size_t index)
{
	static const struct tree_gid none;
	const struct tree_gid *gid = index < f->gid_count ? &f->gids[index] : &none;
	const char *type = f->rocev1 && !(f->iwarp >> w->device & 1) ? "IB/RoCE v1" : "RoCE v2";
	char path[TEXT_BYTES], text[TEXT_BYTES];
	size_t at = 0;

	for (int i = 0; i < 16; i += 2)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%02x%02x", i ? ":" : "", gid->raw[i],
				       gid->raw[i + 1]);
	snprintf(path, sizeof(path), "ports/1/gids/%zu", index);
	if (!visit_file(w, path, text))
		return false;
	snprintf(path, sizeof(path), "ports/1/gid_attrs/types/%zu", index);
	if (!visit_file(w, path, is_empty(gid) ? NULL : type))
		return false;
	snprintf(path, sizeof(path), "ports/1/gid_attrs/ndevs/%zu", index);
	if (!visit_file(w, path, is_empty(gid) ? NULL : gid->interface))
		return false;
	if (is_empty(gid) || !is_port(f, gid->interface))
		return true;
	snprintf(path, sizeof(path), "device/net/%s/", gid->interface);
	return visit_file(w, path, NULL);
}

static bool is_directory(const char *path)
{
	return path[strlen(path) - 1] == '/';
}

/* A device's files below class/infiniband_verbs. */
static bool visit_uverbs(const struct walk *w)
{
	char path[TEXT_BYTES];

	snprintf(path, sizeof(path), "class/infiniband_verbs/" DEVICE_UVERBS "/ibdev", w->device);
	if (!w->visit(w->arg, path, w->name))
		return false;
	snprintf(path, sizeof(path), "class/infiniband_verbs/" DEVICE_UVERBS "/abi_version", w->device);
	return w->visit(w->arg, path, "1");
}

static bool visit_pkeys(const struct walk *w, const struct tree_facts *f)
{
	static const uint16_t all = 0xffff;
	const uint16_t *pkeys = f->pkeys ? f->pkeys : &all;
	char path[TEXT_BYTES], text[TEXT_BYTES];

	for (unsigned i = 0; i < (f->pkeys ? f->pkey_count : 1); i++) {
		snprintf(path, sizeof(path), "ports/1/pkeys/%u", i);
		snprintf(text, sizeof(text), "0x%04x", pkeys[i]);
		if (!visit_file(w, path, text))
			return false;
	}
	return true;
}

static bool visit_device(const struct walk *w, const struct tree_facts *f)
{
	if (!visit_uverbs(w) || !visit_file(w, "node_type", f->iwarp >> w->device & 1 ? "4: RNIC" : "1: CA"))
		return false;
	for (size_t i = 0; i < sizeof(device_files) / sizeof(device_files[0]); i++) {
		const struct file *d = &device_files[i];

		if (!visit_file(w, d->path, d->text || is_directory(d->path) ? d->text : w->name))
			return false;
	}
	if (!visit_file(w, "ports/1/state", port_state(&f->port)->state_text) ||
	    !visit_file(w, "ports/1/phys_state", port_state(&f->port)->phys_state_text) ||
	    !visit_file(w, "ports/1/rate", port_rate(f->port.speed_bps)->text))
		return false;
	if (!visit_guid(w, "node_guid", device_guid(f->guid, given_of(f), w->device)) ||
	    !visit_guid(w, "sys_image_guid", f->guid))
		return false;
	if (!visit_pkeys(w, f))
		return false;
	for (size_t i = 0; i < GID_TABLE_LEN; i++) {
		if (!visit_gid(w, f, i))
			return false;
	}
	return true;
}

static void walk(const struct tree_facts *f, tree_visit visit, void *arg)
{
	struct walk w = {.visit = visit, .arg = arg, .device = f->device_first};

	if (!visit(arg, "class/infiniband_verbs/abi_version", "6") ||
	    !visit(arg, "class/misc/rdma_cm/abi_version", "4") || !visit(arg, "dev/infiniband/", NULL) ||
	    !visit(arg, "bus/verbena/drivers/verbena/", NULL))
		return;
	for (; w.device < f->device_count; w.device++) {
		device_name(w.name, f->iwarp, given_of(f), w.device);
		if (!visit_device(&w, f))
			return;
	}
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

static bool file_has(const char *path, const char *line, size_t len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char there[TEXT_BYTES + 1];
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, there, sizeof(there));
	close(fd);
	return n == (ssize_t)len && !memcmp(there, line, len);
}

/* By a file that takes the other's place at once: readers of sysfs find no half of a line. */
static int file_write(const char *dir, const char *path, const char *text)
{
	char line[TEXT_BYTES + 1], fresh[PATH_BYTES];
	int len = snprintf(line, sizeof(line), "%s\n", text), fd, err = 0;

	if (len < 0 || (size_t)len >= sizeof(line) ||
	    (size_t)snprintf(fresh, sizeof(fresh), "%s/new-XXXXXX", dir) >= sizeof(fresh))
		return -ENAMETOOLONG;
	if (file_has(path, line, (size_t)len))
		return 0;
	fd = mkostemp(fresh, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, line, (size_t)len) != len || fchmod(fd, 0644) || rename(fresh, path))
		err = errno ? -errno : -EIO;
	close(fd);
	if (err)
		unlink(fresh);
	return err;
}

static bool render_one(void *arg, const char *relative, const char *text)
{
	struct rendering *r = arg;
	char path[PATH_BYTES];

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", r->dir, relative) >= sizeof(path)) {
		r->err = -ENAMETOOLONG;
		return false;
	}
	if (!text && !is_directory(relative)) {
		r->err = unlink(path) && errno != ENOENT ? -errno : 0;
		return !r->err;
	}
	/* Each program that starts writes this tree, and most files follow another of the same directory. */
	r->err = text ? file_write(r->dir, path, text) : -ENOENT;
	if (r->err == -ENOENT) {
		r->err = directories_make(path, path + strlen(r->dir) + 1);
		if (!r->err && text)
			r->err = file_write(r->dir, path, text);
	}
	return !r->err;
}

/* Interfaces that the device does not have any more. */
static void interfaces_drop(const char *dir, const struct tree_facts *f, unsigned device)
{
	char name[DEVICE_NAME_BYTES], path[PATH_BYTES];
	const struct dirent *e;
	DIR *d;

	device_name(name, f->iwarp, given_of(f), device);
	snprintf(path, sizeof(path), "%s/class/infiniband/%s/device/net", dir, name);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		/* "." and ".." are not empty. */
		if (!is_port(f, e->d_name))
			unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
	}
	if (d)
		closedir(d);
}

static int link_make(const char *dir, const char *relative, const char *target)
{
	char path[PATH_BYTES];

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, relative) >= sizeof(path))
		return -ENAMETOOLONG;
	return symlink(target, path) && errno != EEXIST ? -errno : 0;
}

/*
 * A device of no bus, where the kernel has those: hwloc looks for /virtual/ in the link's target; NCCL asks the real
 * path for its subsystem, and counts what is not PCI as the first processor's. To have a card's functions as one, NCCL
 * overwrites digits of that path: the last one, and the two before the dot. Here these are 0 already, so the path still
 * names this device.
 */
static int device_home_make(const char *dir, const char *name)
{
	char target[TEXT_BYTES], path[PATH_BYTES];
	int err;

	snprintf(target, sizeof(target), "../../../devices/virtual/verbena/%s:00.0", name);
	if ((size_t)snprintf(path, sizeof(path), "%s/%s/", dir, target + strlen("../../../")) >= sizeof(path))
		return -ENAMETOOLONG;
	err = directories_make(path, path + strlen(dir) + 1);
	if (err)
		return err;
	snprintf(path, sizeof(path), "%s/class/infiniband/%s/", dir, name);
	err = directories_make(path, path + strlen(dir) + 1);
	if (err)
		return err;
	snprintf(path, sizeof(path), "class/infiniband/%s/device", name);
	return link_make(dir, path, target);
}

/* Launchers choose by the name of a device's driver, which they read from the target of the link. */
static int device_links_make(const char *dir, const struct tree_facts *f, unsigned device)
{
	char path[TEXT_BYTES], name[DEVICE_NAME_BYTES];
	int err;

	device_name(name, f->iwarp, given_of(f), device);
	err = device_home_make(dir, name);
	if (err)
		return err;
	snprintf(path, sizeof(path), "class/infiniband/%s/device/subsystem", name);
	err = link_make(dir, path, "../../../../bus/verbena");
	if (err)
		return err;
	snprintf(path, sizeof(path), "class/infiniband/%s/device/driver", name);
	return link_make(dir, path, "../../../../bus/verbena/drivers/verbena");
}

static int nodes_make(const char *dir, const struct tree_facts *f)
{
	char path[TEXT_BYTES];
	int err = link_make(dir, "dev/infiniband/rdma_cm", "/dev/null");

	for (unsigned d = f->device_first; d < f->device_count && !err; d++) {
		snprintf(path, sizeof(path), "dev/infiniband/" DEVICE_UVERBS, d);
		err = link_make(dir, path, "/dev/null");
	}
	return err;
}

int tree_render(const char *dir, const struct tree_facts *f)
{
	struct rendering r = {.dir = dir};

	/* First the links, as files are written by way of them. */
	for (unsigned d = f->device_first; d < f->device_count && !r.err; d++)
		r.err = device_links_make(dir, f, d);
	if (!r.err)
		walk(f, render_one, &r);
	for (unsigned d = f->device_first; d < f->device_count && !r.err; d++)
		interfaces_drop(dir, f, d);
	return r.err ? r.err : nodes_make(dir, f);
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
	struct reading r = {.path = path, .buf = buf, .size = size, .len = -ENOENT};

	walk(f, read_one, &r);
	return r.len;
}
