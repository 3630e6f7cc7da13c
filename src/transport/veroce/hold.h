/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers that wait (veRoCE 13.4): an end that will be silent for a while asks its peer to hold. Two halves: `holds` is
 * the end that asked, and sends nothing else then; `held` is the one that waits. Its timers do nothing; it sends no
 * requests and no responses, but a probe now and then. Only the peer can begin that, as it knows this end's nonce.
 *
 * Packets that the peer sent before it asked may arrive after, so only what arrives HOLD_PROBE_MS later shows that it
 * is back; RESUME shows that at once.
 *
 * Private to src/transport/veroce.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "transport/veroce/connection.h"

struct veroce_packet;

enum { HOLD_PROBE_MS = 100 };

/* Members of struct qp_ops. */
bool hold_ask(struct transport *, struct qp *, uint32_t expected_ms);
bool hold_is_agreed(const struct qp *);

/* HOLD, RESUME or an answer to one of them arrived. */
void hold_input(struct transport *, struct qp *, const struct veroce_packet *, uint64_t now_ns);
/* Any other packet of the peer arrived, while this end is held. */
void hold_heard(struct transport *, struct qp *, uint64_t now_ns);

/* The peer need not be waited for any more. */
void hold_end(struct transport *, struct qp *, uint64_t now_ns);

/* Whether hold_output(), or roam_output() of roam.h, has anything to do, or to forbid. */
static inline bool hold_matters(const struct veroce *vr)
{
	return vr->hold_left || vr->hold_reply || vr->holds || vr->held || vr->roams || vr->roam_reply;
}

/* Sends what is due of all this. False: no room. */
bool hold_output(struct transport *, struct qp *, uint64_t now_ns);
/* There is work and this end is held: from now on a timer runs for hold_expire(). */
void hold_watch(struct qp *, uint64_t now_ns);
uint64_t hold_deadline(const struct qp *);
void hold_expire(struct transport *, struct qp *, uint64_t now_ns);
