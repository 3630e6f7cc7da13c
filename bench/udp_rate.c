/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * udp_rate [-t SECONDS] [-s BYTES] [-b BATCH]: how many single datagrams a second one process sends
 * to another over loopback, with sendmmsg and recvmmsg and no flow control. Prints the rates sent
 * and received: those of a NIC that uses a datagram for each message.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "options.h"

enum { BATCH_MAX = 256, BYTES_MAX = 2048 };

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static char buf[BATCH_MAX][BYTES_MAX];
static struct iovec iov[BATCH_MAX];
static struct mmsghdr msg[BATCH_MAX];

static void messages(size_t bytes, struct sockaddr_in *to)
{
	for (int i = 0; i < BATCH_MAX; i++) {
		iov[i] = (struct iovec){buf[i], bytes};
		msg[i].msg_hdr = (struct msghdr){
			.msg_iov = &iov[i], .msg_iovlen = 1, .msg_name = to, .msg_namelen = to ? sizeof(*to) : 0};
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	volatile uint64_t *arrived;
	socklen_t len = sizeof(at);
	int rx, tx, room = 8 << 20;
	uint32_t batch = 64, bytes = 64;
	double seconds = 2, begun, took;
	const struct option_row rows[] = {
		{'t', NULL, OPTION_REAL, &seconds, 0, 3600, "SECONDS", NULL},
		{'s', NULL, OPTION_U32, &bytes, 0, BYTES_MAX, "BYTES", NULL},
		{'b', NULL, OPTION_U32, &batch, 1, BATCH_MAX, "BATCH", NULL},
	};
	uint64_t sent = 0, before;
	pid_t child;

	options_read(argc, argv, rows, OPTION_COUNT(rows), "usage: udp_rate [OPTION ...]\n");
	arrived = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	rx = socket(AF_INET, SOCK_DGRAM, 0);
	tx = socket(AF_INET, SOCK_DGRAM, 0);
	if (arrived == MAP_FAILED || rx < 0 || tx < 0)
		die("socket");
	setsockopt(rx, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	if (bind(rx, (struct sockaddr *)&at, sizeof(at)) < 0 || getsockname(rx, (struct sockaddr *)&at, &len) < 0)
		die("bind");

	child = fork();
	if (child < 0)
		die("fork");
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		messages(BYTES_MAX, NULL);
		for (;;) {
			int n = recvmmsg(rx, msg, BATCH_MAX, MSG_DONTWAIT, NULL);

			if (n > 0)
				*arrived += (uint64_t)n;
			else if (errno != EAGAIN && errno != EINTR)
				die("recvmmsg");
		}
	}
	messages(bytes, &at);
	begun = now_s();
	before = *arrived;
	do {
		int n = sendmmsg(tx, msg, batch, 0);

		if (n < 0)
			die("sendmmsg");
		sent += (uint64_t)n;
		took = now_s() - begun;
	} while (took < seconds);
	before = *arrived - before;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	printf("%u bytes: sent %.0f a second, arrived %.0f a second, batches of %u\n", bytes, (double)sent / took,
	       (double)before / took, batch);
	return 0;
}
