/* SPDX-License-Identifier: BSD-2-Clause */
/* The codecs of NodeInfo, SwitchInfo and PortInfo. */
#include "wire/smi.h"

#include <string.h>

#include "base/byteorder.h"
#include "wire/smp.h"

/* Two fields of a byte, the lower one of that many bits. */
static uint8_t join(uint8_t high, uint8_t low, int bits)
{
	return (uint8_t)(high << bits | (low & ((1 << bits) - 1)));
}

static uint8_t low(uint8_t byte, int bits)
{
	return (uint8_t)(byte & ((1 << bits) - 1));
}

void node_info_decode(struct node_info *n, const uint8_t *p)
{
	*n = (struct node_info){
		.base_version = p[0],
		.class_version = p[1],
		.type = p[2],
		.ports = p[3],
		.system_guid = get_be64(p + 4),
		.node_guid = get_be64(p + 12),
		.port_guid = get_be64(p + 20),
		.partition_cap = get_be16(p + 28),
		.device_id = get_be16(p + 30),
		.revision = get_be32(p + 32),
		.local_port = p[36],
		.vendor_id = get_be32(p + 36) & 0xffffff,
	};
}

void node_info_encode(uint8_t *p, const struct node_info *n)
{
	memset(p, 0, SMP_DATA_LEN);
	p[0] = n->base_version;
	p[1] = n->class_version;
	p[2] = n->type;
	p[3] = n->ports;
	put_be64(p + 4, n->system_guid);
	put_be64(p + 12, n->node_guid);
	put_be64(p + 20, n->port_guid);
	put_be16(p + 28, n->partition_cap);
	put_be16(p + 30, n->device_id);
	put_be32(p + 32, n->revision);
	put_be32(p + 36, (uint32_t)n->local_port << 24 | (n->vendor_id & 0xffffff));
}

void switch_info_decode(struct switch_info *s, const uint8_t *p)
{
	*s = (struct switch_info){
		.linear_cap = get_be16(p),
		.random_cap = get_be16(p + 2),
		.multicast_cap = get_be16(p + 4),
		.linear_top = get_be16(p + 6),
		.default_port = p[8],
		.default_primary = p[9],
		.default_not_primary = p[10],
		.life_time = p[11] >> 3,
		.state_change = p[11] & 4,
		.optimized_sl_to_vl = low(p[11], 2),
		.lids_per_port = get_be16(p + 12),
		.partition_cap = get_be16(p + 14),
		.flags = p[16],
		.multicast_top = get_be16(p + 18),
	};
}

void switch_info_encode(uint8_t *p, const struct switch_info *s)
{
	memset(p, 0, SMP_DATA_LEN);
	put_be16(p, s->linear_cap);
	put_be16(p + 2, s->random_cap);
	put_be16(p + 4, s->multicast_cap);
	put_be16(p + 6, s->linear_top);
	p[8] = s->default_port;
	p[9] = s->default_primary;
	p[10] = s->default_not_primary;
	p[11] = join(s->life_time, (uint8_t)(s->state_change << 2 | low(s->optimized_sl_to_vl, 2)), 3);
	put_be16(p + 12, s->lids_per_port);
	put_be16(p + 14, s->partition_cap);
	p[16] = s->flags;
	put_be16(p + 18, s->multicast_top);
}

void port_info_decode(struct port_info *i, const uint8_t *p)
{
	*i = (struct port_info){
		.mkey = get_be64(p),
		.gid_prefix = get_be64(p + 8),
		.lid = get_be16(p + 16),
		.sm_lid = get_be16(p + 18),
		.capabilities = get_be32(p + 20),
		.diag_code = get_be16(p + 24),
		.mkey_lease = get_be16(p + 26),
		.local_port = p[28],
		.width_enabled = p[29],
		.width_supported = p[30],
		.width_active = p[31],
		.speed_supported = p[32] >> 4,
		.state = low(p[32], 4),
		.phys_state = p[33] >> 4,
		.down_default = low(p[33], 4),
		.mkey_protect = p[34] >> 6,
		.lmc = low(p[34], 3),
		.speed_active = p[35] >> 4,
		.speed_enabled = low(p[35], 4),
		.neighbor_mtu = p[36] >> 4,
		.sm_sl = low(p[36], 4),
		.vl_cap = p[37] >> 4,
		.init_type = low(p[37], 4),
		.vl_high_limit = p[38],
		.vl_arb_high_cap = p[39],
		.vl_arb_low_cap = p[40],
		.init_type_reply = p[41] >> 4,
		.mtu_cap = low(p[41], 4),
		.stall_count = p[42] >> 5,
		.hoq_life = low(p[42], 5),
		.operational_vls = p[43] >> 4,
		.enforcement = low(p[43], 4),
		.mkey_violations = get_be16(p + 44),
		.pkey_violations = get_be16(p + 46),
		.qkey_violations = get_be16(p + 48),
		.guid_cap = p[50],
		.reregister = p[51] >> 5,
		.subnet_timeout = low(p[51], 5),
		.response_time = low(p[52], 5),
		.phy_errors = p[53] >> 4,
		.overrun_errors = low(p[53], 4),
		.credit_hint = get_be16(p + 54),
		.round_trip = get_be32(p + 56) & 0xffffff,
		.capabilities2 = get_be16(p + 60),
		.ext_speed_active = p[62] >> 4,
		.ext_speed_supported = low(p[62], 4),
		.ext_speed_enabled = low(p[63], 5),
	};
}

void port_info_encode(uint8_t *p, const struct port_info *i)
{
	memset(p, 0, SMP_DATA_LEN);
	put_be64(p, i->mkey);
	put_be64(p + 8, i->gid_prefix);
	put_be16(p + 16, i->lid);
	put_be16(p + 18, i->sm_lid);
	put_be32(p + 20, i->capabilities);
	put_be16(p + 24, i->diag_code);
	put_be16(p + 26, i->mkey_lease);
	p[28] = i->local_port;
	p[29] = i->width_enabled;
	p[30] = i->width_supported;
	p[31] = i->width_active;
	p[32] = join(i->speed_supported, i->state, 4);
	p[33] = join(i->phys_state, i->down_default, 4);
	p[34] = (uint8_t)(i->mkey_protect << 6 | low(i->lmc, 3));
	p[35] = join(i->speed_active, i->speed_enabled, 4);
	p[36] = join(i->neighbor_mtu, i->sm_sl, 4);
	p[37] = join(i->vl_cap, i->init_type, 4);
	p[38] = i->vl_high_limit;
	p[39] = i->vl_arb_high_cap;
	p[40] = i->vl_arb_low_cap;
	p[41] = join(i->init_type_reply, i->mtu_cap, 4);
	p[42] = join(i->stall_count, i->hoq_life, 5);
	p[43] = join(i->operational_vls, i->enforcement, 4);
	put_be16(p + 44, i->mkey_violations);
	put_be16(p + 46, i->pkey_violations);
	put_be16(p + 48, i->qkey_violations);
	p[50] = i->guid_cap;
	p[51] = join(i->reregister, i->subnet_timeout, 5);
	p[52] = low(i->response_time, 5);
	p[53] = join(i->phy_errors, i->overrun_errors, 4);
	put_be16(p + 54, i->credit_hint);
	put_be32(p + 56, i->round_trip & 0xffffff);
	put_be16(p + 60, i->capabilities2);
	p[62] = join(i->ext_speed_active, i->ext_speed_supported, 4);
	p[63] = low(i->ext_speed_enabled, 5);
}
