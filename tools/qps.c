/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbena qps`: the queue pairs of running programs, a line each, in the words of `rdma resource show qp` and ours. */
#include "tool.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "io/clock.h"
#include "looks.h"

static const char usage[] = "usage: verbena qps [OPTION...] [PID...]\n"
			    "\n"
			    "Shows the queue pairs of your running programs, or of those with these process ids.\n"
			    "\n"
			    "  -j, --json    as one line of JSON\n"
			    "  -r, --rates   what each sends and receives, too, over a second\n"
			    "  -h, --help    this text\n";

struct shown {
	bool json, rates;
	const struct looks *before;
	size_t rows;
};

/* A column: a word and a number or a text. */
static void number(const struct shown *s, const char *word, uint64_t value)
{
	printf(s->json ? ", \"%s\": %" PRIu64 : " %s %" PRIu64, word, value);
}

static void text(const struct shown *s, const char *word, const char *value)
{
	printf(s->json ? ", \"%s\": " : " %s ", word);
	if (s->json)
		json_string(stdout, value);
	else
		fputs(value, stdout);
}

static void show_rates(const struct shown *s, const struct look *l, const struct nic_qp_look *q)
{
	const struct look *before = look_before(s->before, l);
	const struct nic_qp_look *old = look_qp_before(before, q);
	double seconds = before ? (double)(l->at_ns - before->at_ns) / 1e9 : 0;

	number(s, "rx-bytes-per-second", (uint64_t)look_words_rate(old ? old->rx_words : 0, q->rx_words, seconds));
	number(s, "tx-bytes-per-second", (uint64_t)look_words_rate(old ? old->tx_words : 0, q->tx_words, seconds));
}

static void show(struct shown *s, const struct look *l, const struct nic_qp_look *q)
{
	char address[ADDRESS_BYTES];

	if (s->json) {
		printf("%s{\"ifname\": \"%s\", \"port\": 1", s->rows ? ", " : "", l->device);
		number(s, "lqpn", q->is.qpn);
	} else {
		printf("link %s/1 lqpn %u", l->device, q->is.qpn);
	}
	if (q->is.dest_qpn)
		number(s, "rqpn", q->is.dest_qpn);
	text(s, "type", qp_type_word(&q->is));
	text(s, "state", qp_state_word(&q->is));
	number(s, "rq-psn", q->rq_psn);
	number(s, "sq-psn", q->sq_psn);
	number(s, "pid", (uint64_t)l->pid);
	text(s, "comm", l->comm);
	text(s, "protocol", qp_protocol_word(q));
	text(s, "way", qp_way_word(&q->is, l->raw));
	if (qp_has_peer(&q->is))
		text(s, "peer", gid_text(q->is.peer, address));
	number(s, "paths", q->paths);
	number(s, "posted", q->send_wqes);
	number(s, "in-flight", q->in_flight);
	if (q->window_bytes)
		number(s, "window", q->window_bytes);
	if (s->rates)
		show_rates(s, l, q);
	fputs(s->json ? "}" : "\n", stdout);
	s->rows++;
}

static int show_all(struct shown *s, const struct config *c, struct looks_wanted *wanted)
{
	struct looks before = {0}, now = {0};
	int err = s->rates ? looks_take(&before, c, wanted, true) : 0;

	if (s->rates && !err)
		clock_sleep_ns(1000000000);
	if (!err)
		err = looks_take(&now, c, wanted, !s->rates);
	s->before = &before;
	if (!err) {
		fputs(s->json ? "[" : "", stdout);
		for (size_t i = 0; i < now.count; i++)
			for (size_t k = 0; k < now.all[i].qp_count; k++)
				show(s, &now.all[i], &now.all[i].qps[k]);
		fputs(s->json ? "]\n" : "", stdout);
	}
	looks_free(&before);
	looks_free(&now);
	return err ? complain("cannot ask running programs: %s", strerror(-err)) : looks_missing(wanted);
}

int cmd_qps(int argc, char **argv)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'},
		{"rates", no_argument, NULL, 'r'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	pid_t pids[LOOKS_PIDS_MAX];
	struct looks_wanted wanted = {.pids = pids};
	struct shown s = {0};
	struct config c;
	char why[1024];
	int opt;

	while ((opt = getopt_long(argc, argv, "jrh", options, NULL)) != -1) {
		switch (opt) {
		case 'j': s.json = true; break;
		case 'r': s.rates = true; break;
		case 'h': fputs(usage, stdout); return EXIT_SUCCESS;
		default: return usage_error("qps");
		}
	}
	if (!looks_pids("qps", argc - optind, argv + optind, pids, &wanted.pid_count))
		return EXIT_OURS;
	if (config_load(&c, why, sizeof(why)))
		return complain("%s", why);
	return show_all(&s, &c, &wanted);
}
