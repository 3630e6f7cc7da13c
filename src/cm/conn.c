/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life cycle of a conn: the legal moves, the one function that moves, the keys by which a conn is found,
 * repeats, and the effect of the last timeout in each state.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/siphash.h"
#include "cm/state.h"
#include "wire/cm_rej.h"

#define TO(state) (1u << (state))

enum { END = TO(CONN_TIMEWAIT) | TO(CONN_CLOSED) };

/* The legal moves (the diagram in state.h). */
static const uint32_t moves[CONN_STATES] = {
	[CONN_NEW] = TO(CONN_REQ_SENT) | TO(CONN_REQ_RCVD) | TO(CONN_SIDR_REQ_SENT) | TO(CONN_SIDR_REQ_RCVD) |
		     TO(CONN_DREQ_SENT) | TO(CONN_CLOSED),
	[CONN_REQ_SENT] = TO(CONN_REP_RCVD) | END,
	[CONN_REP_RCVD] = TO(CONN_ESTABLISHED) | END,
	[CONN_REQ_RCVD] = TO(CONN_REP_SENT) | END,
	[CONN_REP_SENT] = TO(CONN_ESTABLISHED) | TO(CONN_DREQ_RCVD) | END,
	[CONN_ESTABLISHED] = TO(CONN_DREQ_SENT) | TO(CONN_DREQ_RCVD) | END,
	[CONN_DREQ_SENT] = TO(CONN_DREQ_RCVD) | END,
	[CONN_DREQ_RCVD] = END,
	[CONN_TIMEWAIT] = TO(CONN_CLOSED),
	[CONN_SIDR_REQ_SENT] = TO(CONN_CLOSED),
	[CONN_SIDR_REQ_RCVD] = TO(CONN_CLOSED),
};

uint64_t timeout_ns(uint8_t code)
{
	return UINT64_C(4096) << (code & 31);
}

/* ---- numbers that cannot be guessed ---------------------------------------------------------- */

enum { LOCAL_BITS = CM_SLOT_SHIFT };

/* Keys for siphash, so that no number reveals another. */
static uint64_t draw(struct cm *cm)
{
	return siphash_u64(cm->secret, cm->serial++);
}

uint32_t random_psn(struct cm *cm)
{
	return (uint32_t)(draw(cm) & 0xffffff);
}

uint64_t random_tid(struct cm *cm, uint32_t comm_id)
{
	return draw(cm) << 32 | comm_id;
}

/* The slot in the high bits, below them an unpredictable number that is not in use; never 0. */
static uint32_t new_comm_id(struct cm *cm)
{
	uint32_t id;

	do
		id = cm->slot << LOCAL_BITS |
		     permute(cm->secret, LOCAL_BITS, cm->next_comm_id++ & ((1u << LOCAL_BITS) - 1));
	while (!id || conn_find(cm, id));
	return id;
}

/* ---- names -------------------------------------------------------------------------------------- */

/* Peers choose GUIDs and numbers, so they are hashed with the secret: no chain can be made long on purpose. */
static uint64_t remote_key(const struct cm *cm, uint64_t guid, uint32_t number)
{
	return siphash_u64(cm->table_secret, siphash_u64(cm->table_secret, guid) ^ number);
}

void conn_know_remote(struct conn *c, uint64_t guid, uint32_t comm_id, uint32_t qpn)
{
	struct cm *cm = c->cm;

	c->remote_guid = guid;
	c->remote_comm_id = comm_id;
	c->remote_qpn = qpn;
	map_add(&cm->by_remote, &c->by_remote, remote_key(cm, guid, comm_id));
	if (qpn)
		map_add(&cm->by_remote_qpn, &c->by_remote_qpn, remote_key(cm, guid, qpn));
}

bool conn_is_peer(const struct conn *c, const struct flow *in)
{
	return !memcmp(c->flow.dst, in->src, sizeof(in->src)) && !memcmp(c->flow.src, in->dst, sizeof(in->dst));
}

struct conn *conn_find(const struct cm *cm, uint32_t local_comm_id)
{
	struct map_node *n = map_first(&cm->by_local, local_comm_id);

	return n ? container_of(n, struct conn, by_local) : NULL;
}

struct conn *conn_find_remote(const struct cm *cm, const struct flow *in, uint64_t guid, uint32_t comm_id)
{
	for (struct map_node *n = map_first(&cm->by_remote, remote_key(cm, guid, comm_id)); n; n = map_next(n)) {
		struct conn *c = container_of(n, struct conn, by_remote);

		if (c->remote_guid == guid && c->remote_comm_id == comm_id && conn_is_peer(c, in))
			return c;
	}
	return NULL;
}

struct conn *conn_find_remote_qpn(const struct cm *cm, const struct flow *in, uint64_t guid, uint32_t qpn)
{
	for (struct map_node *n = map_first(&cm->by_remote_qpn, remote_key(cm, guid, qpn)); n; n = map_next(n)) {
		struct conn *c = container_of(n, struct conn, by_remote_qpn);

		if (c->remote_guid == guid && c->remote_qpn == qpn && conn_is_peer(c, in))
			return c;
	}
	return NULL;
}

/* ---- life cycle ---------------------------------------------------------------------------------- */

struct conn *conn_create(struct cm *cm, struct cm_id *id, const struct flow *flow)
{
	return conn_create_as(cm, id, flow, new_comm_id(cm));
}

struct conn *conn_create_as(struct cm *cm, struct cm_id *id, const struct flow *flow, uint32_t local_comm_id)
{
	struct conn *c = pool_get(&cm->pool, sizeof(*c));

	if (!c)
		return NULL;
	memset(c, 0, sizeof(*c));
	c->cm = cm;
	c->id = id;
	c->flow = *flow;
	c->local_comm_id = local_comm_id;
	c->will = REGISTRY_NO_ROW;
	cm->in_state[CONN_NEW]++;
	timer_init(&c->timer);
	map_add(&cm->by_local, &c->by_local, c->local_comm_id);
	list_append(&cm->conns, &c->link);
	if (id) {
		c->qp_type = id->qp_type;
		id->conn = c;
	}
	return c;
}

void conn_move(struct conn *c, enum conn_state state)
{
	assert(moves[c->state] & TO(state));
	timer_cancel(&c->cm->timers, &c->timer);
	c->cm->in_state[c->state]--;
	c->cm->in_state[state]++;
	c->state = state;
	c->sends = 0;
	c->patient = false;
	limit_unanswered(c, false);
	will_update(c);
}

static void let_go_of_id(struct conn *c)
{
	if (c->id)
		c->id->conn = NULL;
	c->id = NULL;
}

void conn_close(struct conn *c)
{
	struct cm *cm = c->cm;

	conn_move(c, CONN_CLOSED);
	cm->wills_open -= c->willed;
	let_go_of_id(c);
	map_remove(&cm->by_local, &c->by_local);
	map_remove(&cm->by_remote, &c->by_remote);
	map_remove(&cm->by_remote_qpn, &c->by_remote_qpn);
	list_remove(&c->link);
	pool_put(&cm->pool, c, sizeof(*c));
}

/* IBTA 12.9.8.4: until no packet of the connection can be under way. */
void conn_to_timewait(struct conn *c, uint64_t now_ns)
{
	conn_move(c, CONN_TIMEWAIT);
	timer_set(&c->cm->timers, &c->timer, now_ns + timeout_ns(c->ack_timeout));
}

static void refuse_by_timeout(struct conn *c)
{
	uint8_t guid[8];

	put_be64(guid, c->cm->ca_guid);
	message_rej(c->cm, &c->flow, c->tid,
		    &(struct refusal){.local_comm_id = c->local_comm_id,
				      .answered = CM_ANSWERED_REQ,
				      .reason = CM_REJ_TIMEOUT,
				      .info = guid,
				      .info_len = sizeof(guid)});
	conn_close(c);
}

void conn_abandon(struct conn *c, uint64_t now_ns)
{
	let_go_of_id(c);
	switch (c->state) {
	case CONN_REQ_SENT: refuse_by_timeout(c); break;
	case CONN_REQ_RCVD:
	case CONN_REP_RCVD:
	case CONN_REP_SENT: hangup_refuse(c, CM_REJ_CONSUMER, NULL, 0); break;
	case CONN_SIDR_REQ_RCVD: sidr_refuse(c, NULL, 0); break;
	case CONN_ESTABLISHED: hangup_start(c, now_ns); break;
	case CONN_DREQ_RCVD: hangup_answer(c, now_ns); break;
	case CONN_DREQ_SENT:
	case CONN_TIMEWAIT: break;
	default: conn_close(c);
	}
}

/* ---- time ----------------------------------------------------------------------------------------- */

/* 0.25, 0.5, 1, 2, 4, 4, ... s: a lost datagram costs little, and a slow peer is not flooded. */
static uint64_t repeat_ns(uint8_t sends)
{
	uint64_t ns = CM_REPEAT_NS_MIN << (sends > 5 ? 4 : sends - 1);

	return ns < CM_REPEAT_NS_MAX ? ns : CM_REPEAT_NS_MAX;
}

void conn_send_repeatedly(struct conn *c, uint64_t now_ns)
{
	message_send(c->cm, &c->flow, c->mad);
	c->sends++;
	timer_set(&c->cm->timers, &c->timer, now_ns + repeat_ns(c->sends));
}

void conn_ask(struct conn *c, uint64_t now_ns)
{
	c->asked_ns = now_ns;
	conn_send_repeatedly(c, now_ns);
}

/* It does not count as a repeat: should it be lost, the next one is not later for it. */
bool conn_ask_again(struct conn *c, uint64_t now_ns)
{
	uint64_t since_ns = now_ns - c->asked_ns;

	if (since_ns >= CM_EARLY_NS)
		return false;
	if (!c->sends) /* another refusal of the same one */
		return true;
	c->sends--;
	timer_set(&c->cm->timers, &c->timer, now_ns + (since_ns < CM_EARLY_NS_MIN ? CM_EARLY_NS_MIN : since_ns));
	return true;
}

void conn_be_patient(struct conn *c, uint8_t service_timeout, uint64_t now_ns)
{
	uint8_t code = service_timeout < CM_SERVICE_TIMEOUT_MAX ? service_timeout : CM_SERVICE_TIMEOUT_MAX;

	limit_unanswered(c, false); /* it lives */
	known_add(c->cm, c->flow.dst, now_ns);
	if (c->patient)
		return;
	c->patient = true;
	timer_set(&c->cm->timers, &c->timer, now_ns + timeout_ns(code) + timeout_ns(c->ack_timeout));
}

static uint8_t sends_max(const struct conn *c, uint64_t now_ns)
{
	if (c->willed)
		return CM_WILL_SENDS_MAX;
	if (c->state == CONN_REP_SENT && limit_is_doubtful(c, now_ns))
		return CM_STRANGER_SENDS_MAX;
	return c->state == CONN_DREQ_SENT ? CM_DREQ_SENDS_MAX : CM_SENDS_MAX;
}

/* All repeats stayed without an answer. */
static void give_up(struct conn *c, uint64_t now_ns)
{
	struct cm_id *id = c->id;

	if (id) {
		id->sends = c->sends;
		id->silent_ns = now_ns - c->asked_ns;
	}
	switch (c->state) {
	case CONN_DREQ_SENT:
		conn_to_timewait(c, now_ns);
		event_tell(id, CM_DISCONNECTED, -ETIMEDOUT, NULL);
		break;
	case CONN_REP_SENT:
		hangup_refuse(c, CM_REJ_TIMEOUT, NULL, 0); /* IBTA 12.9.7.2; Linux sends none */
		event_tell(id, CM_UNREACHABLE, -ETIMEDOUT, NULL);
		break;
	default: conn_close(c); event_tell(id, CM_UNREACHABLE, -ETIMEDOUT, NULL);
	}
}

void conn_expire(struct conn *c, uint64_t now_ns)
{
	struct cm_id *id = c->id;

	if (c->state == CONN_TIMEWAIT) {
		conn_close(c);
		event_tell(id, CM_TIMEWAIT_EXIT, 0, NULL);
	} else if (c->sends < sends_max(c, now_ns)) {
		c->cm->counters.repeats++;
		limit_unanswered(c, c->state == CONN_REP_SENT);
		conn_send_repeatedly(c, now_ns);
	} else {
		give_up(c, now_ns);
	}
}
