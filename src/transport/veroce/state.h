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
 *     ASKING -> ASSUMED      a CAPS request with profile 3 arrived in the peer's name
 *     ASKING -> ROCEV2       a message waits and no answer arrived; or as ASSUMED -> ROCEV2
 *     ASSUMED -> CONFIRMED   the peer sent what only it can send: our nonce, the PSN that is due, an acknowledgement
 *                            of a packet in flight
 *     ASSUMED -> ROCEV2      the peer answered profile 0, or sent its first request in RoCEv2, or acknowledged nothing
 *                            within the program's timeout
 *     CONFIRMED -> AGREED    the peer answered our CAPS: its windows and flags are known
 *     AGREED -> SEALED       both offered SEAL, and the peer has announced or shown that it seals
 *
 * A connection ends when the QP is reset or destroyed: struct veroce is gone then, and the QP has the engine of its
 * type again.
 *
 * Each state gives the QP its ops, and has these invariants. The debug build checks them after every event, by the
 * columns `may` and `must` in connection.c:
 *
 *     ROCEV2     RoCEv2's engine has the QP, for good; CAPS requests are answered with profile 0. No working memory,
 *                no flags, no CAPS request of ours.
 *     ASKING     Only CAPS were sent, and no packet was accepted: no working memory, no flags. A timer runs or a
 *                request is about to leave. decide_ns is set once work waits.
 *     ASSUMED    Packets of both spaces may be in flight. The peer has proved nothing. All of it can still be forgotten
 *                in favour of RoCEv2, because a peer that speaks RoCEv2 has executed none of it.
 *     CONFIRMED  There is no way back to RoCEv2. The windows are the base protocol's, unless the peer asked.
 *     AGREED     caps are the flags that both ends have; SEAL and LARGE do not change any more.
 *     SEALED     caps has SEAL, and the QP accepts only packets that are sealed with our nonce.
 *
 * A state is greater than those before it on the way from ASKING to SEALED: veroce_is_confirmed() and
 * veroce_is_answered() compare.
 */
#pragma once

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

/* Alone changes the state, by a move of the diagram. Gives the QP the new state's ops. */
void veroce_move(struct qp *, enum veroce_state to);
/* Gives a QP that is loaded the state that it had. */
void veroce_enter(struct qp *, enum veroce_state);
/* Which invariant of the state of a QP that has a connection does not hold between two events; NULL: all do. */
const char *veroce_fault(const struct transport *, const struct qp *);
