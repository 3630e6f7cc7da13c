/* SPDX-License-Identifier: BSD-2-Clause */
/* Ports of ids whose connections are streams: they are TCP's, whose other users the connection manager does not know.
 */
#include "rdmacm/ucma.h"

#include <netinet/in.h>
#include <rdma/rdma_user_cm.h>

#include "support/mpa_hand.h"
#include "support/test.h"

/* What TCP was asked, and what it answers. */
static unsigned binds, listens;
static unsigned refusals; /* so many times from now on the port is somebody's */
static int answer;        /* afterwards */
static bool was_alone;
static uint16_t bound[128]; /* the port that was asked for each time */

static int host_bind(void *ctx, const struct cm_id *id, bool alone)
{
	struct cm_id_info info;

	cm_id_query(id, &info);
	assert_int_not_equal(cm_id_listener(id), 0);
	assert_int_not_equal(info.local.port, 0);
	bound[binds++ % 128] = info.local.port;
	was_alone = alone;
	if (!refusals)
		return answer;
	refusals--;
	return -EADDRINUSE;
}

static int host_listen(void *ctx, const struct cm_id *id, int backlog)
{
	listens++;
	return answer;
}

static const struct ucma_host host = {.bind = host_bind, .listen = host_listen};

static int set_up_ports(void **state)
{
	binds = listens = refusals = 0;
	answer = 0;
	return set_up(state);
}

static ssize_t run(uint32_t number, const void *command, size_t len)
{
	struct {
		struct rdma_ucm_cmd_hdr hdr;
		uint8_t command[320];
	} w = {.hdr = {.cmd = number, .in = (uint16_t)len}};
	ssize_t rc;

	memcpy(w.command, command, len);
	rc = ucma_command(&host, &(struct ucma_end){.cm = cm, .channel = channel}, 1, &w, sizeof(w.hdr) + len, now_ns);
	return rc < 0 ? rc : 0;
}

static struct cm_id *new_id(void)
{
	struct cm_id *id;

	assert_int_equal(cm_id_create(channel, CM_SPACE_TCP, QPT_RC, 1, &id), 0);
	return id;
}

static ssize_t bind_id(const struct cm_id *id, uint16_t port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct rdma_ucm_bind cmd = {.id = cm_id_number(id), .addr_size = sizeof(in)};

	memcpy(&cmd.addr, &in, sizeof(in));
	return run(RDMA_USER_CM_CMD_BIND, &cmd, sizeof(cmd));
}

static ssize_t listen_for(const struct cm_id *id)
{
	struct rdma_ucm_listen cmd = {.id = cm_id_number(id)};

	return run(RDMA_USER_CM_CMD_LISTEN, &cmd, sizeof(cmd));
}

static uint16_t port_of(const struct cm_id *id)
{
	struct cm_id_info info;

	cm_id_query(id, &info);
	return info.local.port;
}

#define CASE(name) TEST_WITH(name, set_up_ports, tear_down)

CASE(a_port_that_is_drawn_is_taken_at_once)
{
	struct cm_id *id = new_id();

	refusals = 9;
	assert_int_equal(bind_id(id, 0), 0);
	assert_int_equal(binds, 10);
	assert_true(was_alone);
	assert_int_equal(port_of(id), bound[9]);
	assert_true(bound[9] != bound[0] || bound[9] != bound[1]);
	assert_int_equal(bind_id(id, 0), -EINVAL); /* as with every id that is bound */
	assert_int_equal(listen_for(id), 0);
	assert_int_equal(binds, 10);
	assert_int_equal(listens, 1);
}

CASE(an_id_that_listens_unbound_draws_likewise)
{
	struct cm_id *id = new_id();

	refusals = 2;
	assert_int_equal(listen_for(id), 0);
	assert_int_equal(binds, 3);
	assert_true(was_alone);
	assert_int_equal(port_of(id), bound[2]);
	assert_int_equal(listens, 1);
}

/* Where no port is free it says so, and the id is as it was. */
CASE(a_host_without_ports_is_told)
{
	struct cm_id *id = new_id();

	refusals = 10000;
	assert_int_equal(bind_id(id, 0), -EADDRINUSE);
	assert_true(binds < 1000);
	assert_int_equal(port_of(id), 0);
	assert_int_equal(cm_id_listener(id), 0);
	assert_int_equal(listen_for(id), -EADDRINUSE);
	assert_int_equal(listens, 0);
	refusals = 0;
	assert_int_equal(bind_id(id, 0), 0);
}

/* Whether TCP has a port that a program asks for shows when it listens, and not before. */
CASE(a_port_that_was_asked_for_is_judged_when_it_listens)
{
	struct cm_id *id = new_id();

	answer = -EADDRINUSE;
	assert_int_equal(bind_id(id, 7000), 0);
	assert_int_equal(binds, 1);
	assert_false(was_alone);
	assert_int_equal(port_of(id), 7000);
	assert_int_equal(listen_for(id), -EADDRINUSE);
	answer = 0;
	assert_int_equal(listen_for(id), 0);
	assert_int_equal(listens, 2);
	assert_int_equal(port_of(id), 7000);
}

/* A descriptor too few is no reason for another port; who listens is told. */
CASE(a_port_that_cannot_be_taken_is_told_when_it_listens)
{
	struct cm_id *id = new_id();

	answer = -EMFILE;
	assert_int_equal(bind_id(id, 0), 0);
	assert_int_equal(binds, 1);
	assert_int_equal(listen_for(id), -EMFILE);
}

/* The port is released when the id goes, and when it connects: then the connection binds to the port. */
CASE(a_port_is_given_back)
{
	struct cm_addr src = {.family = CM_IPV4}, dst = {.family = CM_IPV4, .port = PORT};
	struct cm_param p = {.qpn = qp_number(qp)};
	struct cm_id *id = new_id();

	assert_int_equal(bind_id(id, 0), 0);
	cm_id_destroy(id, now_ns);
	drain();
	assert_int_equal(resets, 1);
	memcpy(src.ip, here, 16);
	memcpy(dst.ip, there, 16);
	id = new_id();
	assert_int_equal(bind_id(id, 0), 0);
	assert_int_equal(cm_id_resolve_addr(id, &src, &dst), 0);
	assert_int_equal(cm_id_resolve_route(id), 0);
	assert_int_equal(resets, 1);
	assert_int_equal(cm_id_connect(id, &p, now_ns), 0);
	drain();
	assert_int_equal(resets, 2);
	assert_int_not_equal(opened, 0);
}
