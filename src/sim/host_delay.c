/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues, each in the order of its times, because the delay of one queue is the same for all. A packet
 * that waits has its time in time_ps.
 *
 * Out: every packet passes the QP cache, data in a place of its own so that answers can overtake it. Then
 * an acknowledgement or a CNP waits in a queue, and data until the bus has read the payload before it.
 * In: one queue, as packets stay in order.
 */
#include "sim/host_delay.h"

#include <stdlib.h>

#include "sim/key_map.h"
#include "sim/qp_cache.h"

/* Events for a program or for the nic: a ring that grows. */
struct events {
	struct host_event *ring;
	uint32_t room, first, count;
};

/* Packets. */
struct line {
	struct packet *head, *tail;
};

/* A packet that waits for its QP's state. */
struct fetched {
	struct packet *packet; /* NULL: none */
	enum host_packet_kind kind;
	uint32_t payload_bytes;
	uint64_t key;
};

struct host_delay {
	struct host_delay_config config;
	struct packet_store *packets;
	uint64_t woken_ps;
	struct events posts, completions;
	/* Out. */
	struct fetched data, answer;
	struct line acks, cnps;
	struct key_map cnps_waiting; /* waiting CNPs by QP: one stands for all its marks; 1 */
	uint64_t cnp_ps;             /* when the next one may leave */
	uint64_t read_ps;            /* when the bus has read the payload that was sent */
	bool read_on;                /* since when there is something to read */
	/* In. */
	struct line in;
	uint64_t in_ps;       /* of its last packet */
	struct key_map peers; /* key_of() by this host's QPNs */
	struct qp_cache *cache;
};

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void line_push(struct line *l, struct packet *p, uint64_t due_ps)
{
	p->time_ps = due_ps;
	p->next = NULL;
	if (l->head)
		l->tail->next = p;
	else
		l->head = p;
	l->tail = p;
}

static struct packet *line_pop(struct line *l, uint64_t now_ps)
{
	struct packet *p = l->head;

	if (!p || p->time_ps > now_ps)
		return NULL;
	l->head = p->next;
	return p;
}

/* ---- life ---------------------------------------------------------------------------------------- */

bool host_delay_is_any(const struct host_delay_config *c)
{
	return c->post_ps || c->completion_ps || c->ack_ps || c->read_bps || c->cnp_gap_ps || c->qp_cache;
}

struct host_delay *host_delay_create(const struct host_delay_config *c, struct packet_store *packets)
{
	struct host_delay *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->config = *c;
	d->packets = packets;
	if (!c->qp_cache)
		return d;
	d->cache = qp_cache_create(c->qp_cache, c->qp_miss_ps);
	if (!d->cache) {
		free(d);
		return NULL;
	}
	return d;
}

static void put_all(struct host_delay *d, struct line *l)
{
	while (l->head) {
		struct packet *p = l->head;

		l->head = p->next;
		packet_put(d->packets, p);
	}
}

void host_delay_destroy(struct host_delay *d)
{
	if (!d)
		return;
	put_all(d, &d->acks);
	put_all(d, &d->cnps);
	put_all(d, &d->in);
	if (d->data.packet)
		packet_put(d->packets, d->data.packet);
	if (d->answer.packet)
		packet_put(d->packets, d->answer.packet);
	key_map_fini(&d->cnps_waiting);
	key_map_fini(&d->peers);
	qp_cache_destroy(d->cache);
	free(d->posts.ring);
	free(d->completions.ring);
	free(d);
}

/* ---- time ---------------------------------------------------------------------------------------- */

static void sooner(uint64_t *next_ps, uint64_t at_ps)
{
	if (at_ps < *next_ps)
		*next_ps = at_ps;
}

/* The host takes packets that are due when its port is idle, or a class is resumed. */
static void sooner_unless_woken(const struct host_delay *d, uint64_t *next_ps, uint64_t at_ps)
{
	if (at_ps > d->woken_ps)
		sooner(next_ps, at_ps);
}

uint64_t host_delay_next_ps(const struct host_delay *d)
{
	uint64_t next_ps = UINT64_MAX;

	if (d->posts.count)
		sooner(&next_ps, d->posts.ring[d->posts.first].due_ps);
	if (d->completions.count)
		sooner(&next_ps, d->completions.ring[d->completions.first].due_ps);
	if (d->in.head)
		sooner(&next_ps, d->in.head->time_ps);
	if (d->acks.head)
		sooner_unless_woken(d, &next_ps, d->acks.head->time_ps);
	if (d->cnps.head)
		sooner_unless_woken(d, &next_ps, d->cnps.head->time_ps);
	if (d->data.packet)
		sooner_unless_woken(d, &next_ps, d->data.packet->time_ps);
	if (d->answer.packet)
		sooner_unless_woken(d, &next_ps, d->answer.packet->time_ps);
	sooner_unless_woken(d, &next_ps, d->read_ps ? d->read_ps : UINT64_MAX);
	return next_ps;
}

void host_delay_woken(struct host_delay *d, uint64_t now_ps)
{
	d->woken_ps = now_ps;
}

/* ---- programs ------------------------------------------------------------------------------------ */

static bool events_push(struct events *q, const struct host_event *e)
{
	if (q->count == q->room) {
		uint32_t room = q->room ? 2 * q->room : 16;
		struct host_event *more = calloc(room, sizeof(*more));

		if (!more)
			return false;
		for (uint32_t i = 0; i < q->count; i++)
			more[i] = q->ring[(q->first + i) % q->room];
		free(q->ring);
		q->ring = more;
		q->room = room;
		q->first = 0;
	}
	q->ring[(q->first + q->count++) % q->room] = *e;
	return true;
}

uint64_t host_delay_event(struct host_delay *d, const struct host_event *e, uint64_t now_ps)
{
	bool post = e->kind == HOST_POSTED;
	uint64_t delay_ps = post ? d->config.post_ps : d->config.completion_ps;
	struct host_event kept = *e;

	kept.due_ps = now_ps + delay_ps;
	if (!delay_ps || !events_push(post ? &d->posts : &d->completions, &kept))
		return now_ps;
	return kept.due_ps;
}

static bool is_due(const struct events *q, uint64_t now_ps)
{
	return q->count && q->ring[q->first].due_ps <= now_ps;
}

bool host_delay_due(struct host_delay *d, uint64_t now_ps, struct host_event *e)
{
	struct events *q = is_due(&d->completions, now_ps) ? &d->completions : &d->posts;

	while (is_due(q, now_ps)) {
		*e = q->ring[q->first];
		q->first = (q->first + 1) % q->room;
		q->count--;
		if (e->channel || e->kind == HOST_RECEIVED)
			return true;
		if (q == &d->completions && !is_due(q, now_ps))
			q = &d->posts;
	}
	return false;
}

static void forget(struct events *q, const struct channel *c)
{
	for (uint32_t i = 0; i < q->count; i++) {
		struct host_event *e = &q->ring[(q->first + i) % q->room];

		if (e->channel == c)
			e->channel = NULL;
	}
}

void host_delay_forget(struct host_delay *d, const struct channel *c)
{
	forget(&d->posts, c);
	forget(&d->completions, c);
}

/* ---- queue pairs --------------------------------------------------------------------------------- */

/* A QP's key from its peer, as packets to it name it. */
static uint64_t key_of(uint32_t peer, uint32_t peer_qpn)
{
	return (uint64_t)peer << 24 | peer_qpn;
}

/* The destination QP of the BTH. */
static uint32_t dest_qpn(const struct packet *p)
{
	const uint8_t *bth = p->body;

	return (uint32_t)bth[5] << 16 | (uint32_t)bth[6] << 8 | bth[7];
}

void host_delay_connect(struct host_delay *d, uint32_t qpn, uint32_t peer, uint32_t peer_qpn)
{
	if (d->cache)
		key_map_set(&d->peers, qpn, key_of(peer, peer_qpn));
}

void host_delay_disconnect(struct host_delay *d, uint32_t qpn)
{
	key_map_remove(&d->peers, qpn);
}

/* ---- packets out --------------------------------------------------------------------------------- */

void host_delay_send(struct host_delay *d, struct packet *p, enum host_packet_kind kind, uint32_t payload_bytes,
		     uint64_t now_ps)
{
	struct fetched *f = kind == HOST_PACKET_DATA ? &d->data : &d->answer;
	uint64_t key = key_of(p->dst, dest_qpn(p));

	assert(!f->packet);
	*f = (struct fetched){p, kind, payload_bytes, key};
	p->time_ps = d->cache ? qp_cache_use(d->cache, key, now_ps) : now_ps;
}

/* False: a CNP of its QP already waits. */
static bool cnp_waits(struct host_delay *d, const struct fetched *f, uint64_t now_ps)
{
	uint64_t due_ps = later(now_ps, d->cnp_ps);

	if (key_map_get(&d->cnps_waiting, f->key) != KEY_MAP_NONE)
		return false;
	/* Without memory for it one more CNP may be sent. */
	key_map_set(&d->cnps_waiting, f->key, f->key);
	d->cnp_ps = due_ps + d->config.cnp_gap_ps;
	line_push(&d->cnps, f->packet, due_ps);
	return true;
}

/* The state of the answer's QP is at hand. Returns the packet if it may leave at once. */
static struct packet *answer(struct host_delay *d, uint64_t now_ps)
{
	struct fetched f = d->answer;

	d->answer.packet = NULL;
	if (f.kind == HOST_PACKET_ACK && d->config.ack_ps) {
		line_push(&d->acks, f.packet, now_ps + d->config.ack_ps);
		return NULL;
	}
	if (f.kind == HOST_PACKET_CNP && d->config.cnp_gap_ps) {
		if (!cnp_waits(d, &f, now_ps))
			packet_put(d->packets, f.packet);
		return NULL;
	}
	return f.packet;
}

static uint64_t read_takes_ps(const struct host_delay *d, uint32_t bytes)
{
	unsigned __int128 bits = (unsigned __int128)bytes * 8 * UINT64_C(1000000000000);

	return (uint64_t)((bits + d->config.read_bps - 1) / d->config.read_bps);
}

/*
 * While a packet is sent the bus reads it and the next one: it is ahead of the wire by one packet at
 * most, and only if there is one.
 */
static void read_payload(struct host_delay *d, uint32_t bytes, uint64_t now_ps)
{
	uint64_t takes_ps = read_takes_ps(d, bytes), begin_ps = now_ps;

	if (d->read_on && d->read_ps < now_ps)
		begin_ps = later(d->read_ps, now_ps > takes_ps ? now_ps - takes_ps : 0);
	d->read_ps = begin_ps + takes_ps;
	d->read_on = true;
}

struct packet *host_delay_take(struct host_delay *d, uint32_t allowed_classes, uint64_t now_ps)
{
	struct packet *p = line_pop(&d->acks, now_ps);

	d->woken_ps = now_ps;
	if (p)
		return p;
	if (d->answer.packet && d->answer.packet->time_ps <= now_ps)
		p = answer(d, now_ps);
	if (p)
		return p;
	p = line_pop(&d->cnps, now_ps);
	if (p) {
		key_map_remove(&d->cnps_waiting, key_of(p->dst, dest_qpn(p)));
		return p;
	}
	p = d->data.packet;
	if (!p || p->time_ps > now_ps || d->read_ps > now_ps || !(allowed_classes >> p->class & 1))
		return NULL;
	d->data.packet = NULL;
	if (d->config.read_bps)
		read_payload(d, d->data.payload_bytes, now_ps);
	return p;
}

bool host_delay_is_full(const struct host_delay *d)
{
	return d->answer.packet;
}

bool host_delay_data_waits(const struct host_delay *d, uint64_t now_ps)
{
	return d->data.packet || d->read_ps > now_ps;
}

void host_delay_idle(struct host_delay *d)
{
	d->read_on = false;
}

/* ---- packets in ---------------------------------------------------------------------------------- */

bool host_delay_arrive(struct host_delay *d, struct packet *p, uint64_t now_ps)
{
	uint64_t key, due_ps = now_ps;

	if (!d->cache)
		return false;
	key = key_map_get(&d->peers, dest_qpn(p));
	if (key != KEY_MAP_NONE)
		due_ps = qp_cache_use(d->cache, key, now_ps);
	due_ps = later(due_ps, d->in.head ? d->in_ps : 0);
	if (due_ps <= now_ps && !d->in.head)
		return false;
	d->in_ps = due_ps;
	line_push(&d->in, p, due_ps);
	return true;
}

struct packet *host_delay_arrived(struct host_delay *d, uint64_t now_ps)
{
	return line_pop(&d->in, now_ps);
}
