/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The invariant CRC (IBTA 7.8.1 and Annex A17.3.3): CRC-32 over 8 bytes of ones (where an InfiniBand packet has its
 * LRH), the IP and UDP headers, or RoCEv1's GRH, and the transport bytes, with the fields that routers may change set
 * to ones; 4 bytes at the packet's end, least significant first.
 *
 * Those headers are recomputed from the flow (wire/encap.h): IPv4 without options and with DF set, as
 * A17.3.1.1 prescribes. The IPv4 identification, which a UDP socket hides, is guessed, and found from the ICRC.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/pkt.h"

enum {
	ICRC_LEN = 4,
	ICRC_CTX_LENGTHS = 16, /* both powers of 2 */
	ICRC_CTX_STARTS = 128
};

/*
 * A cache of values that packets of one flow or length share, owned by the caller and used by one
 * thread at a time. All bytes 0 is the empty cache; it is never torn down. It holds derived values
 * only: no result depends on its state.
 */
struct icrc_ctx {
	struct icrc_starts {
		struct icrc_start {
			uint8_t addresses[32]; /* source and destination, as struct flow has them */
			uint16_t ports[2];     /* likewise */
			uint32_t len;          /* of the packet; 0: empty */
			uint32_t crc;          /* up to the BTH, of identification 0 */
			bool hides_id;         /* struct encap */
		} of[ICRC_CTX_STARTS];
		uint32_t last; /* used: the other packets of a train need no search */
	} sealed, checked;     /* a direction each */
	struct icrc_unwind {
		uint32_t len;         /* the packet length this row serves; 0: empty */
		uint32_t part[8][16]; /* part[i][v]: nibble i of a CRC having value v, unwound */
	} row[ICRC_CTX_LENGTHS];
};

/*
 * Writes the packet's last 4 bytes, computed from the others, its flow and its ip_id (ignored for
 * IPv6 and RoCEv1). The packet is at least BTH_LEN + ICRC_LEN long and fits one UDP datagram.
 *
 * `ctx` may be NULL, for callers that seal few packets. The ICRC is XORed with `secret`, which only the peer knows, or
 * 0. So a packet proves, without a further byte, that its sender knows the secret.
 */
void icrc_seal(struct icrc_ctx *ctx, struct pkt *pkt, uint32_t secret);

/*
 * The XOR of the last 4 bytes and the ICRC of a packet with the identification pkt->ip_id: 0, or the secret with
 * which it was sealed. The length must be one that a packet can have.
 */
uint32_t icrc_diff(struct icrc_ctx *ctx, const struct pkt *pkt);

/*
 * Whether the last 4 bytes are the ICRC of the others. The IPv4 identification is covered by the
 * ICRC, but a UDP socket does not show it: the packet passes if some identification explains the ICRC,
 * and *ip_id becomes that one. At most one can. A random ICRC thus passes with probability 2^-16, not
 * 2^-32. IPv6 and RoCEv1 have no identification: exact match, *ip_id is 0.
 *
 * False for lengths that cannot be a packet. pkt->ip_id is a guess: the result does not depend on it,
 * but comes sooner if the guess is right. *ip_id is set only on true.
 *
 * `secret` is what the ICRC was XORed with, or 0. A caller with a secret also checks *ip_id, so that
 * over IPv4 a random ICRC passes less often than once in 2^16.
 */
bool icrc_check(struct icrc_ctx *ctx, const struct pkt *pkt, uint32_t secret, uint16_t *ip_id);
