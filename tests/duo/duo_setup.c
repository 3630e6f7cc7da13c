/* SPDX-License-Identifier: BSD-2-Clause */
/* Hosts, memory, QPs and work requests of a duo. */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "duo/duo.h"
#include "duo/duo_channel.h"

enum { CANARY_BYTES = 128, CANARY = 0xc5, STEPS = 5 * 1000 * 1000, TICK_SHIFT = 18 };

static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

/* ---- memory ------------------------------------------------------------------------------------------ */

struct duo_buf *duo_buf(struct duo_host *h, uint64_t len, uint32_t access)
{
	struct duo *d = h->duo;
	struct duo_buf *b = must(calloc(1, sizeof(*b)));
	uint8_t *mem = must(aligned_alloc(64, (2 * CANARY_BYTES + len + 63) / 64 * 64));

	memset(mem, CANARY, 2 * CANARY_BYTES + len);
	*b = (struct duo_buf){
		.host = h,
		.p = mem + CANARY_BYTES,
		.len = len,
		.iova = ++d->buf_count << 32 | 0x10000,
		.next = d->bufs,
	};
	d->bufs = b;
	memset(b->p, 0, len);
	DUO_CHECK(d, !nic_mr_reg(h->nic, h->pd, (struct mr_range){b->p, len, b->iova}, access, &b->mr));
	return b;
}

void duo_buf_free(struct duo_buf *b)
{
	struct duo_buf **at = &b->host->duo->bufs;

	while (*at != b)
		at = &(*at)->next;
	*at = b->next;
	duo_buf_close(b);
	free(b->p - CANARY_BYTES);
	free(b);
}

void duo_buf_close(struct duo_buf *b)
{
	if (!b->mr)
		return;
	b->key = b->mr->key;
	nic_mr_dereg(b->host->nic, b->mr);
	b->mr = NULL;
}

uint32_t duo_key(const struct duo_buf *b)
{
	return b->mr ? b->mr->key : b->key;
}

/* Eight bytes of a pattern, the first in the low bits. Each stands for itself: buffers are large, and there are many.
 */
static uint64_t pattern(uint64_t seed, uint64_t word)
{
	uint64_t x = (seed + 1) * 0x9e3779b97f4a7c15 + word * 0xbf58476d1ce4e5b9;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

uint8_t duo_filled(uint64_t seed, uint64_t i)
{
	return (uint8_t)(pattern(seed, i / 8) >> 8 * (i % 8));
}

void duo_fill(struct duo_buf *b, uint64_t seed)
{
	uint64_t i = 0;

	for (; i + 8 <= b->len; i += 8) {
		uint64_t word = htole64(pattern(seed, i / 8));

		memcpy(b->p + i, &word, sizeof(word));
	}
	for (; i < b->len; i++)
		b->p[i] = duo_filled(seed, i);
}

struct sge duo_sge(const struct duo_buf *b, uint64_t off, uint32_t len)
{
	return (struct sge){.addr = b->iova + off, .len = len, .lkey = duo_key(b)};
}

void duo_check_canaries(const struct duo *d)
{
	for (const struct duo_buf *b = d->bufs; b; b = b->next) {
		for (int i = 0; i < CANARY_BYTES; i++) {
			DUO_CHECK(d, b->p[-1 - i] == CANARY);
			DUO_CHECK(d, b->p[b->len + (uint64_t)i] == CANARY);
		}
	}
}

/* ---- set-up -------------------------------------------------------------------------------------------- */

static void host_create(struct duo *d, enum duo_side side, void (*tweak)(struct nic_config *, enum duo_side))
{
	struct duo_host *h = &d->host[side];
	struct nic_config c = {
		.qpn_slot = 5 + side,
		.transport.protocol = PROTOCOL_ROCEV2,
		.transport.paths = 1,
		.transport.window_bytes = 256 * 1024,
		.transport.ack_delay_ns = 4000,
		.gid_count = DUO_GIDS,
	};
	struct prng r;

	for (uint16_t i = 0; i < PATHS_MAX; i++) {
		c.transport.sport_ipv4[i] = (uint16_t)(DUO_SPORT_IPV4 + i);
		c.transport.sport_ipv6[i] = (uint16_t)(DUO_SPORT_IPV6 + i);
	}
	prng_init(&r, d->seed * 2 + side);
	for (size_t i = 0; i < sizeof(c.secret); i++)
		c.secret[i] = (uint8_t)prng_next(&r);
	c.gids[DUO_GID_IPV4] = (struct nic_gid){
		.raw = {[10] = 0xff, 0xff, 10, 0, 0, (uint8_t)(1 + side)},
		.ifindex = 1,
		.ip_mtu = 9000,
	};
	c.gids[DUO_GID_IPV6] = (struct nic_gid){
		.raw = {0xfd, [15] = (uint8_t)(1 + side)},
		.ifindex = 1,
		.ip_mtu = 9000,
	};
	memcpy(h->gids, c.gids, sizeof(h->gids));
	h->duo = d;
	h->side = side;
	h->heap = (struct heap)HEAP_INIT;
	h->alloc = heap_alloc(&h->heap);
	c.alloc = h->alloc;
	if (tweak)
		tweak(&c, side);
	h->slot = c.qpn_slot;
	h->config = c;
	h->nic = must(nic_create(&c));
	DUO_CHECK(d, !nic_pd_alloc(h->nic, &h->pd));
}

void duo_same_host(struct nic_config *c)
{
	for (int g = 0; g < DUO_GIDS; g++) {
		c->gids[DUO_GIDS + g] = c->gids[g];
		c->gids[DUO_GIDS + g].raw[15] ^= (1 + DUO_A) ^ (1 + DUO_B);
	}
	c->gid_count = 2 * DUO_GIDS;
}

struct duo *duo_create(uint64_t seed, void (*tweak)(struct nic_config *, enum duo_side))
{
	struct duo *d = must(calloc(1, sizeof(*d)));

	d->seed = seed;
	d->now_ns = DUO_START_NS;
	d->latency_ns = DUO_LATENCY_NS;
	d->steps_left = STEPS;
	d->burst = PKT_TRAIN_MAX + NIC_TX_ANSWERS;
	d->batch = 64;
	prng_init(&d->prng, seed);
	prng_init(&d->reload_prng, ~seed);
	if (event_queue_init(&d->flights, TICK_SHIFT))
		abort();
	host_create(d, DUO_A, tweak);
	host_create(d, DUO_B, tweak);
	return d;
}

void duo_qp_destroy(struct duo_qp *q)
{
	struct nic *nic = q->host->nic;
	struct duo_qp **at = &q->host->duo->qps;

	while (*at != q)
		at = &(*at)->next;
	*at = q->next;
	nic_qp_destroy(nic, q->qp);
	if (!q->lent_cq) {
		DUO_CHECK(q->host->duo, !nic_cq_destroy(nic, q->send_cq));
		DUO_CHECK(q->host->duo, !nic_cq_destroy(nic, q->recv_cq));
	}
	free(q->sent.e);
	free(q->received.e);
	free(q);
}

void duo_destroy(struct duo *d)
{
	duo_check_canaries(d);
	duo_pass_all(d);
	duo_ground(d);
	while (d->qps)
		duo_qp_destroy(d->qps);
	while (d->bufs)
		duo_buf_free(d->bufs);
	if (d->rings)
		duo_rings_close(d);
	for (int s = 0; s < DUO_SIDES; s++) {
		struct duo_host *h = &d->host[s];

		nic_destroy(h->nic);
		DUO_CHECK(d, h->heap.blocks == 0 && h->heap.bytes == 0);
		free(h->events);
		free(h->cq_events);
	}
	event_queue_fini(&d->flights);
	free(d->wire);
	free(d);
}

struct duo_options duo_options(void)
{
	return (struct duo_options){
		.type = QPT_RC,
		.gid = DUO_GID_IPV4,
		.mtu = 1024,
		.psn = {0x123456, 0x654321},
		.access = MR_REMOTE_ACCESS | MR_FLUSH_PERSISTENT,
		.max_rd_atomic = 16,
		.max_dest_rd_atomic = 16,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 12,
		.qkey = 0x11111111,
		.cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 4, .max_recv_sge = 4, .max_inline = 64},
		.cqe = 256,
	};
}

void duo_move(struct duo_host *h, uint8_t gid, uint8_t last)
{
	uint8_t from[16];

	memcpy(from, h->gids[gid].raw, sizeof(from));
	h->gids[gid].raw[15] = last;
	h->config.gids[gid] = h->gids[gid];
	nic_set_gids(h->nic, h->config.gids, h->config.gid_count);
	nic_roam(h->nic, from, h->gids[gid].raw, duo_now(h));
}

struct ah_attr duo_av(const struct duo_host *from, const struct duo_host *to, uint8_t gid)
{
	struct ah_attr av = {.sgid_index = gid, .hop_limit = 64, .port = 1, .is_global = 1};

	(void)from;
	memcpy(av.dgid, to->gids[gid].raw, 16);
	return av;
}

struct duo_qp *duo_qp_create(struct duo_host *h, const struct duo_options *o)
{
	struct duo *d = h->duo;
	struct duo_qp *q = must(calloc(1, sizeof(*q)));

	q->host = h;
	q->opt = *o;
	q->srq = o->srq[h->side];
	q->send_cq = q->recv_cq = o->cq[h->side];
	q->manual = q->lent_cq = q->send_cq;
	if (!q->lent_cq) {
		DUO_CHECK(d, !nic_cq_create(h->nic, o->cqe, q, &q->send_cq));
		DUO_CHECK(d, !nic_cq_create(h->nic, o->cqe, q, &q->recv_cq));
	}

	struct qp_init init = {
		.type = o->type,
		.pd = h->pd,
		.send_cq = q->send_cq,
		.recv_cq = q->recv_cq,
		.srq = q->srq,
		.cap = o->cap,
		.sq_sig_all = o->sq_sig_all,
		.owner = q,
	};

	DUO_CHECK(d, !nic_qp_create(h->nic, &init, &q->qp));
	q->qpn = qp_number(q->qp);
	q->next = d->qps;
	d->qps = q;
	return q;
}

int duo_qp_to_state(struct duo_qp *q, enum qp_state state)
{
	struct qp_attr attr = {.state = state};

	return nic_qp_modify(q->host->nic, q->qp, &attr, QPA_STATE, duo_now(q->host));
}

int duo_qp_to_init(struct duo_qp *q)
{
	struct qp_attr attr = {
		.state = QPS_INIT,
		.port = 1,
		.access = q->opt.access,
		.qkey = q->opt.qkey,
	};
	uint32_t mask = QPA_STATE | QPA_PKEY_INDEX | QPA_PORT;

	mask |= q->opt.type == QPT_UD ? QPA_QKEY : QPA_ACCESS_FLAGS;
	return nic_qp_modify(q->host->nic, q->qp, &attr, mask, duo_now(q->host));
}

int duo_qp_to_rtr(struct duo_qp *q, const struct duo_qp *peer)
{
	struct qp_attr attr = {
		.state = QPS_RTR,
		.path_mtu_bytes = q->opt.mtu,
		.max_dest_rd_atomic = q->opt.max_dest_rd_atomic,
		.min_rnr_timer = q->opt.min_rnr_timer,
	};
	uint32_t mask = QPA_STATE;

	if (q->opt.type != QPT_UD) {
		attr.av = duo_av(q->host, peer->host, q->opt.gid);
		attr.dest_qpn = peer->qpn;
		attr.rq_psn = peer->opt.psn[peer->host->side];
		mask |= QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN;
	}
	if (q->opt.type == QPT_RC)
		mask |= QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER;
	return nic_qp_modify(q->host->nic, q->qp, &attr, mask, duo_now(q->host));
}

int duo_qp_to_rts(struct duo_qp *q)
{
	struct qp_attr attr = {
		.state = QPS_RTS,
		.sq_psn = q->opt.psn[q->host->side],
		.timeout = q->opt.timeout,
		.retry_cnt = q->opt.retry_cnt,
		.rnr_retry = q->opt.rnr_retry,
		.max_rd_atomic = q->opt.max_rd_atomic,
	};
	uint32_t mask = QPA_STATE | QPA_SQ_PSN;

	if (q->opt.type == QPT_RC)
		mask |= QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_MAX_RD_ATOMIC;
	return nic_qp_modify(q->host->nic, q->qp, &attr, mask, duo_now(q->host));
}

struct duo_pair duo_connect(struct duo *d, const struct duo_options *o)
{
	struct duo_pair pair = {
		.a = duo_qp_create(&d->host[DUO_A], o),
		.b = duo_qp_create(&d->host[DUO_B], o),
	};

	pair.a->peer = pair.b;
	pair.b->peer = pair.a;
	DUO_CHECK(d, !duo_qp_to_init(pair.a) && !duo_qp_to_init(pair.b));
	DUO_CHECK(d, !duo_qp_to_rtr(pair.a, pair.b) && !duo_qp_to_rtr(pair.b, pair.a));
	DUO_CHECK(d, !duo_qp_to_rts(pair.a) && !duo_qp_to_rts(pair.b));
	return pair;
}

/* ---- work ------------------------------------------------------------------------------------------------ */

struct duo_wr duo_send_wr(uint64_t wr_id, const struct duo_buf *b, uint64_t off, uint32_t len)
{
	return (struct duo_wr){
		.opcode = WR_SEND,
		.flags = WR_SIGNALED,
		.wr_id = wr_id,
		.sge = {duo_sge(b, off, len)},
		.num_sge = 1,
	};
}

static struct duo_wr remote_wr(enum wr_opcode opcode, uint64_t wr_id, const struct duo_buf *b, uint64_t off,
			       uint32_t len, const struct duo_buf *remote, uint64_t remote_off)
{
	struct duo_wr w = duo_send_wr(wr_id, b, off, len);

	w.opcode = opcode;
	w.remote_va = remote->iova + remote_off;
	w.rkey = remote->mr->key;
	return w;
}

struct duo_wr duo_write_wr(uint64_t wr_id, const struct duo_buf *b, uint64_t off, uint32_t len,
			   const struct duo_buf *remote, uint64_t remote_off)
{
	return remote_wr(WR_WRITE, wr_id, b, off, len, remote, remote_off);
}

struct duo_wr duo_read_wr(uint64_t wr_id, const struct duo_buf *b, uint64_t off, uint32_t len,
			  const struct duo_buf *remote, uint64_t remote_off)
{
	return remote_wr(WR_READ, wr_id, b, off, len, remote, remote_off);
}

struct duo_wr duo_fetch_add_wr(uint64_t wr_id, const struct duo_buf *b, uint64_t off, const struct duo_buf *remote,
			       uint64_t remote_off, uint64_t add)
{
	struct duo_wr w = remote_wr(WR_FETCH_ADD, wr_id, b, off, 8, remote, remote_off);

	w.compare_add = add;
	return w;
}

struct duo_wr duo_cmp_swap_wr(uint64_t wr_id, const struct duo_buf *b, uint64_t off, const struct duo_buf *remote,
			      uint64_t remote_off, uint64_t compare, uint64_t swap)
{
	struct duo_wr w = remote_wr(WR_CMP_SWAP, wr_id, b, off, 8, remote, remote_off);

	w.compare_add = compare;
	w.swap = swap;
	return w;
}

struct duo_wr duo_atomic_write_wr(uint64_t wr_id, const void *value, const struct duo_buf *remote, uint64_t remote_off)
{
	return (struct duo_wr){
		.opcode = WR_ATOMIC_WRITE,
		.flags = WR_SIGNALED | WR_INLINE,
		.wr_id = wr_id,
		.inline_data = value,
		.inline_len = ATOMIC_WRITE_BYTES,
		.remote_va = remote->iova + remote_off,
		.rkey = duo_key(remote),
	};
}

struct duo_wr duo_flush_wr(uint64_t wr_id, const struct duo_buf *remote, uint64_t remote_off, uint32_t len)
{
	return (struct duo_wr){
		.opcode = WR_FLUSH,
		.flags = WR_SIGNALED,
		.wr_id = wr_id,
		.remote_va = remote->iova + remote_off,
		.rkey = duo_key(remote),
		.flush_bytes = len,
		.placement = FETH_GLOBAL,
	};
}

/* As verbs does it at post time. */
static void fill_slot(struct duo_qp *q, struct send_wqe *s, const struct duo_wr *w)
{
	*s = (struct send_wqe){
		.wr_id = w->wr_id,
		.opcode = (uint8_t)w->opcode,
		.flags = (uint8_t)(w->flags | (q->opt.sq_sig_all ? WR_SIGNALED : 0)),
		.imm_or_key = w->imm_or_key,
		.rkey = w->rkey,
		.remote_va = w->remote_va,
	};
	if (w->opcode == WR_CMP_SWAP || w->opcode == WR_FETCH_ADD) {
		s->atomic.compare_add = w->compare_add;
		s->atomic.swap = w->swap;
	}
	if (w->opcode == WR_BIND_MW)
		s->bind = w->bind;
	if (w->opcode == WR_FLUSH) {
		s->flush.bytes = w->flush_bytes;
		s->flush.placement = w->placement;
		s->flush.selectivity = w->selectivity;
	}
	if (w->flow) {
		s->ud.flow = *w->flow;
		s->ud.dqpn = w->dqpn;
		s->ud.qkey = w->qkey;
	}
	if (w->flags & WR_INLINE) {
		s->length = w->inline_len;
		memcpy(send_wqe_inline(s), w->inline_data, w->inline_len);
		return;
	}
	s->num_sge = (uint16_t)w->num_sge;
	s->length = (uint32_t)sge_total(w->sge, w->num_sge);
	memcpy(s->sge, w->sge, w->num_sge * sizeof(w->sge[0]));
}

bool duo_post_chain(struct duo_qp *q, const struct duo_wr *w, uint32_t count)
{
	struct sq *sq = qp_sq(q->qp);

	for (uint32_t i = 0; i < count; i++) {
		struct send_wqe *s = sq_slot(sq, i);

		if (!s)
			return false;
		DUO_CHECK(q->host->duo, w[i].num_sge <= sq->max_sge);
		fill_slot(q, s, &w[i]);
	}
	sq_post(sq, count);
	nic_doorbell(q->host->nic, q->qp);
	return true;
}

bool duo_post(struct duo_qp *q, const struct duo_wr *w)
{
	return duo_post_chain(q, w, 1);
}

void duo_must_post(struct duo_qp *q, struct duo_wr w)
{
	DUO_CHECK(q->host->duo, duo_post(q, &w));
}

void duo_do_at(struct duo_qp *q, struct duo_wr w, const char *file, int line)
{
	duo_must_post(q, w);
	duo_idle(q->host->duo);
	duo_expect_at(q->host->duo, &q->sent, w.wr_id, WC_SUCCESS, file, line);
}

static bool post_to(struct rq *rq, uint64_t wr_id, const struct sge *sge, uint32_t count)
{
	struct recv_wqe *w = rq_slot(rq);

	if (!w)
		return false;
	w->wr_id = wr_id;
	w->num_sge = count;
	w->length = sge_total(sge, count);
	if (count)
		memcpy(w->sge, sge, count * sizeof(*sge));
	rq_post(rq, w);
	return true;
}

bool duo_post_recv(struct duo_qp *q, uint64_t wr_id, const struct sge *sge, uint32_t count)
{
	DUO_CHECK(q->host->duo, count <= qp_rq(q->qp)->max_sge);
	if (!post_to(qp_rq(q->qp), wr_id, sge, count))
		return false;
	if (qp_state(q->qp) == QPS_ERR)
		nic_doorbell(q->host->nic, q->qp);
	return true;
}

bool duo_post_srq(struct srq *srq, uint64_t wr_id, const struct sge *sge, uint32_t count)
{
	return post_to(&srq->rq, wr_id, sge, count);
}

bool duo_recv(struct duo_qp *q, uint64_t wr_id, const struct duo_buf *b, uint64_t off, uint32_t len)
{
	struct sge sge = duo_sge(b, off, len);

	return duo_post_recv(q, wr_id, &sge, 1);
}
