/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way of a MAD: by the list of ports of a directed route (IBTA 14.2.2), or by the forwarding
 * tables. Invariant: a packet is at one node, and every hop counts at both ends of its link.
 */
#include <string.h>

#include "fabric/fabric.h"
#include "wire/lrh.h"
#include "wire/notice.h"

enum {
	HOPS_MAX = 64,
	CLASS_PERFORMANCE = 0x04,
	METHOD_RESPONSE = 0x80,
	PACKET_WORDS = (FABRIC_PACKET_BYTES - 2) / 4 /* without VCRC */
};

/* PartitionEnforcement of PortInfo. */
enum { ENFORCE_IN = 8, ENFORCE_OUT = 4 };

enum hop { HOP_DONE, HOP_NO_PORT, HOP_REFUSED };

struct place {
	struct fabric_node *node;
	uint8_t in; /* 0: it began here */
};

static uint16_t index_of(const struct fabric *f, const struct fabric_node *n)
{
	return (uint16_t)(n - f->nodes);
}

/* IBTA 10.9.3: the same partition, and not two limited members. */
static bool is_member(const struct fabric_port *p, int pkey)
{
	for (size_t i = 0; i < FABRIC_PKEYS; i++) {
		uint16_t own = p->pkeys[i];

		if (own & 0x7fff && !((own ^ pkey) & 0x7fff) && (own | pkey) & 0x8000)
			return true;
	}
	return false;
}

/* A switch looks where its manager told it to (IBTA 14.2.5.6). */
static bool is_refused(const struct fabric_node *n, const struct fabric_port *p, uint8_t enforce,
		       const struct fabric_packet *k)
{
	return k->pkey != FABRIC_NO_PARTITION && n->type == NODE_SWITCH && p->info.enforcement & enforce &&
	       !is_member(p, k->pkey);
}

static void pkey_tell(struct fabric *f, const struct place *at, uint8_t port, uint16_t number,
		      const struct fabric_packet *k)
{
	fabric_trap_raise(f, &(struct fabric_trap){.node = index_of(f, at->node),
						   .port = port,
						   .number = number,
						   .slid = k->slid,
						   .dlid = k->dlid,
						   .pkey = (uint16_t)k->pkey,
						   .sqp = k->sqp,
						   .dqp = k->dqp});
}

/* A packet of a partition passes only a port that a manager has made active. */
static bool is_open(const struct fabric_port *p, const struct fabric_packet *k)
{
	return p->linked && p->info.phys_state == PORT_PHYS_LINK_UP &&
	       (k->pkey == FABRIC_NO_PARTITION || p->info.state == PORT_ACTIVE);
}

/* Takes a packet over the link of a port. */
static enum hop hop(struct fabric *f, struct place *at, uint8_t out, const struct fabric_packet *k)
{
	struct fabric_port *from = out && out <= at->node->port_count ? &at->node->ports[out] : NULL, *to;

	if (!from)
		return HOP_NO_PORT;
	if (!is_open(from, k)) {
		from->counters[COUNT_XMIT_DISCARDS]++;
		from->counters[COUNT_INACTIVE]++;
		return HOP_REFUSED;
	}
	if (is_refused(at->node, from, ENFORCE_OUT, k)) {
		from->counters[COUNT_XMIT_CONSTRAINT_ERRORS]++;
		pkey_tell(f, at, out, NOTICE_SWITCH_PKEY, k);
		return HOP_REFUSED;
	}
	to = &f->nodes[from->peer].ports[from->peer_port];
	from->counters[COUNT_XMIT_PACKETS]++;
	from->counters[COUNT_XMIT_WORDS] += PACKET_WORDS;
	*at = (struct place){&f->nodes[from->peer], from->peer_port};
	if (!fabric_receive(f, at->node, at->in, k))
		return HOP_REFUSED;
	if (is_refused(at->node, to, ENFORCE_IN, k)) {
		to->counters[COUNT_RCV_CONSTRAINT_ERRORS]++;
		pkey_tell(f, at, at->in, NOTICE_SWITCH_PKEY, k);
		return HOP_REFUSED;
	}
	return HOP_DONE;
}

static bool is_lid_of(const struct port_info *i, uint16_t lid)
{
	return i->lid && lid >= i->lid && lid < i->lid + (1u << i->lmc);
}

/* A channel adapter's port that the packet came in by, or a switch's port 0, has that LID. */
static bool ends_here(const struct place *at, uint16_t lid)
{
	uint8_t port = at->node->type == NODE_SWITCH ? 0 : at->in ? at->in : fabric_first_port(at->node);

	return is_lid_of(&at->node->ports[port].info, lid);
}

/* A switch has no way for it, and says why. */
static bool relay_error(struct fabric_port *in, enum fabric_counter why)
{
	in->counters[COUNT_RELAY_ERRORS]++;
	in->counters[why]++;
	return false;
}

/* SLtoVL to VL 15 means to drop it (IBTA 7.6.6). The service level of a MAD is 0. */
static bool has_lane(const struct fabric_node *n, uint8_t in, uint8_t out)
{
	return n->sl_to_vl[in * (n->port_count + 1u) + out][0] >> 4 != VL_MANAGEMENT;
}

/* A switch passes it on; a channel adapter passes nothing on. */
static bool relay(struct fabric *f, struct place *at, const struct fabric_packet *k)
{
	struct fabric_node *n = at->node;
	struct fabric_port *in = &n->ports[at->in];
	uint8_t out = n->type == NODE_SWITCH && k->dlid <= n->info.linear_top ? n->forwarding[k->dlid] : FABRIC_NONE;

	if (!out || out > n->port_count)
		return relay_error(in, COUNT_DLID_MAPPING);
	if (out == at->in)
		return relay_error(in, COUNT_LOOPING);
	if (k->pkey != FABRIC_NO_PARTITION && !has_lane(n, at->in, out))
		return relay_error(in, COUNT_VL_MAPPING);
	return hop(f, at, out, k) == HOP_DONE;
}

/* A channel adapter's port `out`, or a switch, sends it. */
static bool carry_by_lid(struct fabric *f, struct place *at, uint8_t out, const struct fabric_packet *k)
{
	uint16_t lid = k->dlid;

	if (lid == LID_PERMISSIVE || ends_here(at, lid))
		return true;
	if (!lid || lid > LID_UNICAST_MAX || (at->node->type != NODE_SWITCH && hop(f, at, out, k) != HOP_DONE))
		return false;
	for (int hops = 0; hops < HOPS_MAX && !ends_here(at, lid); hops++) {
		if (!relay(f, at, k))
			return false;
	}
	return ends_here(at, lid);
}

static struct fabric_packet directed(const uint8_t *mad)
{
	return (struct fabric_packet){
		.slid = LID_PERMISSIVE, .dlid = LID_PERMISSIVE, .pkey = FABRIC_NO_PARTITION, .mad = mad};
}

/* To the node at the end of the initial path, and the way that it came into the return path. */
static bool carry_directed(struct fabric *f, struct place *at, struct smp *s, const uint8_t *mad)
{
	const struct fabric_packet k = directed(mad);

	if (s->hop_count > SMP_HOPS_MAX)
		return false;
	for (uint8_t i = 1; i <= s->hop_count; i++) {
		/* A channel adapter is an end. */
		if ((i > 1 && at->node->type != NODE_SWITCH) || hop(f, at, s->initial[i], &k) != HOP_DONE)
			return false;
		s->back[i] = at->in;
	}
	s->hop_pointer = (uint8_t)(s->hop_count + 1);
	return true;
}

static bool carry_back(struct fabric *f, struct place *at, struct smp *s, const uint8_t *mad)
{
	const struct fabric_packet k = directed(mad);

	if (s->hop_count > SMP_HOPS_MAX)
		return false;
	for (uint8_t i = s->hop_count; i; i--) {
		if (hop(f, at, s->back[i], &k) != HOP_DONE)
			return false;
	}
	s->hop_pointer = 0;
	return true;
}

/* What a manager is asked or told, not an agent. */
static bool is_for_manager(const struct smp *s)
{
	return s->mad.attribute == SMP_SM_INFO || s->mad.method == MAD_METHOD_TRAP || s->mad.method & METHOD_RESPONSE;
}

static enum fabric_end deliver(const struct fabric *f, const struct place *at, struct fabric_mad *m)
{
	m->node = index_of(f, at->node);
	m->port = at->in ? at->in : fabric_first_port(at->node);
	return FABRIC_DELIVERED;
}

static enum fabric_end carry_smp(struct fabric *f, struct fabric_mad *m)
{
	const struct fabric_packet by_lid = {
		.slid = m->slid, .dlid = m->dlid, .pkey = FABRIC_NO_PARTITION, .mad = m->bytes};
	struct place at = {.node = &f->nodes[m->node]};
	uint8_t answer[MAD_LEN];
	bool is_directed, there;
	struct smp s;

	smp_decode(&s, m->bytes);
	is_directed = s.mad.mgmt_class == SMP_CLASS_DIRECTED;
	if (is_directed)
		there = s.d ? carry_back(f, &at, &s, m->bytes) : carry_directed(f, &at, &s, m->bytes);
	else
		there = carry_by_lid(f, &at, fabric_first_port(at.node), &by_lid);
	if (!there)
		return FABRIC_LOST;
	if (is_for_manager(&s)) {
		smp_encode(m->bytes, &s);
		return at.node->is_sm || s.mad.method & METHOD_RESPONSE ? deliver(f, &at, m) : FABRIC_LOST;
	}
	if (!sma_answer(f, at.node, at.in, &s))
		return FABRIC_LOST;
	s.d = is_directed;
	smp_encode(answer, &s);
	if (is_directed && !carry_back(f, &at, &s, answer))
		return FABRIC_LOST;
	smp_encode(m->bytes, &s);
	return FABRIC_ANSWERED;
}

/* QP1 takes packets of every partition that the port is in (IBTA 10.9.8); others are counted and
 * dropped. */
static bool port_takes(struct fabric *f, const struct place *at, const struct fabric_packet *k)
{
	uint8_t number = at->node->type == NODE_SWITCH ? 0 : at->in ? at->in : fabric_first_port(at->node);
	struct fabric_port *p = &at->node->ports[number];

	if (is_member(p, k->pkey))
		return true;
	pkey_tell(f, at, number, NOTICE_BAD_PKEY, k);
	p->info.pkey_violations += p->info.pkey_violations < UINT16_MAX;
	return false;
}

/* ibsim's protocol has no P_Key: it is the first one of the sender's port. */
static enum fabric_end carry_general(struct fabric *f, struct fabric_mad *m)
{
	struct place at = {.node = &f->nodes[m->node]};
	uint8_t out = fabric_first_port(at.node);
	const struct fabric_packet k = {.slid = m->slid,
					.dlid = m->dlid,
					.sqp = m->sqp,
					.dqp = m->dqp,
					.pkey = at.node->ports[out].pkeys[0],
					.mad = m->bytes};
	struct mad h;

	mad_decode(&h, m->bytes);
	if (!carry_by_lid(f, &at, out, &k) || !port_takes(f, &at, &k))
		return FABRIC_LOST;
	if (h.mgmt_class == CLASS_PERFORMANCE && !(h.method & METHOD_RESPONSE))
		return pma_answer(at.node, at.in, m->bytes) ? FABRIC_ANSWERED : FABRIC_LOST;
	return at.node->type == NODE_CA ? deliver(f, &at, m) : FABRIC_LOST;
}

bool fabric_carry_trap(struct fabric *f, struct fabric_mad *m)
{
	const struct fabric_packet k = {.slid = m->slid, .dlid = m->dlid, .pkey = FABRIC_NO_PARTITION, .mad = m->bytes};
	struct place at = {.node = &f->nodes[m->node]};

	if (!carry_by_lid(f, &at, m->port, &k))
		return false;
	deliver(f, &at, m);
	return true;
}

enum fabric_end fabric_carry(struct fabric *f, struct fabric_mad *m)
{
	uint8_t class = m->bytes[1];

	return class == SMP_CLASS_LID || class == SMP_CLASS_DIRECTED ? carry_smp(f, m) : carry_general(f, m);
}
