/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An ordinary verbs program of two processes that send each other trains of numbered messages over a service
 * that repeats nothing, and count what is lost. end.h has what it shares with other programs.
 *
 *	trains [-c UC|UD] [-g GID] [-t SECONDS]
 *
 * The two take turns: one sends a train, and the other says over a socket of theirs when it has it. No receive queue is
 * ever short of requests, and no socket's buffer of room, so a message that does not come was lost on the way.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "end.h"

enum {
	TRAIN = 20,
	MESSAGE_BYTES = 1000,
	GRH_BYTES = 40,
	RECVS = 4 * TRAIN, /* what is late finds a request too */
	LOST_MS = 1000,    /* what takes longer is given up, and counted if it comes all the same */
	QKEY = 0x11111111
};

static struct {
	enum ibv_qp_type type;
	double seconds;

	bool first;
	struct ibv_ah *ah;
	struct ibv_mr *mr;
	uint8_t memory[(RECVS + TRAIN) * (GRH_BYTES + MESSAGE_BYTES)];
	uint64_t sent, received, given_up;
} g = {.type = IBV_QPT_UC, .seconds = 5};

/* ---- verbs ------------------------------------------------------------------------------------ */

static uint8_t *slot(size_t i)
{
	return g.memory + i * (GRH_BYTES + MESSAGE_BYTES);
}

static void recv_post(size_t i)
{
	struct ibv_sge sge = {(uintptr_t)slot(i), GRH_BYTES + MESSAGE_BYTES, g.mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1};

	CHECK(!ibv_post_recv(end.qp, &wr, &bad), "post_recv");
}

static void open_all(void)
{
	struct ibv_qp_init_attr init = {
		.qp_type = g.type,
		.cap = {.max_send_wr = TRAIN, .max_recv_wr = RECVS, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_ah_attr way;

	end_open();
	g.mr = ibv_reg_mr(end.pd, g.memory, sizeof(g.memory), IBV_ACCESS_LOCAL_WRITE);
	end.cq = ibv_create_cq(end.context, TRAIN + RECVS, NULL, NULL, 0);
	CHECK(g.mr && end.cq, "objects: %s", strerror(errno));
	end_create_qp(&init, 0);
	for (size_t i = 0; i < RECVS; i++)
		recv_post(i);
	way = end_connect(0, 0);
	if (g.type == IBV_QPT_UD)
		g.ah = ibv_create_ah(end.pd, &way);
	CHECK(g.ah || g.type != IBV_QPT_UD, "create_ah: %s", strerror(errno));
}

/* ---- trains ----------------------------------------------------------------------------------- */

static void send_train(void)
{
	struct ibv_send_wr wr[TRAIN], *bad;
	struct ibv_sge sge[TRAIN];

	for (size_t i = 0; i < TRAIN; i++) {
		uint64_t number = g.sent++;

		memcpy(slot(RECVS + i), &number, sizeof(number));
		sge[i] = (struct ibv_sge){(uintptr_t)slot(RECVS + i), MESSAGE_BYTES, g.mr->lkey};
		wr[i] = (struct ibv_send_wr){.wr_id = RECVS + i,
					     .sg_list = &sge[i],
					     .num_sge = 1,
					     .opcode = IBV_WR_SEND,
					     .next = &wr[i + 1],
					     .send_flags = IBV_SEND_SIGNALED};
		wr[i].wr.ud.ah = g.ah;
		wr[i].wr.ud.remote_qpn = end.theirs.qpn;
		wr[i].wr.ud.remote_qkey = QKEY;
	}
	wr[TRAIN - 1].next = NULL;
	CHECK(!ibv_post_send(end.qp, wr, &bad), "post_send");
}

/* The next completion, if there is one. *sends counts those of sends; a receive's number must be below `most`. */
static void take_one(size_t *sends, uint64_t most)
{
	struct ibv_wc wc;
	uint64_t number;
	int n = ibv_poll_cq(end.cq, 1, &wc);

	CHECK(n >= 0, "poll_cq: %d", n);
	if (!n)
		return;
	CHECK(wc.status == IBV_WC_SUCCESS, "wr %lu: %s", (unsigned long)wc.wr_id, ibv_wc_status_str(wc.status));
	if (wc.wr_id >= RECVS) {
		++*sends;
		return;
	}
	memcpy(&number, slot(wc.wr_id) + (g.type == IBV_QPT_UD ? GRH_BYTES : 0), sizeof(number));
	CHECK(number < most, "message %lu was never sent", (unsigned long)number);
	g.received++;
	recv_post(wc.wr_id);
}

static void say(uint64_t what)
{
	CHECK(send(end.tcp, &what, sizeof(what), MSG_NOSIGNAL) > 0, "the peer is gone");
}

static uint64_t hear(void)
{
	uint64_t what;

	CHECK(recv(end.tcp, &what, sizeof(what), 0) == sizeof(what), "the peer is gone");
	return what;
}

/* A train of ours; what is late of the other's comes meanwhile. */
static void give(uint64_t trains)
{
	size_t sends = 0;

	send_train();
	while (sends < TRAIN)
		take_one(&sends, trains * TRAIN);
	say(g.sent);
	hear();
}

/* A train of the other's, or as much of it as comes. */
static void take(uint64_t trains)
{
	uint64_t sent = trains * TRAIN;
	double until;
	size_t none = 0;

	CHECK(hear() == sent, "the ends are out of step");
	until = now_s() + LOST_MS / 1e3;
	while (g.received + g.given_up < sent && now_s() < until)
		take_one(&none, sent);
	if (g.received + g.given_up < sent) {
		g.given_up = sent - g.received;
		printf("process %d: of %lu, %lu do not come\n", (int)getpid(), (unsigned long)sent,
		       (unsigned long)g.given_up);
	}
	say(g.received);
}

static int run(void)
{
	uint64_t trains = 0, more = 1;
	double until;

	open_all();
	say(0);
	hear();
	printf("process %d: ready\n", (int)getpid());
	until = now_s() + g.seconds;
	while (more) {
		trains++;
		if (g.first) {
			more = now_s() < until;
			say(more);
			give(trains - 1);
			take(trains);
		} else {
			more = hear();
			take(trains);
			give(trains);
		}
	}
	printf("process %d: %lu sent, %lu received, %lu lost\n", (int)getpid(), (unsigned long)g.sent,
	       (unsigned long)g.received, (unsigned long)(trains * TRAIN - g.received));
	return 0;
}

int main(int argc, char **argv)
{
	int c, ends[2], status, rc;
	pid_t pid;

	while ((c = getopt(argc, argv, "c:g:t:")) != -1) {
		switch (c) {
		case 'c': g.type = strcmp(optarg, "UD") ? IBV_QPT_UC : IBV_QPT_UD; break;
		case 'g': end.gid = atoi(optarg); break;
		case 't': g.seconds = atof(optarg); break;
		default: return 2;
		}
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), "socketpair");
	pid = fork();
	g.first = pid != 0;
	end.tcp = ends[g.first];
	end.host = g.first ? NULL : "";
	close(ends[!g.first]);
	rc = run();
	if (!g.first)
		return rc;
	CHECK(waitpid(pid, &status, 0) == pid, "waitpid");
	return rc || status;
}
