/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `verbena fault`: makes the devices of running programs fail. The command goes over the connection by which programs of a
 * user lend their counters, to a process that is proved to be the one.
 */
#include "tool.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/config.h"
#include "engine/engine.h"
#include "events.h"
#include "group/group.h"
#include "looks.h"

enum { WAIT_MS = 2000, GROUPS_MAX = 64, COMMAND_BYTES = 256 };

static const char usage[] =
	"usage: verbena fault PID|all COMMAND...\n"
	"       verbena fault PID|all list\n"
	"       verbena fault check FILE\n"
	"\n"
	"Makes the device of your running programs fail, as a rule of VERBENA_FAULTS does that is given now:\n"
	"\n"
	"  verbena fault 1234 link down for 3s\n"
	"  verbena fault all qp any complete IBV_WC_RETRY_EXC_ERR\n"
	"  verbena fault 1234 every 10s peer 10.0.0.2 silent for 500ms\n"
	"\n"
	"  list                 the rules that a program has, and how often each has acted\n"
	"  check FILE           reads a script as VERBENA_FAULTS would, and says what is wrong with it\n"
	"  -h, --help           this text\n"
	"\n"
	"verbena-fault(7) has all words. 'verbena stat --events PID' shows what was done.\n";

struct request {
	pid_t pid;           /* 0: all */
	const char *command; /* NULL: list */
	unsigned found;
	int rc;
};

static void obey(struct request *r, const struct group_id *id, const struct group_member *m)
{
	char said[1024] = "";
	struct group_command c = {.kind = GROUP_COMMAND_FAULT, .text = r->command, .wait_ms = WAIT_MS};
	int rc = group_command(id, m, &c, said, sizeof(said));

	if (rc == -ESRCH)
		r->rc = complain("process %d has ended", m->pid);
	else if (rc == -EPROTO)
		r->rc = complain("process %d has another version of verbena, without faults", m->pid);
	else if (rc)
		r->rc = complain("process %d does not answer: %s", m->pid, strerror(-rc));
	else if (said[0])
		r->rc = complain("process %d: %s", m->pid, said);
}

static void list(struct request *r, const struct group_member *m)
{
	const struct stats_page *p = m->stat_fd < 0 ? NULL : stats_map(m->stat_fd);
	char device[DEVICE_NAME_BYTES];

	if (!p) {
		r->rc = complain("process %d %s", m->pid,
				 m->answered ? "has counters of another version of verbena" : "does not answer");
		return;
	}
	page_device(device, p);
	rules_print(p, device);
	stats_unmap(p);
}

static void ask_group(struct request *r, const struct group_id *id)
{
	struct group_member m[GROUP_SLOTS];
	ssize_t n = group_query(id, GROUP_ALL_SLOTS, WAIT_MS, m, GROUP_SLOTS);

	if (n < 0)
		r->rc = complain("cannot ask running programs: %s", strerror((int)-n));
	for (ssize_t i = 0; i < n; i++) {
		if (!r->pid || m[i].pid == r->pid) {
			r->found++;
			if (r->command)
				obey(r, id, &m[i]);
			else
				list(r, &m[i]);
		}
		if (m[i].stat_fd >= 0)
			close(m[i].stat_fd);
	}
}

static int ask(struct request *r, uint16_t port)
{
	struct group_id ids[2 * GROUPS_MAX];
	size_t groups = group_list(geteuid(), port, ids, GROUPS_MAX);

	groups += group_list(geteuid(), GROUP_PORT_NONE, ids + groups, GROUPS_MAX);
	for (size_t i = 0; i < groups; i++)
		if (ids[i].uid == geteuid())
			ask_group(r, &ids[i]);
	if (r->found)
		return r->rc;
	if (r->pid)
		return complain("process %d does not run on Verbena, or is another user's", r->pid);
	return complain("no program of yours is running on it (UDP port %u)", port);
}

/* All words behind the PID, with blanks between them. */
static bool join(char text[COMMAND_BYTES], char **words)
{
	size_t n = 0;

	for (; *words && n < COMMAND_BYTES; words++)
		n += (size_t)snprintf(text + n, COMMAND_BYTES - n, "%s%s", n ? " " : "", *words);
	return n < COMMAND_BYTES && !strpbrk(text, "\n#");
}

static bool pid_parse(const char *text, pid_t *out)
{
	char *end;
	long v;

	if (!strcmp(text, "all")) {
		*out = 0;
		return true;
	}
	errno = 0;
	v = strtol(text, &end, 10);
	*out = (pid_t)v;
	return !errno && end != text && !*end && v > 0 && v <= INT_MAX;
}

static int check(const char *file)
{
	struct config c;
	char why[1024];

	setenv("VERBENA_FAULTS", file, 1);
	return config_load(&c, why, sizeof(why)) ? complain("%s", why) : EXIT_SUCCESS;
}

int cmd_fault(int argc, char **argv)
{
	static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	struct request r = {.rc = EXIT_SUCCESS};
	char command[COMMAND_BYTES] = "", why[1024];
	struct config c;
	int opt;

	while ((opt = getopt_long(argc, argv, "+h", options, NULL)) != -1) {
		if (opt != 'h')
			return usage_error("fault");
		fputs(usage, stdout);
		return EXIT_SUCCESS;
	}
	if (argc - optind == 2 && !strcmp(argv[optind], "check"))
		return check(argv[optind + 1]);
	if (argc - optind < 2) {
		complain("fault: allowed are PID or 'all', and a command");
		return usage_error("fault");
	}
	if (!pid_parse(argv[optind], &r.pid))
		return complain("fault: '%s': allowed are a process id and 'all'", argv[optind]);
	if (!join(command, argv + optind + 1))
		return complain("fault: allowed is a command of one line, without '#', of at most %d characters",
				COMMAND_BYTES - 1);
	r.command = strcmp(command, "list") ? command : NULL;
	if (config_load(&c, why, sizeof(why)))
		return complain("%s", why);
	return ask(&r, c.transport.protocol == PROTOCOL_ROCEV1 ? config_rocev1_port(&c) : c.transport.rocev2.port);
}
