/* SPDX-License-Identifier: BSD-2-Clause */
/* The subnet management agent (IBTA 14.2.5): what it says of a node, and what a manager may set. */
#include <assert.h>
#include <string.h>

#include "base/byteorder.h"
#include "fabric/fabric.h"
#include "wire/lrh.h"
#include "wire/notice.h"

enum { LFT_BLOCK = 64, PKEY_BLOCK = 32, MFT_BLOCK = 32, DONE = 0 };

#define NODE_VENDOR 0x025642u

static_assert((int)FABRIC_NAME_BYTES == (int)SMP_DATA_LEN, "a name is a NodeDescription");

/* What a question is about. */
struct sma {
	struct fabric *fabric;
	struct fabric_node *node;
	uint8_t in;
	bool set;
	uint32_t modifier;
	uint8_t *data;
};

typedef uint16_t sma_attribute(const struct sma *);

static bool is_switch(const struct fabric_node *n)
{
	return n->type == NODE_SWITCH;
}

/* The port that a modifier names; a channel adapter's 0 is the one that the question came in by. NULL: there is none.
 */
static struct fabric_port *port_named(const struct sma *q, uint32_t number)
{
	if (!number && !is_switch(q->node))
		number = q->in ? q->in : fabric_first_port(q->node);
	return number > q->node->port_count || (!number && !is_switch(q->node)) ? NULL : &q->node->ports[number];
}

static uint16_t node_description(const struct sma *q)
{
	if (q->set)
		return MAD_STATUS_BAD_ATTRIBUTE;
	memcpy(q->data, q->node->name, SMP_DATA_LEN);
	return DONE;
}

static uint16_t node_info(const struct sma *q)
{
	const struct fabric_node *n = q->node;
	uint8_t in = q->in || is_switch(n) ? q->in : fabric_first_port(n);

	if (q->set)
		return MAD_STATUS_BAD_ATTRIBUTE;
	node_info_encode(q->data, &(struct node_info){
					  .base_version = MAD_BASE_VERSION,
					  .class_version = SMP_CLASS_VERSION,
					  .type = n->type,
					  .ports = n->port_count,
					  .system_guid = n->guid,
					  .node_guid = n->guid,
					  .port_guid = is_switch(n) ? n->guid : n->guid + in,
					  .partition_cap = FABRIC_PKEYS,
					  .device_id = 1,
					  .revision = 1,
					  .local_port = in,
					  .vendor_id = NODE_VENDOR,
				  });
	return DONE;
}

static uint16_t switch_info(const struct sma *q)
{
	struct switch_info *s = &q->node->info, asked;

	if (!is_switch(q->node))
		return MAD_STATUS_BAD_ATTRIBUTE;
	switch_info_decode(&asked, q->data);
	if (q->set && asked.linear_top < FABRIC_LIDS) {
		s->linear_top = asked.linear_top;
		s->default_port = asked.default_port;
		s->default_primary = asked.default_primary;
		s->default_not_primary = asked.default_not_primary;
		s->life_time = asked.life_time;
		s->optimized_sl_to_vl = asked.optimized_sl_to_vl;
		s->multicast_top = asked.multicast_top;
		if (asked.state_change)
			s->state_change = false;
	}
	switch_info_encode(q->data, s);
	return DONE;
}

static uint16_t guid_info(const struct sma *q)
{
	const struct fabric_port *p = port_named(q, 0);

	if (q->modifier)
		return MAD_STATUS_BAD_VALUE;
	memset(q->data, 0, SMP_DATA_LEN);
	if (p)
		put_be64(q->data, q->node->guid + (is_switch(q->node) ? 0 : (uint64_t)(p - q->node->ports)));
	return DONE;
}

/*
 * A manager that asks for Polling or Disabled changes the link (IBTA 14.2.5.6). Every other value of PortPhysicalState,
 * 0 for "no change" among them, changes nothing here.
 */
static bool wants_phys(uint8_t phys)
{
	return phys == PORT_PHYS_POLLING || phys == PORT_PHYS_DISABLED;
}

/* IBTA 7.2.7, 14.2.5.6: a manager leads a port from Init to Armed to Active, or takes the link down, which trains
 * again. */
static bool state_allowed(const struct sma *q, const struct fabric_port *p, uint8_t to, uint8_t phys)
{
	bool is_link = p != &q->node->ports[0];

	if (wants_phys(phys) && !is_link)
		return false;
	switch (to) {
	case PORT_NO_CHANGE: return true;
	case PORT_DOWN: return is_link;
	case PORT_ARMED: return p->info.state == PORT_INIT || p->info.state == PORT_ARMED;
	case PORT_ACTIVE: return p->info.state == PORT_ARMED || p->info.state == PORT_ACTIVE;
	default: return false;
	}
}

/* One end of a link that came up, or went down. A switch remembers it and tells the manager (IBTA 14.2.5.4, 14.2.5.1).
 */
static void link_end_set(struct fabric *f, struct fabric_node *n, struct fabric_port *p, bool up)
{
	bool was_up = p->info.phys_state == PORT_PHYS_LINK_UP, changed = up || p->info.state != PORT_DOWN;

	p->counters[COUNT_LINKS_DOWNED] += changed && !up;
	p->info.state = up ? PORT_INIT : PORT_DOWN;
	if (was_up || p->info.phys_state == PORT_PHYS_POLLING)
		p->info.phys_state = up ? PORT_PHYS_LINK_UP : PORT_PHYS_POLLING;
	if (!changed || !is_switch(n))
		return;
	n->info.state_change = true;
	fabric_trap_raise(f, &(struct fabric_trap){.node = (uint16_t)(n - f->nodes), .number = NOTICE_LINK_STATE});
}

/* A link trains: it comes up unless one of its ends is disabled. */
static void link_train(struct fabric *f, struct fabric_node *n, struct fabric_port *p)
{
	struct fabric_node *far = &f->nodes[p->peer];
	struct fabric_port *other = &far->ports[p->peer_port];
	bool up = p->info.phys_state != PORT_PHYS_DISABLED && other->info.phys_state != PORT_PHYS_DISABLED;

	link_end_set(f, n, p, up);
	link_end_set(f, far, other, up);
}

static void state_set(const struct sma *q, struct fabric_port *p, uint8_t to, uint8_t phys)
{
	/* What polls or is up polls already. */
	bool turns =
		phys == PORT_PHYS_DISABLED || (phys == PORT_PHYS_POLLING && p->info.phys_state == PORT_PHYS_DISABLED);

	if (to == PORT_ARMED || to == PORT_ACTIVE)
		p->info.state = to;
	if (turns)
		p->info.phys_state = phys;
	if (p->linked && (turns || to == PORT_DOWN))
		link_train(q->fabric, q->node, p);
}

static void port_set(struct port_info *i, const struct port_info *a)
{
	i->mkey = a->mkey;
	i->gid_prefix = a->gid_prefix;
	i->lid = a->lid;
	i->sm_lid = a->sm_lid;
	i->mkey_lease = a->mkey_lease;
	i->mkey_protect = a->mkey_protect;
	i->lmc = a->lmc;
	i->down_default = a->down_default ? a->down_default : i->down_default;
	i->neighbor_mtu = a->neighbor_mtu ? a->neighbor_mtu : i->neighbor_mtu;
	i->sm_sl = a->sm_sl;
	i->init_type = a->init_type;
	i->vl_high_limit = a->vl_high_limit;
	i->stall_count = a->stall_count;
	i->hoq_life = a->hoq_life;
	i->operational_vls = a->operational_vls ? a->operational_vls : i->operational_vls;
	i->enforcement = a->enforcement;
	i->mkey_violations = a->mkey_violations;
	i->pkey_violations = a->pkey_violations;
	i->qkey_violations = a->qkey_violations;
	i->subnet_timeout = a->subnet_timeout;
	i->phy_errors = a->phy_errors;
	i->overrun_errors = a->overrun_errors;
}

static uint16_t port_info(const struct sma *q)
{
	struct fabric_port *p = port_named(q, q->modifier & 0xff);
	struct port_info asked, answer;

	if (!p)
		return MAD_STATUS_BAD_VALUE;
	port_info_decode(&asked, q->data);
	if (q->set) {
		if (!state_allowed(q, p, asked.state, asked.phys_state) || asked.neighbor_mtu > p->info.mtu_cap ||
		    asked.operational_vls > p->info.vl_cap || asked.lid > LID_UNICAST_MAX)
			return MAD_STATUS_BAD_VALUE;
		port_set(&p->info, &asked);
		state_set(q, p, asked.state, asked.phys_state);
	}
	answer = p->info;
	answer.local_port = q->in || is_switch(q->node) ? q->in : fabric_first_port(q->node);
	port_info_encode(q->data, &answer);
	return DONE;
}

static uint16_t pkey_table(const struct sma *q)
{
	struct fabric_port *p = port_named(q, q->modifier >> 16);

	if (!p || q->modifier & 0xffff)
		return MAD_STATUS_BAD_VALUE;
	for (size_t i = 0; i < PKEY_BLOCK; i++) {
		if (q->set)
			p->pkeys[i] = get_be16(q->data + 2 * i);
		put_be16(q->data + 2 * i, p->pkeys[i]);
	}
	return DONE;
}

static uint16_t sl_to_vl(const struct sma *q)
{
	uint32_t ports = q->node->port_count + 1u, in = q->modifier >> 8 & 0xff, out = q->modifier & 0xff;
	uint8_t *map;

	if (!is_switch(q->node))
		in = out = 0;
	if (in >= ports || out >= ports || q->modifier >> 16)
		return MAD_STATUS_BAD_VALUE;
	map = q->node->sl_to_vl[in * ports + out];
	if (q->set)
		memcpy(map, q->data, 8);
	memset(q->data, 0, SMP_DATA_LEN);
	memcpy(q->data, map, 8);
	return DONE;
}

static uint16_t vl_arbitration(const struct sma *q)
{
	struct fabric_port *p = port_named(q, q->modifier & 0xff);
	uint32_t block = q->modifier >> 16;

	if (!p || block < 1 || block > 4)
		return MAD_STATUS_BAD_VALUE;
	if (q->set)
		memcpy(p->vl_arbitration[block - 1], q->data, SMP_DATA_LEN);
	memcpy(q->data, p->vl_arbitration[block - 1], SMP_DATA_LEN);
	return DONE;
}

static uint16_t linear_forwarding(const struct sma *q)
{
	uint8_t *block;

	if (!is_switch(q->node))
		return MAD_STATUS_BAD_ATTRIBUTE;
	if (q->modifier >= FABRIC_LIDS / LFT_BLOCK)
		return MAD_STATUS_BAD_VALUE;
	block = q->node->forwarding + (size_t)q->modifier * LFT_BLOCK;
	if (q->set)
		memcpy(block, q->data, LFT_BLOCK);
	memcpy(q->data, block, LFT_BLOCK);
	return DONE;
}

static uint16_t multicast_forwarding(const struct sma *q)
{
	uint32_t block = q->modifier & 0x1ff, position = q->modifier >> 28;

	if (!is_switch(q->node))
		return MAD_STATUS_BAD_ATTRIBUTE;
	if (block >= FABRIC_GROUPS / MFT_BLOCK || position >= FABRIC_PORTS_MAX / 16)
		return MAD_STATUS_BAD_VALUE;
	for (size_t i = 0; i < MFT_BLOCK; i++) {
		uint16_t *mask = &q->node->groups[block * MFT_BLOCK + i][position];

		if (q->set)
			*mask = get_be16(q->data + 2 * i);
		put_be16(q->data + 2 * i, *mask);
	}
	return DONE;
}

static sma_attribute *attribute_of(uint16_t id)
{
	static sma_attribute *const attributes[] = {
		[SMP_NODE_DESCRIPTION] = node_description,
		[SMP_NODE_INFO] = node_info,
		[SMP_SWITCH_INFO] = switch_info,
		[SMP_GUID_INFO] = guid_info,
		[SMP_PORT_INFO] = port_info,
		[SMP_PKEY_TABLE] = pkey_table,
		[SMP_SL_TO_VL] = sl_to_vl,
		[SMP_VL_ARBITRATION] = vl_arbitration,
		[SMP_LINEAR_FORWARDING] = linear_forwarding,
		[SMP_MULTICAST_FORWARDING] = multicast_forwarding,
	};

	return id < sizeof(attributes) / sizeof(attributes[0]) ? attributes[id] : NULL;
}

/* IBTA 14.2.4: without the key nothing is set, and, as the protection says, nothing is told. */
static bool mkey_opens(const struct sma *q, const struct smp *s)
{
	struct fabric_port *p = is_switch(q->node) ? &q->node->ports[0] : port_named(q, 0);

	if (!p || !p->info.mkey || p->info.mkey == s->mkey || (!q->set && p->info.mkey_protect < 2))
		return true;
	p->info.mkey_violations += p->info.mkey_violations < UINT16_MAX;
	return false;
}

bool sma_answer(struct fabric *f, struct fabric_node *n, uint8_t in, struct smp *s)
{
	struct sma q = {.fabric = f,
			.node = n,
			.in = in,
			.set = s->mad.method == MAD_METHOD_SET,
			.modifier = s->mad.modifier,
			.data = s->data};
	sma_attribute *attribute = attribute_of(s->mad.attribute);

	if ((s->mad.method != MAD_METHOD_GET && !q.set) || !mkey_opens(&q, s))
		return false;
	if (s->mad.base_version != MAD_BASE_VERSION || s->mad.class_version != SMP_CLASS_VERSION)
		s->mad.status = MAD_STATUS_BAD_VERSION;
	else
		s->mad.status = attribute ? attribute(&q) : MAD_STATUS_BAD_ATTRIBUTE;
	s->mad.method = MAD_METHOD_GET_RESP;
	return true;
}
