/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbena sdr ring`: an all-reduce between data centres with each scheme whose message times have
 * a known distribution. */
#include "sdr.h"

#include <math.h>

#include "sdr/model/ring.h"

enum { TRIALS = 8000, SEED = 1 };

/* Without losses each of the 2 * nodes - 2 rounds takes the injection and a round trip, or half a
 * round trip where a round starts when the data is there. */
static double ideal_s(const struct model_ring *r)
{
	double half = r->receiver_gated ? r->message.rtt_s / 2 : 0;

	return (2 * r->nodes - 2) * (model_ideal(&r->message) - half) + half;
}

static void ring_of(const struct sdr_question *q, double size, double loss, struct model_ring *r)
{
	*r = (struct model_ring){
		.nodes = (unsigned)q->nodes,
		.message = {.chunks = fmax(1, ceil(size / q->nodes / q->chunk_bytes)),
			    .inject_s = q->chunk_bytes * 8 / q->rate_bps,
			    .rtt_s = q->rtt_s,
			    .chunk_loss = model_chunk_loss(loss, q->chunk_bytes / q->packet_bytes)},
		.rto_s = q->rto_rtts * q->rtt_s,
		.receiver_gated = q->receiver_gated,
	};
}

static void line(const struct model_ring *r, double size, double loss, const char *scheme, bool csv)
{
	static double times[TRIALS];
	struct model_time t;

	model_ring_run(r, SEED, times, TRIALS);
	model_time_of(times, TRIALS, &t);
	if (csv)
		printf("%.0f,%.9g,%u,%s,%.9g,%.9g,%.9g,%.9g\n", size, loss, r->nodes, scheme,
		       ideal_s(r), t.mean_s, t.p99_s, t.p999_s);
	else
		printf("%-12.0f %-8.3g %-6s %10.4f %10.4f %10.4f %10.4f\n", size, loss, scheme,
		       ideal_s(r) * 1e3, t.mean_s * 1e3, t.p99_s * 1e3, t.p999_s * 1e3);
}

static void schemes(const struct sdr_question *q, double size, double loss, bool csv)
{
	struct model_code code = {.data = q->data, .parity = q->parity, .wait_rtts = 1};
	struct model_ring r;

	ring_of(q, size, loss, &r);
	line(&r, size, loss, sdr_scheme_name(SDR_SR), csv);
	r.rto_s = q->rtt_s;
	line(&r, size, loss, sdr_scheme_name(SDR_NACK), csv);
	r.rto_s = q->rto_rtts * q->rtt_s;
	r.code = &code;
	line(&r, size, loss, sdr_scheme_name(SDR_MDS), csv);
}

void sdr_ring(const struct sdr_question *q, bool csv)
{
	if (csv)
		puts("buffer_bytes,packet_loss,nodes,scheme,ideal_s,mean_s,p99_s,p999_s");
	else
		printf("%.0f nodes, %d trials, seed %d; a round begins when its data %s\n\n%-12s "
		       "%-8s %-6s %10s %10s %10s %10s\n",
		       q->nodes, TRIALS, SEED, q->receiver_gated ? "has come" : "is acknowledged",
		       "buffer", "loss", "scheme", "ideal ms", "mean ms", "99 % ms", "99.9 % ms");
	for (size_t i = 0; i < q->sizes.n; i++) {
		for (size_t l = 0; l < q->losses.n; l++)
			schemes(q, q->sizes.values[i], q->losses.values[l], csv);
	}
}
