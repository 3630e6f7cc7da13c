/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An InfiniBand packet as it is on a link: LRH, perhaps GRH, BTH to ICRC, VCRC (IBTA 5.2). Between GRH
 * and VCRC it is the same packet as RoCE's.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "wire/grh.h"
#include "wire/lrh.h"

/* Why a link drops a packet (IBTA 7.7.5, 7.8): the first that applies. */
enum ib_verdict {
	IB_GOOD,
	IB_SHORT, /* fewer bytes than any packet has */
	IB_BAD_VCRC,
	IB_BAD_VERSION, /* LVer */
	IB_BAD_LENGTH,  /* PktLen is not the packet's, or has no room for the headers; or PayLen contradicts it */
	IB_BAD_LID,     /* SLID is none of a port's, or DLID is 0 */
	IB_RAW,         /* no transport packet */
	IB_BAD_GRH      /* no IPVer 6 with a BTH behind it */
};

struct ib_packet {
	struct lrh lrh;
	struct grh grh; /* if lrh.lnh is LNH_GLOBAL */
	uint32_t at;    /* where the BTH begins */
	uint32_t len;   /* BTH to ICRC */
};

/* n counts all bytes, VCRC included. *out is set for IB_GOOD alone. The ICRC is the end node's business. */
enum ib_verdict ib_packet_judge(struct ib_packet *out, const uint8_t *packet, size_t n);

/*
 * The ICRC (IBTA 7.8.1) of a packet of n bytes from LRH to the last before the ICRC, which is one that
 * ib_packet_judge() took: locally routed the LRH counts but for the VL, globally routed it counts as ones and the GRH
 * but for what routers change.
 */
uint32_t ib_icrc(const uint8_t *packet, size_t n);
