/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of limits.h: its layout, and what is done to it. It knows no file and no clock, so tests drive it in virtual
 * time. Any process of the user may write anything here: what is read is bounded, and the worst is a device that is
 * slower or faster than it should be.
 *
 * Tokens are one number, so that they change by one compare-and-swap: the time until which the device has sent what it
 * may. Sending moves it on by what the bytes take at the device's rate. It is never further in the past than what the
 * burst takes. Data may leave when it is not in future.
 *
 * Shares: time has epochs of a millisecond. The first process that sees an epoch end sets the rate of each device with a
 * weight. Devices that had to wait in it share, by weight, what the others leave of the line, which sent less than they
 * might; none gets more than its own rate. A device that sent little, or nothing, may have the share at once that it would
 * have if it sent.
 *
 * Private to src/limits.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "limits/limits.h"

enum { LIMITS_EPOCH_NS = 1000000, LIMITS_ACTIVE_NS = 2 * LIMITS_EPOCH_NS };

struct limits_place {
	_Alignas(64) _Atomic uint64_t used[LIMITS];
	/* As its process came with; all processes of a device have the same. */
	_Atomic uint64_t quota[LIMITS];
	_Atomic uint64_t rate_bps;
	_Atomic uint32_t burst_bytes, weight;
	_Atomic bool set; /* the rest is */
};

struct limits_row {
	_Atomic uint64_t key;         /* a hash of the name; 0: no device has had it yet */
	char name[LIMITS_NAME_BYTES]; /* to be shown */
	_Atomic uint64_t cap_bps;     /* its own rate; 0: none */
	_Atomic uint32_t weight;
	_Atomic uint32_t places; /* from this one on none was ever taken */
	_Alignas(64) _Atomic uint64_t sent_until_ns;
	_Atomic uint64_t rate_bps;   /* what it has now; 0: none yet */
	_Atomic uint64_t bytes;      /* sent, ever */
	_Atomic uint64_t sent_at_ns; /* the last time */
	_Atomic uint64_t waits_ns;   /* until when it had to wait, the last time that it did */
	_Atomic uint64_t counted;    /* of `bytes`, at the end of the last epoch */
	struct limits_place place[LIMITS_PROCESSES_MAX];
};

struct limits_page {
	_Alignas(64) _Atomic uint64_t epoch_ns; /* when it began */
	struct limits_row rows[LIMITS_DEVICES_MAX];
};

/* The place's process has counted nothing, and has these limits. */
void place_set(struct limits_place *, const struct limits_config *);
void place_clear(struct limits_place *);
void place_config(const struct limits_place *, struct limits_config *);

/* The first process of a device came: it has sent nothing yet. */
void row_begin(struct limits_row *, const struct limits_config *, uint64_t now_ns);
uint64_t row_used(const struct limits_row *, enum limit);
/* As limits_take() and limits_note(), of a place of the row. */
bool row_take(struct limits_row *, struct limits_place *, const uint64_t wanted[LIMITS], enum limit *over);
void place_note(struct limits_place *, const uint64_t have[LIMITS]);

/* As limits_due_ns() and limits_send(). */
uint64_t row_due_ns(struct limits_page *, struct limits_row *, uint64_t line_bps, uint64_t now_ns);
void row_send(struct limits_page *, struct limits_row *, uint32_t burst_bytes, uint64_t line_bps, uint64_t bytes,
	      uint64_t now_ns);
