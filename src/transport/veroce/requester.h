/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requester: send WQEs to packets in space Q.
 *
 * Private to src/transport/veroce.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct qp;
struct transport;

/* Sends requests, lost ones first. True: stopped for lack of room or budget only. */
bool veroce_requester_output(struct transport *, struct qp *, uint64_t now_ns);
/* Bytes of the packet that the next WQE, not begun yet, will be, with ICRC; UINT32_MAX: there is none, or it is longer.
 */
uint32_t veroce_requester_next_len(const struct qp *);
/* The wait after an RNR NAK is over. */
void veroce_requester_end_rnr(struct transport *, struct qp *, uint64_t now_ns);
/* The peer accepted a request that it had refused with an RNR NAK: more may follow. Called while w->refused. */
void veroce_requester_let_more(struct transport *, struct qp *);
/* Sends the READ or atomic of that SQ index once more, although it was acknowledged. */
void veroce_requester_ask_again(struct transport *, struct qp *, uint32_t index);
