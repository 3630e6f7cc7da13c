/* SPDX-License-Identifier: BSD-2-Clause */
#include "sdr/rate_estimate.h"

/* What is measured at a time: long enough for a list of packets to be no matter. */
enum { WINDOW_NS = 2000000, WINDOW_PACKETS = 64, UP = 2, DOWN = 16 };

static void learn(struct rate_estimate *e, double pps)
{
	if (e->pps == 0)
		e->pps = pps;
	else
		e->pps += (pps - e->pps) / (pps > e->pps ? UP : DOWN);
}

void rate_estimate_note(struct rate_estimate *e, uint32_t returned, bool busy, uint64_t now_ns)
{
	if (e->busy && now_ns > e->at_ns) {
		e->span_ns += now_ns - e->at_ns;
		e->packets += returned;
	}
	e->at_ns = now_ns;
	e->busy = busy;
	if (e->span_ns < WINDOW_NS || e->packets < WINDOW_PACKETS)
		return;
	learn(e, (double)e->packets * 1e9 / (double)e->span_ns);
	e->span_ns = 0;
	e->packets = 0;
}
