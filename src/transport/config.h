/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The settings of a nic's queue pairs, fixed before the nic exists. There is one copy of them, in struct
 * transport; every file reads a setting there, under its name here. VERBENA_ variables have the same names.
 *
 * Where 0 stands for a default, transport_config_settle() puts the default there.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cc/params.h"

enum { PATHS_MAX = 16, RX_WINDOW_MIN = 128, RX_WINDOW_MAX = 65536 };

/*
 * The protocol of RC. AUTO: veRoCE with peers that answer in it, RoCEv2 with all others. IWARP: streams and no
 * datagrams, so there is no UC or UD. ROCEV1: RoCEv2's packets in Ethernet frames, for all services; the nic's flows
 * have no UDP ports then, whatever the ports below.
 */
enum protocol { PROTOCOL_AUTO, PROTOCOL_VEROCE, PROTOCOL_ROCEV2, PROTOCOL_IWARP, PROTOCOL_ROCEV1 };

/* The congestion control of a veRoCE queue pair: by delay and CE marks, by CE marks alone, or none. */
enum veroce_cc { VEROCE_CC_SWIFT, VEROCE_CC_DCTCP, VEROCE_CC_NONE };

/* How a veRoCE queue pair detects lost packets. */
enum veroce_loss { LOSS_FAST, LOSS_BASE, LOSS_IRN };

/*
 * Who has a congestion control of its own: each path between two hosts, for all queue pairs; each path of a queue pair;
 * or a queue pair, for all its paths together.
 */
enum veroce_scope { SCOPE_HOSTS, SCOPE_PATH, SCOPE_QP };

/*
 * When a veRoCE receiver writes an early packet to memory: in its turn, unless it belongs to the oldest
 * incomplete message and does not end it; always in its turn; or at once.
 */
enum rx_order { ORDER_MESSAGE, ORDER_STRONG, ORDER_WEAK };

/* OFF: veRoCE packets have the plain ICRC and do not prove their sender. */
enum veroce_seal { SEAL_ON, SEAL_OFF };

/* UNSAFE: a peer that is proved by CAPS's nonces, which whoever is on the way can see, is followed to another address. */
enum veroce_roam { ROAM_OFF, ROAM_UNSAFE };

/* What congestion control knows of the port and the network behind it. */
struct cc_link {
	/*
	 * NULL: veRoCE uses veroce.cc with its defaults, and RoCEv2 a window that reacts to loss only
	 * (cc/aimd.h). Otherwise both use this, except for QPs whose peer has an address of this host, as no
	 * network lies between. Borrowed as long as the nic lives.
	 */
	const struct cc_params *params;
	uint64_t line_rate_bps; /* of the port; 0: unknown */
	uint64_t base_rtt_ns;   /* of the longest path; 0: unknown */
	/*
	 * NULL: base_rtt_ns holds for all peers. Otherwise the base RTT to one, a pure function that is asked once for
	 * each congestion control.
	 */
	uint64_t (*base_rtt_ns_to)(const void *ctx, const uint8_t dgid[16]);
	const void *base_rtt_ctx;
	uint64_t target_ns;           /* queueing delay that Swift allows; 0: its own formula */
	uint8_t target_rtt_part;      /* ... or 1/n of the base RTT, if that is more; 0: no part of it */
	uint64_t pace_slack_ns;       /* how early a paced packet may leave; trains take half of it */
	uint32_t wire_overhead_bytes; /* around a packet's transport bytes, for the pace; modulo 2^32, as a simulation's
					 packets may be shorter than those */
};

static inline uint64_t cc_link_base_rtt_ns(const struct cc_link *l, const uint8_t dgid[16])
{
	return l->base_rtt_ns_to ? l->base_rtt_ns_to(l->base_rtt_ctx, dgid) : l->base_rtt_ns;
}

struct rocev2_config {
	uint16_t port;            /* UDP, at every peer; 0: 4791 */
	uint16_t ackreq_packets;  /* at most this many packets from one AckReq to the next, 1 .. 16; 0: 16 */
	bool ce_echo;             /* ACKs report marks in their BECN bit, and no CNPs are sent */
	bool ce_is_cnp;           /* with ce_echo: such an ACK counts as a CNP, as in the HPCC simulator */
	uint64_t cnp_interval_ns; /* least time between CNPs; 0: that of cc.params, else 50 us */
	/*
	 * An RC WRITE of at most so many bytes leaves as WRITE Only packets, each with its own RETH. They are all of
	 * one length, so the packets of many messages travel as one train. 0: as First, Middle and Last, of which the
	 * First is longer and so parts trains. Likewise READs of up to so many bytes and 32 packets
	 * are requested in pairs of packets (rocev2/requester.c).
	 */
	uint32_t only_bytes;
};

struct veroce_config {
	uint16_t port; /* UDP, at every peer; 0: 4794 */
	enum veroce_cc cc;
	enum veroce_loss loss;
	enum rx_order order;
	enum veroce_seal seal;
	enum veroce_roam roam;
	bool trim;            /* offers packet trimming: data leaves with DSCP 8, trimmed packets arrive with 9 */
	bool fence_indicator; /* WQEs that overlap older, incomplete ones harmfully wait, as with a fence */
	bool base_only;       /* offers no extensions, as a base peer does not */
	bool large;           /* offers processes of this host packets of CAPS_LARGE_BYTES, whatever the path MTU */
	enum veroce_scope scope;
	uint16_t flowlet_packets; /* the least number that stay on one path; 0: 8 */
	uint64_t flowlet_gap_ns;  /* instead, a QP changes path only after so long a silence; 0: by packets */
	uint32_t rx_window;       /* how far ahead a QP accepts packets; a power of two; 0: RX_WINDOW_MAX */
	uint64_t early_bytes_max; /* payload of early packets, of all QPs together; 0: 64 MiB, or four times
				     window_bytes */
	uint64_t rto_ns_min;      /* the shortest retransmission timeout; 0: 500 us */
	uint64_t pto_ns_min;      /* and tail probe timeout; 0: 100 us */
};

struct transport_config {
	enum protocol protocol;
	/*
	 * UDP source ports that the back end sends from, host order. veRoCE spreads over all,
	 * RoCEv2 uses the first.
	 */
	uint16_t sport_ipv4[PATHS_MAX];
	uint16_t sport_ipv6[PATHS_MAX];
	uint32_t paths;        /* how many of them there are; 0: 1 */
	uint16_t train_max;    /* packets that the back end sends as one train, 1 .. PKT_TRAIN_MAX; 0: that */
	uint32_t window_bytes; /* request bytes, READ responses included, a QP may have unacknowledged */
	/*
	 * veRoCE: a pair of hosts has never more in flight than window_bytes. Otherwise congestion control adds what
	 * the network holds, in proportion to the round trip.
	 */
	bool window_fixed;
	uint64_t ack_delay_ns; /* how long an ACK may wait for a packet to travel with, while held */
	/*
	 * RC QPs whose peer is a process of this host do not fail before it has run for so long without an answer,
	 * independent of their timeout and retry_cnt, unless it is known to be gone; 0: like all others.
	 */
	uint64_t patience_ns;
	struct cc_link cc;
	struct rocev2_config rocev2;
	struct veroce_config veroce;
	bool iwarp_rfc7306; /* iWARP has atomics, and WRITEs with immediate data, which a peer without them ends the
			       stream for */
};

/* Replaces 0 by defaults, and values beyond a bound by the bound. */
void transport_config_settle(struct transport_config *);
