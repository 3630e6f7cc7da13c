/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the rules of a device did, in memory that tools of other processes may read: each rule with the number of times it
 * fired, and the last events. One writer; a reader copies all of it between two equal, even values of `turn`.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	FAULT_NO_RULE = 0xff,
	FAULT_RULES_MAX = 64,
	FAULT_RECORDS_MAX = 256,
	FAULT_WHERE_BYTES = 40,
	FAULT_TEXT_BYTES = 120
};

enum fault_action {
	FAULT_DROP,
	FAULT_CORRUPT,
	FAULT_MARK,
	FAULT_DOUBLE,
	FAULT_SWAP,
	FAULT_DELAY,
	FAULT_RATE,
	FAULT_SILENT,
	FAULT_FAIL,
	FAULT_COMPLETE,
	FAULT_QP_ERROR,
	FAULT_QP_HANG,
	FAULT_QP_OVERFLOW,
	FAULT_LINK_DOWN,
	FAULT_LINK_UP,
	FAULT_GID_MOVE,
	FAULT_GID_REMOVE,
	FAULT_GID_ADD,
	FAULT_DEVICE_FATAL,
	FAULT_DEVICE_HANG,
	FAULT_QUOTA, /* no rule's: a quota of the device was used up; value: which (enum limit) */
	FAULT_ACTIONS
};

/* What came of it. */
enum fault_outcome {
	FAULT_DONE,
	FAULT_UNDONE,  /* the time of its `for` is over */
	FAULT_NO_QP,   /* there is no such queue pair */
	FAULT_NO_GID,  /* there is no such GID, or no room for it */
	FAULT_WAITS,   /* nothing is posted: the next request is the one */
	FAULT_ALREADY, /* it was so before */
	FAULT_OUTCOMES
};

struct fault_record {
	uint64_t time_ns;    /* since the device was opened */
	uint32_t rule;       /* its index, or FAULT_NO_RULE */
	uint32_t qp;         /* the QP, numbered from 1 as they were created; 0: none */
	uint8_t action;      /* enum fault_action */
	uint8_t outcome;     /* enum fault_outcome */
	uint8_t reserved[2]; /* zero */
	uint32_t value;      /* FAULT_FAIL: errno; FAULT_COMPLETE: enum wc_status */
};

struct fault_rule_report {
	char where[FAULT_WHERE_BYTES]; /* file:line; "impair"; "command" */
	char text[FAULT_TEXT_BYTES];
	uint64_t fired;
};

struct fault_log {
	_Atomic uint32_t turn; /* odd while it is written */
	uint32_t rule_count;
	uint64_t record_count; /* ever; the newest is at (record_count - 1) % FAULT_RECORDS_MAX */
	struct fault_rule_report rules[FAULT_RULES_MAX];
	struct fault_record records[FAULT_RECORDS_MAX];
};

/* The writer's: adds a record. */
void fault_log_add(struct fault_log *, const struct fault_record *);
/* For tools. False: its process does not finish writing. Everything in *out is within its bounds then, and text ends. */
bool fault_log_read(const struct fault_log *, struct fault_log *out);

enum { FAULT_SHOWN_BYTES = 64 };

/* "drop", "link down": static. */
const char *fault_action_name(enum fault_action);
/* What the program was shown: "IBV_WC_RETRY_EXC_ERR", "ENOMEM", "IBV_EVENT_PORT_ERR"; "" where it sees nothing at once. */
void fault_shown(const struct fault_record *, char shown[FAULT_SHOWN_BYTES]);
/* "IBV_WC_RETRY_EXC_ERR" and "ENOMEM" as numbers; -1: there is none of that name. */
int fault_status_of(const char *name, size_t len);
int fault_errno_of(const char *name, size_t len);
/* All such names, with commas, for messages. */
void fault_status_names(char *text, size_t bytes);
void fault_errno_names(char *text, size_t bytes);
