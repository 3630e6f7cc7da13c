/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A nic's counters: plain integers, written by the thread that calls the nic. Another thread may read some counters
 * earlier than others.
 */
#pragma once

#include <stdint.h>

struct nic_counters {
	uint64_t rx_packets, rx_bytes; /* accepted by nic_input, transport bytes */
	uint64_t tx_packets, tx_bytes;
	uint64_t rx_malformed; /* unknown opcode, wrong length, wrong version */
	uint64_t rx_icrc_errors;
	uint64_t rx_no_qp;        /* no such QP, or its state is not one that receives */
	uint64_t rx_wrong_source; /* address, P_Key, Q_Key or service differs from the QP's */
	uint64_t rx_duplicates;
	uint64_t rx_out_of_sequence;
	uint64_t rx_too_long;              /* UD and UC: longer than the receive WQE */
	uint64_t rx_dropped;               /* other silent drops: UD without receive WQE, UC gap ... */
	uint64_t retransmits;              /* request packets sent again */
	uint64_t timeouts;                 /* local ACK timeouts */
	uint64_t naks_sent, naks_received; /* without RNR NAKs */
	uint64_t rnrs_sent, rnrs_received;
	uint64_t acks_sent, acks_received;
	uint64_t cnps_sent, cnps_received;
	/* veRoCE */
	uint64_t sacks_sent;
	uint64_t spurious; /* sent again although the first copy was only late */
	uint64_t tail_probes;
	uint64_t path_timeouts;    /* a path was declared down: silent while others were not */
	uint64_t rx_beyond_window; /* too far ahead to be recorded */
	uint64_t rx_early_kept;    /* packets that waited for their turn */
	uint64_t path_probes;
	uint64_t slow_signals; /* received */
	uint64_t slow_signals_sent;
	uint64_t rx_trimmed;        /* payload cut off by a switch */
	uint64_t fallbacks;         /* QPs that went on with RoCEv2 */
	uint64_t veroce_unanswered; /* QPs that failed because their peers do not speak veRoCE, and RoCEv2 is forbidden
				     */
	uint64_t rx_rocev2_refused; /* first requests in RoCEv2, which is forbidden */
	uint64_t overlaps_fenced;   /* WQEs that waited for an older one whose bytes they touch */
	/* iWARP */
	uint64_t fpdu_crc_errors;
	uint64_t fpdu_marker_errors;
	uint64_t rx_placed_bytes; /* of rx_bytes, those that were read from sockets into the region */
	uint64_t terminates_sent, terminates_received;
	uint64_t completions;
	uint64_t completion_errors;
	uint64_t cq_overruns;
	uint64_t memory_faults;                 /* copies from or to registered memory that was unmapped */
	uint64_t qps, cqs, mrs, mws, pds, srqs; /* alive now */
};
