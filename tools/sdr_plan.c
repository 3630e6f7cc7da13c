/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbena sdr plan`: which scheme a message over a link should have, and why. */
#include "sdr.h"

#include <math.h>
#include <stdlib.h>

#include "tool.h"

/* When the 99.9th percentiles of two schemes differ by less than this factor, we choose the one that
 * sends less. */
static const double alike = 1.005;

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

/* Prints what decides: how much of the time is injection, and how likely a loss is. */
static void say_situation(const struct sdr_question *q, double size, double loss)
{
	double inject_s = size * 8 / q->rate_bps, packets = ceil(size / q->packet_bytes);

	printf("  The message is injected in %.3g ms, %.3g of a round trip of %.3g ms; of its %.0f "
	       "packets %.3g are lost on\n"
	       "  average, and none with a chance of %.3g.\n",
	       inject_s * 1e3, inject_s / q->rtt_s, q->rtt_s * 1e3, packets, packets * loss,
	       pow(1 - loss, packets));
	if (inject_s < q->rtt_s)
		printf("  It fits into a round trip: whatever has to be sent again costs at least "
		       "one more, and parity is cheap.\n");
	else
		printf("  It is longer than a round trip: most losses are repaired while newer "
		       "data is injected, and only those of\n"
		       "  the last round trip show; parity over all of it costs its share of the "
		       "link.\n");
}

static void say_choice(const struct sdr_answer *answers, enum sdr_scheme best)
{
	const struct sdr_answer *a = &answers[best];

	printf("  Use %s, %s", sdr_scheme_name(best), sdr_scheme_title(best));
	if (best == SDR_TAIL)
		printf(", groups of %.0f packets with %.0f parities", a->data, a->parity);
	printf(".\n  99.9 %% of the messages take at most %.4g times as long as without losses "
	       "(%.4g ms; mean %.4g ms), and %.2f %%\n"
	       "  more is sent.",
	       a->time.p999_s / a->ideal_s, a->time.p999_s * 1e3, a->time.mean_s * 1e3,
	       a->time.extra * 100);
	printf(" The bound is %.4g.\n",
	       answers[SDR_BOUND].time.p999_s / answers[SDR_BOUND].ideal_s);
	printf("  The others:");
	for (int s = 0; s < SDR_BOUND; s++) {
		if (s != (int)best)
			printf(" %s %.4g", sdr_scheme_name((enum sdr_scheme)s),
			       answers[s].time.p999_s / answers[s].ideal_s);
	}
	printf(" times.\n");
}

/*
 * The formulas of a message that is longer than a round trip leave out what repetitions take of the link, and so may
 * promise less time than is possible.
 */
static void raise_to_bound(struct sdr_answer *a, const struct sdr_answer *bound)
{
	a->time.mean_s = fmax(a->time.mean_s, bound->time.mean_s);
	a->time.p999_s = fmax(a->time.p999_s, bound->time.p999_s);
}

void sdr_plan(const struct sdr_question *q)
{
	for (size_t i = 0; i < q->sizes.n; i++) {
		for (size_t l = 0; l < q->losses.n; l++) {
			struct sdr_answer answers[SDR_SCHEMES];

			for (int s = 0; s < SDR_SCHEMES; s++)
				sdr_answer(q, q->sizes.values[i], q->losses.values[l],
					   (enum sdr_scheme)s, &answers[s]);
			for (int s = 0; s < SDR_BOUND; s++)
				raise_to_bound(&answers[s], &answers[SDR_BOUND]);
			printf("%.0f bytes, packet loss %.3g\n", q->sizes.values[i],
			       q->losses.values[l]);
			say_situation(q, q->sizes.values[i], q->losses.values[l]);
			say_choice(answers, best_of(answers));
		}
	}
}
