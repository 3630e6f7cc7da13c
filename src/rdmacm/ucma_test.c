/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands as librdmacm writes them, on one machine that receives its own messages. Wrong commands get the errors of
 * Linux's drivers/infiniband/core/ucma.c.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <rdma/rdma_user_cm.h>

#include "rdmacm/ucma.h"
#include "support/test.h"

enum { OTHER_FD = 42, PORT = 7174 };

static struct cm *cm;
static struct cm_channel *channel, *other;
static uint64_t now_ns;
static int route_error, join_error;
static unsigned joins, leaves; /* of the host */

static void *get(void *ctx, size_t bytes)
{
	void *p = aligned_alloc(64, (bytes + 63) & ~(size_t)63);

	return p ? memset(p, 0, bytes) : NULL;
}

static void put(void *ctx, void *p, size_t bytes)
{
	free(p);
}

static struct cm_addr address(uint16_t port)
{
	return (struct cm_addr){.ip = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1}, .port = port, .family = CM_IPV4};
}

static int route(void *ctx, struct cm_addr *src, struct cm_addr *dst)
{
	uint16_t port = src->port;

	if (route_error)
		return route_error;
	*src = address(port);
	return 0;
}

static int channel_of_fd(void *ctx, int fd, struct cm_channel **out)
{
	if (fd != OTHER_FD)
		return fd < 0 ? -ENOENT : -EINVAL;
	*out = other;
	return 0;
}

static int host_join(void *ctx, const struct cm_id *id, const uint8_t gid[16], uint32_t ifindex)
{
	joins++;
	return join_error;
}

static void host_leave(void *ctx)
{
	leaves++;
}

static uint16_t first_port(void *ctx)
{
	return 1024;
}

static const struct ucma_host host = {
	.route = route, .channel = channel_of_fd, .join = host_join, .leave = host_leave, .first_port = first_port};

static int setup(void **state)
{
	struct cm_config c = {.alloc = {.get = get, .put = put},
			      .ca_guid = 1,
			      .gid_count = 1,
			      .port_first = 32768,
			      .port_last = 60999};
	struct cm_addr a = address(0);

	memcpy(c.gids[0].raw, a.ip, sizeof(a.ip));
	c.gids[0].ip_mtu = 1500;
	cm = cm_create(&c);
	assert_non_null(cm);
	assert_int_equal(cm_channel_create(cm, NULL, &channel), 0);
	assert_int_equal(cm_channel_create(cm, NULL, &other), 0);
	now_ns = 1000;
	route_error = join_error = 0;
	joins = leaves = 0;
	return 0;
}

static int teardown(void **state)
{
	cm_destroy(cm);
	return 0;
}

/* Delivers the machine's messages to itself until there are none. */
static void settle(void)
{
	uint8_t mad[MAD_LEN];
	struct flow flow;

	now_ns += 1000;
	while (cm_output(cm, &flow, mad))
		cm_input(cm, &flow, mad, now_ns);
}

/* ---- a write() -------------------------------------------------------------------------------------- */

struct written {
	struct rdma_ucm_cmd_hdr hdr;
	uint8_t command[320];
};

static ssize_t carry_out(struct cm_channel *ch, const void *buf, size_t len, uint64_t at_ns)
{
	const struct ucma_end end = {.cm = cm, .channel = ch, .node_guid = 0x1122334455667788, .device_index = 3};

	return ucma_command(&host, &end, 1, buf, len, at_ns);
}

static ssize_t run_on(struct cm_channel *ch, uint32_t number, const void *command, size_t in, size_t out)
{
	struct written w = {.hdr = {.cmd = number, .in = (uint16_t)in, .out = (uint16_t)out}};
	ssize_t rc;

	memcpy(w.command, command, in);
	rc = carry_out(ch, &w, sizeof(w.hdr) + in, now_ns);
	if (rc >= 0)
		assert_int_equal(rc, sizeof(w.hdr) + in);
	settle();
	return rc < 0 ? rc : 0;
}

#define RUN(name, command, out) run_on(channel, RDMA_USER_CM_CMD_##name, &(command), sizeof(command), out)
#define AT(p)                   ((uint64_t)(uintptr_t)(p))

static uint32_t create(uint64_t uid, uint16_t space)
{
	struct rdma_ucm_create_id_resp resp = {.id = 99};
	struct rdma_ucm_create_id cmd = {.uid = uid, .response = AT(&resp), .ps = space, .qp_type = 2};

	assert_int_equal(RUN(CREATE_ID, cmd, sizeof(resp)), 0);
	return resp.id;
}

static struct sockaddr_in6 sockaddr(uint16_t port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in6 out = {0};

	inet_pton(AF_INET, "10.0.0.1", &in.sin_addr);
	memcpy(&out, &in, sizeof(in));
	return out;
}

static ssize_t bind_id(uint32_t id, uint16_t port)
{
	struct rdma_ucm_bind_ip cmd = {.addr = sockaddr(port), .id = id};

	return RUN(BIND_IP, cmd, 0);
}

static struct rdma_ucm_event_resp event(uint32_t type)
{
	struct rdma_ucm_event_resp resp;
	struct rdma_ucm_get_event cmd = {.response = AT(&resp)};

	assert_int_equal(RUN(GET_EVENT, cmd, sizeof(resp)), 0);
	assert_int_equal(resp.event, type);
	return resp;
}

static uint32_t resolved(uint64_t uid, uint16_t space)
{
	uint32_t id = create(uid, space);
	struct rdma_ucm_resolve_ip to = {.dst_addr = sockaddr(PORT), .id = id, .timeout_ms = 2000};
	struct rdma_ucm_resolve_route via = {.id = id, .timeout_ms = 2000};

	assert_int_equal(RUN(RESOLVE_IP, to, 0), 0);
	assert_int_equal(event(0).uid, uid);
	assert_int_equal(RUN(RESOLVE_ROUTE, via, 0), 0);
	assert_int_equal(event(2).uid, uid);
	return id;
}

static uint32_t listening(uint16_t space)
{
	uint32_t id = create(1, space);
	struct rdma_ucm_listen cmd = {.id = id, .backlog = 0};

	assert_int_equal(bind_id(id, PORT), 0);
	assert_int_equal(RUN(LISTEN, cmd, 0), 0);
	return id;
}

static struct rdma_ucm_conn_param param(uint32_t qpn, const char *data)
{
	struct rdma_ucm_conn_param p = {.qp_num = qpn,
					.private_data_len = (uint8_t)(strlen(data) + 1),
					.responder_resources = 2,
					.initiator_depth = 3,
					.retry_count = 7,
					.rnr_retry_count = 7,
					.valid = 1};

	strcpy((char *)p.private_data, data);
	return p;
}

static uint32_t events_of_destroyed(uint32_t id)
{
	struct rdma_ucm_destroy_id_resp resp = {.events_reported = 99};
	struct rdma_ucm_destroy_id cmd = {.response = AT(&resp), .id = id};

	assert_int_equal(RUN(DESTROY_ID, cmd, sizeof(resp)), 0);
	return resp.events_reported;
}

/* ---- what programs do ------------------------------------------------------------------------------- */

#define CASE(name) TEST_WITH(name, setup, teardown)

CASE(a_connection_from_its_beginning_to_its_end)
{
	uint32_t listener = listening(RDMA_PS_TCP), client = resolved(2, RDMA_PS_TCP), server;
	struct rdma_ucm_connect connect = {.conn_param = param(0x11, "hello"), .id = client};
	struct rdma_ucm_accept accept = {.uid = 3, .conn_param = param(0x12, "welcome")};
	struct rdma_ucm_accept confirm = {.id = client};
	struct rdma_ucm_event_resp e;
	struct ib_uverbs_qp_attr attr;
	struct rdma_ucm_init_qp_attr to = {.response = AT(&attr), .id = client, .qp_state = 2};
	struct rdma_ucm_disconnect hang_up = {.id = client};
	struct rdma_ucm_notify heard = {.id = client, .event = 4};

	assert_int_equal(RUN(INIT_QP_ATTR, to, sizeof(attr)), 0);
	assert_int_equal(attr.qp_attr_mask, QPA_STATE | QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS);
	assert_int_equal(RUN(CONNECT, connect, 0), 0);
	assert_int_equal(RUN(INIT_QP_ATTR, to, sizeof(attr)), -EINVAL);
	e = event(4);
	assert_int_equal(e.uid, 1);
	assert_int_not_equal(e.id, listener);
	assert_int_equal(e.param.conn.qp_num, 0x11);
	assert_int_equal(e.param.conn.private_data_len, 56);
	assert_string_equal((char *)e.param.conn.private_data, "hello");
	assert_int_equal(e.param.conn.responder_resources, 3);
	assert_int_equal(e.param.conn.initiator_depth, 2);
	server = e.id;
	accept.id = server;
	assert_int_equal(RUN(ACCEPT, accept, 0), 0);
	e = event(5);
	assert_int_equal(e.uid, 2);
	assert_int_equal(e.id, client);
	assert_int_equal(e.param.conn.private_data_len, 196);
	assert_string_equal((char *)e.param.conn.private_data, "welcome");
	assert_int_equal(RUN(INIT_QP_ATTR, to, sizeof(attr)), 0);
	assert_int_equal(attr.dest_qp_num, 0x12);
	assert_int_equal(attr.path_mtu, 5); /* to ourselves */
	assert_int_equal(attr.max_dest_rd_atomic, 2);
	assert_int_equal(attr.ah_attr.is_global, 1);
	assert_memory_equal(attr.ah_attr.grh.dgid, address(0).ip, 16);
	assert_int_equal(RUN(ACCEPT, confirm, 0), 0);
	e = event(9);
	assert_int_equal(e.uid, 3);
	assert_int_equal(e.id, server);
	assert_int_equal(RUN(NOTIFY, heard, 0), -EISCONN);
	assert_int_equal(RUN(DISCONNECT, hang_up, 0), 0);
	assert_int_equal(event(10).uid, 3);
	assert_int_equal(events_of_destroyed(server), 2);
	assert_int_equal(event(10).uid, 2);
	assert_int_equal(events_of_destroyed(client), 4);
	assert_int_equal(events_of_destroyed(listener), 1);
}

CASE(datagrams_have_a_layout_of_their_own)
{
	uint32_t client;
	struct rdma_ucm_connect connect = {.conn_param = param(0, "hello")};
	struct rdma_ucm_accept accept = {.uid = 3, .conn_param = param(0x12, "welcome")};
	struct rdma_ucm_event_resp e;

	listening(RDMA_PS_UDP);
	client = resolved(2, RDMA_PS_UDP);
	connect.id = client;
	assert_int_equal(RUN(CONNECT, connect, 0), 0);
	e = event(4);
	assert_int_equal(e.param.ud.private_data_len, 180);
	assert_string_equal((char *)e.param.ud.private_data, "hello");
	accept.id = e.id;
	assert_int_equal(RUN(ACCEPT, accept, 0), 0);
	e = event(9);
	assert_int_equal(e.uid, 2);
	assert_int_equal(e.param.ud.qp_num, 0x12);
	assert_int_equal(e.param.ud.qkey, 0x01234567);
	assert_string_equal((char *)e.param.ud.private_data, "welcome");
	assert_memory_equal(e.param.ud.ah_attr.grh.dgid, address(0).ip, 16);
	assert_int_equal(e.param.ud.ah_attr.port_num, 1);
}

CASE(a_route_is_told_as_far_as_it_is_known)
{
	struct rdma_ucm_query_route_resp r;
	struct rdma_ucm_query q = {.response = AT(&r), .id = create(1, RDMA_PS_TCP)};
	struct sockaddr_in in;

	assert_int_equal(RUN(QUERY_ROUTE, q, sizeof(r)), 0);
	assert_true(r.node_guid == 0);
	assert_int_equal(r.num_paths, 0);
	q.id = resolved(2, RDMA_PS_TCP);
	assert_int_equal(RUN(QUERY_ROUTE, q, sizeof(r)), 0);
	assert_true(r.node_guid == 0x1122334455667788);
	assert_int_equal(r.ibdev_index, 3);
	assert_int_equal(r.port_num, 1);
	assert_int_equal(r.num_paths, 1);
	assert_memory_equal(r.ib_route[0].sgid, address(0).ip, 16);
	assert_int_equal(r.ib_route[0].pkey, 0xffff);
	memcpy(&in, &r.dst_addr, sizeof(in));
	assert_int_equal(in.sin_family, AF_INET);
	assert_int_equal(ntohs(in.sin_port), PORT);
}

CASE(what_cannot_be_reached_is_said_at_once)
{
	struct rdma_ucm_resolve_ip to = {.dst_addr = sockaddr(PORT), .id = create(2, RDMA_PS_TCP), .timeout_ms = 1};

	route_error = -ENETUNREACH;
	assert_int_equal(RUN(RESOLVE_IP, to, 0), -ENETUNREACH);
	assert_int_equal(cm_channel_events(channel), 0);
	route_error = 0;
	assert_int_equal(RUN(RESOLVE_IP, to, 0), 0);
	event(0);
	route_error = -ENETUNREACH;
	assert_int_equal(RUN(RESOLVE_IP, to, 0), -EINVAL);
}

/* Its peer is told, and need not wait for a program that has given up. */
CASE(what_cannot_be_accepted_is_refused)
{
	uint32_t client;
	struct rdma_ucm_connect connect = {.conn_param = param(0x11, "hello")};
	struct rdma_ucm_accept accept = {.uid = 3, .conn_param = param(0x12, "welcome")};

	listening(RDMA_PS_TCP);
	client = resolved(2, RDMA_PS_TCP);
	connect.id = client;
	assert_int_equal(RUN(CONNECT, connect, 0), 0);
	accept.id = event(4).id;
	accept.conn_param.private_data_len = 197;
	assert_int_equal(RUN(ACCEPT, accept, 0), -EINVAL);
	assert_int_equal(event(8).status, 28);
	accept.conn_param.private_data_len = 196;
	assert_int_equal(RUN(ACCEPT, accept, 0), -EINVAL);
}

CASE(options_are_taken_by_their_length)
{
	static const struct {
		uint32_t level, name, len;
		ssize_t rc;
	} row[] = {{0, 0, 1, 0},        {0, 0, 4, -EINVAL},  {0, 1, 4, 0},       {0, 1, 1, -EINVAL},
		   {0, 2, 4, 0},        {0, 2, 8, -EINVAL},  {0, 3, 1, 0},       {0, 3, 4, -EINVAL},
		   {0, 4, 4, -ENOSYS},  {1, 1, 71, -EINVAL}, {1, 1, 0, -EINVAL}, {1, 1, 72, -EINVAL},
		   {1, 2, 72, -ENOSYS}, {2, 0, 4, -ENOSYS}};
	uint8_t value[72] = {1};
	struct rdma_ucm_set_option cmd = {.id = create(1, RDMA_PS_TCP)};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		cmd.optval = AT(value);
		cmd.level = row[i].level;
		cmd.optname = row[i].name;
		cmd.optlen = row[i].len;
		assert_int_equal(RUN(SET_OPTION, cmd, 0), row[i].rc);
	}
	cmd.optval = 0;
	assert_int_equal(RUN(SET_OPTION, cmd, 0), -EFAULT);
}

CASE(an_id_moves_to_another_channel)
{
	struct rdma_ucm_migrate_resp resp;
	struct rdma_ucm_migrate_id cmd = {.response = AT(&resp), .fd = OTHER_FD};
	struct rdma_ucm_listen listen = {.backlog = 1};
	struct cm_id *id;

	assert_int_equal(cm_id_create(other, CM_SPACE_TCP, QPT_RC, 9, &id), 0);
	cmd.id = listen.id = cm_id_number(id);
	assert_int_equal(RUN(LISTEN, listen, 0), -EINVAL); /* it belongs to the other channel */
	assert_int_equal(RUN(MIGRATE_ID, cmd, sizeof(resp)), 0);
	assert_int_equal(resp.events_reported, 0);
	assert_int_equal(RUN(LISTEN, listen, 0), 0);
	assert_int_equal(RUN(MIGRATE_ID, cmd, sizeof(resp)), -EINVAL); /* it is not there any more */
	cmd.fd = OTHER_FD + 1;
	assert_int_equal(RUN(MIGRATE_ID, cmd, sizeof(resp)), -EINVAL);
	cmd.fd = UINT32_MAX;
	assert_int_equal(RUN(MIGRATE_ID, cmd, sizeof(resp)), -ENOENT);
	cmd.fd = OTHER_FD;
	cmd.id = 4711;
	assert_int_equal(RUN(MIGRATE_ID, cmd, sizeof(resp)), -ENOENT);
}

static struct rdma_ucm_join_mcast group_of(uint32_t id, const char *address, void *response)
{
	struct rdma_ucm_join_mcast cmd = {
		.response = AT(response), .uid = 77, .id = id, .addr_size = sizeof(struct sockaddr_in)};
	struct sockaddr_in in = {.sin_family = AF_INET};

	inet_pton(AF_INET, address, &in.sin_addr);
	memcpy(&cmd.addr, &in, sizeof(in));
	return cmd;
}

CASE(a_group_is_joined_and_left)
{
	uint32_t id = create(5, RDMA_PS_UDP);
	struct rdma_ucm_create_id_resp resp = {.id = 99};
	struct rdma_ucm_destroy_id_resp left = {.events_reported = 99};
	struct rdma_ucm_join_mcast join = group_of(id, "239.1.2.3", &resp);
	struct rdma_ucm_join_ip_mcast join_ip = {.response = AT(&resp), .uid = 78, .id = id};
	struct rdma_ucm_destroy_id leave = {.response = AT(&left)};
	static const uint8_t mgid[16] = {[10] = 0xff, [11] = 0xff, [12] = 239, [13] = 1, [14] = 2, [15] = 3};
	struct rdma_ucm_event_resp e;

	assert_int_equal(RUN(JOIN_MCAST, join, sizeof(resp)), -EINVAL); /* the id has no device */
	assert_int_equal(bind_id(id, PORT), 0);
	assert_int_equal(RUN(JOIN_MCAST, join, sizeof(resp)), 0);
	e = event(12);
	assert_int_equal(e.uid, 77);
	assert_int_equal(e.id, resp.id);
	assert_int_equal(e.status, 0);
	assert_int_equal(e.param.ud.qp_num, 0xffffff);
	assert_int_equal(e.param.ud.qkey, 0x01234567);
	assert_int_equal(e.param.ud.private_data_len, 0);
	assert_memory_equal(e.param.ud.ah_attr.grh.dgid, mgid, sizeof(mgid));
	assert_int_equal(e.param.ud.ah_attr.is_global, 1);
	leave.id = resp.id;
	assert_int_equal(RUN(LEAVE_MCAST, leave, sizeof(left)), 0);
	assert_int_equal(left.events_reported, 1);
	assert_int_equal(leaves, 1);
	assert_int_equal(RUN(LEAVE_MCAST, leave, sizeof(left)), -ENOENT);
	assert_int_equal(joins, 1);
	join.join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER;
	assert_int_equal(RUN(JOIN_MCAST, join, sizeof(resp)), 0);
	event(12);
	assert_int_equal(joins, 1); /* a member that only sends receives nothing */
	memcpy(&join_ip.addr, &join.addr, sizeof(join_ip.addr));
	join_error = -ENOMEM;
	assert_int_equal(RUN(JOIN_IP_MCAST, join_ip, sizeof(resp)), 0);
	e = event(13);
	assert_int_equal(e.uid, 78);
	assert_int_equal((int32_t)e.status, -ENOMEM);
	assert_int_equal(events_of_destroyed(id), 3);
	assert_int_equal(leaves, 2);
}

static ssize_t tell(uint32_t id, uint32_t type, int32_t status, uint64_t arg)
{
	struct {
		uint32_t id, reserved, event, status;
		uint64_t arg;
		uint8_t rest[296];
	} cmd = {.id = id, .event = type, .status = (uint32_t)status, .arg = arg};

	return run_on(channel, 24, &cmd, sizeof(cmd), 0);
}

/* A program's own events, which wait behind others like any event. */
CASE(a_program_tells_itself_an_event)
{
	enum { USER = 18, INTERNAL = 19, ADDRINFO_RESOLVED = 16 };
	uint32_t id = create(7, RDMA_PS_TCP), datagrams = create(8, RDMA_PS_UDP);
	const uint64_t arg = 0x1122334455667788;
	struct rdma_ucm_event_resp e;

	assert_int_equal(tell(id, USER, -5, arg), 0);
	assert_int_equal(tell(datagrams, INTERNAL, 0, ADDRINFO_RESOLVED), 0);
	e = event(USER);
	assert_int_equal(e.uid, 7);
	assert_int_equal(e.id, id);
	assert_int_equal((int32_t)e.status, -5);
	assert_memory_equal(&e.param, &arg, sizeof(arg));
	e = event(INTERNAL);
	assert_int_equal(e.uid, 8);
	assert_int_equal(e.param.conn.qp_num, ADDRINFO_RESOLVED); /* the first four bytes */
	assert_int_equal(tell(id, ADDRINFO_RESOLVED, 0, 0), -EINVAL);
	assert_int_equal(tell(4711, 0, 0, 0), -EINVAL);
	assert_int_equal(tell(4711, USER, 0, 0), -ENOENT);
	assert_int_equal(events_of_destroyed(id), 1);
}

static ssize_t resolve_service(uint32_t id)
{
	uint8_t cmd[88] = {0};

	memcpy(cmd, &id, sizeof(id));
	return run_on(channel, 23, cmd, sizeof(cmd), 0);
}

/* Linux asks InfiniBand's subnet administrator, and says so where there is none. */
CASE(services_are_of_infiniband)
{
	uint32_t id = create(1, RDMA_PS_TCP);

	assert_int_equal(resolve_service(id), -EINVAL);
	assert_int_equal(bind_id(id, PORT), 0);
	assert_int_equal(resolve_service(id), -EOPNOTSUPP);
	assert_int_equal(resolve_service(resolved(2, RDMA_PS_TCP)), -EINVAL);
	assert_int_equal(resolve_service(4711), -ENOENT);
}

/* ---- what is wrong ------------------------------------------------------------------------------------ */

CASE(what_is_no_command_is_refused)
{
	uint8_t bytes[320] = {0};
	struct rdma_ucm_cmd_hdr hdr = {.cmd = RDMA_USER_CM_CMD_GET_EVENT, .in = 8, .out = 400};

	assert_int_equal(carry_out(channel, &hdr, 7, 0), -EINVAL);
	assert_int_equal(carry_out(channel, &hdr, 8, 0), -EINVAL); /* shorter than its header says */
	assert_int_equal(run_on(channel, 25, bytes, 8, 0), -EINVAL);
	assert_int_equal(run_on(channel, UINT32_MAX, bytes, 8, 0), -EINVAL);
	assert_int_equal(run_on(channel, RDMA_USER_CM_CMD_GET_OPTION, bytes, 8, 0), -ENOSYS);
	assert_int_equal(run_on(channel, RDMA_USER_CM_CMD_LISTEN, bytes, 4, 0), -EINVAL);
	assert_int_equal(run_on(channel, RDMA_USER_CM_CMD_LISTEN, bytes, 8, 0), -ENOENT);
	assert_int_equal(run_on(channel, RDMA_USER_CM_CMD_CREATE_ID, bytes, 24, 0), -ENOSPC);
	assert_int_equal(run_on(channel, RDMA_USER_CM_CMD_CREATE_ID, bytes, 24, 4), -EINVAL);
	assert_int_equal(run_on(channel, RDMA_USER_CM_CMD_GET_EVENT, bytes, 8, 323), -ENOSPC);
	assert_int_equal(run_on(channel, RDMA_USER_CM_CMD_GET_EVENT, bytes, 8, 324), -EAGAIN);
}

CASE(an_event_that_cannot_be_told_stays)
{
	struct rdma_ucm_resolve_ip to = {.dst_addr = sockaddr(PORT), .id = create(2, RDMA_PS_TCP), .timeout_ms = 1};
	struct rdma_ucm_get_event nowhere = {0};

	assert_int_equal(RUN(RESOLVE_IP, to, 0), 0);
	assert_int_equal(RUN(GET_EVENT, nowhere, 336), -EFAULT);
	assert_int_equal(event(0).uid, 2);
}

/* Linux takes a command's bytes where they are, whatever hdr.in says, but for those that have grown. */
CASE(the_length_in_the_header_counts_where_a_command_has_grown)
{
	struct {
		struct rdma_ucm_cmd_hdr hdr;
		struct rdma_ucm_listen listen;
	} w = {.hdr = {.cmd = RDMA_USER_CM_CMD_LISTEN}, .listen = {.id = create(1, RDMA_PS_TCP)}};
	struct {
		struct rdma_ucm_cmd_hdr hdr;
		struct rdma_ucm_connect connect;
	} v = {.hdr = {.cmd = RDMA_USER_CM_CMD_CONNECT, .in = 279},
	       .connect = {.conn_param = param(1, ""), .id = w.listen.id}};

	assert_int_equal(carry_out(channel, &w, sizeof(w), 0), sizeof(w));
	assert_int_equal(carry_out(channel, &v, sizeof(v), 0), -EINVAL);
}

static ssize_t run_id(uint32_t number, size_t in, size_t id_at, uint32_t id, size_t out)
{
	uint8_t bytes[320] = {0};

	memcpy(bytes + id_at, &id, sizeof(id));
	return run_on(channel, number, bytes, in, out);
}

/* Each command with an id that is not there, and with one of another channel. */
CASE(ids_are_looked_up_by_every_command)
{
	static const struct {
		uint32_t number;
		uint16_t in, id_at, out;
	} row[] = {{1, 16, 8, 4}, {4, 8, 0, 0},     {5, 16, 8, 208}, {7, 8, 0, 0},  {8, 296, 280, 0}, {9, 264, 0, 0},
		   {10, 4, 0, 0}, {11, 16, 8, 144}, {14, 24, 8, 0},  {15, 8, 0, 0}, {19, 16, 8, 280}, {23, 88, 0, 0}};
	struct cm_id *elsewhere;

	assert_int_equal(cm_id_create(other, CM_SPACE_TCP, QPT_RC, 9, &elsewhere), 0);
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		assert_int_equal(run_id(row[i].number, row[i].in, row[i].id_at, 4711, row[i].out), -ENOENT);
		assert_int_equal(run_id(row[i].number, row[i].in, row[i].id_at, cm_id_number(elsewhere), row[i].out),
				 -EINVAL);
		if (row[i].out)
			assert_int_equal(run_id(row[i].number, row[i].in, row[i].id_at, 4711, 3),
					 row[i].number == 19 ? -ENOENT : -ENOSPC);
	}
}

/* What Linux judges before it looks for the id. */
CASE(what_makes_no_sense_is_refused_for_any_id)
{
	struct rdma_ucm_bind_ip bind = {.id = 4711};
	struct rdma_ucm_connect connect = {.id = 4711};
	struct rdma_ucm_reject reject = {.id = 4711, .reason = 27};
	struct rdma_ucm_init_qp_attr attr = {.id = 4711, .qp_state = 7};
	struct rdma_ucm_resolve_addr resolve = {.id = 4711, .dst_size = 16};
	struct rdma_ucm_resolve_ip resolve_ip = {.id = 4711};

	assert_int_equal(RUN(BIND_IP, bind, 0), -EINVAL);
	assert_int_equal(RUN(CONNECT, connect, 0), -EINVAL);
	assert_int_equal(RUN(REJECT, reject, 0), -EINVAL);
	assert_int_equal(RUN(INIT_QP_ATTR, attr, 144), -EINVAL);
	assert_int_equal(RUN(RESOLVE_ADDR, resolve, 0), -EINVAL);
	assert_int_equal(RUN(RESOLVE_IP, resolve_ip, 0), -EINVAL);
	bind.addr = sockaddr(1);
	connect.conn_param.valid = 1;
	reject.reason = 0;
	attr.qp_state = 1;
	resolve.dst_addr.ss_family = AF_INET;
	resolve_ip.dst_addr = sockaddr(1);
	assert_int_equal(RUN(BIND_IP, bind, 0), -ENOENT);
	assert_int_equal(RUN(CONNECT, connect, 0), -ENOENT);
	assert_int_equal(RUN(REJECT, reject, 0), -ENOENT);
	assert_int_equal(RUN(INIT_QP_ATTR, attr, 144), -ENOENT);
	assert_int_equal(RUN(RESOLVE_ADDR, resolve, 0), -ENOENT);
	assert_int_equal(RUN(RESOLVE_IP, resolve_ip, 0), -ENOENT);
}

CASE(commands_of_a_connection_need_one)
{
	uint32_t id = resolved(2, RDMA_PS_TCP), datagrams = create(3, RDMA_PS_UDP);
	struct rdma_ucm_accept accept = {.id = id, .conn_param = param(1, "")};
	uint8_t value[4] = {16};
	struct rdma_ucm_set_option timeout = {.optval = AT(value), .id = datagrams, .optname = 3, .optlen = 1};
	struct rdma_ucm_set_option reuse = {.optval = AT(value), .id = id, .optname = 1, .optlen = 4};

	assert_int_equal(run_id(RDMA_USER_CM_CMD_DISCONNECT, 4, 0, id, 0), -EINVAL);
	assert_int_equal(run_id(RDMA_USER_CM_CMD_REJECT, 264, 0, id, 0), -EINVAL);
	assert_int_equal(RUN(ACCEPT, accept, 0), -EINVAL);
	assert_int_equal(RUN(SET_OPTION, timeout, 0), -EINVAL);
	assert_int_equal(RUN(SET_OPTION, reuse, 0), 0);
	value[0] = 0;
	assert_int_equal(RUN(SET_OPTION, reuse, 0), -EINVAL); /* bound */
}

/* ---- QUERY ------------------------------------------------------------------------------------------ */

CASE(paths_are_records_as_on_the_wire)
{
	struct {
		uint32_t num, reserved, flags, more;
		uint8_t record[64];
		uint8_t beyond[8];
	} r;
	struct rdma_ucm_query q = {.response = AT(&r), .id = create(1, RDMA_PS_TCP), .option = RDMA_USER_CM_QUERY_PATH};

	memset(&r, 0xee, sizeof(r));
	assert_int_equal(RUN(QUERY, q, 7), -ENOSPC);
	assert_int_equal(RUN(QUERY, q, sizeof(r)), 0);
	assert_int_equal(r.num, 0);
	assert_int_equal(r.flags, 0xeeeeeeee);
	q.id = resolved(2, RDMA_PS_TCP);
	assert_int_equal(RUN(QUERY, q, 80), 0); /* Linux wants more than the record takes */
	assert_int_equal(r.num, 1);
	assert_int_equal(r.flags, 0xeeeeeeee);
	assert_int_equal(RUN(QUERY, q, sizeof(r)), 0);
	assert_int_equal(r.num, 1);
	assert_int_equal(r.flags, 0x2b);
	assert_memory_equal(r.record + 8, address(0).ip, 16);
	assert_memory_equal(r.record + 24, address(0).ip, 16);
	assert_int_equal(r.record[47], 64);   /* hop limit */
	assert_int_equal(r.record[49], 0x81); /* reversible, one path */
	assert_int_equal(r.record[50] << 8 | r.record[51], 0xffff);
	assert_int_equal(r.record[54], 2 << 6 | 5); /* exactly 4096 bytes, to ourselves */
	assert_int_equal(r.beyond[0], 0xee);
	q.option = 3; /* services */
	assert_int_equal(RUN(QUERY, q, 7), -ENOSPC);
	assert_int_equal(RUN(QUERY, q, 8), -ENODATA);
	q.option = 4;
	assert_int_equal(RUN(QUERY, q, sizeof(r)), -ENOSYS);
}

CASE(gids_are_addresses_with_a_service)
{
	struct rdma_ucm_query_addr_resp r;
	struct rdma_ucm_query q = {.response = AT(&r), .id = create(1, RDMA_PS_TCP), .option = RDMA_USER_CM_QUERY_GID};
	const uint8_t *dst = (const uint8_t *)&r.dst_addr;
	static const uint8_t service[8] = {0, 0, 0, 0, 1, 6, PORT >> 8, PORT & 0xff}, none[16];

	assert_int_equal(RUN(QUERY, q, 271), -ENOSPC);
	assert_int_equal(RUN(QUERY, q, sizeof(r)), 0);
	assert_true(r.node_guid == 0);
	assert_int_equal(r.dst_size, 48);
	assert_memory_equal(dst + 8, none, 16);
	q.id = resolved(2, RDMA_PS_TCP);
	assert_int_equal(RUN(QUERY, q, sizeof(r)), 0);
	assert_true(r.node_guid == 0x1122334455667788);
	assert_int_equal(r.pkey, 0xffff);
	assert_int_equal(r.src_size, 48);
	assert_int_equal(dst[0], 27);
	assert_memory_equal(dst + 8, address(0).ip, 16);
	assert_memory_equal(dst + 24, service, 8);
	q.option = RDMA_USER_CM_QUERY_ADDR;
	assert_int_equal(RUN(QUERY, q, sizeof(r)), 0);
	assert_int_equal(r.dst_size, sizeof(struct sockaddr_in));
	assert_int_equal(r.ibdev_index, 3);
}

CASE(addresses_of_another_kind_are_refused)
{
	enum { FAMILY_IB = 27 };
	struct rdma_ucm_bind cmd = {.id = create(1, RDMA_PS_TCP), .addr_size = 48, .addr = {.ss_family = FAMILY_IB}};

	assert_int_equal(RUN(BIND, cmd, 0), -EAFNOSUPPORT); /* librdmacm then uses the commands for IP */
	cmd.addr.ss_family = AF_INET;
	cmd.addr_size = 4;
	assert_int_equal(RUN(BIND, cmd, 0), -EINVAL);
	cmd.addr_size = 0;
	assert_int_equal(RUN(BIND, cmd, 0), -EINVAL);
	assert_int_equal(bind_id(cmd.id, 1023), -EACCES);
	assert_int_equal(bind_id(cmd.id, 1024), 0);
}

CASE(a_join_that_makes_no_sense_is_refused)
{
	uint32_t id = create(5, RDMA_PS_UDP), stream = create(6, RDMA_PS_TCP);
	struct rdma_ucm_create_id_resp resp;
	struct rdma_ucm_join_mcast join = group_of(id, "239.1.2.3", &resp);
	struct rdma_ucm_destroy_id leave = {.response = AT(&resp)};

	assert_int_equal(bind_id(id, PORT), 0);
	assert_int_equal(bind_id(stream, PORT), 0);
	assert_int_equal(RUN(JOIN_MCAST, join, 3), -ENOSPC);
	join.addr_size--;
	assert_int_equal(RUN(JOIN_MCAST, join, 4), -EINVAL);
	join.addr_size = 0;
	assert_int_equal(RUN(JOIN_MCAST, join, 4), -EINVAL);
	join = group_of(id, "239.1.2.3", &resp);
	join.join_flags = 2;
	assert_int_equal(RUN(JOIN_MCAST, join, 4), -EINVAL);
	join = group_of(id, "239.1.2.3", NULL);
	assert_int_equal(RUN(JOIN_MCAST, join, 4), -EFAULT);
	join = group_of(id, "10.0.0.1", &resp);
	assert_int_equal(RUN(JOIN_MCAST, join, 4), -EINVAL);
	join = group_of(stream, "239.1.2.3", &resp);
	assert_int_equal(RUN(JOIN_MCAST, join, 4), -EINVAL);
	join = group_of(id, "239.1.2.3", &resp);
	assert_int_equal(RUN(JOIN_MCAST, join, 4), 0);
	leave.id = resp.id;
	assert_int_equal(run_on(other, RDMA_USER_CM_CMD_LEAVE_MCAST, &leave, sizeof(leave), 4), -EINVAL);
	leave.response = 0;
	assert_int_equal(RUN(LEAVE_MCAST, leave, 4), -EFAULT);
	assert_int_equal(joins, 1);
}
