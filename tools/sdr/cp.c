/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sdr_cp: copies a file, or a folder and all below it, to a server that waits for it, by messages that are coded or
 * repeated until they are whole. A file has its name there only when its hash is the sender's.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "options.h"
#include "sdr/cp.h"
#include "sdr/cp_wire.h"
#include "sdr/meet.h"

static struct cp cp = {.port = 18517,
		       .plan = {[PLAN_MAGIC] = CP_MAGIC, [PLAN_CHUNK] = 65536, [PLAN_SCHEME] = SCHEME_AUTO}};

/* ---- the command line */

static const struct option_row rows[] = {
	/* clang-format off */
	{'p', "port", OPTION_U64, &cp.port, 1, 65535, NULL, "TCP port to meet on"},
	{'d', "ib-dev", OPTION_TEXT, &cp.device, 0, 0, "NAME", "the device (the first)"},
	{'x', "gid-index", OPTION_U64, &cp.gid_index, 0, 255, NULL, "index in its port's GID table"},
	{'q', "quiet", OPTION_FLAG, &cp.quiet, 0, 0, NULL, "shows no progress"},
	{0, NULL, OPTION_HEADING, NULL, 0, 0, NULL, "The receiver's:"},
	{'y', "sync", OPTION_FLAG, &cp.sync, 0, 0, NULL, "ends when all is on the disk"},
	{0, NULL, OPTION_HEADING, NULL, 0, 0, NULL, "The sender's:"},
	{'r', "rate", OPTION_U64, &cp.plan[PLAN_RATE], 0, 10000000, NULL, "Mbit/s that are sent at most (no limit)"},
	{'k', "chunk", OPTION_POWER, &cp.plan[PLAN_CHUNK], 64, 262144, NULL, "bytes that are repeated together, a power of two"},
	{'m', "mtu", OPTION_POWER, &cp.plan[PLAN_MTU], 0, 4096, NULL, "bytes of a packet, a power of two; 0: what both ports carry"},
	{'t', "rtt", OPTION_U64, &cp.plan[PLAN_RTT_US], 0, 100000000, NULL, "microseconds that a round trip takes (measured)"},
	{'S', "scheme", OPTION_WORD, &cp.plan[PLAN_SCHEME], 0, 0, SCHEME_NAMES, "how losses are repaired"},
	{'F', "idle-fill", OPTION_ONE, &cp.plan[PLAN_FILL], 0, 0, NULL, "parities of tail go on while nothing else is to be sent"},
	/* clang-format on */
};

static void command_read(int argc, char **argv)
{
	int first = options_read(argc, argv, rows, OPTION_COUNT(rows),
				 "Usage: sdr_cp [OPTION ...] FILE HOST    sends a file, or a folder and all below it\n"
				 "       sdr_cp [OPTION ...] FILE         waits for one and writes it\n\n"
				 "What an earlier run has left is compared and not sent again.\n\n");

	if (argc - first < 1 || argc - first > 2)
		die("a file, and a host to send it to, are wanted; --help tells");
	scheme_fill_check(cp.plan[PLAN_FILL], (enum scheme)cp.plan[PLAN_SCHEME]);
	cp.path = argv[first];
	cp.host = argv[first + 1];
}

/* ---- both ends */

static void plan_agree(void)
{
	meet_agree(cp.tcp, cp.host, cp.plan, PLAN_NUMBERS);
	if (cp.plan[PLAN_MAGIC] != CP_MAGIC ||
	    !options_allow(rows, OPTION_COUNT(rows), cp.plan, cp.plan + PLAN_NUMBERS) ||
	    (cp.plan[PLAN_FILL] && !scheme_fills((enum scheme)cp.plan[PLAN_SCHEME])))
		die("the peer is not the sdr_cp of this version");
}

static void qp_open(struct cp *c)
{
	const struct meet_device device = {
		.name = c->device,
		.gid_index = c->gid_index,
		.mtu = c->plan[PLAN_MTU],
		.chunk = c->plan[PLAN_CHUNK],
		.messages_log = CP_DEPTH_LOG + 1,
		.message_bytes = CP_MESSAGE,
		.sends = c->host,
		.receives = !c->host,
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
	c->mr = verbena_sdr_mr_reg(c->ctx, c->memory, bytes, c->host ? 0 : VERBENA_SDR_REMOTE_WRITE);
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
	scheme_open(&c->way, c->ctx, c->qp, c->tcp, c->host);
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

	command_read(argc, argv);
	if (cp.host)
		left_out = cp_list_walk(&cp.list, cp.path);
	cp.tcp = meet(cp.host, (uint16_t)cp.port);
	plan_agree();
	cp_wire_open(cp.tcp);
	if (cp.host)
		return cp_send(&cp) || left_out;
	return cp_receive(&cp);
}
