/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connection management: how two programs find each other and learn each other's queue pairs.
 *
 * Two layers in one machine. Below, the communication manager of IBTA chapter 12: REQ, REP, RTU and what else crosses
 * the wire, with its states, repeats and stale connections. Above, ids as rdma_cm has them: bound to a port of a port
 * space, resolved, listening or connecting, with events in channels (docs/rdmacm.md).
 *
 * Like the nic it is moved by four calls, does no I/O, reads no clock and takes no lock; one thread at a time.
 * Functions return 0 or a negative errno unless they say otherwise, and change nothing when they fail.
 */
#ifndef CM_CM_H
#define CM_CM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/pkt.h"
#include "nic/nic.h"
#include "wire/mad.h"

struct cm;
struct cm_channel; /* a queue of events, and the ids whose events those are */
struct cm_id;      /* one end of a conversation, or a listener */

enum {
	CM_IDS_MAX = 65536,
	CM_EVENTS_MAX = 16384,    /* of a channel; further requests are dropped */
	CM_BACKLOG_MAX = 1024,    /* requests of a listener that no program has seen */
	CM_HALF_OPEN_MAX = 4096,  /* such requests of all listeners */
	CM_DATA_MAX = 256,
	CM_SLOT_SHIFT = 25        /* the slot of a communication id, as the high bits of a QPN have it */
};

/* The numbers of enum rdma_port_space and enum rdma_cm_event_type. */
enum cm_space { CM_SPACE_IPOIB = 0x0002, CM_SPACE_TCP = 0x0106, CM_SPACE_UDP = 0x0111, CM_SPACE_IB = 0x013f };

enum cm_event_type {
	CM_ADDR_RESOLVED = 0,
	CM_ADDR_ERROR = 1,
	CM_ROUTE_RESOLVED = 2,
	CM_CONNECT_REQUEST = 4,
	CM_CONNECT_RESPONSE = 5,
	CM_CONNECT_ERROR = 6,
	CM_UNREACHABLE = 7,
	CM_REJECTED = 8,
	CM_ESTABLISHED = 9,
	CM_DISCONNECTED = 10,
	CM_TIMEWAIT_EXIT = 15
};

enum cm_family { CM_NO_FAMILY = 0, CM_IPV4 = 4, CM_IPV6 = 6 };

/* An IP address and a port of a port space. All zero: none. */
struct cm_addr {
	uint8_t ip[16]; /* in GID form; a wildcard is :: or ::ffff:0.0.0.0 */
	uint32_t ifindex; /* of a link-local address; 0: any */
	uint16_t port; /* host order; 0: none yet */
	uint8_t family; /* enum cm_family: an IPv4 address given as an IPv6 one is CM_IPV6 */
};

/* What one end says to the other: as struct rdma_conn_param has it. */
struct cm_param {
	uint32_t qpn;
	uint32_t qkey; /* datagrams */
	uint8_t responder_resources;
	uint8_t initiator_depth;
	bool flow_control;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	bool srq;
	uint16_t data_len; /* on input what counts of `data`; in events the most that there can be, padded with zeros */
	uint8_t data[CM_DATA_MAX];
};

struct cm_event {
	enum cm_event_type type;
	int32_t status;      /* a negative errno, the reason of a REJ, or the status of a SIDR_REP */
	uint64_t uid;        /* of the id; of a CM_CONNECT_REQUEST that of the listener */
	uint32_t number;     /* of the id; of a CM_CONNECT_REQUEST that of the new one */
	bool datagram;       /* the id's: `ah` and `qkey` may mean something, the parameters of connections do not */
	struct ah_attr ah;   /* to the peer */
	struct cm_param param; /* the peer's, depths as this end is to use them */
};

struct cm_config {
	struct alloc alloc;
	uint8_t secret[16]; /* communication ids, PSNs and ports are drawn with it */
	uint32_t slot;      /* the high 7 bits of every communication id: 0 .. 126 */
	uint64_t ca_guid;
	struct nic_gid gids[NIC_GIDS_MAX]; /* the nic's, so that indices mean the same */
	uint32_t gid_count;
	uint16_t port_first, port_last; /* which ports are drawn from where none is asked for */
};

/* Borrows nothing of config. NULL when memory runs out. */
struct cm *cm_create(const struct cm_config *);
/* Sends nothing; channels and ids are destroyed with it. */
void cm_destroy(struct cm *);

/* Destroys all ids, with a DREQ or REJ to their peers: the program ends. */
void cm_hang_up(struct cm *, uint64_t now_ns);

/* ---- the four calls -------------------------------------------------------------------------- */

/*
 * Takes in what came for QPN 1: the flow it came by, and MAD_LEN bytes of MAD. Borrows both. Nothing that a peer may
 * send is an error.
 */
void cm_input(struct cm *, const struct flow *, const uint8_t *mad, uint64_t now_ns);
/*
 * Whether a message that names no communication id of a receiver's would find one here: a listener, or a conversation that
 * it belongs to. Nothing is done; a host with several of these machines asks each.
 */
bool cm_concerns(const struct cm *, const struct flow *, const uint8_t *mad);
/* A MAD to send from QPN 1: *flow and MAD_LEN bytes are written. False: none now. */
bool cm_output(struct cm *, struct flow *, uint8_t *mad);
/* When cm_expire() must be called; UINT64_MAX: never, 0: cm_output() has something. */
uint64_t cm_deadline(const struct cm *);
void cm_expire(struct cm *, uint64_t now_ns);

/* ---- channels and events --------------------------------------------------------------------- */

/* -ENOMEM. */
int cm_channel_create(struct cm *, void *owner, struct cm_channel **out);
/* Destroys its ids too. */
void cm_channel_destroy(struct cm_channel *, uint64_t now_ns);
void *cm_channel_owner(const struct cm_channel *);
size_t cm_channel_events(const struct cm_channel *);
/* False: there is none. */
bool cm_channel_take_event(struct cm_channel *, struct cm_event *);
/* A channel that has other events than when it was asked for last, or NULL. */
struct cm_channel *cm_next_stirred(struct cm *);

/* ---- ids ------------------------------------------------------------------------------------- */

/* -EINVAL: no such space or type of queue pair; -ENOMEM. Events bear `uid`; an id with uid 0 reports none. */
int cm_id_create(struct cm_channel *, enum cm_space, enum qp_type, uint64_t uid, struct cm_id **out);
/*
 * Hangs up or refuses, forgets the events that nobody took, and of a listener the requests among them. How many events
 * were taken.
 */
uint32_t cm_id_destroy(struct cm_id *, uint64_t now_ns);
/* The id goes to another channel with the events that nobody took. How many were taken. */
uint32_t cm_id_migrate(struct cm_id *, struct cm_channel *to);
/* Counted from 0; a number that was in use comes again late. */
uint32_t cm_id_number(const struct cm_id *);
struct cm_id *cm_id_find(const struct cm *, uint32_t number); /* or NULL */
struct cm_channel *cm_id_channel(const struct cm_id *);

/*
 * Binds an id that is not bound yet. Port 0: one is drawn. -EINVAL: it is bound; -EADDRNOTAVAIL: the address is not one
 * of this host, or the port is another's on the wildcard, or on an address while the wildcard is wanted; -EADDRINUSE.
 */
int cm_id_bind(struct cm_id *, const struct cm_addr *);
/*
 * How the destination is reached: `src` is the local address for it, which the caller has asked the host for. -ENODEV:
 * `src` is not among the GIDs; and as cm_id_bind(), which is called first if the id is not bound. An event reports
 * the result.
 */
int cm_id_resolve_addr(struct cm_id *, const struct cm_addr *src, const struct cm_addr *dst);
/* The caller has found no way to the destination: status is a negative errno. -EINVAL as cm_id_resolve_addr(). */
int cm_id_unresolved(struct cm_id *, int status);
int cm_id_resolve_route(struct cm_id *);
/* Not bound: to a port that is drawn, on all addresses. -EADDRINUSE: somebody shares the port. */
int cm_id_listen(struct cm_id *, int backlog);
/* -EINVAL also where more private data is given than fits. */
int cm_id_connect(struct cm_id *, const struct cm_param *, uint64_t now_ns);
/* Answers the request that made the id, which from then on has this uid. -EINVAL: the request is not there any more. */
int cm_id_accept(struct cm_id *, uint64_t uid, const struct cm_param *, uint64_t now_ns);
/* The program has taken REP and its queue pair is ready: sends RTU. */
int cm_id_confirm(struct cm_id *, uint64_t now_ns);
/* A packet of the peer came on the queue pair, so its RTU may be lost. -EINVAL: the id waits for none. */
int cm_id_established(struct cm_id *);
/* reason: CM_REJ_CONSUMER or CM_REJ_VENDOR_OPTION. */
int cm_id_reject(struct cm_id *, uint16_t reason, const uint8_t *data, size_t len);
int cm_id_disconnect(struct cm_id *, uint64_t now_ns);

/* Options: -EINVAL where it is too late for one. */
void cm_id_set_tos(struct cm_id *, uint8_t tos);
int cm_id_set_ack_timeout(struct cm_id *, uint8_t code); /* 4.096 us << code, 0 .. 31 */
int cm_id_set_reuse(struct cm_id *, bool);
int cm_id_set_afonly(struct cm_id *, bool);

/* The attributes with which the queue pair reaches attr->state: INIT, RTR or RTS. -EINVAL: they are not known yet. */
int cm_id_qp_attr(const struct cm_id *, struct qp_attr *attr, uint32_t *mask);

struct cm_id_info {
	enum cm_space space;
	struct cm_addr local, remote; /* as far as they are known */
	int gid_index;  /* -1: no device yet */
	bool resolved;  /* there is a route */
	uint8_t mtu;    /* code, 1 .. 5 */
	uint8_t tos;
	uint8_t ack_timeout;
	uint32_t flow_label;
};

void cm_id_query(const struct cm_id *, struct cm_id_info *);

#endif
