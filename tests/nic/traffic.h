/* SPDX-License-Identifier: BSD-2-Clause */
/* Two hosts with objects of each kind and traffic of one type, for tests of what is saved and loaded. */
#pragma once

#include "duo/duo.h"

enum { TRAFFIC_BYTES = 16384, TRAFFIC_MESSAGE = 1500, TRAFFIC_WRS = 16, TRAFFIC_RECV_BYTES = 2048 };

struct traffic {
	const char *name;
	enum qp_type type;
	enum protocol protocol;
	uint32_t drop_ppm;
	bool srq;
};

static const struct traffic traffics[] = {
	{"rc_rocev2", QPT_RC, PROTOCOL_ROCEV2, 30000, false}, {"rc_veroce", QPT_RC, PROTOCOL_VEROCE, 100000, false},
	{"rc_auto", QPT_RC, PROTOCOL_AUTO, 30000, false},     {"rc_srq", QPT_RC, PROTOCOL_VEROCE, 100000, true},
	{"uc", QPT_UC, PROTOCOL_ROCEV2, 30000, false},        {"ud", QPT_UD, PROTOCOL_ROCEV2, 30000, false},
};

enum { TRAFFICS = sizeof(traffics) / sizeof(*traffics) };

static const struct traffic *traffic_now;

static inline void traffic_config(struct nic_config *c, enum duo_side side)
{
	(void)side;
	c->transport.protocol = traffic_now->protocol;
	c->transport.paths = 4;
}

/* Objects that have no part in the traffic: a window that is bound, a group, a datagram that waits. */
static inline void traffic_others(struct duo_host *h, struct duo_qp *q, const struct duo_buf *buf)
{
	static const uint8_t group[16] = {[10] = 0xff, [11] = 0xff, [12] = 239, [15] = 3};
	static const uint8_t mad[256] = "datagram";
	struct flow flow = duo_flow(h->duo, !h->side, DUO_GID_IPV4);
	struct xrcd *xrcd;
	struct srq *srq;
	struct mw *mw;
	struct cq *cq;

	DUO_CHECK(h->duo, !nic_mw_alloc(h->nic, h->pd, MW_TYPE_2, &mw));
	DUO_CHECK(h->duo, !nic_mw_alloc(h->nic, h->pd, MW_TYPE_1, &mw));
	if (q->opt.type != QPT_UD) {
		struct duo_wr bind = {.opcode = WR_BIND_MW,
				      .rkey = nic_mw_draw_key(h->nic),
				      .bind = {.addr = buf->iova + 64,
					       .length = 128,
					       .handle = mw->anchor.key,
					       .lkey = buf->mr->key,
					       .access = MR_REMOTE_READ}};

		DUO_CHECK(h->duo, duo_post(q, &bind));
	} else {
		DUO_CHECK(h->duo, !nic_mcast_attach(h->nic, q->qp, group));
	}
	DUO_CHECK(h->duo, !nic_cq_create(h->nic, 4, NULL, &cq) && !nic_xrcd_alloc(h->nic, &xrcd));
	DUO_CHECK(h->duo,
		  !nic_srq_create(h->nic, h->pd, &(struct srq_init){.max_wr = 4, .xrcd = xrcd, .cq = cq}, &srq));
	DUO_CHECK(h->duo, nic_mad_send(h->nic, &flow, mad));
}

/* All is posted. */
static inline struct duo *traffic_start(const struct traffic *t, uint64_t seed)
{
	static const enum wr_opcode ops[] = {WR_SEND, WR_WRITE, WR_READ, WR_WRITE_IMM};
	struct duo_options o = duo_options();
	struct duo_buf *buf[DUO_SIDES];
	struct duo *d;

	traffic_now = t;
	d = duo_create(seed, traffic_config);
	o.type = t->type;
	o.qkey = 7;
	o.cap.max_recv_wr = TRAFFIC_WRS;
	for (int s = 0; s < DUO_SIDES; s++) {
		struct duo_host *h = &d->host[s];

		d->faults[s].drop_ppm = t->drop_ppm;
		if (t->srq)
			DUO_CHECK(d,
				  !nic_srq_create(h->nic, h->pd, &(struct srq_init){.max_wr = TRAFFIC_WRS}, &o.srq[s]));
	}

	struct duo_pair p = duo_connect(d, &o);

	for (int s = 0; s < DUO_SIDES; s++)
		buf[s] = duo_buf(&d->host[s], TRAFFIC_BYTES,
				 MR_LOCAL_WRITE | MR_REMOTE_WRITE | MR_REMOTE_READ | MR_REMOTE_ATOMIC | MR_MW_BIND);
	for (int s = 0; s < DUO_SIDES; s++) {
		struct duo_qp *q = s == DUO_A ? p.a : p.b;
		struct ah_attr av = duo_av(q->host, &d->host[!s], DUO_GID_IPV4);
		struct sge sge = duo_sge(buf[s], 8192, TRAFFIC_RECV_BYTES);
		struct flow flow;
		uint32_t ip_mtu;

		DUO_CHECK(d, !nic_resolve(q->host->nic, &av, &flow, &ip_mtu));
		traffic_others(q->host, q, buf[s]);
		for (uint32_t i = 0; i < TRAFFIC_WRS; i++) {
			enum wr_opcode op = t->type == QPT_UD ? WR_SEND : ops[i % (t->type == QPT_UC ? 2 : 4)];
			struct duo_wr w = duo_write_wr(i, buf[s], i * 8, i * 60 % TRAFFIC_MESSAGE, buf[!s], 64);

			w.opcode = op;
			w.flow = t->type == QPT_UD ? &flow : NULL;
			w.dqpn = t->type == QPT_UD ? q->peer->qpn : 0;
			w.qkey = 7;
			DUO_CHECK(d, duo_post(q, &w));
			DUO_CHECK(d, t->srq ? duo_post_srq(q->srq, i, &sge, 1) : duo_post_recv(q, i, &sge, 1));
		}
	}
	return d;
}
