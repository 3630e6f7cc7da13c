/* SPDX-License-Identifier: BSD-2-Clause */
#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "sdr/meet.h"
#include "sdr/chosen_scheme.h"

#define SECOND_NS UINT64_C(1000000000)

enum { PINGS = 8, PINGS_LOST = 6, WAIT_NS = 100000000, GUESSED_MBPS = 1000, LEARN_BYTES = 1 << 20 };

static const char *const names[SCHEMES] = {"auto", "rto", "nack", "xor", "mds", "ec", "tail"};

const char *scheme_name(enum scheme s)
{
	return names[s];
}

bool scheme_fills(enum scheme s)
{
	return s == SCHEME_AUTO || s == SCHEME_TAIL;
}

void scheme_fill_check(bool idle_fill, enum scheme s)
{
	if (idle_fill && !scheme_fills(s))
		die("--idle-fill goes with --scheme tail or auto, not with %s", names[s]);
}

/* A round trip as messages meet it: a rate that finds itself keeps up to 0.7 of the shortest one in a queue. */
static uint64_t queued_ns(const struct scheme_way *w)
{
	return w->rate_auto ? w->rtt_ns / 4 * 7 : w->rtt_ns;
}

/* What may be queued at a time takes so long; where no rate is known at 1 Mbit/s. 0: as the library has it. */
static uint64_t timeout_ns(const struct scheme_way *w)
{
	uint64_t mbps = w->rate_auto ? 1 : w->rate_mbps;

	return w->depth_bytes && mbps ? w->depth_bytes * 8000 / mbps + 125 * queued_ns(w) + 10 * SECOND_NS : 0;
}

static struct verbena_sdr_sr_attr sr_attr(const struct scheme_way *w)
{
	struct verbena_sdr_sr_attr attr;

	verbena_sdr_sr_attr_init(&attr);
	attr.rtt_ns = queued_ns(w);
	attr.timeout_ns = timeout_ns(w);
	attr.nack = w->scheme == SCHEME_NACK;
	return attr;
}

static uint64_t rate_of(const struct scheme_way *w)
{
	return w->rate_mbps ? w->rate_mbps : w->seen_mbps;
}

void scheme_learn(struct scheme_way *w, uint64_t bytes, uint64_t ns)
{
	if (bytes >= LEARN_BYTES)
		w->seen_mbps = bytes * 8000 / (ns + 1) + 1;
}

bool scheme_learn_found(struct scheme_way *w, const struct verbena_sdr_qp *qp)
{
	struct verbena_sdr_stats st;

	if (!w->rate_auto || verbena_sdr_qp_stats_get(qp, &st) || !st.rate_mbps)
		return false;
	w->seen_mbps = st.rate_mbps;
	return true;
}

static bool coded(const struct scheme_way *w)
{
	return scheme_numbers(w->scheme) == 2;
}

static bool tailed(const struct scheme_way *w)
{
	return w->scheme == SCHEME_TAIL;
}

int scheme_recv_post(struct verbena_sdr_qp *qp, const struct scheme_way *w, const struct verbena_sdr_recv_attr *attr,
		     struct verbena_sdr_recv *recv)
{
	struct verbena_sdr_sr_attr sr = sr_attr(w);
	int r;

	if (tailed(w))
		return verbena_sdr_tail_recv_post(qp, attr, queued_ns(w), recv);
	if (coded(w))
		return verbena_sdr_ec_recv_post(qp, attr, recv);
	r = verbena_sdr_recv_post(qp, attr, recv);
	return r ? r : verbena_sdr_sr_recv(recv, &sr);
}

int scheme_recv_poll(const struct scheme_way *w, const struct verbena_sdr_recv *recv, bool *done)
{
	if (tailed(w))
		return verbena_sdr_tail_recv_poll(recv, done);
	return coded(w) ? verbena_sdr_ec_recv_poll(recv, done) : verbena_sdr_sr_recv_poll(recv, done);
}

/* The paper's. Messages that are smaller than a group of chunks have groups of packets. */
static void fixed_attr(const struct scheme_way *w, size_t bytes, struct verbena_sdr_ec_attr *attr)
{
	verbena_sdr_ec_attr_init(attr);
	attr->code = w->scheme == SCHEME_XOR ? VERBENA_SDR_XOR : VERBENA_SDR_MDS;
	attr->fallback = VERBENA_SDR_FALLBACK_SR;
	attr->parity_max = attr->parity;
	attr->depth = 1;
	attr->chunks = bytes >= 32 * w->chunk;
	attr->end_marker = false;
	attr->nack = false;
}

static int choose(struct verbena_sdr_qp *qp, const struct scheme_way *w, size_t bytes, uint64_t behind,
		  struct verbena_sdr_ec_attr *attr, const char **reason)
{
	struct verbena_sdr_link link = {.rate_mbps = rate_of(w) ? rate_of(w) : GUESSED_MBPS, .rtt_ns = queued_ns(w)};
	struct verbena_sdr_stats stats;

	if (w->scheme != SCHEME_EC && w->scheme != SCHEME_AUTO) {
		fixed_attr(w, bytes, attr);
		*reason = "it was asked for";
	} else {
		if (verbena_sdr_qp_stats_get(qp, &stats))
			return VERBENA_SDR_ERROR;
		link.sent = stats.ec_pieces;
		link.lost = stats.ec_lost;
		if (verbena_sdr_ec_choose(qp, &link, bytes, behind, attr, reason))
			return VERBENA_SDR_ERROR;
	}
	attr->rtt_ns = queued_ns(w);
	attr->timeout_ns = timeout_ns(w);
	attr->rate_mbps = rate_of(w);
	return VERBENA_SDR_SUCCESS;
}

static int tail_send(struct verbena_sdr_qp *qp, const struct scheme_way *w, const struct verbena_sdr_block *block,
		     uint64_t behind, struct verbena_sdr_send *send)
{
	struct verbena_sdr_tail_attr attr;

	verbena_sdr_tail_attr_init(&attr);
	attr.rtt_ns = queued_ns(w);
	attr.timeout_ns = timeout_ns(w);
	attr.rate_mbps = rate_of(w);
	attr.behind = behind;
	return verbena_sdr_tail_send(qp, block, &attr, send);
}

int scheme_send(struct verbena_sdr_qp *qp, const struct scheme_way *w, const struct verbena_sdr_block *block,
		uint64_t behind, struct verbena_sdr_ec_attr *attr, const char **reason, struct verbena_sdr_send *send)
{
	struct verbena_sdr_sr_attr sr = sr_attr(w);
	struct verbena_sdr_ec_attr ec;
	const char *why;
	int r;

	if (tailed(w))
		return tail_send(qp, w, block, behind, send);
	if (!coded(w))
		return verbena_sdr_sr_send(qp, block, &sr, send);
	if (choose(qp, w, block->length, behind, &ec, &why))
		return VERBENA_SDR_ERROR;
	r = verbena_sdr_ec_send(qp, block, &ec, send);
	if (!r && attr)
		*attr = ec;
	if (!r && reason)
		*reason = why;
	return r;
}

int scheme_poll(const struct scheme_way *w, const struct verbena_sdr_send *send, bool *done)
{
	if (tailed(w))
		return verbena_sdr_tail_poll(send, done);
	return coded(w) ? verbena_sdr_ec_poll(send, done) : verbena_sdr_sr_poll(send, done);
}

/* Whether an answer has come. */
static bool answered(struct verbena_sdr_context *ctx, struct verbena_sdr_qp *qp, uint64_t before_ns, uint64_t wait_ns)
{
	uint64_t end_ns = now_ns() + wait_ns, least_ns, mean_ns;

	for (uint64_t now = now_ns(); now < end_ns; now = now_ns()) {
		verbena_sdr_progress(ctx);
		if (!verbena_sdr_rtt_get(qp, &least_ns, &mean_ns) && mean_ns != before_ns)
			return true;
		meet_rest(ctx, -1, (int)((end_ns - now) / 1000000) + 1);
	}
	return false;
}

static uint64_t measure(struct verbena_sdr_context *ctx, struct verbena_sdr_qp *qp, double *share)
{
	uint64_t least_ns = 0, mean_ns = 0, wait_ns = WAIT_NS;
	int sent = 0, lost = 0;

	for (; sent < PINGS && lost < PINGS_LOST; sent++) {
		if (verbena_sdr_ping(qp) == VERBENA_SDR_ERROR)
			return 0;
		if (answered(ctx, qp, mean_ns, wait_ns))
			verbena_sdr_rtt_get(qp, &least_ns, &mean_ns);
		else
			lost++;
		/* The first answer is waited for longer and longer, the others a little. */
		wait_ns = mean_ns ? 2 * mean_ns + 20000000 : 2 * wait_ns;
	}
	if (share)
		*share = (double)lost / sent;
	return least_ns;
}

/* What the other end says, while this one answers. */
static uint64_t number_hear(struct verbena_sdr_context *ctx, int tcp)
{
	uint64_t number;

	while (!meet_poll(tcp, &number, sizeof(number), 1, ctx ? 0 : -1)) {
		if (ctx)
			meet_rest(ctx, tcp, -1);
	}
	return be64toh(number);
}

uint64_t scheme_rtt_ns(struct verbena_sdr_context *ctx, struct verbena_sdr_qp *qp, int tcp, bool measures, double *lost)
{
	uint64_t rtt_ns;

	if (!measures)
		return number_hear(ctx, tcp);
	rtt_ns = measure(ctx, qp, lost);
	meet_send_numbers(tcp, &rtt_ns, 1);
	return rtt_ns;
}

/* In a simulation with real packets the tail's codes are never slower than the others (docs/sdr-results.md). Where a
 * chunk takes longer than the round trip there is nothing to gain by parities. */
static enum scheme best(const struct scheme_way *w, char *reason)
{
	double mbps = w->rate_mbps ? (double)w->rate_mbps : GUESSED_MBPS;
	double bytes = mbps * 125000 * ((double)w->rtt_ns / 1e9), ms = (double)w->rtt_ns / 1e6;
	const char *rate = w->rate_mbps ? "" : ", guessed until it is measured,";

	if (bytes < (double)w->chunk && w->pings_lost == 0) {
		snprintf(
			reason, SCHEME_REASON,
			"nack: %.1f ms at %.0f Mbit/s%s are %.0f KiB, less than a chunk, so what is lost is soon repeated",
			ms, mbps, rate, bytes / 1024);
		return SCHEME_NACK;
	}
	snprintf(reason, SCHEME_REASON,
		 "tail: %.1f ms at %.0f Mbit/s%s are %.0f KiB, and of %d PINGs %.0f were lost: parities for the end, "
		 "repetitions before",
		 ms, mbps, rate, bytes / 1024, PINGS, w->pings_lost * PINGS);
	return SCHEME_TAIL;
}

static void agree_on(struct scheme_way *w, int tcp, bool measures, char *reason)
{
	uint64_t scheme;

	reason[0] = 0;
	if (w->scheme != SCHEME_AUTO)
		return;
	if (measures) {
		scheme = best(w, reason);
		meet_send_numbers(tcp, &scheme, 1);
	} else {
		scheme = number_hear(NULL, tcp);
	}
	if (scheme == SCHEME_AUTO || scheme >= SCHEMES)
		die("the peer chooses a scheme that there is not");
	w->scheme = (enum scheme)scheme;
}

void scheme_open(struct scheme_way *w, struct verbena_sdr_context *ctx, struct verbena_sdr_qp *qp, int tcp,
		 bool measures, char *reason)
{
	char text[SCHEME_REASON];
	uint64_t measured_ns = scheme_rtt_ns(ctx, qp, tcp, measures, &w->pings_lost);

	if (!w->rtt_ns)
		w->rtt_ns = measured_ns;
	if (!w->rtt_ns)
		die("no round trip could be measured");
	agree_on(w, tcp, measures, reason ? reason : text);
	if (!reason && text[0])
		printf("%s\n", text);
}
