/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbena sdr plan`: which scheme a message over a link should have, and why. */
#include "sdr.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "page.h"
#include "tool.h"

/* When the 99.9th percentiles of two schemes differ by less than this factor, we choose the one
 * that sends less. */
static const double alike = 1.005;

/* The completion times of all schemes, none of them better than the bound, and the scheme that is recommended. */
struct plan {
	struct sdr_answer answers[SDR_SCHEMES];
	enum sdr_scheme best;
};

static enum sdr_scheme best_of(const struct sdr_answer *answers)
{
	enum sdr_scheme best = SDR_SR;

	for (int s = 0; s < SDR_BOUND; s++) {
		double time = answers[s].time.p999_s, least = answers[best].time.p999_s;
		bool sends_less = answers[s].time.extra < answers[best].time.extra;

		if (time * alike < least || (time < least * alike && sends_less))
			best = (enum sdr_scheme)s;
	}
	return best;
}

/* What decides: how much of the time is injection, and how likely a loss is. */
static void say_situation(FILE *f, const struct sdr_question *q, double size, double loss)
{
	double inject_s = size * 8 / q->rate_bps, packets = ceil(size / q->packet_bytes);

	fprintf(f,
		"  The message is injected in %.3g ms, %.3g of a round trip of %.3g ms; of its "
		"%.0f "
		"packets %.3g are lost on\n"
		"  average, and none with a chance of %.3g.\n",
		inject_s * 1e3, inject_s / q->rtt_s, q->rtt_s * 1e3, packets, packets * loss, pow(1 - loss, packets));
	if (inject_s < q->rtt_s)
		fputs("  It fits into a round trip: whatever has to be sent again costs at least "
		      "one more, and parity is cheap.\n",
		      f);
	else
		fputs("  It is longer than a round trip: most losses are repaired while newer "
		      "data is injected, and only those of\n"
		      "  the last round trip show; parity over all of it costs its share of the "
		      "link.\n",
		      f);
}

static void say_choice(FILE *f, const struct plan *p)
{
	const struct sdr_answer *a = &p->answers[p->best];

	fprintf(f, "  Use %s, %s", sdr_scheme_name(p->best), sdr_scheme_title(p->best));
	if (a->data > 0)
		fprintf(f, ", groups of %.0f %s with %.0f parities", a->data,
			p->best == SDR_TAIL ? "packets" : "chunks", a->parity);
	fprintf(f,
		".\n  99.9 %% of the messages take at most %.4g times as long as without losses "
		"(%.4g ms; mean %.4g ms), and %.2f %%\n"
		"  more is sent. The bound is %.4g.\n",
		a->time.p999_s / a->ideal_s, a->time.p999_s * 1e3, a->time.mean_s * 1e3, a->time.extra * 100,
		p->answers[SDR_BOUND].time.p999_s / p->answers[SDR_BOUND].ideal_s);
}

static void say_chunk(const struct sdr_question *q, double size, double loss, enum sdr_scheme s)
{
	double packets = sdr_chunk_packets(q, size, loss, s);

	if (packets > 0)
		printf(" %.0f bytes", packets * q->packet_bytes);
	else
		printf(" not even a packet");
}

static void say_chunks(const struct sdr_question *q, double size, double loss)
{
	printf("  The largest chunks with which at most one message in 1,000 needs a second repair:\n  SR and NACK");
	say_chunk(q, size, loss, SDR_SR);
	printf(", EC");
	say_chunk(q, size, loss, SDR_MDS);
	printf(".\n");
}

static void say_others(const struct plan *p)
{
	printf("  The others:");
	for (int s = 0; s < SDR_BOUND; s++) {
		if (s != (int)p->best)
			printf(" %s %.4g", sdr_scheme_name((enum sdr_scheme)s),
			       p->answers[s].time.p999_s / p->answers[s].ideal_s);
	}
	printf(" times.\n");
}

/*
 * The formulas of a message that is longer than a round trip leave out what repetitions take of the
 * link, and so may promise less time than is possible.
 */
static void raise_to_bound(struct sdr_answer *a, const struct sdr_answer *bound)
{
	a->time.mean_s = fmax(a->time.mean_s, bound->time.mean_s);
	a->time.p999_s = fmax(a->time.p999_s, bound->time.p999_s);
}

static struct plan plan_of(const struct sdr_question *q, double size, double loss)
{
	struct plan p;

	for (int s = 0; s < SDR_SCHEMES; s++)
		sdr_answer(q, size, loss, (enum sdr_scheme)s, &p.answers[s]);
	for (int s = 0; s < SDR_BOUND; s++)
		raise_to_bound(&p.answers[s], &p.answers[SDR_BOUND]);
	p.best = best_of(p.answers);
	return p;
}

void sdr_plan(const struct sdr_question *q)
{
	for (size_t i = 0; i < q->sizes.n; i++) {
		for (size_t l = 0; l < q->losses.n; l++) {
			double size = q->sizes.values[i], loss = q->losses.values[l];
			struct plan p = plan_of(q, size, loss);

			printf("%.0f bytes, packet loss %.3g\n", size, loss);
			say_situation(stdout, q, size, loss);
			say_choice(stdout, &p);
			say_others(&p);
			say_chunks(q, size, loss);
		}
	}
}

/* ---- CSV ---- */

void sdr_plan_csv(const struct sdr_question *q)
{
	printf("size_bytes,packet_loss,rate_bps,rtt_s,scheme,group_data,group_parity,parity,ideal_"
	       "s,"
	       "mean_s,p999_s,bound_p999_s");
	for (int s = 0; s < SDR_BOUND; s++)
		printf(",p999_s_of_%s", sdr_scheme_name((enum sdr_scheme)s));
	puts(",chunk_bytes_of_SR,chunk_bytes_of_EC");
	for (size_t i = 0; i < q->sizes.n; i++) {
		for (size_t l = 0; l < q->losses.n; l++) {
			struct plan p = plan_of(q, q->sizes.values[i], q->losses.values[l]);
			const struct sdr_answer *a = &p.answers[p.best];

			printf("%.0f,%.9g,%.9g,%.9g,%s,%.0f,%.0f,", q->sizes.values[i], q->losses.values[l],
			       q->rate_bps, q->rtt_s, sdr_scheme_name(p.best), a->data, a->parity);
			printf("%.9g,%.9g,%.9g,%.9g,%.9g", a->time.extra, a->ideal_s, a->time.mean_s, a->time.p999_s,
			       p.answers[SDR_BOUND].time.p999_s);
			for (int s = 0; s < SDR_BOUND; s++)
				printf(",%.9g", p.answers[s].time.p999_s);
			printf(",%.0f,%.0f\n",
			       q->packet_bytes * sdr_chunk_packets(q, q->sizes.values[i], q->losses.values[l], SDR_SR),
			       q->packet_bytes *
				       sdr_chunk_packets(q, q->sizes.values[i], q->losses.values[l], SDR_MDS));
		}
	}
}

/* ---- a page ---- */

/* Words of the text, as a paragraph. */
static void paragraph(FILE *f, const char *text)
{
	fputs("<p>", f);
	html_text(f, text + strspn(text, " "));
	fputs("</p>\n", f);
}

static void scheme_row(FILE *f, const struct plan *p, enum sdr_scheme s)
{
	const struct sdr_answer *a = &p->answers[s];
	const char *mark = s == p->best ? "b" : "span";

	fprintf(f, "<tr><td><%s>%s</%s><td>%.3f<td>%.3f<td>%.3f<td>%.2f %%<td>", mark, sdr_scheme_name(s), mark,
		a->time.mean_s * 1e3, a->time.p999_s * 1e3, a->time.p999_s / a->ideal_s, a->time.extra * 100);
	if (a->data > 0)
		fprintf(f, "%.0f + %.0f", a->data, a->parity);
	fputs("</tr>\n", f);
}

/* False: there is no memory for the words. */
static bool card(FILE *f, const struct sdr_question *q, double size, double loss)
{
	struct plan p = plan_of(q, size, loss);
	char title[96], *words = NULL;
	size_t len = 0;
	FILE *w = open_memstream(&words, &len);

	if (!w)
		return false;
	say_situation(w, q, size, loss);
	say_choice(w, &p);
	if (fclose(w))
		return false;
	snprintf(title, sizeof(title), "%.6g MiB, packet loss %.3g: %s", size / 0x1p20, loss, sdr_scheme_name(p.best));
	page_card_begin(f, title, "", true);
	paragraph(f, words);
	free(words);
	fputs("<div class=\"scroll\"><table><tr><th>scheme<th>mean, ms<th>99.9 %, ms<th>times the "
	      "ideal<th>parity<th>group</tr>\n",
	      f);
	for (int s = 0; s < SDR_SCHEMES; s++)
		scheme_row(f, &p, (enum sdr_scheme)s);
	fputs("</table></div>\n", f);
	page_card_end(f);
	return true;
}

int sdr_plan_page(const struct sdr_question *q, const char *path)
{
	FILE *f = fopen(path, "we");
	bool good = true;

	if (!f)
		return complain("cannot write %s: %m", path);
	page_begin(f, "A plan for a long link", "verbena sdr");
	fprintf(f,
		"<h1>A plan for a long link</h1>\n<p class=\"title\">%.6g Gbit/s, a round trip of "
		"%.4g ms, packets of %.0f bytes, chunks of %.0f.</p>\n<div class=\"cards\">\n",
		q->rate_bps / 1e9, q->rtt_s * 1e3, q->packet_bytes, q->chunk_bytes);
	for (size_t i = 0; good && i < q->sizes.n; i++) {
		for (size_t l = 0; good && l < q->losses.n; l++)
			good = card(f, q, q->sizes.values[i], q->losses.values[l]);
	}
	fputs("</div>\n", f);
	page_end(f);
	good &= !ferror(f);
	if (fclose(f) != 0 || !good)
		return complain("cannot write %s: %m", path);
	return EXIT_SUCCESS;
}
