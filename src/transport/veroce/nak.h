/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The effect of NAKs on a sender, and how a connection or a send WQE fails.
 *
 * Private to src/transport/veroce.
 */
#pragma once

#include <stdint.h>

#include "queue/cq.h"

struct qp;
struct sender;
struct transport;
struct veroce_packet;

/* An RNR NAK: the message at psn waits as long as its code says (5.2). */
__attribute__((cold)) void nak_rnr(struct transport *, struct qp *, struct sender *, uint32_t psn, uint8_t code,
				   uint64_t now_ns);
/* A NAK that ends the connection; in space R every NAK does. */
__attribute__((cold)) void nak_error(struct transport *, struct qp *, struct sender *, uint32_t psn, uint8_t code,
				     uint64_t now_ns);
/* A Packet Drop NAK: a switch cut off the payload. No other packet is lost, and it acknowledges none (5.2, 8). */
__attribute__((cold)) void nak_drop(struct transport *, struct qp *, struct sender *, const struct veroce_packet *,
				    uint64_t now_ns);
/* The connection fails, without the fault of a WQE. */
void veroce_fail_qp(struct transport *, struct qp *, uint64_t now_ns);
/*
 * The WQE that the PSN belongs to fails, once all WQEs before it are complete. If it is complete already, the peer
 * has given up the connection for a reason that no longer matters.
 */
void veroce_fail_wqe(struct transport *, struct qp *, uint32_t psn, enum wc_status, uint64_t now_ns);
