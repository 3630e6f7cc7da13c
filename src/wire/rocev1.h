/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCEv1's frame up to the BTH (IBTA Annex A16): Ethernet, perhaps a VLAN tag, GRH.
 *
 *     | destination MAC 6 | source MAC 6 | [8100 | PCP 3, DEI 1, VID 12] | 8915 | GRH 40 | BTH ...
 *
 * Layer 2 only: a packet stays in one broadcast domain. A GID is a link-local address derived from a MAC, or an IP address,
 * whose MAC the neighbour table of the host has.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pkt.h"
#include "wire/grh.h"

enum {
	ROCEV1_ETHERTYPE = 0x8915,
	ROCEV1_VLAN_ETHERTYPE = 0x8100,
	ROCEV1_MAC_LEN = 6,
	ROCEV1_VLAN_LEN = 4,
	ROCEV1_HEAD_LEN = 2 * ROCEV1_MAC_LEN + 2 + GRH_LEN,
	ROCEV1_HEAD_LEN_MAX = ROCEV1_HEAD_LEN + ROCEV1_VLAN_LEN
};

struct rocev1_link {
	uint8_t dst[ROCEV1_MAC_LEN];
	uint8_t src[ROCEV1_MAC_LEN];
	bool tagged;
	uint16_t tci; /* of the tag: PCP, DEI, VID */
};

/* Writes what stands before a packet of len bytes, BTH to ICRC, and returns its length, at most ROCEV1_HEAD_LEN_MAX. */
size_t rocev1_encode(uint8_t *out, const struct rocev1_link *, const struct flow *, uint32_t len);

/*
 * Where the packet begins in a frame of n bytes, or 0: the frame is not RoCEv1's, or it is cut short. Sets the link,
 * the flow (without interface; sl is the tag's PCP) and the packet's length, which Ethernet's padding is not part of.
 */
size_t rocev1_decode(struct rocev1_link *, struct flow *, uint32_t *len, const uint8_t *frame, size_t n);

/*
 * The MAC that a link-local GID was derived from as a modified EUI-64 (RFC 4291 appendix A); false: it was not. GIDs
 * that have a VLAN's number in the place of ff fe are not recognised: the interface identifier of an IPv6 address may
 * look like one.
 */
bool rocev1_mac_of_gid(uint8_t mac[ROCEV1_MAC_LEN], const uint8_t gid[16]);
/* The MAC of a multicast GID: RFC 2464 for IPv6, RFC 1112 for ::ffff:224.0.0.0/100. */
void rocev1_mac_of_group(uint8_t mac[ROCEV1_MAC_LEN], const uint8_t gid[16]);
