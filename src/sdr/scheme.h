/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What sends, repeats and acknowledges one message, behind one contract: Selective Repeat (sr_sender.h), and codes over
 * all of a message or over its tail (coded_sender.h). Each has two ends as pure state, which know numbers of pieces; a
 * coded message has a second one with its parities.
 *
 * The owner of a sending end asks for pieces when it can send, hands over what the receiver says, calls expire() when
 * deadline() has come, and tell() until that returns -1. The owner of a receiving end hands over what the sender says;
 * it reports each packet (came(), where there is one) or looks at the bitmaps, calls expire() when deadline() has come,
 * and then tell() until that returns 0. One thread an end.
 */
#pragma once

#include "sdr/coded/coded_receiver.h"
#include "sdr/coded/coded_sender.h"
#include "sdr/ec/code.h"
#include "sdr/message/shape.h"
#include "sdr/message/slot.h"
#include "sdr/repeat/sr_receiver.h"
#include "sdr/repeat/sr_sender.h"

/* A piece to send: of the message, or of the parity message. */
struct scheme_piece {
	uint32_t at;
	bool parity;
	bool fill;   /* gives way to everything else */
	bool resent; /* not the first of its place */
	bool made;   /* a parity that is made now, of all of its group */
};

struct scheme_tx {
	const struct scheme *scheme;
	union {
		struct sr_sender sr;
		struct coded_sender coded;
	};
};

struct scheme_rx {
	const struct scheme *scheme;
	const struct slot *data, *parity; /* of the message's receives; parity NULL: there is none */
	uint32_t packets;                 /* of Selective Repeat: those that were there when it was last silent */
	union {
		struct sr_receiver sr;
		struct {
			struct coded_receiver rx; /* once made */
			const struct shape *shape;
			uint64_t bytes, room; /* of the message, and for its parities */
			uint64_t rtt_ns_min;  /* whatever a plan says */
			const struct alloc *alloc;
			bool made, chunks;
		} coded;
	};
};

/* How a message is coded. */
struct scheme_code {
	struct ec_layout layout;
	enum ec_kind kind;
	bool chunks; /* a piece is a chunk, else a packet */
};

enum { SCHEME_FAREWELL_MAX = 16 };

struct scheme {
	/* The piece to send next, for which the caller calls sent() when it hands it over; false: none now. */
	bool (*next)(struct scheme_tx *, struct scheme_piece *, uint64_t now_ns);
	void (*sent)(struct scheme_tx *, const struct scheme_piece *, uint64_t now_ns);
	/* A parity while there is nothing else to send, and when the next may go. NULL: there is never any. */
	bool (*fill)(struct scheme_tx *, struct scheme_piece *, uint64_t now_ns);
	uint64_t (*fill_deadline)(const struct scheme_tx *);
	bool (*tx_take)(struct scheme_tx *, enum control_type, const uint8_t *payload, uint64_t now_ns);
	/* Writes a payload of at most 64 bytes, and returns its length. `left`: all that was sent before has left. */
	int (*tx_tell)(struct scheme_tx *, uint8_t *, enum control_type *, bool left, uint64_t now_ns);
	uint64_t (*tx_deadline)(const struct scheme_tx *);
	void (*tx_expire)(struct scheme_tx *, uint64_t now_ns);
	void (*finish)(struct scheme_tx *, enum sr_end);
	enum sr_end (*end)(const struct scheme_tx *);
	/* False: it is not known yet, or there is none. */
	bool (*tx_code)(const struct scheme_tx *, struct scheme_code *);
	/* Adds the data pieces of a send that has ended, and how many of them the receiver missed. */
	void (*count)(const struct scheme_tx *, uint64_t *pieces, uint64_t *lost);
	void (*tx_free)(struct scheme_tx *);

	/* A packet came, whose place was empty, and which may have made its chunk whole. NULL: bitmaps are looked at. */
	void (*came)(struct scheme_rx *, bool parity, uint32_t packet, bool chunk, uint64_t now_ns);
	/* Looks at the bitmaps; how many pieces are new, or whether any are. Expires, too. */
	uint32_t (*look)(struct scheme_rx *, uint64_t now_ns);
	/* Without came(): whether a look may find the message whole, after so many pieces. */
	bool (*nearly)(const struct scheme_rx *, uint32_t pieces);
	bool (*rx_take)(struct scheme_rx *, enum control_type, const uint8_t *payload, uint64_t now_ns);
	/* Writes a payload of at most `max` bytes, and returns its length. max >= 64. */
	uint16_t (*rx_tell)(struct scheme_rx *, uint8_t *, size_t max, enum control_type *, uint64_t now_ns);
	uint64_t (*rx_deadline)(const struct scheme_rx *);
	void (*rx_expire)(struct scheme_rx *, uint64_t now_ns);
	/* Whether the receiver has, or can compute, all of it; and has said so as often as it does unasked. */
	bool (*whole)(const struct scheme_rx *);
	bool (*quiet)(const struct scheme_rx *);
	/* Of one that is whole. False: nothing is to be computed. */
	bool (*rx_code)(const struct scheme_rx *, struct scheme_code *);
	bool (*has)(const struct scheme_rx *, const struct ec_piece *);
	uint32_t (*has_of)(const struct scheme_rx *, uint32_t group); /* data pieces */
	/* The word about a message that was whole when its receive was completed; its length. */
	uint16_t (*farewell)(const struct scheme_rx *, uint8_t[SCHEME_FAREWELL_MAX], enum control_type *);
	void (*rx_free)(struct scheme_rx *);
};

extern const struct scheme scheme_repeat, scheme_coded;

/* A sending end, as sr_sender_init() and coded_sender_init(). */
int scheme_tx_repeat(struct scheme_tx *, const struct sr_config *, uint32_t chunks, uint64_t now_ns,
		     const struct alloc *);
int scheme_tx_coded(struct scheme_tx *, const struct coded_config *, uint32_t pieces, const struct loss_estimate *,
		    uint64_t now_ns, const struct alloc *);
/* The loss of packets that a sending end has learned of; NULL: it learns nothing. */
const struct loss_estimate *scheme_estimate(const struct scheme_tx *);

/* A receiving end of open receives, which it borrows. */
int scheme_rx_repeat(struct scheme_rx *, const struct sr_receiver_config *, const struct slot *, uint64_t now_ns,
		     const struct alloc *);
/* One whose pieces are packets, for a round trip that is known. */
int scheme_rx_coded(struct scheme_rx *, uint64_t rtt_ns, const struct slot *data, const struct slot *parity,
		    uint64_t now_ns, const struct alloc *);
/* One that waits for a plan with times, and may have `room` bytes of parities. */
void scheme_rx_coded_later(struct scheme_rx *, const struct shape *, const struct slot *data, const struct slot *parity,
			   uint64_t bytes, uint64_t room, uint64_t rtt_ns_min, const struct alloc *);
/* Pieces of the data that have come. */
uint32_t scheme_rx_have(const struct scheme_rx *);
