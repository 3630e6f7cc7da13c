/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A simulated host: the nic that ships, behind the port of a network. The host translates the nic's
 * packets into the network's and back, calls the nic when its deadline comes, and polls its completion
 * queue. Channels (sim/channel.h) post the work.
 *
 * Payload does not exist (nic_config.no_payload): a packet is its headers and a length.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "nic/nic.h"
#include "sim/host_delay.h"
#include "net/network.h"

struct host;
struct channel;

/*
 * The same for all hosts of a run, except for what follows from a host's own line rate
 * (nic.transport.cc.line_rate_bps 0: its link's); borrowed until the last host is gone.
 */
struct host_config {
	uint64_t seed;
	struct nic_config nic; /* the host overwrites some members: see host_create() */
	/*
	 * The widest window of congestion control is two bandwidth-delay products of the host's own line and a few
	 * packets; 0: nic.transport.window_bytes.
	 */
	uint64_t window_rtt_ps;
	/*
	 * Returns congestion control's base RTT between two hosts, by their numbers; NULL: it is
	 * nic.transport.cc.base_rtt_ns for all pairs of hosts.
	 */
	uint64_t (*base_rtt_ns)(void *ctx, uint32_t src, uint32_t dst);
	void *base_rtt_ctx;
	uint32_t mtu_bytes;    /* payload of a full packet */
	uint32_t frame_bytes;  /* of a packet on the wire, around the transport's; 0: HOST_FRAME_BYTES */
	uint32_t header_bytes; /* of a data packet on the wire, around its payload; 0: what it really has */
	uint32_t ack_bytes;    /* of any other packet on the wire; 0: likewise */
	uint32_t int_bytes;    /* bytes that telemetry adds to a data packet */
	uint8_t data_class;    /* 1 .. 7, where a channel has no other */
	/* answers share the data's class, of which there is one; otherwise PACKET_CONTROL_CLASS */
	bool ack_in_data_class;
	bool ecn;         /* data is ECN-capable */
	bool telemetry;   /* data gathers INT */
	uint32_t credits; /* receive WQEs, for messages whose arrival is reported; 1 .. NIC_MAX_SRQ_WR */
	struct host_delay_config delay;
	bool datagrams;  /* messages go by lines (sim/sdr_line.h): each packet is a Write Only with Immediate */
	uint8_t timeout; /* of QPs: the local ACK timeout is 4.096 us x 2^timeout */
	/* Called at the time of the event, network_now_ps(); may post, open and close channels. */
	void (*completed)(void *ctx, struct channel *, uint64_t wr_id, uint64_t bytes, bool good);
	void (*received)(void *ctx, uint32_t imm);
	/*
	 * The flow of a packet to that host and queue pair, for packet.flow; PACKET_NO_FLOW: none. `data`: it
	 * carries payload; otherwise it is an answer. NULL: flows are not needed.
	 */
	uint32_t (*flow_of)(void *ctx, uint32_t to, uint32_t qpn, uint32_t psn, bool data);
	void *ctx;
};

/*
 * A packet's bytes on Ethernet beside those of the transport: IPv4, UDP, MAC header, FCS, preamble,
 * gap.
 */
enum { HOST_FRAME_BYTES = 20 + 8 + 14 + 4 + 8 + 12 };
/* The same on InfiniBand: LRH, VCRC, delimiters. */
enum { HOST_LRH_BYTES = 8 + 2 + 2 };

/*
 * Makes host number `index` and attaches it. The nic gets its address, seed and slot here, no_payload,
 * no trains, a table for 2^qpn_bits QPs, and ACKs that report marks if its congestion control needs them
 * (CC_NEEDS_MARKS). NULL when memory runs out.
 */
struct host *host_create(struct network *, uint32_t index, const struct host_config *);
/* Its channels must be closed. Harmless on NULL. */
void host_destroy(struct host *);

/* Its number in the network; and its nic, *lent*. */
uint32_t host_index(const struct host *);
struct nic *host_nic(const struct host *);

/* A full data packet's, telemetry included. */
uint32_t host_packet_wire_bytes(const struct host_config *);

/*
 * A message's packets on the wire, without telemetry or time stamps, and the shortest answer that
 * acknowledges them.
 */
struct host_message {
	uint64_t packets;                             /* 1 or more */
	uint32_t first_bytes, full_bytes, last_bytes; /* of one packet: the last one's */
	uint32_t last_payload_bytes;                  /* of all others: the path MTU */
	uint32_t ack_bytes;
};

/* imm: the receiver's program gets a completion. */
struct host_message host_message_wire(const struct host_config *, uint64_t bytes, bool imm);

/* DSCP and ECN of a packet's IPv4 header. */
uint8_t packet_tos(const struct packet *);

/* ---- for channels ----------------------------------------------------------------------------- */

struct host_memory {
	uint64_t va;
	uint32_t key;
};

/* The region that every message is read from and written to. */
struct host_memory host_memory(const struct host *);
/* A QP in RESET that completes to this host; NULL: no memory, or no number is free. */
struct qp *host_qp_create(struct host *, uint32_t send_wrs, struct channel *owner);
void host_qp_destroy(struct host *, struct qp *);
/* The address of the host for the address vectors of others. */
void host_address(uint32_t index, uint8_t gid[16]);
const struct host_config *host_config(const struct host *);
uint64_t host_now_ps(const struct host *);
uint64_t host_now_ns(const struct host *);
/* Something was posted: the nic is given a turn. */
void host_kick(struct host *);
/*
 * A program posts something now; returns when the nic gets it. If that is later than network_now_ps(),
 * channel_ring() is called then.
 */
uint64_t host_post_ps(struct host *, struct channel *);
/* The host's QP is connected to the peer's. */
void host_connected(struct host *, const struct qp *, uint32_t peer, uint32_t peer_qpn);
/* The channel closes: its pending events are dropped. */
void host_forget(struct host *, const struct channel *);

/* ---- for a guest ------------------------------------------------------------------------------- */

/*
 * A guest uses the nic beside the channels, by unreliable connections. It has a deadline of its own, so the host takes
 * the earlier one of the nic's and the guest's. A host with delays has no guest.
 */
struct host_guest {
	void (*fill)(void *guest, uint64_t now_ns); /* a packet can leave: posts the next ones */
	void (*completed)(void *guest, const struct cqe *);
	uint64_t (*deadline)(const void *guest); /* UINT64_MAX: none */
	void (*expire)(void *guest, uint64_t now_ns);
	void (*destroy)(void *guest);
};

/* NULL before host_set_guest(). */
void *host_guest(const struct host *);
/* The host takes the guest, and borrows its calls. Once. False: no memory. */
bool host_set_guest(struct host *, const struct host_guest *, void *guest);
/* A UC QP in RESET, whose completions are the guest's; receives take WQEs that the host keeps posted. NULL: no room. */
struct qp *host_guest_qp(struct host *, uint32_t send_wrs, void *owner);
/* Connects QPs of two hosts, from `at` to its peer `to`, for `class`. */
int host_guest_connect(struct host *at, struct qp *, const struct host *to, const struct qp *peer, uint8_t class);
/* A region of its own, from address 0 on. NULL: no memory. */
struct mr *host_region(struct host *, uint64_t bytes);
void host_region_end(struct host *, struct mr *);
/* How long a Write Only with Immediate of so much payload, one packet, takes to leave. */
uint64_t host_packet_ps(const struct host *, uint32_t payload_bytes);
