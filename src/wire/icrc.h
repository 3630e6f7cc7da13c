/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The invariant CRC of RoCEv2 (IBTA 7.8.1 and Annex A17.3.3): CRC-32 over 8 bytes of ones (where an
 * InfiniBand packet has its LRH), the IP and UDP headers and the transport bytes, with the fields
 * that routers may change set to ones; 4 bytes at the packet's end, least significant first.
 *
 * IP and UDP headers are recomputed from the flow: IPv4 without options and with DF set, as
 * A17.3.1.1 demands of every sender.
 */
#ifndef WIRE_ICRC_H
#define WIRE_ICRC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pkt.h"

enum {
	ICRC_LEN = 4,
	ICRC_CTX_LENGTHS = 16, /* both powers of 2 */
	ICRC_CTX_STARTS = 64
};

/*
 * A cache of what packets of a flow or a length have in common, owned by the caller and used by one
 * thread at a time. All bytes 0 is the empty cache; it never needs to be torn down. It holds
 * derived facts only: no answer depends on its state.
 */
struct icrc_ctx {
	struct icrc_start {
		uint8_t src[16], dst[16];
		uint16_t sport, dport;
		uint32_t len; /* of the packet; 0: empty */
		uint32_t crc; /* up to the BTH, of identification 0 */
		bool ipv4;
	} start[ICRC_CTX_STARTS];
	struct icrc_unwind {
		uint32_t len;         /* the packet length this row serves; 0: empty */
		uint32_t part[8][16]; /* part[i][v]: nibble i of a CRC having value v, unwound */
	} row[ICRC_CTX_LENGTHS];
};

/*
 * Writes the last 4 of the packet's bytes, by the others, its flow and its ip_id (ignored for
 * IPv6). The packet is at least BTH_LEN + ICRC_LEN long and fits one UDP datagram.
 */
void icrc_seal(struct pkt *pkt);
/*
 * The same, for those who seal packets that are alike; XORed with a secret that only the peer knows, or 0. So a
 * packet proves that its sender knows the secret, to whoever cannot have seen one, and costs no byte for it.
 */
void icrc_seal_one_of_many(struct icrc_ctx *ctx, struct pkt *pkt, uint32_t secret);

/*
 * What the last 4 bytes of a packet with the identification pkt->ip_id differ in from its ICRC: 0, or the secret
 * that they were XORed with. The length is one that a packet can have.
 */
uint32_t icrc_diff(struct icrc_ctx *ctx, const struct pkt *pkt);

/*
 * Whether the last 4 bytes are the ICRC of the others. The IPv4 identification is covered by the
 * ICRC, but a UDP socket does not tell it: the packet passes where some identification explains the
 * ICRC, and *ip_id is set to it. At most one can. A random ICRC thus passes with probability 2^-16,
 * not 2^-32. IPv6 has no identification: exact match, *ip_id is 0.
 *
 * False for lengths that cannot be a packet. pkt->ip_id is a guess: the answer does not depend on
 * it, and comes sooner where it is right. *ip_id is set only on true.
 *
 * `secret` is what the ICRC was XORed with, or 0. Where there is one the probability is to be less than
 * 2^-16 over IPv4, so the caller looks at *ip_id too.
 */
bool icrc_check(struct icrc_ctx *ctx, const struct pkt *pkt, uint32_t secret, uint16_t *ip_id);

#endif
