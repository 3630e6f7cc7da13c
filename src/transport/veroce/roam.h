/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Re-addressing (veRoCE 13.5): an end goes on under another address, and its peer follows. Two halves: `roams` is the end
 * that has moved, which sends nothing but ROAM until its peer has followed; the other end changes nothing before it has
 * seen its challenge again from the new address. Every packet of this has a MAC under the nonces that both ends agreed on
 * by CAPS, and a number that only grows; one that lacks either is dropped.
 *
 * Private to src/transport/veroce.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "transport/veroce/connection.h"

struct archive;
struct rx;

/* What a connection keeps once either end has, or asks for, another address than it was connected with. */
struct roam {
	uint8_t peer_gid[16]; /* the peer's address as the program knows it, */
	uint8_t peer_now[16]; /* and the one that it has */
	/* this end moved */
	uint64_t challenge; /* the peer's; 0: none has arrived */
	uint64_t ask_ns;    /* when to ask again */
	uint64_t since_ns;
	uint32_t number; /* of this end's last move; 0: there was none */
	uint8_t tries;
	bool due; /* a MOVED or an ECHO is to be sent */
	/* the peer moved */
	uint8_t reply; /* CHALLENGE or DONE, to be sent (vr->roam_reply) */
	uint32_t reply_number;
	uint64_t reply_challenge;
	uint8_t reply_to[16];
	uint32_t taken; /* the number of its last move that this end followed; 0: there was none */
};

/* NULL: neither end has moved. */
static inline struct roam *veroce_roam(const struct veroce *vr)
{
	return veroce_is_answered(vr) ? vr->roam : NULL;
}

/* Members of struct qp_ops. */
bool roam_is_agreed(const struct qp *);
int roam_go(struct transport *, struct qp *, const uint8_t to[16], uint64_t now_ns);
bool roam_strange(struct transport *, struct qp *, const struct rx *);

/* A ROAM arrived, from whatever address. */
void roam_input(struct transport *, struct qp *, const struct rx *);
/* Sends what is due of all this. False: no room. */
bool roam_output(struct transport *, struct qp *, uint64_t now_ns);
/* When to ask again; TIMER_NEVER: this end has not moved, or its peer has followed. */
uint64_t roam_deadline(const struct veroce *);
void roam_expire(struct transport *, struct qp *, uint64_t now_ns);
/* The program has named the peer's address again: if it is the one that the peer had, the peer is where it is now. */
void roam_readdress(struct qp *);
/* The connection ends, or nothing more is sent. */
void roam_forget(struct transport *, struct veroce *);
void roam_silence(struct veroce *);
void roam_archive(struct archive *, struct transport *, struct veroce *);
