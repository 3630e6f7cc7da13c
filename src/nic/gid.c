/* SPDX-License-Identifier: BSD-2-Clause */
/* The port's GID table, and address vectors turned into flows (IBTA A17.4.1). */
#include <errno.h>
#include <string.h>

#include "base/ipudp.h"
#include "nic/state.h"
#include "wire/encap.h"

enum {
	HOP_LIMIT_DEFAULT = 64,
	/*
	 * BTH, the most that a packet with payload carries, which is veRoCE's WRITE with immediate (time stamp,
	 * MSNETH, RETH, RQETH, POETH, ImmDt), ICRC
	 */
	PACKET_HEADER_BYTES_MAX = 12 + 8 + 4 + 16 + 4 + 4 + 4 + 4
};

uint32_t nic_path_mtu(uint32_t ip_mtu)
{
	/* One port serves both families, so the longer headers count. */
	uint32_t headers = encaps[ENCAP_VEROCE_IPV6].header_bytes + PACKET_HEADER_BYTES_MAX;
	uint32_t mtu = NIC_MTU_BYTES_MAX;

	while (mtu > 256 && mtu + headers > ip_mtu)
		mtu /= 2;
	return mtu;
}

uint32_t nic_gid_count(const struct nic *nic)
{
	return nic->gid_count;
}

static void name_gid(const struct gid_map *map, struct nic_gid *g)
{
	const uint8_t *name = gid_map_vgid(map, g->raw);

	if (name)
		memcpy(g->raw, name, sizeof(g->raw));
	else
		*g = (struct nic_gid){0};
}

int nic_gid(const struct nic *nic, uint32_t index, struct nic_gid *out)
{
	if (index >= NIC_GIDS_MAX)
		return -EINVAL;
	*out = nic->gids[index];
	if (nic->tp.gid_map)
		name_gid(nic->tp.gid_map, out);
	return 0;
}

void nic_set_gid_map(struct nic *nic, const struct gid_map *map)
{
	nic->tp.gid_map = map;
}

bool nic_show_flow(const struct nic *nic, struct flow *f)
{
	return !nic->tp.gid_map || gid_map_show(nic->tp.gid_map, f);
}

const uint8_t *nic_underlay(const struct nic *nic, const uint8_t dgid[16])
{
	if (!nic->tp.gid_map || gid_is_multicast(dgid))
		return dgid;
	return gid_map_underlay(nic->tp.gid_map, dgid);
}

static bool is_zero(const uint8_t gid[16])
{
	static const uint8_t zero[16];

	return !memcmp(gid, zero, sizeof(zero));
}

static bool is_loopback(const uint8_t gid[16])
{
	static const uint8_t ipv6[16] = {[15] = 1};
	static const uint8_t ipv4[13] = {[10] = 0xff, [11] = 0xff, [12] = 127};

	return !memcmp(gid, ipv6, sizeof(ipv6)) || !memcmp(gid, ipv4, sizeof(ipv4));
}

/* Packets to one of the host's own addresses never leave the host, on any interface. */
bool nic_is_local(const struct nic *nic, const uint8_t gid[16])
{
	for (uint32_t i = 0; i < nic->gid_count && !is_zero(gid); i++) {
		if (!memcmp(nic->gids[i].raw, gid, sizeof(nic->gids[i].raw)))
			return true;
	}
	return false;
}

void qp_find_peer(struct nic *nic, struct qp *qp)
{
	bool local = !qp->ops->datagram && qp->av.is_global && nic_is_local(nic, qp->flow.src) &&
		     nic_is_local(nic, qp->flow.dst);

	peer_change(&nic->tp, qp, local ? peer_at(&nic->tp, slot_of_qpn(qp->dest_qpn)) : &nic->tp.elsewhere);
}

bool nic_uses_gid(const struct nic *nic, const uint8_t gid[16])
{
	for (uint32_t i = 0; i <= nic->qps_mask; i++)
		for (const struct qp *qp = nic->qps[i]; qp; qp = qp->table_next)
			if (!qp->ops->datagram && qp->av.is_global && !memcmp(qp->flow.src, gid, sizeof(qp->flow.src)))
				return true;
	return false;
}

void nic_set_gids(struct nic *nic, const struct nic_gid *gids, uint32_t count)
{
	memset(nic->gids, 0, sizeof(nic->gids));
	nic->gid_count = count < NIC_GIDS_MAX ? count : NIC_GIDS_MAX;
	memcpy(nic->gids, gids, nic->gid_count * sizeof(gids[0]));
	for (uint32_t i = 0; i <= nic->qps_mask; i++)
		for (struct qp *qp = nic->qps[i]; qp; qp = qp->table_next)
			qp_find_peer(nic, qp);
	nic->tp.qp_changes++;
}

uint32_t nic_active_mtu(const struct nic *nic)
{
	uint32_t least = UINT32_MAX;

	for (uint32_t i = 0; i < nic->gid_count; i++) {
		const struct nic_gid *g = &nic->gids[i];

		if (!is_zero(g->raw) && !is_loopback(g->raw) && g->ip_mtu < least)
			least = g->ip_mtu;
	}
	return nic_path_mtu(least);
}

int nic_resolve(const struct nic *nic, const struct ah_attr *av, struct flow *out, uint32_t *ip_mtu)
{
	struct flow f = {0};
	struct nic_gid name;
	const struct nic_gid *g;
	const uint8_t *to;

	if (av->port != 1 || !av->is_global || av->sgid_index >= nic->gid_count)
		return -EINVAL;
	nic_gid(nic, av->sgid_index, &name);
	if (is_zero(name.raw) || is_zero(av->dgid))
		return -EINVAL;
	to = nic_underlay(nic, av->dgid);
	if (!to)
		return -ENETUNREACH;
	g = &nic->gids[av->sgid_index];
	memcpy(f.src, g->raw, sizeof(f.src));
	memcpy(f.dst, to, sizeof(f.dst));
	if (flow_is_ipv4(&f) != !memcmp(f.src, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12))
		return -EINVAL; /* one end IPv4, the other IPv6 */
	f.flow_label = av->flow_label & 0xfffff;
	/* A link-local destination is ambiguous without the interface, and so is a multicast one. */
	if ((f.dst[0] == 0xfe && (f.dst[1] & 0xc0) == 0x80) || gid_is_multicast(f.dst))
		f.ifindex = g->ifindex;
	f.sport = (flow_is_ipv4(&f) ? nic->tp.config.sport_ipv4 : nic->tp.config.sport_ipv6)[0];
	f.dport = nic->tp.config.rocev2.port;
	f.tos = av->traffic_class;
	f.ttl = av->hop_limit ? av->hop_limit : HOP_LIMIT_DEFAULT;
	f.sl = av->sl & 15;
	*out = f;
	if (ip_mtu)
		*ip_mtu = nic_is_local(nic, f.dst) ? UINT16_MAX : g->ip_mtu;
	return 0;
}
