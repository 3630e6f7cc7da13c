/* SPDX-License-Identifier: BSD-2-Clause */
/* The codec of RoCEv1's frame, and the MACs that GIDs stand for. */
#include "wire/rocev1.h"

#include <string.h>

#include "base/byteorder.h"

enum { SRC_AT = ROCEV1_MAC_LEN, TYPE_AT = 2 * ROCEV1_MAC_LEN, LOCAL_BIT = 2, PCP_SHIFT = 13 };

static const uint8_t link_local[8] = {0xfe, 0x80};

size_t rocev1_encode(uint8_t *out, const struct rocev1_link *link, const struct flow *f, uint32_t len)
{
	uint8_t *p = out + TYPE_AT;

	memcpy(out, link->dst, ROCEV1_MAC_LEN);
	memcpy(out + SRC_AT, link->src, ROCEV1_MAC_LEN);
	if (link->tagged) {
		put_be16(p, ROCEV1_VLAN_ETHERTYPE);
		put_be16(p + 2, link->tci);
		p += ROCEV1_VLAN_LEN;
	}
	put_be16(p, ROCEV1_ETHERTYPE);
	grh_from_flow(p + 2, f, len);
	return (size_t)(p + 2 - out) + GRH_LEN;
}

static void flow_of(struct flow *f, const struct grh *h)
{
	*f = (struct flow){.flow_label = h->flow_label, .tos = h->tclass, .ttl = h->hop_limit};
	memcpy(f->src, h->sgid, sizeof(f->src));
	memcpy(f->dst, h->dgid, sizeof(f->dst));
}

/* The tag, if there is one: where the Ethertype stands behind it. */
static size_t tag_decode(struct rocev1_link *link, const uint8_t *frame)
{
	link->tagged = get_be16(frame + TYPE_AT) == ROCEV1_VLAN_ETHERTYPE;
	link->tci = link->tagged ? get_be16(frame + TYPE_AT + 2) : 0;
	return TYPE_AT + (link->tagged ? ROCEV1_VLAN_LEN : 0);
}

size_t rocev1_decode(struct rocev1_link *link, struct flow *f, uint32_t *len, const uint8_t *frame, size_t n)
{
	struct rocev1_link l;
	struct grh h;
	size_t at;

	if (n < ROCEV1_HEAD_LEN)
		return 0;
	at = tag_decode(&l, frame);
	if (get_be16(frame + at) != ROCEV1_ETHERTYPE || n < at + 2 + GRH_LEN)
		return 0;
	at += 2;
	grh_decode(&h, frame + at);
	if (frame[at] >> 4 != GRH_IPVER || h.nexthdr != GRH_NEXTHDR_IBA || h.paylen > n - at - GRH_LEN)
		return 0;
	memcpy(l.dst, frame, ROCEV1_MAC_LEN);
	memcpy(l.src, frame + SRC_AT, ROCEV1_MAC_LEN);
	*link = l;
	flow_of(f, &h);
	f->sl = (uint8_t)(l.tci >> PCP_SHIFT);
	*len = h.paylen;
	return at + GRH_LEN;
}

bool rocev1_mac_of_gid(uint8_t mac[ROCEV1_MAC_LEN], const uint8_t gid[16])
{
	if (memcmp(gid, link_local, sizeof(link_local)) != 0 || gid[11] != 0xff || gid[12] != 0xfe)
		return false;
	memcpy(mac, gid + 8, 3);
	memcpy(mac + 3, gid + 13, 3);
	mac[0] ^= LOCAL_BIT;
	return true;
}

void rocev1_mac_of_group(uint8_t mac[ROCEV1_MAC_LEN], const uint8_t gid[16])
{
	bool ipv6 = gid[0] == 0xff;

	put_be16(mac, ipv6 ? 0x3333 : 0x0100);
	memcpy(mac + 2, gid + 12, 4);
	if (!ipv6) {
		mac[2] = 0x5e;
		mac[3] &= 0x7f;
	}
}
