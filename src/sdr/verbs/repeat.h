/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Selective Repeat on a queue pair: drives the state machines of sdr/sr_sender.h and sr_receiver.h
 * with the sender's queue, the bitmaps and the control path. Everything here is under the queue
 * pair's lock.
 */
#ifndef SDR_VERBS_REPEAT_H
#define SDR_VERBS_REPEAT_H

#include "sdr/control.h"
#include "sdr/sr_receiver.h"
#include "sdr/sr_sender.h"
#include "sdr/tail_words.h"

struct verbena_sdr_qp;

/* A process may wait this long for a processor, and a round trip takes two processes. */
#define RTT_NS_MIN UINT64_C(20000000)

/* A message that is repeated until the peer has it. */
struct repeated {
	struct sr_sender sr;
	uint64_t number;
	uint64_t addr, bytes;
	uint32_t lkey;
	bool ended; /* no more blocks will come of it */
};

/* A receive that is acknowledged. */
struct acknowledged {
	struct sr_receiver sr;
	uint64_t number;
	uint32_t packets; /* that were there when it was last silent */
	bool aborted;     /* the sender has given up */
};

/* A receive that was completed, kept in case its last acknowledgement was lost. */
struct finished {
	uint64_t number;
	uint32_t chunks;         /* of one that is coded: the pieces that had not come */
	struct tail_state state; /* of one with a code over its tail */
	bool known, whole, coded, tailed;
};

/* A slot each. */
struct repeat {
	struct repeated **sends;
	struct acknowledged **receives;
	struct finished *finished;
	uint32_t open; /* sends and receives */
};

int repeat_make(struct verbena_sdr_qp *);
void repeat_free(struct verbena_sdr_qp *);

/* Whether the send is repeated: then no other call may go on with it or end it. */
bool repeat_owns(const struct verbena_sdr_qp *, uint64_t number);

/* Hands over chunks and sends the control messages that are due. Returns how much it did, and lowers
 * *due_ns to the time of the next call if that is earlier. */
uint32_t repeat_serve(struct verbena_sdr_qp *, uint64_t now_ns, uint64_t *due_ns);
/* Takes a control message of the layer; false if it makes no sense. */
bool repeat_take(struct verbena_sdr_qp *, const struct control *, const uint8_t *payload, uint64_t now_ns);
/* Remembers a receive that is about to be completed, and sends the last message about it. */
void repeat_finish(struct verbena_sdr_qp *, const struct finished *);
/* A receive is about to be completed. */
void repeat_completed(struct verbena_sdr_qp *, uint64_t number, uint64_t now_ns);

#endif
