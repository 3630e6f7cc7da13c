/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The veRoCE engine, as the rest of transport/ knows it: how it is set up, how a QP changes to it or back from it, and
 * how RoCEv2's engine answers a peer that asks for veRoCE. veroce.h lists the files inside.
 *
 * Private to src/transport.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "transport/qp.h"

struct veroce_packet;

/* ---- setup.c ------------------------------------------------------------------------------------- */

/* Gives what the nic's owner left open its default. window_bytes: a queue pair's. */
void veroce_settle(struct veroce_config *, uint64_t window_bytes);
/* For a struct transport that has its config, its memory and its icrc. */
void veroce_setup(struct transport *, const uint8_t secret[16]);

/* ---- connection.c -------------------------------------------------------------------------------- */

/* Of struct qp_ops: chooses between RoCEv2, veRoCE, and asking the peer. */
int veroce_connect(struct transport *, struct qp *, uint64_t now_ns);
/* Harmless without a connection. */
void veroce_reset(struct transport *, struct qp *);

/* ---- caps.c -------------------------------------------------------------------------------------- */

/* The QP has a struct veroce, and may speak RoCEv2. ip_id is that of the packet; 0 over IPv6. */
void caps_input(struct transport *, struct qp *, const struct veroce_packet *, uint16_t ip_id, uint64_t now_ns);
/* The CAPS packets that are due of such a QP. False: no room. */
bool caps_answer(struct transport *, struct qp *, uint64_t now_ns);
