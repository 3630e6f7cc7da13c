/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connection management: how two programs find each other and learn each other's queue pairs.
 *
 * Two layers in one machine. Below, the communication manager of IBTA chapter 12: the messages on the wire, with
 * their states, repeats and stale connections. Above, ids as rdma_cm has them: bound to a port of a port space,
 * resolved, listening or connecting, with events in channels (docs/rdmacm.md).
 *
 * Like the nic it has four calls, does no I/O, reads no clock and takes no lock; one thread calls it at a time.
 * Functions return 0 or a negative errno unless they say otherwise, and change nothing when they fail.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/pkt.h"
#include "nic/nic.h"
#include "wire/cm_rej.h"
#include "wire/mad.h"

struct cm;
struct cm_channel; /* a queue of events, and the ids that they are about */
struct cm_id;      /* one end of a conversation, or a listener */
struct cm_join;    /* the membership of an id in a multicast group */

enum {
	CM_IDS_MAX = 65536,
	CM_JOINS_MAX = 4096,            /* memberships of ids in groups */
	CM_EVENTS_MAX = 16384,          /* of a channel; further requests are dropped */
	CM_BACKLOG_MAX = 1024,          /* requests of a listener that no program has seen */
	CM_HALF_OPEN_MAX = 4096,        /* such requests of all listeners */
	CM_HALF_OPEN_MAX_OF_ONE = 768,  /* such requests from one address */
	CM_UNANSWERED_MAX_OF_ONE = 256, /* connections whose REP one address leaves without an answer */
	CM_UNANSWERED_MANY = 1024,      /* such connections of all addresses, from which on */
	CM_UNANSWERED_FEW_OF_ONE = 4,   /* an address that is not known may have so few, and in this second */
	CM_STRANGERS_MAX = 500,       /* so many requests are taken from all such addresses, each when it comes again */
	CM_REFUSALS_MAX = 1000,       /* of requests, a second */
	CM_REFUSALS_MAX_OF_ONE = 100, /* likewise, to one address */
	CM_DATA_MAX = 256,
	CM_SLOT_SHIFT = 25 /* the slot of a communication id, in the same place as that of a QPN */
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
	CM_DEVICE_REMOVAL = 11,
	CM_MULTICAST_JOIN = 12,
	CM_MULTICAST_ERROR = 13,
	CM_ADDR_CHANGE = 14,
	CM_TIMEWAIT_EXIT = 15,
	CM_USER = 18, /* these two a program tells itself */
	CM_INTERNAL = 19
};

enum cm_family { CM_NO_FAMILY = 0, CM_IPV4 = 4, CM_IPV6 = 6 };

/* An IP address and a port of a port space. All zero: none. */
struct cm_addr {
	uint8_t ip[16];   /* in GID form; a wildcard is :: or ::ffff:0.0.0.0 */
	uint32_t ifindex; /* of a link-local address; 0: any */
	uint16_t port;    /* host order; 0: none yet */
	uint8_t family;   /* enum cm_family: an IPv4 address given as an IPv6 one is CM_IPV6 */
};

/* The parameters that one end sends to the other, as in struct rdma_conn_param. */
struct cm_param {
	uint32_t qpn;
	uint32_t qkey; /* datagrams */
	uint8_t responder_resources;
	uint8_t initiator_depth;
	bool flow_control;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	bool srq;
	uint32_t ece_vendor,
		ece_options; /* enhanced connection establishment: vendor id (24 bits) and options; 0: none */
	uint16_t data_len;   /* on input the length of `data`; in events the most that the message holds, padded with
				zeros */
	uint8_t data[CM_DATA_MAX];
};

struct cm_event {
	enum cm_event_type type;
	int32_t status; /* a negative errno, the reason of a REJ, or the status of a SIDR_REP */
	uint64_t uid; /* of the id; of a CM_CONNECT_REQUEST that of the listener, of a group's that of the membership */
	uint32_t number; /* of the id; of a CM_CONNECT_REQUEST that of the new one, of a group's that of the membership
			  */
	uint64_t arg;    /* of an event that a program tells itself */
	bool datagram; /* the id is for datagrams: `ah` and `qkey` may be set, the parameters of connections are not */
	struct ah_attr ah;     /* to the peer */
	bool answered;         /* the peer was heard: `param` is set */
	struct cm_param param; /* the peer's; the depths are those for this end's queue pair */
};

/* REJs by reason; `other` has numbers that IBTA does not define. */
struct cm_rejects {
#define CM_REJECTS_OF(number, name) uint64_t name;
	CM_REJ_REASONS(CM_REJECTS_OF)
#undef CM_REJECTS_OF
	uint64_t other;
};

/* Bounds by which requests are dropped (docs/rdmacm.md 5). */
enum cm_limit {
	CM_LIMIT_BACKLOG,
	CM_LIMIT_EVENTS,
	CM_LIMIT_HALF_OPEN,
	CM_LIMIT_HALF_OPEN_OF_ONE,
	CM_LIMIT_UNANSWERED_OF_ONE,
	CM_LIMIT_STRANGERS,
	CM_LIMIT_IDS,
	CM_LIMITS
};

/* Events since the start, and from `ids` on the present numbers. */
struct cm_counters {
	uint64_t requests_sent, requests_received, repeats;
	uint64_t requests_dropped;      /* no room, or too many from one source */
	uint64_t dropped_by[CM_LIMITS]; /* the same by the limit that was reached; memory is none */
	struct cm_rejects rejects_sent, rejects_received;
	uint64_t rejects_withheld; /* by the limit of docs/rdmacm.md 5 */
	uint64_t wills;            /* connections of killed processes that were ended */
	uint64_t ids, listeners, connecting, established, disconnecting;
	/* The connecting and the disconnecting by their states (docs/rdmacm.md 3). */
	uint64_t req_sent, req_rcvd, rep_sent, rep_rcvd, sidr_req_sent, sidr_req_rcvd;
	uint64_t dreq_sent, dreq_rcvd, timewait;
};

/* Why the last call of a program failed, where an errno says too little. */
struct cm_obstacle {
	enum {
		CM_NO_OBSTACLE,
		CM_PORT_TAKEN_HERE,  /* by another id of this process */
		CM_PORT_TAKEN_THERE, /* by the process with this slot */
		CM_NO_SUCH_ADDRESS,  /* `addr` is of no interface of this host that the device has */
		CM_NO_PORT_LEFT,     /* of those that are drawn */
		CM_NO_ROW_LEFT,      /* in the registry: REGISTRY_ROWS */
		CM_NO_ID_LEFT        /* CM_IDS_MAX */
	} kind;
	int slot;
	enum cm_space space;
	struct cm_addr addr;
};

struct cm_listener {
	enum cm_space space;
	struct cm_addr addr;
};

struct cm_config {
	struct alloc alloc;
	uint8_t secret[16]; /* communication ids, PSNs and ports are drawn with it */
	uint32_t slot;      /* the high 7 bits of every communication id: 0 .. 126 */
	uint64_t ca_guid;
	struct nic_gid gids[NIC_GIDS_MAX]; /* the nic's, with the same indices */
	uint32_t gid_count;
	uint16_t pkey; /* of connections: the nic's first; 0: NIC_PKEY_DEFAULT */
	bool bound;    /* those are not all addresses of the host, and a wildcard address stands for them alone */
	/*
	 * Of several cms of a process: how many they are at most, a power of two, and which one of them this is. No two
	 * give an id or a membership the same number. 0: it is the only one.
	 */
	uint32_t cm_count, cm_index;
	uint16_t port_first, port_last; /* a port is drawn from these when a program gives none */
	/*
	 * Memory of registry_bytes() (cm/registry.h) that all processes of the host share, and whether the process with
	 * a slot exists still, which is asked when something of its is in the way. Borrowed; NULL: there are no others.
	 */
	struct registry_page *registry;
	bool (*lives)(void *ctx, uint32_t slot);
	void *lives_ctx;
	/*
	 * Whose protocol is PROTOCOL_IWARP: connections are streams, and no MADs are exchanged. Borrowed, for good.
	 * NULL: none.
	 */
	struct nic *streams_of;
	uint32_t half_open_max; /* streams whose Request has not come: of more the oldest is reset; 0: 1024 */
	bool no_crc;            /* of streams: FPDUs have CRCs only where the peer asks for them (RFC 5044 7.1) */
	bool markers;           /* of streams: peers are asked for markers in what they send (RFC 5044 4.3) */
	bool atomics;           /* of streams: their queue pairs have RFC 7306's */
};

/* Borrows nothing of config. NULL when memory runs out. */
struct cm *cm_create(const struct cm_config *);
/* Sends nothing; channels and ids are destroyed with it. */
void cm_destroy(struct cm *);

/*
 * The memory that managers of one host share (cm_config.registry) is that from now on: the process has joined others, or
 * the same ones anew. -EADDRINUSE and its kin: another process has a port there that a program of this one has bound
 * (cm_take_obstacle()).
 */
int cm_rejoin(struct cm *, void *registry);
/* Whether an id is bound to that address; wildcards are none. */
bool cm_uses_address(const struct cm *, const uint8_t ip[16]);

/* Another GID table, from now on: the nic's. Ids keep the addresses that they have. */
void cm_set_gids(struct cm *, const struct nic_gid *, uint32_t count);
/*
 * Something happened to a network interface, which the ids that have one of its GIDs are told of: CM_DEVICE_REMOVAL, it
 * is no more; CM_ADDR_CHANGE, it has another link-layer address.
 */
void cm_tell_interface(struct cm *, uint32_t ifindex, enum cm_event_type);

/* Destroys all ids, with a DREQ or REJ to their peers: the program ends. */
void cm_hang_up(struct cm *, uint64_t now_ns);

/* ---- the four calls -------------------------------------------------------------------------- */

/*
 * Takes a datagram to QPN 1: its flow, and MAD_LEN bytes of MAD. Borrows both. No message of a peer is an
 * error.
 */
void cm_input(struct cm *, const struct flow *, const uint8_t *mad, uint64_t now_ns);
/*
 * Where on this host a message belongs that names no communication id of a receiver's: a request, or the REJ of a peer
 * that knew none. The slot of another process, or one of these. `notes`: also by what is remembered of requests, which
 * a message that was passed on already is not asked by again.
 */
enum { CM_HERE = -1, CM_NOWHERE = -2 };
int cm_route(struct cm *, const struct flow *, const uint8_t *mad, bool notes);
/* Whether the process with a slot that cm_route() gave has ended: nothing is routed to it any more then. */
bool cm_is_gone(struct cm *, int slot);

/*
 * One process of the host, the registrar, gets what is for nobody in particular, and tells the peers of processes that
 * were killed. Its slot, or -1: there is none yet. Without a registry each process is its own.
 */
int cm_registrar(const struct cm *);
/* This process is the registrar now if `from` (or -1) still was. False: another one came first. */
bool cm_take_over(struct cm *, int from);
uint32_t cm_listeners(const struct cm *); /* ids that listen */
uint32_t cm_listens(const struct cm *);   /* how often one has begun to, modulo 2^32 */
/* Somebody may have ended: those who did are found, and their peers told, in the turns that follow. */
void cm_look_for_the_dead(struct cm *);
/* Whether it still looks, or waits for a peer's answer in the name of one. */
bool cm_has_wills(const struct cm *);
/* A MAD to send from QPN 1: *flow and MAD_LEN bytes are written. False: none now. */
bool cm_output(struct cm *, struct flow *, uint8_t *mad);
/*
 * Of a cm with streams: takes a packet of one, which goes on to its QP if that has the stream. Borrows it. Streams that
 * were accepted have numbers that no cm gives.
 */
void cm_stream_input(struct cm *, const struct pkt *, uint64_t now_ns);
/* nic_stream_place() of the QP that has the stream; 0: none has. */
size_t cm_stream_place(struct cm *, uint32_t number, uint8_t **to);
/*
 * A packet for the back end, which is lent until the next call; false: none now. A STREAM_RESET with a listener's number
 * is for the listener.
 */
bool cm_stream_output(struct cm *, struct pkt *);
/* When cm_expire() must be called; UINT64_MAX: never, 0: cm_output() or cm_stream_output() has something. */
uint64_t cm_deadline(const struct cm *);
void cm_expire(struct cm *, uint64_t now_ns);

/* Copies the counters as they are. */
void cm_report(const struct cm *, struct cm_counters *);
/* How many were stored. */
size_t cm_report_listeners(const struct cm *, struct cm_listener *, size_t max);
/* Since it was last asked. */
struct cm_obstacle cm_take_obstacle(struct cm *);
/* Bits of 1 << enum cm_limit: those that requests were dropped by since it was last asked. */
unsigned cm_take_limits(struct cm *);

/* ---- channels and events --------------------------------------------------------------------- */

/* -ENOMEM. */
int cm_channel_create(struct cm *, void *owner, struct cm_channel **out);
/* Destroys its ids too. */
void cm_channel_destroy(struct cm_channel *, uint64_t now_ns);
void *cm_channel_owner(const struct cm_channel *);
size_t cm_channel_events(const struct cm_channel *);
uint64_t cm_channel_added(const struct cm_channel *); /* events, since it was created */
/* False: there is none. */
bool cm_channel_take_event(struct cm_channel *, struct cm_event *);
/* A channel whose events have changed since this call last returned it, or NULL. */
struct cm_channel *cm_next_stirred(struct cm *);

/* ---- ids ------------------------------------------------------------------------------------- */

/* -EINVAL: no such space or type of queue pair; -ENOMEM. Events bear `uid`; an id with uid 0 reports none. */
int cm_id_create(struct cm_channel *, enum cm_space, enum qp_type, uint64_t uid, struct cm_id **out);
/* An id like one of another cm of the process that is as it was created, with its number. Likewise; -EEXIST. */
int cm_id_create_twin(struct cm_channel *, const struct cm_id *, struct cm_id **out);
/*
 * Hangs up or refuses, and forgets the events that were not taken, and a listener's requests among them. Returns how
 * many events were taken.
 */
uint32_t cm_id_destroy(struct cm_id *, uint64_t now_ns);
/* Moves the id to another channel, with the events that were not taken. Returns how many were taken. */
uint32_t cm_id_migrate(struct cm_id *, struct cm_channel *to);
/* Counted from 0; a number is reused late. */
uint32_t cm_id_number(const struct cm_id *);
struct cm_id *cm_id_find(const struct cm *, uint32_t number); /* or NULL */
struct cm_channel *cm_id_channel(const struct cm_id *);

/*
 * Binds an id that is not bound yet. Port 0: one is drawn. A loopback address is one of this host where the device has
 * others. -EINVAL: it is bound; -EADDRNOTAVAIL: the address is not one of this host, or another id has the port, and
 * one of the two binds the wildcard; -EADDRINUSE: another id has the port on the same address. The device is known
 * afterwards, except with the wildcard, and with a loopback address where the device has others.
 */
int cm_id_bind(struct cm_id *, const struct cm_addr *);
/* Whether the device has the address, which is no wildcard. */
bool cm_has_address(const struct cm *, const struct cm_addr *);
/*
 * Resolves the destination's address: `src` is the local address for it, from the host's routing. A loopback address
 * that is no GID, or not the only one, stands for the device's own, and packets go from that to itself. -ENODEV: `src`
 * is not among the GIDs; and as cm_id_bind(), which is called first if the id is not bound. An event reports the
 * result.
 */
int cm_id_resolve_addr(struct cm_id *, const struct cm_addr *src, const struct cm_addr *dst);
/* The caller has found no route to the destination: what the call returns then. -EINVAL as cm_id_resolve_addr(), else
 * status. */
int cm_id_unresolved(const struct cm_id *, int status);
int cm_id_resolve_route(struct cm_id *);
/* -EOPNOTSUPP: Ethernet has no subnet administrator to ask for a service; -EINVAL: the id has no device, or is more
 * than bound. */
int cm_id_resolve_service(const struct cm_id *);
/* An id that is not bound gets a drawn port on all addresses. -EADDRINUSE: another id shares the port. */
int cm_id_listen(struct cm_id *, int backlog);
/*
 * Of an id that is bound or listens, where connections are streams: the number by which the back end has its port, and
 * listens for it. Else 0.
 */
uint32_t cm_id_listener(const struct cm_id *);
/* An id that is bound and nothing more is as before cm_id_bind() now: its port cannot be had everywhere. */
void cm_id_unbind(struct cm_id *);
/* The back end could not: the id, which listens, is bound and nothing more. */
void cm_id_unlisten(struct cm_id *);
bool cm_id_listens(const struct cm_id *);
/* -EINVAL also if there is more private data than fits. */
int cm_id_connect(struct cm_id *, const struct cm_param *, uint64_t now_ns);
/* Answers the request that created the id, and gives it this uid. -EINVAL: the request has ended. */
int cm_id_accept(struct cm_id *, uint64_t uid, const struct cm_param *, uint64_t now_ns);
/* The program has handled REP and its queue pair is ready: sends RTU. */
int cm_id_confirm(struct cm_id *, uint64_t now_ns);
/* A packet of the peer arrived on the queue pair, so its RTU may be lost. -EISCONN: it was not; -EINVAL: the id waits
 * for none. */
int cm_id_established(struct cm_id *);
/* reason: CM_REJ_CONSUMER or CM_REJ_VENDOR_OPTION. */
int cm_id_reject(struct cm_id *, uint16_t reason, const uint8_t *data, size_t len);
int cm_id_disconnect(struct cm_id *, uint64_t now_ns);

/*
 * A membership of the id in a multicast group; the host is to hear the group unless it is only sent to. -EINVAL: no
 * group of the family of the id's address, or the id has no device, is not bound or resolved, or is not for datagrams;
 * -ENOMEM, also where there are too many. It goes with its id.
 */
int cm_id_join(struct cm_id *, const uint8_t gid[16], bool send_only, uint64_t uid, struct cm_join **out);
/* The host hears the group now, or status says why it cannot: the event is told. The membership lasts until it is left.
 */
void cm_join_done(struct cm_join *, int status);
uint32_t cm_join_number(const struct cm_join *);
struct cm_join *cm_join_find(const struct cm *, uint32_t number); /* or NULL */
struct cm_id *cm_join_id(const struct cm_join *);
uint32_t cm_join_interface(const struct cm_join *); /* on which the host is to hear the group */
/* Forgets its events that were not taken. Returns how many were taken. */
uint32_t cm_join_leave(struct cm_join *);
/* Whether a membership needs the host to hear the group on the interface; 0: on any. */
bool cm_hears(const struct cm *, const uint8_t gid[16], uint32_t ifindex);

/* An event that the program tells itself, in any state of the id. -ENOMEM, also where too many wait. */
int cm_id_tell(struct cm_id *, enum cm_event_type, int32_t status, uint64_t arg);

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
	uint8_t sgid[16],
		dgid[16]; /* likewise: the same addresses, unless they are loopback's, which the device does not have */
	int gid_index;    /* -1: no device yet */
	bool resolved;    /* there is a route */
	bool asked;       /* this end sent the request */
	uint8_t sends;    /* when it has had CM_UNREACHABLE with -ETIMEDOUT: of the message that was not answered */
	uint64_t silent_ns; /* likewise: for how long */
	uint8_t mtu;        /* code, 1 .. 5 */
	uint8_t tos;
	uint8_t ack_timeout;
	uint16_t pkey;
	uint32_t flow_label;
};

/* What rdma_cm says of an id at the moment. */
void cm_id_query(const struct cm_id *, struct cm_id_info *);
