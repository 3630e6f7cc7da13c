/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Encapsulations: what stands before the BTH. A packet's own bytes, BTH to ICRC, are the same in all of them; every
 * difference is in a row of this table.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ipudp.h"
#include "base/pkt.h"

enum encap_kind {
	ENCAP_ROCEV2_IPV4,
	ENCAP_ROCEV2_IPV6,
	ENCAP_VEROCE_IPV4,
	ENCAP_VEROCE_IPV6,
	ENCAP_ROCEV1,
	ENCAP_KINDS
};

enum { ENCAP_HEAD_MAX = IPUDP_LEN_MAX };

struct encap {
	uint16_t udp_port;     /* the default; 0: no UDP */
	uint16_t header_bytes; /* between the link layer's header and the BTH */
	/*
	 * The ICRC covers an identification that a UDP socket can neither set nor read: pkt.ip_id
	 * is a guess.
	 */
	bool hides_id;
	/*
	 * Writes what the ICRC covers between the 8 bytes of ones and the BTH, and returns its length, at most
	 * ENCAP_HEAD_MAX: fields that routers may change are ones, the identification is 0. `len` is the packet's.
	 */
	size_t (*masked_head)(uint8_t *out, const struct flow *, uint32_t len);
};

extern const struct encap encaps[ENCAP_KINDS];

/* The row of the flow's wire and addresses: for UDP RoCEv2's, from which veRoCE's differs in the port alone. */
static inline const struct encap *encap_of(const struct flow *f)
{
	if (!flow_has_udp(f))
		return &encaps[ENCAP_ROCEV1];
	return &encaps[flow_is_ipv4(f) ? ENCAP_ROCEV2_IPV4 : ENCAP_ROCEV2_IPV6];
}
