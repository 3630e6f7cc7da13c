/* SPDX-License-Identifier: BSD-2-Clause */
/* Two devices of a process, each with an address of its own: which of them an id is on. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <rdma/rdma_user_cm.h>
#include <stdlib.h>

#include "rdmacm/ucma.h"
#include "rdmacm/ucma_addr.h"
#include "support/test.h"

enum { DEVICES = 2, PORT = 7471, SPACE = RDMA_PS_TCP };

static struct ucma_end ends[DEVICES];
static size_t turn;
static uint64_t now_ns;

static void *get(void *ctx, size_t bytes)
{
	return calloc(1, bytes);
}

static void put(void *ctx, void *p, size_t bytes)
{
	free(p);
}

/* 10.0.0.1 and 10.0.0.2; 0 is the wildcard. */
static struct sockaddr_in6 sockaddr(int device, uint16_t port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in6 out = {0};

	if (device)
		in.sin_addr.s_addr = htonl(0x0a000000 + (uint32_t)device);
	memcpy(&out, &in, sizeof(in));
	return out;
}

static struct cm_addr address(int device, uint16_t port)
{
	struct sockaddr_in6 s = sockaddr(device, port);
	struct cm_addr a;

	assert_int_equal(ucma_addr_read(&a, &s, sizeof(struct sockaddr_in)), 0);
	return a;
}

/* The host reaches its own addresses from themselves. */
static int route(void *ctx, struct cm_addr *src, struct cm_addr *dst)
{
	uint16_t port = src->port;

	*src = *dst;
	src->port = port;
	return 0;
}

static const struct ucma_host host = {.route = route, .turn = &turn};

static int setup(void **state)
{
	for (uint32_t d = 0; d < DEVICES; d++) {
		struct cm_config c = {.alloc = {.get = get, .put = put},
				      .slot = d,
				      .ca_guid = d + 1,
				      .gid_count = 1,
				      .bound = true,
				      .cm_count = DEVICES,
				      .cm_index = d,
				      .port_first = 32768,
				      .port_last = 60999};
		struct cm_addr a = address((int)d + 1, 0);

		memcpy(c.gids[0].raw, a.ip, sizeof(a.ip));
		c.gids[0].ip_mtu = 1500;
		ends[d] = (struct ucma_end){.cm = cm_create(&c), .node_guid = d + 1, .device_index = d};
		assert_non_null(ends[d].cm);
		assert_int_equal(cm_channel_create(ends[d].cm, NULL, &ends[d].channel), 0);
	}
	now_ns = 1000;
	turn = 0;
	return 0;
}

static int teardown(void **state)
{
	for (int d = 0; d < DEVICES; d++)
		cm_destroy(ends[d].cm);
	return 0;
}

/* Delivers messages to the device that has the address. */
static void settle(void)
{
	uint8_t mad[MAD_LEN];
	struct flow flow;

	for (int d = 0; d < DEVICES; d++)
		while (cm_output(ends[d].cm, &flow, mad))
			cm_input(ends[flow.dst[15] - 1].cm, &flow, mad, ++now_ns);
}

static ssize_t run(uint32_t number, const void *command, size_t len, size_t out)
{
	struct {
		struct rdma_ucm_cmd_hdr hdr;
		uint8_t command[320];
	} w = {.hdr = {.cmd = number, .in = (uint16_t)len, .out = (uint16_t)out}};
	ssize_t rc;

	memcpy(w.command, command, len);
	rc = ucma_command(&host, ends, DEVICES, &w, sizeof(w.hdr) + len, ++now_ns);
	settle();
	return rc < 0 ? rc : 0;
}

#define RUN(name, command, out) run(RDMA_USER_CM_CMD_##name, &(command), sizeof(command), out)
#define AT(p)                   ((uint64_t)(uintptr_t)(p))
#define CASE(name)              TEST_WITH(name, setup, teardown)

static uint32_t create(uint64_t uid)
{
	struct rdma_ucm_create_id_resp resp = {.id = 99};
	struct rdma_ucm_create_id cmd = {.uid = uid, .response = AT(&resp), .ps = SPACE, .qp_type = 2};

	assert_int_equal(RUN(CREATE_ID, cmd, sizeof(resp)), 0);
	return resp.id;
}

static ssize_t bind_id(uint32_t id, int device, uint16_t port)
{
	struct rdma_ucm_bind_ip cmd = {.addr = sockaddr(device, port), .id = id};

	return RUN(BIND_IP, cmd, 0);
}

static ssize_t listen_on(uint32_t id)
{
	struct rdma_ucm_listen cmd = {.id = id};

	return RUN(LISTEN, cmd, 0);
}

static struct rdma_ucm_event_resp event(uint32_t type, uint64_t uid)
{
	struct rdma_ucm_event_resp resp;
	struct rdma_ucm_get_event cmd = {.response = AT(&resp)};

	assert_int_equal(RUN(GET_EVENT, cmd, sizeof(resp)), 0);
	assert_int_equal(resp.event, type);
	assert_true(resp.uid == uid);
	return resp;
}

static uint32_t destroy(uint32_t id)
{
	struct rdma_ucm_destroy_id_resp resp = {.events_reported = 99};
	struct rdma_ucm_destroy_id cmd = {.response = AT(&resp), .id = id};

	assert_int_equal(RUN(DESTROY_ID, cmd, sizeof(resp)), 0);
	return resp.events_reported;
}

/* A bit for each device that has the id. */
static unsigned devices_of(uint32_t id)
{
	unsigned found = 0;

	for (unsigned d = 0; d < DEVICES; d++)
		found |= (unsigned)!!cm_id_find(ends[d].cm, id) << d;
	return found;
}

static uint64_t guid_of(uint32_t id)
{
	struct rdma_ucm_query_route_resp r;
	struct rdma_ucm_query cmd = {.response = AT(&r), .id = id};

	assert_int_equal(RUN(QUERY_ROUTE, cmd, sizeof(r)), 0);
	return r.node_guid;
}

/* Connects to an address, as the active side does; what the other gets. */
static struct rdma_ucm_event_resp request_to(uint32_t id, int device, uint64_t uid, uint64_t listener_uid)
{
	struct rdma_ucm_resolve_ip to = {.dst_addr = sockaddr(device, PORT), .id = id, .timeout_ms = 2000};
	struct rdma_ucm_resolve_route via = {.id = id, .timeout_ms = 2000};
	struct rdma_ucm_connect connect = {.conn_param = {.qp_num = 0x11 + id, .valid = 1}, .id = id};

	assert_int_equal(RUN(RESOLVE_IP, to, 0), 0);
	event(0, uid);
	assert_int_equal(RUN(RESOLVE_ROUTE, via, 0), 0);
	event(2, uid);
	assert_int_equal(RUN(CONNECT, connect, 0), 0);
	return event(4, listener_uid);
}

CASE(an_id_is_on_the_device_whose_address_it_has)
{
	for (int d = 1; d <= DEVICES; d++) {
		uint32_t id = create(1);

		assert_int_equal(devices_of(id), 3);
		assert_int_equal(bind_id(id, d, PORT), 0);
		assert_int_equal(devices_of(id), 1 << (d - 1));
		assert_true(guid_of(id) == (uint64_t)d);
		assert_int_equal(listen_on(id), 0);
	}
}

CASE(the_wildcard_hears_every_device)
{
	uint32_t listener = create(1);

	assert_int_equal(bind_id(listener, 0, PORT), 0);
	assert_int_equal(listen_on(listener), 0);
	assert_int_equal(listen_on(listener), -EINVAL);
	assert_int_equal(devices_of(listener), 3);
	for (int d = 1; d <= DEVICES; d++) {
		uint32_t client = create(2);
		struct rdma_ucm_event_resp e = request_to(client, d, 2, 1);

		assert_int_equal(devices_of(client), 1 << (d - 1));
		assert_true(guid_of(e.id) == (uint64_t)d && guid_of(client) == (uint64_t)d);
		assert_int_equal(devices_of(e.id), 1 << (d - 1));
		destroy(e.id);
		destroy(client);
	}
	assert_int_equal(destroy(listener), 2);
	assert_int_equal(devices_of(listener), 0);
}

CASE(a_port_is_the_same_on_every_device)
{
	uint32_t there = create(1), id = create(2), drawn = create(3);
	struct cm_id_info info[DEVICES];

	assert_int_equal(bind_id(there, 2, PORT), 0);
	/* Free on the first device, and taken on the second. */
	assert_int_equal(bind_id(id, 0, PORT), -EADDRNOTAVAIL);
	assert_int_equal(devices_of(id), 3);
	assert_int_equal(bind_id(id, 1, PORT), 0);
	assert_int_equal(listen_on(drawn), 0);
	for (int d = 0; d < DEVICES; d++)
		cm_id_query(cm_id_find(ends[d].cm, drawn), &info[d]);
	assert_true(info[0].local.port && info[0].local.port == info[1].local.port);
}

CASE(what_fails_leaves_the_id_everywhere)
{
	struct rdma_ucm_bind_ip nowhere = {.addr = sockaddr(9, PORT), .id = create(1)};
	struct rdma_ucm_resolve_ip to = {.dst_addr = sockaddr(9, PORT), .id = nowhere.id, .timeout_ms = 2000};

	assert_int_equal(RUN(BIND_IP, nowhere, 0), -EADDRNOTAVAIL);
	assert_int_equal(RUN(RESOLVE_IP, to, 0), -ENODEV);
	assert_int_equal(devices_of(nowhere.id), 3);
	assert_int_equal(destroy(nowhere.id), 0);
	assert_int_equal(devices_of(nowhere.id), 0);
}

CASE(numbers_are_of_one_device_each)
{
	uint32_t listener = create(1), ids[20];

	assert_int_equal(bind_id(listener, 0, PORT), 0);
	assert_int_equal(listen_on(listener), 0);
	for (int i = 0; i < 20; i += 2) {
		ids[i] = create(2);
		ids[i + 1] = request_to(ids[i], 1 + i / 2 % DEVICES, 2, 1).id;
	}
	for (int i = 0; i < 20; i++) {
		assert_int_not_equal(ids[i], listener);
		for (int k = 0; k < i; k++)
			assert_int_not_equal(ids[i], ids[k]);
	}
}

CASE(devices_take_turns_with_their_events)
{
	uint32_t id[DEVICES];
	struct rdma_ucm_event_resp resp;
	struct rdma_ucm_get_event cmd = {.response = AT(&resp)};

	for (int d = 0; d < DEVICES; d++) {
		id[d] = create((uint64_t)d + 1);
		assert_int_equal(bind_id(id[d], d + 1, 0), 0);
		for (int i = 0; i < 3; i++)
			assert_int_equal(cm_id_tell(cm_id_find(ends[d].cm, id[d]), CM_USER, 0, 0), 0);
	}
	for (int i = 0; i < 6; i++) {
		assert_int_equal(RUN(GET_EVENT, cmd, sizeof(resp)), 0);
		assert_true(i % 2 ? resp.uid == 1 : resp.uid == 2);
	}
	assert_int_equal(RUN(GET_EVENT, cmd, sizeof(resp)), -EAGAIN);
	assert_int_equal(destroy(id[0]), 3);
}
