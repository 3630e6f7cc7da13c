/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * State and calls that the files of cm share.
 *
 * An id is the program's end of a conversation, a conn is the wire's. An id gets its conn when it requests a connection
 * or when a request creates it; the conn may end first (refused, timed out) and may outlive the id (hanging up,
 * waiting until no packet of the old connection can be under way).
 *
 * The life cycle of a conn (IBTA 12.9.7, 12.9.8). Left the active side, right the passive:
 *
 *      REQ_SENT                          REQ_RCVD
 *         | REP                             | accept
 *      REP_RCVD                          REP_SENT
 *         | confirm: RTU                    | RTU, or a packet on the queue pair
 *         +---------> ESTABLISHED <---------+
 *        disconnect |             | DREQ
 *            DREQ_SENT -------> DREQ_RCVD
 *   DREP, or silence |   DREQ     | disconnect: DREP
 *                    +-> TIMEWAIT <
 *
 *      SIDR_REQ_SENT                     SIDR_REQ_RCVD
 *
 * From every state but TIMEWAIT a refusal, the last timeout or the end of the id leads to CLOSED or TIMEWAIT. A conn
 * that is CLOSED is freed: conn_close() is the last call with it.
 *
 *   state           in the tables by                         timer      `mad` is repeated
 *   REQ_SENT        local id                                 repeat     REQ
 *   REP_RCVD        local id, peer's id, peer's QPN          -          -
 *   REQ_RCVD        local id, peer's id, peer's QPN          -          -
 *   REP_SENT        as REQ_RCVD                              repeat     REP
 *   ESTABLISHED     as REQ_RCVD                              -          -
 *   DREQ_SENT       as REQ_RCVD                              repeat     DREQ
 *   DREQ_RCVD       as REQ_RCVD                              -          -
 *   TIMEWAIT        as REQ_RCVD, as far as it was known      its end    -
 *   SIDR_REQ_SENT   local id                                 repeat     SIDR_REQ
 *   SIDR_REQ_RCVD   local id, peer's id                      -          -
 *
 * Private to src/cm.
 */
#pragma once

#include "base/list.h"
#include "base/pool.h"
#include "base/prng.h"
#include "base/timer.h"
#include "cm/cm.h"
#include "cm/map.h"
#include "cm/mpa.h"
#include "cm/registry.h"
#include "wire/cm_msg.h"

enum conn_state {
	CONN_NEW, /* just created */
	CONN_REQ_SENT,
	CONN_REP_RCVD,
	CONN_REQ_RCVD,
	CONN_REP_SENT,
	CONN_ESTABLISHED,
	CONN_DREQ_SENT,
	CONN_DREQ_RCVD,
	CONN_TIMEWAIT,
	CONN_SIDR_REQ_SENT,
	CONN_SIDR_REQ_RCVD,
	CONN_CLOSED,
	CONN_STATES
};

enum {
	CM_SOURCES = 8192, /* counters by source address */
	CM_KNOWN = 2048,   /* addresses that have counters of their own: known.c */
	CM_KNOWN_WAYS = 4,
	CM_PLACES = CM_SOURCES + CM_KNOWN,
	CM_SEEN = 1 << 17,           /* requests of a flood that are remembered */
	CM_PUT_OFF_FLOOD = 1000,     /* requests put off in a second, by which a flood goes on */
	CM_STRANGER_SENDS_MAX = 4,   /* of a REP to an address that is not known, in a flood: 3.75 s */
	CM_SENDS_MAX = 16,           /* of one message (IBTA 12.9.8.5: max CM retries 15) */
	CM_DREQ_SENDS_MAX = 6,       /* of a DREQ: 12 s (docs/rdmacm.md 2.4) */
	CM_WILL_SENDS_MAX = 3,       /* of a dead process's, to which nobody gets the answer */
	CM_OUT_MAX = 4096,           /* answers that wait to be sent; more are lost, as on the wire */
	CM_SERVICE_TIMEOUT = 24,     /* of our MRA: 68.7 s */
	CM_SERVICE_TIMEOUT_MAX = 24, /* the most that a peer's MRA gets */
	CM_ACK_TIMEOUT = 17,         /* 0.54 s, unless the program says otherwise */
	CM_REMOTE_CM_TIMEOUT = 20,   /* 4.3 s: REQ grants the peer as much for its answer */
	CM_LOCAL_CM_TIMEOUT = 18,    /* 1.07 s: how soon the peer may repeat REP */
	CM_HOP_LIMIT = 64,
	CM_REQ_PRIVATE = 56, /* of a program's bytes, behind the IP header */
	CM_SIDR_REQ_PRIVATE = 180
};

#define CM_REPEAT_NS_MIN UINT64_C(250000000)
#define CM_EARLY_NS      UINT64_C(200000000) /* for so long a request may have been too early for its listener */
#define CM_EARLY_NS_MIN  UINT64_C(25000000)  /* and comes again after so long, then twice as long, ... */
#define CM_REPEAT_NS_MAX UINT64_C(4000000000)
#define CM_FLOOD_NS      UINT64_C(10000000000) /* a flood is over when there was none for so long */
#define CM_QKEY          0x01234567u           /* of the port spaces for datagrams (the field's convention) */

struct conn {
	struct cm *cm;
	struct cm_id *id; /* NULL: no program gets events any more */
	struct list link; /* in cm->conns */
	enum conn_state state;
	bool active;       /* this end sent REQ */
	bool unanswered;   /* REP_SENT: the REP was repeated, and the peer is not known to live (limit.c), */
	uint16_t place;    /* which counts here */
	bool patient;      /* the peer's MRA in this state has counted */
	bool willed;       /* a dead process's: will.c */
	uint8_t sends;     /* of `mad` */
	uint64_t asked_ns; /* when `mad` was first sent, if it is a REQ, REP or SIDR_REQ */
	struct timer timer;
	enum qp_type qp_type; /* this end's */
	struct flow flow;     /* to the peer */
	uint64_t tid;         /* of the REQ or SIDR_REQ; DREQ's own later */

	uint32_t local_comm_id, remote_comm_id; /* of datagrams the request id, on either side */
	uint64_t remote_guid;
	uint32_t local_qpn, remote_qpn;
	struct map_node by_local, by_remote, by_remote_qpn;

	/* Attributes of this end's queue pair. */
	uint32_t rq_psn, sq_psn;
	uint8_t responder_resources, initiator_depth;
	uint8_t retry_count, rnr_retry_count;
	uint8_t mtu;         /* code */
	uint8_t ack_timeout; /* code, the queue pair's */
	uint8_t traffic_class;
	uint32_t flow_label;
	uint64_t service_id;
	uint32_t will;        /* in the registry, while the peer is connected; REGISTRY_NO_ROW: none */
	uint8_t mad[MAD_LEN]; /* the message that is repeated */
};

/* The states of an id; Linux's kernel has the same names. */
enum id_state {
	ID_IDLE,
	ID_BOUND,
	ID_ADDR_RESOLVED,
	ID_ROUTE_RESOLVED,
	ID_LISTENING,
	ID_CONNECTING, /* a request was sent or received, or it is connected */
	ID_DISCONNECTED
};

struct event;

struct cm_id {
	struct cm *cm;
	struct cm_channel *channel;
	struct list link; /* in channel->ids */
	struct map_node by_number;
	struct map_node by_port; /* bound: where ports are looked up */
	uint32_t row;            /* bound: in the registry, or REGISTRY_NO_ROW */
	uint32_t row_there;      /* likewise, of the registry that cm_rejoin() goes to */
	bool drawn;              /* bound: to a port that was drawn, without a row */
	uint64_t uid;
	uint32_t number;
	uint32_t events_taken;
	enum id_state state;
	enum cm_space space;
	enum qp_type qp_type;
	struct cm_addr local, remote;
	int gid_index;
	bool looped;     /* its addresses are loopback's, which the device does not have: */
	uint8_t own[16]; /* packets go from this one of the device's to itself */
	struct conn *conn;
	struct mpa *mpa;   /* instead, where connections are streams */
	uint32_t listener; /* of such a listener its number, else 0 */
	int backlog;       /* a listener: requests that may still wait */
	uint8_t tos;
	uint8_t ack_timeout; /* code */
	bool ack_timeout_set, reuse, afonly;
	bool asked; /* these three: struct cm_id_info */
	uint8_t sends;
	uint64_t silent_ns;
	struct event *request; /* created it and was not taken yet; NULL: otherwise */
	struct list joins;
};

struct cm_join {
	struct cm_id *id;
	struct list link; /* in id->joins */
	struct map_node by_number;
	uint32_t number;
	uint32_t events_taken;
	uint64_t uid;
	uint8_t gid[16];
	bool send_only;
};

struct cm_channel {
	struct cm *cm;
	struct list link;    /* in cm->channels */
	struct list stirred; /* in cm->stirred */
	struct list ids;
	struct list events;
	size_t event_count;
	uint64_t events_added;
	void *owner;
};

/* An event that was not taken yet. */
struct event {
	struct list link;
	struct cm_id *id;     /* whose events_taken counts it */
	struct cm_id *made;   /* a CM_CONNECT_REQUEST: the new id */
	struct cm_join *join; /* of a group: whose events_taken counts it too */
	uint16_t place;       /* of a request: where it counts as half open */
	struct cm_event event;
};

struct out {
	struct list link;
	struct flow flow;
	uint8_t mad[MAD_LEN];
};

struct cm {
	struct alloc alloc;
	struct pool pool;
	struct prng prng; /* ports; numbers that a peer must not guess come from the secret */
	struct timers timers;
	uint8_t secret[16];       /* of numbers that are drawn */
	uint8_t table_secret[16]; /* of hash keys */
	uint64_t serial;          /* of PSNs and transaction ids */
	uint32_t next_comm_id;    /* goes through the permutation */
	uint32_t slot;
	uint64_t ca_guid;
	uint16_t pkey;
	struct nic_gid gids[NIC_GIDS_MAX];
	uint32_t gid_count;
	bool bound;
	uint32_t number_step;
	uint16_t port_first, port_last;

	struct registry registry;
	struct list conns;
	struct map by_local;  /* comm id -> conn */
	struct map by_remote; /* the peer's GUID and comm id, or address and request id -> conn */
	struct map by_remote_qpn;
	struct list channels;
	struct list stirred;
	struct map by_number; /* -> id */
	struct map by_port;   /* port space and port -> id */
	uint32_t id_count, next_number;
	struct map by_join; /* number -> join */
	uint32_t join_count, next_join;
	uint32_t half_open_count;
	uint16_t half_open_of[CM_PLACES];
	uint32_t unanswered_of[CM_PLACES], unanswered;
	struct {
		uint8_t ip[16];
		uint64_t heard_ns; /* 0: nobody's */
	} known[CM_KNOWN];
	uint32_t known_count;
	uint64_t flooded_until_ns;
	uint16_t *seen;              /* CM_SEEN, from the first flood on */
	uint32_t put_off, strangers; /* since strangers_since_ns, a second long */
	uint64_t strangers_since_ns;
	unsigned limits; /* reached since cm_take_limits() */
	struct cm_obstacle obstacle;
	uint32_t refusals; /* since refusals_since_ns, a second long */
	uint8_t refusals_of[CM_PLACES];
	uint64_t refusals_since_ns;
	uint32_t in_state[CONN_STATES]; /* conns */
	uint32_t listener_count, listens;

	struct registry_sweep sweep;
	bool sweeping;
	uint32_t wills_open; /* conns that are a dead process's */
	struct cm_counters counters;

	struct list out;
	uint32_t out_count;

	struct mpa_streams streams;
};

/* ---- message.c: sending ------------------------------------------------------------------ */

/* Starts a MAD in *mad: header and zeros. */
void message_start(uint8_t *mad, enum cm_attribute, uint64_t tid);
void message_set_modifier(uint8_t *mad, uint32_t modifier); /* of its attribute */
/* Copies it; drops it if too many wait or memory runs out, as the network may. */
void message_send(struct cm *, const struct flow *, const uint8_t *mad);
/* The flow of an answer to a message of this flow. */
struct flow message_flow_back(const struct flow *);

/* A REJ. `info` and `data` may be NULL with a length of 0; they are cut to the message's length. */
struct refusal {
	uint32_t local_comm_id, remote_comm_id;
	uint8_t answered; /* enum cm_answered */
	uint16_t reason;
	const uint8_t *info;
	size_t info_len;
	const uint8_t *data;
	size_t data_len;
};

/* Each queues one message of that name (IBTA 12.6) for cm_output(). Those of a conn go to its peer. */
void message_rej(struct cm *, const struct flow *to, uint64_t tid, const struct refusal *);
void message_mra(const struct conn *, uint8_t answered);
void message_rtu(const struct conn *);
void message_drep(struct cm *, const struct flow *to, uint64_t tid, uint32_t local_comm_id, uint32_t remote_comm_id);

/* ---- conn.c: life cycle ------------------------------------------------------------------------ */

/* With a communication id of its own, in CONN_NEW; NULL: no memory. */
struct conn *conn_create(struct cm *, struct cm_id *, const struct flow *);
/* Likewise, with a communication id that was given. */
struct conn *conn_create_as(struct cm *, struct cm_id *, const struct flow *, uint32_t local_comm_id);
/* Alone changes the state. The move must be legal; it sets up the state's invariants. */
void conn_move(struct conn *, enum conn_state);
/* Moves it to CLOSED and frees it; its id, if there is one, has no conn then. */
void conn_close(struct conn *);
/* Its id ends: the conn goes on alone, or is closed. */
void conn_abandon(struct conn *, uint64_t now_ns);
/* Sends `mad`, which is complete, and repeats it while the state lasts. */
void conn_send_repeatedly(struct conn *, uint64_t now_ns);
/* Likewise of a REQ, REP or SIDR_REQ. */
void conn_ask(struct conn *, uint64_t now_ns);
/* Nobody listens for its REQ or SIDR_REQ. True: not yet, perhaps, and it is repeated soon (docs/rdmacm.md 2.5). */
bool conn_ask_again(struct conn *, uint64_t now_ns);
/* The peer's MRA requests 4.096 us << service_timeout; it counts once in each state. */
void conn_be_patient(struct conn *, uint8_t service_timeout, uint64_t now_ns);
void conn_to_timewait(struct conn *, uint64_t now_ns);
void conn_expire(struct conn *, uint64_t now_ns);

/* Sets the keys of the peer by which the conn is found. */
void conn_know_remote(struct conn *, uint64_t guid, uint32_t comm_id, uint32_t qpn);
struct conn *conn_find(const struct cm *, uint32_t local_comm_id);
/* One with that peer: the same GUID and communication id, or QPN, from the same address. */
struct conn *conn_find_remote(const struct cm *, const struct flow *in, uint64_t guid, uint32_t comm_id);
struct conn *conn_find_remote_qpn(const struct cm *, const struct flow *in, uint64_t guid, uint32_t qpn);
/* Whether a message of this flow is from the conn's peer. */
bool conn_is_peer(const struct conn *, const struct flow *in);
uint64_t timeout_ns(uint8_t code); /* 4.096 us << code */
uint32_t random_psn(struct cm *);
uint64_t random_tid(struct cm *, uint32_t comm_id);

/* ---- active.c, passive.c, hangup.c, sidr.c ------------------------------------------------------ */

/*
 * The side that asks (IBTA 12.9.5): sends REQ; then, told to by the program, RTU; and takes REP. 0 or a negative errno. A
 * message was judged to be one of that type and length.
 */
int active_connect(struct cm_id *, const struct cm_param *, uint64_t now_ns);
void active_confirm(struct conn *);
void active_rep(struct cm *, const struct flow *in, const struct mad *, const uint8_t *msg, uint64_t now_ns);

/* The side that is asked: takes REQ, answers with REP, is established by RTU or by the first message of the queue pair. */
void passive_req(struct cm *, const struct flow *in, const struct mad *, const uint8_t *msg, uint64_t now_ns);
int passive_accept(struct conn *, const struct cm_param *, uint64_t now_ns);
void passive_established(struct conn *);
void passive_rtu(struct cm *, const struct flow *in, const struct mad *, const uint8_t *msg, uint64_t now_ns);

void hangup_start(struct conn *, uint64_t now_ns);  /* DREQ */
void hangup_answer(struct conn *, uint64_t now_ns); /* DREP */
/* Sends the peer a REJ, in any state, and closes the conn. */
void hangup_refuse(struct conn *, uint16_t reason, const uint8_t *data, size_t len);
void hangup_dreq(struct cm *, const struct flow *in, const struct mad *, const uint8_t *msg, uint64_t now_ns);
void hangup_drep(struct cm *, const struct flow *in, const struct mad *, const uint8_t *msg, uint64_t now_ns);
void hangup_rej(struct cm *, const struct flow *in, const struct mad *, const uint8_t *msg, uint64_t now_ns);
void hangup_mra(struct cm *, const struct flow *in, const struct mad *, const uint8_t *msg, uint64_t now_ns);

/* Service ids of UD (IBTA 12.11): sends SIDR_REQ; answers with SIDR_REP, which accepts or refuses; takes either. */
int sidr_connect(struct cm_id *, const struct cm_param *, uint64_t now_ns);
int sidr_accept(struct conn *, const struct cm_param *);
void sidr_refuse(struct conn *, const uint8_t *data, size_t len);
void sidr_req(struct cm *, const struct flow *in, const struct mad *, const uint8_t *msg, uint64_t now_ns);
void sidr_rep(struct cm *, const struct flow *in, const struct mad *, const uint8_t *msg, uint64_t now_ns);

/* See cm_route(). */
struct route_key {
	bool known;          /* it belongs to a conversation here */
	uint64_t service_id; /* whoever listens there may have it; 0: it is for one that knows it alone */
	uint8_t to[16];      /* at this address */
	uint64_t note;       /* what the registry remembers it by */
};

/* Whose a REQ, a REJ or a SIDR_REQ is. */
struct route_key passive_route(const struct cm *, const struct flow *in, const uint8_t *msg);
struct route_key hangup_route(const struct cm *, const struct flow *in, const uint8_t *msg);
struct route_key sidr_route(const struct cm *, const struct flow *in, const uint8_t *msg);
/* What a request by this peer and number is remembered by; equal in all processes. */
uint64_t request_note(const struct flow *in, uint64_t guid, uint32_t comm_id);

/* ---- will.c --------------------------------------------------------------------------------------- */

/* The state has changed. */
void will_update(struct conn *);
bool will_is_due(const struct cm *); /* will_expire() has something to do */
void will_expire(struct cm *, uint64_t now_ns);

/* ---- known.c -------------------------------------------------------------------------------------- */

/* By a secret. */
uint64_t address_hash(const struct cm *, const uint8_t *ip);
/* It has answered by a communication id of ours. */
void known_add(struct cm *, const uint8_t *ip, uint64_t now_ns);
/* Its place in cm->known, or -1. */
int known_find(const struct cm *, const uint8_t *ip);

/* ---- limit.c, report.c ---------------------------------------------------------------------------- */

/* Another request that no program has seen, from this address, counts in *place. False: there are too many. */
bool limit_half_open(struct cm *, const uint8_t *source, uint16_t *place);
void limit_half_open_done(struct cm *, uint16_t place);
/*
 * A REP stays without an answer, or does no longer. The second says whether an address leaves so many without one that
 * it gets no more: forged requests cost memory and repetitions, and a peer that lives answers.
 */
void limit_unanswered(struct conn *, bool);
bool limit_is_mute(struct cm *, const uint8_t *source);
/*
 * Whether a request, named by a hash, is dropped because many are forged now and nobody knows its address. A peer that
 * lives sends it again, and then it is taken.
 */
bool limit_puts_off(struct cm *, const uint8_t *source, uint64_t request, uint64_t now_ns);
/* Whether the conn's peer is not known, and many are forged now. */
bool limit_is_doubtful(const struct conn *, uint64_t now_ns);
/* Another refusal of a request; false: there were too many in this second, and this one is not sent. */
bool limit_refusal(struct cm *, const uint8_t *source, uint64_t now_ns);
void count_reject(struct cm_rejects *, uint16_t reason);
/* A request is dropped by it. */
void limit_reached(struct cm *, enum cm_limit);

/* ---- event.c ------------------------------------------------------------------------------------ */

/*
 * An event for the id of a conversation that goes on, if it has a uid. Without memory it is lost; the next call fails
 * by the id's state.
 */
void event_tell(struct cm_id *, enum cm_event_type, int status, const struct cm_param *);
void event_tell_datagram(struct cm_id *, const struct ah_attr *, const struct cm_param *);
/* Reports a request for `made` to its listener. -ENOMEM, or -EAGAIN: it has too many already. */
int event_tell_request(struct cm_id *listener, struct cm_id *made, const struct cm_param *);
/* Forgets the events that were not taken, the request that created the id among them; refuses requests for it. */
void event_forget(struct cm_id *, uint64_t now_ns);
void event_move(struct cm_id *, struct cm_channel *to);
/* Tells of a membership; the type, status, address vector and parameters are the event's. */
void event_tell_join(struct cm_join *, const struct cm_event *);
void event_forget_join(const struct cm_join *);

/* ---- join.c --------------------------------------------------------------------------------------- */

/* Ends every membership of the id, with no event. */
void join_leave_all(struct cm_id *);

/* ---- id.c, port.c ------------------------------------------------------------------------------- */

/*
 * An id for a request that came to a GID: bound to the listener's port, with the conversation's addresses. NULL: no
 * memory, too many.
 */
struct cm_id *id_for_request(struct cm_id *listener, const struct cm_addr *local, const struct cm_addr *remote,
			     const uint8_t gid[16]);
/* Drops an id that no program has seen. Sends no REJ. */
void id_drop(struct cm_id *);
/* A GID index, or -1. */
int gid_index_of(const struct cm *, const uint8_t *ip, uint32_t ifindex);
/* The GID that one of the id's addresses stands for. */
const uint8_t *id_gid(const struct cm_id *, const struct cm_addr *);
/* Sets the addresses of packets to the id's peer. */
void id_address(const struct cm_id *, struct flow *);
uint8_t mtu_code(uint32_t bytes);
/* The largest MTU that the path to `remote` carries from our side, as a code. */
uint8_t path_mtu_code(const struct cm *, int gid_index, const uint8_t *remote);
bool addr_is_wildcard(const struct cm_addr *);
uint32_t flow_label_of(uint16_t sport, uint16_t dport);

/* asked: a program binds the port, by number or by 0; else it is for a connection from here, and may be any. */
int port_bind(struct cm_id *, const struct cm_addr *, bool asked);
void port_leave(struct cm_id *);
/* Before it listens: fails where somebody shares the port. */
int port_listen(struct cm_id *);
/* Takes the id's port in another registry too, with id->row_there. Fails as registry_bind(). */
int port_take_there(struct cm_id *, struct registry *there);
/* The id's flags have changed. */
void port_amend(struct cm_id *);
/* The listener for requests to this address and how well it fits, or NULL. */
struct cm_id *port_listener(const struct cm *, enum cm_space, const struct cm_addr *to, int *fit);
/* Likewise for a service requested there. */
struct cm_id *port_listener_for(const struct cm *, const uint8_t *ip, uint64_t service_id);

/* ---- ip.c: the IP header in private data --------------------------------------------------------- */

/* 16 bytes, as in a GID: whether they are an IPv4-mapped address; and one of this host's loopback. */
bool ip_is_ipv4(const uint8_t *ip);
bool ip_is_loopback(const uint8_t *ip);
/* Writes addresses in the annex's form, before `len` bytes of a program's. */
void ip_encode(uint8_t *private_data, const struct cm_id *);
/*
 * False: the header is not of version 0, or has other addresses than the packet. Loopback's are none of a device: they
 * stand for this host where the packet goes from one of its addresses to the same.
 */
bool ip_decode(const uint8_t *private_data, const struct flow *in, uint64_t service_id, struct cm_addr *local,
	       struct cm_addr *remote);
/* The address that a request was for, as far as it says so. */
void ip_asked(uint8_t ip[16], const uint8_t *private_data, const struct flow *in);
uint64_t service_id_of(enum cm_space, uint16_t port);
/* False: no space that anybody can listen in. */
bool service_space(uint64_t service_id, enum cm_space *);
