/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbena sdr ring`: an all-reduce between data centres with each scheme. */
#include "sdr.h"

#include "sdr/model/ring.h"

/* Without losses each of the 2 * nodes - 2 rounds takes the injection and a round trip, or half a
 * round trip where a round starts when the data is there. */
static double ideal_s(const struct model_ring *r)
{
	double half = r->receiver_gated ? r->message.rtt_s / 2 : 0;

	return (2 * r->nodes - 2) * (model_ideal(&r->message) - half) + half;
}

/* A ring whose messages, a share of the buffer each, are in units of unit_bytes. */
static struct model_ring ring_of(const struct sdr_question *q, double size, double loss, double unit_bytes)
{
	return (struct model_ring){
		.nodes = (unsigned)q->nodes,
		.message = sdr_message(q, size / q->nodes, unit_bytes, loss),
		.rto_s = q->rto_rtts * q->rtt_s,
		.receiver_gated = q->receiver_gated,
	};
}

void sdr_ring_times(const struct sdr_question *q, double size, double loss, enum sdr_scheme s, unsigned trials,
		    struct model_time *t)
{
	bool by_packets = s == SDR_TAIL || s == SDR_BOUND;
	struct model_ring r = ring_of(q, size, loss, by_packets ? q->packet_bytes : q->chunk_bytes);
	const struct model_code code = {
		.parities_are_xor = s == SDR_XOR, .data = q->data, .parity = q->parity, .wait_rtts = 1};
	static double times[SDR_TRIALS_MAX];
	struct model_tail tail;

	if (s == SDR_XOR || s == SDR_MDS)
		r.code = &code;
	if (s == SDR_NACK)
		r.rto_s = q->rtt_s;
	if (s == SDR_TAIL) {
		sdr_tail_code(q, &r.message, &tail);
		r.tail = &tail;
	}
	r.is_bound = s == SDR_BOUND;
	model_ring_run(&r, SDR_SEED, times, trials);
	model_time_of(times, trials, t);
}

static void line(const struct sdr_question *q, double size, double loss, enum sdr_scheme s, bool csv)
{
	struct model_ring packets = ring_of(q, size, loss, q->packet_bytes);
	double ideal = ideal_s(&packets);
	struct model_time t;

	sdr_ring_times(q, size, loss, s, SDR_TRIALS_MAX, &t);
	if (csv)
		printf("%.0f,%.9g,%.0f,%s,%.9g,%.9g,%.9g,%.9g\n", size, loss, q->nodes, sdr_scheme_name(s), ideal,
		       t.mean_s, t.p99_s, t.p999_s);
	else
		printf("%-12.0f %-8.3g %-6s %10.4f %10.4f %10.4f %10.4f %8.4g\n", size, loss, sdr_scheme_name(s),
		       ideal * 1e3, t.mean_s * 1e3, t.p99_s * 1e3, t.p999_s * 1e3, t.p999_s / ideal);
}

void sdr_ring(const struct sdr_question *q, bool csv)
{
	if (csv)
		puts("buffer_bytes,packet_loss,nodes,scheme,ideal_s,mean_s,p99_s,p999_s");
	else
		printf("%.0f nodes, %d trials, seed %d; a round begins when its data %s\n\n%-12s "
		       "%-8s %-6s %10s %10s %10s %10s %8s\n",
		       q->nodes, SDR_TRIALS_MAX, SDR_SEED, q->receiver_gated ? "has come" : "is acknowledged", "buffer",
		       "loss", "scheme", "ideal ms", "mean ms", "99 % ms", "99.9 % ms", "99.9 x");
	for (size_t i = 0; i < q->sizes.n; i++) {
		for (size_t l = 0; l < q->losses.n; l++) {
			for (int s = 0; s < SDR_SCHEMES; s++)
				line(q, q->sizes.values[i], q->losses.values[l], (enum sdr_scheme)s, csv);
		}
	}
}
