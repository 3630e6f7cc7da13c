/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random verbs on several QPs under random faults, against a model.
 *
 * A lane is one direction of a connected pair: what `from` posts to `to`. The model of a lane is
 * its target memory as it is once every operation posted so far was executed, in order; it is
 * brought up to date at post time, and what each READ, atomic or message must show is recorded then.
 *
 *     swarm [veroce] [rings] [reloads] [SEED [COUNT]]       or VERBENA_SEED in the environment
 *
 * With `veroce` the seed also chooses how RC travels: veRoCE or negotiated, paths and their latencies,
 * loss detection, congestion control, windows, order. In weak order WRITEs that overlap have a fence
 * between them, since data in flight has no order, or rely on the fence indicator.
 *
 * With `rings` the two are processes of one host, and memory is between them (swarm_rings.c).
 *
 * With `reloads` each seed runs once more, and the nics are saved, destroyed and loaded at random steps of it
 * (duo_reload()): the trace must be the same.
 *
 * It prints every seed before it runs it and, when one fails, the command that repeats it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "veroce/sent.h"
#include "nic/swarm.h"

enum {
	SEEDS = 1000,
	SIGNAL_EVERY = 8,
	STEPS_MAX = 3 * 1000 * 1000,
	RELOAD_OF_MIN = 16, /* steps for a reload */
	RELOAD_OF_MAX = 1024,
	RINGS_BUSY = 100 /* actions in which lanes have work left */
};

static bool veroce, rings, reloads;

/* ---- set-up ------------------------------------------------------------------------------------ */

static void choose_faults(struct swarm *s)
{
	for (int side = 0; side < DUO_SIDES; side++) {
		struct duo_faults *f = &s->d->faults[side];
		uint32_t *rates[] = {&f->drop_ppm, &f->duplicate_ppm, &f->delay_ppm, &f->corrupt_ppm, &f->ce_ppm};

		for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
			*rates[i] = chance(s, 40) ? (uint32_t)below(s, 50000) : 0;
		f->delay_ns_max = 1 + below(s, 30000);
	}
}

/* ---- RoCEv2 ------------------------------------------------------------------------------------ */

static uint32_t only_bytes;

/* Who is stopped lives, and is waited for. */
static void set_rings(struct nic_config *c)
{
	duo_same_host(c);
	c->transport.patience_ns = 20000000;
}

static void set_rocev2(struct nic_config *c, enum duo_side side)
{
	c->transport.rocev2.only_bytes = only_bytes;
	if (rings)
		set_rings(c);
}

/* ---- veRoCE ------------------------------------------------------------------------------------ */

static uint64_t current_seed;
static struct nic_config wire;  /* the members that choose_wire() sets */
static struct cc_params shares; /* where wire.transport.cc.params is set */
static bool same_host, large[DUO_SIDES];

static void choose_wire(struct swarm *s)
{
	bool found_out = chance(s, 25), irn = chance(s, 15);

	wire = (struct nic_config){
		.transport.protocol = found_out ? PROTOCOL_AUTO : PROTOCOL_VEROCE,
		.transport.paths = chance(s, 30) ? 1 : 1 + (uint32_t)below(s, PATHS_MAX),
		.transport.veroce.cc = (enum veroce_cc)below(s, 3),
		.transport.veroce.loss = irn             ? LOSS_IRN
					 : chance(s, 20) ? LOSS_BASE
							 : LOSS_FAST,
		.transport.veroce.rx_window = 128u << below(s, 6),
		.transport.window_bytes = 16384u << below(s, 7),
		.transport.veroce.flowlet_packets = (uint16_t)(1 + below(s, 16)),
		.transport.veroce.order = chance(s, 20)   ? ORDER_WEAK
					  : chance(s, 20) ? ORDER_STRONG
							  : ORDER_MESSAGE,
		.transport.veroce.early_bytes_max = chance(s, 20) ? 4096u << below(s, 5) : 0,
		.transport.veroce.base_only = chance(s, 20),
		.transport.veroce.fence_indicator = chance(s, 30),
	};
	same_host = chance(s, 20) || rings;
	/* Not drawn: seeds keep their meanings. */
	wire.transport.veroce.roam = current_seed % 4 == 3 ? ROAM_UNSAFE : ROAM_OFF;
	wire.transport.veroce.scope = (enum veroce_scope)(wire.transport.veroce.flowlet_packets % 3);
	for (int side = 0; side < DUO_SIDES; side++)
		large[side] = same_host && wire.transport.veroce.rx_window >> (9 + side) & 5;
	if (!chance(s, 25))
		return;
	cc_params_default(&shares, (const enum cc_algorithm[]){CC_SWIFT, CC_DCTCP, CC_NONE}[wire.transport.veroce.cc]);
	shares.rxshare = CC_SHARES_ON;
	wire.transport.cc.params = &shares;
	wire.transport.cc.line_rate_bps = UINT64_C(100000000000) << below(s, 5);
}

static void set_wire(struct nic_config *c, enum duo_side side)
{
	c->transport.protocol = wire.transport.protocol;
	c->transport.paths = wire.transport.paths;
	c->transport.veroce.cc = wire.transport.veroce.cc;
	c->transport.veroce.roam = wire.transport.veroce.roam;
	c->transport.veroce.loss = wire.transport.veroce.loss;
	c->transport.veroce.rx_window = wire.transport.veroce.rx_window;
	c->transport.window_bytes = wire.transport.window_bytes;
	c->transport.veroce.flowlet_packets = wire.transport.veroce.flowlet_packets;
	c->transport.veroce.scope = wire.transport.veroce.scope;
	c->transport.veroce.order = wire.transport.veroce.order;
	c->transport.veroce.early_bytes_max = wire.transport.veroce.early_bytes_max;
	c->transport.veroce.fence_indicator = wire.transport.veroce.fence_indicator;
	c->transport.veroce.base_only = side == DUO_A && wire.transport.veroce.base_only;
	c->transport.veroce.large = large[side];
	c->transport.cc.params = wire.transport.cc.params;
	c->transport.cc.line_rate_bps = wire.transport.cc.line_rate_bps;
	if (rings)
		set_rings(c);
	else if (same_host)
		duo_same_host(c);
}

static void choose_paths(struct swarm *s)
{
	for (uint32_t i = 0; i < wire.transport.paths; i++) {
		if (chance(s, 50))
			s->d->path_ns[i] = below(s, 50000);
		if (i && chance(s, 5))
			s->d->path_ns[i] = UINT64_MAX;
	}
}

static void lane_init(struct swarm *s, struct lane *l, struct duo_qp *from, struct duo_qp *to)
{
	struct duo_host *f = from->host, *t = to->host;

	l->from = from;
	l->to = to;
	l->op_count = 20 + (uint32_t)below(s, OPS_MAX - 20);
	l->source = duo_buf(f, SOURCE_BYTES, chance(s, 50) ? MR_LOCAL_WRITE : 0);
	l->results = duo_buf(f, (uint64_t)RESULT_SLOTS * MESSAGE_MAX, MR_LOCAL_WRITE);
	l->target = duo_buf(t, TARGET_BYTES + 2 * 8 * WORDS, MR_LOCAL_WRITE | MR_REMOTE_ACCESS);
	l->inbox = duo_buf(t, (uint64_t)RECV_SLOTS * MESSAGE_MAX, MR_LOCAL_WRITE);
	duo_fill(l->source, prng_next(&s->prng));
	duo_fill(l->target, prng_next(&s->prng));
	memset(l->target->p + TARGET_BYTES + 8 * WORDS, 0, 8 * WORDS);
	l->model = malloc(l->target->len);
	memcpy(l->model, l->target->p, l->target->len);
}

/* Message numbers that wrap soon. */
static void choose_sent(struct swarm *s, struct duo_qp *q)
{
	const struct veroce_sent sent = {
		.messages = PSN_MASK - (uint32_t)below(s, 30),
		.recvs = PSN_MASK - (uint32_t)below(s, 15),
		.reads = PSN_MASK - (uint32_t)below(s, 15),
	};

	veroce_set_sent(q, &sent);
}

static void connect_pairs(struct swarm *s)
{
	uint32_t pairs = 1 + (uint32_t)below(s, PAIRS_MAX);

	s->mtu = 256u << below(s, 5);
	for (uint32_t i = 0; i < pairs; i++) {
		struct duo_options o = duo_options();

		o.gid = (uint8_t)below(s, DUO_GIDS);
		o.mtu = s->mtu;
		for (int side = 0; side < DUO_SIDES; side++)
			o.psn[side] = chance(s, 30) ? 0xffffff - (uint32_t)below(s, 50) : (uint32_t)below(s, 1 << 24);
		o.max_rd_atomic = chance(s, 30) ? 16 : (uint8_t)(1 + below(s, 16));
		o.max_dest_rd_atomic = o.max_rd_atomic + (uint8_t)below(s, 17u - o.max_rd_atomic);
		o.timeout = (uint8_t)(4 + below(s, 4));
		/* A packet that is lost twice costs it a timeout each, and responses wait for room meanwhile. */
		if (wire.transport.veroce.loss == LOSS_IRN || wire.transport.veroce.roam == ROAM_UNSAFE)
			o.timeout += 8; /* nor may retries end while one that has moved asks in vain */
		o.min_rnr_timer = (uint8_t)(1 + below(s, 8));
		o.cap.max_send_wr = 16 + (uint32_t)below(s, 17);
		o.cap.max_recv_wr = RECV_SLOTS;

		struct duo_pair p = duo_connect(s->d, &o);

		if (veroce && chance(s, 30)) {
			choose_sent(s, p.a);
			choose_sent(s, p.b);
		}
		lane_init(s, &s->lanes[s->lane_count++], p.a, p.b);
		lane_init(s, &s->lanes[s->lane_count++], p.b, p.a);
	}
}

static void lane_free(struct lane *l)
{
	for (uint32_t i = 0; i < l->posted; i++)
		free(l->ops[i].result);
	for (uint32_t i = 0; i < l->message_count; i++)
		free(l->messages[i].bytes);
	free(l->model);
}

/* ---- posting ----------------------------------------------------------------------------------- */

static uint32_t choose_len(struct swarm *s, uint32_t max)
{
	uint32_t len;

	switch (below(s, 5)) {
	case 0: len = (uint32_t)below(s, 4); break;
	case 1: len = (uint32_t)below(s, 100); break;
	case 2: /* around a packet's edge */
		len = s->mtu * (uint32_t)(1 + below(s, 4)) + (uint32_t)below(s, 3) - 1;
		break;
	default: len = (uint32_t)below(s, MESSAGE_MAX + 1);
	}
	return len < max ? len : max;
}

/* Elements over random places of the source, and the bytes that they make. */
static void choose_source(struct swarm *s, const struct lane *l, struct duo_wr *w, uint8_t *bytes, uint32_t len)
{
	static uint8_t inline_bytes[64];
	uint32_t at = 0;

	if (len <= sizeof(inline_bytes) && chance(s, 40)) {
		memcpy(inline_bytes, l->source->p + below(s, SOURCE_BYTES - 64), len);
		memcpy(bytes, inline_bytes, len);
		w->flags |= WR_INLINE;
		w->inline_data = inline_bytes;
		w->inline_len = len;
		return;
	}
	w->num_sge = 1 + (uint32_t)below(s, 4);
	for (uint32_t i = 0; i < w->num_sge; i++) {
		uint32_t piece = i + 1 == w->num_sge ? len - at : (uint32_t)below(s, len - at + 1);
		uint64_t off = below(s, SOURCE_BYTES - piece + 1);

		w->sge[i] = duo_sge(l->source, off, piece);
		memcpy(bytes + at, l->source->p + off, piece);
		at += piece;
	}
}

static uint64_t slot_of(uint32_t seq)
{
	return (uint64_t)(seq % RESULT_SLOTS) * MESSAGE_MAX;
}

static void plan_message(struct lane *l, const struct duo_wr *w, const uint8_t *bytes, uint32_t len)
{
	struct message *m = &l->messages[l->message_count++];

	*m = (struct message){.opcode = w->opcode, .len = len, .imm = w->imm_or_key};
	m->bytes = malloc(len + 1);
	memcpy(m->bytes, bytes, len);
}

static void plan_send(struct swarm *s, struct lane *l, struct duo_wr *w)
{
	uint8_t bytes[MESSAGE_MAX];
	uint32_t len = choose_len(s, MESSAGE_MAX);

	choose_source(s, l, w, bytes, len);
	w->imm_or_key = (uint32_t)prng_next(&s->prng);
	plan_message(l, w, bytes, len);
	s->useful_packets += 1 + len / s->mtu;
}

/* Whether a WRITE that may still be under way meets that range. */
static bool overlaps_write(const struct lane *l, uint64_t off, uint32_t len)
{
	for (uint32_t i = l->done; i < l->posted; i++) {
		const struct op *o = &l->ops[i];

		if (off < o->write_off + o->write_len && o->write_off < off + len)
			return true;
	}
	return false;
}

static void plan_write(struct swarm *s, struct lane *l, struct duo_wr *w, struct op *op)
{
	uint8_t bytes[MESSAGE_MAX];
	uint32_t len = choose_len(s, MESSAGE_MAX);
	uint64_t off = below(s, TARGET_BYTES - len + 1);

	choose_source(s, l, w, bytes, len);
	if (veroce && wire.transport.veroce.order == ORDER_WEAK && !wire.transport.veroce.fence_indicator &&
	    overlaps_write(l, off, len))
		w->flags |= WR_FENCE;
	op->write_off = off;
	op->write_len = len;
	w->remote_va = l->target->iova + off;
	w->imm_or_key = (uint32_t)prng_next(&s->prng);
	memcpy(l->model + off, bytes, len);
	if (w->opcode == WR_WRITE_IMM)
		plan_message(l, w, bytes, len);
	s->useful_packets += 1 + len / s->mtu;
}

static void plan_read(struct swarm *s, struct lane *l, struct duo_wr *w, struct op *op)
{
	uint32_t len = choose_len(s, MESSAGE_MAX), at = 0;
	uint64_t off = below(s, TARGET_BYTES - len + 1);

	w->remote_va = l->target->iova + off;
	w->num_sge = 1 + (uint32_t)below(s, 3);
	for (uint32_t i = 0; i < w->num_sge; i++) {
		uint32_t piece = i + 1 == w->num_sge ? len - at : (uint32_t)below(s, len - at + 1);

		w->sge[i] = duo_sge(l->results, slot_of(l->posted) + at, piece);
		at += piece;
	}
	op->result = malloc(len + 1);
	op->result_len = len;
	memcpy(op->result, l->model + off, len);
	/* RoCEv2, which the two may negotiate, has no fence indicator. */
	l->must_fence = !wire.transport.veroce.fence_indicator || wire.transport.protocol != PROTOCOL_VEROCE;
	s->useful_packets += 2 + len / s->mtu;
}

static void plan_atomic(struct swarm *s, struct lane *l, struct duo_wr *w, struct op *op)
{
	uint64_t off = TARGET_BYTES + 8 * below(s, WORDS), word;

	memcpy(&word, l->model + off, 8);
	w->remote_va = l->target->iova + off;
	w->num_sge = 1;
	w->sge[0] = duo_sge(l->results, slot_of(l->posted), 8);
	op->result = malloc(8);
	op->result_len = 8;
	memcpy(op->result, &word, 8);
	w->compare_add = prng_next(&s->prng);
	w->swap = prng_next(&s->prng);
	if (w->opcode == WR_FETCH_ADD) {
		word += w->compare_add;
	} else {
		if (chance(s, 60))
			w->compare_add = word;
		if (w->compare_add == word)
			word = w->swap;
	}
	memcpy(l->model + off, &word, 8);
	op->write_off = off;
	op->write_len = 8;
	s->useful_packets += 2;
}

/* Halves that belong together, and grow from one to the next. */
static uint64_t word_of(const struct lane *l)
{
	return (uint64_t)(l->posted + 1) << 32 | (uint32_t) ~(l->posted + 1);
}

static void plan_atomic_write(struct swarm *s, struct lane *l, struct duo_wr *w, struct op *op)
{
	static uint64_t word;
	uint64_t off = TARGET_BYTES + 8 * (WORDS + below(s, WORDS));

	word = word_of(l);
	w->remote_va = l->target->iova + off;
	w->flags |= WR_INLINE;
	w->inline_data = &word;
	w->inline_len = 8;
	memcpy(l->model + off, &word, 8);
	op->write_off = off;
	op->write_len = 8;
	s->useful_packets += 2;
}

/* When it is complete, all that was posted before is in memory, whatever of it the range has. */
static void plan_flush(struct swarm *s, struct lane *l, struct duo_wr *w, struct op *op)
{
	uint32_t len = choose_len(s, MESSAGE_MAX);

	w->remote_va = l->target->iova + below(s, TARGET_BYTES - len + 1);
	w->flush_bytes = len;
	w->placement = FETH_GLOBAL;
	w->selectivity = chance(s, 30) ? FETH_REGION : FETH_RANGE;
	op->result = malloc(l->target->len);
	memcpy(op->result, l->model, l->target->len);
	s->useful_packets += 2;
}

bool swarm_post(struct swarm *s, struct lane *l)
{
	static const enum wr_opcode opcodes[] = {WR_SEND, WR_SEND_IMM,  WR_WRITE,    WR_WRITE, WR_WRITE_IMM,   WR_READ,
						 WR_READ, WR_FETCH_ADD, WR_CMP_SWAP, WR_FLUSH, WR_ATOMIC_WRITE};
	struct duo_wr w = {.wr_id = l->posted, .rkey = duo_key(l->target)};
	struct op *op = &l->ops[l->posted];

	if (l->posted == l->op_count || !sq_slot(qp_sq(l->from->qp), 0))
		return false;
	w.opcode = opcodes[below(s, sizeof(opcodes) / sizeof(opcodes[0]))];
	if (l->posted + 1 == l->op_count || l->posted - l->last_signal >= SIGNAL_EVERY || chance(s, 50)) {
		w.flags |= WR_SIGNALED;
		l->last_signal = l->posted;
	}
	if (chance(s, 10) || l->must_fence)
		w.flags |= WR_FENCE;
	if (chance(s, 10))
		w.flags |= WR_SOLICITED;
	l->must_fence = false;
	*op = (struct op){.opcode = w.opcode, .signaled = w.flags & WR_SIGNALED};
	switch (w.opcode) {
	case WR_SEND:
	case WR_SEND_IMM: plan_send(s, l, &w); break;
	case WR_READ: plan_read(s, l, &w, op); break;
	case WR_FETCH_ADD:
	case WR_CMP_SWAP: plan_atomic(s, l, &w, op); break;
	case WR_FLUSH: plan_flush(s, l, &w, op); break;
	case WR_ATOMIC_WRITE: plan_atomic_write(s, l, &w, op); break;
	default: plan_write(s, l, &w, op);
	}
	DUO_CHECK(s->d, duo_post(l->from, &w));
	l->posted++;
	return true;
}

static bool post_recv(struct swarm *s, struct lane *l)
{
	uint64_t off = (uint64_t)(l->recv_posted % RECV_SLOTS) * MESSAGE_MAX;
	uint32_t cut = (uint32_t)below(s, MESSAGE_MAX + 1);
	struct sge sge[2] = {duo_sge(l->inbox, off, cut), duo_sge(l->inbox, off + cut, MESSAGE_MAX - cut)};

	if (l->recv_posted - l->recv_done == RECV_SLOTS)
		return false;
	if (!duo_post_recv(l->to, l->recv_posted, sge, 2))
		return false;
	l->recv_posted++;
	return true;
}

/* ---- checking ---------------------------------------------------------------------------------- */

/* What was before the FLUSH is in memory, but for what was posted behind it. */
static void check_flush(struct swarm *s, const struct lane *l, uint32_t seq)
{
	uint8_t *want = l->ops[seq].result;

	for (uint32_t i = seq + 1; i < l->posted; i++)
		memcpy(want + l->ops[i].write_off, l->target->p + l->ops[i].write_off, l->ops[i].write_len);
	DUO_CHECK(s->d, !memcmp(want, l->target->p, l->target->len));
}

static void check_result(struct swarm *s, const struct lane *l, uint32_t seq)
{
	const struct op *op = &l->ops[seq];

	if (!op->result || s->dying)
		return;
	if (op->opcode == WR_FLUSH)
		check_flush(s, l, seq);
	else
		DUO_CHECK(s->d, !memcmp(l->results->p + slot_of(seq), op->result, op->result_len));
}

/* Signaled successes in order, then at most one failure with its status, then all others flushed. */
static void check_sent(struct swarm *s, struct lane *l)
{
	struct cqe_log *log = &l->from->sent;

	while (log->taken < log->n) {
		const struct cqe *e = &log->e[log->taken++];

		DUO_CHECK(s->d, e->wr_id >= l->done && e->wr_id < l->posted);
		if (e->status == WC_SUCCESS) {
			DUO_CHECK(s->d, !l->send_failed && l->ops[e->wr_id].signaled);
			for (; l->done < e->wr_id; l->done++) {
				DUO_CHECK(s->d, !l->ops[l->done].signaled);
				check_result(s, l, l->done);
			}
			check_result(s, l, l->done++);
			continue;
		}
		DUO_CHECK(s->d, s->dying);
		if (l->send_failed)
			DUO_CHECK(s->d, e->status == WC_WR_FLUSH_ERR && e->wr_id == l->done);
		l->send_failed = true;
		l->done = (uint32_t)e->wr_id + 1;
	}
}

static void check_message(struct swarm *s, struct lane *l, const struct cqe *e)
{
	const struct message *m = &l->messages[l->recv_done];
	bool write = m->opcode == WR_WRITE_IMM;

	DUO_CHECK(s->d, l->recv_done < l->message_count);
	DUO_CHECK(s->d, e->byte_len == m->len);
	DUO_CHECK(s->d, e->opcode == (write ? WC_RECV_RDMA_WITH_IMM : WC_RECV));
	DUO_CHECK(s->d, e->flags == (m->opcode == WR_SEND ? 0 : WC_WITH_IMM));
	if (m->opcode != WR_SEND)
		DUO_CHECK(s->d, e->imm_or_key == m->imm);
	if (!write)
		DUO_CHECK(s->d,
			  !memcmp(l->inbox->p + (uint64_t)(l->recv_done % RECV_SLOTS) * MESSAGE_MAX, m->bytes, m->len));
}

static void check_received(struct swarm *s, struct lane *l)
{
	struct cqe_log *log = &l->to->received;

	while (log->taken < log->n) {
		const struct cqe *e = &log->e[log->taken++];

		DUO_CHECK(s->d, e->wr_id == l->recv_done);
		if (e->status == WC_SUCCESS) {
			DUO_CHECK(s->d, !l->recv_failed);
			check_message(s, l, e);
		} else {
			/* Where a region was closed one receive says so. */
			DUO_CHECK(s->d, s->dying && (e->status == WC_WR_FLUSH_ERR || (!l->recv_failed && l->frozen)));
			l->recv_failed = true;
		}
		l->recv_done++;
	}
}

static bool lane_over(const struct lane *l)
{
	bool from_dead = qp_state(l->from->qp) == QPS_ERR;

	if (from_dead)
		return l->done == l->posted;
	if (qp_state(l->to->qp) == QPS_ERR)
		return false; /* not decided yet, or never if it has nothing to send */
	return l->posted == l->op_count && l->done == l->posted;
}

static void check_end(struct swarm *s, const struct lane *l)
{
	if (!s->dying) {
		DUO_CHECK(s->d, l->done == l->op_count);
		DUO_CHECK(s->d, l->recv_done == l->message_count);
		DUO_CHECK(s->d, !memcmp(l->model, l->target->p, l->target->len));
		DUO_CHECK(s->d, qp_state(l->from->qp) == QPS_RTS);
		DUO_CHECK(s->d, !qp_in_flight(l->from->qp));
		return;
	}
	if (qp_state(l->from->qp) == QPS_ERR)
		DUO_CHECK(s->d, l->done == l->posted);
	if (qp_state(l->to->qp) == QPS_ERR)
		DUO_CHECK(s->d, l->recv_done == l->recv_posted);
}

/* ---- the run ------------------------------------------------------------------------------------- */

/*
 * A host asks its peers to wait, and soon goes on; if all have answered perhaps later. Not drawn from the swarm's numbers:
 * seeds keep their meanings.
 */
static void hold_or_resume(struct swarm *s)
{
	struct nic *nic = s->d->host[s->holder].nic;

	if (s->holds) {
		nic_resume(nic);
		s->holds = false;
		s->holder ^= 1;
		return;
	}
	nic_hold(nic, NIC_HOLD_MS_MAX, 0);
	s->holds = true;
	duo_run_for(s->d, 20000);
	if (nic_hold_awaits(s->d->host[s->holder].nic))
		hold_or_resume(s);
}

/* Whether all queue pairs of that host would be followed to another address, and none is on its way there. */
static bool may_move(struct swarm *s, struct duo_host *h, uint8_t gid)
{
	uint32_t qpn;

	for (const struct duo_qp *q = s->d->qps; q; q = q->next)
		if (q->opt.type != QPT_RC || (q->qp->veroce && q->qp->veroce->roams))
			return false;
	return nic_may_roam(h->nic, h->gids[gid].raw, NULL, 0, &qpn);
}

/* A host goes on under another address. Not drawn from the swarm's numbers, either. */
static void move_one(struct swarm *s)
{
	struct duo_host *h = &s->d->host[prng_below(&s->hold_prng, DUO_SIDES)];
	uint8_t gid = (uint8_t)prng_below(&s->hold_prng, DUO_GIDS);

	if (may_move(s, h, gid))
		duo_move(h, gid, (uint8_t)(16 * (1 + h->side) + prng_below(&s->hold_prng, 4)));
}

static void act(struct swarm *s)
{
	struct lane *l = &s->lanes[below(s, s->lane_count)];

	if (veroce && s->d->seed % 4 == 1 && !prng_below(&s->hold_prng, s->holds ? 4 : 64))
		hold_or_resume(s);
	if (veroce && s->d->seed % 4 == 3 && !same_host && !prng_below(&s->hold_prng, 128))
		move_one(s);

	if (rings && chance(s, 10))
		rings_act(s);
	switch (below(s, 6)) {
	case 0:
	case 1:
		for (uint64_t n = 1 + below(s, 6); n && swarm_post(s, l); n--)
			;
		break;
	case 2:
		for (uint64_t n = 1 + below(s, 6); n && post_recv(s, l); n--)
			;
		break;
	case 3:
		s->d->burst = 1 + below(s, 128);
		s->d->batch = 1 + below(s, 64);
		break;
	case 4: nic_hold_acks(s->d->host[below(s, 2)].nic, chance(s, 50)); break;
	default: duo_run_for(s->d, below(s, chance(s, 10) ? 200000 : 5000));
	}
}

/* What ATOMIC WRITEs have changed is never seen in parts, and never goes back. */
static void check_words(struct swarm *s, struct lane *l)
{
	for (uint32_t i = 0; i < WORDS && !s->dying; i++) {
		uint64_t word;

		memcpy(&word, l->target->p + TARGET_BYTES + 8 * (WORDS + i), 8);
		DUO_CHECK(s->d, !word || (uint32_t)(word >> 32) == (uint32_t)~word);
		DUO_CHECK(s->d, word >= l->words[i]);
		l->words[i] = word;
	}
}

static void check_all(struct swarm *s)
{
	for (uint32_t i = 0; i < s->lane_count; i++) {
		check_words(s, &s->lanes[i]);
		check_sent(s, &s->lanes[i]);
		check_received(s, &s->lanes[i]);
	}
	if (rings)
		rings_check(s);
}

static bool all_over(const struct swarm *s)
{
	for (uint32_t i = 0; i < s->lane_count; i++) {
		if (!lane_over(&s->lanes[i]))
			return false;
	}
	return true;
}

/*
 * Posts everything still missing, and a receive for every message that waits for one. Where two paths of
 * five are dead, and messages wait for each other, each may take a timeout or two, which take IRN milliseconds each. Of
 * a lane that dies it may never be decided that it is over.
 */
static void finish(struct swarm *s)
{
	int most = s->dying ? 60000 : 600000;

	for (int rounds = 0; !all_over(s) && rounds < most; rounds++) {
		for (uint32_t i = 0; i < s->lane_count; i++) {
			swarm_post(s, &s->lanes[i]);
			while (s->lanes[i].recv_posted < s->lanes[i].message_count && post_recv(s, &s->lanes[i]))
				;
		}
		duo_run_for(s->d, 5000);
		check_all(s);
	}
	duo_idle(s->d);
	check_all(s);
}

static void kill_one(struct swarm *s)
{
	struct lane *l = &s->lanes[below(s, s->lane_count)];

	s->dying = true;
	if (rings)
		rings_kill(s, l);
	else
		DUO_CHECK(s->d, !duo_qp_to_state(l->from, QPS_ERR));
}

static const char *program;
static const struct swarm *current;

static void say_how_to_repeat(void)
{
	for (uint32_t i = 0; current && i < current->lane_count; i++) {
		const struct lane *l = &current->lanes[i];

		fprintf(stderr,
			"lane %06x->%06x: %u of %u posted, %u done; messages %u, "
			"receives %u posted, %u done\n",
			l->from->qpn, l->to->qpn, l->posted, l->op_count, l->done, l->message_count, l->recv_posted,
			l->recv_done);
	}
	fprintf(stderr, "repeat: %s %s%s%s%" PRIu64 " 1\n", program, veroce ? "veroce " : "", rings ? "rings " : "",
		reloads ? "reloads " : "", current_seed);
	exit(1);
}

/* Runs one seed, with a reload in so many steps (0: none); returns its trace. */
static uint64_t run(uint64_t seed, uint32_t reload_of, uint64_t *packets, struct rings_seen *seen)
{
	struct swarm *s = calloc(1, sizeof(*s));
	uint64_t trace, actions, killed_at;

	current = s;
	prng_init(&s->prng, seed ^ 0x5eed);
	prng_init(&s->hold_prng, seed);
	if (veroce)
		choose_wire(s);
	else
		only_bytes = chance(s, 50) ? 0 : (uint32_t)below(s, 2 * MESSAGE_MAX);
	s->d = duo_create(seed, veroce ? set_wire : set_rocev2);
	/* Not drawn: seeds keep their meanings. */
	s->d->places = veroce && same_host && seed % 3 && !rings;
	s->d->placed_lost = seed % 3 == 1 ? 64 : 0;
	s->d->steps_left = STEPS_MAX;
	s->d->reload_of = reload_of;
	choose_faults(s);
	if (veroce)
		choose_paths(s);
	if (rings)
		rings_begin(s);
	connect_pairs(s);
	actions = 200 + below(s, 2000);
	killed_at = chance(s, rings ? 50 : 20) ? below(s, rings ? RINGS_BUSY : actions) : UINT64_MAX;
	for (uint64_t i = 0; i < actions; i++) {
		if (i == killed_at)
			kill_one(s);
		act(s);
		check_all(s);
	}
	if (s->holds)
		hold_or_resume(s);
	if (rings)
		rings_calm(s);
	finish(s);
	for (uint32_t i = 0; i < s->lane_count; i++)
		check_end(s, &s->lanes[i]);
	if (rings)
		rings_end(s, seen);
	*packets = s->d->wire_count + (rings ? rings_packets(s) : 0);
	/* Go-back-N is wasteful, not endless. (What is sent besides the lanes over rings is not counted.) */
	DUO_CHECK(s->d, s->dying || rings || *packets < 40 * s->useful_packets + 1000);
	trace = s->d->trace;
	duo_destroy(s->d);
	for (uint32_t i = 0; i < s->lane_count; i++)
		lane_free(&s->lanes[i]);
	current = NULL;
	free(s);
	return trace;
}

/* A few reloads, or many. */
static uint32_t reload_of(uint64_t seed)
{
	return RELOAD_OF_MIN + (uint32_t)(seed * seed % RELOAD_OF_MAX);
}

static bool is_next_word(int *argc, char ***argv, const char *word)
{
	if (*argc < 2 || strcmp((*argv)[1], word))
		return false;
	--*argc;
	++*argv;
	return true;
}

int main(int argc, char **argv)
{
	program = argv[0];
	veroce = is_next_word(&argc, &argv, "veroce");
	rings = is_next_word(&argc, &argv, "rings");
	reloads = is_next_word(&argc, &argv, "reloads");

	const char *env = getenv("VERBENA_SEED");
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : env ? strtoull(env, NULL, 0) : 1;
	uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 0) : argc > 1 || env ? 1 : SEEDS;
	struct rings_seen seen = {0};
	uint64_t total = 0;

	duo_fail_hook = say_how_to_repeat;
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (uint64_t i = 0; i < count; i++) {
		uint64_t packets;

		current_seed = seed + i;
		printf("seed %" PRIu64 ": ", current_seed);
		fflush(stdout);
		uint64_t trace = run(current_seed, 0, &packets, &seen);

		printf("%" PRIu64 " packets, trace %016" PRIx64 "\n", packets, trace);
		total += packets;
		if (reloads && run(current_seed, reload_of(current_seed), &packets, &seen) != trace) {
			fprintf(stderr, "a nic that was loaded is another one\n");
			say_how_to_repeat();
		}
		if (i % 8 == 0 && !reloads && run(current_seed, 0, &packets, &seen) != trace) {
			fprintf(stderr, "the same seed gave another trace\n");
			say_how_to_repeat();
		}
	}
	printf("%" PRIu64 " seeds, %" PRIu64 " packets\n", count, total);
	return rings && count >= RINGS_SEEDS_MIN && !rings_saw_all(&seen, veroce);
}
