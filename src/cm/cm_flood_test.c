/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Floods of requests that are forged from many addresses, whose senders get none of the answers, beside a
 * client that connects and hangs up, over and over.
 */
#include "support/cm_pair.h"
#include "support/test.h"

enum {
	A_MS = 10,         /* forged requests */
	ADDRESSES = 40000, /* most places of a table by address are somebody's */
	RUN_MS = 12000,
	CONNECTING_MAX =
		8000, /* conns: what is admitted before the flood is seen to be one, and 3.75 s of CM_STRANGERS_MAX */
	LENT_BYTES_MAX = 12 << 20
};

static struct world w;

/* How a forger goes about it. */
struct forger {
	unsigned a_ms;  /* requests */
	unsigned times; /* that each is sent, a quarter of a second apart */
	uint32_t addresses;
	uint32_t sent;
};

static void forged_req(const struct forger *f, uint32_t number)
{
	uint32_t host = number % f->addresses;
	struct flow flow = {.src = {[10] = 0xff,
				    [11] = 0xff,
				    [12] = 172,
				    [13] = (uint8_t)(host >> 16),
				    [14] = (uint8_t)(host >> 8),
				    [15] = (uint8_t)host},
			    .sport = 4791,
			    .dport = 4791};
	struct cm_req req = {.local_comm_id = number | 1u << 31,
			     .service_id = service_id_of(CM_SPACE_TCP, SERVER_PORT),
			     .ca_guid = 0x2000 + number,
			     .qpn = 2 + number % 0xfffff0,
			     .mtu = 3,
			     .max_cm_retries = 15,
			     .primary = {.hop_limit = 64, .ack_timeout = 17}};
	uint8_t mad[MAD_LEN];

	memcpy(flow.dst, w.ends[SERVER].addr.ip, sizeof(flow.dst));
	memcpy(req.primary.local_gid, flow.src, 16);
	memcpy(req.primary.remote_gid, flow.dst, 16);
	req.private_data[1] = 0x40;
	memcpy(req.private_data + 16, flow.src + 12, 4);
	memcpy(req.private_data + 32, flow.dst + 12, 4);
	message_start(mad, CM_REQ, number);
	cm_req_encode(mad + MAD_HEADER_LEN, &req);
	cm_input(w.ends[SERVER].cm, &flow, mad, w.now_ns);
}

static void forge_for_a_ms(struct forger *f)
{
	for (unsigned i = 0; i < f->a_ms; i++, f->sent++) {
		forged_req(f, f->sent);
		if (f->times > 1 && f->sent >= 250 * f->a_ms)
			forged_req(f, f->sent - 250 * f->a_ms);
	}
}

/* Only packets to the client arrive. Those to forged addresses are lost. */
static void wire_to_the_client(struct world *world, int from, const struct flow *flow, const uint8_t *mad)
{
	if (!memcmp(flow->dst, world->ends[!from].addr.ip, sizeof(flow->dst)))
		fly(world, from, flow, mad, WIRE_NS);
}

/* Each connection has a queue pair of its own. */
static void serve(struct world *world)
{
	static uint32_t qpn;
	struct cm_event e;

	while (cm_channel_take_event(world->ends[SERVER].channel, &e)) {
		struct cm_id *id = cm_id_find(world->ends[SERVER].cm, e.number);

		if (e.type == CM_CONNECT_REQUEST)
			accept_it(world, id, 2 + qpn++ % 0xffff00);
		else if (e.type == CM_UNREACHABLE || e.type == CM_DISCONNECTED || e.type == CM_REJECTED)
			cm_id_destroy(id, world->now_ns);
	}
}

/* The program of the client, which makes one connection after the other: how many are made. */
static unsigned client_steps(struct world *world, struct cm_id **id, uint32_t *qpn)
{
	struct cm_event e;
	unsigned made = 0;

	if (!*id)
		*id = connecting(world, ++*qpn);
	while (cm_channel_take_event(world->ends[CLIENT].channel, &e)) {
		if (e.number != cm_id_number(*id))
			continue;
		if (e.type == CM_CONNECT_RESPONSE && !cm_id_confirm(*id, world->now_ns))
			made++;
		cm_id_destroy(*id, world->now_ns);
		*id = NULL;
		break;
	}
	return made;
}

/* How many connections the client makes meanwhile. The listener's memory stays within its bound. */
static unsigned connections_beside(struct forger f)
{
	struct cm_id *id = NULL;
	unsigned made = 0;
	uint32_t qpn = 0x1000;

	world_init(&w, wire_to_the_client, 1);
	listen_on(&w, CM_SPACE_TCP, SERVER_PORT, CM_BACKLOG_MAX);
	for (int ms = 0; ms < RUN_MS; ms++) {
		struct cm_counters c;

		forge_for_a_ms(&f);
		serve(&w);
		made += client_steps(&w, &id, &qpn);
		run_for(&w, SECONDS / 1000);
		cm_report(w.ends[SERVER].cm, &c);
		assert_true(c.connecting <= CONNECTING_MAX);
		assert_true(pool_lent_bytes(&w.ends[SERVER].cm->pool) <= LENT_BYTES_MAX);
	}
	world_fini(&w);
	return made;
}

TEST(many_addresses_leave_a_client_its_rate)
{
	unsigned quiet = connections_beside((struct forger){0});
	unsigned flooded = connections_beside((struct forger){.a_ms = A_MS, .times = 1, .addresses = ADDRESSES});
	unsigned few = connections_beside((struct forger){.a_ms = A_MS, .times = 1, .addresses = 200});

	print_message("connections: %u without a flood, %u in one of %d addresses, %u in one of 200\n", quiet, flooded,
		      ADDRESSES, few);
	assert_true(quiet >= RUN_MS / 10);
	assert_true(flooded >= quiet * 8 / 10);
	assert_true(few >= quiet * 8 / 10);
}

/* The forger knows what is asked of a stranger. */
TEST(requests_that_are_forged_twice_leave_room_too)
{
	unsigned quiet = connections_beside((struct forger){0});
	unsigned flooded = connections_beside((struct forger){.a_ms = A_MS / 2, .times = 2, .addresses = ADDRESSES});

	print_message("connections: %u without a flood, %u in one of requests sent twice\n", quiet, flooded);
	assert_true(flooded >= quiet * 8 / 10);
}

/* A client of which nothing is known comes when the flood is on. */
TEST(a_stranger_gets_in_when_it_comes_again)
{
	struct forger f = {.a_ms = A_MS, .times = 1, .addresses = ADDRESSES};
	struct cm_id *id = NULL;
	uint64_t begun_ns;
	uint32_t qpn = 0x1000;

	world_init(&w, wire_to_the_client, 1);
	listen_on(&w, CM_SPACE_TCP, SERVER_PORT, CM_BACKLOG_MAX);
	for (int ms = 0; ms < 3000; ms++) {
		forge_for_a_ms(&f);
		serve(&w);
		run_for(&w, SECONDS / 1000);
	}
	begun_ns = w.now_ns;
	while (!client_steps(&w, &id, &qpn) && w.now_ns - begun_ns < 10 * SECONDS) {
		forge_for_a_ms(&f);
		serve(&w);
		run_for(&w, SECONDS / 1000);
	}
	assert_in_range(w.now_ns - begun_ns, CM_REPEAT_NS_MIN, SECONDS);
	assert_int_equal(w.sent[CLIENT][CM_REQ], 2);
	world_fini(&w);
}

/* The program takes no request, and forged ones have filled the backlog. */
TEST(a_full_backlog_has_room_for_who_is_known)
{
	struct forger f = {.a_ms = 1, .times = 1, .addresses = ADDRESSES};
	struct cm_id *id = NULL;
	unsigned waiting = 0;
	struct cm_event e;
	uint32_t qpn = 0x1000;

	world_init(&w, wire_to_the_client, 1);
	listen_on(&w, CM_SPACE_TCP, SERVER_PORT, 10);
	while (!client_steps(&w, &id, &qpn)) {
		serve(&w);
		run_for(&w, SECONDS / 1000);
	}
	run_for(&w, SECONDS);
	serve(&w);
	for (int ms = 0; ms < 30; ms++) {
		forge_for_a_ms(&f);
		run_for(&w, SECONDS / 1000);
	}
	assert_int_equal(cm_channel_events(w.ends[SERVER].channel), 10);
	client_steps(&w, &id, &qpn);
	run_for(&w, SECONDS / 100);
	assert_int_equal(cm_channel_events(w.ends[SERVER].channel), 10);
	while (cm_channel_take_event(w.ends[SERVER].channel, &e))
		waiting += e.type == CM_CONNECT_REQUEST && e.param.qpn == qpn;
	assert_int_equal(waiting, 1);
	world_fini(&w);
}

/* Places of known addresses are given to others by answers alone, and their counts stay right. */
TEST(known_addresses_are_bounded)
{
	static const uint8_t asking[16] = {[10] = 0xff, [11] = 0xff, [12] = 11};
	uint16_t place;
	struct cm *cm;

	world_init(&w, wire_perfect, 1);
	cm = w.ends[SERVER].cm;
	known_add(cm, asking, w.now_ns);
	assert_true(limit_half_open(cm, asking, &place));
	for (uint32_t i = 0; i < 5 * CM_KNOWN; i++) {
		uint8_t ip[16] = {
			[10] = 0xff,      [11] = 0xff, [12] = 10, [13] = (uint8_t)(i >> 16), [14] = (uint8_t)(i >> 8),
			[15] = (uint8_t)i};

		known_add(cm, ip, w.now_ns + i);
		assert_true(known_find(cm, ip) >= 0);
	}
	assert_int_equal(cm->known_count, CM_KNOWN);
	/* One that counts something stays. */
	assert_int_equal(CM_SOURCES + known_find(cm, asking), place);
	limit_half_open_done(cm, place);
	for (uint32_t i = 0; i < 5 * CM_KNOWN && known_find(cm, asking) >= 0; i++) {
		uint8_t ip[16] = {
			[10] = 0xff,      [11] = 0xff, [12] = 12, [13] = (uint8_t)(i >> 16), [14] = (uint8_t)(i >> 8),
			[15] = (uint8_t)i};

		known_add(cm, ip, w.now_ns + 5 * CM_KNOWN + i);
	}
	assert_int_equal(known_find(cm, asking), -1);
	world_fini(&w);
}

/* A flood leaves as many requests as ever of an address that has been connected before; few of others. */
TEST(a_flood_mutes_strangers_alone)
{
	static const uint8_t known[16] = {[10] = 0xff, [11] = 0xff, [12] = 11},
			     stranger[16] = {[10] = 0xff, [11] = 0xff, [12] = 12};
	uint32_t *of_known, *of_stranger;
	struct cm *cm;

	world_init(&w, wire_perfect, 1);
	cm = w.ends[SERVER].cm;
	known_add(cm, known, w.now_ns);
	of_known = &cm->unanswered_of[CM_SOURCES + known_find(cm, known)];
	of_stranger = &cm->unanswered_of[address_hash(cm, stranger) % CM_SOURCES];
	*of_known = *of_stranger = CM_UNANSWERED_MAX_OF_ONE - 1;
	assert_false(limit_is_mute(cm, stranger));
	cm->unanswered = CM_UNANSWERED_MANY;
	assert_true(limit_is_mute(cm, stranger));
	assert_false(limit_is_mute(cm, known));
	*of_stranger = CM_UNANSWERED_FEW_OF_ONE - 1;
	*of_known = CM_UNANSWERED_MAX_OF_ONE;
	assert_false(limit_is_mute(cm, stranger));
	assert_true(limit_is_mute(cm, known));
	*of_known = *of_stranger = 0;
	cm->unanswered = 0;
	world_fini(&w);
}
