/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Codes over the tail on a queue pair: drives the state machines of sdr/tail_sender.h and tail_receiver.h
 * with the sender's queue, the bitmaps and the control path. A message is two, as a coded one
 * (coded.h), whose memory for parities it uses. Everything here is under the queue pair's lock, but
 * for the recovery of bytes.
 *
 * The tail is laid out as the groups of an erasure code over the bytes from its first packet on.
 *
 * Private to src/sdr/verbs.
 */
#ifndef SDR_VERBS_TAILED_H
#define SDR_VERBS_TAILED_H

#include "sdr/control.h"
#include "sdr/ec_bytes.h"
#include "sdr/shape.h"
#include "sdr/tail_receiver.h"
#include "sdr/tail_sender.h"

struct verbena_sdr_qp;

/* The code of a message's tail. */
struct tailed_code {
	struct ec_layout layout;
	struct ec_code code;
	struct ec_bytes bytes;
	bool made; /* there is a plan, and it has parities */
};

struct tailed_send {
	struct tail_sender tail;
	struct tailed_code code;
	uint8_t *data;
	uint64_t bytes, number;
	uint32_t lkey;
	uint32_t folded; /* pieces of the tail that the parities contain */
	bool ended;      /* no more blocks will come of it */
};

struct tailed_receive {
	struct tail_receiver tail;
	struct tailed_code code;
	uint8_t *data;
	uint64_t bytes, number;
	bool aborted; /* the sender has given up */
	bool recovered;
};

/* A slot each. */
struct tailed {
	struct tailed_send **sends;
	struct tailed_receive **receives;
	uint32_t open;
	struct loss_estimate estimate; /* of the way to the peer */
	uint64_t fills;                /* packets of idle fill */
};

int tailed_make(struct verbena_sdr_qp *);
void tailed_free(struct verbena_sdr_qp *);

struct tailed_send *tailed_send_of(const struct verbena_sdr_qp *, uint64_t number);
struct tailed_receive *tailed_receive_of(const struct verbena_sdr_qp *, uint64_t number);
void tailed_send_free(struct verbena_sdr_qp *, struct tailed_send *);
void tailed_receive_free(struct verbena_sdr_qp *, struct tailed_receive *);
/* Whether the send or its parities are such a message: then no other call may go on with it or end it. */
bool tailed_owns(const struct verbena_sdr_qp *, uint64_t number);
bool tailed_receives(const struct verbena_sdr_qp *, uint64_t number);

/*
 * Lays a planned tail out over a message and memory for its parities, which are the data, bytes, parity and piece of
 * `all`. Of a group's parities so many grow as its data is added (ec_bytes_add()). -ENOMEM.
 */
int tailed_code_make(struct tailed_code *, const struct tail_plan *, uint32_t unasked, const struct ec_bytes *all);
void tailed_code_free(struct tailed_code *);

/* As repeat_serve(). */
uint32_t tailed_serve(struct verbena_sdr_qp *, uint64_t now_ns, uint64_t *due_ns);
uint32_t tailed_serve_send(struct verbena_sdr_qp *, struct tailed_send *, uint64_t now_ns, uint64_t *due_ns);
uint32_t tailed_serve_receive(struct verbena_sdr_qp *, struct tailed_receive *, uint64_t now_ns, uint64_t *due_ns);
/* Takes a control message of a reliability layer, this one or another; false if it makes no sense. */
bool tailed_take(struct verbena_sdr_qp *, const struct control *, const uint8_t *payload, uint64_t now_ns);
/*
 * Queues a parity of idle fill, if nothing else is to be sent on the context and none is under way. A gate is held. As
 * repeat_serve().
 */
uint32_t tailed_fill(struct verbena_sdr_qp *, uint64_t now_ns, uint64_t *due_ns);
/* A receive is about to be completed: whether it is such a message, whose parities go with it. */
bool tailed_completed(struct verbena_sdr_qp *, uint64_t number, uint64_t now_ns);

/* What both ends reckon with as a round trip: that of the path, and what is queued before it. */
uint64_t tailed_rtt_ns(uint64_t rtt_ns);

#endif
