/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XRC (IBTA annex A14): requests name the SRQ that they are for, and the responder works for the program that owns it.
 * An XRC_RECV QP has no PD, CQ or receive queue: it takes on those of the SRQ that the message names, for as long as
 * the message lasts.
 *
 * Private to src/transport and src/nic.
 */
#pragma once

#include "transport/qp.h"

/* RC's opcodes are XRC's, this much higher. */
enum { XRC_OPCODES = 0xa0 };

extern const struct qp_ops xrc_send_ops, xrc_recv_ops;

/* Enters the SRQ, whose number nobody has; takes it out. Enough buckets are there for a peer to be served in bounded
 * time. */
void xrc_srq_add(struct transport *, struct srq *);
void xrc_srq_remove(struct transport *, struct srq *);
struct srq *xrc_srq_find(const struct transport *, uint32_t number);

/*
 * The request is the one that is due. Takes on the SRQ that it names. False: there is none of that number in the QP's
 * domain, or a message that has begun is for another one.
 */
bool xrc_take_on(struct transport *, struct qp *, const struct rx *);
/* An XRC_RECV QP takes on that SRQ, of its domain; NULL: none. */
void xrc_assign(struct transport *, struct qp *, struct srq *);
/* For whom a READ response is sent, whose request named that SRQ; built in *scratch. NULL: the SRQ is gone. */
const struct mr_user *xrc_user(const struct transport *, uint32_t srqn, struct mr_user *scratch);
/* The SRQ is about to go, and the QP may have it. A message that it was receiving cannot go on. */
void xrc_let_go(struct transport *, struct qp *, const struct srq *);
