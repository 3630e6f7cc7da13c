/* SPDX-License-Identifier: BSD-2-Clause */
/* The pipe and its ends. */
#include "iwarp/pipe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/stream_event.h"
#include "mem/sge.h"

static void must(bool claim, const char *what)
{
	if (claim)
		return;
	fprintf(stderr, "pipe: %s\n", what);
	abort();
}

/* ---- ends ---------------------------------------------------------------------------------------- */

static void end_open(struct pipe_end *e, const struct pipe_config *c, enum pipe_side side)
{
	struct nic_config *nc = calloc(1, sizeof(*nc));
	struct qp_init init = {.type = QPT_RC, .owner = e};
	size_t mem_bytes = c->mem_bytes ? c->mem_bytes : PIPE_MEM;

	e->heap = (struct heap)HEAP_INIT;
	nc->alloc = heap_alloc(&e->heap);
	nc->transport.protocol = PROTOCOL_IWARP;
	nc->transport.iwarp_rfc7306 = c->rfc7306;
	nc->secret[0] = (uint8_t)(side + 1);
	e->nic = nic_create(nc);
	free(nc);
	must(e->nic && !nic_pd_alloc(e->nic, &e->pd) && !nic_cq_create(e->nic, PIPE_CQES, e, &e->cq), "objects");
	e->mem = calloc(1, mem_bytes);
	must(!nic_mr_reg(e->nic, e->pd, (struct mr_range){.addr = e->mem, .length = mem_bytes, .iova = PIPE_IOVA},
			 MR_LOCAL_WRITE | MR_REMOTE_WRITE | MR_REMOTE_READ | (c->rfc7306 ? MR_REMOTE_ATOMIC : 0u),
			 &e->mr),
	     "region");
	if (c->srq && side == PIPE_B)
		must(!nic_srq_create(e->nic, e->pd, &(struct srq_init){.max_wr = PIPE_WRS, .max_sge = 4, .owner = e},
				     &e->srq),
		     "SRQ");
	init.pd = e->pd;
	init.send_cq = e->cq;
	init.recv_cq = e->cq;
	init.srq = e->srq;
	init.cap = (struct qp_cap){.max_send_wr = PIPE_WRS,
				   .max_recv_wr = c->recv_wrs ? c->recv_wrs : PIPE_WRS,
				   .max_send_sge = 4,
				   .max_recv_sge = 4,
				   .max_inline = 128};
	must(!nic_qp_create(e->nic, &init, &e->qp), "QP");
	must(!nic_qp_modify(e->nic, e->qp,
			    &(struct qp_attr){
				    .state = QPS_INIT, .port = 1, .access = e->mr->access & ~(uint32_t)MR_LOCAL_WRITE},
			    QPA_STATE | QPA_PORT | QPA_ACCESS_FLAGS, 0),
	     "INIT");
}

static void end_start(struct pipe *p, enum pipe_side side, const struct pipe_config *c)
{
	struct pipe_end *e = &p->end[side];
	uint8_t reads = c->reads ? c->reads : 4;
	struct stream_start s = {.flow.flow_label = (uint32_t)side + 1,
				 .room_bytes = PIPE_ROOM,
				 .segment_bytes = c->segment_bytes ? c->segment_bytes : 1448,
				 .crc = !c->no_crc,
				 .send_markers = c->markers,
				 .receive_markers = c->markers,
				 .sends_first = c->sends_first && side == PIPE_A,
				 .hears_first = c->hears_first && side == PIPE_B,
				 .max_rd_atomic = reads,
				 .max_dest_rd_atomic = reads};

	e->granted = PIPE_ROOM;
	must(!nic_stream_start(e->nic, e->qp, &s, p->now_ns), "start");
}

void pipe_open(struct pipe *p, const struct pipe_config *c)
{
	memset(p, 0, sizeof(*p));
	prng_init(&p->rng, c->seed);
	p->piece_max = c->piece_max;
	p->places = c->places;
	p->now_ns = 1000;
	for (int i = 0; i < PIPE_SIDES; i++)
		end_open(&p->end[i], c, (enum pipe_side)i);
	for (int i = 0; i < PIPE_SIDES; i++)
		end_start(p, (enum pipe_side)i, c);
}

void pipe_close(struct pipe *p)
{
	for (int i = 0; i < PIPE_SIDES; i++) {
		struct pipe_end *e = &p->end[i];

		if (e->qp)
			nic_qp_destroy(e->nic, e->qp);
		nic_destroy(e->nic);
		must(!e->heap.blocks && !e->heap.bytes, "memory is left");
		free(e->mem);
		free(e->wire);
	}
}

/* ---- the wire ------------------------------------------------------------------------------------ */

static void wire_add(struct pipe_end *e, const uint8_t *data, size_t len)
{
	if (e->wire_at + e->wire_len + len > e->wire_room) {
		/* Bytes move only when there is no room behind them, else pieces of one byte would move all for each.
		 */
		uint8_t *wire;

		e->wire_room = 2 * (e->wire_len + len);
		wire = malloc(e->wire_room);
		must(wire, "memory");
		if (e->wire_len)
			memcpy(wire, e->wire + e->wire_at, e->wire_len);
		free(e->wire);
		e->wire = wire;
		e->wire_at = 0;
	}
	if (len)
		memcpy(e->wire + e->wire_at + e->wire_len, data, len);
	e->wire_len += len;
}

void pipe_inject(struct pipe *p, enum pipe_side side, const uint8_t *data, size_t len)
{
	wire_add(&p->end[side], data, len);
}

static bool output(struct pipe *p, struct pipe_end *e)
{
	struct pkt burst[16];
	size_t n = nic_output(e->nic, burst, 16, p->now_ns);

	for (size_t i = 0; i < n; i++) {
		must(!e->fin, "something behind a FIN");
		must(burst[i].flow->flow_label == (uint32_t)(e - p->end) + 1, "another stream");
		if (pkt_stream_kind(&burst[i]) == STREAM_FIN) {
			e->fin = true;
			continue;
		}
		must(!burst[i].event && burst[i].len, "bytes");
		/* A Terminate may exceed the room by itself. */
		must(burst[i].len <= e->granted + 128, "more than there is room for");
		e->granted = e->granted > burst[i].len ? e->granted - burst[i].len : 0;
		e->sent_bytes += burst[i].len;
		wire_add(e, burst[i].data, burst[i].len);
	}
	return n > 0;
}

/* A packet of the stream to an end. */
static void give(struct pipe *p, struct pipe_end *to, struct pkt pkt)
{
	struct flow flow = {.flow_label = (uint32_t)(to - p->end) + 1};

	pkt.flow = &flow;
	if (to->qp)
		nic_stream_input(to->nic, to->qp, &pkt, p->now_ns);
}

static void say(struct pipe *p, struct pipe_end *to, struct stream_event event)
{
	give(p, to, (struct pkt){.event = &event});
}

/* Puts the first of `len` bytes where they belong, if that is known: their number. */
static size_t put(struct pipe *p, struct pipe_end *to, const uint8_t *from, size_t len)
{
	uint8_t *place = NULL;
	size_t most = p->places && to->qp ? nic_stream_place(to->nic, to->qp, &place) : 0;

	if (!most || prng_below(&p->rng, 500) == 0)
		return 0; /* a back end need not */
	if (most < len)
		len = most;
	must(place >= to->mem && place + most <= to->mem + to->mr->length, "a place outside of the region");
	memcpy(place, from, len);
	p->placed += len;
	return len;
}

void pipe_reset(struct pipe *p, enum pipe_side to)
{
	say(p, &p->end[to], (struct stream_event){.kind = STREAM_RESET});
}

/* A piece from `from` to the other end, in memory of its own, so that a read beyond it is seen. */
static bool deliver(struct pipe *p, struct pipe_end *from, struct pipe_end *to)
{
	size_t most = p->piece_max ? 1 + (size_t)prng_below(&p->rng, p->piece_max) : from->wire_len;
	size_t n = most < from->wire_len ? most : from->wire_len;
	size_t placed;
	uint8_t *piece;

	if (!from->wire_len) {
		if (!from->fin || from->fin_taken)
			return false;
		from->fin_taken = true;
		say(p, to, (struct stream_event){.kind = STREAM_FIN});
		return true;
	}
	placed = put(p, to, from->wire + from->wire_at, n);
	piece = malloc(n - placed + !(n - placed));
	memcpy(piece, from->wire + from->wire_at + placed, n - placed);
	from->wire_at += n;
	from->wire_len -= n;
	give(p, to, (struct pkt){.data = piece, .len = (uint32_t)(n - placed), .far_bytes = (uint16_t)placed});
	free(piece);
	from->owed += (uint32_t)n;
	if (!from->wire_len || prng_below(&p->rng, 4) == 0) {
		uint32_t room = from->owed;

		from->owed = 0;
		from->granted += room;
		say(p, from, (struct stream_event){.kind = STREAM_ROOM, .room = room});
	}
	return true;
}

bool pipe_step(struct pipe *p)
{
	bool moved = false;

	p->now_ns += 1000;
	for (int i = 0; i < PIPE_SIDES; i++)
		moved |= output(p, &p->end[i]);
	for (int i = 0; i < PIPE_SIDES; i++)
		moved |= deliver(p, &p->end[i], &p->end[!i]);
	return moved;
}

void pipe_run(struct pipe *p)
{
	for (uint64_t steps = 0; pipe_step(p); steps++)
		must(steps < 20000000, "no end");
}

/* ---- work ---------------------------------------------------------------------------------------- */

void pipe_post(struct pipe *p, enum pipe_side side, const struct pipe_wr *wr)
{
	struct pipe_end *e = &p->end[side], *peer = &p->end[!side];
	struct sq *sq = qp_sq(e->qp);
	struct send_wqe *w = sq_slot(sq, 0);

	must(w, "send queue full");
	w->wr_id = wr->wr_id;
	w->opcode = (uint8_t)wr->opcode;
	w->flags = (uint8_t)(wr->flags | (wr->quiet ? 0 : WR_SIGNALED));
	w->length = wr->len;
	w->imm_or_key = wr->imm_or_key;
	w->rkey = wr->rkey ? wr->rkey : peer->mr->key;
	w->remote_va = wr->remote_va ? wr->remote_va : PIPE_IOVA + wr->to;
	if (wr->opcode == WR_CMP_SWAP || wr->opcode == WR_FETCH_ADD) {
		w->atomic.compare_add = wr->compare_add;
		w->atomic.swap = wr->swap;
	}
	if (wr->flags & WR_INLINE) {
		w->num_sge = 0;
		memcpy(send_wqe_inline(w), e->mem + wr->at, wr->len);
	} else {
		/* Two elements where there is something to cut, but a READ has one. */
		uint32_t first = wr->opcode == WR_READ ? wr->len : wr->len / 3, key = wr->lkey ? wr->lkey : e->mr->key;

		w->num_sge = 2;
		w->sge[0] = (struct wqe_sge){PIPE_IOVA + wr->at, first, key};
		w->sge[1] = (struct wqe_sge){PIPE_IOVA + wr->at + first, wr->len - first, key};
	}
	sq_post(sq, 1);
	nic_doorbell(e->nic, e->qp);
}

void pipe_post_recv(struct pipe *p, enum pipe_side side, uint64_t wr_id, uint32_t at, uint32_t len)
{
	struct pipe_end *e = &p->end[side];
	struct rq *rq = e->srq ? &e->srq->rq : qp_rq(e->qp);
	struct recv_wqe *w = rq_slot(rq);

	must(w, "receive queue full");
	w->wr_id = wr_id;
	w->num_sge = 2;
	w->length = len;
	w->sge[0] = (struct wqe_sge){PIPE_IOVA + at, len / 2, e->mr->key};
	w->sge[1] = (struct wqe_sge){PIPE_IOVA + at + len / 2, len - len / 2, e->mr->key};
	rq_post(rq, w);
}

bool pipe_poll(struct pipe *p, enum pipe_side side, struct cqe *out)
{
	struct cq *cq = p->end[side].cq;
	const struct cqe *e = cq_peek(cq, 0);

	if (!e)
		return false;
	*out = *e;
	cq_consume(cq, 1);
	return true;
}

void pipe_expect(struct pipe *p, enum pipe_side side, uint64_t wr_id, enum wc_status status)
{
	struct cqe e;

	must(pipe_poll(p, side, &e), "a completion is missing");
	if (e.wr_id == wr_id && e.status == status)
		return;
	fprintf(stderr, "pipe: side %d: completion %llu with status %u, not %llu with %u\n", side,
		(unsigned long long)e.wr_id, e.status, (unsigned long long)wr_id, status);
	abort();
}

int pipe_event(struct pipe *p, enum pipe_side side)
{
	struct async_event e;

	return nic_next_async_event(p->end[side].nic, &e) ? (int)e.type : -1;
}
