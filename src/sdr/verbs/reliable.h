/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reliable messages on a queue pair: drives the schemes of sdr/scheme.h with the sender's queue, the bitmaps and the
 * control path. A message with a code is two: number n has the data, n + 1 the parities, which lie in memory of the
 * library's own at both ends. Everything here is under the queue pair's lock, but for the recovery of bytes.
 *
 * repeat.c and coded.c have the calls of each scheme: how a program's attributes become its settings.
 *
 * Private to src/sdr/verbs.
 */
#pragma once

#include "sdr/message/control.h"
#include "sdr/coded/ec_bytes.h"
#include "sdr/scheme.h"
#include "sdr/message/sender.h"
#include <verbena/sdr.h>

struct verbena_sdr_qp;

/* A process may wait this long for a processor, and a round trip takes two processes. */
#define RTT_NS_MIN UINT64_C(20000000)

/* A message's bytes, at either end. */
struct message_bytes {
	uint8_t *data, *parity;
	uint64_t bytes; /* of the data */
	uint32_t piece;
};

/* The code of a message. */
struct message_code {
	struct scheme_code plan;
	struct ec_code code;
	struct ec_bytes bytes;
	bool made;
};

struct reliable_send {
	struct scheme_tx tx;
	struct message_bytes bytes;
	struct message_code code;
	uint64_t number, rtt_ns;
	uint32_t parts;  /* messages that it is: 1, or 2 */
	uint32_t queued; /* blocks, at most */
	uint32_t lkey, parity_lkey;
	uint32_t folded; /* pieces before are in the parities, if they are coded */
	bool ended;      /* no more blocks will come of it */
};

struct reliable_receive {
	struct scheme_rx rx;
	struct message_bytes bytes;
	struct message_code code; /* once something is recovered */
	uint64_t number;
	uint32_t parts;
	bool aborted; /* the sender has given up */
	bool recovered;
};

/* A receive that was completed, kept in case its last word was lost. */
struct finished {
	uint64_t number;
	bool known, whole;
	enum control_type type; /* the word, of one that was whole */
	uint16_t length;
	uint8_t payload[SCHEME_FAREWELL_MAX];
};

/* Memory for the parities of a slot's messages, kept for the next one. */
struct scratch {
	uint8_t *memory;
	size_t bytes;
	struct verbena_sdr_mr *mr;
	uint32_t lkey;
};

/* A slot each. */
struct reliable {
	struct reliable_send **sends;
	struct reliable_receive **receives;
	struct finished *finished;
	struct scratch *out, *in;
	uint32_t open, two;            /* sends and receives; those that are two */
	uint64_t pieces, lost;         /* data pieces of coded sends that are done, and what the peer missed of them */
	uint64_t recovered;            /* pieces */
	struct loss_estimate estimate; /* of the way to the peer */
	uint64_t fills;                /* packets of idle fill */
	uint64_t resent;               /* packets that were not the first of their place */
};

/* The layer's part of a queue pair: 0 or a negative errno, with nothing to free; and its end. */
int reliable_make(struct verbena_sdr_qp *);
void reliable_free(struct verbena_sdr_qp *);

/* Whether the send is reliable, or the parities of one: then no other call may go on with it or end it. */
bool reliable_owns(const struct verbena_sdr_qp *, uint64_t number);
/* The same of a receive; whether it is the parities of one. */
bool reliable_receives(const struct verbena_sdr_qp *, uint64_t number);
bool reliable_is_second(const struct verbena_sdr_qp *, uint64_t number);

/* Hands over pieces and sends the control messages that are due. Returns how much it did, and lowers *due_ns to the
 * time of the next call if that is earlier. */
uint32_t reliable_serve(struct verbena_sdr_qp *, uint64_t now_ns, uint64_t *due_ns);
uint32_t reliable_serve_send(struct verbena_sdr_qp *, struct reliable_send *, uint64_t now_ns, uint64_t *due_ns);
uint32_t reliable_serve_receive(struct verbena_sdr_qp *, struct reliable_receive *, uint64_t now_ns, uint64_t *due_ns);
/* Queues a parity of idle fill, if nothing else is to be sent on the context and none is under way. A gate is held.
 * Likewise. */
uint32_t reliable_fill(struct verbena_sdr_qp *, uint64_t now_ns, uint64_t *due_ns);
/* Takes a control message of the layer; false if it makes no sense. */
bool reliable_take(struct verbena_sdr_qp *, const struct control *, const uint8_t *payload, uint64_t now_ns);
/* A receive is about to be completed: remembers it, and sends the last word about it. Whether its parities go with it.
 */
bool reliable_completed(struct verbena_sdr_qp *, uint64_t number, uint64_t now_ns);

/* The one with that number, or NULL; and its end, whatever its state. */
struct reliable_send *reliable_send_of(const struct verbena_sdr_qp *, uint64_t number);
struct reliable_receive *reliable_receive_of(const struct verbena_sdr_qp *, uint64_t number);
void reliable_send_free(struct verbena_sdr_qp *, struct reliable_send *);
void reliable_receive_free(struct verbena_sdr_qp *, struct reliable_receive *);

/* -EINVAL: there is no such code; -ENOMEM. */
int message_code_make(struct message_code *, const struct message_bytes *);
void message_code_free(struct message_code *);
/* Makes the code of a send once it is known. */
int reliable_code_ready(struct reliable_send *);

/* ---- for the calls; 0, or a negative errno */

/* How long the parity message of a message of `bytes` is. */
uint64_t reliable_room(const struct shape *, uint64_t bytes);
/* Whether a block is a whole message, for which the peer has granted so many numbers; the second has room for
 * *parity_bytes. */
int reliable_send_ready(const struct verbena_sdr_qp *, const struct verbena_sdr_block *, uint32_t parts,
			struct send_block *, uint64_t *parity_bytes);
/* Starts a ready send, with `room` bytes for its parities. Takes one with scheme, parts and RTT; it is freed on an
 * error. */
int reliable_send_open(struct verbena_sdr_qp *, struct reliable_send *, const struct send_block *, uint32_t piece,
		       size_t room);
/* The calls that send end with this one, as with send_settle(). */
int reliable_send_settle(struct verbena_sdr_qp *, int err, const struct reliable_send *, struct verbena_sdr_send *);
/* One for a receive that is open; NULL: no memory. It counts once the caller gives it a scheme, or frees it. */
struct reliable_receive *reliable_receive_add(struct verbena_sdr_qp *, uint64_t number, uint32_t parts);
/* Posts both receives of a message that is two, the second into the slot's own memory, and adds it; pieces are packets.
 * -EAGAIN: not now. */
int reliable_receive_post(struct verbena_sdr_qp *, const struct verbena_sdr_recv_attr *, struct reliable_receive **);
/* Undoes that. */
void reliable_receive_undo(struct verbena_sdr_qp *, struct reliable_receive *);
