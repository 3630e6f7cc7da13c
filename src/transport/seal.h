/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What stands behind a packet's pad and proves that it is whole, and perhaps whose it is: a row for each kind. An
 * engine names its row (struct qp_ops), so a QP has one from when it is connected. tx_commit() seals with it, and the
 * nic opens a packet with it before the engine gets it.
 *
 * Private to src/transport and src/iwarp and src/nic.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct pkt;
struct qp;
struct rx;
struct transport;
struct tx;

struct seal {
	uint32_t overhead; /* bytes */
	bool is_icrc;      /* XORed with qp->secret: qp_opens() compares it, and asks the row if it differs */
	/* Writes them at the packet's end. NULL: nobody looks at them. */
	void (*seal)(const struct tx *, struct pkt *);
	/* Whether to accept a packet, which has been decoded. Sets rx->ip_id, or counts an error. */
	bool (*open)(struct transport *, struct qp *, struct rx *);
	/*
	 * The secret with which the packet's ICRC may have been XORed; 0: none. Sets *sure if a packet of the peer
	 * certainly was. NULL: never any.
	 */
	uint32_t (*secret)(const struct qp *, const struct rx *, bool *sure);
};

/* Through memory, and where there is no payload: nobody else can have written the packet, and nothing can have changed
 * it. */
extern const struct seal seal_none;
/* The ICRC (IBTA 7.8.1). The QP may be NULL. */
extern const struct seal seal_icrc;
/* The ICRC, XORed with a secret between ends that have agreed on it (veRoCE 13.1): veroce/seal.c. */
extern const struct seal seal_agreed;

/* `seal` of both: writes the ICRC, XORed with tx->secret. */
void seal_with_icrc(const struct tx *, struct pkt *);
