/* SPDX-License-Identifier: BSD-2-Clause */
/* What every veRoCE simulation test includes: a pair that speaks it, with as many paths as wanted. */
#ifndef SIM_VEROCE_H
#define SIM_VEROCE_H

#include "sim/sim.h"

/* Read by veroce_tweak() when a duo is made. */
struct veroce_options {
	uint32_t paths;
	uint32_t window_bytes;
	uint32_t rx_window;
	enum nic_loss loss;
	enum nic_cc cc;
	enum nic_protocol protocol[DUO_SIDES];
	bool base[DUO_SIDES];
	bool strong_order;
	uint16_t flowlet;
};

static struct veroce_options veroce_opt;

static inline struct veroce_options veroce_options(void)
{
	return (struct veroce_options){
		.paths = 1,
		.window_bytes = 1 << 20,
		.cc = NIC_CC_NONE,
		.protocol = {NIC_PROTOCOL_VEROCE, NIC_PROTOCOL_VEROCE},
	};
}

static inline void veroce_tweak(struct nic_config *c, enum duo_side side)
{
	c->protocol = veroce_opt.protocol[side];
	c->paths = veroce_opt.paths;
	c->window_bytes = veroce_opt.window_bytes;
	c->rx_window = veroce_opt.rx_window;
	c->loss = veroce_opt.loss;
	c->cc = veroce_opt.cc;
	c->base_only = veroce_opt.base[side];
	c->strong_order = veroce_opt.strong_order;
	c->flowlet = veroce_opt.flowlet;
}

static inline struct sim veroce_start_sim(const struct veroce_options *v, const struct duo_options *o,
					  uint64_t seed)
{
	veroce_opt = *v;

	struct sim s = {.duo = duo_create(seed, veroce_tweak)};
	struct duo_pair p = duo_connect(s.duo, o);

	s.a = p.a;
	s.b = p.b;
	s.abuf = duo_buf(&s.duo->host[DUO_A], BUF_BYTES, ALL_ACCESS);
	s.bbuf = duo_buf(&s.duo->host[DUO_B], BUF_BYTES, ALL_ACCESS);
	duo_fill(s.abuf, 1);
	duo_fill(s.bbuf, 2);
	duo_idle(s.duo); /* capabilities are known */
	return s;
}

/* One path, the default loss detection, no congestion control. */
static inline struct sim veroce_default(void)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();

	return veroce_start_sim(&v, &o, 1);
}

#endif
