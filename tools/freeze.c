/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbena freeze` and `thaw`: commands to the devices of one process. */
#include "tool.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/quantity.h"
#include "looks.h"
#include "nic/nic.h"
#include "reach.h"

enum { TEXT_BYTES = 64 };

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

/* ---- peers ---- */

/* What the device says of its peers' patience; NULL, or it has been said why it does not. */
static const char *patience_read(const struct reached *f, size_t i, char *said, size_t bytes)
{
	int rc = reach_ask(f, i, "patience", said, bytes);

	if (rc == -EPROTO)
		complain("process %d has another version of verbena, which cannot be frozen", f->pid);
	else if (rc < 0)
		complain("process %d does not answer: %s", f->pid, strerror(-rc));
	else if (strncmp(said, "patience", 8) != 0)
		complain("process %d: %s", f->pid, said);
	return rc < 0 || strncmp(said, "patience", 8) != 0 ? NULL : said;
}

/* The least patient peer of all devices; p->ns is UINT64_MAX if all wait for ever. EXIT_SUCCESS. */
static int patience_find(const struct reached *f, struct nic_patience *p)
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
static int judge_patience(const struct reached *f, uint64_t hold_ns, bool force)
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

/* Until one of them has thawed or ended. */
static void stay(const int *links, size_t count)
{
	struct pollfd p[REACH_DEVICES_MAX];

	for (size_t i = 0; i < count; i++)
		p[i] = (struct pollfd){.fd = links[i], .events = POLLIN};
	while (poll(p, count, -1) < 0 && errno == EINTR) {
	}
}

static int freeze(const struct reached *f, uint64_t hold_ns)
{
	char text[TEXT_BYTES];
	struct group_command c = {
		.kind = GROUP_COMMAND_FREEZE, .text = text, .stays = !hold_ns, .wait_ms = REACH_WAIT_MS};
	int links[REACH_DEVICES_MAX], rc = EXIT_SUCCESS;

	snprintf(text, sizeof(text), "freeze %" PRIu64 " %s", hold_ns ? hold_ns : HOLD_NS_DEFAULT,
		 hold_ns ? "for" : "while");
	for (size_t i = 0; i < f->count && rc == EXIT_SUCCESS; i++)
		rc = reach_give(f, i, &c, &links[i]);
	if (rc != EXIT_SUCCESS)
		return rc; /* those that are frozen thaw when we have ended, or when their time is over */
	puts("frozen");
	fflush(stdout);
	if (!hold_ns)
		stay(links, f->count);
	return rc;
}

static bool hold_parse(const char *text, uint64_t *ns)
{
	static const struct quantity_form form = {.units = quantity_times, .exponent = 9, .flags = QUANTITY_UNIT};

	return !quantity_parse(text, strlen(text), &form, ns) && *ns >= HOLD_NS_MIN && *ns <= HOLD_NS_MAX;
}

int cmd_freeze(int argc, char **argv)
{
	int force = 0;
	const struct option options[] = {{"help", no_argument, NULL, 'h'},
					 {"hold", required_argument, NULL, 'v'},
					 {"force", no_argument, &force, 1},
					 {NULL, 0, NULL, 0}};
	const char *hold = NULL;
	uint64_t hold_ns = 0;
	struct reached f = {0};
	int rc;

	if (!reach_options(argc, argv, "freeze", options, freeze_usage, &hold, &rc))
		return rc;
	if (hold && !hold_parse(hold, &hold_ns))
		return complain("freeze: --hold %s: allowed is a time from 1ms to 3600s", hold);
	rc = reach_find(&f, "freeze", argv[optind]);
	if (rc == EXIT_SUCCESS)
		rc = judge_patience(&f, hold_ns, force);
	return rc == EXIT_SUCCESS ? freeze(&f, hold_ns) : rc;
}

int cmd_thaw(int argc, char **argv)
{
	static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	struct group_command c = {.kind = GROUP_COMMAND_FREEZE, .text = "thaw", .wait_ms = REACH_WAIT_MS};
	const char *none;
	struct reached f = {0};
	int rc;

	if (!reach_options(argc, argv, "thaw", options, thaw_usage, &none, &rc))
		return rc;
	rc = reach_find(&f, "thaw", argv[optind]);
	for (size_t i = 0; i < f.count && rc == EXIT_SUCCESS; i++)
		rc = reach_give(&f, i, &c, NULL);
	return rc;
}
