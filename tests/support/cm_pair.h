/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fixture of cm's tests: two machines, a wire between them that does to each message what a test says, and
 * virtual time. Like the product's engine it makes the four calls, and no others, to move them.
 */
#pragma once

#include <errno.h>

#include "base/byteorder.h"
#include "base/prng.h"
#include "cm/state.h"
#include "support/test.h"
#include "wire/cm_dreq.h"
#include "wire/cm_rej.h"
#include "wire/cm_rep.h"
#include "wire/cm_req.h"
#include "wire/cm_sidr.h"

enum { CLIENT, SERVER };
enum { FLIGHTS_MAX = 4096, WIRE_NS = 50000, SERVER_PORT = 7174, SERVER_UID = 100, CLIENT_UID = 200, CHILD_UID = 300 };

#define SECONDS UINT64_C(1000000000)

struct flight {
	struct flow flow;
	uint8_t mad[MAD_LEN];
	uint64_t due_ns;
	int to;
};

struct end {
	struct cm *cm;
	struct cm_channel *channel;
	struct cm_addr addr;
};

struct world;
/* When the message is to arrive: appends flights itself, or none; `from` is an end. */
typedef void wire_fn(struct world *, int from, const struct flow *, const uint8_t *mad);

struct world {
	struct end ends[2];
	uint64_t now_ns;
	wire_fn *wire;
	struct flight flights[FLIGHTS_MAX];
	size_t flight_count;
	struct prng prng;
	/* What went by, whatever became of it: so many of each attribute from each end, and the last. */
	unsigned sent[2][CM_APR + 1];
	uint8_t last[2][MAD_LEN];
	uint16_t attribute; /* the messages that a wire spoils, if it does not spoil all */
	unsigned spoil;     /* and how many of them it still does */
	void *context;
};

static inline void *pair_get(void *ctx, size_t bytes)
{
	void *p = aligned_alloc(64, (bytes + 63) & ~(size_t)63);

	assert_non_null(p);
	return memset(p, 0, bytes);
}

static inline void pair_put(void *ctx, void *p, size_t bytes)
{
	free(p);
}

static inline uint16_t attribute_of(const uint8_t *mad)
{
	return get_be16(mad + 16);
}

static inline void fly(struct world *w, int from, const struct flow *flow, const uint8_t *mad, uint64_t delay_ns)
{
	struct flight *f = &w->flights[w->flight_count];

	if (w->flight_count == FLIGHTS_MAX)
		return;
	w->flight_count++;
	f->flow = *flow;
	memcpy(f->mad, mad, MAD_LEN);
	f->due_ns = w->now_ns + delay_ns;
	f->to = !from;
}

static inline void wire_perfect(struct world *w, int from, const struct flow *flow, const uint8_t *mad)
{
	fly(w, from, flow, mad, WIRE_NS);
}

static inline void world_init(struct world *w, wire_fn *wire, uint64_t seed)
{
	memset(w, 0, sizeof(*w));
	w->wire = wire;
	w->now_ns = SECONDS;
	prng_init(&w->prng, seed);
	for (int e = 0; e < 2; e++) {
		struct cm_config c = {.alloc = {.get = pair_get, .put = pair_put},
				      .slot = (uint32_t)(e ? 5 : 0),
				      .ca_guid = 0x1000 + (uint64_t)e,
				      .gid_count = 1,
				      .port_first = 32768,
				      .port_last = 60999};
		struct cm_addr a = {.ip = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = (uint8_t)(e + 1)},
				    .family = CM_IPV4};

		for (size_t i = 0; i < sizeof(c.secret); i++)
			c.secret[i] = (uint8_t)(seed * 31 + i + (uint64_t)e * 7);
		memcpy(c.gids[0].raw, a.ip, sizeof(a.ip));
		c.gids[0].ip_mtu = 1500;
		w->ends[e].addr = a;
		w->ends[e].cm = cm_create(&c);
		assert_non_null(w->ends[e].cm);
		assert_int_equal(cm_channel_create(w->ends[e].cm, &w->ends[e], &w->ends[e].channel), 0);
	}
}

/* ---- time goes on -------------------------------------------------------------------------------- */

static inline bool pump_out(struct world *w)
{
	bool moved = false;

	for (int e = 0; e < 2; e++) {
		uint8_t mad[MAD_LEN];
		struct flow flow;

		while (cm_output(w->ends[e].cm, &flow, mad)) {
			assert_true(attribute_of(mad) <= CM_APR);
			w->sent[e][attribute_of(mad)]++;
			memcpy(w->last[e], mad, MAD_LEN);
			w->wire(w, e, &flow, mad);
			moved = true;
		}
	}
	return moved;
}

static inline bool pump_in(struct world *w)
{
	bool moved = false;

	for (size_t i = 0; i < w->flight_count;) {
		struct flight f = w->flights[i];

		if (f.due_ns > w->now_ns) {
			i++;
			continue;
		}
		memmove(&w->flights[i], &w->flights[i + 1], (--w->flight_count - i) * sizeof(f));
		cm_input(w->ends[f.to].cm, &f.flow, f.mad, w->now_ns);
		moved = true;
	}
	return moved;
}

/* Everything that happens without time going on. */
static inline void settle(struct world *w)
{
	for (;;) {
		bool moved = pump_out(w);

		moved |= pump_in(w);
		for (int e = 0; e < 2; e++) {
			if (cm_deadline(w->ends[e].cm) <= w->now_ns && list_empty(&w->ends[e].cm->out)) {
				cm_expire(w->ends[e].cm, w->now_ns);
				moved = true;
			}
		}
		if (!moved)
			return;
	}
}

static inline uint64_t next_ns(const struct world *w)
{
	uint64_t next = UINT64_MAX;

	for (int e = 0; e < 2; e++) {
		if (cm_deadline(w->ends[e].cm) < next)
			next = cm_deadline(w->ends[e].cm);
	}
	for (size_t i = 0; i < w->flight_count; i++) {
		if (w->flights[i].due_ns < next)
			next = w->flights[i].due_ns;
	}
	return next;
}

static inline void run_for(struct world *w, uint64_t ns)
{
	uint64_t end = w->now_ns + ns;

	for (settle(w); next_ns(w) <= end; settle(w))
		w->now_ns = next_ns(w) > w->now_ns ? next_ns(w) : w->now_ns;
	w->now_ns = end;
}

/* ---- programs -------------------------------------------------------------------------------------- */

static inline struct cm_param param_with(uint32_t qpn, const char *data)
{
	struct cm_param p = {.qpn = qpn,
			     .responder_resources = 4,
			     .initiator_depth = 6,
			     .retry_count = 5,
			     .rnr_retry_count = 6,
			     .data_len = (uint16_t)strlen(data)};

	memcpy(p.data, data, strlen(data));
	return p;
}

static inline struct cm_id *listen_on(struct world *w, enum cm_space space, uint16_t port, int backlog)
{
	struct cm_addr a = w->ends[SERVER].addr;
	struct cm_id *id;

	a.port = port;
	assert_int_equal(
		cm_id_create(w->ends[SERVER].channel, space, space == CM_SPACE_UDP ? QPT_UD : QPT_RC, SERVER_UID, &id),
		0);
	assert_int_equal(cm_id_bind(id, &a), 0);
	assert_int_equal(cm_id_listen(id, backlog), 0);
	return id;
}

static inline struct cm_event take(struct world *w, int end, enum cm_event_type type)
{
	struct cm_event e;

	assert_true(cm_channel_take_event(w->ends[end].channel, &e));
	assert_int_equal(e.type, type);
	return e;
}

static inline void nothing_to_take(struct world *w, int end)
{
	assert_int_equal(cm_channel_events(w->ends[end].channel), 0);
}

static inline struct cm_id *resolved(struct world *w, enum cm_space space, uint16_t port, uint64_t uid)
{
	struct cm_addr dst = w->ends[SERVER].addr;
	struct cm_id *id;

	dst.port = port;
	assert_int_equal(
		cm_id_create(w->ends[CLIENT].channel, space, space == CM_SPACE_UDP ? QPT_UD : QPT_RC, uid, &id), 0);
	assert_int_equal(cm_id_resolve_addr(id, &w->ends[CLIENT].addr, &dst), 0);
	assert_int_equal(cm_id_resolve_route(id), 0);
	take(w, CLIENT, CM_ADDR_RESOLVED);
	take(w, CLIENT, CM_ROUTE_RESOLVED);
	return id;
}

static inline struct cm_id *connecting(struct world *w, uint32_t qpn)
{
	struct cm_id *id = resolved(w, CM_SPACE_TCP, SERVER_PORT, CLIENT_UID);
	struct cm_param p = param_with(qpn, "from the client");

	assert_int_equal(cm_id_connect(id, &p, w->now_ns), 0);
	return id;
}

/* The new id of the request that waits at the server. */
static inline struct cm_id *requested(struct world *w)
{
	struct cm_event e = take(w, SERVER, CM_CONNECT_REQUEST);
	struct cm_id *id = cm_id_find(w->ends[SERVER].cm, e.number);

	assert_int_equal(e.uid, SERVER_UID);
	assert_non_null(id);
	return id;
}

static inline void accept_it(struct world *w, struct cm_id *child, uint32_t qpn)
{
	struct cm_param p = param_with(qpn, "from the server");

	assert_int_equal(cm_id_accept(child, CHILD_UID, &p, w->now_ns), 0);
}

struct connection {
	struct cm_id *listener, *client, *server;
};

static inline struct connection connected(struct world *w)
{
	struct connection c = {.listener = listen_on(w, CM_SPACE_TCP, SERVER_PORT, 10)};

	c.client = connecting(w, 0x1234);
	run_for(w, SECONDS / 10);
	c.server = requested(w);
	accept_it(w, c.server, 0x5678);
	run_for(w, SECONDS / 10);
	take(w, CLIENT, CM_CONNECT_RESPONSE);
	assert_int_equal(cm_id_confirm(c.client, w->now_ns), 0);
	run_for(w, SECONDS / 10);
	take(w, SERVER, CM_ESTABLISHED);
	return c;
}

static inline enum conn_state state_of(const struct cm_id *id)
{
	return id->conn ? id->conn->state : CONN_CLOSED;
}

/* Ends everything and, when all patience is over, looks whether anything was left behind. */
static inline void world_fini(struct world *w)
{
	for (int e = 0; e < 2; e++)
		cm_channel_destroy(w->ends[e].channel, w->now_ns);
	run_for(w, 300 * SECONDS);
	for (int e = 0; e < 2; e++) {
		struct cm *cm = w->ends[e].cm;

		assert_true(list_empty(&cm->conns));
		assert_int_equal(cm->by_local.count, 0);
		assert_int_equal(cm->by_remote.count, 0);
		assert_int_equal(cm->by_remote_qpn.count, 0);
		assert_int_equal(cm->by_number.count, 0);
		assert_int_equal(cm->by_port.count, 0);
		assert_int_equal(cm->id_count, 0);
		assert_int_equal(cm->half_open_count, 0);
		assert_int_equal(pool_lent_bytes(&cm->pool), 0);
		cm_destroy(cm);
	}
}
