/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes commands to the device of rdma_cm, one after the other, and prints what each is answered with: "0", or the name of
 * an errno. Events are printed by their number and status. The same program runs on Verbena and in a guest with Linux's own
 * device; answers.txt has what each says.
 *
 *	answers ADDRESS      an IPv4 address of the device
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_user_cm.h>

enum { PORT = 23450, NO_ID = 123456, WAIT_MS = 10000, NOTHING_MS = 2000, FAMILY_IB = 27, COMMANDS = 25 };
/* As enum rdma_cm_event_type, whose header and the one of the commands are not for the same program. */
enum { ADDR_RESOLVED = 0, ROUTE_RESOLVED = 2, CONNECT_REQUEST = 4, CONNECT_RESPONSE = 5, ESTABLISHED = 9 };

#define CMD(name)         RDMA_USER_CM_CMD_##name
#define STRUCT(type, ...) ((struct type){__VA_ARGS__})

static struct in_addr here;
static uint8_t *hole;     /* from here on there is no memory */
static uint32_t reported; /* of the last DESTROY_ID, LEAVE_MCAST or MIGRATE_ID */
static uint8_t answer[1024];
static const char *chapter = "";

static int channel(void)
{
	int fd = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0) {
		perror("open");
		exit(2);
	}
	return fd;
}

/* ---- what is said ------------------------------------------------------------------------------------ */

static const char *name_of(int err)
{
	return err ? strerrorname_np(err) : "0";
}

static void say(const char *what, int err)
{
	printf("%s.%s %s\n", chapter, what, name_of(err));
	fflush(stdout);
}

/* 0 or an errno. */
static int put(int fd, const void *bytes, size_t len)
{
	ssize_t n = write(fd, bytes, len);

	return n < 0 ? errno : n == (ssize_t)len ? 0 : EMSGSIZE;
}

static int command(int fd, uint32_t number, const void *body, size_t in, size_t out)
{
	uint8_t w[512] = {0};
	struct rdma_ucm_cmd_hdr h = {.cmd = number, .in = (uint16_t)in, .out = (uint16_t)out};

	memcpy(w, &h, sizeof(h));
	memcpy(w + sizeof(h), body, in);
	return put(fd, w, sizeof(h) + in);
}

#define DO(fd, number, body, out) command(fd, CMD(number), &(body), sizeof(body), out)

/* ---- addresses ------------------------------------------------------------------------------------------ */

static struct sockaddr_in ip(const char *text, uint16_t port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = here};

	if (text)
		inet_pton(AF_INET, text, &a.sin_addr);
	return a;
}

static int bind_to(int fd, uint32_t id, const void *addr, uint16_t len)
{
	struct rdma_ucm_bind b = {.id = id, .addr_size = len};

	memcpy(&b.addr, addr, len < sizeof(b.addr) ? len : sizeof(b.addr));
	return DO(fd, BIND, b, 0);
}

static int bind_ip(int fd, uint32_t id, const char *text, uint16_t port)
{
	struct sockaddr_in a = ip(text, port);

	return bind_to(fd, id, &a, sizeof(a));
}

static int resolve_addr_from(int fd, uint32_t id, const struct sockaddr_in *src, const char *text, uint16_t port)
{
	struct sockaddr_in dst = ip(text, port);
	struct rdma_ucm_resolve_addr r = {.id = id, .timeout_ms = 2000, .dst_size = sizeof(dst)};

	if (src) {
		r.src_size = sizeof(*src);
		memcpy(&r.src_addr, src, sizeof(*src));
	}
	memcpy(&r.dst_addr, &dst, sizeof(dst));
	return DO(fd, RESOLVE_ADDR, r, 0);
}

static int resolve_addr(int fd, uint32_t id, uint16_t port)
{
	return resolve_addr_from(fd, id, NULL, NULL, port);
}

static int resolve_route(int fd, uint32_t id, uint32_t timeout_ms)
{
	return DO(fd, RESOLVE_ROUTE, STRUCT(rdma_ucm_resolve_route, .id = id, .timeout_ms = timeout_ms), 0);
}

/* ---- ids -------------------------------------------------------------------------------------------------- */

static int create(int fd, uint16_t ps, uint8_t qp_type, uint32_t *id)
{
	struct rdma_ucm_create_id c = {.uid = 0x100, .response = (uintptr_t)id, .ps = ps, .qp_type = qp_type};

	*id = NO_ID;
	return DO(fd, CREATE_ID, c, sizeof(*id));
}

static uint32_t an_id(int fd)
{
	uint32_t id;
	int err = create(fd, RDMA_PS_TCP, IBV_QPT_RC, &id);

	if (err)
		say("create", err);
	return id;
}

static uint32_t a_ud_id(int fd)
{
	uint32_t id;
	int err = create(fd, RDMA_PS_UDP, IBV_QPT_UD, &id);

	if (err)
		say("create", err);
	return id;
}

static int destroy(int fd, uint32_t id)
{
	return DO(fd, DESTROY_ID, STRUCT(rdma_ucm_destroy_id, .response = (uintptr_t)&reported, .id = id),
		  sizeof(reported));
}

static int listen_for(int fd, uint32_t id)
{
	return DO(fd, LISTEN, STRUCT(rdma_ucm_listen, .id = id, .backlog = 4), 0);
}

/* Each queue pair is a new one, as the old ones' connections are remembered for a while. */
static struct rdma_ucm_conn_param param(uint8_t valid, uint8_t data_len)
{
	static uint32_t qpn = 0x4711;

	return (struct rdma_ucm_conn_param){.qp_num = qpn++,
					    .qkey = 0x01234567,
					    .private_data_len = data_len,
					    .responder_resources = 1,
					    .initiator_depth = 1,
					    .retry_count = 7,
					    .rnr_retry_count = 7,
					    .valid = valid};
}

static int connect_with(int fd, uint32_t id, uint8_t valid, uint8_t data_len)
{
	return DO(fd, CONNECT, STRUCT(rdma_ucm_connect, .conn_param = param(valid, data_len), .id = id), 0);
}

static int accept_with(int fd, uint32_t id, uint8_t valid, uint8_t data_len)
{
	return DO(fd, ACCEPT, STRUCT(rdma_ucm_accept, .uid = 0x200, .conn_param = param(valid, data_len), .id = id), 0);
}

static int reject_with(int fd, uint32_t id, uint8_t reason, uint8_t data_len)
{
	return DO(fd, REJECT, STRUCT(rdma_ucm_reject, .id = id, .reason = reason, .private_data_len = data_len), 0);
}

static int disconnect(int fd, uint32_t id)
{
	return DO(fd, DISCONNECT, STRUCT(rdma_ucm_disconnect, .id = id), 0);
}

static int notify(int fd, uint32_t id, uint32_t event)
{
	return DO(fd, NOTIFY, STRUCT(rdma_ucm_notify, .id = id, .event = event), 0);
}

static int qp_attr(int fd, uint32_t id, uint32_t state)
{
	return DO(fd, INIT_QP_ATTR,
		  STRUCT(rdma_ucm_init_qp_attr, .response = (uintptr_t)answer, .id = id, .qp_state = state),
		  sizeof(struct ib_uverbs_qp_attr));
}

static int option(int fd, uint32_t id, uint32_t level, uint32_t name, const void *value, uint32_t len)
{
	return DO(fd, SET_OPTION,
		  STRUCT(rdma_ucm_set_option, .optval = (uintptr_t)value, .id = id, .level = level, .optname = name,
			 .optlen = len),
		  0);
}

static int query(int fd, uint32_t id, uint32_t what, size_t out)
{
	return DO(fd, QUERY, STRUCT(rdma_ucm_query, .response = (uintptr_t)answer, .id = id, .option = what), out);
}

static int join(int fd, uint32_t id, const char *group, uint32_t *membership)
{
	struct sockaddr_in a = ip(group, 0);
	struct rdma_ucm_join_mcast j = {
		.response = (uintptr_t)membership, .uid = 0x300, .id = id, .addr_size = sizeof(a)};

	*membership = NO_ID;
	memcpy(&j.addr, &a, sizeof(a));
	return DO(fd, JOIN_MCAST, j, sizeof(*membership));
}

static int leave(int fd, uint32_t membership)
{
	return DO(fd, LEAVE_MCAST, STRUCT(rdma_ucm_destroy_id, .response = (uintptr_t)&reported, .id = membership),
		  sizeof(reported));
}

static int migrate(int to, uint32_t id, int from)
{
	return DO(to, MIGRATE_ID,
		  STRUCT(rdma_ucm_migrate_id, .response = (uintptr_t)&reported, .id = id, .fd = (uint32_t)from),
		  sizeof(reported));
}

static int take(int fd, struct rdma_ucm_event_resp *e)
{
	memset(e, 0, sizeof(*e));
	return DO(fd, GET_EVENT, STRUCT(rdma_ucm_get_event, .response = (uintptr_t)e), sizeof(*e));
}

static bool await(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, ms) == 1;
}

/* The next event, or that there is none; returns the id that it names. */
static uint32_t event_within(int fd, const char *what, int ms)
{
	struct rdma_ucm_event_resp e;
	int err;

	await(fd, ms);
	err = take(fd, &e);
	if (err)
		printf("%s.%s no event: %s\n", chapter, what, name_of(err));
	else
		printf("%s.%s event %u status %d\n", chapter, what, e.event, (int)e.status);
	fflush(stdout);
	return err ? NO_ID : e.id;
}

static uint32_t event(int fd, const char *what)
{
	return event_within(fd, what, WAIT_MS);
}

/* Perhaps there is none. */
static void maybe_event(int fd, const char *what)
{
	event_within(fd, what, NOTHING_MS);
}

/* An event of that type must come, and nothing is said of it. Returns the id that it names. */
static uint32_t expect(int fd, uint32_t type)
{
	struct rdma_ucm_event_resp e;
	int err;

	await(fd, WAIT_MS);
	err = take(fd, &e);
	if (err || e.event != type)
		printf("%s: event %u and not %u\n", chapter, err ? UINT32_MAX : e.event, type);
	return err ? NO_ID : e.id;
}

static void must(const char *what, int err)
{
	if (err)
		say(what, err);
}

static uint32_t resolved(int fd, uint32_t id, uint16_t port)
{
	must("(resolve_addr)", resolve_addr(fd, id, port));
	expect(fd, ADDR_RESOLVED);
	return id;
}

static uint32_t routed(int fd, uint32_t id, uint16_t port)
{
	resolved(fd, id, port);
	must("(resolve_route)", resolve_route(fd, id, 2000));
	expect(fd, ROUTE_RESOLVED);
	return id;
}

/* ---- the frame ---------------------------------------------------------------------------------------------- */

static void frames(int fd)
{
	struct rdma_ucm_cmd_hdr h = {.cmd = COMMANDS};
	uint32_t id = an_id(fd);
	struct rdma_ucm_create_id c = {.uid = 1, .ps = RDMA_PS_TCP};
	uint8_t w[64] = {0};

	chapter = "frame";
	say("nothing", put(fd, w, 0));
	say("half_a_header", put(fd, w, 4));
	say("no_memory", put(fd, hole, 40));
	say("no_body", put(fd, hole - sizeof(h), 40)); /* CREATE_ID of no bytes */
	say("unknown_command", put(fd, &h, sizeof(h)));
	h.cmd = UINT32_MAX;
	say("far_command", put(fd, &h, sizeof(h)));
	h.cmd = CMD(GET_OPTION);
	say("get_option", put(fd, &h, sizeof(h)));
	h = (struct rdma_ucm_cmd_hdr){.cmd = CMD(DISCONNECT), .in = 4};
	memcpy(w, &h, sizeof(h));
	memcpy(w + sizeof(h), &id, 4);
	say("in_is_more_than_there_is", put(fd, w, sizeof(h)));
	say("as_it_should_be", put(fd, w, sizeof(h) + 4));
	say("more_than_in_says", put(fd, w, sizeof(h) + 24));
	h.in = 0;
	memcpy(w, &h, sizeof(h));
	say("in_is_less_than_there_is", put(fd, w, sizeof(h) + 4));
	say("short_create_id", command(fd, CMD(CREATE_ID), &c, 16, 4));
	say("answer_to_nowhere", command(fd, CMD(CREATE_ID), &c, sizeof(c), 4));
	c.response = (uintptr_t)hole;
	say("answer_to_no_memory", command(fd, CMD(CREATE_ID), &c, sizeof(c), 4));
	c.response = (uintptr_t)answer;
	say("no_room_for_the_answer", command(fd, CMD(CREATE_ID), &c, sizeof(c), 3));
	say("short_connect",
	    command(fd, CMD(CONNECT), &(struct rdma_ucm_connect){.conn_param = param(1, 0), .id = id}, 200, 0));
	say("connect_without_ece",
	    command(fd, CMD(CONNECT), &(struct rdma_ucm_connect){.conn_param = param(1, 0), .id = id}, 280, 0));
	say("no_such_event", take(fd, (struct rdma_ucm_event_resp *)answer));
	say("no_room_for_the_event",
	    command(fd, CMD(GET_EVENT), &(struct rdma_ucm_get_event){(uintptr_t)answer}, 8, 100));
	say("event_to_nowhere",
	    command(fd, CMD(GET_EVENT), &(struct rdma_ucm_get_event){0}, 8, sizeof(struct rdma_ucm_event_resp)));
}

/* Every command, with an id that there is not, that is another channel's, and that was destroyed. */
static void ids_of_nobody(int fd, int other)
{
	static const char *const whose[] = {"unknown", "of_another", "destroyed"};
	uint32_t ids[3] = {NO_ID, an_id(other), an_id(fd)}, m;

	destroy(fd, ids[2]);
	for (int i = 0; i < 3; i++) {
		uint32_t id = ids[i];
		int one = 1;

		chapter = whose[i];
		say("bind", bind_ip(fd, id, NULL, PORT));
		say("resolve_addr", resolve_addr(fd, id, PORT));
		say("resolve_route", resolve_route(fd, id, 100));
		say("resolve_route_without_time", resolve_route(fd, id, 0));
		say("query_route",
		    DO(fd, QUERY_ROUTE, STRUCT(rdma_ucm_query, .response = (uintptr_t)answer, .id = id), 400));
		say("query", query(fd, id, 0, 400));
		say("query_of_nothing", query(fd, id, 9, 400));
		say("connect", connect_with(fd, id, 1, 0));
		say("connect_invalid", connect_with(fd, id, 0, 0));
		say("listen", listen_for(fd, id));
		say("accept", accept_with(fd, id, 1, 0));
		say("confirm", accept_with(fd, id, 0, 0));
		say("reject", reject_with(fd, id, 0, 0));
		say("reject_for_another_reason", reject_with(fd, id, 5, 0));
		say("disconnect", disconnect(fd, id));
		say("init_qp_attr", qp_attr(fd, id, IBV_QPS_INIT));
		say("init_qp_attr_of_nothing", qp_attr(fd, id, 99));
		say("set_option", option(fd, id, 0, RDMA_OPTION_ID_REUSEADDR, &one, sizeof(one)));
		say("set_option_of_nothing", option(fd, id, 9, 9, &one, sizeof(one)));
		say("notify", notify(fd, id, IBV_EVENT_COMM_EST));
		say("join", join(fd, id, "239.1.2.3", &m));
		say("leave", leave(fd, id));
		if (i != 1) {
			say("migrate", migrate(fd, id, other));
			say("destroy", destroy(fd, id));
		}
	}
	chapter = "of_another";
	say("destroy", destroy(fd, ids[1]));
	say("destroy_by_its_owner", destroy(other, ids[1]));
}

/* ---- names and addresses ---------------------------------------------------------------------------------------- */

static void creates(int fd)
{
	uint32_t id;

	chapter = "create";
	say("tcp", create(fd, RDMA_PS_TCP, 0, &id));
	say("udp", create(fd, RDMA_PS_UDP, 0, &id));
	say("ipoib", create(fd, RDMA_PS_IPOIB, 0, &id));
	say("ib_rc", create(fd, RDMA_PS_IB, IBV_QPT_RC, &id));
	say("ib_ud", create(fd, RDMA_PS_IB, IBV_QPT_UD, &id));
	say("no_space", create(fd, 0, 0, &id));
	say("unknown_space", create(fd, 0x0199, 0, &id));
	id = an_id(fd);
	say("destroy", destroy(fd, id));
	say("destroy_again", destroy(fd, id));
	id = an_id(fd);
	say("destroy_to_no_memory",
	    DO(fd, DESTROY_ID, STRUCT(rdma_ucm_destroy_id, .response = (uintptr_t)hole, .id = id), 4));
	say("destroy_after_that", destroy(fd, id));
	id = an_id(fd);
	say("destroy_without_room",
	    DO(fd, DESTROY_ID, STRUCT(rdma_ucm_destroy_id, .response = (uintptr_t)answer, .id = id), 2));
}

static void binds(int fd)
{
	struct sockaddr_in a = ip(NULL, PORT), other_family = {.sin_family = AF_UNIX};
	uint8_t ib[48] = {FAMILY_IB};
	uint32_t first = an_id(fd), second = an_id(fd), third = an_id(fd), udp = a_ud_id(fd), x;
	int one = 1;

	chapter = "bind";
	say("no_length", bind_to(fd, second, &a, 0));
	say("wrong_length", bind_to(fd, second, &a, sizeof(a) - 1));
	say("wrong_family", bind_to(fd, second, &other_family, sizeof(a)));
	say("ib_family", bind_to(fd, an_id(fd), ib, sizeof(ib)));
	say("nobodys_address", bind_ip(fd, second, "192.0.2.1", PORT));
	say("group", bind_ip(fd, second, "239.1.2.3", PORT));
	say("broadcast", bind_ip(fd, second, "255.255.255.255", PORT));
	say("ours", bind_ip(fd, first, NULL, PORT));
	say("again", bind_ip(fd, first, NULL, PORT));
	say("used", bind_ip(fd, second, NULL, PORT));
	say("used_by_wildcard", bind_ip(fd, second, "0.0.0.0", PORT));
	say("another_port", bind_ip(fd, second, NULL, PORT + 1));
	x = an_id(fd);
	say("wildcard", bind_ip(fd, x, "0.0.0.0", PORT + 2));
	say("used_wildcard", bind_ip(fd, third, NULL, PORT + 2));
	say("same_wildcard", bind_ip(fd, third, "0.0.0.0", PORT + 2));
	say("reuse_one", option(fd, third, 0, RDMA_OPTION_ID_REUSEADDR, &one, sizeof(one)));
	say("used_but_reused_by_one", bind_ip(fd, third, NULL, PORT));
	say("reuse_late", option(fd, first, 0, RDMA_OPTION_ID_REUSEADDR, &one, sizeof(one)));
	say("used_but_reused_by_both", bind_ip(fd, third, NULL, PORT));
	say("listen_on_a_shared_port", listen_for(fd, third));
	say("no_port", bind_ip(fd, an_id(fd), NULL, 0));
	say("udp_has_ports_of_its_own", bind_ip(fd, udp, NULL, PORT));
	destroy(fd, udp);
	create(fd, RDMA_PS_IPOIB, 0, &x);
	say("ipoib", bind_ip(fd, x, NULL, PORT + 3));
	say("resolve_what_is_bound", resolve_addr(fd, second, PORT));
	maybe_event(fd, "resolve_what_is_bound");
	say("after_resolve", bind_ip(fd, second, NULL, PORT + 5));
	for (uint32_t i = 0; i < 3; i++)
		destroy(fd, (uint32_t[]){first, second, third}[i]);
}

static void listens(int fd)
{
	uint32_t id = an_id(fd), other = an_id(fd);

	chapter = "listen";
	say("unbound", listen_for(fd, id));
	say("again", listen_for(fd, id));
	say("bind", bind_ip(fd, id, NULL, PORT));
	say("resolve_addr", resolve_addr(fd, id, PORT));
	say("resolve_route", resolve_route(fd, id, 100));
	say("connect", connect_with(fd, id, 1, 0));
	say("accept", accept_with(fd, id, 1, 0));
	say("confirm", accept_with(fd, id, 0, 0));
	say("reject", reject_with(fd, id, 0, 0));
	say("disconnect", disconnect(fd, id));
	say("init_qp_attr", qp_attr(fd, id, IBV_QPS_INIT));
	say("notify", notify(fd, id, IBV_EVENT_COMM_EST));
	say("query", query(fd, id, 0, 400));
	say("destroy", destroy(fd, id));
	bind_ip(fd, other, NULL, PORT);
	say("bound", listen_for(fd, other));
	say("bound.init_qp_attr", qp_attr(fd, other, IBV_QPS_INIT));
	id = an_id(fd);
	say("bind_to_its_port", bind_ip(fd, id, NULL, PORT));
	say("resolved", listen_for(fd, resolved(fd, id, PORT)));
	destroy(fd, id);
	say("negative_backlog", DO(fd, LISTEN, STRUCT(rdma_ucm_listen, .id = an_id(fd), .backlog = UINT32_MAX), 0));
	destroy(fd, other);
}

static void resolves(int fd)
{
	struct sockaddr_in nobodys = ip("192.0.2.1", 0), mine = ip(NULL, 0);
	uint32_t id = an_id(fd), x;

	chapter = "resolve";
	say("route_first", resolve_route(fd, id, 100));
	say("connect_first", connect_with(fd, id, 1, 0));
	say("from_nobodys_address", resolve_addr_from(fd, id, &nobodys, NULL, PORT));
	maybe_event(fd, "from_nobodys_address");
	x = an_id(fd);
	say("without_destination", DO(fd, RESOLVE_ADDR, STRUCT(rdma_ucm_resolve_addr, .id = x, .timeout_ms = 100), 0));
	say("from_ours", resolve_addr_from(fd, x, &mine, NULL, PORT));
	event(fd, "from_ours");
	say("addr", resolve_addr(fd, id, PORT));
	event(fd, "addr");
	say("addr_again", resolve_addr(fd, id, PORT));
	say("connect_without_route", connect_with(fd, id, 1, 0));
	say("route_without_time", resolve_route(fd, id, 0));
	say("route", resolve_route(fd, id, 100));
	event(fd, "route");
	say("route_again", resolve_route(fd, id, 100));
	say("addr_with_route", resolve_addr(fd, id, PORT));
	say("listen_with_route", listen_for(fd, id));
	say("init_qp_attr_init", qp_attr(fd, id, IBV_QPS_INIT));
	say("init_qp_attr_rtr", qp_attr(fd, id, IBV_QPS_RTR));
	say("init_qp_attr_rts", qp_attr(fd, id, IBV_QPS_RTS));
	say("init_qp_attr_reset", qp_attr(fd, id, IBV_QPS_RESET));
	say("init_qp_attr_err", qp_attr(fd, id, IBV_QPS_ERR));
	say("init_qp_attr_without_room",
	    DO(fd, INIT_QP_ATTR,
	       STRUCT(rdma_ucm_init_qp_attr, .response = (uintptr_t)answer, .id = id, .qp_state = IBV_QPS_INIT), 143));
	say("disconnect", disconnect(fd, id));
	say("accept", accept_with(fd, id, 1, 0));
	say("confirm", accept_with(fd, id, 0, 0));
	say("reject", reject_with(fd, id, 0, 0));
	say("notify", notify(fd, id, IBV_EVENT_COMM_EST));
	say("connect_invalid", connect_with(fd, id, 0, 0));
	say("connect_with_too_much_data", connect_with(fd, id, 1, 57));
	say("connect_with_far_too_much_data", connect_with(fd, id, 1, 255));
	destroy(fd, id);
	id = an_id(fd);
	say("ib_family", DO(fd, RESOLVE_ADDR,
			    STRUCT(rdma_ucm_resolve_addr, .id = id, .timeout_ms = 100, .dst_size = 48,
				   .dst_addr.ss_family = FAMILY_IB),
			    0));
	destroy(fd, id);
	id = an_id(fd);
	say("no_way", resolve_addr_from(fd, id, NULL, "0.0.0.1", PORT));
	maybe_event(fd, "no_way");
	say("after_no_way.bind", bind_ip(fd, id, NULL, PORT + 50));
	say("after_no_way.listen", listen_for(fd, id));
	destroy(fd, id);
}

static void options(int fd)
{
	uint32_t id = an_id(fd), x;
	uint8_t byte = 3, far = 40;
	int one = 1;
	uint32_t path[18] = {0};

	chapter = "option";
	say("unknown_level", option(fd, id, 7, 0, &one, 4));
	say("unknown_name", option(fd, id, 0, 99, &one, 4));
	say("unknown_name_of_ib", option(fd, id, 1, 99, &one, 4));
	say("tos", option(fd, id, 0, RDMA_OPTION_ID_TOS, &byte, 1));
	say("tos_of_four_bytes", option(fd, id, 0, RDMA_OPTION_ID_TOS, &one, 4));
	say("reuse_of_one_byte", option(fd, id, 0, RDMA_OPTION_ID_REUSEADDR, &byte, 1));
	say("reuse", option(fd, id, 0, RDMA_OPTION_ID_REUSEADDR, &one, 4));
	say("afonly_of_one_byte", option(fd, id, 0, RDMA_OPTION_ID_AFONLY, &byte, 1));
	say("afonly", option(fd, id, 0, RDMA_OPTION_ID_AFONLY, &one, 4));
	say("ack_timeout", option(fd, id, 0, RDMA_OPTION_ID_ACK_TIMEOUT, &byte, 1));
	say("ack_timeout_of_four_bytes", option(fd, id, 0, RDMA_OPTION_ID_ACK_TIMEOUT, &one, 4));
	say("ack_timeout_of_40", option(fd, id, 0, RDMA_OPTION_ID_ACK_TIMEOUT, &far, 1));
	say("of_no_length", option(fd, id, 0, RDMA_OPTION_ID_TOS, &byte, 0));
	say("of_no_value", option(fd, id, 0, RDMA_OPTION_ID_TOS, NULL, 1));
	say("of_a_hole", option(fd, id, 0, RDMA_OPTION_ID_TOS, hole, 1));
	say("of_great_length", option(fd, id, 0, RDMA_OPTION_ID_TOS, hole, 1u << 30));
	say("path_of_nothing", option(fd, id, 1, RDMA_OPTION_IB_PATH, path, 0));
	say("path_of_a_half", option(fd, id, 1, RDMA_OPTION_IB_PATH, path, 40));
	say("path_without_flags", option(fd, id, 1, RDMA_OPTION_IB_PATH, path, sizeof(path)));
	bind_ip(fd, id, NULL, PORT);
	say("afonly_when_bound", option(fd, id, 0, RDMA_OPTION_ID_AFONLY, &one, 4));
	say("reuse_when_bound", option(fd, id, 0, RDMA_OPTION_ID_REUSEADDR, &one, 4));
	say("ack_timeout_when_bound", option(fd, id, 0, RDMA_OPTION_ID_ACK_TIMEOUT, &byte, 1));
	listen_for(fd, id);
	say("reuse_when_listening", option(fd, id, 0, RDMA_OPTION_ID_REUSEADDR, &one, 4));
	say("afonly_when_listening", option(fd, id, 0, RDMA_OPTION_ID_AFONLY, &one, 4));
	destroy(fd, id);
	x = a_ud_id(fd);
	say("ack_timeout_of_datagrams", option(fd, x, 0, RDMA_OPTION_ID_ACK_TIMEOUT, &byte, 1));
}

static void queries(int fd)
{
	uint32_t id = an_id(fd);

	chapter = "query";
	say("addr", query(fd, id, RDMA_USER_CM_QUERY_ADDR, 400));
	say("path", query(fd, id, RDMA_USER_CM_QUERY_PATH, 400));
	say("gid", query(fd, id, RDMA_USER_CM_QUERY_GID, 400));
	say("nothing", query(fd, id, 9, 400));
	say("addr_without_room", query(fd, id, RDMA_USER_CM_QUERY_ADDR, 100));
	say("path_without_room", query(fd, id, RDMA_USER_CM_QUERY_PATH, 4));
	say("gid_without_room", query(fd, id, RDMA_USER_CM_QUERY_GID, 100));
	say("route_without_room",
	    DO(fd, QUERY_ROUTE, STRUCT(rdma_ucm_query, .response = (uintptr_t)answer, .id = id), 100));
	say("route_to_no_memory",
	    DO(fd, QUERY_ROUTE, STRUCT(rdma_ucm_query, .response = (uintptr_t)hole, .id = id), 400));
	say("init_qp_attr", qp_attr(fd, id, IBV_QPS_INIT));
	destroy(fd, id);
}

static void groups(int fd)
{
	uint32_t id = a_ud_id(fd), rc = an_id(fd), m, n;
	struct sockaddr_in a = ip("239.1.2.3", 0);
	struct rdma_ucm_join_mcast j = {.response = (uintptr_t)&m, .uid = 3, .id = id, .addr_size = sizeof(a)};

	chapter = "group";
	memcpy(&j.addr, &a, sizeof(a));
	say("unbound", join(fd, id, "239.1.2.3", &m));
	bind_ip(fd, rc, NULL, PORT);
	say("of_a_connection", join(fd, rc, "239.1.2.3", &m));
	say("bind", bind_ip(fd, id, NULL, PORT));
	j.join_flags = 2;
	say("unknown_flags", DO(fd, JOIN_MCAST, j, 4));
	j.join_flags = 0;
	j.addr_size = 3;
	say("wrong_length", DO(fd, JOIN_MCAST, j, 4));
	j.addr_size = sizeof(a);
	say("without_room", DO(fd, JOIN_MCAST, j, 3));
	j.response = 0;
	say("to_nowhere", DO(fd, JOIN_MCAST, j, 4));
	say("join", join(fd, id, "239.1.2.3", &m));
	event(fd, "join");
	say("another", join(fd, id, "239.1.2.4", &n));
	event(fd, "another");
	say("leave", leave(fd, m));
	say("leave_again", leave(fd, m));
	say("leave_without_room",
	    DO(fd, LEAVE_MCAST, STRUCT(rdma_ucm_destroy_id, .response = (uintptr_t)&reported, .id = n), 3));
	say("destroy_with_a_membership", destroy(fd, id));
	say("leave_after_that", leave(fd, n));
	destroy(fd, rc);
}

static void migrations(int fd, int other)
{
	int null = open("/dev/null", O_RDWR);
	uint32_t id = an_id(fd);

	chapter = "migrate";
	say("from_no_descriptor", migrate(other, id, 9999));
	say("from_another_file", migrate(other, id, null));
	say("of_nobody", migrate(other, NO_ID, fd));
	say("not_of_that_channel", migrate(fd, id, other));
	say("to_the_same", migrate(fd, id, fd));
	must("(resolve_addr)", resolve_addr(fd, id, PORT));
	await(fd, WAIT_MS);
	say("with_an_event", migrate(other, id, fd));
	say("old_channel_has_none", take(fd, (struct rdma_ucm_event_resp *)answer));
	event(other, "new_channel_has_it");
	say("use_in_the_old", resolve_route(fd, id, 100));
	say("use_in_the_new", resolve_route(other, id, 100));
	event(other, "use_in_the_new");
	say("to_no_memory",
	    DO(fd, MIGRATE_ID,
	       STRUCT(rdma_ucm_migrate_id, .response = (uintptr_t)hole, .id = id, .fd = (uint32_t)other), 4));
	say("destroy_in_the_new", destroy(other, id));
	destroy(fd, id);
	close(null);
}

/* ---- conversations ---------------------------------------------------------------------------------------------- */

/* Both ends are here, each in a channel of its own. */
struct talk {
	int fd, peer;
	uint32_t listener, id, child; /* the second is fd's; the others are the peer's */
};

/* Its port is its own, since Linux forgets none at once. */
static struct talk asking(int fd, int peer)
{
	static uint16_t port = PORT + 100;
	struct talk t = {.fd = fd, .peer = peer, .listener = an_id(peer), .id = an_id(fd), .child = NO_ID};

	port++;
	must("(bind)", bind_ip(peer, t.listener, NULL, port));
	must("(listen)", listen_for(peer, t.listener));
	routed(fd, t.id, port);
	must("(connect)", connect_with(fd, t.id, 1, 56));
	return t;
}

static struct talk asked(int fd, int peer)
{
	struct talk t = asking(fd, peer);

	t.child = expect(peer, CONNECT_REQUEST);
	return t;
}

static struct talk answered(int fd, int peer)
{
	struct talk t = asked(fd, peer);

	must("(accept)", accept_with(peer, t.child, 1, 196));
	expect(fd, CONNECT_RESPONSE);
	return t;
}

static struct talk established(int fd, int peer)
{
	struct talk t = answered(fd, peer);

	must("(confirm)", accept_with(fd, t.id, 0, 0));
	expect(peer, ESTABLISHED);
	return t;
}

static void done(struct talk *t)
{
	destroy(t->peer, t->child);
	destroy(t->fd, t->id);
	destroy(t->peer, t->listener);
	while (await(t->fd, 0))
		take(t->fd, (struct rdma_ucm_event_resp *)answer);
	while (await(t->peer, 0))
		take(t->peer, (struct rdma_ucm_event_resp *)answer);
}

static void while_asking(int fd, int peer)
{
	struct talk t = asking(fd, peer);

	chapter = "asking";
	say("connect_again", connect_with(fd, t.id, 1, 0));
	say("resolve", resolve_addr(fd, t.id, PORT));
	say("notify", notify(fd, t.id, IBV_EVENT_COMM_EST));
	say("init_qp_attr_init", qp_attr(fd, t.id, IBV_QPS_INIT));
	say("init_qp_attr_rtr", qp_attr(fd, t.id, IBV_QPS_RTR));
	say("accept", accept_with(fd, t.id, 1, 0));
	say("connect_after_accept", connect_with(fd, t.id, 1, 0));
	done(&t);
	t = asking(fd, peer);
	say("confirm", accept_with(fd, t.id, 0, 0));
	done(&t);
	t = asking(fd, peer);
	say("disconnect", disconnect(fd, t.id));
	say("disconnect_again", disconnect(fd, t.id));
	done(&t);
	t = asking(fd, peer);
	say("reject", reject_with(fd, t.id, 28, 0));
	done(&t);
	t = asking(fd, peer);
	say("destroy", destroy(fd, t.id));
	t.child = event(peer, "request");
	usleep(300000);
	say("accept_too_late", accept_with(peer, t.child, 1, 0));
	say("reject_too_late", reject_with(peer, t.child, 0, 0));
	done(&t);
}

static void while_asked(int fd, int peer)
{
	struct talk t = asked(fd, peer);

	chapter = "asked";
	say("connect", connect_with(peer, t.child, 1, 0));
	say("bind", bind_ip(peer, t.child, NULL, PORT + 11));
	say("resolve", resolve_addr(peer, t.child, PORT));
	say("listen", listen_for(peer, t.child));
	say("notify", notify(peer, t.child, IBV_EVENT_COMM_EST));
	say("reject_for_another_reason", reject_with(peer, t.child, 5, 0));
	say("reject_with_too_much_data", reject_with(peer, t.child, 0, 149));
	say("init_qp_attr_init", qp_attr(peer, t.child, IBV_QPS_INIT));
	say("init_qp_attr_rtr", qp_attr(peer, t.child, IBV_QPS_RTR));
	say("init_qp_attr_rts", qp_attr(peer, t.child, IBV_QPS_RTS));
	say("accept", accept_with(peer, t.child, 1, 196));
	done(&t);
	t = asked(fd, peer);
	say("confirm", accept_with(peer, t.child, 0, 0));
	maybe_event(fd, "after_confirm");
	done(&t);
	t = asked(fd, peer);
	say("accept_with_too_much_data", accept_with(peer, t.child, 1, 197));
	maybe_event(fd, "after_accept_with_too_much_data");
	say("accept_once_more", accept_with(peer, t.child, 1, 0));
	done(&t);
	t = asked(fd, peer);
	say("disconnect", disconnect(peer, t.child));
	maybe_event(fd, "after_disconnect");
	done(&t);
	t = asked(fd, peer);
	say("reject", reject_with(peer, t.child, 28, 148));
	say("reject_again", reject_with(peer, t.child, 28, 0));
	say("accept_after_reject", accept_with(peer, t.child, 1, 0));
	event(fd, "rejected");
	say("rejected.connect", connect_with(fd, t.id, 1, 0));
	say("rejected.disconnect", disconnect(fd, t.id));
	say("rejected.resolve", resolve_addr(fd, t.id, PORT));
	done(&t);
	t = asked(fd, peer);
	say("destroy_the_listener", destroy(peer, t.listener));
	say("accept_without_listener", accept_with(peer, t.child, 1, 0));
	event(fd, "without_listener");
	done(&t);
}

static void when_answered(int fd, int peer)
{
	struct talk t = answered(fd, peer);

	chapter = "answered";
	say("init_qp_attr_rtr", qp_attr(fd, t.id, IBV_QPS_RTR));
	say("init_qp_attr_rts", qp_attr(peer, t.child, IBV_QPS_RTS));
	say("connect", connect_with(fd, t.id, 1, 0));
	say("confirm", accept_with(fd, t.id, 0, 0));
	event(peer, "established");
	done(&t);
	t = answered(fd, peer);
	say("accept_again", accept_with(peer, t.child, 1, 0));
	maybe_event(fd, "after_accept_again");
	done(&t);
	t = answered(fd, peer);
	say("notify", notify(peer, t.child, IBV_EVENT_COMM_EST));
	event(peer, "after_notify");
	done(&t);
	t = answered(fd, peer);
	say("reject_by_the_asker", reject_with(fd, t.id, 28, 0));
	event(peer, "rejected");
	done(&t);
	t = answered(fd, peer);
	say("reject", reject_with(peer, t.child, 28, 0));
	event(fd, "its_rejected");
	done(&t);
	t = answered(fd, peer);
	say("disconnect_by_the_asker", disconnect(fd, t.id));
	maybe_event(peer, "after_disconnect");
	done(&t);
	t = answered(fd, peer);
	say("disconnect", disconnect(peer, t.child));
	maybe_event(fd, "its_disconnected");
	done(&t);
}

static void when_established(int fd, int peer)
{
	struct talk t = established(fd, peer);

	chapter = "established";
	say("notify", notify(peer, t.child, IBV_EVENT_COMM_EST));
	say("notify_of_another_event", notify(peer, t.child, 1));
	say("connect", connect_with(fd, t.id, 1, 0));
	say("bind", bind_ip(fd, t.id, NULL, PORT));
	say("listen", listen_for(fd, t.id));
	say("init_qp_attr_rts", qp_attr(peer, t.child, IBV_QPS_RTS));
	say("reject", reject_with(peer, t.child, 0, 0));
	say("accept", accept_with(peer, t.child, 1, 0));
	say("confirm", accept_with(fd, t.id, 0, 0));
	maybe_event(fd, "still");
	say("disconnect", disconnect(fd, t.id));
	say("disconnect_again", disconnect(fd, t.id));
	event(peer, "disconnected");
	say("disconnect_by_the_other", disconnect(peer, t.child));
	say("disconnect_by_the_other_again", disconnect(peer, t.child));
	event(fd, "its_disconnected");
	say("ended.connect", connect_with(fd, t.id, 1, 0));
	say("ended.resolve", resolve_addr(fd, t.id, PORT));
	say("ended.accept", accept_with(peer, t.child, 1, 0));
	say("ended.reject", reject_with(peer, t.child, 0, 0));
	say("ended.notify", notify(peer, t.child, IBV_EVENT_COMM_EST));
	say("ended.init_qp_attr_rts", qp_attr(peer, t.child, IBV_QPS_RTS));
	say("ended.destroy", destroy(fd, t.id));
	say("ended.destroy_the_others", destroy(peer, t.child));
	done(&t);
}

static void nobody_listens(int fd)
{
	uint32_t id = routed(fd, an_id(fd), PORT + 90);

	chapter = "nobody_listens";
	say("connect", connect_with(fd, id, 1, 0));
	event(fd, "rejected");
	say("connect_again", connect_with(fd, id, 1, 0));
	destroy(fd, id);
}

static void datagrams(int fd, int peer)
{
	uint32_t listener = a_ud_id(peer), id = a_ud_id(fd), child;

	chapter = "datagram";
	say("bind", bind_ip(peer, listener, NULL, PORT + 30));
	say("listen", listen_for(peer, listener));
	routed(fd, id, PORT + 30);
	say("init_qp_attr_init", qp_attr(fd, id, IBV_QPS_INIT));
	say("init_qp_attr_rtr", qp_attr(fd, id, IBV_QPS_RTR));
	say("connect_with_too_much_data", connect_with(fd, id, 1, 181));
	say("connect", connect_with(fd, id, 1, 180));
	say("connect_again", connect_with(fd, id, 1, 0));
	child = event(peer, "request");
	say("accept", accept_with(peer, child, 1, 136));
	say("accept_again", accept_with(peer, child, 1, 0));
	event(fd, "established");
	say("disconnect", disconnect(fd, id));
	say("disconnect_by_the_other", disconnect(peer, child));
	say("notify", notify(peer, child, IBV_EVENT_COMM_EST));
	say("destroy", destroy(fd, id));
	destroy(peer, child);
	id = routed(fd, a_ud_id(fd), PORT + 30);
	connect_with(fd, id, 1, 0);
	child = event(peer, "another_request");
	say("reject", reject_with(peer, child, 0, 136));
	event(fd, "rejected");
	destroy(fd, id);
	id = routed(fd, a_ud_id(fd), PORT + 30);
	connect_with(fd, id, 1, 0);
	child = event(peer, "a_third_request");
	say("accept_with_too_much_data", accept_with(peer, child, 1, 137));
	event(fd, "after_accept_with_too_much_data");
	say("accept_once_more", accept_with(peer, child, 1, 0));
	destroy(fd, id);
	id = routed(fd, a_ud_id(fd), PORT + 31);
	say("nobody_listens", connect_with(fd, id, 1, 0));
	event(fd, "nobody_listens");
}

static void forks(int fd)
{
	uint32_t id = an_id(fd);
	pid_t child;

	chapter = "fork";
	fflush(stdout);
	child = fork();
	if (!child) {
		say("child.get_event", take(fd, (struct rdma_ucm_event_resp *)answer));
		say("child.bind", bind_ip(fd, id, NULL, PORT + 40));
		say("child.destroy", destroy(fd, id));
		_exit(0);
	}
	waitpid(child, NULL, 0);
	say("parent.destroy", destroy(fd, id));
}

int main(int argc, char **argv)
{
	int a, b;

	if (argc != 2 || inet_pton(AF_INET, argv[1], &here) != 1) {
		fprintf(stderr, "usage: answers ADDRESS\n");
		return 2;
	}
	hole = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mprotect(hole += 4096, 4096, PROT_NONE);
	a = channel();
	b = channel();
	frames(a);
	ids_of_nobody(a, b);
	creates(a);
	binds(a);
	listens(a);
	resolves(a);
	options(a);
	queries(a);
	groups(a);
	migrations(a, b);
	while_asking(a, b);
	while_asked(a, b);
	when_answered(a, b);
	when_established(a, b);
	nobody_listens(a);
	datagrams(a, b);
	forks(a);
	return 0;
}
