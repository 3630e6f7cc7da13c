/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults of the network: each kind of message lost, doubled or late, once or every time, and then all of them at random
 * under programs that make random calls. In the end both ends agree, or both get an event that they do not, in bounded
 * time, and nothing is left behind. VERBENA_SEED repeats one run of the swarm.
 */
#include <stdio.h>

#include "support/cm_pair.h"
#include "support/test.h"

static struct world w;

static bool spoils(const uint8_t *mad)
{
	if (attribute_of(mad) != w.attribute || !w.spoil)
		return false;
	w.spoil--;
	return true;
}

static void wire_drops(struct world *world, int from, const struct flow *flow, const uint8_t *mad)
{
	if (!spoils(mad))
		fly(world, from, flow, mad, WIRE_NS);
}

static void wire_doubles(struct world *world, int from, const struct flow *flow, const uint8_t *mad)
{
	fly(world, from, flow, mad, WIRE_NS);
	if (spoils(mad)) {
		fly(world, from, flow, mad, WIRE_NS);
		fly(world, from, flow, mad, 2 * SECONDS);
	}
}

static void wire_delays(struct world *world, int from, const struct flow *flow, const uint8_t *mad)
{
	fly(world, from, flow, mad, spoils(mad) ? 3 * SECONDS / 2 : WIRE_NS);
}

/* ---- programs that answer their events ------------------------------------------------- */

struct story {
	unsigned established[2], disconnected[2], failed[2];
};

static void answer(struct world *world, int end, const struct cm_event *e, struct story *s)
{
	struct cm_id *id = cm_id_find(world->ends[end].cm, e->number);

	assert_non_null(id);
	switch (e->type) {
	case CM_CONNECT_REQUEST: {
		struct cm_param p = param_with(0x5678, "yes");

		if (cm_id_accept(id, CHILD_UID, &p, world->now_ns))
			cm_id_destroy(id, world->now_ns);
		break;
	}
	case CM_CONNECT_RESPONSE:
		if (!cm_id_confirm(id, world->now_ns))
			s->established[end]++;
		break;
	case CM_ESTABLISHED: s->established[end]++; break;
	case CM_DISCONNECTED:
		s->disconnected[end]++;
		assert_int_equal(cm_id_disconnect(id, world->now_ns), 0);
		break;
	case CM_REJECTED:
	case CM_UNREACHABLE: s->failed[end]++; break;
	default: break;
	}
}

static void live_for(struct world *world, uint64_t ns, struct story *s)
{
	for (uint64_t end = world->now_ns + ns; world->now_ns < end;) {
		struct cm_event e;

		run_for(world, SECONDS / 20);
		for (int i = 0; i < 2; i++) {
			while (cm_channel_take_event(world->ends[i].channel, &e))
				answer(world, i, &e, s);
		}
	}
}

static const uint16_t messages[] = {CM_REQ, CM_REP, CM_RTU, CM_DREQ, CM_DREP};

/* One connection from its beginning to its end over that wire. */
static struct story tell(wire_fn *wire, uint16_t attribute, unsigned spoil)
{
	struct story s = {0};
	struct cm_id *client;

	world_init(&w, wire, attribute);
	w.attribute = attribute;
	w.spoil = spoil;
	listen_on(&w, CM_SPACE_TCP, SERVER_PORT, 10);
	client = connecting(&w, 0x1234);
	live_for(&w, 70 * SECONDS, &s);
	cm_id_disconnect(client, w.now_ns);
	live_for(&w, 70 * SECONDS, &s);
	world_fini(&w);
	return s;
}

static void all_went_well(const struct story *s)
{
	for (int e = 0; e < 2; e++) {
		assert_int_equal(s->established[e], 1);
		assert_int_equal(s->disconnected[e], 1);
		assert_int_equal(s->failed[e], 0);
	}
}

TEST(a_message_lost_a_few_times_costs_time_alone)
{
	for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
		for (unsigned n = 0; n < 4; n++) {
			struct story s = tell(wire_drops, messages[i], n);

			all_went_well(&s);
		}
	}
}

TEST(a_message_that_comes_thrice_is_as_one)
{
	for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
		struct story s = tell(wire_doubles, messages[i], 2);

		all_went_well(&s);
	}
}

TEST(a_message_that_is_late_is_as_one_in_time)
{
	for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
		struct story s = tell(wire_delays, messages[i], 3);

		all_went_well(&s);
	}
}

/* The peer's process has ended without an answer: no program waits long for the end of its connection. */
TEST(a_hang_up_is_given_up_sooner)
{
	struct connection c;

	world_init(&w, wire_drops, 1);
	c = connected(&w);
	w.attribute = CM_DREQ;
	w.spoil = UINT32_MAX;
	assert_int_equal(cm_id_disconnect(c.client, w.now_ns), 0);
	run_for(&w, 11 * SECONDS);
	nothing_to_take(&w, CLIENT);
	run_for(&w, SECONDS);
	assert_int_equal(take(&w, CLIENT, CM_DISCONNECTED).status, -ETIMEDOUT);
	assert_int_equal(w.sent[CLIENT][CM_DREQ], 6);
	w.spoil = 0;
	world_fini(&w);
}

TEST(a_message_that_never_comes_is_given_up)
{
	/* how many events of failure, and of disconnection, each end gets */
	static const struct {
		uint16_t attribute;
		unsigned failed[2], disconnected[2];
	} row[] = {
		{CM_REQ, {1, 0}, {0, 0}},  {CM_REP, {1, 1}, {0, 0}},
		{CM_RTU, {1, 1}, {0, 0}}, /* a refusal of an established connection */
		{CM_DREQ, {0, 0}, {1, 0}}, {CM_DREP, {0, 0}, {1, 1}},
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct story s = tell(wire_drops, row[i].attribute, UINT32_MAX);

		assert_memory_equal(s.failed, row[i].failed, sizeof(s.failed));
		assert_memory_equal(s.disconnected, row[i].disconnected, sizeof(s.disconnected));
	}
}

/* ---- the swarm ------------------------------------------------------------------------------------ */

static unsigned drop_pct, double_pct, late_pct;

static void wire_of_seed(struct world *world, int from, const struct flow *flow, const uint8_t *mad)
{
	struct prng *r = &world->prng;

	if (prng_below(r, 100) < drop_pct)
		return;
	fly(world, from, flow, mad, prng_below(r, 100) < late_pct ? prng_below(r, 5 * SECONDS) : WIRE_NS);
	if (prng_below(r, 100) < double_pct)
		fly(world, from, flow, mad, prng_below(r, 5 * SECONDS));
}

enum { IDS_MAX = 32 };

static struct cm_id *ids[2][IDS_MAX];

static void forget_id(struct cm_id *id)
{
	for (int k = 0; k < 2 * IDS_MAX; k++) {
		if (ids[k / IDS_MAX][k % IDS_MAX] == id)
			ids[k / IDS_MAX][k % IDS_MAX] = NULL;
	}
}

static struct cm_id **place_for_id(int end)
{
	for (int k = 0; k < IDS_MAX; k++) {
		if (!ids[end][k])
			return &ids[end][k];
	}
	return NULL;
}

/* One thing that a program may do to an id that it has. */
static void meddle(struct world *world, int end, struct cm_id *id)
{
	struct prng *r = &world->prng;
	struct cm_param p = param_with(0x100 + (uint32_t)prng_below(r, 8), "swarm");

	switch (prng_below(r, 8)) {
	case 0: cm_id_accept(id, CHILD_UID, &p, world->now_ns); break;
	case 1: cm_id_confirm(id, world->now_ns); break;
	case 2: cm_id_reject(id, CM_REJ_CONSUMER, p.data, p.data_len); break;
	case 3: cm_id_disconnect(id, world->now_ns); break;
	case 4: cm_id_established(id); break;
	case 5:
		forget_id(id);
		cm_id_destroy(id, world->now_ns);
		break;
	case 6: cm_id_connect(id, &p, world->now_ns); break;
	default: break;
	}
}

static void take_events(struct world *world, int end)
{
	struct cm_event e;

	while (prng_below(&world->prng, 4) && cm_channel_take_event(world->ends[end].channel, &e)) {
		struct cm_id *id = cm_id_find(world->ends[end].cm, e.number), **place = place_for_id(end);

		assert_non_null(id);
		if (e.type != CM_CONNECT_REQUEST)
			continue;
		if (place)
			*place = id;
		else
			cm_id_destroy(id, world->now_ns);
	}
}

static void start_one(struct world *world)
{
	enum cm_space space = prng_below(&world->prng, 4) ? CM_SPACE_TCP : CM_SPACE_UDP;
	struct cm_addr dst = world->ends[SERVER].addr;
	struct cm_id **place = place_for_id(CLIENT);
	struct cm_param p = param_with(0x100 + (uint32_t)prng_below(&world->prng, 8), "swarm");

	if (!place)
		return;
	dst.port = SERVER_PORT;
	assert_int_equal(cm_id_create(world->ends[CLIENT].channel, space, space == CM_SPACE_UDP ? QPT_UD : QPT_RC,
				      CLIENT_UID, place),
			 0);
	assert_int_equal(cm_id_resolve_addr(*place, &world->ends[CLIENT].addr, &dst), 0);
	assert_int_equal(cm_id_resolve_route(*place), 0);
	assert_int_equal(cm_id_connect(*place, &p, world->now_ns), 0);
}

static void swarm_of_seed(uint64_t seed)
{
	struct prng *r = &w.prng;

	world_init(&w, wire_of_seed, seed);
	memset(ids, 0, sizeof(ids));
	drop_pct = prng_below(r, 2) ? (unsigned)prng_below(r, 60) : 0;
	double_pct = prng_below(r, 2) ? (unsigned)prng_below(r, 60) : 0;
	late_pct = prng_below(r, 2) ? (unsigned)prng_below(r, 60) : 0;
	listen_on(&w, CM_SPACE_TCP, SERVER_PORT, 1 + (int)prng_below(r, 10));
	listen_on(&w, CM_SPACE_UDP, SERVER_PORT, 1 + (int)prng_below(r, 10));
	for (int step = 0; step < 300; step++) {
		int end = (int)prng_below(r, 2);
		struct cm_id *id = ids[end][prng_below(r, IDS_MAX)];

		if (!prng_below(r, 4))
			start_one(&w);
		take_events(&w, end);
		if (id)
			meddle(&w, end, id);
		run_for(&w, prng_below(r, SECONDS));
	}
	world_fini(&w);
}

TEST(any_program_over_any_wire)
{
	const char *env = getenv("VERBENA_SEED");
	uint64_t first = env ? strtoull(env, NULL, 0) : 1, last = env ? first : 100;

	for (uint64_t seed = first; seed <= last; seed++) {
		print_message("VERBENA_SEED=%llu\n", (unsigned long long)seed);
		swarm_of_seed(seed);
	}
}
