/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Says what a program sees of a port while the world changes: a line at the start and one for each asynchronous event,
 *
 *     CONTEXT EVENT state=4/5 mtu=3 rate=8x1 GIDs: 0=fe80::1@veth0 ...
 *
 * with two contexts of the first device. -p: another thread polls a CQ without a pause. -r: after each event all contexts
 * are closed, and the line is what new ones see.
 */
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CONTEXTS = 2, GIDS_MAX = 256 };

static struct ibv_context *contexts[CONTEXTS];

static void need(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static void open_all(struct ibv_device *device)
{
	for (int i = 0; i < CONTEXTS; i++) {
		contexts[i] = ibv_open_device(device);
		need(contexts[i], "ibv_open_device");
	}
}

static void close_all(void)
{
	for (int i = 0; i < CONTEXTS; i++)
		need(!ibv_close_device(contexts[i]), "ibv_close_device");
}

static void show(int context, const char *event)
{
	struct ibv_context *c = contexts[context];
	struct ibv_gid_entry table[GIDS_MAX];
	struct ibv_port_attr a;
	ssize_t n = ibv_query_gid_table(c, table, GIDS_MAX, 0);

	need(n >= 0 && !ibv_query_port(c, 1, &a), "query");
	printf("%d %s state=%d/%d mtu=%d rate=%dx%d GIDs:", context, event, a.state, a.phys_state, a.active_mtu,
	       a.active_speed, a.active_width);
	for (ssize_t i = 0; i < n; i++) {
		char text[INET6_ADDRSTRLEN], name[IF_NAMESIZE] = "";
		union ibv_gid again;

		need(!ibv_query_gid(c, 1, (int)table[i].gid_index, &again), "ibv_query_gid");
		if (memcmp(&again, &table[i].gid, sizeof(again)))
			printf(" CHANGED");
		inet_ntop(AF_INET6, table[i].gid.raw, text, sizeof(text));
		printf(" %u=%s@%s", table[i].gid_index, text, if_indextoname(table[i].ndev_ifindex, name) ? name : "?");
	}
	printf("\n");
	fflush(stdout);
}

static void *poll_for_ever(void *arg)
{
	struct ibv_wc wc;

	for (;;)
		ibv_poll_cq(arg, 1, &wc);
	return NULL;
}

static void begin_to_poll(void)
{
	struct ibv_cq *cq = ibv_create_cq(contexts[0], 1, NULL, NULL, 0);
	pthread_t thread;

	need(cq && !pthread_create(&thread, NULL, poll_for_ever, cq), "poll");
}

static void take(int context)
{
	struct ibv_async_event e;
	char name[64];

	need(!ibv_get_async_event(contexts[context], &e), "ibv_get_async_event");
	snprintf(name, sizeof(name), "%s", ibv_event_type_str(e.event_type));
	for (char *p = name; *p; p++)
		*p = *p == ' ' ? '_' : *p;
	ibv_ack_async_event(&e);
	show(context, name);
}

int main(int argc, char **argv)
{
	bool polls = argc > 1 && !strcmp(argv[1], "-p"), reopens = argc > 1 && !strcmp(argv[1], "-r");
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct pollfd fds[CONTEXTS];

	need(list && list[0], "ibv_get_device_list");
	open_all(list[0]);
	if (polls)
		begin_to_poll();
	show(0, "start");
	for (;;) {
		for (int i = 0; i < CONTEXTS; i++)
			fds[i] = (struct pollfd){.fd = contexts[i]->async_fd, .events = POLLIN};
		need(poll(fds, CONTEXTS, -1) > 0, "poll");
		if (reopens) {
			close_all();
			open_all(list[0]);
			show(0, "reopened");
			continue;
		}
		for (int i = 0; i < CONTEXTS; i++)
			if (fds[i].revents)
				take(i);
	}
}
