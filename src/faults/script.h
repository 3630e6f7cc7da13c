/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A script of faults: one rule a line, `#` begins a comment. docs/faults.md has the grammar and what each word does.
 *
 *     line     ::=  "seed" N  |  trigger* object* action [ "for" TIME ]
 *     trigger  ::=  "at" TIME | "every" TIME | ("after" | "every") N ("wr" | "packets" | "bytes") | ("after" | "every") SIZE
 *                |  ("packet" | "wr") N [ "of" object ] | "call" VERB [ N | "every" N ]
 *                |  "when" condition ("and" condition)* | "each" | "chance" SHARE
 *     object   ::=  DEVICE | "qp" ("any" | "each" | N | 0xNUMBER) | "each" "qp" | "peer" ADDRESS | "in" | "out"
 *
 * A rule waits at its gate (at, every, after), then for its event: a packet, a work request or a call that its filters
 * let through. Without an event it acts when the gate opens. It acts once, unless `each`, `every`, `chance` or, for
 * packets and calls, `for` says otherwise.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/prng.h"
#include "faults/log.h"

enum { FAULT_WHY_BYTES = 512, FAULT_SCRIPT_BYTES_MAX = 65536, FAULT_LINE_BYTES_MAX = FAULT_TEXT_BYTES - 1 };

/* Calls that a rule may refuse, by the names of the verbs. */
/* clang-format off */
#define FAULT_CALLS_X(X) \
	X(alloc_pd) X(reg_mr) X(dereg_mr) X(alloc_mw) X(create_cq) X(create_comp_channel) X(create_qp) X(create_srq) \
	X(create_ah) X(modify_qp) X(query_qp) X(post_send) X(post_recv) X(post_srq_recv) X(req_notify_cq)
/* clang-format on */
#define FAULT_CALL_ENUM(name) FAULT_CALL_##name,
enum fault_call { FAULT_CALLS_X(FAULT_CALL_ENUM) FAULT_CALLS };

enum fault_gate { GATE_OPEN, GATE_AT, GATE_EVERY, GATE_AFTER, GATE_EACH };
enum fault_unit { UNIT_WR, UNIT_PACKETS, UNIT_BYTES };
enum fault_event { ON_GATE, ON_PACKET, ON_WR, ON_CALL };
enum fault_qps { FAULT_QP_ALL, FAULT_QP_ANY, FAULT_QP_EACH, FAULT_QP_NTH, FAULT_QP_NUMBER };
enum { FAULT_IN = 1, FAULT_OUT = 2 };

struct fault_rule {
	char where[FAULT_WHERE_BYTES];
	char text[FAULT_TEXT_BYTES];
	int device; /* -1: all */

	/* the gate */
	uint8_t gate;     /* enum fault_gate */
	uint8_t unit;     /* GATE_AFTER, GATE_EACH: enum fault_unit */
	uint64_t gate_at; /* a time, ns; or so many of the unit */

	/* the event, and what of it counts */
	uint8_t event; /* enum fault_event */
	uint8_t call;  /* enum fault_call */
	uint8_t ways;  /* FAULT_IN, FAULT_OUT */
	uint8_t qps;   /* enum fault_qps */
	uint32_t qp;   /* by it: the number in the order of creation, or the QPN */
	bool has_peer;
	uint8_t peer[16];
	int16_t opcode;                  /* the low five bits of BTH's; with OPCODE_WHOLE all of them; -1: any */
	uint32_t size_above, size_below; /* bytes from BTH on; 0 and UINT32_MAX: any */
	bool first, last, again;         /* of a message; sent before */
	uint16_t cm;                     /* the attribute of a MAD; 0: any packet */
	uint64_t nth;                    /* only this one of those; 0: each */
	bool nth_again;                  /* and each nth after it */
	bool nth_per_qp;                 /* counted for each QP by itself */
	bool each;
	bool has_chance;
	double chance;
	uint32_t burst; /* of chance: so many in a row on average; 0 and 1: each by itself */

	/* the action */
	uint8_t action; /* enum fault_action */
	uint32_t value; /* FAULT_FAIL: errno; FAULT_COMPLETE: enum wc_status */
	uint64_t delay_ns, jitter_ns;
	uint32_t late_max; /* FAULT_SWAP: 1 to so many packets overtake it */
	uint64_t rate_bps;
	uint8_t gid[16];
	uint64_t for_ns; /* 0: for good, or once */
	bool quiet;      /* counted but not logged */
};

enum { OPCODE_WHOLE = 0x100 };

struct fault_script {
	uint64_t seed;
	uint32_t limit; /* packets held back at most */
	uint32_t count;
	struct fault_rule rules[FAULT_RULES_MAX];
};

/* The devices that a program has, so that a rule for another one is refused. */
struct fault_host {
	uint32_t devices; /* 1 or more */
	uint32_t iwarp;   /* a bit for each that speaks iWARP, whose packets are the kernel's */
};

enum { FAULT_LIMIT_DEFAULT = 8192, FAULT_LIMIT_MAX = 65536 };

/* No rules. */
void fault_script_init(struct fault_script *);
/*
 * Adds the rules of a text; `name` is what messages call it. `is_command`: it is one line, which has no number. 0 with
 * *script changed, or -EINVAL and in why "name:line: what is wrong, what is allowed".
 */
int fault_script_read(struct fault_script *, const char *name, const char *text, size_t len, bool is_command,
		      const struct fault_host *, char *why, size_t why_bytes);
/* Whether some rule does to packets what a receiver in the same host's memory cannot be shown. */
bool fault_script_spoils(const struct fault_script *);
/* Whether some rule picks single packets on their way out. */
bool fault_script_picks_out(const struct fault_script *);

/* "ibv_create_qp"; static. */
const char *fault_call_name(enum fault_call);

/* ---- VERBENA_IMPAIR ---- */

/*
 * Chance for every packet that is received:
 *
 *	drop, dup, reorder, corrupt   probability per packet: 0.01 or 1%
 *	burst                         packets in a row that drop takes on average: 1 .. 1000000 (1)
 *	ce                            probability that an ECN-capable packet is marked
 *	delay, jitter                 time: 5ms, 300us, 10ns, 1s; each packet waits delay and a
 *	                              uniform share of jitter, so jitter also reorders
 *	rate                          bits of UDP payload a second: 1G, 100M, 64k
 *	limit                         packets held back at most, 1 .. 65536 (8192); more are dropped
 *	seed                          unsigned integer (1)
 *
 * With burst, losses follow Gilbert's model: in its bad state every packet is dropped, and drop is the share of packets
 * in all. A silence of 10 ms ends a burst. Without, each packet is dropped by itself.
 */
struct impair_config {
	double drop, dup, reorder, corrupt, ce; /* 0 .. 1 */
	uint64_t delay_ns, jitter_ns;
	uint64_t rate_bps; /* 0: unlimited */
	uint32_t burst;    /* 0 and 1: each by itself */
	uint32_t limit;
	uint64_t seed;
};

/*
 * A list of key=value with commas between, in any order, each key once. 0 with *cfg set, or -EINVAL with a sentence in
 * why that names the key, the value and what is allowed. An empty text spoils nothing.
 */
int impair_parse(const char *text, struct impair_config *cfg, char *why, size_t why_bytes);
/* Adds its rules to a script that has room for seven more, and its seed and limit. */
void fault_script_impair(struct fault_script *, const struct impair_config *);
