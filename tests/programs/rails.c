/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program with two rails: two devices, a queue pair on each, and one memory that both reach. The client WRITEs rounds
 * of chunks to the server over both, and goes on until it has lost a rail; then it writes over the other what was not
 * completed, and one round more. After each round the server's memory must have the hash of the client's.
 *
 *	rails [-p PORT] [-n CHUNKS] [-s BYTES] [-t TIMEOUT] [HOST]
 *
 * Each device's GID is the first IPv4 address that it has. The ends meet over TCP, by another way than the rail that is
 * lost.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "end.h"

enum { RAILS = 2, DEPTH = 8, STUCK_S = 90 };

struct rail {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	struct hello mine, theirs;
	int gid;
	uint32_t posted; /* and not completed */
	bool lost;
};

struct report {
	uint64_t round, hash;
	uint32_t last;
};

static struct {
	struct rail rails[RAILS];
	uint32_t chunks, bytes, timeout;
	uint8_t *memory;
	uint32_t *waiting; /* chunks that are to be written, */
	uint32_t count;    /* so many */
	uint32_t done;
	uint64_t again; /* chunks that were written anew */
} g = {.chunks = 64, .bytes = 65536, .timeout = 14};

static size_t memory_bytes(void)
{
	return (size_t)g.chunks * g.bytes;
}

static uint64_t hash(void)
{
	uint64_t h = 1;

	for (size_t i = 0; i < memory_bytes(); i += 8) {
		uint64_t v;

		memcpy(&v, g.memory + i, sizeof(v));
		h = mix(h ^ v);
	}
	return h;
}

static void fill(uint64_t round)
{
	for (size_t i = 0; i < memory_bytes(); i += 8) {
		uint64_t v = mix(round << 40 | i);

		memcpy(g.memory + i, &v, sizeof(v));
	}
}

/* ---- verbs ------------------------------------------------------------------------------------ */

/* The first IPv4 address of the table. */
static void find_gid(struct rail *r, int table_len)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	for (r->gid = 0; r->gid < table_len; r->gid++)
		if (!ibv_query_gid(r->context, 1, r->gid, &r->mine.gid) &&
		    !memcmp(r->mine.gid.raw, mapped, sizeof(mapped)))
			return;
	die("%s has no IPv4 address", ibv_get_device_name(r->context->device));
}

static void rail_open(struct rail *r, struct ibv_device *device)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {DEPTH, 1, 1, 1, 0}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
	struct ibv_port_attr port;

	r->context = ibv_open_device(device);
	CHECK(r->context, "open: %s", strerror(errno));
	CHECK(!ibv_query_port(r->context, 1, &port) && port.state == IBV_PORT_ACTIVE, "%s is not active",
	      ibv_get_device_name(device));
	find_gid(r, port.gid_tbl_len);
	r->pd = ibv_alloc_pd(r->context);
	r->cq = ibv_create_cq(r->context, 2 * DEPTH, NULL, NULL, 0);
	r->mr = r->pd ? ibv_reg_mr(r->pd, g.memory, memory_bytes(), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
		      : NULL;
	init.send_cq = init.recv_cq = r->cq;
	r->qp = r->mr && r->cq ? ibv_create_qp(r->pd, &init) : NULL;
	CHECK(r->qp, "objects: %s", strerror(errno));
	CHECK(!ibv_modify_qp(r->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	      "to INIT");
	CHECK(!fcntl(r->context->async_fd, F_SETFL, O_NONBLOCK), "fcntl");
	r->mine.qpn = r->qp->qp_num;
	r->mine.psn = (uint32_t)(mix((uint64_t)getpid()) & 0xffffff);
	r->mine.rkey = r->mr->rkey;
	r->mine.addr = (uintptr_t)g.memory;
	r->mine.mtu = port.active_mtu;
}

static void swap(const void *mine, void *theirs, size_t n)
{
	CHECK(send(end.tcp, mine, n, MSG_NOSIGNAL) == (ssize_t)n, "the peer is gone");
	CHECK(recv(end.tcp, theirs, n, MSG_WAITALL) == (ssize_t)n, "the peer is gone");
}

static void rail_connect(struct rail *r)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR, .min_rnr_timer = 1, .max_dest_rd_atomic = 1};

	swap(&r->mine, &r->theirs, sizeof(r->mine));
	attr.ah_attr =
		(struct ibv_ah_attr){.is_global = 1,
				     .port_num = 1,
				     .grh = {.dgid = r->theirs.gid, .sgid_index = (uint8_t)r->gid, .hop_limit = 64}};
	attr.path_mtu = r->mine.mtu < r->theirs.mtu ? r->mine.mtu : r->theirs.mtu;
	attr.dest_qp_num = r->theirs.qpn;
	attr.rq_psn = r->theirs.psn;
	CHECK(!ibv_modify_qp(r->qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
	      "to RTR");
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				    .sq_psn = r->mine.psn,
				    .timeout = (uint8_t)g.timeout,
				    .retry_cnt = 7,
				    .rnr_retry = 7,
				    .max_rd_atomic = 1};
	CHECK(!ibv_modify_qp(r->qp, &attr,
			     IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_MAX_QP_RD_ATOMIC),
	      "to RTS");
}

static void rail_close(struct rail *r)
{
	CHECK(!ibv_destroy_qp(r->qp) && !ibv_destroy_cq(r->cq) && !ibv_dereg_mr(r->mr) && !ibv_dealloc_pd(r->pd) &&
		      !ibv_close_device(r->context),
	      "close");
}

/* What each device has told of its port. */
static void events_print(struct rail *r)
{
	struct ibv_async_event e;

	while (!ibv_get_async_event(r->context, &e)) {
		printf("%s: %s\n", ibv_get_device_name(r->context->device), ibv_event_type_str(e.event_type));
		ibv_ack_async_event(&e);
	}
}

/* ---- the client --------------------------------------------------------------------------------- */

static void post(struct rail *r, uint32_t chunk)
{
	struct ibv_sge sge = {(uintptr_t)g.memory + (size_t)chunk * g.bytes, g.bytes, r->mr->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = chunk,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_RDMA_WRITE,
				       .send_flags = IBV_SEND_SIGNALED};

	wr.wr.rdma.remote_addr = r->theirs.addr + (size_t)chunk * g.bytes;
	wr.wr.rdma.rkey = r->theirs.rkey;
	CHECK(!ibv_post_send(r->qp, &wr, &bad), "post");
	r->posted++;
}

/* A chunk whose WRITE failed may have arrived, or in part; it is written again. */
static void completed(struct rail *r, const struct ibv_wc *wc)
{
	r->posted--;
	if (wc->status == IBV_WC_SUCCESS) {
		g.done++;
		return;
	}
	if (!r->lost)
		printf("%s is lost: %s\n", ibv_get_device_name(r->context->device), ibv_wc_status_str(wc->status));
	r->lost = true;
	g.waiting[g.count++] = (uint32_t)wc->wr_id;
	g.again++;
}

static void rail_serve(struct rail *r)
{
	struct ibv_wc wc[DEPTH];
	int n = ibv_poll_cq(r->cq, DEPTH, wc);

	CHECK(n >= 0, "poll");
	for (int i = 0; i < n; i++)
		completed(r, &wc[i]);
	while (!r->lost && g.count && r->posted < DEPTH)
		post(r, g.waiting[--g.count]);
}

/* All chunks arrive over the rails that are left, and nothing is posted any more. */
static void write_all(void)
{
	double until = now_s() + STUCK_S;
	bool busy = true;

	for (uint32_t i = 0; i < g.chunks; i++)
		g.waiting[g.count++] = g.chunks - 1 - i;
	for (g.done = 0; g.done < g.chunks || busy;) {
		busy = false;
		for (int i = 0; i < RAILS; i++) {
			rail_serve(&g.rails[i]);
			busy |= g.rails[i].posted;
		}
		CHECK(!g.rails[0].lost || !g.rails[1].lost, "both rails are lost");
		CHECK(now_s() < until, "stuck: %u of %u chunks", g.done, g.chunks);
	}
}

static void client(void)
{
	double until = now_s() + STUCK_S;
	struct report mine = {0}, theirs;

	printf("client writes\n");
	fflush(stdout);
	do {
		mine.last = g.rails[0].lost || g.rails[1].lost;
		fill(++mine.round);
		write_all();
		mine.hash = hash();
		swap(&mine, &theirs, sizeof(mine));
		CHECK(theirs.hash == mine.hash, "round %lu: other bytes have arrived", (unsigned long)mine.round);
		CHECK(now_s() < until, "no rail was lost");
	} while (!mine.last);
	printf("hashes are equal after %lu rounds, %lu chunks were written anew\n", (unsigned long)mine.round,
	       (unsigned long)g.again);
}

static void server(void)
{
	struct report theirs = {0}, mine;

	printf("server waits\n");
	fflush(stdout);
	while (!theirs.last) {
		CHECK(recv(end.tcp, &theirs, sizeof(theirs), MSG_WAITALL) == (ssize_t)sizeof(theirs),
		      "the peer is gone");
		mine = theirs;
		mine.hash = hash();
		CHECK(send(end.tcp, &mine, sizeof(mine), MSG_NOSIGNAL) == (ssize_t)sizeof(mine), "the peer is gone");
	}
	printf("hashes are equal after %lu rounds\n", (unsigned long)theirs.round);
}

int main(int argc, char **argv)
{
	struct ibv_device **list;
	int opt, count;

	while ((opt = getopt(argc, argv, "p:n:s:t:")) != -1) {
		switch (opt) {
		case 'p': end.port = atoi(optarg); break;
		case 'n': g.chunks = (uint32_t)atoi(optarg); break;
		case 's': g.bytes = (uint32_t)atoi(optarg) & ~7u; break;
		case 't': g.timeout = (uint32_t)atoi(optarg); break;
		default: return 2;
		}
	}
	end.host = argv[optind];
	g.memory = calloc(g.chunks, g.bytes);
	g.waiting = calloc(g.chunks, sizeof(*g.waiting));
	CHECK(g.memory && g.waiting, "memory");
	list = ibv_get_device_list(&count);
	CHECK(list && count == RAILS, "%d devices instead of %d", count, RAILS);
	for (int i = 0; i < RAILS; i++)
		rail_open(&g.rails[i], list[i]);
	ibv_free_device_list(list);
	end_open_tcp();
	for (int i = 0; i < RAILS; i++)
		rail_connect(&g.rails[i]);
	end_meet(1);
	if (end.host)
		client();
	else
		server();
	for (int i = 0; i < RAILS; i++)
		events_print(&g.rails[i]);
	end_meet(2);
	for (int i = 0; i < RAILS; i++)
		rail_close(&g.rails[i]);
	return 0;
}
