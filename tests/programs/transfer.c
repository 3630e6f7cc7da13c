/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An ordinary verbs program that checks every byte: the client draws batches of operations from a
 * seed: SEND, WRITE (both with and without immediate), READ and both atomics. The server draws the
 * same ones and so knows what must have arrived. The program is built against the distribution's
 * libibverbs and does not depend on the provider.
 *
 * 	transfer [-p PORT] [-g GID] [-c RC|UC|UD] [-n BATCHES] [-s SEED] [-b BYTES_MAX] [-e]
 * 		[-t TIMEOUT] [-r RETRIES] [-k] [HOST]
 *
 * Between batches the two synchronise over TCP, so that nothing changes while a batch's memory is
 * checked. -k: after one batch the server kills itself, and the client reports the status of its
 * work requests.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	BATCH_OPS = 16,
	GRH_BYTES = 40,
	CANARY_BYTES = 64,
	STUCK_S = 60,
	DOOMED_SENDS = 8,
	DOOMED_RECVS = 4
};

/* What travels over TCP before the QPs are connected. Both ends are the same program. */
struct hello {
	uint32_t qpn, psn, rkey, mtu;
	uint64_t addr;
	union ibv_gid gid;
};

struct op {
	enum ibv_wr_opcode opcode;
	uint32_t bytes;
	uint32_t offset; /* of the data in its slot */
	uint32_t imm;
	bool has_imm, takes_recv;
	uint64_t key; /* of its data */
	uint64_t add, compare, swap;
};

static struct {
	const char *host;
	int port, gid;
	enum ibv_qp_type type;
	uint32_t batches, bytes_max, timeout, retries;
	uint64_t seed;
	bool events, kill;

	int tcp;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	struct ibv_mr *mr;
	struct hello mine, theirs;
	size_t slot_bytes;
	uint8_t *memory;     /* BATCH_OPS slots for one-sided data, then as many for receives */
	uint64_t ops_done, bytes_done;
} g = {.port = 18515, .type = IBV_QPT_RC, .batches = 50, .bytes_max = 200000, .timeout = 14,
       .retries = 7, .seed = 1};

static void die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

static void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "%s failed: ", g.host ? "client" : "server");
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	exit(1);
}

#define CHECK(cond, ...)                      \
	do {                                  \
		if (!(cond))                  \
			die(__VA_ARGS__);     \
	} while (0)

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* ---- numbers and patterns ----------------------------------------------------------------- */

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static uint64_t draw(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15u;
	return mix(*state);
}

static void pattern_fill(uint8_t *p, size_t n, uint64_t key)
{
	for (size_t i = 0; i < n; i += 8) {
		uint64_t v = mix(key + i);

		memcpy(p + i, &v, n - i < 8 ? n - i : 8);
	}
}

/* The first byte that differs, or n. */
static size_t pattern_check(const uint8_t *p, size_t n, uint64_t key)
{
	for (size_t i = 0; i < n; i += 8) {
		uint64_t v = mix(key + i);
		size_t len = n - i < 8 ? n - i : 8;

		if (memcmp(p + i, &v, len)) {
			for (size_t k = 0;; k++)
				if (p[i + k] != ((uint8_t *)&v)[k])
					return i + k;
		}
	}
	return n;
}

static uint8_t *slot(size_t i)
{
	return g.memory + i * g.slot_bytes;
}

/* ---- the plan: what batch number b consists of, the same at both ends ------------------------- */

static uint32_t draw_bytes(uint64_t *state)
{
	static const uint32_t edge[] = {0, 1, 3, 255, 256, 257, 1023, 1024, 1025, 4095, 4096, 4097};
	uint64_t r = draw(state);
	uint32_t most = g.bytes_max;

	if (r % 4 == 0) {
		uint32_t e = edge[(r >> 8) % (sizeof(edge) / sizeof(edge[0]))];

		return e < most ? e : most;
	}
	if (r % 4 == 1) /* a few packets */
		most = most < 20000 ? most : 20000;
	return (uint32_t)((r >> 8) % (most + 1));
}

static size_t plan(uint32_t batch, struct op ops[BATCH_OPS])
{
	static const enum ibv_wr_opcode rc[] = {
		IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD};
	size_t kinds = g.type == IBV_QPT_RC ? 7 : g.type == IBV_QPT_UC ? 4 : 2;
	uint64_t state = mix(g.seed) ^ mix(batch);
	size_t n = 1 + draw(&state) % BATCH_OPS;

	for (size_t i = 0; i < n; i++) {
		struct op *o = &ops[i];

		memset(o, 0, sizeof(*o));
		o->opcode = rc[draw(&state) % kinds];
		/* Nothing else shows when an unreliable batch has arrived. */
		if (i == n - 1 && g.type != IBV_QPT_RC)
			o->opcode = IBV_WR_SEND_WITH_IMM;
		o->bytes = draw_bytes(&state);
		o->offset = (uint32_t)(draw(&state) % 32);
		o->imm = (uint32_t)draw(&state);
		o->key = draw(&state);
		o->has_imm = o->opcode == IBV_WR_SEND_WITH_IMM || o->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
		o->takes_recv = o->has_imm || o->opcode == IBV_WR_SEND;
		if (o->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || o->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
			o->bytes = 8;
			o->offset = (uint32_t)(draw(&state) % 4) * 8;
			o->add = draw(&state);
			o->swap = draw(&state);
			o->compare = draw(&state) % 2 ? mix(o->key) : o->add; /* half of them match */
		}
	}
	return n;
}

static bool is_atomic(const struct op *o)
{
	return o->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || o->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* ---- TCP ------------------------------------------------------------------------------------ */

static void tcp_open(void)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_family = AF_INET6,
				 .ai_flags = AI_PASSIVE};
	struct addrinfo *res;
	char port[8];
	int s, one = 1;

	if (g.host)
		hints = (struct addrinfo){.ai_socktype = SOCK_STREAM};
	snprintf(port, sizeof(port), "%d", g.port);
	CHECK(!getaddrinfo(g.host, port, &hints, &res), "no such address");
	s = socket(res->ai_family, res->ai_socktype, 0);
	CHECK(s >= 0, "socket: %s", strerror(errno));
	if (g.host) {
		CHECK(!connect(s, res->ai_addr, res->ai_addrlen), "connect: %s", strerror(errno));
		g.tcp = s;
	} else {
		setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		CHECK(!bind(s, res->ai_addr, res->ai_addrlen) && !listen(s, 1), "listen: %s",
		      strerror(errno));
		g.tcp = accept(s, NULL, NULL);
		CHECK(g.tcp >= 0, "accept: %s", strerror(errno));
		close(s);
	}
	freeaddrinfo(res);
}

static void tcp_swap(const void *mine, void *theirs, size_t n)
{
	CHECK(send(g.tcp, mine, n, MSG_NOSIGNAL) == (ssize_t)n, "the peer is gone");
	CHECK(recv(g.tcp, theirs, n, MSG_WAITALL) == (ssize_t)n, "the peer is gone");
}

/* Both ends have come to the same point, which the number names. */
static void meet(uint32_t where)
{
	uint32_t theirs = ~where;

	tcp_swap(&where, &theirs, sizeof(where));
	CHECK(theirs == where, "the ends are out of step: %u and %u", where, theirs);
}

/* ---- verbs ------------------------------------------------------------------------------------ */

static void device_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_port_attr port;
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = BATCH_OPS, .max_recv_wr = BATCH_OPS, .max_send_sge = 3,
			.max_recv_sge = 2}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 0x11111111};
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		     IBV_ACCESS_REMOTE_ATOMIC;
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	CHECK(list && list[0], "no device");
	g.context = ibv_open_device(list[0]);
	CHECK(g.context, "open: %s", strerror(errno));
	ibv_free_device_list(list);
	CHECK(!ibv_query_port(g.context, 1, &port), "query_port");
	CHECK(!ibv_query_gid(g.context, 1, g.gid, &g.mine.gid), "query_gid %d", g.gid);
	g.mine.mtu = port.active_mtu;
	g.mine.psn = (uint32_t)(mix(g.seed ^ (uint64_t)getpid()) & 0xffffff);

	g.slot_bytes = ((size_t)g.bytes_max + GRH_BYTES + 32 + CANARY_BYTES + 4095) & ~(size_t)4095;
	g.memory = aligned_alloc(4096, 2 * BATCH_OPS * g.slot_bytes);
	g.pd = ibv_alloc_pd(g.context);
	CHECK(g.memory && g.pd, "memory");
	g.mr = ibv_reg_mr(g.pd, g.memory, 2 * BATCH_OPS * g.slot_bytes, access);
	CHECK(g.mr, "reg_mr: %s", strerror(errno));
	if (g.events)
		g.channel = ibv_create_comp_channel(g.context);
	g.cq = ibv_create_cq(g.context, 2 * BATCH_OPS, NULL, g.channel, 0);
	CHECK(g.cq, "create_cq: %s", strerror(errno));

	init.send_cq = init.recv_cq = g.cq;
	init.qp_type = g.type;
	g.qp = ibv_create_qp(g.pd, &init);
	CHECK(g.qp, "create_qp: %s", strerror(errno));
	if (g.type == IBV_QPT_UD)
		mask |= IBV_QP_QKEY;
	else
		mask |= IBV_QP_ACCESS_FLAGS;
	attr.qp_access_flags = (unsigned)access;
	CHECK(!ibv_modify_qp(g.qp, &attr, mask), "to INIT");
	g.mine.qpn = g.qp->qp_num;
	g.mine.rkey = g.mr->rkey;
	g.mine.addr = (uintptr_t)g.memory;
}

static void connect_qp(void)
{
	struct ibv_ah_attr ah = {.is_global = 1, .port_num = 1};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR, .min_rnr_timer = 1, .max_dest_rd_atomic = 4};
	int mask = IBV_QP_STATE;

	ah.grh.dgid = g.theirs.gid;
	ah.grh.sgid_index = (uint8_t)g.gid;
	ah.grh.hop_limit = 64;
	attr.ah_attr = ah;
	attr.path_mtu = g.mine.mtu < g.theirs.mtu ? g.mine.mtu : g.theirs.mtu;
	attr.dest_qp_num = g.theirs.qpn;
	attr.rq_psn = g.theirs.psn;
	if (g.type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (g.type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	CHECK(!ibv_modify_qp(g.qp, &attr, mask), "to RTR");

	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .sq_psn = g.mine.psn, .rnr_retry = 7,
				    .timeout = (uint8_t)g.timeout, .retry_cnt = (uint8_t)g.retries,
				    .max_rd_atomic = 4};
	mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (g.type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	CHECK(!ibv_modify_qp(g.qp, &attr, mask), "to RTS");
	if (g.type == IBV_QPT_UD) {
		g.ah = ibv_create_ah(g.pd, &ah);
		CHECK(g.ah, "create_ah: %s", strerror(errno));
	}
}

/* Waits for one completion, polling or by events. */
static struct ibv_wc next_wc(const char *what)
{
	double end = now_s() + STUCK_S;
	struct ibv_wc wc;

	for (;;) {
		int n = ibv_poll_cq(g.cq, 1, &wc);

		CHECK(n >= 0, "poll_cq: %d", n);
		if (n)
			return wc;
		CHECK(now_s() < end, "no completion for %d s: %s", STUCK_S, what);
		if (g.channel) {
			struct pollfd fd = {.fd = g.channel->fd, .events = POLLIN};
			struct ibv_cq *cq;
			void *context;

			CHECK(!ibv_req_notify_cq(g.cq, 0), "req_notify_cq");
			n = ibv_poll_cq(g.cq, 1, &wc);
			if (n)
				return wc;
			if (poll(&fd, 1, 1000) > 0) {
				CHECK(!ibv_get_cq_event(g.channel, &cq, &context), "get_cq_event");
				ibv_ack_cq_events(cq, 1);
			}
		}
	}
}

static void recv_post(size_t i)
{
	size_t n = g.slot_bytes - CANARY_BYTES;
	struct ibv_sge sge[2] = {{(uintptr_t)slot(BATCH_OPS + i), (uint32_t)(n / 3), g.mr->lkey},
				 {(uintptr_t)slot(BATCH_OPS + i) + n / 3, (uint32_t)(n - n / 3),
				  g.mr->lkey}};
	struct ibv_recv_wr *bad, wr = {.wr_id = 1000 + i, .sg_list = sge, .num_sge = 2};

	CHECK(!ibv_post_recv(g.qp, &wr, &bad), "post_recv");
}

static void send_post(const struct op *o, size_t i)
{
	uint8_t *data = slot(i) + o->offset;
	uint32_t first = o->bytes / 4, second = o->bytes / 2;
	struct ibv_sge sge[3] = {{(uintptr_t)data, first, g.mr->lkey},
				 {(uintptr_t)data + first, second, g.mr->lkey},
				 {(uintptr_t)data + first + second, o->bytes - first - second, g.mr->lkey}};
	struct ibv_send_wr *bad, wr = {.wr_id = i, .sg_list = sge, .num_sge = 3, .opcode = o->opcode,
				       .send_flags = IBV_SEND_SIGNALED, .imm_data = htonl(o->imm)};
	uint64_t remote = g.theirs.addr + i * g.slot_bytes + o->offset;

	if (is_atomic(o)) {
		sge[0].length = 8;
		wr.num_sge = 1;
		wr.wr.atomic.remote_addr = remote;
		wr.wr.atomic.rkey = g.theirs.rkey;
		wr.wr.atomic.compare_add =
			o->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? o->compare : o->add;
		wr.wr.atomic.swap = o->swap;
	} else if (g.type == IBV_QPT_UD) {
		wr.wr.ud.ah = g.ah;
		wr.wr.ud.remote_qpn = g.theirs.qpn;
		wr.wr.ud.remote_qkey = 0x11111111;
	} else {
		wr.wr.rdma.remote_addr = remote;
		wr.wr.rdma.rkey = g.theirs.rkey;
	}
	CHECK(!ibv_post_send(g.qp, &wr, &bad), "post_send");
}

/* ---- the client: asks for everything --------------------------------------------------------- */

static void client_batch(uint32_t batch)
{
	struct op ops[BATCH_OPS];
	size_t n = plan(batch, ops);

	for (size_t i = 0; i < n; i++) {
		bool answer = ops[i].opcode == IBV_WR_RDMA_READ || is_atomic(&ops[i]);

		memset(slot(i), 0xa5, g.slot_bytes);
		if (!answer)
			pattern_fill(slot(i) + ops[i].offset, ops[i].bytes, ops[i].key);
	}
	meet(3 * batch);
	for (size_t i = 0; i < n; i++)
		send_post(&ops[i], i);
	for (size_t i = 0; i < n; i++) {
		struct ibv_wc wc = next_wc("send");

		CHECK(wc.status == IBV_WC_SUCCESS, "batch %u, wr %lu: %s (%d)", batch,
		      (unsigned long)wc.wr_id, ibv_wc_status_str(wc.status), wc.status);
		CHECK(wc.wr_id == i, "batch %u: completion of %lu where %zu is due", batch,
		      (unsigned long)wc.wr_id, i);
	}
	for (size_t i = 0; i < n; i++) {
		const struct op *o = &ops[i];
		const uint8_t *data = slot(i) + o->offset;

		if (o->opcode == IBV_WR_RDMA_READ || is_atomic(o)) {
			size_t at = pattern_check(data, o->bytes, o->key);

			CHECK(at == o->bytes, "batch %u, wr %zu: byte %zu of %u read is wrong", batch, i,
			      at, o->bytes);
			for (size_t k = 0; k < CANARY_BYTES; k++)
				CHECK(data[o->bytes + k] == 0xa5, "batch %u, wr %zu: wrote beyond", batch,
				      i);
		}
		g.ops_done++;
		g.bytes_done += o->bytes;
	}
	meet(3 * batch + 1);
}

/* ---- the server: is acted upon, and looks -------------------------------------------------------- */

static void check_recv(const struct op *o, size_t r, uint32_t batch)
{
	struct ibv_wc wc = next_wc("receive");
	bool write = o->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	uint32_t grh = g.type == IBV_QPT_UD ? GRH_BYTES : 0;
	const uint8_t *data = slot(BATCH_OPS + r) + grh;

	CHECK(wc.status == IBV_WC_SUCCESS, "batch %u, receive %zu: %s (%d)", batch, r,
	      ibv_wc_status_str(wc.status), wc.status);
	CHECK(wc.wr_id == 1000 + r, "batch %u: receive %lu where %zu is due", batch,
	      (unsigned long)wc.wr_id, 1000 + r);
	CHECK(wc.opcode == (write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV), "opcode %d", wc.opcode);
	CHECK(!!(wc.wc_flags & IBV_WC_WITH_IMM) == o->has_imm, "batch %u, receive %zu: flags %x", batch,
	      r, wc.wc_flags);
	if (o->has_imm)
		CHECK(ntohl(wc.imm_data) == o->imm, "batch %u, receive %zu: immediate", batch, r);
	CHECK(wc.byte_len == o->bytes + grh, "batch %u, receive %zu: %u bytes, not %u", batch, r,
	      wc.byte_len, o->bytes + grh);
	if (grh)
		CHECK(wc.wc_flags & IBV_WC_GRH && wc.src_qp == g.theirs.qpn, "no GRH or wrong QPN");
	if (!write) {
		size_t at = pattern_check(data, o->bytes, o->key);

		CHECK(at == o->bytes, "batch %u, receive %zu: byte %zu of %u is wrong", batch, r, at,
		      o->bytes);
		for (size_t k = 0; k < CANARY_BYTES; k++)
			CHECK(data[o->bytes + k] == 0xa5, "batch %u, receive %zu: wrote beyond", batch, r);
	}
}

static void server_batch(uint32_t batch)
{
	struct op ops[BATCH_OPS];
	size_t n = plan(batch, ops), recvs = 0;

	for (size_t i = 0; i < n; i++) {
		memset(slot(i), 0xa5, g.slot_bytes);
		if (ops[i].opcode == IBV_WR_RDMA_READ || is_atomic(&ops[i]))
			pattern_fill(slot(i) + ops[i].offset, ops[i].bytes, ops[i].key);
		if (ops[i].takes_recv) {
			memset(slot(BATCH_OPS + recvs), 0xa5, g.slot_bytes);
			recv_post(recvs++);
		}
	}
	meet(3 * batch);
	recvs = 0;
	for (size_t i = 0; i < n; i++) {
		if (ops[i].takes_recv)
			check_recv(&ops[i], recvs++, batch);
	}
	meet(3 * batch + 1);

	for (size_t i = 0; i < n; i++) {
		const struct op *o = &ops[i];
		const uint8_t *data = slot(i) + o->offset;
		uint64_t was = mix(o->key), is;
		size_t touched = o->bytes;

		switch (o->opcode) {
		case IBV_WR_SEND:
		case IBV_WR_SEND_WITH_IMM:
			touched = 0;
			break;
		case IBV_WR_ATOMIC_CMP_AND_SWP:
			memcpy(&is, data, 8);
			CHECK(is == (was == o->compare ? o->swap : was), "batch %u, wr %zu: swap", batch,
			      i);
			break;
		case IBV_WR_ATOMIC_FETCH_AND_ADD:
			memcpy(&is, data, 8);
			CHECK(is == was + o->add, "batch %u, wr %zu: add", batch, i);
			break;
		default: {
			size_t at = pattern_check(data, o->bytes, o->key);

			CHECK(at == o->bytes, "batch %u, wr %zu: byte %zu of %u is wrong", batch, i, at,
			      o->bytes);
		}
		}
		for (const uint8_t *p = slot(i); p < slot(i) + g.slot_bytes; p++) {
			if (p < data || p >= data + touched)
				CHECK(*p == 0xa5, "batch %u, wr %zu: wrote outside", batch, i);
		}
		g.ops_done++;
		g.bytes_done += o->bytes;
	}
}

/* ---- -k ---------------------------------------------------------------------------------------- */

static void doomed(void)
{
	struct op o = {.opcode = IBV_WR_SEND, .bytes = 3000};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	double begun, first = 0;
	size_t sends = 0, recvs = 0;
	char byte;

	CHECK(recv(g.tcp, &byte, 1, 0) <= 0, "the server lives");
	for (size_t i = 0; i < DOOMED_RECVS; i++)
		recv_post(i);
	begun = now_s();
	for (size_t i = 0; i < DOOMED_SENDS; i++)
		send_post(&o, i);
	while (sends + recvs < DOOMED_SENDS + DOOMED_RECVS) {
		struct ibv_wc wc = next_wc("error");
		bool is_recv = wc.wr_id >= 1000;
		size_t due = is_recv ? 1000 + recvs++ : sends++;

		if (!first)
			first = now_s() - begun;
		printf("%s %zu: status %d, %s\n", is_recv ? "receive" : "send", due % 1000, wc.status,
		       ibv_wc_status_str(wc.status));
		CHECK(wc.wr_id == due, "completion of %lu, not of %zu", (unsigned long)wc.wr_id, due);
	}
	CHECK(!ibv_query_qp(g.qp, &attr, IBV_QP_STATE, &init), "query_qp");
	printf("first error after %.3f s, QP state %d\n", first, attr.qp_state);
}

int main(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "p:g:c:n:s:b:t:r:ek")) != -1) {
		switch (c) {
		case 'p': g.port = atoi(optarg); break;
		case 'g': g.gid = atoi(optarg); break;
		case 'c':
			g.type = !strcmp(optarg, "UD") ? IBV_QPT_UD
				 : !strcmp(optarg, "UC") ? IBV_QPT_UC : IBV_QPT_RC;
			break;
		case 'n': g.batches = (uint32_t)atoi(optarg); break;
		case 's': g.seed = strtoull(optarg, NULL, 0); break;
		case 'b': g.bytes_max = (uint32_t)atoi(optarg); break;
		case 't': g.timeout = (uint32_t)atoi(optarg); break;
		case 'r': g.retries = (uint32_t)atoi(optarg); break;
		case 'e': g.events = true; break;
		case 'k': g.kill = true; break;
		default: return 2;
		}
	}
	g.host = argv[optind];
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("seed %llu\n", (unsigned long long)g.seed);
	device_open();
	tcp_open();
	tcp_swap(&g.mine, &g.theirs, sizeof(g.mine));
	connect_qp();
	meet(~1u);
	for (uint32_t b = 0; b < (g.kill ? 1 : g.batches); b++) {
		if (g.host)
			client_batch(b);
		else
			server_batch(b);
	}
	if (g.kill && !g.host) {
		kill(getpid(), SIGKILL);
	} else if (g.kill) {
		doomed();
		return 0;
	}
	meet(~2u);
	if (g.ah)
		CHECK(!ibv_destroy_ah(g.ah), "destroy_ah");
	CHECK(!ibv_destroy_qp(g.qp) && !ibv_destroy_cq(g.cq) && !ibv_dereg_mr(g.mr), "destroy");
	CHECK(!g.channel || !ibv_destroy_comp_channel(g.channel), "destroy_comp_channel");
	CHECK(!ibv_dealloc_pd(g.pd) && !ibv_close_device(g.context), "close");
	printf("done: %llu operations, %llu bytes, every one right\n", (unsigned long long)g.ops_done,
	       (unsigned long long)g.bytes_done);
	return 0;
}
