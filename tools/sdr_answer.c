/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers a question for each scheme with the closed forms of src/sdr/model. */
#include "sdr.h"

#include <math.h>

#include "sdr/coded/coded_plan.h"

static const struct {
	const char *name, *title;
} schemes[] = {
	[SDR_SR] = {"SR", "selective repeat by timer"},
	[SDR_NACK] = {"NACK", "selective repeat by negative acknowledgement"},
	[SDR_XOR] = {"XOR", "groups with XOR parity, then selective repeat"},
	[SDR_MDS] = {"EC", "groups with Cauchy parity, then selective repeat"},
	[SDR_TAIL] = {"TAIL", "NACK, and parity over the packets of the last round trip"},
	[SDR_BOUND] = {"bound", "what no scheme can beat"},
};

const char *sdr_scheme_name(enum sdr_scheme s)
{
	return schemes[s].name;
}

const char *sdr_scheme_title(enum sdr_scheme s)
{
	return schemes[s].title;
}

struct model_message sdr_message(const struct sdr_question *q, double size, double unit_bytes, double packet_loss)
{
	return (struct model_message){
		.chunks = ceil(size / unit_bytes),
		.inject_s = unit_bytes * 8 / q->rate_bps,
		.rtt_s = q->rtt_s,
		.chunk_loss = model_chunk_loss(packet_loss, unit_bytes / q->packet_bytes),
	};
}

static void repeat(const struct model_message *chunks, double rto_s, struct sdr_answer *a)
{
	model_sr(chunks, rto_s, &a->time);
	a->fails = model_chunk_loss(chunks->chunk_loss, chunks->chunks);
}

static void code(const struct sdr_question *q, const struct model_message *chunks, bool parities_are_xor,
		 struct sdr_answer *a)
{
	struct model_code c = {
		.parities_are_xor = parities_are_xor, .data = q->data, .parity = q->parity, .wait_rtts = 1};

	model_ec(chunks, &c, q->rto_rtts * q->rtt_s, &a->time);
	a->fails = model_falls_back(chunks, &c);
	a->data = q->data;
	a->parity = q->parity;
}

/* The chance that what was sent again is lost again, or that a code does not suffice. */
static double second_repair(const struct sdr_question *q, const struct model_message *chunks, enum sdr_scheme s)
{
	const struct model_code c = {.parities_are_xor = s == SDR_XOR, .data = q->data, .parity = q->parity};

	if (s == SDR_XOR || s == SDR_MDS)
		return model_falls_back(chunks, &c);
	return model_chunk_loss(chunks->chunk_loss * chunks->chunk_loss, chunks->chunks);
}

double sdr_chunk_packets(const struct sdr_question *q, double size, double loss, enum sdr_scheme s)
{
	double packets = 64;

	for (; packets >= 1; packets /= 2) {
		struct model_message m = sdr_message(q, size, packets * q->packet_bytes, loss);

		if (second_repair(q, &m, s) <= 1e-3)
			return packets;
	}
	return 0;
}

static uint64_t ns(double s)
{
	double n = round(s * 1e9);

	return n < 1 ? 1 : n > 1e18 ? (uint64_t)1e18 : (uint64_t)n;
}

/* Of a longer message than the library has the end is coded alike. */
void sdr_tail_code(const struct sdr_question *q, const struct model_message *packets, struct model_tail *c)
{
	double loss = q->assumed >= 0 ? q->assumed : packets->chunk_loss;
	const struct coded_link link = {.rtt_ns = ns(packets->rtt_s),
					.piece_ns = ns(packets->inject_s),
					.loss = loss,
					.burst = 1,
					.feared = q->idle_fill ? coded_plan_feared(loss) : 0};
	struct ec_layout l;

	coded_plan_make(&l, (uint32_t)fmin(packets->chunks, INT32_MAX), &link);
	*c = (struct model_tail){.coded = l.pieces - l.first,
				 .groups = l.groups,
				 .data = l.data,
				 .parity = l.parity,
				 .is_wide = ec_layout_is_wide(&l)};
	/* The receiver has room for half as many parities as packets, and a few. */
	if (q->idle_fill)
		c->fill = floor(coded_plan_fill(&l, &link, l.pieces / 2 + 16) / c->groups);
}

static void tail(const struct sdr_question *q, const struct model_message *packets, struct sdr_answer *a)
{
	struct model_tail c;

	sdr_tail_code(q, packets, &c);
	a->fails = model_tail(packets, &c, &a->time);
	a->data = c.data;
	a->parity = c.parity;
}

void sdr_answer(const struct sdr_question *q, double size, double loss, enum sdr_scheme scheme, struct sdr_answer *a)
{
	struct model_message packets = sdr_message(q, size, q->packet_bytes, loss);
	struct model_message chunks = sdr_message(q, size, q->chunk_bytes, loss);
	double rto_s = q->rto_rtts * q->rtt_s;

	*a = (struct sdr_answer){.ideal_s = model_ideal(&packets)};
	switch (scheme) {
	case SDR_SR: repeat(&chunks, rto_s, a); break;
	case SDR_NACK: repeat(&chunks, q->rtt_s, a); break;
	case SDR_XOR: code(q, &chunks, true, a); break;
	case SDR_MDS: code(q, &chunks, false, a); break;
	case SDR_TAIL: tail(q, &packets, a); break;
	case SDR_BOUND:
	case SDR_SCHEMES: model_bound(&packets, &a->time); break;
	}
}
