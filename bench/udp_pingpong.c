/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * udp_pingpong [-n EXCHANGES] [-s BYTES] [-6]: the latency of bare UDP over loopback between two
 * processes, both of which poll. Prints half of a round trip in microseconds, median and mean: the
 * limit of any NIC over UDP.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "options.h"

enum { WARM_UP = 2000 };

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static int bound_socket(int family, struct sockaddr_storage *at, socklen_t *len)
{
	int fd = socket(family, SOCK_DGRAM, 0);

	memset(at, 0, sizeof(*at));
	at->ss_family = (sa_family_t)family;
	if (family == AF_INET6)
		((struct sockaddr_in6 *)at)->sin6_addr = in6addr_loopback;
	else
		((struct sockaddr_in *)at)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	*len = family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
	if (fd < 0 || bind(fd, (struct sockaddr *)at, *len) < 0 || getsockname(fd, (struct sockaddr *)at, len) < 0)
		die("socket");
	return fd;
}

static void receive(int fd, char *buf, size_t bytes)
{
	while (recv(fd, buf, bytes, MSG_DONTWAIT) < 0) {
		if (errno != EAGAIN && errno != EINTR)
			die("recv");
	}
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
	uint32_t exchanges = 100000, bytes = 64;
	bool six = false;
	const struct option_row rows[] = {
		{'n', NULL, OPTION_U32, &exchanges, 1, UINT32_MAX, "EXCHANGES", NULL},
		{'s', NULL, OPTION_U32, &bytes, 0, 65000, "BYTES", NULL},
		{'6', NULL, OPTION_FLAG, &six, 0, 0, NULL, NULL},
	};
	int fd[2];
	struct sockaddr_storage at[2];
	socklen_t len[2];
	uint32_t *took;
	uint64_t total = 0;
	char *buf;
	pid_t child;

	options_read(argc, argv, rows, OPTION_COUNT(rows), "usage: udp_pingpong [OPTION ...]\n");
	buf = calloc(1, bytes + 1);
	took = calloc(exchanges, sizeof(*took));
	if (!buf || !took)
		die("memory");
	for (int i = 0; i < 2; i++)
		fd[i] = bound_socket(six ? AF_INET6 : AF_INET, &at[i], &len[i]);
	for (int i = 0; i < 2; i++)
		if (connect(fd[i], (struct sockaddr *)&at[!i], len[!i]) < 0)
			die("connect");

	child = fork();
	if (child < 0)
		die("fork");
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;) {
			receive(fd[1], buf, bytes);
			if (send(fd[1], buf, bytes, 0) < 0)
				die("send");
		}
	}
	for (size_t i = 0; i < WARM_UP + exchanges; i++) {
		uint64_t begun = now_ns(), ns;

		if (send(fd[0], buf, bytes, 0) < 0)
			die("send");
		receive(fd[0], buf, bytes);
		ns = now_ns() - begun;
		if (i >= WARM_UP) {
			took[i - WARM_UP] = (uint32_t)ns;
			total += ns;
		}
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	qsort(took, exchanges, sizeof(*took), by_value);
	printf("%u bytes: median %.3f us, mean %.3f us, half a round trip, %u exchanges\n", bytes,
	       took[exchanges / 2] / 2e3, (double)total / (double)exchanges / 2e3, exchanges);
	return 0;
}
