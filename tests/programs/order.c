/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An ordinary verbs program that relies on the order in which an adapter writes memory, as many do, and counts
 * violations. The client writes, the server reads its memory. end.h has what it shares with transfer.c.
 *
 *	order -k rewritten|last|flag|random [-p PORT] [-g GID] [-n ROUNDS] [-s SEED] [-b BYTES] [HOST]
 *
 * rewritten: a round is 16 WRITEs over the same bytes; when they are complete, memory has the last one's bytes.
 * last: a reader that sees the last byte of a WRITE sees all others.
 * flag: a reader that sees the second of two WRITEs sees all of the first.
 * random: WRITEs of 1 to BYTES bytes over each other, with counters of them in between: a reader that sees a
 * counter finds at each place the bytes that this many WRITEs left there, or newer ones. READs of the same
 * bytes return what was posted before them, and at the end memory is as if the operations had been executed
 * one after the other.
 *
 * A byte's value is the number of the WRITE that put it there.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "end.h"

enum { REWRITES = 16, OPS = 40, SENDS_MAX = 128, STUCK_S = 40 };

static struct {
	uint32_t rounds, bytes;
	uint64_t seed;

	struct ibv_mr *mr;
	uint8_t *memory; /* `bytes` that are written and looked at, then a counter, then what READs bring */
	uint8_t *source; /* of the client: what is being written */
	size_t source_bytes, source_used;
	struct ibv_mr *source_mr;
	uint32_t under_way;
	uint64_t wrong, looked;
} g = {.rounds = 100, .seed = 1, .bytes = 65536};

static void meet(void)
{
	end_meet(0);
}

/* ---- verbs ------------------------------------------------------------------------------------ */

static void open_all(void)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = SENDS_MAX, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	size_t bytes = 2 * (size_t)g.bytes + 8;

	end_open();
	g.memory = calloc(1, bytes);
	CHECK(g.memory, "memory");
	g.mr = ibv_reg_mr(end.pd, g.memory, bytes, access);
	CHECK(g.mr, "reg_mr: %s", strerror(errno));
	if (end.host) {
		g.source_bytes = (g.bytes > 100000 ? 4 : REWRITES) * (size_t)g.bytes + 8;
		g.source = calloc(1, g.source_bytes);
		CHECK(g.source, "memory");
		g.source_mr = ibv_reg_mr(end.pd, g.source, g.source_bytes, 0);
		CHECK(g.source_mr, "reg_mr: %s", strerror(errno));
	}
	end.cq = ibv_create_cq(end.context, SENDS_MAX, NULL, NULL, 0);
	CHECK(end.cq, "create_cq: %s", strerror(errno));
	end_create_qp(&init, access);
	end.mine.rkey = g.mr->rkey;
	end.mine.addr = (uintptr_t)g.memory;
	end_connect(14, 7);
}

static uint64_t counter_off(void)
{
	return g.bytes;
}

static uint8_t *fetched(void)
{
	return g.memory + g.bytes + 8;
}

static void post(enum ibv_wr_opcode opcode, void *local, uint32_t lkey, uint64_t remote_off, uint32_t len)
{
	struct ibv_sge sge = {.addr = (uintptr_t)local, .length = len, .lkey = lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	wr.wr.rdma.remote_addr = end.theirs.addr + remote_off;
	wr.wr.rdma.rkey = end.theirs.rkey;
	CHECK(!ibv_post_send(end.qp, &wr, &bad), "post_send");
	g.under_way++;
}

static void wait_all(void)
{
	double until = now_s() + STUCK_S;

	while (g.under_way) {
		struct ibv_wc wc;
		int n = ibv_poll_cq(end.cq, 1, &wc);

		CHECK(n >= 0 && (!n || wc.status == IBV_WC_SUCCESS), "completion: %s",
		      n < 0 ? "none" : ibv_wc_status_str(wc.status));
		CHECK(now_s() < until, "stuck");
		g.under_way -= (uint32_t)n;
	}
}

/* Bytes that no WRITE under way is of. */
static uint8_t *source(uint32_t len)
{
	if (g.source_used + len > g.source_bytes) {
		wait_all();
		g.source_used = 0;
	}
	g.source_used += len;
	return g.source + g.source_used - len;
}

static void write_stamp(uint8_t stamp, uint64_t off, uint32_t len)
{
	uint8_t *from = source(len);

	memset(from, stamp, len);
	post(IBV_WR_RDMA_WRITE, from, g.source_mr->lkey, off, len);
}

static void write_counter(uint64_t n)
{
	uint8_t *from = source(8);

	memcpy(from, &n, 8);
	post(IBV_WR_RDMA_WRITE, from, g.source_mr->lkey, counter_off(), 8);
}

/* ---- what is looked at -------------------------------------------------------------------------- */

static uint8_t byte_at(uint64_t off)
{
	return __atomic_load_n(g.memory + off, __ATOMIC_ACQUIRE);
}

static uint64_t counter(void)
{
	return __atomic_load_n((uint64_t *)(g.memory + counter_off()), __ATOMIC_ACQUIRE);
}

static void wait_a_little(double until)
{
	CHECK(now_s() < until, "stuck");
	sched_yield();
}

static void expect_all(uint8_t stamp)
{
	uint64_t bad = 0;

	for (uint32_t i = 0; i < g.bytes; i++)
		bad += g.memory[i] != stamp;
	g.wrong += bad != 0;
	g.looked++;
}

static void rewritten(uint32_t round)
{
	for (uint32_t i = 0; end.host && i < REWRITES; i++)
		write_stamp((uint8_t)(round * REWRITES + i), 0, g.bytes);
	wait_all();
	meet();
	if (!end.host)
		expect_all((uint8_t)(round * REWRITES + REWRITES - 1));
	meet();
}

static void last(uint32_t round)
{
	uint8_t stamp = (uint8_t)(round % 255 + 1);
	double until = now_s() + STUCK_S;

	if (end.host) {
		write_stamp(stamp, 0, g.bytes);
	} else {
		while (byte_at(g.bytes - 1) != stamp)
			wait_a_little(until);
		expect_all(stamp);
	}
	wait_all();
	meet();
}

static void flag(uint32_t round)
{
	uint8_t stamp = (uint8_t)(round % 255 + 1);
	double until = now_s() + STUCK_S;

	if (end.host) {
		write_stamp(stamp, 0, g.bytes);
		write_counter(round + 1);
	} else {
		while (counter() != round + 1)
			wait_a_little(until);
		expect_all(stamp);
	}
	wait_all();
	meet();
}

/* ---- random ------------------------------------------------------------------------------------- */

struct op {
	bool read, count;
	uint64_t off;
	uint32_t len;
};

static void plan(uint32_t round, struct op ops[OPS])
{
	uint64_t state = g.seed * 1000003 + round;

	for (uint32_t i = 0; i < OPS; i++) {
		uint32_t most = g.bytes >> draw(&state) % 12;

		ops[i].read = i && draw(&state) % 12 == 0;
		ops[i].count = draw(&state) % 2;
		ops[i].len = 1 + (uint32_t)(draw(&state) % (most ? most : 1));
		ops[i].off = draw(&state) % (g.bytes - ops[i].len + 1) >> draw(&state) % 12;
	}
}

/* With any adapter a READ may see WRITEs behind it: they wait until it is complete. */
static void random_client(const struct op ops[OPS], uint8_t *model)
{
	for (uint32_t i = 0; i < OPS; i++) {
		const struct op *o = &ops[i];

		if (o->read) {
			post(IBV_WR_RDMA_READ, fetched(), g.mr->lkey, o->off, o->len);
			wait_all();
			g.wrong += memcmp(fetched(), model + o->off, o->len) != 0;
			g.looked++;
			continue;
		}
		write_stamp((uint8_t)(i + 1), o->off, o->len);
		memset(model + o->off, (int)i + 1, o->len);
		if (o->count)
			write_counter(i + 1);
	}
	write_counter(OPS + 1);
	wait_all();
}

static void random_server(const struct op ops[OPS], uint8_t *model)
{
	double until = now_s() + STUCK_S;
	uint64_t done = 0, seen;

	while (done <= OPS) {
		while ((seen = counter()) == done)
			wait_a_little(until);
		g.wrong += seen < done || seen > OPS + 1;
		g.looked++;
		for (; done < seen && done < OPS; done++) {
			if (!ops[done].read)
				memset(model + ops[done].off, (int)done + 1, ops[done].len);
		}
		done = seen;
		for (uint32_t i = 0; i < g.bytes; i++)
			g.wrong += byte_at(i) < model[i];
	}
}

static void random_round(uint32_t round)
{
	struct op ops[OPS];
	uint8_t *model = calloc(1, g.bytes);

	plan(round, ops);
	memset(g.memory, 0, g.bytes + 8);
	meet();
	if (end.host) {
		random_client(ops, model);
	} else {
		random_server(ops, model);
	}
	meet();
	if (!end.host)
		g.wrong += memcmp(g.memory, model, g.bytes) != 0;
	meet();
	free(model);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*round)(uint32_t);
	} kinds[] = {{"rewritten", rewritten}, {"last", last}, {"flag", flag}, {"random", random_round}};
	void (*round)(uint32_t) = NULL;
	int c;

	while ((c = getopt(argc, argv, "p:g:n:s:b:k:")) != -1) {
		switch (c) {
		case 'p': end.port = atoi(optarg); break;
		case 'g': end.gid = atoi(optarg); break;
		case 'n': g.rounds = (uint32_t)atoi(optarg); break;
		case 's': g.seed = strtoull(optarg, NULL, 0); break;
		case 'b': g.bytes = ((uint32_t)atoi(optarg) + 7) & ~7u; break;
		case 'k':
			for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
				if (!strcmp(optarg, kinds[i].name))
					round = kinds[i].round;
			}
			break;
		default: return 2;
		}
	}
	CHECK(round && g.bytes, "-k rewritten, last, flag or random");
	end.host = argv[optind];
	open_all();
	meet();
	for (uint32_t i = 0; i < g.rounds; i++)
		round(i);
	meet();
	CHECK(!ibv_dereg_mr(g.mr) && (!g.source_mr || !ibv_dereg_mr(g.source_mr)), "dereg_mr");
	end_close(NULL);
	printf("looked %llu times, %llu wrong\n", (unsigned long long)g.looked, (unsigned long long)g.wrong);
	return 0;
}
