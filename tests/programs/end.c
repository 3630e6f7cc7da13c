/* SPDX-License-Identifier: BSD-2-Clause */
/* How one end of a pair of programs meets the other: by TCP first, then by a connected queue pair. */
#include "end.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct end end = {.port = 18515};

void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "%s failed: ", end.host ? "client" : "server");
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	exit(1);
}

double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

uint64_t draw(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15u;
	return mix(*state);
}

/* ---- TCP ------------------------------------------------------------------------------------ */

void end_open_tcp(void)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_family = AF_INET6, .ai_flags = AI_PASSIVE};
	struct addrinfo *res;
	char port[8];
	int s, one = 1;

	if (end.host)
		hints = (struct addrinfo){.ai_socktype = SOCK_STREAM};
	snprintf(port, sizeof(port), "%d", end.port);
	CHECK(!getaddrinfo(end.host, port, &hints, &res), "no such address");
	s = socket(res->ai_family, res->ai_socktype, 0);
	CHECK(s >= 0, "socket: %s", strerror(errno));
	if (end.host) {
		CHECK(!connect(s, res->ai_addr, res->ai_addrlen), "connect: %s", strerror(errno));
		end.tcp = s;
	} else {
		setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		CHECK(!bind(s, res->ai_addr, res->ai_addrlen) && !listen(s, 1), "listen: %s", strerror(errno));
		end.tcp = accept(s, NULL, NULL);
		CHECK(end.tcp >= 0, "accept: %s", strerror(errno));
		close(s);
	}
	freeaddrinfo(res);
}

static void tcp_swap(const void *mine, void *theirs, size_t n)
{
	CHECK(send(end.tcp, mine, n, MSG_NOSIGNAL) == (ssize_t)n, "the peer is gone");
	CHECK(recv(end.tcp, theirs, n, MSG_WAITALL) == (ssize_t)n, "the peer is gone");
}

void end_meet(uint32_t where)
{
	uint32_t theirs = ~where;

	tcp_swap(&where, &theirs, sizeof(where));
	CHECK(theirs == where, "the ends are out of step: %u and %u", where, theirs);
}

/* ---- verbs ------------------------------------------------------------------------------------ */

void end_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_port_attr port;

	CHECK(list && list[0], "no device");
	end.context = ibv_open_device(list[0]);
	CHECK(end.context, "open: %s", strerror(errno));
	ibv_free_device_list(list);
	CHECK(!ibv_query_port(end.context, 1, &port), "query_port");
	CHECK(!ibv_query_gid(end.context, 1, end.gid, &end.mine.gid), "query_gid %d", end.gid);
	end.mine.mtu = port.active_mtu;
	end.mine.psn = (uint32_t)(mix((uint64_t)getpid()) & 0xffffff);
	end.pd = ibv_alloc_pd(end.context);
	CHECK(end.pd, "alloc_pd: %s", strerror(errno));
}

void end_create_qp(struct ibv_qp_init_attr *init, int access)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 0x11111111, .qp_access_flags = (unsigned)access};

	init->send_cq = init->recv_cq = end.cq;
	end.qp = ibv_create_qp(end.pd, init);
	CHECK(end.qp, "create_qp: %s", strerror(errno));
	CHECK(!ibv_modify_qp(end.qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     (end.qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)),
	      "to INIT");
	end.mine.qpn = end.qp->qp_num;
}

struct ibv_ah_attr end_connect(uint8_t timeout, uint8_t retries)
{
	enum ibv_qp_type type = end.qp->qp_type;
	struct ibv_qp_attr attr;
	int mask = IBV_QP_STATE;

	if (!end.tcp)
		end_open_tcp();
	tcp_swap(&end.mine, &end.theirs, sizeof(end.mine));
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.min_rnr_timer = 1,
		.max_dest_rd_atomic = 4,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = end.theirs.gid, .sgid_index = (uint8_t)end.gid, .hop_limit = 64}},
		.path_mtu = end.mine.mtu < end.theirs.mtu ? end.mine.mtu : end.theirs.mtu,
		.dest_qp_num = end.theirs.qpn,
		.rq_psn = end.theirs.psn,
	};
	struct ibv_ah_attr way = attr.ah_attr;

	if (type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	CHECK(!ibv_modify_qp(end.qp, &attr, mask), "to RTR");
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				    .sq_psn = end.mine.psn,
				    .rnr_retry = 7,
				    .timeout = timeout,
				    .retry_cnt = retries,
				    .max_rd_atomic = 4};
	mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	CHECK(!ibv_modify_qp(end.qp, &attr, mask), "to RTS");
	return way;
}

void end_close(struct ibv_comp_channel *channel)
{
	CHECK(!ibv_destroy_qp(end.qp) && !ibv_destroy_cq(end.cq), "destroy");
	CHECK(!channel || !ibv_destroy_comp_channel(channel), "destroy_comp_channel");
	CHECK(!ibv_dealloc_pd(end.pd) && !ibv_close_device(end.context), "close");
}
