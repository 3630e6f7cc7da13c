/* SPDX-License-Identifier: BSD-2-Clause */
/* IP and UDP headers as bytes. Everything comes from the arguments; nothing is kept. */
#include "base/ipudp.h"

#include <assert.h>
#include <string.h>

#include "base/byteorder.h"

enum {
	IPPROTO_UDP_NUMBER = 17,
	IPV4_VERSION_IHL = 0x45,
	IPV4_DF = 0x4000,
	IPV4_PROTOCOL = 9, /* offsets */
	IPV4_CHECKSUM = 10,
	IPV6_PROTOCOL = 6,
	UDP_CHECKSUM = 6
};

static const uint8_t v4_mapped[12] = {[10] = 0xff, [11] = 0xff};

/* The Internet checksum (RFC 1071), unfolded; len may be odd only in the last part summed. */
static uint64_t sum_add(uint64_t sum, const uint8_t *p, size_t len)
{
	for (; len >= 4; p += 4, len -= 4)
		sum += get_be32(p);
	if (len >= 2) {
		sum += get_be16(p);
		p += 2;
		len -= 2;
	}
	if (len)
		sum += (uint32_t)p[0] << 8;
	return sum;
}

static uint16_t sum_fold(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

bool flow_is_ipv4(const struct flow *f)
{
	return memcmp(f->dst, v4_mapped, sizeof(v4_mapped)) == 0;
}

bool gid_is_multicast(const uint8_t gid[16])
{
	return gid[0] == 0xff || (!memcmp(gid, v4_mapped, sizeof(v4_mapped)) && gid[12] >> 4 == 14);
}

static void udp_encode(uint8_t *p, const struct flow *f, uint32_t payload_len)
{
	put_be16(p, f->sport);
	put_be16(p + 2, f->dport);
	put_be16(p + 4, (uint16_t)(IPUDP_UDP_LEN + payload_len));
	put_be16(p + UDP_CHECKSUM, 0);
}

size_t ipudp_ip_encode(uint8_t *buf, const struct flow *f, uint16_t ip_id, uint8_t protocol, uint32_t len)
{
	if (flow_is_ipv4(f)) {
		buf[0] = IPV4_VERSION_IHL;
		buf[1] = f->tos;
		put_be16(buf + 2, (uint16_t)(IPUDP_IPV4_LEN + len));
		put_be16(buf + 4, ip_id);
		put_be16(buf + 6, IPV4_DF);
		buf[8] = f->ttl;
		buf[IPV4_PROTOCOL] = protocol;
		put_be16(buf + IPV4_CHECKSUM, 0);
		memcpy(buf + 12, f->src + 12, 4);
		memcpy(buf + 16, f->dst + 12, 4);
		put_be16(buf + IPV4_CHECKSUM, sum_fold(sum_add(0, buf, IPUDP_IPV4_LEN)));
		return IPUDP_IPV4_LEN;
	}

	put_be32(buf, 6u << 28 | (uint32_t)f->tos << 20 | (f->flow_label & 0xfffff));
	put_be16(buf + 4, (uint16_t)len);
	buf[IPV6_PROTOCOL] = protocol;
	buf[7] = f->ttl;
	memcpy(buf + 8, f->src, 16);
	memcpy(buf + 24, f->dst, 16);
	return IPUDP_IPV6_LEN;
}

size_t ipudp_encode(uint8_t *buf, const struct flow *f, uint16_t ip_id, uint32_t payload_len)
{
	size_t ip_len;

	assert(payload_len <= IPUDP_PAYLOAD_MAX);
	ip_len = ipudp_ip_encode(buf, f, ip_id, IPPROTO_UDP_NUMBER, IPUDP_UDP_LEN + payload_len);
	udp_encode(buf + ip_len, f, payload_len);
	return ip_len + IPUDP_UDP_LEN;
}

uint16_t ipudp_transport_checksum(const uint8_t *ip, const uint8_t *head, uint32_t head_len, const uint8_t *payload,
				  uint32_t payload_len)
{
	bool ipv4 = ip[0] >> 4 == 4;
	/* The pseudo-header: both addresses, which are adjacent; protocol; length. */
	uint64_t sum = ipv4 ? sum_add(0, ip + 12, 8) : sum_add(0, ip + 8, 32);

	sum += ip[ipv4 ? IPV4_PROTOCOL : IPV6_PROTOCOL] + head_len + payload_len;
	sum = sum_add(sum, head, head_len);
	return sum_fold(sum_add(sum, payload, payload_len));
}

void ipudp_checksum(uint8_t *hdr, const uint8_t *payload, uint32_t payload_len)
{
	uint8_t *udp = hdr + (hdr[0] >> 4 == 4 ? IPUDP_IPV4_LEN : IPUDP_IPV6_LEN);
	uint16_t folded;

	put_be16(udp + UDP_CHECKSUM, 0);
	folded = ipudp_transport_checksum(hdr, udp, IPUDP_UDP_LEN, payload, payload_len);
	/* 0 would say "no checksum" (RFC 768). */
	put_be16(udp + UDP_CHECKSUM, folded ? folded : 0xffff);
}
