/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection: what it keeps as long as it exists, and how it begins and ends. What it keeps only while something
 * is outstanding is in work.h; state.h draws its states.
 *
 * Private to src/transport/veroce.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "transport/qp.h"
#include "transport/veroce/state.h"

struct pair;
struct roam;
struct veroce_work;

enum { VEROCE_BASE_WINDOW = 128 }; /* of a peer that acknowledges, but has not announced its windows (4.2), PSNs */

struct veroce {
	struct pair *pair;
	struct veroce_work *w; /* NULL: quiet */

	/* requester */
	uint32_t psn_new;   /* first PSN of the next WQE to be started */
	uint32_t msn;       /* of the last WQE started */
	uint32_t rqmsn;     /* of the next SEND or WRITE with immediate */
	uint32_t reads;     /* READs and atomics started; the response MSN of the last one */
	uint32_t acked_msn; /* AETH.MSN */

	/* responder */
	uint32_t rq_done;  /* RQMSNs whose messages are complete */
	uint32_t executed; /* READs and atomics, the response MSN of the last one */

	/* Values from which w is made again. While there is a w, its values count and these are stale. */
	struct veroce_quiet {
		uint32_t r_psn; /* Q's is psn_new */
		uint32_t q_epsn, r_epsn;
		uint32_t q_amsn, r_amsn;
		uint16_t q_ext, r_ext;
		uint16_t q_calm, r_calm;
	} quiet;
	uint32_t q_window, r_window; /* the peer's; until CAPS a guess, then VEROCE_BASE_WINDOW (4.2) */

	/* negotiation */
	uint8_t state;        /* enum veroce_state; veroce_move() alone writes it */
	bool caps_reply : 1;  /* a response is due */
	bool caps_ask : 1;    /* a request is due */
	bool caps_told : 1;   /* a response was sent: the peer may know our window and nonce */
	bool caps_seals : 1;  /* ... and it announced that we seal all packets from now on */
	bool caps_silent : 1; /* the last request had no response either: the peer counts as a base one */
	bool cut_open : 1;    /* whether messages are cut into large packets is not settled: see caps_cut_settled() */
	bool acks_rarely : 1; /* the peer is on this host, or asks for the acknowledgements that it waits for */
	bool cut_asked : 1;   /* the peer offers large packets */
	bool guesses : 1;     /* nothing of the peer has arrived: the windows are a guess, see caps_end_guess() */
	/* CAPS arrived with the IP identification that a host gives a lone datagram: no device on the way changes it.
	 */
	bool ids_kept : 1;
	/* hold.h */
	bool hold_awaits : 1; /* the peer has not answered the last HOLD or RESUME */
	bool hold_reply : 1;  /* an answer to the peer's is due */
	bool holds : 1;       /* the peer was asked to wait: nothing else is sent */
	bool held : 1;        /* the peer asked to be waited for */
	/* roam.h */
	bool roams : 1;       /* this end has another address, and the peer has not followed: nothing else is sent */
	bool roam_reply : 1;  /* a CHALLENGE or a DONE is due */
	uint8_t hold_left;    /* copies of HOLD or RESUME that are due */
	uint8_t caps_tries;   /* requests since the peer last showed anything new */
	uint8_t caps_hurries; /* requests sent early, because the peer acknowledged but did not respond */
	uint16_t caps;        /* flags that both ends have; 0 before the response, but see caps_cut_settled() */
	uint32_t mtu; /* payload bytes of all packets of a message but the last: the path MTU, or CAPS_LARGE_BYTES */
	uint32_t starved_ms;  /* since when there is no memory for packets; 0: there is */
	uint32_t nonce;       /* ours; the peer seals its packets with it */
	uint32_t peer_nonce;  /* the peer's as announced; proved once caps has one of CAPS_BY_NONCE */
	uint32_t held_ms;     /* when it did */
	uint16_t held_for_ms; /* ... and for how long; 0: it has resumed */
	uint16_t held_number; /* ... with which number; 0: never */
	uint64_t ask_ns;      /* when to ask again */
	union {
		uint64_t decide_ns; /* ASKING with work to do: when the QP gives up and speaks RoCEv2; 0: not set */
		struct roam *roam;  /* once the peer has answered: see veroce_roam() */
	};
};

/*
 * An idle QP has these two and nothing of the pool. The limit is 512 bytes, of which 16 are for its share of the
 * nic's tables and of what the pool keeps. The allocator rounds both up to lines of 64 bytes.
 */
static_assert(sizeof(struct qp) + sizeof(struct veroce) <= 512 - 16, "an idle QP is small");
static_assert((sizeof(struct qp) + 63) / 64 + (sizeof(struct veroce) + 63) / 64 <= 512 / 64, "in lines too");

/* decide_ns, or 0 where it is not set. */
static inline uint64_t veroce_decide_ns(const struct veroce *vr)
{
	return vr->state == VEROCE_ASKING ? vr->decide_ns : 0;
}

/* The peer has proved that it speaks veRoCE with this QP. */
static inline bool veroce_is_confirmed(const struct veroce *vr)
{
	return vr->state >= VEROCE_CONFIRMED;
}

/* The peer has answered our CAPS request. */
static inline bool veroce_is_answered(const struct veroce *vr)
{
	return vr->state >= VEROCE_AGREED;
}

/* This end sends veRoCE to the peer. */
static inline bool veroce_is_spoken(const struct veroce *vr)
{
	return vr->state >= VEROCE_ASSUMED;
}

/* Members of struct qp_ops. */
void veroce_start(struct transport *, struct qp *, uint64_t now_ns);
void veroce_readdress(struct transport *, struct qp *);
/* w stays until the QP is reset, because the caller may still use it. */
void veroce_silence(struct transport *, struct qp *, uint64_t now_ns);

/* From now on this QP speaks RoCEv2; the peer has executed none of its requests. */
void veroce_fall_back(struct transport *, struct qp *, uint64_t now_ns);
/* 64 bits that no peer can guess. */
uint64_t transport_secret(struct transport *);
