/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbena sdr`: reads the question from the command line and hands it to the subcommand. */
#include "sdr.h"

#include <getopt.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/quantity.h"
#include "tool.h"

static const char usage[] =
	"usage: verbena sdr model [OPTION...]\n"
	"       verbena sdr plan [OPTION...]\n"
	"       verbena sdr figures FILE.html\n"
	"\n"
	"How long a reliable Write takes over a long link that loses packets, by computation; "
	"nothing is sent.\n"
	"model shows what each scheme of reliability gives, plan which one to use, and why; "
	"figures writes a\n"
	"page that draws the schemes over size, distance and loss.\n"
	"\n"
	"  -s, --size BYTES[,...]  of a message (128MiB)\n"
	"  -l, --loss SHARE[,...]  of the packets: 0.1%, 1e-3 (0.1%)\n"
	"  -r, --rate RATE         of the link (400Gbps)\n"
	"  -d, --distance LENGTH   of the link: 3750km (3750km, which is a round trip of 25 ms)\n"
	"  -t, --rtt TIME          the round trip, in place of the distance\n"
	"  -p, --packet BYTES      of payload (4KiB)\n"
	"  -c, --chunk BYTES       what is repeated or coded as one: a whole number of packets "
	"(64KiB)\n"
	"  -o, --rto NUMBER        the timer of selective repeat, in round trips (3)\n"
	"      --csv               model: CSV in place of the table\n"
	"  -h, --help              this text\n";

/* Light in fibre: 3 * 10^5 km/s is what the paper reckons with. */
static const double metres_per_second = 3e8;

enum { OPTION_CSV = 256 };

static const struct option options[] = {
	{"size", required_argument, NULL, 's'},
	{"loss", required_argument, NULL, 'l'},
	{"rate", required_argument, NULL, 'r'},
	{"distance", required_argument, NULL, 'd'},
	{"rtt", required_argument, NULL, 't'},
	{"packet", required_argument, NULL, 'p'},
	{"chunk", required_argument, NULL, 'c'},
	{"rto", required_argument, NULL, 'o'},
	{"csv", no_argument, NULL, OPTION_CSV},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static const struct quantity_unit lengths[] = {{"m", 1, 0, 0}, {"km", 1, 3, 0}, {NULL, 0, 0, 0}};

/* What an option takes: its result x scale lies between least and most. */
struct taken {
	const char *what, *allowed;
	struct quantity_form form;
	double scale, least, most;
};

static const struct taken
	size = {"size", "1B to 1PB", {.units = quantity_bytes}, 1, 1, 1e15},
	loss = {"loss",
		"0 to 50%",
		{.units = quantity_shares,
		 .exponent = 15,
		 .flags = QUANTITY_NEAREST | QUANTITY_FRACTION},
		1e-15,
		0,
		0.5},
	rate = {"rate",
		"1kbps to 1000Tbps",
		{.units = quantity_rates, .flags = QUANTITY_UNIT},
		1,
		1e3,
		1e15},
	distance = {"distance",
		    "1m to 1000000km",
		    {.units = lengths, .flags = QUANTITY_UNIT | QUANTITY_NEAREST},
		    1,
		    1,
		    1e9},
	rtt = {"round trip",
	       "1us to 1000s",
	       {.units = quantity_times, .exponent = 12, .flags = QUANTITY_UNIT | QUANTITY_NEAREST},
	       1e-12,
	       1e-6,
	       1e3},
	packet = {"packet size", "64B to 64KiB", {.units = quantity_bytes}, 1, 64, 65536},
	chunk = {"chunk size", "64B to 1GiB", {.units = quantity_bytes}, 1, 64, 0x1p30},
	rto = {"timer",
	       "0.1 to 1000 round trips",
	       {.exponent = 6, .flags = QUANTITY_NEAREST},
	       1e-6,
	       0.1,
	       1000};

static int read_one(const struct taken *t, const char *text, size_t len, double *value)
{
	uint64_t n;
	enum quantity_fault fault = quantity_parse(text, len, &t->form, &n);
	double scaled = (double)n * t->scale;

	if (fault != QUANTITY_GOOD)
		return complain("%s '%.*s': %s; allowed: %s", t->what, (int)len, text,
				quantity_fault_text(fault), t->allowed);
	if (scaled < t->least || scaled > t->most)
		return complain("%s '%.*s': out of range; allowed: %s", t->what, (int)len, text,
				t->allowed);
	*value = scaled;
	return 0;
}

static int read_list(const struct taken *t, const char *text, struct sdr_list *list)
{
	list->n = 0;
	for (;;) {
		size_t len = strcspn(text, ",");
		int status;

		if (list->n == SDR_VALUES_MAX)
			return complain("%s: more than %d values", t->what, SDR_VALUES_MAX);
		status = read_one(t, text, len, &list->values[list->n++]);
		if (status != 0 || text[len] == '\0')
			return status;
		text += len + 1;
	}
}

static int read_option(int option, const char *text, struct sdr_question *q)
{
	double metres = 0;
	int status;

	switch (option) {
	case 's':
		return read_list(&size, text, &q->sizes);
	case 'l':
		return read_list(&loss, text, &q->losses);
	case 'r':
		return read_one(&rate, text, strlen(text), &q->rate_bps);
	case 'd':
		status = read_one(&distance, text, strlen(text), &metres);
		if (status == 0)
			q->rtt_s = 2 * metres / metres_per_second;
		return status;
	case 't':
		return read_one(&rtt, text, strlen(text), &q->rtt_s);
	case 'p':
		return read_one(&packet, text, strlen(text), &q->packet_bytes);
	case 'c':
		return read_one(&chunk, text, strlen(text), &q->chunk_bytes);
	default:
		return read_one(&rto, text, strlen(text), &q->rto_rtts);
	}
}

static int check(const struct sdr_question *q)
{
	if (fmod(q->chunk_bytes, q->packet_bytes) != 0)
		return complain(
			"chunk size: %.0f bytes are no whole number of packets of %.0f bytes",
			q->chunk_bytes, q->packet_bytes);
	return 0;
}

int cmd_sdr(int argc, char **argv)
{
	struct sdr_question q = {
		.sizes = {{0x1p27}, 1},
		.losses = {{1e-3}, 1},
		.rate_bps = 400e9,
		.rtt_s = 25e-3,
		.packet_bytes = 4096,
		.chunk_bytes = 65536,
		.rto_rtts = 3,
	};
	bool csv = false;
	int option, status;

	while ((option = getopt_long(argc, argv, "s:l:r:d:t:p:c:o:h", options, NULL)) != -1) {
		if (option == 'h') {
			fputs(usage, stdout);
			return EXIT_SUCCESS;
		}
		if (option == '?')
			return usage_error("sdr");
		if (option == OPTION_CSV)
			csv = true;
		else if ((status = read_option(option, optarg, &q)) != 0)
			return status;
	}
	if (optind + 2 == argc && strcmp(argv[optind], "figures") == 0)
		return sdr_figures(argv[optind + 1]);
	if (optind + 1 != argc ||
	    (strcmp(argv[optind], "model") != 0 && strcmp(argv[optind], "plan") != 0))
		return complain("sdr: one of 'model', 'plan' and 'figures FILE.html' is needed; "
				"`verbena sdr --help` "
				"has the options");
	status = check(&q);
	if (status != 0)
		return status;
	if (strcmp(argv[optind], "plan") == 0)
		sdr_plan(&q);
	else if (csv)
		sdr_model_csv(&q, stdout);
	else
		sdr_model_table(&q);
	return EXIT_SUCCESS;
}
