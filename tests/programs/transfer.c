/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An ordinary verbs program that checks every byte: the client draws batches of operations from a
 * seed: SEND, WRITE (both with and without immediate), READ and both atomics. The server draws the
 * same ones and so knows what must have arrived. end.h has what it shares with order.c.
 *
 *	transfer [-p PORT] [-g GID] [-c RC|UC|UD] [-n BATCHES] [-s SEED] [-b BYTES_MAX] [-e]
 *		[-t TIMEOUT] [-r RETRIES] [-k] [HOST]
 *
 * Between batches the two synchronise over TCP, so that nothing changes while a batch's memory is
 * checked. -k: after one batch the server kills itself, and the client reports the status of its
 * work requests.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "end.h"

enum { BATCH_OPS = 16, GRH_BYTES = 40, CANARY_BYTES = 64, STUCK_S = 60, DOOMED_SENDS = 8, DOOMED_RECVS = 4 };

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
	enum ibv_qp_type type;
	uint32_t batches, bytes_max, timeout, retries;
	uint64_t seed;
	bool events, kill;

	struct ibv_comp_channel *channel;
	struct ibv_ah *ah;
	struct ibv_mr *mr;
	size_t slot_bytes;
	uint8_t *memory; /* BATCH_OPS slots for one-sided data, then as many for receives */
	uint64_t ops_done, bytes_done;
} g = {.type = IBV_QPT_RC, .batches = 50, .bytes_max = 200000, .timeout = 14, .retries = 7, .seed = 1};

/* ---- patterns ----------------------------------------------------------------- */

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
		IBV_WR_SEND,      IBV_WR_SEND_WITH_IMM,      IBV_WR_RDMA_WRITE,          IBV_WR_RDMA_WRITE_WITH_IMM,
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

/* ---- verbs ------------------------------------------------------------------------------------ */

static void open_all(void)
{
	struct ibv_qp_init_attr init = {
		.qp_type = g.type,
		.cap = {.max_send_wr = BATCH_OPS, .max_recv_wr = BATCH_OPS, .max_send_sge = 3, .max_recv_sge = 2}};
	int access =
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	struct ibv_ah_attr way;

	end_open();
	g.slot_bytes = ((size_t)g.bytes_max + GRH_BYTES + 32 + CANARY_BYTES + 4095) & ~(size_t)4095;
	g.memory = aligned_alloc(4096, 2 * BATCH_OPS * g.slot_bytes);
	CHECK(g.memory, "memory");
	g.mr = ibv_reg_mr(end.pd, g.memory, 2 * BATCH_OPS * g.slot_bytes, access);
	CHECK(g.mr, "reg_mr: %s", strerror(errno));
	if (g.events)
		g.channel = ibv_create_comp_channel(end.context);
	end.cq = ibv_create_cq(end.context, 2 * BATCH_OPS, NULL, g.channel, 0);
	CHECK(end.cq, "create_cq: %s", strerror(errno));
	end_create_qp(&init, access);
	end.mine.rkey = g.mr->rkey;
	end.mine.addr = (uintptr_t)g.memory;
	way = end_connect((uint8_t)g.timeout, (uint8_t)g.retries);
	if (g.type == IBV_QPT_UD) {
		g.ah = ibv_create_ah(end.pd, &way);
		CHECK(g.ah, "create_ah: %s", strerror(errno));
	}
}

/* Waits for one completion, polling or by events. */
static struct ibv_wc next_wc(const char *what)
{
	double until = now_s() + STUCK_S;
	struct ibv_wc wc;

	for (;;) {
		int n = ibv_poll_cq(end.cq, 1, &wc);

		CHECK(n >= 0, "poll_cq: %d", n);
		if (n)
			return wc;
		CHECK(now_s() < until, "no completion for %d s: %s", STUCK_S, what);
		if (g.channel) {
			struct pollfd fd = {.fd = g.channel->fd, .events = POLLIN};
			struct ibv_cq *cq;
			void *context;

			CHECK(!ibv_req_notify_cq(end.cq, 0), "req_notify_cq");
			n = ibv_poll_cq(end.cq, 1, &wc);
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
				 {(uintptr_t)slot(BATCH_OPS + i) + n / 3, (uint32_t)(n - n / 3), g.mr->lkey}};
	struct ibv_recv_wr *bad, wr = {.wr_id = 1000 + i, .sg_list = sge, .num_sge = 2};

	CHECK(!ibv_post_recv(end.qp, &wr, &bad), "post_recv");
}

static void send_post(const struct op *o, size_t i)
{
	uint8_t *data = slot(i) + o->offset;
	uint32_t first = o->bytes / 4, second = o->bytes / 2;
	struct ibv_sge sge[3] = {{(uintptr_t)data, first, g.mr->lkey},
				 {(uintptr_t)data + first, second, g.mr->lkey},
				 {(uintptr_t)data + first + second, o->bytes - first - second, g.mr->lkey}};
	struct ibv_send_wr *bad, wr = {.wr_id = i,
				       .sg_list = sge,
				       .num_sge = 3,
				       .opcode = o->opcode,
				       .send_flags = IBV_SEND_SIGNALED,
				       .imm_data = htonl(o->imm)};
	uint64_t remote = end.theirs.addr + i * g.slot_bytes + o->offset;

	if (is_atomic(o)) {
		sge[0].length = 8;
		wr.num_sge = 1;
		wr.wr.atomic.remote_addr = remote;
		wr.wr.atomic.rkey = end.theirs.rkey;
		wr.wr.atomic.compare_add = o->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? o->compare : o->add;
		wr.wr.atomic.swap = o->swap;
	} else if (g.type == IBV_QPT_UD) {
		wr.wr.ud.ah = g.ah;
		wr.wr.ud.remote_qpn = end.theirs.qpn;
		wr.wr.ud.remote_qkey = 0x11111111;
	} else {
		wr.wr.rdma.remote_addr = remote;
		wr.wr.rdma.rkey = end.theirs.rkey;
	}
	CHECK(!ibv_post_send(end.qp, &wr, &bad), "post_send");
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
	end_meet(3 * batch);
	for (size_t i = 0; i < n; i++)
		send_post(&ops[i], i);
	for (size_t i = 0; i < n; i++) {
		struct ibv_wc wc = next_wc("send");

		CHECK(wc.status == IBV_WC_SUCCESS, "batch %u, wr %lu: %s (%d)", batch, (unsigned long)wc.wr_id,
		      ibv_wc_status_str(wc.status), wc.status);
		CHECK(wc.wr_id == i, "batch %u: completion of %lu where %zu is due", batch, (unsigned long)wc.wr_id, i);
	}
	for (size_t i = 0; i < n; i++) {
		const struct op *o = &ops[i];
		const uint8_t *data = slot(i) + o->offset;

		if (o->opcode == IBV_WR_RDMA_READ || is_atomic(o)) {
			size_t at = pattern_check(data, o->bytes, o->key);

			CHECK(at == o->bytes, "batch %u, wr %zu: byte %zu of %u read is wrong", batch, i, at, o->bytes);
			for (size_t k = 0; k < CANARY_BYTES; k++)
				CHECK(data[o->bytes + k] == 0xa5, "batch %u, wr %zu: wrote beyond", batch, i);
		}
		g.ops_done++;
		g.bytes_done += o->bytes;
	}
	end_meet(3 * batch + 1);
}

/* ---- the server: is acted upon, and looks -------------------------------------------------------- */

static void check_recv(const struct op *o, size_t r, uint32_t batch)
{
	struct ibv_wc wc = next_wc("receive");
	bool write = o->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	uint32_t grh = g.type == IBV_QPT_UD ? GRH_BYTES : 0;
	const uint8_t *data = slot(BATCH_OPS + r) + grh;

	CHECK(wc.status == IBV_WC_SUCCESS, "batch %u, receive %zu: %s (%d)", batch, r, ibv_wc_status_str(wc.status),
	      wc.status);
	CHECK(wc.wr_id == 1000 + r, "batch %u: receive %lu where %zu is due", batch, (unsigned long)wc.wr_id, 1000 + r);
	CHECK(wc.opcode == (write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV), "opcode %d", wc.opcode);
	CHECK(!!(wc.wc_flags & IBV_WC_WITH_IMM) == o->has_imm, "batch %u, receive %zu: flags %x", batch, r,
	      wc.wc_flags);
	if (o->has_imm)
		CHECK(ntohl(wc.imm_data) == o->imm, "batch %u, receive %zu: immediate", batch, r);
	CHECK(wc.byte_len == o->bytes + grh, "batch %u, receive %zu: %u bytes, not %u", batch, r, wc.byte_len,
	      o->bytes + grh);
	if (grh)
		CHECK(wc.wc_flags & IBV_WC_GRH && wc.src_qp == end.theirs.qpn, "no GRH or wrong QPN");
	if (!write) {
		size_t at = pattern_check(data, o->bytes, o->key);

		CHECK(at == o->bytes, "batch %u, receive %zu: byte %zu of %u is wrong", batch, r, at, o->bytes);
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
	end_meet(3 * batch);
	recvs = 0;
	for (size_t i = 0; i < n; i++) {
		if (ops[i].takes_recv)
			check_recv(&ops[i], recvs++, batch);
	}
	end_meet(3 * batch + 1);

	for (size_t i = 0; i < n; i++) {
		const struct op *o = &ops[i];
		const uint8_t *data = slot(i) + o->offset;
		uint64_t was = mix(o->key), is;
		size_t touched = o->bytes;

		switch (o->opcode) {
		case IBV_WR_SEND:
		case IBV_WR_SEND_WITH_IMM: touched = 0; break;
		case IBV_WR_ATOMIC_CMP_AND_SWP:
			memcpy(&is, data, 8);
			CHECK(is == (was == o->compare ? o->swap : was), "batch %u, wr %zu: swap", batch, i);
			break;
		case IBV_WR_ATOMIC_FETCH_AND_ADD:
			memcpy(&is, data, 8);
			CHECK(is == was + o->add, "batch %u, wr %zu: add", batch, i);
			break;
		default: {
			size_t at = pattern_check(data, o->bytes, o->key);

			CHECK(at == o->bytes, "batch %u, wr %zu: byte %zu of %u is wrong", batch, i, at, o->bytes);
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

	CHECK(recv(end.tcp, &byte, 1, 0) <= 0, "the server lives");
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
	CHECK(!ibv_query_qp(end.qp, &attr, IBV_QP_STATE, &init), "query_qp");
	printf("first error after %.3f s, QP state %d\n", first, attr.qp_state);
}

int main(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "p:g:c:n:s:b:t:r:ek")) != -1) {
		switch (c) {
		case 'p': end.port = atoi(optarg); break;
		case 'g': end.gid = atoi(optarg); break;
		case 'c':
			g.type = !strcmp(optarg, "UD") ? IBV_QPT_UD : !strcmp(optarg, "UC") ? IBV_QPT_UC : IBV_QPT_RC;
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
	end.host = argv[optind];
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("seed %llu\n", (unsigned long long)g.seed);
	open_all();
	end_meet(~1u);
	for (uint32_t b = 0; b < (g.kill ? 1 : g.batches); b++) {
		if (end.host)
			client_batch(b);
		else
			server_batch(b);
	}
	if (g.kill && !end.host) {
		kill(getpid(), SIGKILL);
	} else if (g.kill) {
		doomed();
		return 0;
	}
	end_meet(~2u);
	if (g.ah)
		CHECK(!ibv_destroy_ah(g.ah), "destroy_ah");
	CHECK(!ibv_dereg_mr(g.mr), "dereg_mr");
	end_close(g.channel);
	printf("done: %llu operations, %llu bytes, every one right\n", (unsigned long long)g.ops_done,
	       (unsigned long long)g.bytes_done);
	return 0;
}
