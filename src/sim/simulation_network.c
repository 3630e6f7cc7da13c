/* SPDX-License-Identifier: BSD-2-Clause */
/* Scenario to network: switches, and faults of links. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "base/siphash.h"
#include "sim/simulation_parts.h"

enum { SEED_DEGRADED = 0x6465, SEED_DOWN = 0x646f };

static const enum network_routing routings[] = {
	[SCENARIO_ROUTING_ECMP] = NETWORK_ECMP,
	[SCENARIO_ROUTING_FLOWLET] = NETWORK_FLOWLET,
	[SCENARIO_ROUTING_WECMP] = NETWORK_ECMP,
	[SCENARIO_ROUTING_SPRAY_RANDOM] = NETWORK_SPRAY_RANDOM,
	[SCENARIO_ROUTING_SPRAY_ROUND_ROBIN] = NETWORK_SPRAY_ROUND_ROBIN,
	[SCENARIO_ROUTING_SPRAY_TWO] = NETWORK_SPRAY_LEAST_OF_2,
	[SCENARIO_ROUTING_SPRAY_LEAST] = NETWORK_SPRAY_LEAST,
	[SCENARIO_ROUTING_VALIANT] = NETWORK_VALIANT,
	[SCENARIO_ROUTING_UGAL] = NETWORK_UGAL,
};

static uint32_t cut(uint64_t v)
{
	return v < UINT32_MAX ? (uint32_t)v : UINT32_MAX;
}

/* The power of two that a share is; false: it is none from 1/64 to 8. */
static bool log2_of(uint64_t ppb, int8_t *out)
{
	for (int8_t i = -6; i <= 3; i++) {
		uint64_t v = i < 0 ? SCENARIO_PPB >> -i : SCENARIO_PPB << i;

		if (v == ppb) {
			*out = i;
			return true;
		}
	}
	return false;
}

static bool is_long(const struct topology *t, const struct topology_link *l)
{
	return t->nodes[l->a].site != t->nodes[l->b].site;
}

/* Buffers of each node, where those with a long link differ; NULL: no memory. */
static uint64_t *border_buffers(const struct scenario *s, const struct topology *t)
{
	uint64_t *bytes = calloc(t->node_count, sizeof(*bytes));

	for (uint32_t i = 0; bytes && i < t->node_count; i++)
		bytes[i] = s->sw.buffer_bytes;
	for (uint32_t i = 0; bytes && i < t->link_count; i++) {
		if (!is_long(t, &t->links[i]))
			continue;
		bytes[t->links[i].a] = s->sw.border_buffer_bytes;
		bytes[t->links[i].b] = s->sw.border_buffer_bytes;
	}
	return bytes;
}

static bool set_pfc(const struct scenario *s, uint8_t data, struct network_config *c, struct why why)
{
	c->red.classes = s->sw.ecn ? data : 0;
	if (s->sw.pfc == SCENARIO_PFC_OFF)
		return true;
	c->lossless_classes = data;
	c->pfc = s->sw.pfc == SCENARIO_PFC_HPCC ? NETWORK_PFC_HPCC : NETWORK_PFC;
	c->reserve_bytes = cut(s->sw.pfc_reserve_bytes);
	c->headroom_bytes = s->sw.pfc_headroom_bytes == SCENARIO_AUTO ? 0 : cut(s->sw.pfc_headroom_bytes);
	c->resume_offset_bytes = cut(s->sw.pfc_resume_bytes);
	c->pause_response_ps = s->sw.pfc_response_ps;
	c->no_resume_frames = !s->sw.pfc_resume_frames;
	if (c->no_resume_frames && c->pfc == NETWORK_PFC_HPCC)
		return refuse(why, "switch.pfc_resume_frames: pauses of pfc = hpcc do not run out by themselves");
	for (int i = 0; i < PACKET_CLASSES; i++) {
		if (data >> i & 1 && !log2_of(s->sw.pfc_alpha_ppb, &c->alpha_log2[i]))
			return refuse(why, "switch.pfc_alpha: a power of two from 1/64 to 8");
	}
	return true;
}

/* Memory in which no packet fits would drop them all. */
static bool packets_fit(const struct scenario *s, uint32_t packet_bytes, struct why why)
{
	const struct {
		const char *key;
		uint64_t bytes;
	} memories[] = {
		{"switch.buffer", s->sw.buffer_bytes},
		{"switch.border_buffer", s->sw.border_buffer_bytes},
		{"switch.port_limit", s->sw.port_limit_bytes},
		{"host.rx_buffer", s->host.rx_buffer_bytes},
	};

	for (size_t i = 0; i < sizeof(memories) / sizeof(memories[0]); i++) {
		if (memories[i].bytes < packet_bytes)
			return refuse(why, "%s: %llu bytes are less than a packet, which has up to %u", memories[i].key,
				      (unsigned long long)memories[i].bytes, packet_bytes);
	}
	return true;
}

bool parts_network(const struct scenario *s, const struct topology *t, struct network_config *c, uint64_t **buffers,
		   struct why why)
{
	bool veroce = s->transport.protocol == SCENARIO_VEROCE;

	network_config_init(c);
	c->seed = s->run.seed;
	c->switch_latency_ps = s->sw.latency_ps;
	c->routing = routings[s->sw.routing];
	c->weighted = s->sw.routing == SCENARIO_ROUTING_WECMP;
	c->flowlet_gap_ps = s->sw.flowlet_gap_ps;
	c->converge_ps = s->sw.t_conv_ps == SCENARIO_NEVER ? NETWORK_NEVER_PS : s->sw.t_conv_ps;
	c->buffer_bytes = s->sw.buffer_bytes;
	c->mtu_bytes = (uint32_t)s->transport.payload_bytes + HOST_FRAME_BYTES + 64;
	c->check = s->run.check;
	c->low_class = s->sw.low_class == SCENARIO_NONE ? 0 : (uint8_t)s->sw.low_class;
	if (s->sw.port_limit_bytes != SCENARIO_NONE)
		c->class_queue_bytes = cut(s->sw.port_limit_bytes);
	for (int i = 0; i < PACKET_CLASSES; i++) {
		if (s->sw.weight[i])
			c->dwrr_quantum_bytes[i] = s->sw.weight[i] * c->mtu_bytes;
		if (s->sw.egress_alpha_ppb == SCENARIO_NONE)
			c->alpha_log2[i] = 3;
		else if (!log2_of(s->sw.egress_alpha_ppb, &c->alpha_log2[i]))
			return refuse(why, "switch.egress_alpha: a power of two from 1/64 to 8");
	}
	c->red = (struct network_red){
		.at_enqueue = s->sw.mark == SCENARIO_MARK_ENQUEUE,
		.kmin_bytes = cut(s->sw.kmin_bytes),
		.kmax_bytes = cut(s->sw.kmax_bytes),
		.pmax_ppb = (uint32_t)s->sw.pmax_ppb,
		.rate_bps = s->sw.ecn_rate_bps,
	};
	if (!packets_fit(s, c->mtu_bytes, why) ||
	    !set_pfc(s, (uint8_t)(parts_classes(s, t) | 1u << s->transport.data_class), c, why))
		return false;
	if (s->sw.flow_control == SCENARIO_FLOW_CONTROL_CREDITS && !parts_credits(s, c, why))
		return false;
	c->int_stamp = s->sw.int_on;
	if (s->sw.trim && !veroce)
		return refuse(why, "switch.trim: packets of rocev2 cannot be trimmed; take veroce");
	if (s->sw.trim) {
		c->trim_wire_bytes = (uint32_t)s->sw.trim_frame_bytes + HOST_FRAME_BYTES;
		c->trim_mark = s->sw.trim_ecn;
		if (!c->class_queue_bytes || c->class_queue_bytes > s->sw.trim_queue_bytes)
			c->class_queue_bytes = cut(s->sw.trim_queue_bytes);
		c->control_queue_bytes = cut(s->sw.trim_control_bytes);
	}
	*buffers = NULL;
	if (s->sw.flow_control == SCENARIO_FLOW_CONTROL_PFC && s->sw.border_buffer_bytes != SCENARIO_AUTO) {
		*buffers = border_buffers(s, t);
		if (!*buffers)
			return refuse(why, "out of memory");
		c->node_buffer_bytes = *buffers;
	}
	return true;
}

/* ---- links ---------------------------------------------------------------------------------------- */

static bool is_at(const struct topology *t, const struct topology_link *l, unsigned place)
{
	bool host = l->a < t->host_count || l->b < t->host_count;

	switch (place) {
	case SCENARIO_PLACE_HOST: return host;
	case SCENARIO_PLACE_FABRIC: return !host && !is_long(t, l);
	case SCENARIO_PLACE_LONG: return is_long(t, l);
	default: return true;
	}
}

static bool set_loss(const struct scenario *s, struct network *n, uint32_t link)
{
	const struct scenario_link *l = &s->link;
	const struct network_loss loss = {
		.loss_ppb = (uint32_t)l->loss_ppb,
		.good_to_bad_ppb = (uint32_t)l->ge_bad_ppb,
		.bad_to_good_ppb = (uint32_t)l->ge_good_ppb,
		.bad_loss_ppb = (uint32_t)l->ge_loss_ppb,
		.corrupt_ppb = (uint32_t)l->corrupt_ppb,
	};

	for (unsigned end = 0; end < 2; end++) {
		if ((loss.loss_ppb || loss.good_to_bad_ppb || loss.corrupt_ppb) &&
		    network_set_loss(n, link, end, &loss))
			return false;
		if (l->jitter_ps && network_set_jitter(n, link, end, l->jitter_ps))
			return false;
	}
	return true;
}

/*
 * Draws round(share x count) of the links at a place, in an order that the seed gives and that the
 * share does not change: a greater share always draws a superset.
 */
static bool draw_links(const struct scenario *s, const struct topology *t, uint64_t share_ppb, uint64_t draw,
		       bool *chosen)
{
	uint32_t *order = calloc(t->link_count + 1, sizeof(*order)), count = 0;
	uint8_t key[16] = {0};
	struct prng r;
	uint64_t want;

	if (!order)
		return false;
	for (uint32_t i = 0; i < t->link_count; i++) {
		if (is_at(t, &t->links[i], s->failures.place))
			order[count++] = i;
	}
	memcpy(key, &s->run.seed, sizeof(s->run.seed));
	prng_init(&r, siphash_u64(key, draw));
	want = (uint64_t)(((unsigned __int128)share_ppb * count + SCENARIO_PPB / 2) / SCENARIO_PPB);
	for (uint32_t i = 0; i < count && i < want; i++) {
		uint32_t k = i + (uint32_t)prng_below(&r, count - i), link = order[k];

		order[k] = order[i];
		chosen[link] = true;
	}
	free(order);
	return true;
}

static uint32_t node_of(const struct topology *t, uint32_t number)
{
	for (uint32_t i = 0; i < t->node_count; i++) {
		if (t->nodes[i].number == number)
			return i;
	}
	return UINT32_MAX;
}

static bool at_times(const struct scenario *s, const struct topology *t, struct network *n, struct why why)
{
	for (uint32_t i = 0; i < s->failure_count; i++) {
		const struct scenario_failure *f = &s->failure[i];
		uint32_t a = node_of(t, f->link_a), b = node_of(t, f->link_b), found = 0;
		int rc = 0;

		for (uint32_t l = 0; l < t->link_count && !rc; l++) {
			const struct topology_link *link = &t->links[l];

			if (!(link->a == a && link->b == b) && !(link->a == b && link->b == a))
				continue;
			found++;
			if (f->action == SCENARIO_LINK_UP)
				rc = network_link_up(n, l, f->time_ps);
			else if (f->action == SCENARIO_LINK_RATE)
				rc = network_link_rate(n, l, f->time_ps, f->rate_bps);
			else
				rc = network_link_down(n, l, f->time_ps);
			if (!rc && f->action == SCENARIO_LINK_DOWN && f->up_after_ps != SCENARIO_NEVER)
				rc = network_link_up(n, l, f->time_ps + f->up_after_ps);
		}
		if (!found)
			return refuse(why, "failure.%s.link: no link joins the nodes %u and %u", f->name, f->link_a,
				      f->link_b);
		if (rc)
			return refuse(why, "failure.%s: %s", f->name,
				      rc == -ENOMEM ? "out of memory" : "time or rate out of range");
	}
	return true;
}

/* Each link's rate from the start on; 0: down. */
static bool rates_at_start(const struct scenario *s, const struct topology *t, uint64_t *bps)
{
	bool *degraded = calloc(t->link_count + 1, sizeof(*degraded));
	bool *down = calloc(t->link_count + 1, sizeof(*down));
	bool good = degraded && down && draw_links(s, t, s->failures.degraded_ppb, SEED_DEGRADED, degraded) &&
		    draw_links(s, t, s->failures.down_ppb, SEED_DOWN, down);

	for (uint32_t i = 0; good && i < t->link_count; i++) {
		uint64_t rate = t->links[i].rate_bps;

		rate = (uint64_t)((unsigned __int128)rate * s->failures.degraded_rate_ppb / SCENARIO_PPB);
		bps[i] = down[i] ? 0 : !degraded[i] ? t->links[i].rate_bps : rate ? rate : 1;
	}
	free(degraded);
	free(down);
	return good;
}

/* The best rate of a link during the run, after what happens to it at the start and later. */
static uint64_t best_rate(const struct scenario *s, const struct topology *t, uint32_t link, uint64_t bps)
{
	uint64_t best = bps;

	for (uint32_t i = 0; i < s->failure_count; i++) {
		const struct scenario_failure *f = &s->failure[i];
		const struct topology_link *l = &t->links[link];
		uint32_t a = node_of(t, f->link_a), b = node_of(t, f->link_b);

		if (!(l->a == a && l->b == b) && !(l->a == b && l->b == a))
			continue;
		if (f->action == SCENARIO_LINK_DOWN && !f->time_ps && f->up_after_ps == SCENARIO_NEVER)
			best = 0;
		else if (f->action == SCENARIO_LINK_RATE && !f->time_ps)
			best = f->rate_bps;
		else if (f->action == SCENARIO_LINK_RATE)
			best = f->rate_bps > best ? f->rate_bps : best;
		else
			best = l->rate_bps > best ? l->rate_bps : best;
	}
	return best;
}

uint64_t *parts_link_rates(const struct scenario *s, const struct topology *t)
{
	uint64_t *bps = calloc(t->link_count + 1, sizeof(*bps));

	if (!bps || !rates_at_start(s, t, bps)) {
		free(bps);
		return NULL;
	}
	for (uint32_t i = 0; s->failure_count && i < t->link_count; i++)
		bps[i] = best_rate(s, t, i, bps[i]);
	return bps;
}

bool parts_links(const struct scenario *s, const struct topology *t, struct network *n, struct why why)
{
	uint64_t *bps = calloc(t->link_count + 1, sizeof(*bps));
	bool good = bps && rates_at_start(s, t, bps);

	for (uint32_t i = 0; good && i < t->link_count; i++) {
		if (is_at(t, &t->links[i], s->link.loss_place))
			good = set_loss(s, n, i);
		if (good && bps[i] && bps[i] != t->links[i].rate_bps)
			good = !network_link_rate(n, i, 0, bps[i]);
		if (good && !bps[i])
			good = !network_link_down(n, i, 0);
		for (uint32_t k = 0; good && k < s->link.lost_count; k++)
			for (unsigned end = 0; good && end < 2; end++)
				if ((end ? t->links[i].b : t->links[i].a) < t->host_count)
					good = !network_lose_packet(n, i, end, s->link.lost[k].flow,
								    s->link.lost[k].nth - 1);
	}
	free(bps);
	if (!good)
		return refuse(why, "out of memory");
	return at_times(s, t, n, why);
}
