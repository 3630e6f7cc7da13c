/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sdr_cp: copies a file, or a folder and all below it, to or from another host, by messages that are coded or repeated
 * until they are whole. A file has its name there only when its hash is the sender's.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "options.h"
#include "sdr/cp.h"
#include "sdr/cp_wire.h"
#include "sdr/remote.h"

#define GID_UNSET UINT64_MAX

static struct cp cp = {.port = 18517,
		       .shell = "ssh",
		       .gid_index = GID_UNSET,
		       .plan = {[PLAN_MAGIC] = CP_MAGIC, [PLAN_CHUNK] = 65536, [PLAN_SCHEME] = SCHEME_AUTO}};

/* ---- the command line */

static const struct option_row rows[] = {
	/* clang-format off */
	{'e', "rsh", OPTION_TEXT, &cp.shell, 0, 0, "COMMAND", "starts the other end on HOST (ssh)"},
	{0, "remote-path", OPTION_TEXT, &cp.remote, 0, 0, "COMMAND", "runs sdr_cp there (as it runs here)"},
	{'p', "port", OPTION_U64, &cp.port, 1, 65535, NULL, "TCP port to meet on, without ssh"},
	{'d', "ib-dev", OPTION_TEXT, &cp.device, 0, 0, "NAME", "the device (the first)"},
	{'x', "gid-index", OPTION_U64, &cp.gid_index, 0, 255, NULL, "index in its port's GID table (of the address that the ends meet by)"},
	{'q', "quiet", OPTION_FLAG, &cp.quiet, 0, 0, NULL, "shows no progress"},
	{0, "server", OPTION_FLAG, &cp.serves, 0, 0, NULL, "what another sdr_cp starts"},
	{0, NULL, OPTION_HEADING, NULL, 0, 0, NULL, "The receiver's:"},
	{'y', "sync", OPTION_FLAG, &cp.sync, 0, 0, NULL, "ends when all is on the disk"},
	{0, NULL, OPTION_HEADING, NULL, 0, 0, NULL, "Of the end that asks:"},
	{'r', "rate", OPTION_U64, &cp.plan[PLAN_RATE], 0, 10000000, NULL, "Mbit/s that are sent at most (no limit)"},
	{'k', "chunk", OPTION_POWER, &cp.plan[PLAN_CHUNK], 64, 262144, NULL, "bytes that are repeated together, a power of two"},
	{'m', "mtu", OPTION_POWER, &cp.plan[PLAN_MTU], 0, 4096, NULL, "bytes of a packet, a power of two; 0: what both ports carry"},
	{'t', "rtt", OPTION_U64, &cp.plan[PLAN_RTT_US], 0, 100000000, NULL, "microseconds that a round trip takes (measured)"},
	{'S', "scheme", OPTION_WORD, &cp.plan[PLAN_SCHEME], 0, 0, SCHEME_NAMES, "how losses are repaired"},
	{'F', "idle-fill", OPTION_ONE, &cp.plan[PLAN_FILL], 0, 0, NULL, "parities of tail go on while nothing else is to be sent"},
	/* clang-format on */
};

/* One of the two may be on a host that ssh reaches. */
static void places_read(char *from, char *to)
{
	char *host, *path;

	if (to && remote_split(to, &host, &path)) {
		if (remote_split(from, &host, &path))
			die("%s: only one of the two can be on another host", from);
		remote_split(to, &host, &path);
		cp.sends = true;
		cp.path = from;
	} else if (remote_split(from, &host, &path)) {
		if (!to)
			die("%s: where it is copied to is wanted", from);
		cp.plan[PLAN_FETCH] = 1;
		cp.path = to;
	} else {
		cp.sends = to;
		cp.path = from;
		cp.host = to;
		return;
	}
	cp.host = host;
	cp.there = path;
}

static void command_read(int argc, char **argv)
{
	int first = options_read(
		argc, argv, rows, OPTION_COUNT(rows),
		"Usage: sdr_cp [OPTION ...] FROM [USER@]HOST:TO   sends a file, or a folder and all below it\n"
		"       sdr_cp [OPTION ...] [USER@]HOST:FROM TO   fetches it\n"
		"       sdr_cp [OPTION ...] TO                    waits for a sender, who comes by TCP\n"
		"       sdr_cp [OPTION ...] FROM HOST             sends to one that waits\n\n"
		"What an earlier run has left is compared and not sent again.\n\n");
	int count = argc - first;

	if (cp.serves ? count : count < 1 || count > 2)
		die("a file, and where to send it or fetch it, are wanted; --help tells");
	scheme_fill_check(cp.plan[PLAN_FILL], (enum scheme)cp.plan[PLAN_SCHEME]);
	if (!cp.serves)
		places_read(argv[first], argv[first + 1]);
	cp.quiet |= cp.serves;
}

/* ---- both ends */

static void plan_agree(void)
{
	meet_agree(cp.tcp, cp.host, cp.plan, PLAN_NUMBERS);
	if (cp.plan[PLAN_MAGIC] != CP_MAGIC ||
	    !options_allow(rows, OPTION_COUNT(rows), cp.plan, cp.plan + PLAN_NUMBERS) || cp.plan[PLAN_FETCH] > 1 ||
	    (cp.plan[PLAN_FILL] && !scheme_fills((enum scheme)cp.plan[PLAN_SCHEME])))
		die("the peer is not the sdr_cp of this version");
	if (!cp.host && !cp.serves && cp.plan[PLAN_FETCH])
		die("the peer wants to fetch, and this end only receives");
}

static void address_take(const char *address)
{
	snprintf(cp.address, sizeof(cp.address), "%.*s", MEET_ADDRESS - 1, address ? address : "");
}

/* What only the end that was asked knows is how the other one's address looks from here. */
static void path_tell(void)
{
	struct cp_frame f;

	if (strlen(cp.there) >= PATH_MAX)
		die("a path of %zu bytes: %s", strlen(cp.there), strerror(ENAMETOOLONG));
	cp_say(CP_PATH, cp.there, strlen(cp.there));
	cp_expect(&f, CP_MET);
	f.payload[f.length < MEET_ADDRESS ? f.length : 0] = 0;
	address_take((const char *)f.payload);
}

/* A path begins in the user's folder, as with scp. */
static void path_hear(void)
{
	static char path[PATH_MAX];
	struct cp_frame f;
	const char *there;

	cp_expect(&f, CP_PATH);
	if (!f.length || f.length >= sizeof(path) || memchr(f.payload, 0, f.length))
		cp_nonsense();
	memcpy(path, f.payload, f.length);
	cp.path = strncmp(path, "~/", 2) ? path : path[2] ? path + 2 : ".";
	cp.sends = cp.plan[PLAN_FETCH];
	there = remote_there();
	cp_say(CP_MET, there ? there : "", there ? strlen(there) : 0);
	address_take(remote_here());
}

static void ends_meet(void)
{
	if (cp.serves)
		cp.tcp = remote_serve();
	else if (cp.there)
		cp.tcp = remote_start(cp.shell, cp.host, cp.remote ? cp.remote : remote_command());
	else
		cp.tcp = meet(cp.host, (uint16_t)cp.port);
	cp_wire_open(cp.tcp, cp.serves);
	plan_agree();
	meet_address(cp.tcp, cp.address);
	if (cp.there)
		path_tell();
	else if (cp.serves)
		path_hear();
}

static void qp_open(struct cp *c)
{
	const struct meet_device device = {
		.name = c->device,
		.gid_index = c->gid_index == GID_UNSET ? 0 : c->gid_index,
		.address = c->gid_index == GID_UNSET && c->address[0] ? c->address : NULL,
		.mtu = c->plan[PLAN_MTU],
		.chunk = c->plan[PLAN_CHUNK],
		.messages_log = CP_DEPTH_LOG + 1,
		.message_bytes = CP_MESSAGE,
		.sends = c->sends,
		.receives = !c->sends,
		.rate_mbps = c->plan[PLAN_RATE],
		.rtt_ns = c->plan[PLAN_RTT_US] * 1000,
		.idle_fill = c->plan[PLAN_FILL],
	};

	c->ctx = meet_context(&device);
	c->qp = meet_qp(c->ctx, &device);
}

static void memory_register(struct cp *c)
{
	enum { HUGE_PAGE = 2 << 20 };
	const size_t bytes = (size_t)CP_DEPTH * CP_MESSAGE;

	/* What a small file does not need is not touched, and the rest in few large pages, where the system has them.
	 */
	c->memory = aligned_alloc(HUGE_PAGE, bytes);
	if (!c->memory)
		die("no memory");
	madvise(c->memory, bytes, MADV_HUGEPAGE);
	c->mr = verbena_sdr_mr_reg(c->ctx, c->memory, bytes, c->sends ? 0 : VERBENA_SDR_REMOTE_WRITE);
	if (!c->mr || verbena_sdr_mr_lkey_get(c->mr, &c->lkey))
		die("registering %zu bytes: %s", bytes, strerror(errno));
}

void cp_connect(struct cp *c)
{
	qp_open(c);
	memory_register(c);
	meet_connect(c->tcp, c->qp);
	c->way = (struct scheme_way){.scheme = (enum scheme)c->plan[PLAN_SCHEME],
				     .rtt_ns = c->plan[PLAN_RTT_US] * 1000,
				     .rate_mbps = c->plan[PLAN_RATE],
				     .chunk = c->plan[PLAN_CHUNK]};
	scheme_open(&c->way, c->ctx, c->qp, c->tcp, c->sends);
	c->bytes = cp_bytes_left(&c->list);
	cp_progress_start(&c->progress, c->quiet, c->bytes);
}

void cp_close(struct cp *c)
{
	verbena_sdr_qp_destroy(c->qp);
	verbena_sdr_mr_dereg(c->mr);
	verbena_sdr_context_destroy(c->ctx);
	free(c->memory);
	cp_list_free(&c->list);
}

int main(int argc, char **argv)
{
	uint32_t left_out = 0;
	int status;

	command_read(argc, argv);
	if (cp.sends)
		left_out = cp_list_walk(&cp.list, cp.path);
	ends_meet();
	if (cp.serves && cp.sends)
		left_out = cp_list_walk(&cp.list, cp.path);
	status = cp.sends ? cp_send(&cp) || left_out : cp_receive(&cp);
	remote_end(cp.tcp);
	return status;
}
