/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Erasure coding on a queue pair: drives the state machines of sdr/ec_sender.h and ec_receiver.h
 * with the sender's queue, the bitmaps and the control path. A coded message is two: number n has
 * the data, n + 1 the parities, which lie in memory of the library's own at both ends. Everything
 * here is under the queue pair's lock, but for the recovery of bytes.
 *
 * Private to src/sdr/verbs.
 */
#ifndef SDR_VERBS_CODED_H
#define SDR_VERBS_CODED_H

#include "sdr/control.h"
#include "sdr/ec_bytes.h"
#include "sdr/ec_receiver.h"
#include "sdr/ec_sender.h"
#include "sdr/shape.h"
#include <verbena/sdr.h>

struct verbena_sdr_qp;
struct send_block;

struct coded_send {
	struct ec_sender ec;
	struct ec_code code;
	struct ec_bytes bytes;
	uint64_t number;
	uint32_t lkey;
	bool chunks;
	uint32_t folded;               /* data pieces that the parities contain */
	uint32_t made_group, made_end; /* parities made of the answer that is being sent */
	uint32_t plans;                /* that will be sent soon */
	uint64_t plan_ns;
	bool ended; /* no more blocks will come of it */
};

struct coded_receive {
	struct ec_receiver ec; /* once planned */
	struct ec_code code;
	struct ec_bytes bytes;
	uint64_t number;
	bool planned;
	bool aborted; /* the sender has given up */
	bool recovered;
};

/* Memory for the parities of a slot's messages, kept for the next one. */
struct scratch {
	uint8_t *memory;
	size_t bytes;
	struct verbena_sdr_mr *mr;
	uint32_t lkey;
};

/* A slot each. */
struct coded {
	struct coded_send **sends;
	struct coded_receive **receives;
	struct scratch *out, *in;
	uint32_t open;         /* sends and receives */
	uint64_t pieces, lost; /* data pieces of sends that are done, and what the peer missed of them */
	uint64_t recovered;    /* pieces */
};

int coded_make(struct verbena_sdr_qp *);
void coded_free(struct verbena_sdr_qp *);

/* Whether the send is coded: then no other call may go on with it or end it. */
bool coded_owns(const struct verbena_sdr_qp *, uint64_t number);

/* Whether the receive is a coded one, or the parities of one. */
bool coded_receives(const struct verbena_sdr_qp *, uint64_t number);

/* As repeat_serve(). */
uint32_t coded_serve(struct verbena_sdr_qp *, uint64_t now_ns, uint64_t *due_ns);
uint32_t coded_serve_send(struct verbena_sdr_qp *, struct coded_send *, uint64_t now_ns, uint64_t *due_ns);
uint32_t coded_serve_receive(struct verbena_sdr_qp *, struct coded_receive *, uint64_t now_ns, uint64_t *due_ns);
/* Takes a control message of a reliability layer, coded or not; false if it makes no sense. */
bool coded_take(struct verbena_sdr_qp *, const struct control *, const uint8_t *payload, uint64_t now_ns);
bool coded_receive_take(struct verbena_sdr_qp *, struct coded_receive *, const struct control *, const uint8_t *payload,
			uint64_t now_ns);
/* A receive is about to be completed: whether it is a coded one, whose parities go with it. */
bool coded_completed(struct verbena_sdr_qp *, uint64_t number, uint64_t now_ns);

struct coded_send *coded_send_of(const struct verbena_sdr_qp *, uint64_t number);
struct coded_receive *coded_receive_of(const struct verbena_sdr_qp *, uint64_t number);
void coded_send_free(struct verbena_sdr_qp *, struct coded_send *);
void coded_receive_free(struct verbena_sdr_qp *, struct coded_receive *);
/* How long the parity message of a message of `bytes` is. */
uint64_t coded_room(const struct shape *, uint64_t bytes);

/*
 * What messages that are two have in common, with whatever code: 0 or a negative errno. A block is the whole message;
 * the peer has granted both numbers, and the second has room for *parity_bytes.
 */
int coded_send_ready(const struct verbena_sdr_qp *, const struct verbena_sdr_block *, struct send_block *,
		     uint64_t *parity_bytes);
/* As recv_ready(), for both receives of such a message. */
int coded_recv_ready(const struct verbena_sdr_qp *, size_t length);
/* Posts both, the second into the slot's own memory. */
int coded_recv_open(struct verbena_sdr_qp *, const struct verbena_sdr_recv_attr *, uint64_t *number);
/* The outcome of a send whose state machine has that end. Once both of its messages have left, their numbers are
 * free. */
int coded_outcome(struct verbena_sdr_qp *, uint64_t number, enum sr_end, bool ended);
/* Makes room for so many bytes; -ENOMEM. */
int scratch_take(struct verbena_sdr_qp *, struct scratch *, size_t bytes);

#endif
