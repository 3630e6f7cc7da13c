/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A nic's counters: plain integers, written by the thread that calls the nic. Another thread may read some counters
 * earlier than others.
 */
#pragma once

#include <stdint.h>

#include "queue/cq.h"

/* Completions in error have a counter for each status: by wc_error_index(). */
enum { WC_ERRORS = 13 };

/* Statuses that are not named in enum wc_status up to WC_RNR_RETRY_EXC_ERR share the last one. No error has number 3. */
static inline uint32_t wc_error_index(uint32_t status)
{
	return status > WC_RNR_RETRY_EXC_ERR ? WC_ERRORS - 1 : status - 1 - (status > 3);
}

struct nic_counters {
	uint64_t rx_packets, rx_bytes; /* accepted by nic_input, transport bytes */
	uint64_t tx_packets, tx_bytes;
	uint64_t rx_multicast, tx_multicast; /* of those packets */
	uint64_t rx_malformed;               /* unknown opcode, wrong length, wrong version */
	uint64_t rx_icrc_errors;
	uint64_t rx_no_qp;        /* no such QP, or its state is not one that receives */
	uint64_t rx_wrong_pkey;   /* of a partition that the QP, or the device, is not in */
	uint64_t rx_wrong_source; /* address, P_Key, Q_Key or service differs from the QP's */
	uint64_t rx_duplicates;
	uint64_t rx_out_of_sequence;
	uint64_t rx_too_long;              /* UD and UC: longer than the receive WQE */
	uint64_t rx_dropped;               /* other silent drops: UD without receive WQE, UC gap ... */
	uint64_t retransmits;              /* request packets sent again */
	uint64_t timeouts;                 /* local ACK timeouts */
	uint64_t naks_sent, naks_received; /* without RNR NAKs */
	uint64_t sequence_naks_received;   /* of those: NAKs of PSN sequence errors, which RoCEv2 alone has */
	uint64_t responses_missed;         /* RoCEv2: a later response showed that one of a READ or atomic was lost */
	uint64_t rnrs_sent, rnrs_received;
	uint64_t acks_sent, acks_received;
	uint64_t cnps_sent, cnps_received;
	uint64_t cnps_ignored; /* of those received: no congestion control reacts to them */
	uint64_t rx_marked;    /* packets that a switch marked CE */
	/* Requests of RC and UC that were executed, once each; a message is one, whatever it is cut into. */
	uint64_t rx_write_requests, rx_read_requests, rx_atomic_requests;
	uint64_t rx_access_refused; /* requests that no R_Key, window or STag let in */
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
	uint64_t holds_received;    /* times that peers asked to be waited for */
	uint64_t peers_moved;       /* times that a queue pair followed its peer to another address */
	uint64_t overlaps_fenced;   /* WQEs that waited for an older one whose bytes they touch */
	/* iWARP */
	uint64_t fpdu_crc_errors;
	uint64_t fpdu_marker_errors;
	uint64_t rx_placed_bytes; /* of rx_bytes, those that were read from sockets into the region */
	uint64_t terminates_sent, terminates_received;
	uint64_t completions;
	uint64_t completion_errors;
	uint64_t send_errors[WC_ERRORS], recv_errors[WC_ERRORS]; /* those, by the work queue */
	uint64_t cq_overruns;
	uint64_t memory_faults; /* copies from or to registered memory that was unmapped */
	uint64_t mr_bytes;      /* of the regions that are registered now, but for those without bounds */
	uint64_t qps, cqs, mrs, mws, pds, srqs; /* alive now */
};
