/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sender that is another program, or another process, by the time that what it sent is taken: the bytes of that one are not its
 * message. end.h has what it shares with transfer.c.
 *
 *	image -k exec|again [-p PORT] [-g GID] [-b BYTES] [HOST]
 *
 * The client stops the server, sends one message more, and ends: by exec() of itself, or it is killed and its id is given to a new
 * process (root). What comes then has other bytes at the same addresses, and lets the server go on. The server counts what it gets.
 */
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "end.h"

enum { MESSAGES = 3, BYTES_MAX = 1 << 20, WAIT_S = 2, SKIP = 77 };

#define AT ((void *)0x7000000000)

static struct {
	bool again;
	uint32_t bytes;
	struct ibv_mr *mr;
	char **argv;
} g = {.bytes = 60000};

/* At the same address in each image. */
static uint8_t *memory(int byte, size_t bytes)
{
	void *p = mmap(AT, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	CHECK(p == AT, "memory: %s", strerror(errno));
	return memset(p, byte, bytes);
}

static void next_image(pid_t server)
{
	char number[16];

	snprintf(number, sizeof(number), "%d", (int)server);
	execl("/proc/self/exe", g.argv[0], "next", number, NULL);
	die("exec: %s", strerror(errno));
}

static int run_next(const char *server)
{
	memory('B', BYTES_MAX);
	kill(atoi(server), SIGCONT);
	sleep(WAIT_S + 1);
	return 0;
}

static void open_all(int byte)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = MESSAGES + 1, .max_send_sge = 1, .max_recv_sge = 1}};

	end_open();
	g.mr = ibv_reg_mr(end.pd, memory(byte, (MESSAGES + 1) * (size_t)BYTES_MAX), (MESSAGES + 1) * (size_t)BYTES_MAX,
			  IBV_ACCESS_LOCAL_WRITE);
	CHECK(g.mr, "reg_mr: %s", strerror(errno));
	end.cq = ibv_create_cq(end.context, MESSAGES + 2, NULL, NULL, 0);
	CHECK(end.cq, "create_cq: %s", strerror(errno));
	end_create_qp(&init, IBV_ACCESS_LOCAL_WRITE);
	end.mine.rkey = (uint32_t)getpid();
}

/* ---- the client ---- */

static void send_one(void)
{
	struct ibv_sge sge = {(uintptr_t)AT, g.bytes, g.mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	CHECK(!ibv_post_send(end.qp, &wr, &bad), "post_send");
}

static void run_sender(pid_t *server)
{
	struct ibv_wc wc;

	open_all('A');
	end_connect(14, 7);
	end_meet(0);
	*server = (pid_t)end.theirs.rkey;
	for (int i = 0; i < MESSAGES; i++) {
		send_one();
		while (!ibv_poll_cq(end.cq, 1, &wc))
			;
		CHECK(wc.status == IBV_WC_SUCCESS, "message %d: %s", i, ibv_wc_status_str(wc.status));
		usleep(100000); /* the processes meet in memory meanwhile */
	}
	kill(*server, SIGSTOP);
	usleep(100000);
	send_one();
	for (double since = now_s(); now_s() < since + 0.1;)
		CHECK(!ibv_poll_cq(end.cq, 1, &wc), "the server is not stopped");
	if (g.again)
		raise(SIGKILL);
	next_image(*server);
}

/* Forks a process with an id that is free. */
static pid_t fork_with(pid_t pid)
{
	struct clone_args args = {.exit_signal = SIGCHLD, .set_tid = (uintptr_t)&pid, .set_tid_size = 1};

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

static int run_client(void)
{
	pid_t *server = mmap(NULL, sizeof(*server), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t sender = fork(), next;
	int status;

	if (!sender)
		run_sender(server);
	CHECK(waitpid(sender, &status, 0) == sender, "waitpid");
	if (!g.again)
		return !WIFEXITED(status) || WEXITSTATUS(status);
	CHECK(WIFSIGNALED(status), "the sender did not get so far");
	next = fork_with(sender);
	if (!next)
		next_image(*server);
	if (next < 0) {
		kill(*server, SIGKILL);
		fprintf(stderr, "no process with an id that was another's: %s\n", strerror(errno));
		return SKIP;
	}
	return waitpid(next, &status, 0) != next || !WIFEXITED(status) || WEXITSTATUS(status);
}

/* ---- the server ---- */

static unsigned count_of_next(const uint8_t *p, size_t n)
{
	unsigned found = 0;

	for (size_t i = 0; i < n; i++)
		found += p[i] == 'B';
	return found;
}

static int run_server(void)
{
	struct ibv_recv_wr *bad;
	unsigned messages = 0;
	struct ibv_wc wc;

	open_all('r');
	for (uint64_t i = 0; i <= MESSAGES; i++) {
		struct ibv_sge sge = {(uintptr_t)AT + i * BYTES_MAX, BYTES_MAX, g.mr->lkey};
		struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1};

		CHECK(!ibv_post_recv(end.qp, &wr, &bad), "post_recv");
	}
	end_connect(14, 7);
	end_meet(0);
	for (double since = now_s(); now_s() < since + WAIT_S;) {
		if (!ibv_poll_cq(end.cq, 1, &wc))
			continue;
		CHECK(wc.status == IBV_WC_SUCCESS, "receive: %s", ibv_wc_status_str(wc.status));
		messages++;
		since = now_s();
	}
	printf("%u messages, %u bytes of another process\n", messages,
	       count_of_next(AT, (MESSAGES + 1) * (size_t)BYTES_MAX));
	return 0;
}

int main(int argc, char **argv)
{
	int opt;

	g.argv = argv;
	if (argc == 3 && !strcmp(argv[1], "next"))
		return run_next(argv[2]);
	while ((opt = getopt(argc, argv, "k:p:g:b:")) != -1) {
		switch (opt) {
		case 'k': g.again = !strcmp(optarg, "again"); break;
		case 'p': end.port = atoi(optarg); break;
		case 'g': end.gid = atoi(optarg); break;
		case 'b': g.bytes = (uint32_t)atoi(optarg); break;
		default: return 2;
		}
	}
	CHECK(g.bytes && g.bytes <= BYTES_MAX, "bytes");
	end.host = argv[optind];
	return end.host ? run_client() : run_server();
}
