/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The shared memory of a switch. A packet that waits in a lossless class is charged to the port it came in by: to
 * that port's reserve, then to the shared part up to a threshold that shrinks as the shared part fills, then to
 * headroom, which is only for packets that were on their way when the pause was sent. A packet that waits in a lossy
 * class is charged to the shared part, up to the same kind of threshold for its queue, and a fixed one. A packet
 * that need not wait is never charged. Control packets have queues of their own.
 */
#include <errno.h>

#include "net/network_state.h"

static uint64_t share(uint64_t bytes, int log2)
{
	return log2 < 0 ? bytes >> -log2 : bytes << log2;
}

static uint64_t room(const struct sim_switch *sw)
{
	return sw->shared_used_bytes < sw->shared_bytes ? sw->shared_bytes - sw->shared_used_bytes : 0;
}

static uint64_t pause_threshold(const struct network *net, const struct sim_switch *sw, const struct pfc_port *pfc,
				unsigned class)
{
	if (net->config.pfc == NETWORK_PFC_HPCC)
		return room(sw) >> pfc->alpha_shift;
	return share(room(sw), net->config.alpha_log2[class]);
}

static uint32_t beyond_reserve(const struct network *net, const struct pfc_port *pfc, unsigned class)
{
	uint32_t bytes = pfc->ingress_bytes[class];

	return bytes > net->config.reserve_bytes ? bytes - net->config.reserve_bytes : 0;
}

static enum network_drop admit_lossless(struct network *net, struct sim_switch *sw, struct packet *p)
{
	struct port *in = &sw->ports[p->in_port];
	struct pfc_port *pfc = in->pfc;
	unsigned class = p->class;
	uint32_t bytes = p->wire_bytes, before = beyond_reserve(net, pfc, class);
	uint32_t shared = pfc->ingress_bytes[class] + bytes;

	shared = shared > net->config.reserve_bytes ? shared - net->config.reserve_bytes : 0;
	if (shared == 0 || shared <= pause_threshold(net, sw, pfc, class)) {
		pfc->ingress_bytes[class] += bytes;
		sw->shared_used_bytes += shared - before;
	} else if (pfc->headroom_bytes[class] + bytes <= pfc->headroom_limit_bytes) {
		pfc->headroom_bytes[class] += bytes;
		if (pfc->headroom_bytes[class] > pfc->headroom_bytes_max)
			pfc->headroom_bytes_max = pfc->headroom_bytes[class];
	} else {
		return NETWORK_DROP_HEADROOM;
	}
	if (!(pfc->pausing & 1u << class) &&
	    (pfc->headroom_bytes[class] || beyond_reserve(net, pfc, class) >= pause_threshold(net, sw, pfc, class)))
		pfc_pause(net, in, class);
	return NETWORK_DROPS;
}

enum network_drop mmu_admit(struct network *net, struct port *port, struct packet *p)
{
	struct sim_switch *sw = port->sw;
	uint32_t limit = net->config.class_queue_bytes;
	uint64_t bytes;

	if (net->config.lossless_classes & 1u << p->class)
		return admit_lossless(net, sw, p);
	bytes = (uint64_t)port->queues[p->class].bytes + p->wire_bytes;
	if (bytes > share(room(sw), net->config.alpha_log2[p->class]) || (limit && bytes > limit))
		return NETWORK_DROP_QUEUE;
	if (p->wire_bytes > room(sw))
		return NETWORK_DROP_QUEUE;
	sw->shared_used_bytes += p->wire_bytes;
	return NETWORK_DROPS;
}

void mmu_release(struct network *net, struct sim_switch *sw, const struct packet *p)
{
	unsigned class = p->class;
	uint32_t bytes = p->wire_bytes, headroom, before, after;
	struct pfc_port *pfc;

	if (!(net->config.lossless_classes & 1u << class)) {
		sw->shared_used_bytes -= bytes;
		return;
	}
	pfc = sw->ports[p->in_port].pfc;
	headroom = pfc->headroom_bytes[class] < bytes ? pfc->headroom_bytes[class] : bytes;
	before = beyond_reserve(net, pfc, class);
	pfc->headroom_bytes[class] -= headroom;
	pfc->ingress_bytes[class] -= bytes - headroom;
	after = beyond_reserve(net, pfc, class);
	sw->shared_used_bytes -= before - after;
	if (pfc->pausing & 1u << class && !pfc->headroom_bytes[class] &&
	    (!after || after + net->config.resume_offset_bytes <= pause_threshold(net, sw, pfc, class)))
		pfc_resume(net, &sw->ports[p->in_port], class);
}

static uint64_t bytes_in(uint64_t rate_bps, uint64_t ps)
{
	return (uint64_t)((unsigned __int128)rate_bps * ps / 8000000000000u);
}

uint64_t mmu_headroom_bytes(const struct network *net, const struct port *in)
{
	const struct network_config *c = &net->config;
	uint64_t rate_bps = in->back->rate_bps, delay_ps = in->back->delay_ps;

	if (c->headroom_bytes)
		return c->headroom_bytes;
	if (c->pfc == NETWORK_PFC_HPCC)
		return bytes_in(rate_bps, 3 * delay_ps);
	return bytes_in(rate_bps, 2 * (delay_ps + c->pause_response_ps) + c->switch_latency_ps) + 2 * c->mtu_bytes +
	       c->pause_wire_bytes;
}

static uint64_t nic_rate_bps(const struct network *net)
{
	uint64_t rate_bps = UINT64_MAX;

	for (uint32_t h = 0; h < net->host_count; h++) {
		if (net->hosts[h].port->rate_bps < rate_bps)
			rate_bps = net->hosts[h].port->rate_bps;
	}
	return rate_bps;
}

int mmu_init(struct network *net, uint32_t *node)
{
	const struct network_config *c = &net->config;
	uint64_t nic_bps = nic_rate_bps(net);
	unsigned classes = (unsigned)__builtin_popcount(c->lossless_classes);

	for (uint32_t i = 0; i < net->switch_count; i++) {
		struct sim_switch *sw = &net->switches[i];
		uint64_t set_aside = 0;
		uint64_t buffer = c->node_buffer_bytes ? c->node_buffer_bytes[sw->node] : c->buffer_bytes;

		if (!buffer)
			continue;
		for (uint32_t j = 0; j < sw->port_count && classes; j++) {
			struct pfc_port *pfc = sw->ports[j].pfc;
			uint64_t headroom = mmu_headroom_bytes(net, &sw->ports[j]);
			uint64_t rate_bps = sw->ports[j].rate_bps;

			if (headroom > INT32_MAX) {
				*node = sw->node;
				return -ENOSPC;
			}
			pfc->headroom_limit_bytes = (uint32_t)headroom;
			set_aside += (headroom + c->reserve_bytes) * (c->pfc == NETWORK_PFC_HPCC ? 1 : classes);
			for (pfc->alpha_shift = 3; pfc->alpha_shift && rate_bps > nic_bps; rate_bps /= 2)
				pfc->alpha_shift--;
		}
		if (set_aside >= buffer || buffer > UINT64_C(1) << 31) {
			*node = sw->node;
			return -ENOSPC;
		}
		sw->shared_bytes = buffer - set_aside;
		sw->features |= FEATURE_MMU | (classes ? FEATURE_PFC : 0);
	}
	return 0;
}
