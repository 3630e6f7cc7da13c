/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Congestion control by what arrives: the rate at which the peer receives and the least round trip are the model of a
 * path. Their product and a share of the queue may be in flight. So the rate is that of the path, whatever the path
 * loses at random, and nobody has to know it. For long paths; the shape is FAST's (window) and BBR's (model, states).
 *
 * An acknowledgement counts bytes that have come. It may be rare (16 a round trip do), lost, and need not say what is
 * missing: cc_ack.ack_seq says how much was sent before it, so the difference is what was lost.
 *
 *     STARTUP  the rate doubles each round trip, until the rate of arrival does not follow or a queue grows; where others
 *              have one already, until the rate is half of each of theirs
 *     DRAIN    less is in flight than the path holds, for a round trip in which the queue is empty: the least round
 *              trip is that, and the loss is what the path loses without being filled
 *     CRUISE   the window is what arrives in a least round trip, and a share of the queue; more while there is no queue
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cc;
struct cc_config;

struct delivery_params {
	uint64_t
		queue_q32; /* queue wanted for each halving of the rate below 16 Gbit/s, of the base RTT; and 1/20 of it */
};

extern const struct delivery_params delivery_params_default;

enum delivery_state { DELIVERY_STARTUP, DELIVERY_DRAIN, DELIVERY_CRUISE };

enum { DELIVERY_ASKED = 5 };

struct cc_delivery {
	const struct delivery_params *params;
	uint64_t rate_bps_min, rate_bps_max;
	uint64_t slack_ns;    /* a queue that is shorter is none: what hosts add */
	uint64_t base_ns;     /* the least round trip; 0: not known yet. It is the less of: */
	uint64_t least_ns[2]; /* the least one since turn_ns, and in as long a time before */
	uint64_t turn_ns;
	uint64_t empty_ns;  /* when the queue was last seen about empty */
	uint64_t bps;       /* of arrival: the mean of some epochs */
	uint64_t queued_ns; /* the queue's mean */
	/* The epoch under way, which began with an acknowledgement. */
	uint64_t seq, peer_ns, sent_ns; /* of that one; sent_ns 0: there was none */
	uint64_t bytes;                 /* that have come since */
	uint64_t rtt_ns;                /* the least one since */
	uint64_t drain_ns;              /* when the last DRAIN began */
	uint64_t drained_ns;            /* when in flight was as little as it should be; 0: not yet */
	uint32_t asked_kbps[DELIVERY_ASKED];
	uint32_t loss_q16, own_loss_q16; /* what is lost, and what was while the queue was empty */
	uint32_t others_us;              /* STARTUP: the queue that others keep; 0: none is known */
	uint32_t room_q16;               /* of the share of the queue: less where queues are short */
	uint8_t state;                   /* enum delivery_state */
	uint8_t full, calm, over;        /* epochs in a row: without growth; without a queue; with too much of it */
	bool deep;                       /* DRAIN: the least round trip may have been another's queue */
	bool measuring;                  /* DRAIN: the epoch began with a packet that was sent when drained */
};
