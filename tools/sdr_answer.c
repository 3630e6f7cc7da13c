/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers a question for each scheme with the closed forms of src/sdr/model. */
#include "sdr.h"

#include <math.h>

#include "sdr/ec/wide.h"

/* As large as src/sdr has groups of a tail. */
enum { TAIL_PARITY = 8, TAIL_DATA_MAX = EC_WIDE_DATA_MAX };

/* At most one message in ten thousand needs a second round. */
static const double tail_fail_max = 1e-4;

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

static struct model_message message(const struct sdr_question *q, double size, double unit_bytes,
				    double packet_loss)
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
	struct model_code c = {.parities_are_xor = parities_are_xor,
			       .data = q->data,
			       .parity = q->parity,
			       .wait_rtts = 1};

	model_ec(chunks, &c, q->rto_rtts * q->rtt_s, &a->time);
	a->fails = model_falls_back(chunks, &c);
	a->data = q->data;
	a->parity = q->parity;
}

static void tail(const struct model_message *packets, struct sdr_answer *a)
{
	a->parity = TAIL_PARITY;
	a->fails =
		model_tail(packets, TAIL_PARITY, TAIL_DATA_MAX, tail_fail_max, &a->time, &a->data);
}

void sdr_answer(const struct sdr_question *q, double size, double loss, enum sdr_scheme scheme,
		struct sdr_answer *a)
{
	struct model_message packets = message(q, size, q->packet_bytes, loss);
	struct model_message chunks = message(q, size, q->chunk_bytes, loss);
	double rto_s = q->rto_rtts * q->rtt_s;

	*a = (struct sdr_answer){.ideal_s = model_ideal(&packets)};
	switch (scheme) {
	case SDR_SR:
		repeat(&chunks, rto_s, a);
		break;
	case SDR_NACK:
		repeat(&chunks, q->rtt_s, a);
		break;
	case SDR_XOR:
		code(q, &chunks, true, a);
		break;
	case SDR_MDS:
		code(q, &chunks, false, a);
		break;
	case SDR_TAIL:
		tail(&packets, a);
		break;
	case SDR_BOUND:
	case SDR_SCHEMES:
		model_bound(&packets, &a->time);
		break;
	}
}
