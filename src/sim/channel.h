/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A channel: two connected RC QPs, and messages written from one host's memory to the other's, in the
 * order in which they were posted. Set-up takes no time, as if a connection manager had done it before.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/host.h"

struct channel;

enum { CHANNEL_WRS = 4 };

/* The largest piece that is one work request. */
#define CHANNEL_PIECE_BYTES_MAX (UINT32_C(1) << 30)

/*
 * NULL: out of memory or QPNs. Messages are posted in pieces of piece_bytes (1 ..
 * CHANNEL_PIECE_BYTES_MAX): each reports its completion.
 */
struct channel *channel_open(struct host *from, struct host *to, uint32_t piece_bytes);
/* The same with data in a class of its own, 1 .. 7: the service level of its QPs. */
struct channel *channel_open_in_class(struct host *from, struct host *to, uint32_t piece_bytes, uint8_t class);
/*
 * Messages under way are forgotten. Not to be called from within the completion of a message of the
 * channel, except its last.
 */
void channel_close(struct channel *);

/* The caller's, untouched. */
struct message_post {
	struct message_post *next; /* the channel's while the message is not completed */
	uint64_t bytes;
	uint64_t posted, completed; /* of those; the channel's */
	uint64_t due_ps;            /* when the nic gets it; the channel's */
	uint32_t psn, packets;      /* its first PSN, and how many of its packets are posted; the channel's */
	uint64_t packet;            /* number of its first packet in the channel; the channel's */
	uint32_t imm;
	bool notify; /* the receiver's host reports imm when the message has come */
};

/* Queues a message; borrows it until all of it is completed. */
void channel_post(struct channel *, struct message_post *);
/*
 * Called with a completion that host_config.completed reported. Returns its message; *done: the
 * message is complete and the caller's again.
 */
struct message_post *channel_completed(struct channel *, uint64_t wr_id, uint64_t *bytes, bool *done);

/* Called by hosts: the time that host_post_ps() returned has come. */
void channel_ring(struct channel *);
/* Called by hosts: the piece wr_id is complete, and its completion will be reported later. */
void channel_completes_late(struct channel *, uint64_t wr_id);

/* A pointer for the caller's use; NULL at first. */
void channel_set_owner(struct channel *, void *owner);
void *channel_owner(const struct channel *);
/*
 * Bytes of its oldest message that are acknowledged. A retransmission from the start does not lower the
 * number; an error may.
 */
uint64_t channel_progress(const struct channel *, const struct message_post **);
/*
 * How many bytes of a message the receiver has, in whole packets, early ones included. Called for one
 * message after the other, from the oldest on, with one cursor that begins as zeros. It is not known to
 * which messages early packets belong: they count for the oldest. NULL: the receiver has nothing of this
 * message or any after it.
 */
struct channel_cursor {
	struct message_post *next;
	uint64_t packets; /* not yet reported */
	bool begun;
};

const struct message_post *channel_received(struct channel *, struct channel_cursor *, uint64_t *bytes);
/*
 * At least so many whole packets of a message have not arrived, which was posted and is not completed. Where early
 * packets belong to later messages, it is more.
 */
uint64_t channel_missing(struct channel *, const struct message_post *);
/* The message of the packet with that PSN, which is sent and not yet acknowledged; NULL: none. */
const struct message_post *channel_message(const struct channel *, uint32_t psn);
/* The queue pairs' numbers, at the sender and at the receiver. */
uint32_t channel_sender_qpn(const struct channel *);
uint32_t channel_receiver_qpn(const struct channel *);
/* The sender's queue pair, for queries. */
const struct qp *channel_sender(const struct channel *);
/* Everything posted is completed. */
bool channel_is_idle(const struct channel *);
