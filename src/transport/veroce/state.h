/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The states of a connection, from when its QP knows its peer (INIT to RTR) until it is reset or destroyed.
 *
 *                  NONE
 *        .----------+-----------.-------------.
 *        v                      v             v
 *     ROCEV2 <-------------- ASKING ------> ASSUMED ------> CONFIRMED ------> AGREED ------> SEALED
 *        ^                                    |
 *        '------------------------------------'
 *
 *     NONE -> ROCEV2         the peer's host is known to speak RoCEv2 alone, or VERBENA_PROTOCOL=rocev2
 *     NONE -> ASKING         what the peer's host speaks is not known
 *     NONE -> ASSUMED        the peer's host is known to speak veRoCE, or VERBENA_PROTOCOL=veroce
 *     ASKING -> ASSUMED      somebody asked in the peer's name, with profile 3
 *     ASKING -> ROCEV2       a message waits and no answer came; or as ASSUMED -> ROCEV2
 *     ASSUMED -> CONFIRMED   the peer sent what only it can send: our nonce, the PSN that is due, an acknowledgement
 *                            of what is in flight
 *     ASSUMED -> ROCEV2      the peer answered profile 0, or sent its first request in RoCEv2, or answered nothing for
 *                            as long as the program is patient
 *     CONFIRMED -> AGREED    the peer answered our CAPS: its windows and flags are known
 *     AGREED -> SEALED       both offered SEAL, and the peer has said or shown that it seals
 *
 * It ends when the QP is reset or destroyed: struct veroce is gone then, and the QP has the engine of its type again.
 *
 * What holds in each state, beside the ops that it gives the QP. `may` and `must` are the rows of connection.c, which
 * the debug build checks after every event:
 *
 *     ROCEV2     RoCEv2's engine has the QP, for good; CAPS requests are answered with profile 0. No working memory,
 *                no flags, nothing is asked.
 *     ASKING     Nothing but CAPS was sent, nothing was taken: no working memory, no flags. A timer runs or a question
 *                is about to leave. decide_ns is set once work waits.
 *     ASSUMED    Packets of both spaces may be in flight. The peer proved nothing, so that all of it can still be
 *                forgotten for RoCEv2's sake: nothing was executed by a peer that speaks RoCEv2.
 *     CONFIRMED  There is no way back to RoCEv2. The windows are the base protocol's, unless the peer asked.
 *     AGREED     caps are what both ends have, and SEAL and RETH_MESSAGE stay as they are.
 *     SEALED     caps has SEAL, and the QP takes only what is sealed with our nonce.
 *
 * A state is greater than those before it on the way from ASKING to SEALED: veroce_is_confirmed() and
 * veroce_is_answered() compare.
 */
#ifndef TRANSPORT_VEROCE_STATE_H
#define TRANSPORT_VEROCE_STATE_H

enum veroce_state {
	VEROCE_NONE,
	VEROCE_ROCEV2,
	VEROCE_ASKING,
	VEROCE_ASSUMED,
	VEROCE_CONFIRMED,
	VEROCE_AGREED,
	VEROCE_SEALED,
	VEROCE_STATES
};

struct qp;
struct transport;

/* The one that moves. The move is one of the diagram. Gives the QP the new state's ops. */
void veroce_move(struct qp *, enum veroce_state to);
/* Asserts what its state says of a QP that has a connection, between two events. */
void veroce_check(const struct transport *, const struct qp *);

#endif
