/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a nic's queue pairs go by, decided before the nic exists. There is one copy of it, in struct transport;
 * every file reads a setting there, under the name that it has here. VERBENA_ variables have the same names.
 *
 * Where 0 stands for a default, transport_config_settle() puts the default there.
 */
#ifndef TRANSPORT_CONFIG_H
#define TRANSPORT_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "cc/params.h"

enum { PATHS_MAX = 16, RX_WINDOW_MIN = 128, RX_WINDOW_MAX = 65536 };

/* What RC speaks. AUTO: veRoCE with peers that answer to it, RoCEv2 with all others. */
enum protocol { PROTOCOL_AUTO, PROTOCOL_VEROCE, PROTOCOL_ROCEV2 };

/* What makes a veRoCE queue pair slow down: delay and CE marks, CE marks alone, or nothing. */
enum veroce_cc { VEROCE_CC_SWIFT, VEROCE_CC_DCTCP, VEROCE_CC_NONE };

/* How a veRoCE queue pair finds out which packets are lost. */
enum veroce_loss { LOSS_FAST, LOSS_BASE, LOSS_IRN };

/*
 * When a veRoCE receiver writes a packet to memory that came before others which were sent before it: in its
 * turn, unless it is of the oldest message that is not entirely there, and does not end it; always in its turn;
 * or at once.
 */
enum rx_order { ORDER_MESSAGE, ORDER_STRONG, ORDER_WEAK };

/*
 * Which address the packets of a veRoCE WRITE carry: their own, or their message's, to which the receiver adds
 * PO x PMTU. The latter is for peers that do so; between nics that tell each other it takes both to want it,
 * and a peer that tells nothing is spoken to as set here.
 */
enum veroce_reth_base { RETH_BASE_PACKET, RETH_BASE_MESSAGE };

/* OFF: veRoCE packets bear the plain ICRC, and prove nothing of their sender. */
enum veroce_seal { SEAL_ON, SEAL_OFF };

/* What congestion control is told of the port and the network behind it. */
struct cc_link {
	/*
	 * NULL: veRoCE has veroce.cc with its defaults, RoCEv2 a window of its own kind, which knows loss
	 * only. Otherwise both obey this, but for QPs whose peer has an address of this host: no network lies
	 * between. Borrowed as long as the nic lives.
	 */
	const struct cc_params *params;
	uint64_t line_rate_bps; /* of the port; 0: unknown */
	uint64_t base_rtt_ns;   /* of the longest way; 0: unknown */
	uint64_t target_ns;     /* queueing delay that Swift lets be; 0: its own formula */
	uint64_t pace_slack_ns; /* a paced packet may leave so much before its time, trains of half of it */
	uint32_t wire_overhead_bytes; /* around a packet's transport bytes, for the pace */
};

struct rocev2_config {
	uint16_t port;            /* UDP, at every peer; 0: 4791 */
	uint16_t ackreq_packets;  /* an ACK is asked for at least this often, 1 .. 16; 0: 16 */
	bool ce_echo;             /* ACKs tell of marks in their BECN bit, and no CNPs are sent */
	bool ce_is_cnp;           /* with ce_echo: such an ACK counts as a CNP, as the HPCC simulator has it */
	uint64_t cnp_interval_ns; /* a QP sends CNPs no closer than that; 0: as cc.params has it, else 50 us */
};

struct veroce_config {
	uint16_t port; /* UDP, at every peer; 0: 4794 */
	enum veroce_cc cc;
	enum veroce_loss loss;
	enum rx_order order;
	enum veroce_reth_base reth_base;
	enum veroce_seal seal;
	bool trim;                /* offers packet trimming: data leaves with DSCP 8, trimmed comes with 9 */
	bool fence_indicator;     /* WQEs that overlap older, incomplete ones harmfully wait, as with a fence */
	bool base_only;           /* no extensions are offered: as a peer that knows the base protocol alone */
	bool cc_of_qps;           /* a QP has a window on each path, not all QPs to one host together */
	uint16_t flowlet_packets; /* that stay on one path, at least; 0: 8 */
	uint64_t flowlet_gap_ns;  /* instead, a QP changes path only after such a silence; 0: by packets */
	uint32_t rx_window;       /* packets a QP takes ahead; a power of two; 0: RX_WINDOW_MAX */
	uint64_t early_bytes_max; /* of packets that wait for their turn, of all QPs; 0: 64 MiB */
	uint64_t rto_ns_min;      /* the shortest retransmission timeout; 0: 500 us */
	uint64_t pto_ns_min;      /* and tail probe timeout; 0: 100 us */
};

struct transport_config {
	enum protocol protocol;
	/* UDP source ports that the back end sends from, host order. veRoCE spreads over all, RoCEv2 has the first. */
	uint16_t sport_ipv4[PATHS_MAX];
	uint16_t sport_ipv6[PATHS_MAX];
	uint32_t paths;        /* how many of them there are; 0: 1 */
	uint32_t window_bytes; /* request bytes, READ responses included, a QP may have unacknowledged */
	uint64_t ack_delay_ns; /* how long an ACK may wait for a packet to travel with, while held */
	/*
	 * RC QPs whose peer is a process of this host are not given up before it has been silent for so long,
	 * whatever their timeout and retry_cnt, unless it is said to be gone; 0: as all others.
	 */
	uint64_t patience_ns;
	struct cc_link cc;
	struct rocev2_config rocev2;
	struct veroce_config veroce;
};

/* Defaults for what is 0, and bounds for what exceeds them. */
void transport_config_settle(struct transport_config *);

#endif
