/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of sdr_write_bw. Options that perftest has too are called as they are there. */
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sdr/meet.h"
#include "sdr/scheme.h"
#include "sdr/number.h"
#include "sdr/write_bw.h"

#define OPTION(member) offsetof(struct options, member)
#define PLAN(number)   offsetof(struct options, plan[number])

/* Options with a number. */
static const struct row {
	char letter;
	const char *name;
	size_t at;
	struct number_range range;
	uint64_t normal;
	const char *what;
} rows[] = {
	/* clang-format off */
	{'s', "size", PLAN(PLAN_SIZE), {1, UINT64_C(1) << 30, false}, 8 << 20, "bytes of a message"},
	{'n', "iters", PLAN(PLAN_ITERS), {1, UINT32_MAX, false}, 1000, "messages"},
	{'w', "warmup", PLAN(PLAN_WARMUP), {0, UINT32_MAX, false}, 10, "messages before time is taken"},
	{'t', "tx-depth", PLAN(PLAN_IN_FLIGHT), {1, 1024, true}, 128, "messages under way"},
	{'m', "mtu", PLAN(PLAN_MTU), {0, 4096, true}, 0, "bytes of a packet; 0: what both ports carry"},
	{'k', "chunk", PLAN(PLAN_CHUNK), {64, 262144, true}, 65536, "bytes of a chunk"},
	{'c', "channels", PLAN(PLAN_CHANNELS), {1, 128, false}, 8, "channels"},
	{'g', "generations", PLAN(PLAN_GENERATIONS), {1, 16, false}, 4, "sets of queue pairs"},
	{'p', "port", OPTION(port), {1, 65535, false}, 18516, "TCP port to meet on"},
	{'i', "ib-port", OPTION(ib_port), {1, 255, false}, 1, "port of the device"},
	{'x', "gid-index", OPTION(gid_index), {0, 255, false}, 0, "index in the port's GID table"},
	{'T', "threads", OPTION(workers), {0, 128, false}, 0, "threads that watch the device; 0: the program itself"},
	{'b', "batch", OPTION(batch), {1, 64, false}, 8, "packets posted at a time"},
	{'r', "rate", OPTION(rate_mbps), {0, UINT32_MAX, false}, 0, "Mbit/s that are sent at most; 0: no limit"},
	/* clang-format on */
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static void usage(void)
{
	printf("Usage: sdr_write_bw [OPTION ...] [HOST]\n"
	       "Sends messages whose chunks complete one by one, and tells how fast and how many "
	       "were lost.\n"
	       "Without HOST it is the server. The options marked * are the client's.\n\n");
	for (int i = 0; i < ROWS; i++)
		printf("  -%c, --%-12s N  %s (%llu)%s\n", rows[i].letter, rows[i].name, rows[i].what,
		       (unsigned long long)rows[i].normal, rows[i].at >= PLAN(0) ? " *" : "");
	printf("  -d, --ib-dev NAME     the device (the first)\n"
	       "  -R, --rc              reliable connections, which lose nothing *\n"
	       "  -V, --verify          every chunk that arrives is compared with what was sent *\n"
	       "  -S, --scheme NAME     what is lost is repaired: " SCHEME_NAMES " (it is not) *\n"
	       "  -F, --idle-fill       with --scheme tail: parities go on until all has arrived *\n"
	       "  -h, --help            this\n");
}

static void option_take(struct options *o, int letter)
{
	for (int i = 0; i < ROWS; i++) {
		if (rows[i].letter == letter)
			*(uint64_t *)((char *)o + rows[i].at) = number_read(rows[i].name, optarg, rows[i].range);
	}
	if (letter == 'd')
		o->device = optarg;
	if (letter == 'R')
		o->plan[PLAN_RC] = 1;
	if (letter == 'V')
		o->plan[PLAN_VERIFY] = 1;
	if (letter == 'S')
		o->plan[PLAN_SCHEME] = scheme_named(optarg) + 1;
	if (letter == 'F')
		o->plan[PLAN_FILL] = 1;
	if (letter == 'h') {
		usage();
		exit(0);
	}
	if (letter == '?') {
		fprintf(stderr, "sdr_write_bw --help lists the options\n");
		exit(1);
	}
}

static bool fills(const uint64_t *plan)
{
	return !plan[PLAN_RC] && plan[PLAN_SCHEME] && scheme_fills((enum scheme)(plan[PLAN_SCHEME] - 1));
}

void options_read(struct options *o, int argc, char **argv)
{
	struct option longs[ROWS + 7] = {{0}};
	char letters[2 * ROWS + 11];
	int at = 0, letter;

	*o = (struct options){0};
	for (int i = 0; i < ROWS; i++) {
		at += sprintf(letters + at, "%c:", rows[i].letter);
		longs[i] = (struct option){rows[i].name, required_argument, NULL, rows[i].letter};
		*(uint64_t *)((char *)o + rows[i].at) = rows[i].normal;
	}
	strcpy(letters + at, "d:RVS:Fh");
	longs[ROWS] = (struct option){"ib-dev", required_argument, NULL, 'd'};
	longs[ROWS + 1] = (struct option){"rc", no_argument, NULL, 'R'};
	longs[ROWS + 2] = (struct option){"verify", no_argument, NULL, 'V'};
	longs[ROWS + 3] = (struct option){"help", no_argument, NULL, 'h'};
	longs[ROWS + 4] = (struct option){"scheme", required_argument, NULL, 'S'};
	longs[ROWS + 5] = (struct option){"idle-fill", no_argument, NULL, 'F'};
	while ((letter = getopt_long(argc, argv, letters, longs, NULL)) != -1)
		option_take(o, letter);
	if (argc - optind > 1)
		die("one host at most, not '%s' too", argv[optind + 1]);
	if (o->plan[PLAN_FILL] && !fills(o->plan))
		die("--idle-fill goes with --scheme tail or auto");
	o->host = argv[optind];
}

bool plan_valid(const uint64_t *plan)
{
	for (int i = 0; i < ROWS; i++) {
		size_t number = (rows[i].at - PLAN(0)) / sizeof(*plan);

		if (rows[i].at >= PLAN(0) && !number_allowed(rows[i].range, plan[number]))
			return false;
	}
	return plan[PLAN_RC] <= 1 && plan[PLAN_VERIFY] <= 1 && plan[PLAN_SCHEME] <= SCHEMES &&
	       (!plan[PLAN_FILL] || (plan[PLAN_FILL] == 1 && fills(plan)));
}
