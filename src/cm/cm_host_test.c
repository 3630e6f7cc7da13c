/* SPDX-License-Identifier: BSD-2-Clause */
/* Several processes of one host: rules of docs/rdmacm.md 7. The server's two processes share a registry. */
#include <sys/mman.h>

#include "support/cm_pair.h"
#include "support/test.h"

enum { OTHER_SLOT = 9 };

static struct world w;
static struct registry_page *page;
static struct cm *other; /* of the server's host */
static struct cm_channel *other_channel;
static bool server_lives;

static bool lives(void *ctx, uint32_t slot)
{
	return slot == OTHER_SLOT || server_lives;
}

static struct cm *process(uint32_t slot, uint8_t secret)
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
	page = mmap(NULL, registry_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	world_init(&w, wire_perfect, 1);
	cm_destroy(w.ends[SERVER].cm);
	w.ends[SERVER].cm = process(5, 1);
	assert_int_equal(cm_channel_create(w.ends[SERVER].cm, &w, &w.ends[SERVER].channel), 0);
	other = process(OTHER_SLOT, 2);
	assert_int_equal(cm_channel_create(other, &w, &other_channel), 0);
	server_lives = true;
	return 0;
}

static int teardown(void **state)
{
	cm_destroy(other);
	world_fini(&w);
	munmap(page, registry_bytes());
	return 0;
}

static struct cm_id *other_id(void)
{
	struct cm_id *id;

	assert_int_equal(cm_id_create(other_channel, CM_SPACE_TCP, QPT_RC, SERVER_UID, &id), 0);
	return id;
}

static struct cm_addr port(uint16_t number)
{
	struct cm_addr a = w.ends[SERVER].addr;

	a.port = number;
	return a;
}

/* The client's first REQ, as it would arrive. */
static void request(struct flow *flow, uint8_t *mad)
{
	struct cm *client = w.ends[CLIENT].cm;
	struct cm_id *id = connecting(&w, 0x1234);

	assert_non_null(id->conn);
	assert_true(cm_output(client, flow, mad));
}

#define CASE(name) TEST_WITH(name, setup, teardown)

CASE(another_process_has_the_port)
{
	struct cm_addr a = port(SERVER_PORT);
	struct cm_id *theirs = other_id();

	listen_on(&w, CM_SPACE_TCP, SERVER_PORT, 1);
	assert_int_equal(cm_id_bind(theirs, &a), -EADDRINUSE);
	server_lives = false;
	assert_int_equal(cm_id_bind(theirs, &a), 0);
}

CASE(a_request_goes_to_who_listens)
{
	uint8_t mad[MAD_LEN];
	struct flow flow;

	request(&flow, mad);
	assert_int_equal(cm_route(other, &flow, mad, true), CM_NOWHERE);
	listen_on(&w, CM_SPACE_TCP, SERVER_PORT, 1);
	assert_int_equal(cm_route(other, &flow, mad, true), 5);
	assert_int_equal(cm_route(w.ends[SERVER].cm, &flow, mad, true), CM_HERE);
	server_lives = false;
	assert_true(cm_is_gone(other, 5));
	assert_int_equal(cm_route(other, &flow, mad, true), CM_NOWHERE);
}

CASE(a_repeat_goes_to_who_has_the_first_one)
{
	struct cm *server = w.ends[SERVER].cm;
	struct cm_addr a = port(SERVER_PORT);
	struct cm_id *listener = listen_on(&w, CM_SPACE_TCP, SERVER_PORT, 1), *theirs = other_id(), *made;
	uint8_t mad[MAD_LEN];
	struct flow flow;

	request(&flow, mad);
	cm_input(server, &flow, mad, w.now_ns);
	made = requested(&w);
	accept_it(&w, made, 0x5678);
	cm_id_destroy(listener, w.now_ns);
	assert_int_equal(cm_id_bind(theirs, &a), 0);
	assert_int_equal(cm_id_listen(theirs, 1), 0);
	assert_int_equal(cm_route(other, &flow, mad, true), 5);
	assert_int_equal(cm_route(server, &flow, mad, true), CM_HERE);
	/* Passed on by one who remembered wrongly. */
	assert_int_equal(cm_route(other, &flow, mad, false), CM_HERE);
}

CASE(the_peer_of_a_killed_process_is_told)
{
	struct connection c = connected(&w);
	struct flow flow;
	uint8_t mad[MAD_LEN];
	unsigned sent = 0;

	assert_int_equal(state_of(c.server), CONN_ESTABLISHED);
	assert_true(cm_take_over(other, -1));
	assert_int_equal(cm_registrar(other), OTHER_SLOT);
	cm_look_for_the_dead(other);
	cm_expire(other, w.now_ns);
	assert_false(cm_output(other, &flow, mad));
	server_lives = false;
	cm_look_for_the_dead(other);
	assert_int_equal(cm_deadline(other), 0);
	for (int i = 0; i < 100; i++, w.now_ns += SECONDS / 10) {
		cm_expire(other, w.now_ns);
		while (cm_output(other, &flow, mad)) {
			assert_int_equal(attribute_of(mad), CM_DREQ);
			cm_input(w.ends[CLIENT].cm, &flow, mad, w.now_ns);
			sent++;
		}
	}
	take(&w, CLIENT, CM_DISCONNECTED);
	assert_int_equal(state_of(c.client), CONN_DREQ_RCVD);
	assert_int_equal(sent, CM_WILL_SENDS_MAX);
	assert_int_equal(cm_deadline(other), UINT64_MAX);
}

/* Any process of the user can have written it. */
CASE(rubbish_among_wills_is_dropped)
{
	struct registry *r = &w.ends[SERVER].cm->registry;
	struct registry_will will = {.local_comm_id = 6u << CM_SLOT_SHIFT | 1, .remote_comm_id = 1, .remote_qpn = 2};
	struct flow flow;
	uint8_t mad[MAD_LEN];

	memcpy(will.flow.src, w.ends[SERVER].addr.ip, 16);
	memcpy(will.flow.dst, w.ends[CLIENT].addr.ip, 16);
	registry_make_will(r, &will); /* of another slot */
	will.local_comm_id = 5u << CM_SLOT_SHIFT | 1;
	registry_make_will(r, &will);
	registry_make_will(r, &will); /* once more */
	server_lives = false;
	cm_look_for_the_dead(other);
	assert_true(cm_has_wills(other));
	cm_expire(other, w.now_ns);
	assert_int_equal(other->wills_open, 1);
	assert_true(cm_output(other, &flow, mad));
	assert_false(cm_output(other, &flow, mad));
	assert_true(cm_has_wills(other));
	/* As many as are carried out at a time: the others wait until those are done, and take no turns. */
	other->wills_open += REGISTRY_WILLS;
	cm_look_for_the_dead(other);
	assert_int_not_equal(cm_deadline(other), 0);
	other->wills_open -= REGISTRY_WILLS;
	for (int i = 0; i < 100; i++, w.now_ns += SECONDS / 10) {
		cm_expire(other, w.now_ns);
		while (cm_output(other, &flow, mad))
			assert_int_equal(attribute_of(mad), CM_DREQ);
	}
	assert_int_equal(other->wills_open, 0);
	assert_false(cm_has_wills(other));
}

CASE(who_hung_up_leaves_no_will)
{
	struct connection c = connected(&w);
	struct flow flow;
	uint8_t mad[MAD_LEN];

	assert_int_equal(cm_id_disconnect(c.client, w.now_ns), 0);
	run_for(&w, SECONDS / 10);
	take(&w, SERVER, CM_DISCONNECTED);
	assert_int_equal(cm_id_disconnect(c.server, w.now_ns), 0);
	server_lives = false;
	cm_look_for_the_dead(other);
	cm_expire(other, w.now_ns);
	assert_false(cm_output(other, &flow, mad));
}
