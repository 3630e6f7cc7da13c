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

static const char usage[] = "usage: verbena sdr model [OPTION...]\n"
			    "       verbena sdr plan [OPTION...]\n"
			    "       verbena sdr ring [OPTION...]\n"
			    "       verbena sdr figures FILE.html\n"
			    "\n"
			    "How long a reliable Write takes over a long link that loses packets, by computation; "
			    "nothing\n"
			    "is sent. model shows what each scheme of reliability gives, plan which one to use, and "
			    "why;\n"
			    "ring does the same for an all-reduce between data centres; figures writes a page that "
			    "draws\n"
			    "the schemes over size, distance and loss.\n"
			    "\n"
			    "  -s, --size BYTES[,...]  of a message, of ring the buffer (128MiB)\n"
			    "  -l, --loss SHARE[,...]  of the packets: 0.1%, 1e-3 (0.1%)\n"
			    "  -r, --rate RATE         of the link (400Gbps)\n"
			    "  -d, --distance LENGTH   of the link: 3750km (3750km, which is a round trip of 25 ms)\n"
			    "  -t, --rtt TIME          the round trip, in place of the distance\n"
			    "  -p, --packet BYTES      of payload (4KiB)\n"
			    "  -c, --chunk BYTES       what is repeated or coded as one, whole packets (64KiB)\n"
			    "  -o, --rto NUMBER        the timer of selective repeat, in round trips (3)\n"
			    "  -k, --code DATA,PARITY  chunks of a group of XOR and EC (32,8)\n"
			    "  -a, --assumed SHARE     TAIL: the loss that it reckons with (that of --loss)\n"
			    "      --idle-fill         TAIL: parities go on until all has arrived\n"
			    "  -n, --nodes NUMBER      of the ring (4)\n"
			    "      --receiver-gated    ring: a round begins when data is there, not when it is "
			    "acknowledged\n"
			    "      --csv               CSV in place of the table or the text\n"
			    "      --html FILE         plan: writes a page in place of the text\n"
			    "  -h, --help              this text\n";

/* Light in fibre: 3 * 10^5 km/s is what the paper reckons with. */
static const double metres_per_second = 3e8;

enum { OPTION_CSV = 256, OPTION_RECEIVER_GATED, OPTION_HTML, OPTION_IDLE_FILL };

static const struct option options[] = {
	{"size", required_argument, NULL, 's'},
	{"loss", required_argument, NULL, 'l'},
	{"rate", required_argument, NULL, 'r'},
	{"distance", required_argument, NULL, 'd'},
	{"rtt", required_argument, NULL, 't'},
	{"packet", required_argument, NULL, 'p'},
	{"chunk", required_argument, NULL, 'c'},
	{"rto", required_argument, NULL, 'o'},
	{"code", required_argument, NULL, 'k'},
	{"assumed", required_argument, NULL, 'a'},
	{"idle-fill", no_argument, NULL, OPTION_IDLE_FILL},
	{"nodes", required_argument, NULL, 'n'},
	{"receiver-gated", no_argument, NULL, OPTION_RECEIVER_GATED},
	{"csv", no_argument, NULL, OPTION_CSV},
	{"html", required_argument, NULL, OPTION_HTML},
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
		{.units = quantity_shares, .exponent = 15, .flags = QUANTITY_NEAREST | QUANTITY_FRACTION},
		1e-15,
		0,
		0.5},
	rate = {"rate", "1kbps to 1000Tbps", {.units = quantity_rates, .flags = QUANTITY_UNIT}, 1, 1e3, 1e15},
	distance = {"distance", "1m to 1000000km", {.units = lengths, .flags = QUANTITY_UNIT | QUANTITY_NEAREST}, 1, 1,
		    1e9},
	rtt = {"round trip",
	       "1us to 1000s",
	       {.units = quantity_times, .exponent = 12, .flags = QUANTITY_UNIT | QUANTITY_NEAREST},
	       1e-12,
	       1e-6,
	       1e3},
	packet = {"packet size", "64B to 64KiB", {.units = quantity_bytes}, 1, 64, 65536},
	chunk = {"chunk size", "64B to 1GiB", {.units = quantity_bytes}, 1, 64, 0x1p30},
	rto = {"timer", "0.1 to 1000 round trips", {.exponent = 6, .flags = QUANTITY_NEAREST}, 1e-6, 0.1, 1000},
	assumed = {"assumed loss",
		   "0 to 50%",
		   {.units = quantity_shares, .exponent = 15, .flags = QUANTITY_NEAREST | QUANTITY_FRACTION},
		   1e-15,
		   0,
		   0.5},
	pieces = {"chunks of a group", "1 to 254", {.flags = QUANTITY_DIGITS}, 1, 1, 254},
	nodes = {"nodes", "2 to 64", {.flags = QUANTITY_DIGITS}, 1, 2, 64};

static int read_one(const struct taken *t, const char *text, size_t len, double *value)
{
	uint64_t n;
	enum quantity_fault fault = quantity_parse(text, len, &t->form, &n);
	double scaled = (double)n * t->scale;

	if (fault != QUANTITY_GOOD)
		return complain("%s '%.*s': %s; allowed: %s", t->what, (int)len, text, quantity_fault_text(fault),
				t->allowed);
	if (scaled < t->least || scaled > t->most)
		return complain("%s '%.*s': out of range; allowed: %s", t->what, (int)len, text, t->allowed);
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

static int read_code(const char *text, struct sdr_question *q)
{
	struct sdr_list numbers;
	int status = read_list(&pieces, text, &numbers);

	if (status != 0)
		return status;
	if (numbers.n != 2 || numbers.values[0] + numbers.values[1] > 255 || numbers.values[1] > numbers.values[0])
		return complain("code '%s': allowed: DATA,PARITY, at most 255 in all and no more "
				"parity than data",
				text);
	q->data = numbers.values[0];
	q->parity = numbers.values[1];
	return 0;
}

static int read_option(int option, const char *text, struct sdr_question *q)
{
	double metres = 0;
	int status;

	switch (option) {
	case 's': return read_list(&size, text, &q->sizes);
	case 'l': return read_list(&loss, text, &q->losses);
	case 'r': return read_one(&rate, text, strlen(text), &q->rate_bps);
	case 'd':
		status = read_one(&distance, text, strlen(text), &metres);
		if (status == 0)
			q->rtt_s = 2 * metres / metres_per_second;
		return status;
	case 't': return read_one(&rtt, text, strlen(text), &q->rtt_s);
	case 'p': return read_one(&packet, text, strlen(text), &q->packet_bytes);
	case 'c': return read_one(&chunk, text, strlen(text), &q->chunk_bytes);
	case 'k': return read_code(text, q);
	case 'a': return read_one(&assumed, text, strlen(text), &q->assumed);
	case 'n': return read_one(&nodes, text, strlen(text), &q->nodes);
	default: return read_one(&rto, text, strlen(text), &q->rto_rtts);
	}
}

static int check(const struct sdr_question *q)
{
	if (fmod(q->chunk_bytes, q->packet_bytes) != 0)
		return complain("chunk size: %.0f bytes are no whole number of packets of %.0f bytes", q->chunk_bytes,
				q->packet_bytes);
	return 0;
}

enum subcommand { MODEL, PLAN, RING, FIGURES, SUBCOMMANDS };

/* Which subcommands an option is of. */
static unsigned takers(int option)
{
	switch (option) {
	case 'n':
	case OPTION_RECEIVER_GATED: return 1u << RING;
	case OPTION_HTML: return 1u << PLAN;
	default: return 1u << MODEL | 1u << PLAN | 1u << RING;
	}
}

static const struct {
	const char *name;
	int operands; /* behind the name */
} subcommands[] = {[MODEL] = {"model", 0}, [PLAN] = {"plan", 0}, [RING] = {"ring", 0}, [FIGURES] = {"figures", 1}};

static enum subcommand subcommand_of(int argc, char **argv)
{
	int s = MODEL;

	while (s < SUBCOMMANDS && (argc != 1 + subcommands[s].operands || strcmp(argv[0], subcommands[s].name) != 0))
		s++;
	return (enum subcommand)s;
}

static int plan(const struct sdr_question *q, bool csv, const char *html)
{
	if (html)
		return sdr_plan_page(q, html);
	if (csv)
		sdr_plan_csv(q);
	else
		sdr_plan(q);
	return EXIT_SUCCESS;
}

static const char *name_of(int option)
{
	const struct option *o = options;

	while (o->val != option)
		o++;
	return o->name;
}

/* The first option that the subcommand does not take; 0: it takes all of them. */
static int no_option_of(enum subcommand s, const uint8_t *given)
{
	for (const struct option *o = options; s < SUBCOMMANDS && o->name; o++) {
		if (given[o - options] && o->val != 'h' && !(takers(o->val) & 1u << s))
			return o->val;
	}
	return 0;
}

static int answer(int argc, char **argv, const struct sdr_question *q, bool csv, const char *html, const uint8_t *given)
{
	enum subcommand s = subcommand_of(argc, argv);
	int status = check(q), other = no_option_of(s, given);

	if (status != 0)
		return status;
	if (other)
		return complain("--%s is not an option of '%s'", name_of(other), subcommands[s].name);
	if (html && csv)
		return complain("--csv and --html do not go together");
	switch (s) {
	case MODEL:
		if (csv)
			sdr_model_csv(q, stdout);
		else
			sdr_model_table(q);
		return EXIT_SUCCESS;
	case PLAN: return plan(q, csv, html);
	case RING: sdr_ring(q, csv); return EXIT_SUCCESS;
	case FIGURES: return sdr_figures(argv[1]);
	default:
		return complain("sdr: one of 'model', 'plan', 'ring' and 'figures FILE.html' is needed; "
				"`verbena sdr --help` has the options");
	}
}

static void given_note(uint8_t *given, int option)
{
	for (size_t i = 0; options[i].name; i++)
		given[i] |= options[i].val == option;
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
		.data = 32,
		.parity = 8,
		.nodes = 4,
		.assumed = -1,
	};
	uint8_t given[sizeof(options) / sizeof(options[0])] = {0};
	const char *html = NULL;
	bool csv = false;
	int option, status;

	while ((option = getopt_long(argc, argv, "s:l:r:d:t:p:c:o:k:a:n:h", options, NULL)) != -1) {
		if (option == 'h') {
			fputs(usage, stdout);
			return EXIT_SUCCESS;
		}
		if (option == '?')
			return usage_error("sdr");
		given_note(given, option);
		if (option == OPTION_CSV)
			csv = true;
		else if (option == OPTION_HTML)
			html = optarg;
		else if (option == OPTION_RECEIVER_GATED)
			q.receiver_gated = true;
		else if (option == OPTION_IDLE_FILL)
			q.idle_fill = true;
		else if ((status = read_option(option, optarg, &q)) != 0)
			return status;
	}
	return answer(argc - optind, argv + optind, &q, csv, html, given);
}
