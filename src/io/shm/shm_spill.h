/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that a ring has no room for yet, in order: copies, in memory that is taken from the kernel as it is touched.
 * Pure but for that memory.
 *
 * It has room for the packets that may be under way when the senders of connected queue pairs begin to wait: a burst of
 * the nic, and one that the loop keeps. Datagrams, whose senders do not wait, get half of it and no more.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pkt.h"

enum { SHM_SPILL_PACKETS = 4096, SHM_SPILL_BYTES = 4 << 20 };

struct shm_spill;

struct shm_spill *shm_spill_new(void); /* NULL: no memory */
/* Drops what it holds and frees its memory; it is empty then. */
void shm_spill_free(struct shm_spill *);

/* What it holds, in packets. */
bool shm_spill_is_empty(const struct shm_spill *);
size_t shm_spill_packets(const struct shm_spill *);
/* Copies the packets of a train, or its last ones. False, with nothing kept: no room. */
bool shm_spill_add(struct shm_spill *, const struct pkt *, size_t n, bool datagrams);
/* The oldest packets, all of one train, at most PKT_TRAIN_MAX; *lent* until the next call. */
size_t shm_spill_look(struct shm_spill *, struct pkt *);
/* Forgets the n oldest ones. */
void shm_spill_drop(struct shm_spill *, size_t n);
