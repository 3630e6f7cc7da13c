/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>

#include "sdr/cp.h"
#include "sdr/cp_summary.h"

/* What can be counted, by its name in JSON and in the table. */
struct figure {
	const char *name, *text;
	double value;
};

static uint64_t entries(const struct cp *cp, enum cp_kind kind)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < cp->list.count; i++)
		n += cp->list.entry[i].kind == kind;
	return n;
}

static double seconds(const struct cp *cp)
{
	return (double)(cp->end_ns - cp->start_ns) / 1e9;
}

static void figures_print(const struct cp *cp)
{
	double s = seconds(cp);
	struct verbena_sdr_stats st = {0};

	verbena_sdr_qp_stats_get(cp->qp, &st);
	const struct figure all[] = {
		{"files", "files", (double)entries(cp, CP_FILE)},
		{"folders", "folders", (double)entries(cp, CP_FOLDER)},
		{"links", "symbolic links", (double)entries(cp, CP_LINK)},
		{"names", "more names of files", (double)entries(cp, CP_NAME)},
		{"bytes", "bytes of all files", (double)cp->list.bytes},
		{"copied_bytes", "bytes that were copied", (double)cp->bytes},
		{"list_bytes", "bytes of their list", (double)cp->list_bytes},
		{"left_out", "left out by the sender", cp->left_out},
		{"wrong", "not as they were sent", cp->wrong},
		{"failed", "attributes not set, or not deleted", cp->failed},
		{"deleted", "deleted", cp->deleted},
		{"seconds", "seconds", s},
		{"mbps", "Mbit/s", s > 0 ? (double)cp->bytes * 8 / s / 1e6 : 0},
		{"rtt_ms", "round trip, ms", (double)cp->way.rtt_ns / 1e6},
		{"packets_sent", "packets sent", (double)st.sent},
		{"packets", "packets received", (double)st.packets},
		{"packets_computed", "packets computed from parities", (double)st.ec_recovered},
		{"packets_again", "packets received again", (double)st.duplicates},
		{"packets_late", "packets received too late", (double)st.dropped_late},
	};

	if (cp->json)
		printf("{\"scheme\": \"%s\"", scheme_name(cp->way.scheme));
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (cp->json)
			printf(", \"%s\": %.12g", all[i].name, all[i].value);
		else
			printf("%20.12g  %s\n", all[i].value, all[i].text);
	}
	if (cp->json)
		printf("}\n");
}

/* What the codes over the tail were chosen by in the end. */
static void link_print(const struct cp *cp)
{
	const struct scheme_way *w = &cp->way;
	uint64_t mbps = w->rate_mbps ? w->rate_mbps : w->seen_mbps;
	double loss;

	if (w->scheme != SCHEME_TAIL || verbena_sdr_tail_loss_get(cp->qp, &loss))
		return;
	printf("in the end the codes reckoned with a loss of %.2g %%", loss * 100);
	if (mbps)
		printf(" and %" PRIu64 " Mbit/s, as %s\n", mbps,
		       w->rate_mbps   ? "told"
		       : w->rate_auto ? "found"
				      : "measured");
	else
		printf("\n");
}

static void line_print(const struct cp *cp)
{
	struct verbena_sdr_stats st = {0};
	double s = seconds(cp);

	verbena_sdr_qp_stats_get(cp->qp, &st);
	if (cp->sends)
		printf("%" PRIu64 " bytes in %.3f s, %.3f Gbit/s, %" PRIu64 " packets, a round trip of %.1f ms\n",
		       cp->bytes, s, s > 0 ? (double)cp->bytes * 8 / s / 1e9 : 0, st.sent,
		       (double)cp->way.rtt_ns / 1e6);
	else if (cp->waits)
		printf("%s: %" PRIu64 " bytes\n", cp->path[0], cp->bytes);
	else
		printf("%" PRIu64 " bytes, %" PRIu64 " packets, %" PRIu64 " computed, %" PRIu64 " again, %" PRIu64
		       " late\n",
		       cp->bytes, st.packets, st.ec_recovered, st.duplicates, st.dropped_late);
	if (cp->sends)
		link_print(cp);
}

void cp_summary_print(const struct cp *cp)
{
	if (!cp->json && !cp->plan[PLAN_DRY])
		line_print(cp);
	if (cp->json || cp->stats)
		figures_print(cp);
}
