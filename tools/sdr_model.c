/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbena sdr model`: a line for each size, loss and scheme, as a table or as CSV. */
#include "sdr.h"

#include <stdlib.h>

enum { TEXT_BYTES = 32 };

static const struct unit {
	double of; /* 0: the end */
	const char *name;
} byte_units[] = {{0x1p40, "TiB"}, {0x1p30, "GiB"}, {0x1p20, "MiB"}, {0x1p10, "KiB"}, {1, "B"}, {0, NULL}},
  second_units[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}, {0, NULL}},
  rate_units[] = {{1e12, "Tbps"}, {1e9, "Gbps"}, {1e6, "Mbps"}, {1e3, "kbps"}, {1, "bps"}, {0, NULL}};

/* Writes the value in the largest unit of which it is at least one. */
static const char *text_in(const struct unit *unit, double value, char text[TEXT_BYTES])
{
	while (unit[1].name && value < unit->of)
		unit++;
	snprintf(text, TEXT_BYTES, "%.4g %s", value / unit->of, unit->name);
	return text;
}

static void table_header(const struct sdr_question *q)
{
	char rate[TEXT_BYTES], rtt[TEXT_BYTES], packet[TEXT_BYTES], chunk[TEXT_BYTES];

	printf("%s, round trip %s, packets of %s in chunks of %s, SR's timer %.3g round trips\n\n",
	       text_in(rate_units, q->rate_bps, rate), text_in(second_units, q->rtt_s, rtt),
	       text_in(byte_units, q->packet_bytes, packet), text_in(byte_units, q->chunk_bytes, chunk), q->rto_rtts);
	printf("%-10s %-8s %-6s %10s %10s %10s %8s %8s %8s %8s  %s\n", "size", "loss", "scheme", "mean ms", "99 % ms",
	       "99.9 % ms", "mean x", "99.9 x", "parity", "second", "group");
}

static void table_line(double size, double loss, enum sdr_scheme s, const struct sdr_answer *a)
{
	char text[TEXT_BYTES];

	printf("%-10s %-8.3g %-6s %10.4f %10.4f %10.4f %8.4g %8.4g %6.2f %%", text_in(byte_units, size, text), loss,
	       sdr_scheme_name(s), a->time.mean_s * 1e3, a->time.p99_s * 1e3, a->time.p999_s * 1e3,
	       a->time.mean_s / a->ideal_s, a->time.p999_s / a->ideal_s, a->time.extra * 100);
	if (s == SDR_BOUND)
		printf(" %8s", "-");
	else
		printf(" %8.2g", a->fails);
	if (a->data > 0)
		printf("  (%.0f,%.0f)", a->data, a->parity);
	putchar('\n');
}

static void csv_line(FILE *f, const struct sdr_question *q, double size, double loss, enum sdr_scheme s)
{
	struct sdr_answer a;

	sdr_answer(q, size, loss, s, &a);
	fprintf(f, "%.0f,%.9g,%.9g,%.9g,%.0f,%.0f,%.9g,%s,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,", size, loss, q->rate_bps,
		q->rtt_s, q->packet_bytes, q->chunk_bytes, q->rto_rtts, sdr_scheme_name(s), a.ideal_s, a.time.mean_s,
		a.time.median_s, a.time.p99_s, a.time.p999_s, a.time.extra);
	fprintf(f, "%.9g,%.0f,%.0f\n", a.fails, a.data, a.parity);
}

void sdr_model_table(const struct sdr_question *q)
{
	table_header(q);
	for (size_t i = 0; i < q->sizes.n; i++) {
		for (size_t l = 0; l < q->losses.n; l++) {
			for (int s = 0; s < SDR_SCHEMES; s++) {
				struct sdr_answer a;

				sdr_answer(q, q->sizes.values[i], q->losses.values[l], (enum sdr_scheme)s, &a);
				table_line(q->sizes.values[i], q->losses.values[l], (enum sdr_scheme)s, &a);
			}
		}
	}
	printf("\nx: times as long as without losses. second: the chance of a second round.\n");
	for (int s = 0; s < SDR_SCHEMES; s++)
		printf("%-6s %s\n", sdr_scheme_name((enum sdr_scheme)s), sdr_scheme_title((enum sdr_scheme)s));
}

void sdr_model_csv(const struct sdr_question *q, FILE *f)
{
	fputs("size_bytes,packet_loss,rate_bps,rtt_s,packet_bytes,chunk_bytes,rto_rtts,scheme,"
	      "ideal_s,mean_s,median_s,"
	      "p99_s,p999_s,parity,second_round,group_data,group_parity\n",
	      f);
	for (size_t i = 0; i < q->sizes.n; i++) {
		for (size_t l = 0; l < q->losses.n; l++) {
			for (int s = 0; s < SDR_SCHEMES; s++)
				csv_line(f, q, q->sizes.values[i], q->losses.values[l], (enum sdr_scheme)s);
		}
	}
}
