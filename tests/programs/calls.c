/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many system calls a program of librdmacm makes that writes commands: a child does, and its parent counts them by
 * ptrace(). Other threads are not looked at.
 *
 *	calls ADDRESS    one of this host
 *
 * Prints the number of commands, of fstat() and of all other calls but futex(), with which threads wait for each other.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <linux/ptrace.h>
#include <unistd.h>
#include <rdma/rdma_cma.h>

enum { COMMANDS = 500, RESOLVE_MS = 2000 };

static void fail(const char *doing)
{
	printf("%s: %s\n", doing, strerrorname_np(errno));
	exit(2);
}

/* Between two stops the program does nothing but commands. */
static int program(struct sockaddr_in *at)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	int mask;

	if (!channel || rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) ||
	    rdma_resolve_addr(id, NULL, (struct sockaddr *)at, RESOLVE_MS) || rdma_get_cm_event(channel, &event))
		fail("rdma_resolve_addr");
	rdma_ack_cm_event(event);
	raise(SIGSTOP);
	for (int i = 0; i < COMMANDS; i++)
		if (rdma_init_qp_attr(id, &attr, &mask))
			fail("rdma_init_qp_attr");
	raise(SIGSTOP);
	return 0;
}

/* True: at a call's begin or end; false: it stopped itself. */
static bool next_stop(pid_t child, enum __ptrace_request how)
{
	int status;

	for (int sig = 0;; sig = WSTOPSIG(status)) {
		if (ptrace(how, child, NULL, sig))
			fail("ptrace");
		if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
			exit(2); /* it has said why */
		if (WSTOPSIG(status) == SIGSTOP)
			return false;
		if (WSTOPSIG(status) == (SIGTRAP | 0x80))
			return true;
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(9000)};
	unsigned looks = 0, others = 0;
	pid_t child;
	int status;

	if (argc != 2 || inet_pton(AF_INET, argv[1], &at.sin_addr) != 1) {
		fprintf(stderr, "usage: calls ADDRESS\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	child = fork();
	if (!child) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			fail("ptrace");
		raise(SIGSTOP);
		return program(&at);
	}
	if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
		return 2;
	if (ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL))
		fail("ptrace");
	next_stop(child, PTRACE_CONT);
	while (next_stop(child, PTRACE_SYSCALL)) {
		struct ptrace_syscall_info info;

		if (ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof(info), &info) <= 0)
			fail("ptrace");
		if (info.op != PTRACE_SYSCALL_INFO_ENTRY || info.entry.nr == SYS_futex)
			continue;
		if (info.entry.nr == SYS_fstat)
			looks++;
		else
			others++;
	}
	printf("commands %d fstat %u others %u\n", COMMANDS, looks, others);
	return 0;
}
