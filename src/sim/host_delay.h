/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Delays in a host, around the nic: posts and completions wait, acknowledgements are late, payload is
 * read no faster than the bus allows, CNPs keep a distance, and a queue pair's state may have to be
 * fetched. A host without delays has no such object.
 *
 * Packets pass through it in both directions: the host puts in the nic's packets and takes out those
 * that may leave; it puts in packets that arrived and takes out those that the nic may have.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "net/packet.h"

struct channel;
struct host_delay;

/* All zero: no delays. */
struct host_delay_config {
	uint64_t post_ps;       /* from a post until the nic gets it */
	uint64_t completion_ps; /* from the nic's completion until the program sees it */
	uint64_t ack_ps;        /* by which ACKs, NAKs and SACKs leave late */
	uint64_t read_bps;      /* of payload, by the nic; 0: as fast as it is sent */
	uint64_t cnp_gap_ps;    /* between two CNPs of the port */
	uint32_t qp_cache;      /* QPs whose state is at hand; 0: all */
	uint64_t qp_miss_ps;    /* the time of a fetch; one fetch at a time */
};

/* Whether it delays anything at all. */
bool host_delay_is_any(const struct host_delay_config *);

/* Borrows the store. NULL: no memory. */
struct host_delay *host_delay_create(const struct host_delay_config *, struct packet_store *);
/* Packets that it still holds go back to the store. Harmless on NULL. */
void host_delay_destroy(struct host_delay *);

/*
 * When the host must call host_delay_due() and host_delay_arrived(), and take packets. Later than
 * host_delay_woken()'s time; UINT64_MAX: never, in the present state.
 */
uint64_t host_delay_next_ps(const struct host_delay *);
/* The host's timer has fired; the host takes packets as soon as its port is idle. */
void host_delay_woken(struct host_delay *, uint64_t now_ps);

/* ---- programs ------------------------------------------------------------------------------------ */

enum host_event_kind { HOST_POSTED, HOST_COMPLETED, HOST_RECEIVED };

struct host_event {
	uint64_t due_ps; /* set by the object */
	enum host_event_kind kind;
	bool good;               /* COMPLETED */
	uint32_t imm;            /* RECEIVED */
	struct channel *channel; /* POSTED, COMPLETED */
	uint64_t wr_id, bytes;   /* COMPLETED */
};

/*
 * Keeps the event until its time, which it returns. now_ps: such events do not wait, or there is no memory to keep
 * it; the caller handles it now.
 */
uint64_t host_delay_event(struct host_delay *, const struct host_event *, uint64_t now_ps);
/* The next event whose time has come. */
bool host_delay_due(struct host_delay *, uint64_t now_ps, struct host_event *);
/* The channel closes: its events never happen. */
void host_delay_forget(struct host_delay *, const struct channel *);

/* ---- queue pairs --------------------------------------------------------------------------------- */

/* QP `qpn` of this host talks to the peer's `peer_qpn`; without memory its packets are never late. */
void host_delay_connect(struct host_delay *, uint32_t qpn, uint32_t peer, uint32_t peer_qpn);
void host_delay_disconnect(struct host_delay *, uint32_t qpn);

/* ---- packets out --------------------------------------------------------------------------------- */

enum host_packet_kind { HOST_PACKET_DATA, HOST_PACKET_ACK, HOST_PACKET_CNP, HOST_PACKET_OTHER };

/*
 * Takes a packet that the nic has made; not while host_delay_is_full(), nor data while
 * host_delay_data_waits().
 */
void host_delay_send(struct host_delay *, struct packet *, enum host_packet_kind, uint32_t payload_bytes,
		     uint64_t now_ps);
/* The next packet of an allowed class that may leave now; NULL: none. */
struct packet *host_delay_take(struct host_delay *, uint32_t allowed_classes, uint64_t now_ps);
/* The host must not take packets from the nic: of any kind; with data. */
bool host_delay_is_full(const struct host_delay *);
bool host_delay_data_waits(const struct host_delay *, uint64_t now_ps);
/* The nic had no data for the host. */
void host_delay_idle(struct host_delay *);

/* ---- packets in ---------------------------------------------------------------------------------- */

/* Keeps a packet until its time; false: the nic may have it now. */
bool host_delay_arrive(struct host_delay *, struct packet *, uint64_t now_ps);
/* The next one whose time has come; NULL: none. */
struct packet *host_delay_arrived(struct host_delay *, uint64_t now_ps);
