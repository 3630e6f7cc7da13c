/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IP and UDP headers made from a `struct flow`, for code that needs the bytes that a UDP socket
 * hides: ICRC, the GRH of UD, raw frames, capture files.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pkt.h"

enum {
	IPUDP_IPV4_LEN = 20,
	IPUDP_IPV6_LEN = 40,
	IPUDP_UDP_LEN = 8,
	IPUDP_V4_LEN = IPUDP_IPV4_LEN + IPUDP_UDP_LEN,
	IPUDP_V6_LEN = IPUDP_IPV6_LEN + IPUDP_UDP_LEN,
	IPUDP_LEN_MAX = IPUDP_V6_LEN,
	IPUDP_PAYLOAD_MAX = 65535 - IPUDP_V4_LEN /* the same bound for both, the lower one */
};

/* Both addresses of a flow are of one family, that of the destination. */
bool flow_is_ipv4(const struct flow *f);
/* An IPv6 multicast address, or ::ffff:a.b.c.d of an IPv4 one. */
bool gid_is_multicast(const uint8_t gid[16]);

/* The header of IP alone, before `len` bytes of that protocol: 20 or 40 bytes, as ipudp_encode() writes them. */
size_t ipudp_ip_encode(uint8_t *buf, const struct flow *f, uint16_t ip_id, uint8_t protocol, uint32_t len);
/*
 * The checksum of TCP or UDP (RFC 9293 3.1, RFC 768) behind that header: over the pseudo-header, the `head_len` bytes
 * of the protocol's header, an even number, in which the checksum is 0, and the payload.
 */
uint16_t ipudp_transport_checksum(const uint8_t *ip, const uint8_t *head, uint32_t head_len, const uint8_t *payload,
				  uint32_t payload_len);

/*
 * Writes an IPv4 header (RFC 791: no options, DF set, checksum valid) and a UDP header, or an IPv6
 * header (ip_id ignored) and a UDP header; returns their length, 28 or 48. payload_len is what
 * follows UDP, at most IPUDP_PAYLOAD_MAX. The UDP checksum is 0, "none" (RFC 768): legal for IPv4;
 * for IPv6 see ipudp_checksum.
 */
size_t ipudp_encode(uint8_t *buf, const struct flow *f, uint16_t ip_id, uint32_t payload_len);

/*
 * Computes the UDP checksum (RFC 768, RFC 8200 s8.1) of the headers that ipudp_encode wrote at hdr
 * and of the payload, and stores it there. payload_len is the same as it was there.
 */
void ipudp_checksum(uint8_t *hdr, const uint8_t *payload, uint32_t payload_len);
