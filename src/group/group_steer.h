/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The member of a group that gets a packet: as a program for the kernel and as a function, which must agree.
 *
 * A packet for QPN 1 is a management datagram behind BTH and DETH (IBTA 9.8.3, 13.4.3). Connection management messages
 * (IBTA 12.6) name the receiver's communication id, or of a SIDR_REP its request id; REQ and SIDR_REQ name none, nor
 * does the REJ of a peer that gave up before it knew one, which has 0 there.
 */
#pragma once

/* For a socket of a lane, and so for all of them. What names nobody goes to the slot `requests`. 0 or a negative errno.
 */
int steer_attach(int fd, unsigned requests);
