/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A receiver's state: it puts the packets of one PSN space in order (veRoCE 4.1), and has the
 * acknowledgements and NAKs that are due for them. acks.h sends those; early.h keeps packets that arrive early.
 *
 * Private to src/transport/veroce.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "transport/veroce/rx_space.h"

/* A packet that arrived without its payload: the fields of its Packet Drop NAK. */
struct trimmed {
	uint32_t psn;
	uint32_t tx1, rx1; /* as echo_tx1 and echo_rx1 */
	uint8_t path;
};

struct receiver {
	struct rx_space rx;
	uint32_t amsn;    /* every packet of every message up to it has arrived */
	uint32_t po;      /* of the packet at epsn, if its message goes on */
	uint32_t message; /* F_SEND or F_WRITE while inside one, both when not known, else 0 */
	uint16_t unacked;
	uint16_t ack_packets; /* packets for an acknowledgement */
	bool ack_due;         /* an acknowledgement is due */
	bool asked;           /* ... that answers a probe: it reports everything */
	bool ce;              /* a CE mark was not reported yet */
	uint8_t ce_path;      /* the path of the packet that had it */
	bool stalled;         /* the message at epsn is complete, but there is no receive WQE (7.2) */
	uint8_t path;         /* of the last packet, by its time stamp or source port */
	uint32_t echo_tx1;    /* its TX1, if it was stamped */
	uint32_t echo_rx1;    /* when it arrived; 0: it was not stamped */
	uint8_t dups;         /* duplicates received, modulo 256 */
	bool nak_due;
	uint8_t nak_syndrome;
	uint32_t nak_psn;
	struct trimmed *trims; /* packets whose Packet Drop NAKs are due; NULL: none */
	uint32_t trims_size, trims_count;
	uint32_t trims_sent; /* of trims_count */
	uint16_t ext;        /* the greatest reordering measured, packets (5.4) */
	uint32_t sack_hpsn;  /* hpsn when the last SACK was sent */
	uint32_t sack_turn;  /* of the blocks in the middle */
	uint64_t hole_ns;    /* base peers: when a SACK for an old hole is due; 0: none */
	bool hole_due;
	uint8_t hole_tries;
	uint64_t ext_ns;      /* when ext next shrinks */
	uint32_t early_bytes; /* payload of early packets that wait for their turn (early.h) */
};
