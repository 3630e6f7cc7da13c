/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections over streams: what programs ask for, what comes, and the end. The frames are judged in mpa_start.c.
 */
#include "cm/mpa.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/stream_event.h"
#include "cm/mpa_start.h"
#include "cm/state.h"

#define TO(state) (1u << MPA_##state)

/* The legal moves (the diagram in mpa.h); from each state a conn may be dropped. */
static const uint32_t moves[MPA_STATES] = {
	[MPA_NEW] = TO(CONNECTING) | TO(WAIT_REQUEST),
	[MPA_CONNECTING] = TO(WAIT_REPLY),
	[MPA_WAIT_REPLY] = TO(OPEN) | TO(CLOSING),
	[MPA_WAIT_REQUEST] = TO(ASKED),
	[MPA_ASKED] = TO(WAIT_FIRST) | TO(OPEN) | TO(CLOSING),
	[MPA_WAIT_FIRST] = TO(OPEN) | TO(CLOSING),
	[MPA_OPEN] = TO(CLOSING),
	[MPA_CLOSING] = 0,
};

static const uint64_t patience_ns[MPA_STATES] = {
	[MPA_CONNECTING] = MPA_REPLY_NS, [MPA_WAIT_REPLY] = MPA_REPLY_NS, [MPA_WAIT_REQUEST] = MPA_REQUEST_NS,
	[MPA_WAIT_FIRST] = MPA_REPLY_NS, [MPA_CLOSING] = MPA_CLOSING_NS,
};

/* A packet to be sent by a stream that no QP has. */
struct mpa_out {
	struct list link;
	struct flow flow;
	struct stream_event event;
	struct pkt pkt;
	uint8_t bytes[MPA_FRAME_MAX];
};

/* ---- out ----------------------------------------------------------------------------------------- */

/* NULL: no memory. The timer of the state ends the conversation then. */
static struct mpa_out *put(struct cm *cm, const struct flow *flow)
{
	struct mpa_out *o = pool_get(&cm->pool, sizeof(*o));

	if (!o)
		return NULL;
	o->flow = *flow;
	o->pkt = (struct pkt){.data = o->bytes, .flow = &o->flow};
	list_append(&cm->streams.out, &o->link);
	return o;
}

static void put_event(struct cm *cm, const struct flow *flow, enum stream_event_kind kind)
{
	struct mpa_out *o = put(cm, flow);

	if (!o)
		return;
	o->event = (struct stream_event){.kind = kind};
	o->pkt.event = &o->event;
}

static void put_bytes(struct cm *cm, const struct flow *flow, const uint8_t *bytes, size_t len)
{
	struct mpa_out *o = put(cm, flow);

	if (!o)
		return;
	memcpy(o->bytes, bytes, len);
	o->pkt.len = (uint32_t)len;
}

static void take_back_lent(struct cm *cm)
{
	pool_put(&cm->pool, cm->streams.lent, sizeof(*cm->streams.lent));
	cm->streams.lent = NULL;
}

bool cm_stream_output(struct cm *cm, struct pkt *pkt)
{
	struct mpa_streams *s = &cm->streams;

	if (!s->nic)
		return false;
	take_back_lent(cm);
	if (list_empty(&s->out))
		return false;
	s->lent = container_of(s->out.next, struct mpa_out, link);
	list_remove(&s->lent->link);
	*pkt = s->lent->pkt;
	return true;
}

static void send_frame(struct mpa *m, const struct mpa_frame *frame)
{
	uint8_t bytes[MPA_FRAME_MAX];
	size_t len = mpa_encode(bytes, frame);

	m->room -= m->room > len ? (uint32_t)len : m->room;
	put_bytes(m->cm, &m->flow, bytes, len);
}

/* ---- life cycle ---------------------------------------------------------------------------------- */

static struct mpa *mpa_create(struct cm *cm, struct cm_id *id, const struct flow *flow)
{
	struct mpa *m = pool_get(&cm->pool, sizeof(*m));

	if (!m)
		return NULL;
	memset(m, 0, sizeof(*m));
	m->cm = cm;
	m->id = id;
	m->flow = *flow;
	timer_init(&m->timer);
	list_init(&m->waits);
	map_add(&cm->streams.by_stream, &m->by_stream, flow->flow_label);
	list_append(&cm->streams.conns, &m->link);
	if (id)
		id->mpa = m;
	return m;
}

/* For a Request, if it does. */
static void stop_waiting(struct mpa *m)
{
	m->cm->streams.waiting_count -= m->state == MPA_WAIT_REQUEST;
	list_remove(&m->waits);
}

static void move(struct mpa *m, enum mpa_state to, uint64_t now_ns)
{
	assert(moves[m->state] >> to & 1);
	stop_waiting(m);
	if (to == MPA_WAIT_REQUEST) {
		list_append(&m->cm->streams.waiting, &m->waits);
		m->cm->streams.waiting_count++;
	}
	m->state = to;
	timer_cancel(&m->cm->streams.timers, &m->timer);
	if (patience_ns[to])
		timer_set(&m->cm->streams.timers, &m->timer, now_ns + patience_ns[to]);
}

static void drop(struct mpa *m)
{
	struct cm *cm = m->cm;

	stop_waiting(m);
	timer_cancel(&cm->streams.timers, &m->timer);
	if (m->id)
		m->id->mpa = NULL;
	map_remove(&cm->streams.by_stream, &m->by_stream);
	list_remove(&m->link);
	pool_put(&cm->pool, m, sizeof(*m));
}

/* Away with stream and conn. */
static void reset(struct mpa *m)
{
	put_event(m->cm, &m->flow, STREAM_RESET);
	drop(m);
}

/* As reset(), and the id is told how its connection came to nothing. */
static void fail(struct mpa *m, enum cm_event_type type, int status)
{
	struct cm_id *id = m->id;

	reset(m);
	event_tell(id, type, status, NULL);
}

/* The QP that has this stream, or NULL. */
static struct qp *qp_of(const struct mpa *m)
{
	struct qp *qp = m->qpn ? nic_qp_find(m->cm->streams.nic, m->qpn) : NULL;

	return qp && nic_qp_stream(qp) == m->flow.flow_label ? qp : NULL;
}

/* No QP will say it. */
static void end_output(struct mpa *m)
{
	if (!m->fin_sent)
		put_event(m->cm, &m->flow, STREAM_FIN);
	m->fin_sent = true;
}

/* The connection is over, or about to be. */
static void close_down(struct mpa *m, int status, uint64_t now_ns)
{
	if (!qp_of(m))
		end_output(m);
	if (m->state == MPA_CLOSING)
		return;
	move(m, MPA_CLOSING, now_ns);
	event_tell(m->id, CM_DISCONNECTED, status, NULL);
}

void mpa_init(struct cm *cm, const struct cm_config *c)
{
	cm->streams.nic = c->streams_of;
	cm->streams.no_crc = c->no_crc;
	cm->streams.markers = c->markers;
	cm->streams.atomics = c->atomics;
	cm->streams.next = 1;
	map_init(&cm->streams.by_stream, &cm->alloc);
	cm->streams.waiting_max = c->half_open_max ? c->half_open_max : MPA_WAITING_MAX;
	list_init(&cm->streams.conns);
	list_init(&cm->streams.waiting);
	list_init(&cm->streams.out);
}

void mpa_fini(struct cm *cm)
{
	struct pkt pkt;

	while (!list_empty(&cm->streams.conns))
		drop(container_of(cm->streams.conns.next, struct mpa, link));
	while (cm_stream_output(cm, &pkt))
		;
	map_fini(&cm->streams.by_stream);
}

/* Below TCP_ACCEPTED, which the back end's own numbers have. */
static uint32_t new_stream(struct cm *cm)
{
	while (map_first(&cm->streams.by_stream, cm->streams.next))
		cm->streams.next = cm->streams.next % INT32_MAX + 1;
	return cm->streams.next++ & INT32_MAX;
}

/* ---- what programs ask for ----------------------------------------------------------------------- */

void mpa_bind(struct cm_id *id)
{
	id->listener = new_stream(id->cm);
}

uint32_t cm_id_listener(const struct cm_id *id)
{
	return id->state == ID_BOUND || id->state == ID_LISTENING ? id->listener : 0;
}

void mpa_unbind(struct cm_id *id)
{
	struct flow flow = {.flow_label = id->listener};

	if (id->listener)
		put_event(id->cm, &flow, STREAM_RESET);
	id->listener = 0;
}

void cm_id_unlisten(struct cm_id *id)
{
	id->state = ID_BOUND;
	id->cm->listener_count--;
}

static uint8_t at_most(uint32_t value, uint32_t limit)
{
	return (uint8_t)(value < limit ? value : limit);
}

static bool qp_is_ready(const struct cm *cm, uint32_t qpn)
{
	struct qp *qp = nic_qp_find(cm->streams.nic, qpn);

	return qp && qp_state(qp) == QPS_INIT;
}

int mpa_connect(struct cm_id *id, const struct cm_param *param, uint64_t now_ns)
{
	struct flow flow = {.ifindex = id->remote.ifindex,
			    .sport = id->local.port,
			    .dport = id->remote.port,
			    .tos = id->tos,
			    .flow_label = new_stream(id->cm)};
	struct mpa *m;

	if (param->data_len > MPA_DATA_MAX || !qp_is_ready(id->cm, param->qpn))
		return -EINVAL;
	memcpy(flow.src, id->local.ip, sizeof(flow.src));
	memcpy(flow.dst, id->remote.ip, sizeof(flow.dst));
	m = mpa_create(id->cm, id, &flow);
	if (!m)
		return -ENOMEM;
	m->qpn = param->qpn;
	m->ird = at_most(param->responder_resources, NIC_MAX_RD_ATOM);
	m->ord = at_most(param->initiator_depth, NIC_MAX_RD_ATOM);
	/* The Request waits where the peer's frame will be. */
	m->have = (uint16_t)mpa_start_request(m->frame, m, param);
	m->began_ns = now_ns;
	move(m, MPA_CONNECTING, now_ns);
	mpa_unbind(id); /* the connection binds to it */
	put_event(m->cm, &flow, STREAM_OPEN);
	return 0;
}

static void move_open(struct mpa *m, uint64_t now_ns)
{
	bool initiator = m->state == MPA_WAIT_REPLY;

	if (m->state != MPA_WAIT_FIRST)
		m->urges = initiator ? MPA_URGES : 1;
	move(m, MPA_OPEN, now_ns);
	if (m->hangs_up)
		timer_set(&m->cm->streams.timers, &m->timer, now_ns + MPA_CLOSING_NS);
	else if (m->urges)
		timer_set(&m->cm->streams.timers, &m->timer, now_ns + (initiator ? MPA_URGE_FIRST_NS : MPA_URGE_NS));
}

/* The QP gets the stream. 0 or a negative errno. */
static int hand_over(struct mpa *m, uint64_t now_ns)
{
	struct qp *qp = nic_qp_find(m->cm->streams.nic, m->qpn);
	struct stream_start start = {.flow = m->flow,
				     .room_bytes = m->room,
				     .segment_bytes = m->segment_bytes,
				     .crc = !m->cm->streams.no_crc || m->peer.crc,
				     .send_markers = m->peer.markers,
				     .receive_markers = m->cm->streams.markers,
				     .sends_first = m->state == MPA_WAIT_REPLY,
				     .hears_first = m->state == MPA_ASKED,
				     .max_rd_atomic = m->ord,
				     .max_dest_rd_atomic = m->ird};

	return qp ? nic_stream_start(m->cm->streams.nic, qp, &start, now_ns) : -EINVAL;
}

int mpa_accept(struct cm_id *id, const struct cm_param *param, uint64_t now_ns)
{
	struct mpa *m = id->mpa;
	struct mpa_frame reply;
	int err;

	if (!m || m->state != MPA_ASKED || param->data_len > MPA_DATA_MAX || !qp_is_ready(id->cm, param->qpn))
		return -EINVAL;
	m->qpn = param->qpn;
	m->ird = at_most(param->responder_resources, NIC_MAX_RD_ATOM);
	m->ord = at_most(param->initiator_depth, NIC_MAX_RD_ATOM);
	if (m->peer.enhanced)
		m->ord = at_most(m->ord, m->peer.ird);
	mpa_start_reply(&reply, m);
	reply.data = param->data;
	reply.data_len = param->data_len;
	m->room -= m->room > MPA_FRAME_MAX ? MPA_FRAME_MAX : m->room; /* the Reply goes first */
	err = hand_over(m, now_ns);
	if (err)
		return err;
	send_frame(m, &reply);
	if (m->peer.peer_to_peer) {
		move(m, MPA_WAIT_FIRST, now_ns);
		return 0;
	}
	move_open(m, now_ns);
	return 1;
}

int mpa_reject(struct cm_id *id, const uint8_t *data, size_t len)
{
	struct mpa *m = id->mpa;
	struct mpa_frame reply;

	if (!m || m->state != MPA_ASKED || len > MPA_DATA_MAX)
		return -EINVAL;
	mpa_start_reply(&reply, m);
	reply.rejected = true;
	reply.data = data;
	reply.data_len = (uint16_t)len;
	send_frame(m, &reply);
	end_output(m);
	move(m, MPA_CLOSING, 0);
	timer_cancel(&id->cm->streams.timers, &m->timer);
	m->untimed = true;
	id->cm->streams.untimed = true;
	m->id = NULL;
	id->mpa = NULL;
	return 0;
}

void mpa_disconnect(struct cm_id *id, uint64_t now_ns)
{
	struct mpa *m = id->mpa;
	struct qp *qp;

	if (!m || (m->state != MPA_OPEN && m->state != MPA_WAIT_FIRST))
		return;
	qp = qp_of(m);
	if (qp)
		nic_stream_finish(m->cm->streams.nic, qp, now_ns);
	/* The event comes with the peer's end, or when patience ends. */
	m->hangs_up = true;
	timer_set(&m->cm->streams.timers, &m->timer, now_ns + MPA_CLOSING_NS);
}

void mpa_abandon(struct cm_id *id, uint64_t now_ns)
{
	struct mpa *m = id->mpa;

	mpa_unbind(id);
	if (!m)
		return;
	switch (m->state) {
	case MPA_ASKED: mpa_reject(id, NULL, 0); return;
	case MPA_WAIT_FIRST:
	case MPA_OPEN: mpa_disconnect(id, now_ns); break;
	case MPA_CLOSING: break;
	default: reset(m); return;
	}
	m->id = NULL;
	id->mpa = NULL;
}

/* Kernels' answers for an RNIC: librdmacm moves the QP to INIT alone, and sets attributes without a state besides. */
int mpa_qp_attr(const struct cm_id *id, struct qp_attr *a, uint32_t *mask)
{
	enum qp_state state = a->state;

	if (id->gid_index < 0 || (state != QPS_INIT && state != QPS_RTR && state != QPS_RTS))
		return -EINVAL;
	*a = (struct qp_attr){.state = state, .port = 1};
	*mask = QPA_PORT;
	if (state == QPS_INIT) {
		a->access = MR_REMOTE_WRITE | MR_REMOTE_READ | (id->cm->streams.atomics ? MR_REMOTE_ATOMIC : 0);
		*mask |= QPA_STATE | QPA_ACCESS_FLAGS;
	}
	return 0;
}

/* ---- what comes ---------------------------------------------------------------------------------- */

static struct mpa *find(const struct cm *cm, uint32_t stream)
{
	struct map_node *n = map_first(&cm->streams.by_stream, stream);

	return n ? container_of(n, struct mpa, by_stream) : NULL;
}

/*
 * Somebody connected to a listener. Of too many that say nothing the oldest is reset: who means it sends his Request at
 * once, so a flood of others does not keep him out. Without memory this stream is reset.
 */
static void admit(struct cm *cm, const struct pkt *pkt, uint64_t now_ns)
{
	struct mpa_streams *s = &cm->streams;
	struct mpa *m;

	if (s->waiting_count >= s->waiting_max)
		reset(container_of(s->waiting.next, struct mpa, waits));
	m = mpa_create(cm, NULL, pkt->flow);
	if (!m) {
		put_event(cm, pkt->flow, STREAM_RESET);
		return;
	}
	m->room = pkt->event->room;
	m->segment_bytes = pkt->event->segment_bytes;
	move(m, MPA_WAIT_REQUEST, now_ns);
}

static void opened(struct mpa *m, const struct pkt *pkt, uint64_t now_ns)
{
	m->flow = *pkt->flow;
	m->segment_bytes = pkt->event->segment_bytes;
	m->room = pkt->event->room - m->have;
	put_bytes(m->cm, &m->flow, m->frame, m->have);
	m->have = 0;
	move(m, MPA_WAIT_REPLY, now_ns);
}

static void tell_request(struct mpa *m, uint64_t now_ns)
{
	struct cm_addr local = {.ifindex = m->flow.ifindex, .port = m->flow.sport}, remote = {.port = m->flow.dport};
	struct cm_id *listener, *id = NULL;
	struct cm_param param;

	memcpy(local.ip, m->flow.src, sizeof(local.ip));
	memcpy(remote.ip, m->flow.dst, sizeof(remote.ip));
	local.family = remote.family = ip_is_ipv4(local.ip) ? CM_IPV4 : CM_IPV6;
	listener = port_listener_for(m->cm, local.ip, service_id_of(CM_SPACE_TCP, local.port));
	if (listener)
		id = id_for_request(listener, &local, &remote, local.ip);
	if (!id) {
		reset(m);
		return;
	}
	m->id = id;
	id->mpa = m;
	move(m, MPA_ASKED, now_ns);
	mpa_start_param(&param, m);
	if (!event_tell_request(listener, id, &param))
		return;
	reset(m);
	id_drop(id);
}

static void take_request(struct mpa *m, uint64_t now_ns)
{
	if (mpa_start_judge_request(m))
		reset(m);
	else
		tell_request(m, now_ns);
}

/* Behind the Reply there may be FPDUs already. */
static void take_reply(struct mpa *m, const struct pkt *rest, uint64_t now_ns)
{
	struct cm_id *id = m->id;
	struct cm_param param;
	int err = mpa_start_judge_reply(m);

	mpa_start_param(&param, m);
	if (m->peer.rejected) {
		reset(m);
		event_tell(id, CM_REJECTED, -ECONNREFUSED, &param);
		return;
	}
	if (!err)
		err = hand_over(m, now_ns);
	if (err) {
		fail(m, CM_CONNECT_ERROR, err);
		return;
	}
	move_open(m, now_ns);
	event_tell(id, CM_ESTABLISHED, 0, &param);
	if (rest->len)
		cm_stream_input(m->cm, rest, now_ns);
}

static void take_frame(struct mpa *m, const struct pkt *pkt, uint64_t now_ns)
{
	bool reply = m->state == MPA_WAIT_REPLY;
	struct pkt rest = *pkt;

	while (rest.len) {
		int len = mpa_frame_len(m->frame, m->have, reply);

		if (len < 0) {
			fail(m, CM_CONNECT_ERROR, -EPROTO);
			return;
		}
		if (len && m->have == len)
			break;
		m->frame[m->have++] = *rest.data++;
		rest.len--;
	}
	if (mpa_frame_len(m->frame, m->have, reply) < 0)
		fail(m, CM_CONNECT_ERROR, -EPROTO);
	else if (!m->have || mpa_frame_len(m->frame, m->have, reply) != m->have)
		return;
	else if (reply)
		take_reply(m, &rest, now_ns);
	else if (rest.len)
		reset(m); /* RFC 5044 7.1.2: an initiator waits for the Reply */
	else
		take_request(m, now_ns);
}

/* FIN, or the stream was lost, before there was a connection. */
static void start_ended(struct mpa *m, const struct stream_event *event, uint64_t now_ns)
{
	int status = event->error ? -event->error : -ECONNRESET;

	if (m->state == MPA_CONNECTING && status == -ECONNREFUSED && now_ns < m->began_ns + MPA_AGAIN_UNTIL_NS) {
		m->refused = true;
		timer_set(&m->cm->streams.timers, &m->timer, now_ns + MPA_AGAIN_NS);
		return;
	}
	if (status == -ETIMEDOUT || status == -EHOSTUNREACH || status == -ENETUNREACH)
		fail(m, CM_UNREACHABLE, status);
	else if (m->state == MPA_CONNECTING || m->state == MPA_WAIT_REPLY)
		fail(m, CM_REJECTED, status);
	else
		fail(m, CM_CONNECT_ERROR, status);
}

static void start_input(struct mpa *m, const struct pkt *pkt, uint64_t now_ns)
{
	switch (pkt_stream_kind(pkt)) {
	case STREAM_ROOM: m->room += pkt->event->room; break;
	case STREAM_BYTES:
		if (m->state == MPA_WAIT_REPLY || m->state == MPA_WAIT_REQUEST)
			take_frame(m, pkt, now_ns);
		else
			reset(m); /* in ASKED: nobody answered yet */
		break;
	default: start_ended(m, pkt->event, now_ns); break;
	}
}

static void stream_ended(struct mpa *m, bool lost, uint64_t now_ns)
{
	close_down(m, lost ? -ECONNRESET : 0, now_ns);
	if (lost)
		drop(m);
}

static bool is_ending(const struct mpa *m)
{
	return m->hangs_up || m->state == MPA_CLOSING;
}

static void connected_input(struct mpa *m, const struct pkt *pkt, uint64_t now_ns)
{
	enum stream_event_kind kind = pkt_stream_kind(pkt);
	struct qp *qp = qp_of(m);

	if (qp)
		nic_stream_input(m->cm->streams.nic, qp, pkt, now_ns);
	/* A slow peer takes what it is still to have. */
	if (kind == STREAM_ROOM && is_ending(m))
		timer_set(&m->cm->streams.timers, &m->timer, now_ns + MPA_CLOSING_NS);
	if (m->state == MPA_WAIT_FIRST && qp && nic_stream_is_heard(qp)) {
		struct cm_param param = {0};

		move_open(m, now_ns);
		event_tell(m->id, CM_ESTABLISHED, 0, &param);
	}
	if (kind == STREAM_FIN || kind == STREAM_RESET)
		stream_ended(m, kind == STREAM_RESET, now_ns);
}

/* A stream that nobody here knows any more. */
static void refuse(struct cm *cm, const struct pkt *pkt)
{
	if (pkt_stream_kind(pkt) != STREAM_RESET)
		put_event(cm, pkt->flow, STREAM_RESET);
}

/* QPs that ended, or are gone: their streams end too. */
static void look_for_ended(struct cm *cm, uint64_t now_ns)
{
	uint64_t ended = nic_streams_ended(cm->streams.nic);
	struct list *next;

	if (ended == cm->streams.ended)
		return;
	cm->streams.ended = ended;
	for (struct list *l = cm->streams.conns.next; l != &cm->streams.conns; l = next) {
		struct mpa *m = container_of(l, struct mpa, link);
		struct qp *qp;

		next = l->next;
		if (m->state < MPA_WAIT_FIRST)
			continue;
		qp = qp_of(m);
		if (!qp || qp_state(qp) == QPS_ERR)
			close_down(m, 0, now_ns);
	}
}

void cm_stream_input(struct cm *cm, const struct pkt *pkt, uint64_t now_ns)
{
	struct mpa *m = find(cm, pkt->flow->flow_label);
	bool opens = pkt_stream_kind(pkt) == STREAM_OPEN;

	if (!m && opens)
		admit(cm, pkt, now_ns);
	else if (!m)
		refuse(cm, pkt);
	else if (opens)
		opened(m, pkt, now_ns);
	else if (m->state >= MPA_WAIT_FIRST)
		connected_input(m, pkt, now_ns);
	else
		start_input(m, pkt, now_ns);
	look_for_ended(cm, now_ns);
}

size_t cm_stream_place(struct cm *cm, uint32_t number, uint8_t **to)
{
	struct mpa *m = find(cm, number);
	struct qp *qp = m && m->state >= MPA_WAIT_FIRST ? qp_of(m) : NULL;

	return qp ? nic_stream_place(cm->streams.nic, qp, to) : 0;
}

/* ---- time ---------------------------------------------------------------------------------------- */

uint64_t mpa_deadline(const struct cm *cm)
{
	if (!cm->streams.nic)
		return UINT64_MAX;
	if (!list_empty(&cm->streams.out) || cm->streams.untimed ||
	    nic_streams_ended(cm->streams.nic) != cm->streams.ended)
		return 0;
	return timers_deadline(&cm->streams.timers);
}

static void time_untimed(struct cm *cm, uint64_t now_ns)
{
	for (struct list *l = cm->streams.conns.next; cm->streams.untimed && l != &cm->streams.conns; l = l->next) {
		struct mpa *m = container_of(l, struct mpa, link);

		if (m->untimed)
			timer_set(&cm->streams.timers, &m->timer, now_ns + patience_ns[m->state]);
		m->untimed = false;
	}
	cm->streams.untimed = false;
}

static void connect_again(struct mpa *m, uint64_t now_ns)
{
	m->refused = false;
	put_event(m->cm, &m->flow, STREAM_OPEN);
	timer_set(&m->cm->streams.timers, &m->timer, m->began_ns + MPA_REPLY_NS);
}

/* In OPEN, the peer has said nothing for a while. */
static void urge(struct mpa *m, uint64_t now_ns)
{
	struct qp *qp = qp_of(m);

	m->urges--;
	if (!qp || nic_stream_is_heard(qp))
		return;
	nic_stream_urge(m->cm->streams.nic, qp);
	if (m->urges)
		timer_set(&m->cm->streams.timers, &m->timer, now_ns + MPA_URGE_NS);
}

static void expire(struct mpa *m, uint64_t now_ns)
{
	static const struct stream_event reset_event = {.kind = STREAM_RESET};
	struct qp *qp = qp_of(m);
	struct pkt lost = {.flow = &m->flow, .event = &reset_event};

	if (m->refused) {
		connect_again(m, now_ns);
		return;
	}
	if (m->state == MPA_OPEN && !m->hangs_up) {
		urge(m, now_ns);
		return;
	}
	switch (m->state) {
	case MPA_CONNECTING:
	case MPA_WAIT_REPLY: fail(m, CM_UNREACHABLE, -ETIMEDOUT); break;
	case MPA_WAIT_FIRST:
	case MPA_OPEN: /* was asked to close */
		if (qp)
			nic_stream_input(m->cm->streams.nic, qp, &lost, now_ns);
		fail(m, CM_DISCONNECTED, -ETIMEDOUT);
		break;
	default: reset(m);
	}
}

void mpa_expire(struct cm *cm, uint64_t now_ns)
{
	struct timer *t;

	if (!cm->streams.nic)
		return;
	look_for_ended(cm, now_ns);
	time_untimed(cm, now_ns);
	while ((t = timers_take_due(&cm->streams.timers, now_ns)))
		expire(container_of(t, struct mpa, timer), now_ns);
}
