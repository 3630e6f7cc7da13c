/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * AckReq placement (veRoCE 12.2): which packets ask for an acknowledgement.
 *
 * Private to src/transport/veroce.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "transport/paths/pair.h"
#include "transport/veroce/work.h"
#include "wire/psn.h"

enum ackreq_packet {
	ACKREQ_ANY,
	ACKREQ_AWAITED, /* it ends a message, or is a probe: somebody waits for its acknowledgement */
	ACKREQ_TWIN     /* it follows the same packet, which asks if need be */
};

/* Whether the packet with that PSN, which is outstanding or about to be, asks for an acknowledgement. */
static inline bool ackreq_is_set(const struct qp *qp, const struct sender *s, uint32_t psn, enum ackreq_packet kind)
{
	uint32_t out = tx_outstanding(&s->tx), ahead = (psn - s->tx.una) & PSN_MASK;

	if (kind != ACKREQ_ANY)
		return kind == ACKREQ_AWAITED;
	/* One of ackreq_now; each while QPs wait for each other; the last ones for which the peer has a record. */
	return (~psn & (s->ackreq_now - 1)) == 0 || qp->veroce->pair->asks ||
	       (ahead > out ? ahead : out) + 2 >= s->peer_window;
}

/*
 * Whether the last packet of a WQE need not ask. Where acknowledgements are rare, one packet of ackreq_now asks in any
 * case. If that many are posted behind this one, nobody waits for its acknowledgement: this end limits the rate. The
 * next WQE must not wait for this one. Through memory an acknowledgement costs no call, so each asks.
 */
bool ackreq_is_covered(const struct transport *, const struct qp *, uint32_t index);

/* Sets ackreq_now, and pair->asks, for packets on that path; PAIR_NO_PATH: none may leave now. */
void ackreq_fit(const struct qp *, struct sender *, int path, uint64_t now_ns);
