/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sender's state: it recovers the packets sent in one PSN space (veRoCE 4.1). recovery.h, nak.h,
 * timeouts.h and loss.h have what acknowledgements, NAKs and time do to it.
 *
 * Private to src/transport/veroce.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "transport/paths/path_choice.h"
#include "transport/paths/tx_space.h"

struct sender {
	struct tx_space tx;
	struct flowlet flowlet;
	uint32_t peer_window;    /* PSNs that the peer records, as far as it is known (4.2) */
	uint32_t ackreq_packets; /* one packet of this many has AckReq set, where no path's window is small; a power of
				    two */
	uint32_t ackreq_now;     /* the same on the path that was picked last; at most that */
	uint16_t calm;           /* packets acknowledged since one was taken for lost; stops at VEROCE_CALM_PACKETS */
	uint64_t progress_ns;    /* when una last moved, or the first packet was sent */
	uint64_t active_ns;      /* when a packet was last sent or acknowledged */
	uint64_t timeout_ns;     /* of the last of `retries` */
	uint64_t from_ns;        /* timeouts count from here at the earliest: until then the peer had asked to wait */
	uint64_t grace_ns;       /* no timer acts earlier: the timer fired late */
	bool graced;             /* ... and was set again; the next time it acts */
	uint8_t retries;         /* timeouts since una last moved */
	uint64_t reo_ns;         /* fast: when missing packets become lost; 0: not set */
	uint8_t probes;          /* tail probes since una last moved (6.2) */
	/* base and irn */
	bool recovering; /* base: rto_mode; irn: in recovery */
	uint32_t recover_psn;
	uint32_t rxt_psn; /* base: RxtPSN; irn: holes below it were sent again */
	uint32_t rxt_una; /* irn: una when it last moved in recovery */
	uint64_t rxt_ns;
};
