/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An ordinary program of librdmacm that makes many connections, or takes them. There are no queue pairs behind them: what
 * is tested is how they are made and what is told of their end.
 *
 *	party -l [-r] [-b BACKLOG] [-s SECONDS] [-i IDS] [-p PORTS] ADDRESS PORT
 *		listens, and after so long accepts whoever comes; before, it makes so many ids, and binds so many to the ports that follow
 *	party -n COUNT [-w ATONCE] [-t SECONDS] [-e] ADDRESS PORT
 *
 * The client makes COUNT connections, ATONCE of them at the same time, and says how long that took. With -t it begins anew
 * after hanging up until that time is over; with -e it ends then, else it stays until it is killed. Both say of each
 * connection when it is disconnected.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <rdma/rdma_cma.h>

enum { RESOLVE_MS = 2000, BACKLOG = 1024 };

static struct {
	struct rdma_event_channel *channel;
	struct sockaddr_storage addr;
	bool listens, reuses, ends;
	double seconds, sleeps;
	int backlog;
	unsigned count, at_once, spare_ids, spare_ports;
	unsigned begun, established, over; /* of a round */
	unsigned long total, failed;
	struct rdma_cm_id **ids;
} g = {.count = 1, .at_once = 64, .backlog = BACKLOG};

static void fail(const char *doing)
{
	printf("%s: %s\n", doing, strerrorname_np(errno));
	exit(2);
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static struct rdma_cm_id *new_id(void)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(g.channel, &id, NULL, RDMA_PS_TCP))
		fail("create");
	return id;
}

static struct rdma_conn_param param(void)
{
	static uint32_t qpn = 100; /* some number: no queue pair is behind it */

	return (struct rdma_conn_param){.responder_resources = 1,
					.initiator_depth = 1,
					.retry_count = 7,
					.rnr_retry_count = 7,
					.qp_num = qpn++ & 0xffffff};
}

static void begin_one(void)
{
	struct rdma_cm_id *id = new_id();

	g.ids[g.begun++] = id;
	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&g.addr, RESOLVE_MS))
		fail("resolve");
}

static void begin_more(void)
{
	while (g.begun < g.count && g.begun - g.established - g.over < g.at_once)
		begin_one();
}

static void accept_one(struct rdma_cm_id *id)
{
	struct rdma_conn_param p = param();

	if (rdma_accept(id, &p)) {
		printf("accept: %s\n", strerrorname_np(errno));
		rdma_destroy_id(id);
	}
}

static void failed(struct rdma_cm_event *e)
{
	g.over++;
	if (!g.failed++)
		printf("%s: status %d\n", rdma_event_str(e->event), e->status);
}

/* The id to destroy once the event is acknowledged, or NULL. */
static struct rdma_cm_id *handle(struct rdma_cm_event *e)
{
	struct rdma_conn_param p;

	switch (e->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (rdma_resolve_route(e->id, RESOLVE_MS))
			fail("route");
		return NULL;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		p = param();
		if (rdma_connect(e->id, &p))
			fail("connect");
		return NULL;
	case RDMA_CM_EVENT_CONNECT_REQUEST: accept_one(e->id); return NULL;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		if (rdma_establish(e->id))
			fail("establish");
		g.established++;
		g.total++;
		return NULL;
	case RDMA_CM_EVENT_ESTABLISHED: g.established++; return NULL;
	case RDMA_CM_EVENT_DISCONNECTED:
		if (!g.seconds || g.listens)
			printf("disconnected %u\n", ++g.over);
		rdma_disconnect(e->id);
		return g.listens ? e->id : NULL;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT: return NULL;
	default: failed(e); return g.listens ? e->id : NULL;
	}
}

static void take_event(void)
{
	struct rdma_cm_event *e;
	struct rdma_cm_id *gone;

	if (rdma_get_cm_event(g.channel, &e))
		fail("event");
	gone = handle(e);
	rdma_ack_cm_event(e);
	if (gone)
		rdma_destroy_id(gone);
}

static void make_all(void)
{
	g.begun = g.established = g.over = 0;
	begin_more();
	while (g.established + g.over < g.count) {
		take_event();
		begin_more();
	}
}

static void hang_up(void)
{
	for (unsigned i = 0; i < g.count; i++)
		rdma_destroy_id(g.ids[i]);
}

static void connect_all(void)
{
	double begun = now_s();

	g.ids = calloc(g.count, sizeof(*g.ids));
	make_all();
	while (now_s() - begun < g.seconds) {
		hang_up();
		make_all();
	}
	printf("established %lu failed %lu in %.3f s\n", g.total, g.failed, now_s() - begun);
	if (g.ends) {
		hang_up();
		exit(0);
	}
}

static void bind_spare(unsigned number)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)&g.addr; /* the port of either family is there */
	in_port_t port = v4->sin_port;

	v4->sin_port = htons((uint16_t)(ntohs(port) + number));
	if (rdma_bind_addr(new_id(), (struct sockaddr *)&g.addr))
		fail("bind");
	v4->sin_port = port;
}

static void listen_there(void)
{
	struct rdma_cm_id *id = new_id();
	int one = 1;

	for (unsigned i = 1; i < g.spare_ids; i++)
		new_id();
	for (unsigned i = 1; i <= g.spare_ports; i++)
		bind_spare(i);
	if (g.reuses && rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &one, sizeof(one)))
		fail("reuse");
	if (rdma_bind_addr(id, (struct sockaddr *)&g.addr))
		fail("bind");
	if (rdma_listen(id, g.backlog))
		fail("listen");
	printf("listening %u\n", ntohs(rdma_get_src_port(id)));
	usleep((useconds_t)(g.sleeps * 1e6));
}

static void read_address(const char *address, const char *port)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)&g.addr;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&g.addr;

	v4->sin_port = htons((uint16_t)atoi(port));
	if (inet_pton(AF_INET, address, &v4->sin_addr) == 1)
		g.addr.ss_family = AF_INET;
	else if (inet_pton(AF_INET6, address, &v6->sin6_addr) == 1)
		g.addr.ss_family = AF_INET6;
	else
		exit(64);
}

int main(int argc, char **argv)
{
	int c;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((c = getopt(argc, argv, "lren:w:t:b:s:i:p:")) != -1) {
		switch (c) {
		case 'l': g.listens = true; break;
		case 'r': g.reuses = true; break;
		case 'e': g.ends = true; break;
		case 'n': g.count = (unsigned)atoi(optarg); break;
		case 'w': g.at_once = (unsigned)atoi(optarg); break;
		case 't': g.seconds = atof(optarg); break;
		case 'b': g.backlog = atoi(optarg); break;
		case 's': g.sleeps = atof(optarg); break;
		case 'i': g.spare_ids = (unsigned)atoi(optarg); break;
		case 'p': g.spare_ports = (unsigned)atoi(optarg); break;
		default: return 64;
		}
	}
	if (argc - optind != 2)
		return 64;
	read_address(argv[optind], argv[optind + 1]);
	g.channel = rdma_create_event_channel();
	if (!g.channel)
		fail("channel");
	if (g.listens)
		listen_there();
	else
		connect_all();
	for (;;)
		take_event();
}
