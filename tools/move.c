/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbena move`: a device, or with --restore a whole program, goes to another network namespace. */
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "reach.h"
#include "restore.h"

static const char move_usage[] =
	"usage: verbena move PID --to NETNS [--with-addresses] [--restore]\n"
	"\n"
	"Moves the device of a program of yours to another network namespace, while the program runs. Its queue pairs go\n"
	"on there if it has the addresses that they are connected from.\n"
	"\n"
	"  --to NETNS    a name of 'ip netns', a file such as /proc/1234/ns/net, or the process id of one that is there\n"
	"  --with-addresses\n"
	"                addresses that its queue pairs are connected from, or ids of rdma_cm bound to, and that are not\n"
	"                there move too, each to the interface there whose network it is in\n"
	"  --restore     the whole program moves, by 'criu' dump and restore, and not its device alone: it is another process\n"
	"                then, whose id is printed. What fails is said, and the program goes on where it was\n"
	"  -h, --help    this text\n"
	"\n"
	"Without --restore the program needs CAP_SYS_ADMIN in the user namespaces that own the network namespace and the program itself.\n";

/* A descriptor of the network namespace, or -1 and it has been said why. */
static int open_netns(const char *name)
{
	char path[PATH_MAX];
	pid_t pid;
	int fd;

	if (strchr(name, '/'))
		snprintf(path, sizeof(path), "%s", name);
	else if (reach_pid_parse(name, &pid))
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

static int move_device(const struct reached *f, int to, bool with_addresses)
{
	const struct group_command c = {.kind = GROUP_COMMAND_MOVE,
					.text = with_addresses ? "with addresses" : "",
					.fd = to,
					.wait_ms = REACH_WAIT_MS};

	return reach_give(f, 0, &c, NULL);
}

int cmd_move(int argc, char **argv)
{
	int with_addresses = 0, restore = 0;
	const struct option options[] = {{"help", no_argument, NULL, 'h'},
					 {"to", required_argument, NULL, 'v'},
					 {"with-addresses", no_argument, &with_addresses, 1},
					 {"restore", no_argument, &restore, 1},
					 {NULL, 0, NULL, 0}};
	const char *name = NULL;
	struct reached f = {0};
	int to, rc;

	if (!reach_options(argc, argv, "move", options, move_usage, &name, &rc))
		return rc;
	if (!name) {
		complain("move: --to is missing");
		return usage_error("move");
	}
	to = open_netns(name);
	if (to < 0)
		return EXIT_OURS;
	rc = reach_find(&f, "move", argv[optind]);
	if (rc == EXIT_SUCCESS)
		rc = restore ? restore_move(&f, to, with_addresses) : move_device(&f, to, with_addresses);
	close(to);
	return rc;
}
