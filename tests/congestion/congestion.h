/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests of congestion control between two nics: a pair with an algorithm. */
#pragma once

#include "duo/sim.h"
#include "transport/rocev2/congestion.h"
#include "wire/psn.h"

/* Read by congestion_tweak() when a duo is made; borrowed as long as the duo lives. */
struct congestion_options {
	struct cc_params params;
	bool off[DUO_SIDES]; /* that side has no algorithm */
	uint64_t line_rate_bps;
	uint64_t base_rtt_ns;
	uint64_t slack_ns;
	uint32_t overhead_bytes;
	uint32_t window_bytes;
	uint64_t cnp_interval_ns;
	bool ce_echo;
	bool no_trains; /* acknowledgements go before data */
	enum protocol protocol;
	uint32_t paths;
};

static struct congestion_options congestion_opt;

static inline struct congestion_options congestion_options(enum cc_algorithm algorithm)
{
	struct congestion_options c = {
		.window_bytes = 256 * 1024,
		.line_rate_bps = 10000000000,
		.protocol = PROTOCOL_ROCEV2,
		.paths = 1,
	};

	cc_params_default(&c.params, algorithm);
	return c;
}

static inline void congestion_tweak(struct nic_config *c, enum duo_side side)
{
	const struct congestion_options *o = &congestion_opt;

	c->transport.protocol = o->protocol;
	c->transport.paths = o->paths;
	c->transport.cc.params = o->off[side] ? NULL : &o->params;
	c->transport.cc.line_rate_bps = o->line_rate_bps;
	c->transport.cc.base_rtt_ns = o->base_rtt_ns;
	c->transport.cc.pace_slack_ns = o->slack_ns;
	c->transport.cc.wire_overhead_bytes = o->overhead_bytes;
	c->transport.window_bytes = o->window_bytes;
	c->transport.rocev2.cnp_interval_ns = o->cnp_interval_ns;
	c->transport.rocev2.ce_echo = o->ce_echo;
	if (o->no_trains)
		c->transport.train_max = 1;
}

static inline struct sim congestion_start_sim(const struct congestion_options *c, const struct duo_options *o,
					      uint64_t seed, uint64_t buf_bytes)
{
	congestion_opt = *c;
	return sim_sized(duo_create(seed, congestion_tweak), o, buf_bytes);
}

/* A RoCEv2 QP's block. */
static inline const struct congestion *congestion_at(const struct duo_qp *q)
{
	return q->qp->gbn->congestion;
}

static inline void congestion_write(struct sim *s, uint64_t wr_id, uint32_t bytes)
{
	duo_must_post(s->a, duo_write_wr(wr_id, s->abuf, 0, bytes, s->bbuf, 0));
}

static inline void congestion_read(struct sim *s, uint64_t wr_id, uint32_t bytes)
{
	duo_must_post(s->a, duo_read_wr(wr_id, s->abuf, 0, bytes, s->bbuf, 0));
}

/* Whether the packet carries payload, for any engine. */
static inline bool congestion_is_data(const struct duo_packet *p)
{
	return p->info && p->info->flags & F_PAYLOAD && p->payload_len && (p->veroce || p->bth.opcode != OP_CNP);
}
