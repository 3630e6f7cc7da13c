/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `verbena freeze`, `thaw` and `move`: commands to one process, which is looked for in the network namespace of the caller,
 * and where one of the threads of that process is.
 */
#include "tool.h"

#include <errno.h>
#include <dirent.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/quantity.h"
#include "engine/config.h"
#include "group/group.h"
#include "looks.h"
#include "nic/nic.h"

enum { QUERY_MS = 2000, WAIT_MS = 60000, GROUPS_MAX = 64, DEVICES_MAX = 8, TEXT_BYTES = 64 };

#define HOLD_NS_MIN     UINT64_C(1000000)
#define HOLD_NS_MAX     UINT64_C(3600000000000)
#define HOLD_NS_DEFAULT UINT64_C(3600000000000)

static const char freeze_usage[] =
	"usage: verbena freeze PID [--hold TIME] [--force]\n"
	"\n"
	"Lets time stand still for the device of a program of yours: nothing is sent or received, no timer runs, and no\n"
	"socket is open. The program runs on: what it posts is sent when the device thaws.\n"
	"\n"
	"  --hold TIME   returns once the device is frozen; 'verbena thaw' lets it go on, and after TIME (1ms to 1h) it\n"
	"                goes on by itself. Without it the command stays, and the device is frozen as long as it runs\n"
	"  --force       freezes although a peer may not wait for twice that TIME\n"
	"  -h, --help    this text\n";
static const char thaw_usage[] = "usage: verbena thaw PID\n"
				 "\n"
				 "Lets the device of a program go on that 'verbena freeze' has frozen.\n"
				 "\n"
				 "  -h, --help    this text\n";
static const char move_usage[] =
	"usage: verbena move PID --to NETNS [--with-addresses]\n"
	"\n"
	"Moves the device of a program of yours to another network namespace, while the program runs. Its queue pairs go\n"
	"on there if it has the addresses that they are connected from.\n"
	"\n"
	"  --to NETNS    a name of 'ip netns', a file such as /proc/1234/ns/net, or the process id of one that is there\n"
	"  --with-addresses\n"
	"                addresses that its queue pairs are connected from, or ids of rdma_cm bound to, and that are not\n"
	"                there move too, each to the interface there whose network it is in\n"
	"  -h, --help    this text\n"
	"\n"
	"The program needs CAP_SYS_ADMIN in the user namespaces that own the network namespace and the program itself.\n";

static bool pid_parse(const char *text, pid_t *out)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(text, &end, 10);
	*out = (pid_t)v;
	return !errno && end != text && !*end && v > 0 && v <= INT_MAX;
}

/* ---- where the process is ---- */

/* The devices of a process; a member each. */
struct found {
	pid_t pid;
	size_t count;
	struct {
		struct group_id id;
		struct group_member member;
	} devices[DEVICES_MAX];
};

static void look_at_group(struct found *f, const struct group_id *id)
{
	struct group_member m[GROUP_SLOTS];
	ssize_t n = group_query(id, GROUP_ALL_SLOTS, QUERY_MS, m, GROUP_SLOTS);

	for (ssize_t i = 0; i < n; i++) {
		if (m[i].stat_fd >= 0)
			close(m[i].stat_fd);
		if (m[i].pid != f->pid || f->count == DEVICES_MAX)
			continue;
		f->devices[f->count].id = *id;
		f->devices[f->count++].member = m[i];
	}
}

static void look_at_port(struct found *f, uint16_t port)
{
	struct group_id ids[GROUPS_MAX];
	size_t groups = group_list(geteuid(), port, ids, GROUPS_MAX);

	for (size_t i = 0; i < groups; i++)
		if (geteuid() == 0 || ids[i].uid == geteuid())
			look_at_group(f, &ids[i]);
}

static void look_here(struct found *f, const struct config *c)
{
	look_at_port(f, c->transport.rocev2.port);
	if (!f->count)
		look_at_port(f, config_rocev1_port(c));
	if (!f->count)
		look_at_port(f, GROUP_PORT_NONE);
}

/* The device of a program that was moved is where one of its threads is. False: there is no such place, or no leave. */
static bool enter_thread(int task, const char *tid, ino_t *last)
{
	char path[PATH_MAX];
	struct stat st;
	int fd;
	bool entered;

	snprintf(path, sizeof(path), "%s/ns/net", tid);
	fd = openat(task, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) || st.st_ino == *last) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	*last = st.st_ino;
	entered = !setns(fd, CLONE_NEWNET);
	close(fd);
	return entered;
}

static void look_everywhere(struct found *f, const struct config *c)
{
	char path[48];
	struct stat here = {0};
	struct dirent *d;
	DIR *task;

	look_here(f, c);
	snprintf(path, sizeof(path), "/proc/%d/task", f->pid);
	task = f->count ? NULL : opendir(path);
	if (!task)
		return;
	stat("/proc/thread-self/ns/net", &here);
	while (!f->count && (d = readdir(task)))
		if (d->d_name[0] != '.' && enter_thread(dirfd(task), d->d_name, &here.st_ino))
			look_here(f, c);
	closedir(task);
}

/* EXIT_SUCCESS, or it has been said why not. */
static int find(struct found *f, const char *command, const char *pid)
{
	struct config c;
	char why[1024];

	if (!pid_parse(pid, &f->pid))
		return complain("%s: '%s': allowed is a process id", command, pid);
	if (config_load(&c, why, sizeof(why)))
		return complain("%s", why);
	look_everywhere(f, &c);
	return f->count ? EXIT_SUCCESS : complain("process %d does not run on Verbena, or is another user's", f->pid);
}

/* ---- peers ---- */

/* What the device says of its peers' patience; NULL, or it has been said why it does not. */
static const char *patience_read(const struct found *f, size_t i, char *said, size_t bytes)
{
	static const struct group_command c = {.kind = GROUP_COMMAND_FREEZE, .text = "patience", .wait_ms = WAIT_MS};
	int rc = group_command(&f->devices[i].id, &f->devices[i].member, &c, said, bytes);

	if (rc == -EPROTO)
		complain("process %d has another version of verbena, which cannot be frozen", f->pid);
	else if (rc < 0)
		complain("process %d does not answer: %s", f->pid, strerror(-rc));
	else if (strncmp(said, "patience", 8) != 0)
		complain("process %d: %s", f->pid, said);
	return rc < 0 || strncmp(said, "patience", 8) != 0 ? NULL : said;
}

/* The least patient peer of all devices; p->ns is UINT64_MAX if all wait for ever. EXIT_SUCCESS. */
static int patience_find(const struct found *f, struct nic_patience *p)
{
	char said[1024];

	p->ns = UINT64_MAX;
	for (size_t i = 0; i < f->count; i++) {
		struct nic_patience its;
		unsigned protocol;

		if (!patience_read(f, i, said, sizeof(said)))
			return EXIT_OURS;
		if (sscanf(said, "patience %" SCNu64 " %" SCNu32 " %u", &its.ns, &its.qpn, &protocol) != 3 ||
		    protocol >= NIC_SPOKEN || its.ns >= p->ns)
			continue;
		its.protocol = (uint8_t)protocol;
		*p = its;
	}
	return EXIT_SUCCESS;
}

/* Says how long peers wait. EXIT_SUCCESS: twice the pause at least, or that is not asked for. */
static int judge_patience(const struct found *f, uint64_t hold_ns, bool force)
{
	struct nic_patience p;
	int rc = patience_find(f, &p);
	struct nic_qp_look look;

	if (rc != EXIT_SUCCESS || p.ns == UINT64_MAX)
		return rc;
	look.protocol = p.protocol;
	printf("peers wait for %.2f s at least, the first that of queue pair 0x%06" PRIx32 " over %s\n",
	       (double)p.ns / 1e9, p.qpn, qp_protocol_word(&look));
	fflush(stdout);
	if (force || p.ns / 2 >= hold_ns)
		return EXIT_SUCCESS;
	return complain(
		"process %d: that is less than twice the %.2f s of --hold, and connections may fail; --force freezes it all the same",
		f->pid, (double)hold_ns / 1e9);
}

/* ---- commands ---- */

/* Gives it to one device. EXIT_SUCCESS; *link is the connection that stays, if it shall. */
static int give(const struct found *f, size_t i, const struct group_command *c, int *link)
{
	char said[1024] = "";
	int rc = group_command(&f->devices[i].id, &f->devices[i].member, c, said, sizeof(said));

	if (rc == -ESRCH)
		return complain("process %d has ended", f->pid);
	if (rc == -EPROTO)
		return complain("process %d has another version of verbena, which cannot be frozen", f->pid);
	if (rc < 0)
		return complain("process %d does not answer: %s", f->pid, strerror(-rc));
	if (said[0] && c->stays)
		close(rc);
	if (said[0])
		return complain("process %d: %s", f->pid, said);
	if (c->stays)
		*link = rc;
	return EXIT_SUCCESS;
}

/* Until one of them has thawed or ended. */
static void stay(const int *links, size_t count)
{
	struct pollfd p[DEVICES_MAX];

	for (size_t i = 0; i < count; i++)
		p[i] = (struct pollfd){.fd = links[i], .events = POLLIN};
	while (poll(p, count, -1) < 0 && errno == EINTR) {
	}
}

static int freeze(const struct found *f, uint64_t hold_ns)
{
	char text[TEXT_BYTES];
	struct group_command c = {.kind = GROUP_COMMAND_FREEZE, .text = text, .stays = !hold_ns, .wait_ms = WAIT_MS};
	int links[DEVICES_MAX], rc = EXIT_SUCCESS;

	snprintf(text, sizeof(text), "freeze %" PRIu64 " %s", hold_ns ? hold_ns : HOLD_NS_DEFAULT,
		 hold_ns ? "for" : "while");
	for (size_t i = 0; i < f->count && rc == EXIT_SUCCESS; i++)
		rc = give(f, i, &c, &links[i]);
	if (rc != EXIT_SUCCESS)
		return rc; /* those that are frozen thaw when we have ended, or when their time is over */
	puts("frozen");
	fflush(stdout);
	if (!hold_ns)
		stay(links, f->count);
	return rc;
}

/* argv without options is "PID". False, with *rc: help was asked for, or something is wrong. */
static bool options_read(int argc, char **argv, const char *command, const struct option *options, const char *usage,
			 const char **value, bool *flag, int *rc)
{
	int opt;

	while ((opt = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (opt == 'v') {
			*value = optarg;
			continue;
		}
		if (opt == 'f') {
			*flag = true;
			continue;
		}
		*rc = opt == 'h' ? EXIT_SUCCESS : usage_error(command);
		if (opt == 'h')
			fputs(usage, stdout);
		return false;
	}
	if (argc - optind == 1)
		return true;
	complain("%s: allowed is one process id", command);
	*rc = usage_error(command);
	return false;
}

static bool hold_parse(const char *text, uint64_t *ns)
{
	static const struct quantity_form form = {.units = quantity_times, .exponent = 9, .flags = QUANTITY_UNIT};

	return !quantity_parse(text, strlen(text), &form, ns) && *ns >= HOLD_NS_MIN && *ns <= HOLD_NS_MAX;
}

int cmd_freeze(int argc, char **argv)
{
	static const struct option options[] = {{"help", no_argument, NULL, 'h'},
						{"hold", required_argument, NULL, 'v'},
						{"force", no_argument, NULL, 'f'},
						{NULL, 0, NULL, 0}};
	const char *hold = NULL;
	bool force = false;
	uint64_t hold_ns = 0;
	struct found f = {0};
	int rc;

	if (!options_read(argc, argv, "freeze", options, freeze_usage, &hold, &force, &rc))
		return rc;
	if (hold && !hold_parse(hold, &hold_ns))
		return complain("freeze: --hold %s: allowed is a time from 1ms to 3600s", hold);
	rc = find(&f, "freeze", argv[optind]);
	if (rc == EXIT_SUCCESS)
		rc = judge_patience(&f, hold_ns, force);
	return rc == EXIT_SUCCESS ? freeze(&f, hold_ns) : rc;
}

int cmd_thaw(int argc, char **argv)
{
	static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	struct group_command c = {.kind = GROUP_COMMAND_FREEZE, .text = "thaw", .wait_ms = WAIT_MS};
	const char *none;
	struct found f = {0};
	int rc;

	if (!options_read(argc, argv, "thaw", options, thaw_usage, &none, NULL, &rc))
		return rc;
	rc = find(&f, "thaw", argv[optind]);
	for (size_t i = 0; i < f.count && rc == EXIT_SUCCESS; i++)
		rc = give(&f, i, &c, NULL);
	return rc;
}

/* A descriptor of the network namespace, or -1 and it has been said why. */
static int open_netns(const char *name)
{
	char path[PATH_MAX];
	pid_t pid;
	int fd;

	if (strchr(name, '/'))
		snprintf(path, sizeof(path), "%s", name);
	else if (pid_parse(name, &pid))
		snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	else
		snprintf(path, sizeof(path), "/run/netns/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		complain("move: --to %s: %s: %s; allowed are a name of 'ip netns', a file and a process id", name, path,
			 strerror(errno));
	} else if (ioctl(fd, NS_GET_NSTYPE) != CLONE_NEWNET) {
		complain("move: --to %s: %s is no network namespace", name, path);
		close(fd);
		fd = -1;
	}
	return fd;
}

int cmd_move(int argc, char **argv)
{
	static const struct option options[] = {{"help", no_argument, NULL, 'h'},
						{"to", required_argument, NULL, 'v'},
						{"with-addresses", no_argument, NULL, 'f'},
						{NULL, 0, NULL, 0}};
	struct group_command c = {.kind = GROUP_COMMAND_MOVE, .text = "", .wait_ms = WAIT_MS};
	const char *to = NULL;
	bool with_addresses = false;
	struct found f = {0};
	int rc;

	if (!options_read(argc, argv, "move", options, move_usage, &to, &with_addresses, &rc))
		return rc;
	if (!to) {
		complain("move: --to is missing");
		return usage_error("move");
	}
	c.text = with_addresses ? "with addresses" : "";
	c.fd = open_netns(to);
	if (c.fd < 0)
		return EXIT_OURS;
	rc = find(&f, "move", argv[optind]);
	if (rc == EXIT_SUCCESS)
		rc = give(&f, 0, &c, NULL);
	close(c.fd);
	return rc;
}
