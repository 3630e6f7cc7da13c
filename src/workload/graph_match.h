/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages that have arrived and receives that wait for them, matched in order for each source, destination and tag. A
 * receive is a number of the caller's.
 *
 * Private to src/workload.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct match_key {
	uint64_t context; /* 0: of sends and receives; else of a collective */
	uint32_t src, dst;
	uint32_t tag;
};

struct match_entry {
	struct match_key key;
	uint32_t next;        /* in the bucket, or among the free ones */
	uint32_t arrived;     /* messages without a receive */
	uint32_t first, last; /* receives without a message */
};

struct match_recv {
	uint64_t recv;
	uint32_t next;
};

/* Zeroes are an empty table. */
struct match {
	uint32_t *buckets; /* entry + 1 */
	uint32_t bucket_count, used;
	struct match_entry *entries;
	uint32_t entry_count, entry_room, entry_free; /* entry + 1 */
	struct match_recv *recvs;
	uint32_t recv_count, recv_room, recv_free; /* likewise */
};

void match_free(struct match *);

/*
 * A message has arrived: *recv is the receive that it ends, with *found; or it waits for one. False: no memory, and
 * nothing has changed.
 */
bool match_arrive(struct match *, const struct match_key *, bool *found, uint64_t *recv);
/* A receive begins: *found if its message is there already, else it waits. False: no memory. */
bool match_receive(struct match *, const struct match_key *, uint64_t recv, bool *found);
