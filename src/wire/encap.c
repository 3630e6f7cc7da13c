/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Headers as the ICRC sees them: what is sent, with ones where routers may write. IP and UDP: IBTA A17.3.3; the GRH of
 * RoCEv1: IBTA 7.8.1.
 */
#include "wire/encap.h"

#include <string.h>

#include "base/byteorder.h"
#include "wire/grh.h"
#include "wire/rocev2.h"

static size_t masked_udp(uint8_t *p, const struct flow *f, uint32_t len)
{
	put_be16(p, f->sport);
	put_be16(p + 2, f->dport);
	put_be32(p + 4, (IPUDP_UDP_LEN + len) << 16 | 0xffff); /* checksum */
	return IPUDP_UDP_LEN;
}

static size_t masked_ipv4(uint8_t *p, const struct flow *f, uint32_t len)
{
	put_be32(p, 0x45ff0000u | (IPUDP_V4_LEN + len)); /* TOS */
	put_be32(p + 4, 0x4000);
	put_be32(p + 8, 0xff11ffffu); /* TTL, header checksum */
	memcpy(p + 12, f->src + 12, 4);
	memcpy(p + 16, f->dst + 12, 4);
	return IPUDP_IPV4_LEN + masked_udp(p + IPUDP_IPV4_LEN, f, len);
}

static size_t masked_ipv6(uint8_t *p, const struct flow *f, uint32_t len)
{
	put_be32(p, 0x6fffffffu);                              /* traffic class, flow label */
	put_be32(p + 4, (IPUDP_UDP_LEN + len) << 16 | 0x11ff); /* hop limit */
	memcpy(p + 8, f->src, 16);
	memcpy(p + 24, f->dst, 16);
	return IPUDP_IPV6_LEN + masked_udp(p + IPUDP_IPV6_LEN, f, len);
}

static size_t masked_grh(uint8_t *p, const struct flow *f, uint32_t len)
{
	put_be32(p, 0x6fffffffu);                                 /* TClass, flow label */
	put_be32(p + 4, len << 16 | GRH_NEXTHDR_IBA << 8 | 0xff); /* hop limit */
	memcpy(p + 8, f->src, 16);
	memcpy(p + 24, f->dst, 16);
	return GRH_LEN;
}

/* clang-format off */
const struct encap encaps[ENCAP_KINDS] = {
	[ENCAP_ROCEV2_IPV4] = {ROCEV2_UDP_PORT, IPUDP_V4_LEN, true,  masked_ipv4},
	[ENCAP_ROCEV2_IPV6] = {ROCEV2_UDP_PORT, IPUDP_V6_LEN, false, masked_ipv6},
	[ENCAP_VEROCE_IPV4] = {VEROCE_UDP_PORT, IPUDP_V4_LEN, true,  masked_ipv4},
	[ENCAP_VEROCE_IPV6] = {VEROCE_UDP_PORT, IPUDP_V6_LEN, false, masked_ipv6},
	[ENCAP_ROCEV1]      = {0,               GRH_LEN,      false, masked_grh},
};
/* clang-format on */
