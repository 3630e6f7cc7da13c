/* SPDX-License-Identifier: BSD-2-Clause */
/* The seals that need no agreement. */
#include "transport/seal.h"

#include "transport/qp.h"
#include "wire/icrc.h"

static bool open_always(struct transport *tp, struct qp *qp, struct rx *rx)
{
	return true;
}

void seal_with_icrc(const struct tx *tx, struct pkt *pkt)
{
	icrc_seal(tx->icrc, pkt, tx->secret);
}

static bool open_icrc(struct transport *tp, struct qp *qp, struct rx *rx)
{
	if (icrc_check(tp->tx.icrc, rx->pkt, 0, &rx->ip_id))
		return true;
	tp->counters.rx_icrc_errors++;
	return false;
}

/* The bytes are there all the same: a packet has one length, wherever it goes. */
const struct seal seal_none = {.overhead = ICRC_LEN, .open = open_always};
const struct seal seal_icrc = {.overhead = ICRC_LEN, .is_icrc = true, .seal = seal_with_icrc, .open = open_icrc};
