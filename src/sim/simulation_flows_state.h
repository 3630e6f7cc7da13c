/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flows from inside, for the files that they are made of: simulation_flows.c, which posts messages, and
 * simulation_reports.c, which learns what became of them. Private to these two.
 */
#pragma once

#include "sim/key_map.h"
#include "sim/simulation_flows.h"

struct line {                    /* a channel, or a line of SDR, and the connection that it is */
	struct line *next;       /* in the bucket */
	struct channel *channel; /* NULL: it is the other */
	struct sdr_line *sdr;
	uint64_t connection;
	uint32_t src, dst;
	bool last;               /* nothing more will be posted */
	struct line *later_next; /* that closes next, at closes_ps */
	uint64_t closes_ps;
};

struct slot {
	struct message_post post; /* first, so that it is the slot */
	struct message message;
	struct line *line;
	struct sdr_message sdr;
	struct inside_message inside;
	uint32_t relay;  /* the rank that sends it by its NIC; its source, but for PXN */
	uint32_t flow;   /* of the results */
	uint32_t number; /* of this slot */
	uint32_t free_next;
	bool open;               /* its flow is under way */
	bool received;           /* reported */
	struct slot *later_next; /* broken, with ends_ps */
	uint64_t ends_ps;
	uint64_t told; /* bytes that the results know to have arrived */
};

enum { SLOTS_A_SLAB = 256, NO_SLOT = UINT32_MAX };

/* Longer than any window of a network that is divided (net/cores.c). */
#define LATER_PS UINT64_C(10000000)

/* What a host has to say about a message. */
struct report {
	uint64_t at_ps;
	struct slot *slot;
	uint64_t sent_bytes; /* acknowledged */
	bool received;       /* by the receiver; all else is the sender's */
	bool done, good;
	bool idle; /* its channel has no other message */
};

struct reports {
	struct report *list;
	uint32_t count, room;
	bool out_of_memory;
} __attribute__((aligned(64)));

struct flows {
	struct flows_config c;
	struct slot **slabs;
	uint32_t slab_count, slab_room;
	uint32_t free;
	struct line **buckets;
	struct key_map names; /* the channel of each queue pair, if flows are named */
	uint32_t bucket_mask, line_count;
	struct slot **due; /* min-heap by start, then by slot: released, but not yet */
	uint32_t due_count, due_room;
	struct message next; /* of workload_next() */
	bool has_next;
	uint64_t next_told_ps; /* by flows_next_ps() */
	uint64_t begun, done, failed, open;
	bool out_of_memory;
	struct line *closing, **closing_end; /* in order of closes_ps */
	struct slot *broken, **broken_end;   /* in order of ends_ps */
	struct slot *unfinished;             /* one that was open when may_end() looked last */
	struct reports *reports;             /* of each part; NULL: the network is not divided */
	struct report *taken;                /* those of all parts, while they are being taken */
	uint32_t taken_room;
};

static inline struct slot *slot_of(const struct flows *f, uint32_t number)
{
	return &f->slabs[number / SLOTS_A_SLAB][number % SLOTS_A_SLAB];
}

static inline void slot_put(struct flows *f, struct slot *s)
{
	s->open = false;
	s->free_next = f->free;
	f->free = s->number;
}

/* Messages no longer find the line; the caller closes it. */
void line_unlink(struct flows *, struct line *);
/* When something is due that flows_post_due() does. */
uint64_t flows_due_ps(const struct flows *);
/* No flow is under way, and none will begin. */
bool flows_have_ended(const struct flows *);
/* Begins what the last report to the workload has released. */
void flows_take_released(struct flows *);
/* There was no memory: the run ends. */
void flows_lack_memory(struct flows *);

/* simulation_reports.c: the receiver has all of the message. */
void flows_report_received(struct flows *, struct slot *, uint64_t now_ps);
/* The sender knows that, or (not good) its connection broke. idle: its channel has no other message. */
void flows_end(struct flows *, struct slot *, uint64_t now_ps, bool good, bool idle);
