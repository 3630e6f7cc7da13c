/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The completer: packets in space R to memory, and the completion of send WQEs.
 *
 * Private to src/transport/veroce.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct pkt;
struct qp;
struct transport;
struct veroce_packet;

/* A response: data of a READ, or the answer to an atomic or a FLUSH. */
void veroce_completer_input(struct transport *, struct qp *, const struct pkt *, const struct veroce_packet *,
			    uint64_t now_ns);
/* As veroce_responder_middle(), for READ responses. */
bool veroce_completer_middle(struct transport *, struct qp *, const struct pkt *, const struct veroce_packet *,
			     uint64_t now_ns);
/* As veroce_responder_place(), for READ responses. */
uint8_t *veroce_completer_place(const struct transport *, const struct qp *, const struct veroce_packet *,
				bool is_next);
/* Completes, in order, every WQE that is done. */
void veroce_completer_complete(struct transport *, struct qp *, uint64_t now_ns);
