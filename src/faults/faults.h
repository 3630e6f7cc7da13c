/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fault engine of one device: given an event and the time, which faults. It does nothing itself. Its callers are the
 * wrapper of the device's io (packets), the verbs (work requests and calls) and the engine, which does the deeds: what
 * happens to the link, GIDs, queue pairs and the device.
 *
 * Pure: no clock, no I/O, no lock; one caller at a time. Memory comes when rules are added and QPs are created. Rules are
 * judged in the order in which they were added, each by its own count and its own random numbers, so a rule that counts
 * depends on nothing but what it counts.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/pkt.h"
#include "faults/log.h"
#include "faults/script.h"

struct faults;

/* *Borrows* the log, which is zero. NULL: no memory. now_ns: when the device was opened. */
struct faults *faults_new(const struct alloc *, struct fault_log *, unsigned device, uint64_t now_ns);
void faults_free(struct faults *);

/* Adds the rules that are for this device, which begin to count now. 0, -ENOMEM, or -ENOSPC: there are too many. */
int faults_add(struct faults *, const struct fault_script *, uint64_t now_ns);

/* ---- queue pairs, by their QPNs ---- */

/* It was created, as the device's number-th from 1 on. Without memory no rule sees it. */
void faults_qp_made(struct faults *, uint32_t number, uint32_t qpn);
void faults_qp_peer(struct faults *, uint32_t qpn, const uint8_t peer[16], uint32_t dest_qpn);
void faults_qp_gone(struct faults *, uint32_t qpn);

/* ---- packets ---- */

struct fault_verdict {
	bool drop, corrupt, mark, doubled;
	uint32_t late;     /* so many packets overtake it */
	uint64_t delay_ns; /* it waits */
	uint64_t bit;      /* corrupt: a random number, to choose the bit by */
};

/* `out`: it leaves; else it has arrived. *Borrows* pkt. */
void faults_packet(struct faults *, const struct pkt *, bool out, uint64_t now_ns, struct fault_verdict *);
/* The rate that packets of that way have now; 0: unlimited. */
uint64_t faults_rate_bps(const struct faults *, bool out);
/* Whether nothing may pass at all: the link is down, or the device hangs or is dead. */
bool faults_stops(const struct faults *);
/* Whether the device is dead (FAULT_DEVICE_FATAL). */
bool faults_is_dead(const struct faults *);
/* Whether the device hangs: nothing but time passes. */
bool faults_hangs(const struct faults *);
/* Whether some rule has to do with packets that leave; without, they need not be shown. */
bool faults_sees_out(const struct faults *);
/* Nothing may leave in trains: some rule picks single packets. */
bool faults_picks_out(const struct faults *);

/* ---- work requests and calls ---- */

struct fault_wr {
	int err;         /* the call that posts it returns this errno; 0: it does not */
	uint32_t status; /* it completes with this enum wc_status; 0: it is not touched */
};

/* A send request is about to be posted. */
struct fault_wr faults_wr(struct faults *, uint32_t qpn, uint64_t now_ns);
/* The errno that the call fails with; 0: it does not. */
int faults_call(struct faults *, enum fault_call, uint64_t now_ns);

/* ---- deeds ---- */

struct fault_deed {
	enum fault_action action;
	bool undo;    /* its time is over */
	uint32_t qpn; /* with qp */
	uint32_t qp;  /* its number; 0: it is no QP's */
	const struct fault_rule *rule;
	uint32_t rule_index;
};

/* When the next deed is due; UINT64_MAX: none is, as it is now. 0: now. */
uint64_t faults_due_ns(const struct faults *);
/* The next thing to do. False: nothing is due. */
bool faults_next(struct faults *, uint64_t now_ns, struct fault_deed *);
/* The deed was FAULT_COMPLETE, and nothing is posted: the QP's next request is the one. */
void faults_wait_wr(struct faults *, const struct fault_deed *);
/* What came of it, for the log. */
void faults_done(struct faults *, const struct fault_deed *, enum fault_outcome, uint64_t now_ns);
