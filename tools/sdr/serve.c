/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sdr/meet.h"
#include "sdr/serve.h"

enum { SENDERS_MAX = 64, GREETING_S = 5 };

/* ---- addresses */

/* 16 bytes, IPv4 in IPv6; how many bits it has. 0: it is none. */
static unsigned address_read(const char *text, uint8_t bytes[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (inet_pton(AF_INET6, text, bytes) == 1)
		return 128;
	memcpy(bytes, mapped, sizeof(mapped));
	return inet_pton(AF_INET, text, bytes + sizeof(mapped)) == 1 ? 32 : 0;
}

static bool is_alike(const uint8_t a[16], const uint8_t b[16], unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;

	return !memcmp(a, b, whole) && (!rest || !((a[whole] ^ b[whole]) >> (8 - rest)));
}

/* One word of a list. */
static bool word_allows(char *word, const uint8_t address[16])
{
	char *slash = strchr(word, '/'), *end = "";
	uint8_t own[16];
	unsigned long bits;
	unsigned width;

	if (!strcmp(word, "any"))
		return true;
	if (slash)
		*slash = 0;
	width = address_read(word, own);
	bits = slash ? strtoul(slash + 1, &end, 10) : width;
	if (!width || *end || (slash && (!slash[1] || slash[1] == '-')) || bits > width)
		die("--allow: '%s%s%s' is neither an address, nor one with /BITS behind it, nor 'any'", word,
		    slash ? "/" : "", slash ? slash + 1 : "");
	return is_alike(own, address, 128 - width + (unsigned)bits);
}

bool serve_allows(const char *list, const char *address)
{
	char *copy = strdup(list), *rest = copy;
	bool allowed = false;
	uint8_t bytes[16];

	if (!copy)
		die("no memory");
	if (!address_read(address, bytes))
		return false;
	for (char *word; (word = strtok_r(rest, ", ", &rest));)
		allowed |= word_allows(word, bytes);
	free(copy);
	return allowed;
}

/* ---- senders */

/* A stranger keeps nobody out, but for a few seconds one of so many processes. */
static bool greet(int tcp)
{
	const struct timeval patience = {.tv_sec = GREETING_S}, none = {0};
	bool known;

	setsockopt(tcp, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	known = meet_answer(tcp);
	setsockopt(tcp, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none));
	return known;
}

/* Those that have ended are forgotten; with too many, one is waited for. */
static void reap(unsigned *senders)
{
	while (*senders && waitpid(-1, NULL, *senders < SENDERS_MAX ? WNOHANG : 0) > 0)
		(*senders)--;
}

int serve(uint16_t port, const char *list)
{
	int listener = meet_listen(port);
	unsigned senders = 0;

	serve_allows(list, "::");
	printf("waiting at TCP port %u\n", port);
	fflush(stdout);
	for (;;) {
		int tcp = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		char peer[MEET_ADDRESS];

		reap(&senders);
		if (tcp < 0)
			continue;
		if (!meet_peer(tcp, peer) || !serve_allows(list, peer)) {
			fprintf(stderr, "sdr_cp: %s is not allowed\n", peer);
			close(tcp);
			continue;
		}
		switch (fork()) {
		case 0:
			close(listener);
			if (!greet(tcp))
				_exit(1);
			return tcp;
		case -1: fprintf(stderr, "sdr_cp: no process for %s: %s\n", peer, strerror(errno)); break;
		default: senders++;
		}
		close(tcp);
	}
}
