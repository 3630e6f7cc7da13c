/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An InfiniBand fabric as a subnet manager sees it: channel adapters and switches, their links, and
 * in each node an agent that answers subnet management packets (IBTA 14.3) and keeps what a manager
 * sets: LIDs, port states, forwarding tables. It is a pure machine: a MAD goes through at once, hop
 * by hop, as the tables of the switches say, and there is no time.
 *
 * Links are up from the beginning, in the state Init; nothing routes before a manager has been
 * there. A port may be disabled: then its link is down at both ends, and a switch that sees it
 * tells the manager.
 */
#pragma once

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
	FABRIC_GROUPS = 1024, /* multicast LIDs of a switch */
	FABRIC_PKEYS = 32,
	FABRIC_TRAPS = 64, /* that are waiting; more are not sent */
	FABRIC_NONE = 0xff /* a port that a table does not have */
};

/* What a port counts: PortCounters, and PortRcvErrorDetails and PortXmitDiscardDetails behind them
 * (IBTA 16.1.3.5, 16.1.4). */
enum fabric_counter {
	COUNT_LINK_RECOVERIES,
	COUNT_LINKS_DOWNED,
	COUNT_RCV_ERRORS,
	COUNT_RELAY_ERRORS,
	COUNT_XMIT_DISCARDS,
	COUNT_XMIT_CONSTRAINT_ERRORS, /* of a switch: packets of a partition that the port is not in
				       */
	COUNT_RCV_CONSTRAINT_ERRORS,
	COUNT_INTEGRITY_ERRORS,
	COUNT_EXCESSIVE_OVERRUNS,
	COUNT_VL15_DROPPED,
	COUNT_XMIT_WORDS,
	COUNT_RCV_WORDS,
	COUNT_XMIT_PACKETS,
	COUNT_RCV_PACKETS,
	COUNT_PHYSICAL_ERRORS, /* VCRC */
	COUNT_MALFORMED,       /* LVer, PktLen, VL */
	COUNT_OVERRUNS,
	COUNT_DLID_MAPPING,
	COUNT_VL_MAPPING,
	COUNT_LOOPING,
	COUNT_INACTIVE, /* discarded because the port is not active */
	FABRIC_COUNTERS
};

/* How the packets that a port receives are spoiled. */
enum fabric_fault_kind {
	FAULT_NONE,
	FAULT_BIT,     /* one is flipped on the link */
	FAULT_LENGTH,  /* the sender writes another PktLen than the packet's */
	FAULT_VERSION, /* another LVer than 0 */
	FAULT_LANE,    /* a VL that the port does not operate */
	FAULT_ROOM     /* the sender sends without credits, and there is no buffer */
};

/* It is every Nth packet, so that the same commands count the same. */
struct fabric_fault {
	enum fabric_fault_kind kind;
	uint32_t every;
	uint32_t received;
};

struct fabric_port {
	bool linked;   /* there is a cable; its physical state says whether it is up */
	uint16_t peer; /* node */
	uint8_t peer_port;
	struct port_info info;
	uint16_t pkeys[FABRIC_PKEYS];
	uint8_t vl_arbitration[4][SMP_DATA_LEN]; /* low 1, low 2, high 1, high 2 */
	uint64_t counters[FABRIC_COUNTERS];
	struct fabric_fault fault;
	uint32_t physical_errors; /* up with each, down with each good packet; beyond LocalPhyErrors
				     the link is not whole */
	uint32_t overruns;        /* in a row */
};

struct fabric_node {
	char name[FABRIC_NAME_BYTES]; /* as the topology has it */
	uint8_t type;                 /* enum node_type */
	uint8_t port_count;           /* without a switch's port 0 */
	uint64_t guid;
	bool is_sm;                                /* a manager runs there: it gets requests for SMInfo, and traps */
	struct fabric_port *ports;                 /* port_count + 1: a switch's port 0 answers for the switch */
	uint8_t (*sl_to_vl)[8];                    /* by (in * (port_count + 1) + out) */
	struct switch_info info;                   /* of a switch, and so is the rest */
	uint8_t *forwarding;                       /* FABRIC_LIDS: the port, or FABRIC_NONE */
	uint16_t (*groups)[FABRIC_PORTS_MAX / 16]; /* FABRIC_GROUPS masks of ports */
};

/* What an agent is about to tell the manager (wire/notice.h). */
struct fabric_trap {
	uint16_t node;
	uint8_t port; /* a channel adapter's, or the one of a switch that refused a packet or counts
			 too many errors */
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
 * Makes one from text (docs/fabric.md). 0, or -EINVAL or -ENOMEM with a sentence in why, which
 * names the line. fabric_free() frees it.
 */
int fabric_read(struct fabric *, const char *text, size_t len, char *why, size_t why_bytes);
void fabric_free(struct fabric *);
/* The node of that name, or NULL. */
struct fabric_node *fabric_find(const struct fabric *, const char *name);
/* The first linked port of a channel adapter; 0: none. */
uint8_t fabric_first_port(const struct fabric_node *);

/*
 * Gives a port a fault, from "NODE[PORT]=KIND/N": each Nth packet that it receives, N being 2 or
 * more, has the fault KIND, which is bit, length, version, lane or room. 0, or -EINVAL with a
 * sentence in why.
 */
int fabric_fault_set(struct fabric *, const char *text, char *why, size_t why_bytes);

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
 * The next trap that has arrived at a node where a manager runs: true, and the MAD is there. It is
 * sent once, and what has no way is lost: a manager finds a changed link at its next sweep in any
 * case.
 */
bool fabric_trap_next(struct fabric *, struct fabric_mad *);

/* Whether a MAD of a program can be answered at all: a response cannot, nor what ends a trap. */
bool fabric_is_request(const uint8_t *mad);

/*
 * An agent's answer, written over the request: false, it is dropped or not the agent's. `in` is the
 * port that it came in by, 0 at the sender's own node. Private to src/fabric but for tests.
 */
bool sma_answer(struct fabric *, struct fabric_node *, uint8_t in, struct smp *);
/* Performance management (IBTA 16.1): ClassPortInfo and PortCounters. */
bool pma_answer(struct fabric_node *, uint8_t in, uint8_t *mad);

/* Private to src/fabric. A trap goes from a channel adapter's port, or from a switch: true, it is
 * at the port with that LID. */
bool fabric_carry_trap(struct fabric *, struct fabric_mad *);
/* Remembers a trap, but for one that waits already. */
void fabric_trap_raise(struct fabric *, const struct fabric_trap *);

/* Of a packet of subnet management, which is in no partition. */
enum { FABRIC_NO_PARTITION = -1 };

/* A MAD on its way. Private to src/fabric. */
struct fabric_packet {
	uint16_t slid, dlid;
	uint32_t sqp, dqp;
	int pkey;
	const uint8_t *mad;
};

enum { FABRIC_PACKET_BYTES = 8 + 12 + 8 + MAD_LEN + 4 + 2 /* LRH, BTH, DETH, MAD, ICRC, VCRC */ };

/* A port receives it: false, it is refused, and counted. Private to src/fabric. */
bool fabric_receive(struct fabric *, struct fabric_node *, uint8_t port, const struct fabric_packet *);
