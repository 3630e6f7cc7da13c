/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `verbena sdr figures`: a page with those figures of the paper (Khalilov et al., SC'25) that come
 * from its model, drawn by our model, and figures of our own. The paper's curves cannot be read off
 * to the digit; the notes repeat what its text says of them.
 */
#include "sdr.h"

#include <math.h>
#include <stdlib.h>

#include "page.h"
#include "tool.h"

enum { HALF_W = 540, HALF_H = 300, TRIALS = 4000 };

/* With 400 Gbit/s, 3750 km and a chunk of one packet we get the paper's figures 3, 9 and 13. */
static const struct sdr_question paper = {.rate_bps = 400e9,
					  .rtt_s = 25e-3,
					  .packet_bytes = 4096,
					  .chunk_bytes = 4096,
					  .rto_rtts = 3,
					  .data = 32,
					  .parity = 8,
					  .assumed = -1};

static double slowdown(const struct sdr_question *q, double size, double loss, enum sdr_scheme s, bool of_tail)
{
	struct sdr_answer a;

	sdr_answer(q, size, loss, s, &a);
	return (of_tail ? a.time.p999_s : a.time.mean_s) / a.ideal_s;
}

static struct plot *card(FILE *f, const char *title, const char *note, const char *x, const char *y, FILE **script)
{
	struct plot *p;

	page_card_begin(f, title, note, false);
	p = plot_begin(HALF_W, HALF_H, script);
	fprintf(*script, "set xlabel '%s'\nset ylabel '%s'\nset logscale x\nset format x '%%g'\n", x, y);
	return p;
}

static void card_end(FILE *f, struct plot *p)
{
	page_plot(f, p);
	page_card_end(f);
}

static void curve_begin(FILE *script, unsigned i)
{
	fprintf(script, "$d%u << EOD\n", i);
}

static void curves_draw(FILE *script, const char *const *names, unsigned n)
{
	fputs("plot ", script);
	for (unsigned i = 0; i < n; i++)
		fprintf(script, "%s$d%u using 1:2 with lines lw 2 lc rgb '%s' title '%s'", i ? ", " : "", i,
			plot_colour(i), names[i]);
	fputc('\n', script);
}

static const enum sdr_scheme drawn[] = {SDR_SR, SDR_NACK, SDR_MDS, SDR_TAIL, SDR_BOUND};

enum { DRAWN = sizeof(drawn) / sizeof(drawn[0]) };

/* A curve for each scheme: what `at` gives for x from `begin` to `end`, each x `step` times the one
 * before. */
struct sweep {
	double begin, end, step, shown; /* shown: x is divided by it */
	double (*at)(double x, enum sdr_scheme);
};

static void schemes_draw(FILE *script, const struct sweep *w)
{
	const char *names[DRAWN];

	for (unsigned i = 0; i < DRAWN; i++) {
		names[i] = sdr_scheme_name(drawn[i]);
		curve_begin(script, i);
		for (double x = w->begin; x < w->end * 1.0001; x *= w->step)
			fprintf(script, "%.6g %.6g\n", x / w->shown, w->at(x, drawn[i]));
		fputs("EOD\n", script);
	}
	curves_draw(script, names, DRAWN);
}

static double by_size(double size, enum sdr_scheme s)
{
	return slowdown(&paper, size, 1e-5, s, false);
}

static double by_length(double km, enum sdr_scheme s)
{
	struct sdr_question q = paper;

	q.rtt_s = 2 * km / 3e5;
	return slowdown(&q, 0x1p33, 1e-5, s, false);
}

static double mean_by_loss(double loss, enum sdr_scheme s)
{
	return slowdown(&paper, 0x1p27, loss, s, false);
}

static double tail_by_loss(double loss, enum sdr_scheme s)
{
	return slowdown(&paper, 0x1p27, loss, s, true);
}

static double tail_by_packet_loss(double loss, enum sdr_scheme s)
{
	struct sdr_question q = paper;

	q.chunk_bytes = 65536;
	return slowdown(&q, 0x1p27, loss, s, true);
}

static const struct {
	const char *title, *note, *x, *y;
	struct sweep sweep;
} sweeps[] = {
	{"Figure 3a: by size",
	 "Packet loss 1e-5, mean. The paper: SR is worst, 2.5 times, where one loss becomes "
	 "likely; above 32 GiB "
	 "injection rules, and coding pays its parity.",
	 "size, MiB",
	 "times the ideal",
	 {0x1p17, 0x1p41, 2, 0x1p20, by_size}},
	{"Figure 3b: by distance",
	 "8 GiB, packet loss 1e-5, mean. The paper: the same message becomes small as the link "
	 "grows; "
	 "its axis ends at 1.6.",
	 "km",
	 "times the ideal",
	 {75, 6000, 1.2, 1, by_length}},
	{"Figures 3c and 10: by loss, mean",
	 "128 MiB. The paper: SR takes 3 to 10 times as long above 1e-4, in steps of its timer.",
	 "packet loss",
	 "times the ideal",
	 {1e-7, 0.1, 1.33352143, 1, mean_by_loss}},
	{"Figure 10: by loss, 99.9 %",
	 "128 MiB. The paper: up to 12.2 times over its grid.",
	 "packet loss",
	 "times the ideal",
	 {1e-7, 0.1, 1.33352143, 1, tail_by_loss}},
	{"Chunks of 64 KiB, by loss, 99.9 %",
	 "128 MiB, chunks of 16 packets, of which one loss is enough: where (32,8) over chunks "
	 "ends, and parity over packets does not.",
	 "packet loss",
	 "times the ideal",
	 {1e-7, 0.1, 1.33352143, 1, tail_by_packet_loss}},
};

/* ---- tables of cells ---- */

/* Blue where below 1, orange where above; more with distance. */
static void cell(FILE *f, double value)
{
	double strength = fmin(fabs(log(value)) / log(8), 1);

	fprintf(f, "<td style=\"background:rgba(%s,%.2f)\">%.2f", value < 1 ? "47,126,216" : "232,116,59",
		strength * 0.8, value);
}

static const double losses[] = {1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1};

enum { LOSSES = sizeof(losses) / sizeof(losses[0]) };

static void head_of_losses(FILE *f, const char *first)
{
	fprintf(f, "<div class=\"scroll\"><table><tr><th>%s", first);
	for (unsigned l = 0; l < LOSSES; l++)
		fprintf(f, "<th>%g", losses[l]);
	fputs("</tr>\n", f);
}

static void size_cell(FILE *f, double size)
{
	if (size >= 0x1p30)
		fprintf(f, "<tr><td>%g GiB", size / 0x1p30);
	else
		fprintf(f, "<tr><td>%g MiB", size / 0x1p20);
}

static void figure_9(FILE *f)
{
	page_card_begin(f, "Figure 9: SR by coding, mean",
			"How many times as long SR takes as (32,8), by size and packet loss. The "
			"paper: coding wins from 128 KiB to 1 GiB "
			"and 1e-6 to 1e-2; SR is best below 1e-6 and above 1 GiB.",
			true);
	head_of_losses(f, "size");
	for (double size = 0x1p17; size <= 0x1p35; size *= 8) {
		size_cell(f, size);
		for (unsigned l = 0; l < LOSSES; l++)
			cell(f, slowdown(&paper, size, losses[l], SDR_SR, false) /
					slowdown(&paper, size, losses[l], SDR_MDS, false));
		fputs("</tr>\n", f);
	}
	fputs("</table></div>\n", f);
	page_card_end(f);
}

static double least_of_paper(double size, double loss)
{
	double least = slowdown(&paper, size, loss, SDR_SR, false);

	least = fmin(least, slowdown(&paper, size, loss, SDR_NACK, false));
	return fmin(least, slowdown(&paper, size, loss, SDR_MDS, false));
}

static void ours(FILE *f)
{
	page_card_begin(f, "The best of SR, NACK and (32,8) by parity over the tail, mean",
			"How many times as long the best of the paper's schemes takes as TAIL: at "
			"least 1 where TAIL is never worse.",
			true);
	head_of_losses(f, "size");
	for (double size = 0x1p17; size <= 0x1p35; size *= 8) {
		size_cell(f, size);
		for (unsigned l = 0; l < LOSSES; l++)
			cell(f, least_of_paper(size, losses[l]) / slowdown(&paper, size, losses[l], SDR_TAIL, false));
		fputs("</tr>\n", f);
	}
	fputs("</table></div>\n", f);
	page_card_end(f);
}

static void figure_11(FILE *f)
{
	static const char *const names[] = {"XOR (32,8)", "Cauchy (32,8)", "Cauchy (32,4)", "Cauchy (16,4)"};
	static const struct model_code codes[] = {{.parities_are_xor = true, .data = 32, .parity = 8},
						  {.data = 32, .parity = 8},
						  {.data = 32, .parity = 4},
						  {.data = 16, .parity = 4}};
	FILE *script;
	struct plot *p = card(f, "Figure 11: how often coding falls back",
			      "128 MiB, chunks of a packet. The paper: XOR from about 1e-3 on, "
			      "(32,8) beyond 1e-2.",
			      "packet loss", "messages that fall back", &script);

	fputs("set yrange [0:1]\n", script);
	for (unsigned i = 0; i < 4; i++) {
		curve_begin(script, i);
		for (double loss = 1e-5; loss < 0.11; loss *= 1.25892541) {
			struct model_message m = {
				.chunks = 32768, .inject_s = 4096 * 8 / 400e9, .rtt_s = 25e-3, .chunk_loss = loss};

			fprintf(script, "%.6g %.6g\n", loss, model_falls_back(&m, &codes[i]));
		}
		fputs("EOD\n", script);
	}
	curves_draw(script, names, 4);
	card_end(f, p);
}

static void figure_12(FILE *f)
{
	static const double rates[] = {100e9, 200e9, 400e9, 800e9, 1600e9, 3200e9},
			    lengths[] = {75, 375, 750, 1500, 3750};

	page_card_begin(f, "Figure 12: SR by rate and distance, mean",
			"128 MiB, packet loss 1e-5, times the ideal; (32,8) and TAIL in brackets. The "
			"paper: more of either makes the message "
			"bound by round trips.",
			true);
	fputs("<div class=\"scroll\"><table><tr><th>km", f);
	for (unsigned r = 0; r < 6; r++)
		fprintf(f, "<th>%g Gbit/s", rates[r] / 1e9);
	fputs("</tr>\n", f);
	for (unsigned k = 0; k < 5; k++) {
		fprintf(f, "<tr><td>%g", lengths[k]);
		for (unsigned r = 0; r < 6; r++) {
			struct sdr_question q = paper;

			q.rate_bps = rates[r];
			q.rtt_s = 2 * lengths[k] / 3e5;
			cell(f, slowdown(&q, 0x1p27, 1e-5, SDR_SR, false));
			fprintf(f, " (%.3f, %.3f)", slowdown(&q, 0x1p27, 1e-5, SDR_MDS, false),
				slowdown(&q, 0x1p27, 1e-5, SDR_TAIL, false));
		}
		fputs("</tr>\n", f);
	}
	fputs("</table></div>\n", f);
	page_card_end(f);
}

static double ring_tail(unsigned nodes, double buffer, double loss, enum sdr_scheme s, bool receiver_gated)
{
	struct sdr_question q = paper;
	struct model_time t;

	q.nodes = nodes;
	q.receiver_gated = receiver_gated;
	sdr_ring_times(&q, buffer, loss, s, TRIALS, &t);
	return t.p999_s;
}

/* The 99.9th percentile of one scheme by another's, whose rounds may begin when data has come. */
static void rings(FILE *f, enum sdr_scheme slow, enum sdr_scheme quick, bool receiver_gated)
{
	static const struct {
		unsigned nodes;
		double buffer;
	} rows[] = {{2, 0x1p27}, {4, 0x1p27}, {8, 0x1p27}, {16, 0x1p27}, {4, 0x1p30}, {8, 0x1p30}};

	fputs("<div class=\"scroll\"><table><tr><th>buffer, data centres", f);
	for (unsigned l = 2; l < 7; l++)
		fprintf(f, "<th>%g", losses[l]);
	fputs("</tr>\n", f);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fprintf(f, "<tr><td>%g MiB, %u", rows[i].buffer / 0x1p20, rows[i].nodes);
		for (unsigned l = 2; l < 7; l++)
			cell(f, ring_tail(rows[i].nodes, rows[i].buffer, losses[l], slow, false) /
					ring_tail(rows[i].nodes, rows[i].buffer, losses[l], quick, receiver_gated));
		fputs("</tr>\n", f);
	}
	fputs("</table></div>\n", f);
}

static void figure_13(FILE *f)
{
	char note[256];

	snprintf(note, sizeof(note),
		 "The 99.9th percentile of SR by that of (32,8), %d trials, seed %d. The paper: 3 "
		 "to more than 6 times, more with more "
		 "loss. Cells near a step of SR's timer move by 1.4 from seed to seed.",
		 TRIALS, SDR_SEED);
	page_card_begin(f, "Figure 13: ring all-reduce between data centres, 99.9 %", note, true);
	rings(f, SDR_SR, SDR_MDS, false);
	fputs("<p>The same of (32,8) by TAIL, whose rounds begin when the data has come and not when that is acknowledged.</p>\n",
	      f);
	rings(f, SDR_MDS, SDR_TAIL, true);
	page_card_end(f);
}

static void write_page(FILE *f)
{
	page_begin(f, "Reliability over long links", "verbena sdr");
	fputs("<h1>Reliability over long links</h1>\n<p class=\"title\">400 Gbit/s, 3750 km, "
	      "packets of 4 KiB, SR's timer three round trips, "
	      "unless a card says otherwise. Times are multiples of injection and one round "
	      "trip.</p>\n<div class=\"cards\">\n",
	      f);
	for (unsigned i = 0; i < sizeof(sweeps) / sizeof(sweeps[0]); i++) {
		FILE *script;
		struct plot *p = card(f, sweeps[i].title, sweeps[i].note, sweeps[i].x, sweeps[i].y, &script);

		plot_logarithmic(p);
		schemes_draw(script, &sweeps[i].sweep);
		card_end(f, p);
	}
	figure_11(f);
	figure_9(f);
	ours(f);
	figure_12(f);
	figure_13(f);
	fputs("</div>\n", f);
	page_end(f);
}

int sdr_figures(const char *path)
{
	FILE *f = fopen(path, "we");
	bool failed;

	if (!f)
		return complain("cannot write %s: %m", path);
	write_page(f);
	failed = ferror(f);
	if (fclose(f) != 0 || failed)
		return complain("cannot write %s: %m", path);
	return EXIT_SUCCESS;
}
