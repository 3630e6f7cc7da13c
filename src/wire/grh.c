/* SPDX-License-Identifier: BSD-2-Clause */
/* The GRH codec, and the GRH that a UD receiver gets: RoCEv1's own, or one in place of the IP header that was on the
 * wire. */
#include "wire/grh.h"

#include <assert.h>
#include <string.h>

#include "base/byteorder.h"
#include "base/ipudp.h"

static_assert((int)GRH_LEN == (int)IPUDP_IPV6_LEN, "a GRH has the shape of an IPv6 header");

void grh_decode(struct grh *h, const uint8_t *p)
{
	uint32_t word = get_be32(p);

	h->tclass = (uint8_t)(word >> 20);
	h->flow_label = word & 0xfffff;
	h->paylen = get_be16(p + 4);
	h->nexthdr = p[6];
	h->hop_limit = p[7];
	memcpy(h->sgid, p + 8, sizeof(h->sgid));
	memcpy(h->dgid, p + 24, sizeof(h->dgid));
}

void grh_encode(uint8_t *p, const struct grh *h)
{
	put_be32(p, (uint32_t)GRH_IPVER << 28 | (uint32_t)h->tclass << 20 | (h->flow_label & 0xfffff));
	put_be16(p + 4, h->paylen);
	p[6] = h->nexthdr;
	p[7] = h->hop_limit;
	memcpy(p + 8, h->sgid, sizeof(h->sgid));
	memcpy(p + 24, h->dgid, sizeof(h->dgid));
}

static void grh_of_rocev1(uint8_t *out, const struct flow *f, uint32_t len)
{
	struct grh h = {
		.tclass = f->tos,
		.nexthdr = GRH_NEXTHDR_IBA,
		.hop_limit = f->ttl,
		.paylen = (uint16_t)len,
		.flow_label = f->flow_label,
	};

	memcpy(h.sgid, f->src, sizeof(h.sgid));
	memcpy(h.dgid, f->dst, sizeof(h.dgid));
	grh_encode(out, &h);
}

void grh_from_flow(uint8_t out[GRH_LEN], const struct flow *f, uint32_t len)
{
	uint8_t hdr[IPUDP_LEN_MAX];
	size_t ip_len;

	if (!flow_has_udp(f)) {
		grh_of_rocev1(out, f, len);
		return;
	}
	ip_len = ipudp_encode(hdr, f, 0, len) - IPUDP_UDP_LEN;

	memset(out, 0, GRH_LEN - ip_len);
	memcpy(out + GRH_LEN - ip_len, hdr, ip_len);
}
