/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sdr_cp: copies a file, or a folder and all below it, to a server that waits for it, by messages that are coded or
 * repeated until they are whole. A file has its name there only when its hash is the sender's.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sdr/cp.h"
#include "sdr/cp_wire.h"
#include "sdr/meet.h"
#include "sdr/number.h"

static struct cp cp = {.port = 18517,
		       .plan = {[PLAN_MAGIC] = CP_MAGIC, [PLAN_CHUNK] = 65536, [PLAN_SCHEME] = SCHEME_AUTO}};

/* ---- the command line */

static void usage(void)
{
	printf("Usage: sdr_cp [OPTION ...] FILE HOST    sends a file, or a folder and all below it\n"
	       "       sdr_cp [OPTION ...] FILE         waits for one and writes it\n\n"
	       "What an earlier run has left is compared and not sent again.\n\n"
	       "  -p, --port N        TCP port to meet on (18517)\n"
	       "  -d, --ib-dev NAME   the device (the first)\n"
	       "  -x, --gid-index N   index in its port's GID table (0)\n"
	       "  -q, --quiet         shows no progress\n"
	       "The receiver's:\n"
	       "  -y, --sync          ends when all is on the disk\n"
	       "The sender's:\n"
	       "  -r, --rate N        Mbit/s that are sent at most (no limit)\n"
	       "  -k, --chunk N       bytes that are repeated together, a power of two (65536)\n"
	       "  -m, --mtu N         bytes of a packet, a power of two; 0: what both ports carry (0)\n"
	       "  -t, --rtt N         microseconds that a round trip takes (measured)\n"
	       "  -S, --scheme NAME   how losses are repaired: " SCHEME_NAMES " (auto)\n"
	       "  -F, --idle-fill     parities of tail go on while nothing else is to be sent\n"
	       "  -h, --help          this\n");
}

static void option_take(int letter)
{
	switch (letter) {
	case 'p': cp.port = number_read("port", optarg, (struct number_range){1, 65535, false}); break;
	case 'd': cp.device = optarg; break;
	case 'x': cp.gid_index = number_read("gid-index", optarg, (struct number_range){0, 255, false}); break;
	case 'q': cp.quiet = true; break;
	case 'y': cp.sync = true; break;
	case 'r': cp.plan[PLAN_RATE] = number_read("rate", optarg, (struct number_range){1, 10000000, false}); break;
	case 'k': cp.plan[PLAN_CHUNK] = number_read("chunk", optarg, (struct number_range){64, 262144, true}); break;
	case 'm': cp.plan[PLAN_MTU] = number_read("mtu", optarg, (struct number_range){0, 4096, true}); break;
	case 't': cp.plan[PLAN_RTT_US] = number_read("rtt", optarg, (struct number_range){1, 100000000, false}); break;
	case 'S': cp.plan[PLAN_SCHEME] = scheme_named(optarg); break;
	case 'F': cp.plan[PLAN_FILL] = 1; break;
	case 'h': usage(); exit(0);
	default: fprintf(stderr, "sdr_cp --help lists the options\n"); exit(1);
	}
}

static void options_read(int argc, char **argv)
{
	static const struct option longs[] = {{"port", required_argument, NULL, 'p'},
					      {"ib-dev", required_argument, NULL, 'd'},
					      {"gid-index", required_argument, NULL, 'x'},
					      {"quiet", no_argument, NULL, 'q'},
					      {"sync", no_argument, NULL, 'y'},
					      {"rate", required_argument, NULL, 'r'},
					      {"chunk", required_argument, NULL, 'k'},
					      {"mtu", required_argument, NULL, 'm'},
					      {"rtt", required_argument, NULL, 't'},
					      {"scheme", required_argument, NULL, 'S'},
					      {"idle-fill", no_argument, NULL, 'F'},
					      {"help", no_argument, NULL, 'h'},
					      {0}};
	int letter;

	while ((letter = getopt_long(argc, argv, "p:d:x:qyr:k:m:t:S:Fh", longs, NULL)) != -1)
		option_take(letter);
	if (argc - optind < 1 || argc - optind > 2)
		die("a file, and a host to send it to, are wanted; --help tells");
	scheme_fill_check(cp.plan[PLAN_FILL], (enum scheme)cp.plan[PLAN_SCHEME]);
	cp.path = argv[optind];
	cp.host = argv[optind + 1];
}

/* ---- both ends */

static void plan_agree(void)
{
	if (cp.host)
		meet_send_numbers(cp.tcp, cp.plan, PLAN_NUMBERS);
	else
		meet_recv_numbers(cp.tcp, cp.plan, PLAN_NUMBERS);
	if (cp.plan[PLAN_MAGIC] != CP_MAGIC || cp.plan[PLAN_MTU] > 4096 || cp.plan[PLAN_CHUNK] > 262144 ||
	    cp.plan[PLAN_RTT_US] > 100000000 || cp.plan[PLAN_SCHEME] >= SCHEMES || cp.plan[PLAN_RATE] > 10000000 ||
	    cp.plan[PLAN_FILL] > 1 || (cp.plan[PLAN_FILL] && !scheme_fills((enum scheme)cp.plan[PLAN_SCHEME])))
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

static void way_find(struct cp *c)
{
	char reason[SCHEME_REASON];
	double lost = 0;

	c->way = (struct scheme_way){.scheme = (enum scheme)c->plan[PLAN_SCHEME],
				     .rtt_ns = scheme_rtt_ns(c->ctx, c->qp, c->tcp, c->host, &lost),
				     .rate_mbps = c->plan[PLAN_RATE],
				     .chunk = c->plan[PLAN_CHUNK]};
	if (c->plan[PLAN_RTT_US])
		c->way.rtt_ns = c->plan[PLAN_RTT_US] * 1000;
	if (!c->way.rtt_ns)
		die("no round trip could be measured; --rtt tells it");
	c->way.pings_lost = lost;
	scheme_choose(&c->way, c->tcp, c->host, reason);
	if (reason[0])
		printf("%s\n", reason);
}

void cp_connect(struct cp *c)
{
	qp_open(c);
	memory_register(c);
	meet_connect(c->tcp, c->qp);
	way_find(c);
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

	options_read(argc, argv);
	if (cp.host)
		left_out = cp_list_walk(&cp.list, cp.path);
	cp.tcp = meet(cp.host, (uint16_t)cp.port);
	plan_agree();
	cp_wire_open(cp.tcp);
	if (cp.host)
		return cp_send(&cp) || left_out;
	return cp_receive(&cp);
}
