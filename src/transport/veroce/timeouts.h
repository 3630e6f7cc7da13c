/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The effect of time on a sender: tail probes, retransmission timeouts, and failure (veRoCE 6.2).
 *
 * Private to src/transport/veroce.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct qp;
struct sender;
struct transport;

/* What a sender's timers are due for, and when that is next; TIMER_NEVER: none runs. */
void timeouts_expire(struct transport *, struct qp *, struct sender *, uint64_t now_ns);
uint64_t timeouts_deadline(const struct transport *, const struct qp *, const struct sender *);
/* The earlier one of both senders. */
uint64_t timeouts_deadline_of_both(const struct transport *, const struct qp *);
/*
 * The peer was silent by agreement, or was told nothing until now, and is to be heard again: all that time has done to
 * a QP that has working memory is forgotten. Probes at once.
 */
void timeouts_restart(struct transport *, struct qp *, uint64_t now_ns);
/* The program's local ACK timeout (IBTA 9.7.6.1.3); 0: none. */
uint64_t timeouts_program_ns(const struct qp *);
/*
 * Whether the QP fails after `tries` without an answer since `since_ns`: there were more than retry_cnt in a row, the
 * program's timeout has passed, and, if the peer is a process of this host, so has our patience (our choice:
 * docs/veroce.md).
 */
bool timeouts_is_hopeless(struct transport *, const struct qp *, uint8_t tries, uint64_t since_ns, uint64_t now_ns);
