/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A line: an SDR connection from one host to another, and reliable messages over it. Its packets are those of
 * libverbena-sdr, RDMA WRITE Only with Immediate on UC queue pairs of the nic, cut, counted and repeated by src/sdr;
 * control messages travel over UC too and are lost like data.
 *
 * As with channels, set-up takes no time, and the receives of all messages were posted and granted long before: a
 * message's clear-to-send does not travel.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/host.h"

struct sdr_line;

enum sdr_scheme {
	SDR_SCHEME_SR,     /* sdr/repeat/sr_sender.h, by timer */
	SDR_SCHEME_NACK,   /* the same, and the receiver names holes */
	SDR_SCHEME_XOR,    /* sdr/coded/coded_sender.h with XOR and Selective Repeat */
	SDR_SCHEME_MDS,    /* the same with a maximum distance separable code */
	SDR_SCHEME_DEMAND, /* the same with parities on demand and an end marker */
	SDR_SCHEME_TAIL    /* its tail alone, as losses call for; its chunk is a packet */
};

/* The caller's; the line has the members from `next` on while the message is under way. */
struct sdr_message {
	uint64_t bytes;
	void *owner;
	struct sdr_message *next;
};

/* The same for all lines of a run; borrowed until the last one is closed. */
struct sdr_config {
	enum sdr_scheme scheme;
	uint32_t chunk_bytes;            /* a power of two: 1 to 64 packets */
	uint32_t channels;               /* UC queue pairs that share the packets, 1 .. 16 */
	uint64_t message_bytes;          /* the longest message */
	uint32_t code_data, code_parity; /* chunks of a group: of XOR, MDS, DEMAND */
	double assumed_loss;             /* of packets, as TAIL and DEMAND reckon; 0: estimated */
	uint8_t fill_class; /* TAIL: of the queue pairs for idle fill (sdr/coded/coded_sender.h); 0: there is none */
	uint64_t rate_bps;  /* of payload, of a line; 0: that of the wire */
	bool rate_auto;     /* ... or it finds itself (sdr/rate/auto_rate.h) */
	uint32_t rto_rtts;  /* from a chunk's sending to its repetition without an answer, in round trips */
	/*
	 * Called at the time of the event, network_now_ps(); may open lines, post, and close this one. `sent`: the
	 * sender knows that all has arrived, or (!good) has given up. `received`: all is there.
	 */
	void (*sent)(void *ctx, struct sdr_message *, bool good);
	void (*received)(void *ctx, struct sdr_message *);
	void *ctx;
};

/* What all lines of a host did, as sender. */
struct sdr_counts {
	uint64_t packets;          /* data and parity handed to the nic */
	uint64_t parity_packets;   /* of these */
	uint64_t fill_packets;     /* of these: of idle fill */
	uint64_t resent_packets;   /* of these: not the first of their place */
	uint64_t spurious_packets; /* of these: the place had a copy when they came */
	uint64_t words;            /* control messages, of both directions */
};

/* NULL: out of memory or QPNs. rtt_ns: a full packet's way and an answer's, where nothing waits. */
struct sdr_line *sdr_line_open(struct host *from, struct host *to, const struct sdr_config *, uint64_t rtt_ns,
			       uint8_t class);
/* Messages under way are forgotten. Harmless on NULL. */
void sdr_line_close(struct sdr_line *);
void sdr_line_set_owner(struct sdr_line *, void *owner);
void *sdr_line_owner(const struct sdr_line *);

/* Queues a message of 1 .. message_bytes bytes; borrows it until `sent` was called for it. */
void sdr_line_post(struct sdr_line *, struct sdr_message *);
bool sdr_line_is_idle(const struct sdr_line *);
/*
 * Calls `each` for every message under way with the bytes of it that the receiver has, in whole packets, and those that
 * it can compute.
 */
void sdr_line_progress(const struct sdr_line *, void (*each)(void *ctx, struct sdr_message *, uint64_t bytes),
		       void *ctx);
/* A host without lines has counted nothing. */
struct sdr_counts sdr_counts_of(const struct host *);
