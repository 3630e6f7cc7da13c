/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The invariants of a network between any two events: no packet has vanished, every sum is the sum
 * of its parts, a buffer holds what is charged to it, no lossless packet was lost, and every pause
 * has a port that will end it.
 */
#include "net/network_state.h"

struct sums {
	uint64_t packets; /* in queues and on wires, PFC frames left out */
};

static const char *check_queues(const struct port *port, struct sums *sums)
{
	uint32_t bytes = 0;

	for (unsigned class = 0; class < PACKET_CLASSES; class ++) {
		const struct queue *q = &port->queues[class];
		uint32_t queue_bytes = 0, packets = 0;

		for (const struct packet *p = q->head; p; p = p->next) {
			queue_bytes += p->wire_bytes;
			packets++;
			if (p->class != class)
				return "a packet waits in another class's queue";
		}
		if (queue_bytes != q->bytes || packets != q->packets)
			return "a queue's counts are not those of its packets";
		if (!(port->ready & 1u << class) != !q->head)
			return "a port does not know which classes wait";
		bytes += queue_bytes;
		sums->packets += packets;
	}
	if (bytes != port->queued_bytes)
		return "a port's queues do not add up";
	return NULL;
}

static const char *check_wire(const struct network *net, const struct port *port, struct sums *sums)
{
	uint64_t last_ps = 0;

	for (const struct packet *p = port->flight; p; p = p->next) {
		if (p->time_ps < last_ps)
			return "packets on a wire are out of order";
		if (p->time_ps < net->now_ps)
			return "a packet has stayed on a wire";
		last_ps = p->time_ps;
		sums->packets += !(p->flags & PACKET_PAUSE);
	}
	if (port->sw && port->ready & (uint8_t)~port->paused && !port->send_pending)
		return "packets wait at a port that will not send";
	return NULL;
}

/* The packets that wait in the switch, by the port they came in by. */
static const char *check_ingress(const struct network *net, const struct sim_switch *sw, uint32_t in)
{
	const struct pfc_port *pfc = sw->ports[in].pfc;

	for (unsigned class = 0; class < PACKET_CLASSES; class ++) {
		uint64_t bytes = 0;

		if (!(net->config.lossless_classes & 1u << class))
			continue;
		for (uint32_t i = 0; i < sw->port_count; i++) {
			for (const struct packet *p = sw->ports[i].queues[class].head; p; p = p->next)
				bytes += p->in_port == in ? p->wire_bytes : 0;
		}
		if (bytes != pfc->ingress_bytes[class] + (uint64_t)pfc->headroom_bytes[class])
			return "an ingress port is not charged for what it brought";
		if (pfc->headroom_bytes[class] && !(pfc->pausing & 1u << class))
			return "headroom is used by a port that is not paused";
	}
	return NULL;
}

static const char *check_buffer(const struct network *net, const struct sim_switch *sw)
{
	uint64_t used = 0;

	for (uint32_t i = 0; i < sw->port_count; i++) {
		const struct port *port = &sw->ports[i];
		const char *wrong = port->pfc ? check_ingress(net, sw, i) : NULL;

		if (wrong)
			return wrong;
		for (unsigned class = 1; class < PACKET_CLASSES; class ++) {
			uint32_t bytes = port->queues[class].bytes;

			if (net->config.lossless_classes & 1u << class) {
				bytes = port->pfc->ingress_bytes[class];
				bytes = bytes > net->config.reserve_bytes ? bytes - net->config.reserve_bytes : 0;
			}
			used += bytes;
		}
	}
	if (used != sw->shared_used_bytes)
		return "a shared buffer does not hold what is charged to it";
	if (used > sw->shared_bytes)
		return "a shared buffer holds more than it has room for";
	return NULL;
}

/*
 * Whether the pause will end: a frame about it is on its way or waits at the far end, the far end
 * still means it, or it runs out.
 */
static const char *check_pause(const struct network *net, const struct port *port)
{
	uint8_t meant = port->back->pfc->pausing | port->back->pfc->due;

	for (const struct packet *p = port->back->flight; p; p = p->next)
		meant |= p->flags & PACKET_PAUSE ? p->pfc.classes : 0;
	for (unsigned class = 0; net->config.no_resume_frames && class < PACKET_CLASSES; class ++) {
		if (port->pfc->until_ps[class] != NETWORK_NEVER_PS)
			meant |= (uint8_t)(1u << class);
	}
	if (port->paused & (uint8_t)~meant && !(port->special & SPECIAL_DOWN))
		return "a port is paused and nobody will resume it";
	return NULL;
}

/* What was sent on a lane is on the wire or was received, unless the link has lost something that nobody has heard of.
 */
static const char *check_lane(const struct network *net, const struct port *port, unsigned vl)
{
	const struct credit_lane *near = &port->credit->lanes[vl], *far = &port->back->credit->lanes[vl];
	uint32_t on_wire = 0;
	bool loses = port->special & (SPECIAL_LOSS | SPECIAL_DOWN) || port->back->special & SPECIAL_DOWN || net->faults;

	for (const struct packet *p = port->flight; p; p = p->next) {
		if (!(p->flags & PACKET_PAUSE) && p->class == vl)
			on_wire += credit_blocks(p->wire_bytes);
	}
	if (!loses && ((far->rx.abr + on_wire) & CREDIT_MASK) != near->tx.fctbs)
		return "credits have appeared or vanished";
	if (!loses && ((credit_limit(&far->rx) - near->tx.fccl) & CREDIT_MASK) > CREDIT_BLOCKS_MAX)
		return "a sender has credits for room that there is not";
	if (far->rx.used_blocks > far->rx.buffer_blocks)
		return "a lane's buffer holds more than it has room for";
	return NULL;
}

/* The buffers of a port's lanes hold the packets that came in by that port and lane and have not left. */
static const char *check_lane_buffers(const struct sim_switch *sw, uint32_t in)
{
	const struct credit_lane *lanes = sw->ports[in].credit->lanes;
	uint32_t blocks[VL_LANES] = {0};

	for (uint32_t i = 0; i < sw->port_count; i++) {
		const struct leaving *leaving = &sw->ports[i].credit->leaving;

		if (leaving->any && leaving->in_port == in)
			blocks[leaving->vl] += leaving->blocks;
		for (unsigned out = 0; out < VL_LANES; out++) {
			for (const struct packet *p = sw->ports[i].queues[out].head; p; p = p->next) {
				if (p->in_port == in)
					blocks[p->flags >> PACKET_LANE_SHIFT & (VL_LANES - 1)] +=
						credit_blocks(p->wire_bytes);
			}
		}
	}
	for (unsigned vl = 0; vl < VL_LANES; vl++) {
		for (const struct packet *p = lanes[vl].behind.head; p; p = p->next)
			blocks[vl] += credit_blocks(p->wire_bytes);
		if (blocks[vl] != lanes[vl].rx.used_blocks)
			return "a lane's buffer is not charged for what is in it";
	}
	return NULL;
}

static const char *check_credits(const struct network *net, struct sums *sums)
{
	const char *wrong = NULL;

	for (uint32_t i = 0; i < net->port_count && !wrong; i++) {
		const struct port *port = &net->ports[i];

		for (unsigned vl = 0; vl < VL_LANES && !wrong; vl++) {
			sums->packets += port->credit->lanes[vl].behind.packets;
			wrong = check_lane(net, port, vl);
		}
		if (!wrong && port->sw)
			wrong = check_lane_buffers(port->sw, (uint32_t)(port - port->sw->ports));
	}
	return wrong;
}

const char *network_check(const struct network *net)
{
	struct sums sums = {0};
	struct network_counts counts;
	const char *wrong = NULL;

	for (uint32_t i = 0; i < net->port_count && !wrong; i++) {
		const struct port *port = &net->ports[i];

		wrong = check_queues(port, &sums);
		if (!wrong)
			wrong = check_wire(net, port, &sums);
		if (!wrong && port->pfc)
			wrong = check_pause(net, port);
	}
	for (uint32_t i = 0; i < net->switch_count && !wrong; i++) {
		if (net->switches[i].features & FEATURE_MMU)
			wrong = check_buffer(net, &net->switches[i]);
	}
	if (!wrong && net->credit_ports)
		wrong = check_credits(net, &sums);
	if (wrong)
		return wrong;
	for (uint32_t h = 0; h < net->host_count; h++)
		sums.packets += net->hosts[h].receiver ? receiver_packets(net->hosts[h].receiver) : 0;
	network_count(net, &counts);
	if (counts.inside != sums.packets)
		return "packets have appeared or vanished";
	for (unsigned class = 0; class < PACKET_CLASSES; class ++) {
		if (net->drops.packets[class][NETWORK_DROP_HEADROOM] || net->drops.packets[class][NETWORK_DROP_CREDITS])
			return "a packet of a lossless class was dropped";
	}
	return NULL;
}

const char *network_fault(const struct network *net)
{
	return net->broken;
}
