/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long messages take by src/sdr's codes over the tail, over a link in numbers (tests/support/coded_link.h): as the
 * simulator's, some ten times as fast, so that the largest messages and the rarest cases can be counted.
 * `sdr_line_test` holds the two to each other. Prints a line of CSV; times are multiples of the ideal one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sdr/model/completion.h"
#include "support/coded_link.h"

#include "options.h"

static int order(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

struct totals {
	double *times;
	double sum, packets, parities, again, words, fills;
};

static int run(struct coded_link_wish *w, struct loss_estimate *e, uint32_t messages, uint64_t seed, struct totals *t)
{
	double ideal_ns = (double)w->packets * (double)w->packet_ns + (double)w->rtt_ns;

	for (uint32_t i = 0; i < messages; i++) {
		struct coded_link_result r;

		w->seed = seed + i;
		r = coded_link_run(w, e);
		if (r.end != SR_DONE) {
			fprintf(stderr, "seed %llu: the message did not end\n", (unsigned long long)w->seed);
			return 1;
		}
		t->times[i] = (double)r.done_ns / ideal_ns;
		t->sum += t->times[i];
		t->packets += (double)r.packets;
		t->parities += (double)r.parities;
		t->again += (double)r.resent;
		t->words += (double)r.words;
		t->fills += (double)r.fills;
	}
	qsort(t->times, messages, sizeof(*t->times), order);
	return 0;
}

static void print(const struct coded_link_wish *w, const struct totals *t, uint32_t n)
{
	const struct model_message m = {.chunks = w->packets,
					.inject_s = (double)w->packet_ns / 1e9,
					.rtt_s = (double)w->rtt_ns / 1e9,
					.chunk_loss = w->loss};
	double all = (double)w->packets * n;
	struct model_time bound;

	model_bound(&m, &bound);
	printf("packets,loss,burst,assumed,messages,mean,p999,most,parity,sent_again,words,bound_mean,bound_p999,fill\n");
	printf("%u,%g,%g,%g,%u,%.6f,%.6f,%.6f,%.6f,%.6f,%.1f,%.6f,%.6f,%.6f\n", w->packets, w->loss, w->burst,
	       w->assumed, n, t->sum / n, t->times[(uint64_t)n * 999 / 1000], t->times[n - 1], t->parities / all,
	       t->again / all, t->words / n, bound.mean_s / model_ideal(&m), bound.p999_s / model_ideal(&m),
	       t->fills / all);
}

int main(int argc, char **argv)
{
	struct coded_link_wish w = {.rtt_ns = 25000000, .packet_ns = 84, .word_loss = -1};
	uint32_t messages = 1000, earlier = 0;
	struct totals t = {0}, unused = {0};
	struct loss_estimate e;
	uint64_t seed = 1;
	const struct option_row rows[] = {
		{'n', NULL, OPTION_U32, &messages, 1, UINT32_MAX, "MESSAGES", NULL},
		{'w', NULL, OPTION_U32, &earlier, 0, UINT32_MAX, "EARLIER_MESSAGES", NULL},
		{'l', NULL, OPTION_REAL, &w.loss, 0, 0.9, "LOSS", NULL},
		{'b', NULL, OPTION_REAL, &w.burst, 0, 1e6, "BURST", NULL},
		{'a', NULL, OPTION_REAL, &w.assumed, 0, 1, "ASSUMED_LOSS", NULL},
		{'s', NULL, OPTION_U64, &seed, 0, 1e18, "SEED", NULL},
		{'f', NULL, OPTION_FLAG, &w.fill, 0, 0, NULL, NULL},
		{'r', NULL, OPTION_U64, &w.rtt_ns, 1, 1e15, "ROUND_TRIP_NS", NULL},
		{'t', NULL, OPTION_U64, &w.packet_ns, 1, 1e15, "PACKET_NS", NULL},
	};
	int first = options_read(argc, argv, rows, OPTION_COUNT(rows), "usage: sdr_tail [OPTION ...] PACKETS\n");

	w.packets = first + 1 == argc ? (uint32_t)strtoul(argv[first], NULL, 10) : 0;
	if (!w.packets || w.packets > 1u << 25)
		return 2;
	t.times = calloc(messages, sizeof(double));
	unused.times = calloc(earlier + 1, sizeof(double));
	loss_estimate_init(&e);
	if (!t.times || !unused.times || run(&w, &e, earlier, seed + 1000000000, &unused) ||
	    run(&w, &e, messages, seed, &t))
		return 1;
	print(&w, &t, messages);
	free(t.times);
	free(unused.times);
	return 0;
}
