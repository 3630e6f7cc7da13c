/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bulk data one way, in requests (WRITEs of A) or in responses (A reads from B), and a channel with
 * a rate: for the measurements of loss recovery. Their claims hold for both PSN spaces (veRoCE 6).
 */
#pragma once

#include "veroce/veroce.h"

struct transfer {
	struct sim s;
	struct duo *duo;
	bool read;
	enum duo_side from; /* the sender of the data */
	struct duo_buf *src, *dst;
	uint32_t psn; /* of the first data packet that was not sent when it started */
	uint64_t posted;
	const struct nic_counters *sender, *receiver;

	/* a channel with a rate, if packet_ns is set: transfer_channel() */
	uint64_t packet_ns;
	uint64_t free_ns;
	uint32_t drop_ppm; /* of data */
	struct prng prng;
};

static inline bool transfer_is_data(const struct transfer *t, const struct duo_packet *p)
{
	return p->from == t->from && veroce_is_data(p) && !(p->info->flags & F_RESPONSE) == !t->read;
}

/* A duo_script. Packets of data follow each other at a rate, on any path. */
static inline bool transfer_channel(void *ctx, const struct duo_packet *p, enum duo_fate *fate, uint64_t *n)
{
	struct transfer *t = ctx;

	if (!transfer_is_data(t, p))
		return false;
	if (t->free_ns < p->sent_ns)
		t->free_ns = p->sent_ns;
	t->free_ns += t->packet_ns;
	*n = t->free_ns - p->sent_ns;
	*fate = prng_below(&t->prng, 1000000) < t->drop_ppm ? DUO_DROP : DUO_DELAY;
	return true;
}

static inline void transfer_post(struct transfer *t, uint64_t off, uint32_t len)
{
	struct duo_buf *a = t->read ? t->dst : t->src, *b = t->read ? t->src : t->dst;
	uint64_t id = t->posted++;

	duo_must_post(t->s.a, t->read ? duo_read_wr(id, a, off, len, b, off) : duo_write_wr(id, a, off, len, b, off));
}

/* All that was posted succeeded, in order, and what is in dst is what was in src. */
static inline void transfer_check(struct transfer *t)
{
	DUO_CHECK(t->duo, t->s.a->sent.n == t->posted);
	while (t->s.a->sent.taken < t->posted)
		duo_expect(t->duo, &t->s.a->sent, t->s.a->sent.taken, WC_SUCCESS);
	DUO_CHECK(t->duo, !memcmp(t->src->p, t->dst->p, t->src->len));
}

/*
 * A pair that knows its round trip, which is twice latency_ns: `warm` packets have been there. src
 * and dst have `len` bytes. t stays where it is.
 */
static inline void transfer_start(struct transfer *t, const struct veroce_options *v, const struct duo_options *o,
				  uint64_t seed, bool read, uint64_t len, uint64_t latency_ns, uint32_t warm)
{
	*t = (struct transfer){.s = veroce_start_sim(v, o, seed), .read = read};
	t->duo = t->s.duo;
	t->duo->latency_ns = latency_ns;
	t->from = read ? DUO_B : DUO_A;
	t->src = duo_buf(&t->duo->host[t->from], len, ALL_ACCESS);
	t->dst = duo_buf(&t->duo->host[!t->from], len, ALL_ACCESS);
	t->sender = nic_counters(t->duo->host[t->from].nic);
	t->receiver = nic_counters(t->duo->host[!t->from].nic);
	duo_fill(t->src, seed);
	prng_init(&t->prng, seed);
	for (uint32_t i = 0; i < warm; i++) {
		transfer_post(t, 0, o->mtu);
		duo_wait(t->duo, &t->s.a->sent, t->posted);
		duo_expect(t->duo, &t->s.a->sent, i, WC_SUCCESS);
	}
	/* Responses begin with the requester's first PSN (veRoCE 4.1). */
	t->psn = psn_add(o->psn[DUO_A], warm);
	memset(t->dst->p, 0, len);
}

static inline void transfer_end(struct transfer *t)
{
	t->duo->script = NULL;
	sim_end(&t->s);
}

/* The n-th time that data packet psn + i was sent, the first is the 0th; NULL: it was not. */
static inline const struct duo_packet *transfer_copy(const struct transfer *t, uint32_t i, uint32_t n)
{
	for (size_t k = 0; k < t->duo->wire_count; k++) {
		const struct duo_packet *p = &t->duo->wire[k];

		if (transfer_is_data(t, p) && p->bth.psn == psn_add(t->psn, i) && n-- == 0)
			return p;
	}
	return NULL;
}

/* How often it was sent again. */
static inline uint32_t transfer_copies(const struct transfer *t, uint32_t i)
{
	uint32_t n = 0;

	while (transfer_copy(t, i, n + 1))
		n++;
	return n;
}

/* For a duo_script: which copy of which data packet this is. */
static inline uint32_t transfer_index(const struct transfer *t, const struct duo_packet *p)
{
	return (p->bth.psn - t->psn) & PSN_MASK;
}

/* An acknowledgement of the test's own making to the sender of the data: a SACK if valid_len. */
static inline void transfer_answer(struct transfer *t, uint32_t apsn, uint32_t amsn, uint32_t start, uint8_t valid_len,
				   uint64_t bits)
{
	struct sacketh h = {.start_psn = start & PSN_MASK, .valid_len = valid_len, .bits = {bits}};
	uint8_t bytes[SACKETH_LEN];
	struct veroce_packet p = {
		.bth = {.opcode = t->read ? (valid_len ? OP_RC_SACK_RSP : OP_RC_ACK_RSP)
					  : (valid_len ? OP_RC_SACK : OP_RC_ACK),
			.psn = apsn & PSN_MASK,
			.dqpn = t->read ? t->s.b->qpn : t->s.a->qpn},
		.aeth = {.syndrome = AETH_ACK | AETH_CREDIT_INVALID, .msn = amsn},
		.po = POETH_NO_INFO,
		.sacks = bytes,
		.sack_count = valid_len ? 1 : 0,
	};

	sacketh_encode(bytes, &h);
	veroce_forge(t->duo, t->from, &p, NULL);
}
