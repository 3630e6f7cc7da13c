/* SPDX-License-Identifier: BSD-2-Clause */
/* A process whose registry is another one: what it has bound and connected is there then, or all is as it was. */
#include <sys/mman.h>

#include "support/cm_pair.h"
#include "support/test.h"

enum { OTHER_SLOT = 9, HERE = 0, THERE, PLACES };

static struct world w;
/* Another process at either place, with the registry of that place. */
static struct {
	struct registry_page *page;
	struct cm *cm;
	struct cm_channel *channel;
} places[PLACES];
static bool server_lives;

static bool lives(void *ctx, uint32_t slot)
{
	return slot == OTHER_SLOT || server_lives;
}

static struct cm *process(struct registry_page *page, uint32_t slot, uint8_t secret)
{
	struct cm_config c = {.alloc = {.get = pair_get, .put = pair_put},
			      .slot = slot,
			      .ca_guid = 0x2000 + secret,
			      .gid_count = 1,
			      .port_first = 32768,
			      .port_last = 60999,
			      .registry = page,
			      .lives = lives};
	struct cm *cm;

	memset(c.secret, secret, sizeof(c.secret));
	memcpy(c.gids[0].raw, w.ends[SERVER].addr.ip, 16);
	c.gids[0].ip_mtu = 1500;
	cm = cm_create(&c);
	assert_non_null(cm);
	return cm;
}

static int setup(void **state)
{
	world_init(&w, wire_perfect, 1);
	for (int i = 0; i < PLACES; i++) {
		places[i].page = mmap(NULL, registry_bytes(), PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		places[i].cm = process(places[i].page, OTHER_SLOT, (uint8_t)(2 + i));
		assert_int_equal(cm_channel_create(places[i].cm, &w, &places[i].channel), 0);
	}
	cm_destroy(w.ends[SERVER].cm);
	w.ends[SERVER].cm = process(places[HERE].page, 5, 1);
	assert_int_equal(cm_channel_create(w.ends[SERVER].cm, &w, &w.ends[SERVER].channel), 0);
	server_lives = true;
	return 0;
}

static int teardown(void **state)
{
	for (int i = 0; i < PLACES; i++)
		cm_destroy(places[i].cm);
	world_fini(&w);
	for (int i = 0; i < PLACES; i++)
		munmap(places[i].page, registry_bytes());
	return 0;
}

/* Whether another process at that place gets the port; it keeps it. */
static int bind_at(int place, uint16_t port)
{
	struct cm_addr a = w.ends[SERVER].addr;
	struct cm_id *id;
	int err;

	a.port = port;
	assert_int_equal(cm_id_create(places[place].channel, CM_SPACE_TCP, QPT_RC, SERVER_UID, &id), 0);
	err = cm_id_bind(id, &a);
	if (err)
		cm_id_destroy(id, 0);
	return err;
}

static uint16_t draw_one(void)
{
	struct cm_addr a = w.ends[SERVER].addr;
	struct cm_id_info info;
	struct cm_id *id;

	a.port = 0;
	assert_int_equal(cm_id_create(w.ends[SERVER].channel, CM_SPACE_TCP, QPT_RC, SERVER_UID, &id), 0);
	assert_int_equal(cm_id_bind(id, &a), 0);
	cm_id_query(id, &info);
	return info.local.port;
}

#define CASE(name) TEST_WITH(name, setup, teardown)

CASE(ports_are_taken_there_and_given_back_here)
{
	uint16_t drawn = draw_one();

	listen_on(&w, CM_SPACE_TCP, 80, 1);
	assert_int_equal(cm_rejoin(w.ends[SERVER].cm, places[THERE].page), 0);
	assert_int_equal(bind_at(THERE, 80), -EADDRINUSE);
	assert_int_equal(bind_at(THERE, drawn), -EADDRINUSE);
	assert_int_equal(bind_at(HERE, 80), 0);
	assert_int_equal(bind_at(HERE, drawn), 0);
}

CASE(ports_of_the_same_place_are_kept)
{
	listen_on(&w, CM_SPACE_TCP, 80, 1);
	assert_int_equal(cm_rejoin(w.ends[SERVER].cm, places[HERE].page), 0);
	assert_int_equal(bind_at(HERE, 80), -EADDRINUSE);
}

/* Whichever of the ports it is. */
CASE(a_port_that_is_taken_there_leaves_all_as_it_was)
{
	for (uint16_t taken = 80; taken < 83; taken++) {
		struct cm_obstacle o;

		if (taken == 80)
			for (uint16_t port = 80; port < 83; port++)
				listen_on(&w, CM_SPACE_TCP, port, 1);
		assert_int_equal(bind_at(THERE, taken), 0);
		assert_int_equal(cm_rejoin(w.ends[SERVER].cm, places[THERE].page), -EADDRINUSE);
		o = cm_take_obstacle(w.ends[SERVER].cm);
		assert_in_range(o.addr.port, 80, taken);
		assert_int_equal(o.slot, OTHER_SLOT);
		for (uint16_t port = 80; port < 83; port++)
			assert_int_equal(bind_at(HERE, port), -EADDRINUSE);
	}
	assert_int_equal(bind_at(THERE, 90), 0);
}

CASE(a_listener_is_found_there)
{
	uint8_t mad[MAD_LEN];
	struct flow flow;
	struct cm_id *id = connecting(&w, 0x1234);

	assert_non_null(id->conn);
	assert_true(cm_output(w.ends[CLIENT].cm, &flow, mad));
	listen_on(&w, CM_SPACE_TCP, SERVER_PORT, 1);
	assert_int_equal(cm_route(places[HERE].cm, &flow, mad, true), 5);
	assert_int_equal(cm_rejoin(w.ends[SERVER].cm, places[THERE].page), 0);
	assert_int_equal(cm_route(places[HERE].cm, &flow, mad, true), CM_NOWHERE);
	assert_int_equal(cm_route(places[THERE].cm, &flow, mad, true), 5);
}

/* How many messages a process sends for one that was killed. */
static unsigned carried_out(int place)
{
	struct cm *cm = places[place].cm;
	struct flow flow;
	uint8_t mad[MAD_LEN];
	unsigned sent = 0;

	assert_true(cm_take_over(cm, -1) || cm_registrar(cm) == OTHER_SLOT);
	cm_look_for_the_dead(cm);
	cm_expire(cm, w.now_ns);
	while (cm_output(cm, &flow, mad))
		sent += attribute_of(mad) == CM_DREQ;
	return sent;
}

CASE(last_wills_are_there_alone)
{
	struct connection c = connected(&w);

	assert_int_equal(state_of(c.server), CONN_ESTABLISHED);
	assert_int_equal(cm_rejoin(w.ends[SERVER].cm, places[THERE].page), 0);
	server_lives = false;
	assert_int_equal(carried_out(HERE), 0);
	assert_int_equal(carried_out(THERE), 1);
}

CASE(last_wills_stay_where_it_could_not_leave)
{
	struct connection c = connected(&w);

	assert_int_equal(state_of(c.server), CONN_ESTABLISHED);
	listen_on(&w, CM_SPACE_TCP, 80, 1);
	assert_int_equal(bind_at(THERE, 80), 0);
	assert_int_equal(cm_rejoin(w.ends[SERVER].cm, places[THERE].page), -EADDRINUSE);
	server_lives = false;
	assert_int_equal(carried_out(THERE), 0);
	assert_int_equal(carried_out(HERE), 1);
}

CASE(a_connection_goes_on_there)
{
	struct connection c = connected(&w);

	assert_int_equal(cm_rejoin(w.ends[SERVER].cm, places[THERE].page), 0);
	assert_int_equal(cm_id_disconnect(c.client, w.now_ns), 0);
	run_for(&w, SECONDS / 10);
	take(&w, SERVER, CM_DISCONNECTED);
	server_lives = false;
	run_for(&w, 60 * SECONDS);
	assert_int_equal(carried_out(HERE), 0);
}

CASE(addresses_that_ids_are_bound_to_are_known)
{
	struct cm *cm = w.ends[SERVER].cm;
	const uint8_t *own = w.ends[SERVER].addr.ip;
	struct cm_addr any = {.family = CM_IPV6, .port = 80};
	struct cm_id *id;

	assert_false(cm_uses_address(cm, own));
	assert_int_equal(cm_id_create(w.ends[SERVER].channel, CM_SPACE_TCP, QPT_RC, SERVER_UID, &id), 0);
	assert_int_equal(cm_id_bind(id, &any), 0);
	assert_false(cm_uses_address(cm, own));
	draw_one();
	assert_true(cm_uses_address(cm, own));
	assert_false(cm_uses_address(cm, w.ends[CLIENT].addr.ip));
}
