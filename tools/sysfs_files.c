/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's tree as files, in a directory that the user names. Once a second the addresses and the running programs'
 * counters are looked at. What changes is written beside its place and renamed, so that no reader sees half of it.
 *
 * A port's counters never go back, while those of a program go with it: what it counted stays in the sums here.
 */
#include "sysfs_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "engine/engine.h"
#include "engine/gids.h"
#include "engine/stats.h"
#include "group/group.h"
#include "sysfs_dir.h"
#include "tool.h"
#include "verbs/hostid.h"
#include "verbs/tree_use.h"

enum { LOOK_S = 1, WAIT_MS = 300, GROUPS_MAX = 64, SUMMED = 2 };

/* Below ports/1, by the names that the kernel's drivers give them. */
static const struct {
	const char *file;
	size_t of[SUMMED]; /* in struct stats_page; 0: none */
	unsigned unit;
} counters[] = {
	{"counters/port_rcv_data", {offsetof(struct stats_page, nic.rx_bytes)}, 4}, /* words, as InfiniBand counts */
	{"counters/port_xmit_data", {offsetof(struct stats_page, nic.tx_bytes)}, 4},
	{"counters/port_rcv_packets", {offsetof(struct stats_page, nic.rx_packets)}, 1},
	{"counters/port_xmit_packets", {offsetof(struct stats_page, nic.tx_packets)}, 1},
	{"counters/port_rcv_errors",
	 {offsetof(struct stats_page, nic.rx_malformed), offsetof(struct stats_page, nic.rx_icrc_errors)},
	 1},
	{"counters/port_xmit_discards", {offsetof(struct stats_page, io.tx_drops)}, 1},
	{"hw_counters/duplicate_request", {offsetof(struct stats_page, nic.rx_duplicates)}, 1},
	{"hw_counters/out_of_sequence", {offsetof(struct stats_page, nic.rx_out_of_sequence)}, 1},
	{"hw_counters/packet_seq_err", {offsetof(struct stats_page, nic.naks_received)}, 1},
	{"hw_counters/rnr_nak_retry_err", {offsetof(struct stats_page, nic.rnrs_received)}, 1},
	{"hw_counters/local_ack_timeout_err", {offsetof(struct stats_page, nic.timeouts)}, 1},
	{"hw_counters/np_cnp_sent", {offsetof(struct stats_page, nic.cnps_sent)}, 1},
	{"hw_counters/rp_cnp_handled", {offsetof(struct stats_page, nic.cnps_received)}, 1},
	{"hw_counters/rx_icrc_encapsulated", {offsetof(struct stats_page, nic.rx_icrc_errors)}, 1},
};

enum { COUNTERS = sizeof(counters) / sizeof(counters[0]) };

/* A device of a running program, and what it had counted when it was last looked at. */
struct program {
	pid_t pid;
	uint64_t started_ns;
	unsigned device;
	uint64_t counted[COUNTERS];
	bool seen;
};

struct keeper {
	const char *dir;
	const struct config *config;
	struct gid_table gids[ENGINE_DEVICES_MAX];
	struct program *programs;
	size_t program_count;
	uint64_t sums[ENGINE_DEVICES_MAX][COUNTERS];
};

static const char *const parts[] = {"class", "devices", "bus", "dev"};

enum { PARTS = sizeof(parts) / sizeof(parts[0]) };

static const char mark[] = ".verbena", fresh[] = ".fresh";

/* ---- what programs count ------------------------------------------------------------------------- */

static struct program *program_find(struct keeper *k, const struct stats_page *p)
{
	struct program *more;

	for (size_t i = 0; i < k->program_count; i++)
		if (k->programs[i].pid == p->pid && k->programs[i].started_ns == p->started_ns &&
		    k->programs[i].device == p->device)
			return &k->programs[i];
	more = realloc(k->programs, (k->program_count + 1) * sizeof(*more));
	if (!more)
		return NULL;
	k->programs = more;
	more += k->program_count++;
	*more = (struct program){.pid = p->pid, .started_ns = p->started_ns, .device = p->device};
	return more;
}

static void program_count(struct keeper *k, const struct stats_page *p)
{
	struct program *its = p->device < k->config->devices.count ? program_find(k, p) : NULL;

	for (size_t i = 0; its && i < COUNTERS; i++) {
		uint64_t now = 0;

		for (int n = 0; n < SUMMED && counters[i].of[n]; n++)
			now += *(const volatile uint64_t *)((const char *)p + counters[i].of[n]);
		if (now > its->counted[i]) {
			k->sums[p->device][i] += now - its->counted[i];
			its->counted[i] = now;
		}
	}
	if (its)
		its->seen = true;
}

static void group_count(struct keeper *k, const struct group_id *id)
{
	struct group_member m[GROUP_SLOTS];
	ssize_t n = group_query(id, GROUP_ALL_SLOTS, WAIT_MS, m, GROUP_SLOTS);

	for (ssize_t i = 0; i < n; i++) {
		const struct stats_page *p = m[i].stat_fd < 0 ? NULL : stats_map(m[i].stat_fd);

		if (p) {
			program_count(k, p);
			stats_unmap(p);
		}
		if (m[i].stat_fd >= 0)
			close(m[i].stat_fd);
	}
}

/* One that does not answer in time may live, so it is remembered until its process is gone. */
static void forget_the_gone(struct keeper *k)
{
	size_t kept = 0;

	for (size_t i = 0; i < k->program_count; i++) {
		struct program *p = &k->programs[i];

		if (!p->seen && kill(p->pid, 0) && errno == ESRCH)
			continue;
		p->seen = false;
		k->programs[kept++] = *p;
	}
	k->program_count = kept;
}

static void count(struct keeper *k)
{
	const struct config *c = k->config;
	uint16_t port = c->transport.protocol == PROTOCOL_ROCEV1 ? config_rocev1_port(c) : c->transport.rocev2.port;
	struct group_id ids[2 * GROUPS_MAX];
	size_t n = group_list(geteuid(), port, ids, GROUPS_MAX);

	n += group_list(geteuid(), GROUP_PORT_NONE, ids + n, GROUPS_MAX); /* iWARP's */
	for (size_t i = 0; i < n; i++)
		if (ids[i].uid == geteuid())
			group_count(k, &ids[i]);
	forget_the_gone(k);
}

/* ---- files --------------------------------------------------------------------------------------- */

/* 0 or a negative errno, as all below. */
static int number_write(const struct keeper *k, const char *path, uint64_t value)
{
	char beside[PATH_MAX];
	FILE *f;
	int err;

	snprintf(beside, sizeof(beside), "%s/%s.number", k->dir, mark);
	f = fopen(beside, "we");
	if (!f)
		return -errno;
	err = fprintf(f, "%" PRIu64 "\n", value) < 0 ? -EIO : 0;
	if (fclose(f) || (!err && rename(beside, path)))
		err = -errno;
	return err;
}

static int counters_write(const struct keeper *k, const char *below)
{
	char path[PATH_MAX], name[DEVICE_NAME_BYTES];
	int err = 0;

	for (unsigned d = 0; d < k->config->devices.count; d++) {
		device_name(name, k->config->devices.iwarp, d);
		for (size_t i = 0; i < COUNTERS && !err; i++) {
			snprintf(path, sizeof(path), "%s/%s/class/infiniband/%s/ports/1/%s", k->dir, below, name,
				 counters[i].file);
			err = number_write(k, path, k->sums[d][i] / counters[i].unit);
		}
	}
	return err;
}

static int part_replace(const struct keeper *k, const char *part)
{
	char from[PATH_MAX], to[PATH_MAX];

	snprintf(from, sizeof(from), "%s/%s/%s", k->dir, fresh, part);
	snprintf(to, sizeof(to), "%s/%s", k->dir, part);
	if (!renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE))
		return 0;
	tree_remove(to); /* there is none yet, or the file system cannot exchange */
	return rename(from, to) ? -errno : 0;
}

static int renew(const struct keeper *k)
{
	const struct sysfs_devices devices = sysfs_devices_of(k->config, k->gids);
	char path[PATH_MAX];
	int err;

	snprintf(path, sizeof(path), "%s/%s", k->dir, fresh);
	tree_remove(path);
	err = mkdir(path, 0755) ? -errno : sysfs_render(path, &devices);
	if (!err)
		err = counters_write(k, fresh);
	for (int i = 0; i < PARTS && !err; i++)
		err = part_replace(k, parts[i]);
	tree_remove(path);
	return err;
}

/* ---- the directory ------------------------------------------------------------------------------- */

/* Nothing of anybody's is overwritten: it is empty, or an earlier run left its mark. */
static int dir_take(const char *dir)
{
	char path[PATH_MAX];
	struct dirent *e;
	bool empty = true;
	DIR *d;
	int fd;

	if (mkdir(dir, 0755) && errno != EEXIST)
		return -errno;
	d = opendir(dir);
	if (!d)
		return -errno;
	while ((e = readdir(d)))
		empty &= !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..");
	closedir(d);
	snprintf(path, sizeof(path), "%s/%s", dir, mark);
	fd = open(path, O_RDWR | O_CLOEXEC | (empty ? O_CREAT : 0), 0644);
	if (fd < 0)
		return errno == ENOENT ? -ENOTEMPTY : -errno;
	/* The descriptor stays open, and the lock with it. */
	return lockf(fd, F_TLOCK, 0) ? -EBUSY : 0;
}

static void dir_leave(const char *dir)
{
	static const char *const others[] = {".verbena.number", ".verbena"};
	char path[PATH_MAX];

	for (int i = 0; i < PARTS; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, parts[i]);
		tree_remove(path);
	}
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, others[i]);
		unlink(path);
	}
}

/* The tables are new, or the addresses have changed. While there are none, the last ones stay. */
static bool gids_change(struct keeper *k, struct gid_table *next, char *why, size_t why_bytes)
{
	memset(next, 0, sizeof(k->gids));
	if (gids_load_all(next, k->config, why, why_bytes) || !memcmp(next, k->gids, sizeof(k->gids)))
		return false;
	memcpy(k->gids, next, sizeof(k->gids));
	return true;
}

static int keep(struct keeper *k, struct gid_table *next, const sigset_t *ends)
{
	char why[1024];
	int err = 0;

	if (!gids_change(k, next, why, sizeof(why)))
		return complain("%s", why);
	count(k);
	err = renew(k);
	while (!err && sigtimedwait(ends, NULL, &(struct timespec){LOOK_S, 0}) < 0) {
		count(k);
		err = gids_change(k, next, why, sizeof(why)) ? renew(k) : counters_write(k, ".");
	}
	return err ? complain("devices: %s: %s", k->dir, strerror(-err)) : EXIT_SUCCESS;
}

int sysfs_files_keep(const char *dir, const struct config *c)
{
	struct keeper *k = calloc(1, sizeof(*k));
	struct gid_table *next = calloc(ENGINE_DEVICES_MAX, sizeof(*next));
	sigset_t ends;
	int rc;

	umask(022); /* others' programs read them */
	rc = k && next ? dir_take(dir) : -ENOMEM;
	if (rc) {
		free(k);
		free(next);
		return complain("devices: %s: %s", dir,
				rc == -ENOTEMPTY ? "the directory is not empty"
				: rc == -EBUSY   ? "another process keeps it"
						 : strerror(-rc));
	}
	k->dir = dir;
	k->config = c;
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	rc = keep(k, next, &ends);
	dir_leave(dir);
	free(k->programs);
	free(k);
	free(next);
	return rc;
}
