/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address handles: a flow, resolved once. Also the address of a datagram's sender, from the global
 * route header that precedes it in the buffer (IBTA A17.4.5.1): 40 bytes that hold an IPv6 header,
 * or an IPv4 header in the last 20.
 */
#include <endian.h>
#include <string.h>

#include "verbs/objects.h"
#include "verbs/qp_explain.h"

static_assert(sizeof(struct ibv_ah) == 24, "ABI");
static_assert(sizeof(struct ibv_ah_attr) == 32, "ABI");
static_assert(sizeof(struct ibv_grh) == 40, "ABI");

enum { IPV4_OFFSET = 20, IPV4_LEN = 20, REPLY_HOP_LIMIT = 255 };

static uint32_t alive[ENGINE_DEVICES_MAX]; /* handles of each device; its engine's lock */

static uint32_t *alive_of(const struct abi_context *ctx)
{
	return &alive[device_index(ctx->v.context.device)];
}

static void ah_reap(struct object *o)
{
	struct abi_ah *ah = container_of(o, struct abi_ah, object);

	pd_of(ah->pub.pd)->core->users--;
	--*alive_of(context_of(ah->pub.context));
}

void ah_attr_from_verbs(struct ah_attr *to, const struct ibv_ah_attr *from)
{
	*to = (struct ah_attr){
		.flow_label = from->grh.flow_label,
		.sgid_index = from->grh.sgid_index,
		.hop_limit = from->grh.hop_limit,
		.traffic_class = from->grh.traffic_class,
		.sl = from->sl,
		.port = from->port_num,
		.is_global = from->is_global,
		.static_rate = from->static_rate,
		.src_path_bits = from->src_path_bits,
		.dlid = from->dlid,
	};
	memcpy(to->dgid, from->grh.dgid.raw, sizeof(to->dgid));
}

void ah_attr_to_verbs(struct ibv_ah_attr *to, const struct ah_attr *from)
{
	*to = (struct ibv_ah_attr){
		.grh =
			{
				.flow_label = from->flow_label,
				.sgid_index = from->sgid_index,
				.hop_limit = from->hop_limit,
				.traffic_class = from->traffic_class,
			},
		.sl = from->sl,
		.port_num = from->port,
		.is_global = from->is_global,
		.static_rate = from->static_rate,
		.src_path_bits = from->src_path_bits,
		.dlid = from->dlid,
	};
	memcpy(to->grh.dgid.raw, from->dgid, sizeof(from->dgid));
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct abi_context *ctx;
	struct ah_attr core;
	struct abi_ah *ah;
	uint32_t ip_mtu;
	int err, full;

	if (!pd || !attr)
		return fail_null(EINVAL);
	err = injected(pd->context, FAULT_CALL_create_ah);
	if (err)
		return fail_null(err);
	ah = space_get(sizeof(*ah));
	if (!ah)
		return fail_null(ENOMEM);
	ctx = context_of(pd->context);
	ah->pub.context = pd->context;
	ah->pub.pd = pd;
	ah_attr_from_verbs(&core, attr);
	engine_lock(ctx->engine);
	engine_follow_map(ctx->engine);
	err = room_check(ctx, PROFILE_AH, *alive_of(ctx), 0);
	full = err;
	if (!err)
		err = -nic_resolve(ctx->nic, &core, &ah->flow, &ip_mtu);
	if (!err) {
		++*alive_of(ctx);
		pd_of(pd)->core->users++;
		object_add(ctx, &ah->object, ah_reap);
	}
	engine_unlock(ctx->engine);
	if (err) {
		space_put(ah, sizeof(*ah));
		if (!full)
			explain_address(ctx, attr, "ibv_create_ah");
		return fail_null(err);
	}
	return &ah->pub;
}

int ibv_destroy_ah(struct ibv_ah *pub)
{
	struct abi_ah *ah = ah_of(pub);
	struct abi_context *ctx = context_of(pub->context);

	engine_lock(ctx->engine);
	ah_reap(&ah->object);
	list_remove(&ah->object.link);
	engine_unlock(ctx->engine);
	space_put(ah, sizeof(*ah));
	return 0;
}

static bool ipv4_checks(const uint8_t *ip)
{
	uint32_t sum = 0;

	if (ip[0] != 0x45)
		return false;
	for (int i = 0; i < IPV4_LEN; i += 2)
		sum += (uint32_t)ip[i] << 8 | ip[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff || sum + (sum >> 16) == 0xffff;
}

static void gid_from_ipv4(uint8_t gid[16], const uint8_t *address)
{
	memset(gid, 0, 10);
	gid[10] = 0xff;
	gid[11] = 0xff;
	memcpy(gid + 12, address, 4);
}

static int gid_index_of(struct abi_context *ctx, const uint8_t gid[16])
{
	struct nic_gid entry;
	int found = -1;

	engine_lock(ctx->engine);
	for (uint32_t i = 0; i < nic_gid_count(ctx->nic) && found < 0; i++)
		if (nic_gid(ctx->nic, i, &entry) == 0 && !memcmp(entry.raw, gid, 16))
			found = (int)i;
	engine_unlock(ctx->engine);
	return found;
}

int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *wc, struct ibv_grh *grh,
			struct ibv_ah_attr *attr)
{
	const uint8_t *raw = (const uint8_t *)grh;
	uint8_t receiver[16];
	uint32_t first;
	int index;

	if (port != PORT)
		return fail_minus_one(EINVAL);
	*attr = (struct ibv_ah_attr){
		.dlid = wc->slid,
		.sl = wc->sl,
		.src_path_bits = wc->dlid_path_bits,
		.port_num = port,
	};
	if (!(wc->wc_flags & IBV_WC_GRH))
		return 0;
	attr->is_global = 1;
	attr->grh.hop_limit = REPLY_HOP_LIMIT;
	if (ipv4_checks(raw + IPV4_OFFSET)) {
		gid_from_ipv4(attr->grh.dgid.raw, raw + IPV4_OFFSET + 12);
		gid_from_ipv4(receiver, raw + IPV4_OFFSET + 16);
		attr->grh.traffic_class = raw[IPV4_OFFSET + 1];
	} else if (raw[0] >> 4 == 6) {
		first = be32toh(grh->version_tclass_flow);
		attr->grh.dgid = grh->sgid;
		memcpy(receiver, grh->dgid.raw, sizeof(receiver));
		attr->grh.flow_label = first & 0xfffff;
		attr->grh.traffic_class = first >> 20 & 0xff;
	} else {
		return fail_minus_one(EPROTONOSUPPORT);
	}
	index = gid_index_of(context_of(context), receiver);
	if (index < 0)
		return fail_minus_one(EADDRNOTAVAIL);
	attr->grh.sgid_index = (uint8_t)index;
	return 0;
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port)
{
	struct ibv_ah_attr attr;

	if (ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr))
		return NULL;
	return ibv_create_ah(pd, &attr);
}
