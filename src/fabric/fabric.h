/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An InfiniBand fabric as a subnet manager sees it: channel adapters and switches, their links, and in each node an agent that answers
 * subnet management packets (IBTA 14.3) and keeps what a manager sets: LIDs, port states, forwarding tables. It is a pure machine:
 * a MAD goes through at once, hop by hop, as the tables of the switches say, and there is no time.
 *
 * Links are up from the beginning, in the state Init; nothing routes before a manager has been there. A port may be disabled: then
 * its link is down at both ends, and a switch that sees it tells the manager.
 */
#ifndef FABRIC_FABRIC_H
#define FABRIC_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/smi.h"
#include "wire/smp.h"

enum {
	FABRIC_NODES_MAX = 1024,
	FABRIC_PORTS_MAX = 64, /* of a node */
	FABRIC_NAME_BYTES = 64,
	FABRIC_LIDS = 0xc000,
	FABRIC_GROUPS = 1024,  /* multicast LIDs of a switch */
	FABRIC_PKEYS = 32,
	FABRIC_TRAPS = 64,     /* that are waiting; more are not sent */
	FABRIC_NONE = 0xff     /* a port that a table does not have */
};

struct fabric_port {
	bool linked;   /* there is a cable; its physical state says whether it is up */
	uint16_t peer; /* node */
	uint8_t peer_port;
	struct port_info info;
	uint16_t pkeys[FABRIC_PKEYS];
	uint8_t vl_arbitration[4][SMP_DATA_LEN]; /* low 1, low 2, high 1, high 2 */
	uint64_t tx_packets, rx_packets, tx_words, rx_words;
	uint32_t rx_errors; /* packets that no table had a port for */
	uint32_t links_downed;
	uint32_t tx_constraint_errors, rx_constraint_errors; /* of a switch: packets of a partition that the port is not in */
};

struct fabric_node {
	char name[FABRIC_NAME_BYTES];  /* as the topology has it */
	uint8_t type;                  /* enum node_type */
	uint8_t port_count;            /* without a switch's port 0 */
	uint64_t guid;
	bool is_sm;                    /* a manager runs there: it gets requests for SMInfo, and traps */
	struct fabric_port *ports;     /* port_count + 1: a switch's port 0 answers for the switch */
	uint8_t (*sl_to_vl)[8];        /* by (in * (port_count + 1) + out) */
	struct switch_info info;       /* of a switch, and so is the rest */
	uint8_t *forwarding;           /* FABRIC_LIDS: the port, or FABRIC_NONE */
	uint16_t (*groups)[FABRIC_PORTS_MAX / 16]; /* FABRIC_GROUPS masks of ports */
};

/* What an agent is about to tell the manager (wire/notice.h). */
struct fabric_trap {
	uint16_t node;
	uint8_t port; /* a channel adapter's, or the one of a switch that refused a packet */
	uint16_t number;
	uint16_t slid, dlid, pkey;
	uint32_t sqp, dqp;
};

struct fabric {
	struct fabric_node *nodes;
	uint16_t count;
	struct fabric_trap traps[FABRIC_TRAPS];
	uint16_t trap_count;
	uint32_t trap_tid; /* of the last one that was sent */
};

/*
 * Makes one from text (docs/fabric.md). 0, or -EINVAL or -ENOMEM with a sentence in why, which names the line. fabric_free()
 * frees it.
 */
int fabric_read(struct fabric *, const char *text, size_t len, char *why, size_t why_bytes);
void fabric_free(struct fabric *);
/* The node of that name, or NULL. */
struct fabric_node *fabric_find(const struct fabric *, const char *name);
/* The first linked port of a channel adapter; 0: none. */
uint8_t fabric_first_port(const struct fabric_node *);

struct fabric_mad {
	uint16_t node; /* where it is: on the way in the sender, on the way out the receiver */
	uint8_t port;  /* that it left or came by */
	uint16_t slid, dlid;
	uint32_t sqp, dqp;
	uint8_t bytes[MAD_LEN];
};

enum fabric_end {
	FABRIC_LOST,     /* no way, or a node dropped it */
	FABRIC_ANSWERED, /* an agent's answer is back at the sender */
	FABRIC_DELIVERED /* it is at a node, for a program there */
};

/* Carries a MAD from a program at a channel adapter to its end. */
enum fabric_end fabric_carry(struct fabric *, struct fabric_mad *);

/*
 * The next trap that has arrived at a node where a manager runs: true, and the MAD is there. It is sent once, and what has no way is
 * lost: a manager finds a changed link at its next sweep in any case.
 */
bool fabric_trap_next(struct fabric *, struct fabric_mad *);

/* Whether a MAD of a program can be answered at all: a response cannot, nor what ends a trap. */
bool fabric_is_request(const uint8_t *mad);

/*
 * An agent's answer, written over the request: false, it is dropped or not the agent's. `in` is the port that it came in by, 0 at
 * the sender's own node. Private to src/fabric but for tests.
 */
bool sma_answer(struct fabric *, struct fabric_node *, uint8_t in, struct smp *);
/* Performance management (IBTA 16.1): ClassPortInfo and PortCounters. */
bool pma_answer(struct fabric_node *, uint8_t in, uint8_t *mad);

/* Private to src/fabric. A trap goes from a channel adapter's port, or from a switch: true, it is at the port with that LID. */
bool fabric_carry_trap(struct fabric *, struct fabric_mad *);
/* Remembers a trap, but for one that waits already. */
void fabric_trap_raise(struct fabric *, const struct fabric_trap *);

#endif
