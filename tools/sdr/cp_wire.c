/* SPDX-License-Identifier: BSD-2-Clause */
/* A frame is taken only when all of it is here, so that nobody waits for half of one. */
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/byteorder.h"
#include "sdr/cp_wire.h"
#include "sdr/meet.h"

enum { HEADER_LEN = 8, SILENCE_S = 30, BETWEEN_S = 5, TRIES = 6 };

static int tcp = -1;
static bool others; /* the peer's user reads what is said, and nobody else */

static bool frame_take(struct cp_frame *, bool closed);

/* Where the peer has failed, its reason ends this end too. */
static void fail_hear(void)
{
	uint8_t header[HEADER_LEN];
	struct cp_frame f;

	if (recv(tcp, header, HEADER_LEN, MSG_PEEK | MSG_DONTWAIT) == HEADER_LEN && get_be32(header) == CP_FAIL)
		frame_take(&f, true);
}

/* The peer is told why this end fails. */
static bool fail_tell(const char *sentence)
{
	uint8_t frame[HEADER_LEN + CP_FRAME_MAX];
	size_t length = strlen(sentence);
	bool told;

	die_tell = NULL;
	fail_hear();

	put_be32(frame, CP_FAIL);
	put_be32(frame + 4, (uint32_t)length);
	memcpy(frame + HEADER_LEN, sentence, length);
	told = send(tcp, frame, HEADER_LEN + length, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)(HEADER_LEN + length);
	return told && others;
}

void cp_wire_open(int connected, bool served)
{
	int one = 1, idle = SILENCE_S, between = BETWEEN_S, tries = TRIES,
	    gone_ms = 1000 * (SILENCE_S + BETWEEN_S * TRIES);

	tcp = connected;
	others = served;
	die_tell = fail_tell;
	meet_look = fail_hear;
	setsockopt(tcp, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	setsockopt(tcp, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(tcp, IPPROTO_TCP, TCP_KEEPINTVL, &between, sizeof(between));
	setsockopt(tcp, IPPROTO_TCP, TCP_KEEPCNT, &tries, sizeof(tries));
	setsockopt(tcp, IPPROTO_TCP, TCP_USER_TIMEOUT, &gone_ms, sizeof(gone_ms));
	setsockopt(tcp, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

/* The peer's sentence goes to a terminal. */
static void __attribute__((noreturn)) peer_failed(struct cp_frame *f)
{
	for (uint32_t i = 0; i < f->length; i++) {
		if (iscntrl(f->payload[i]))
			f->payload[i] = '?';
	}
	die("the peer says: %.*s", (int)f->length, (const char *)f->payload);
}

/* What the peer has said before it was gone. */
static void __attribute__((noreturn)) peer_gone(void)
{
	struct cp_frame f;
	int one = 1;

	while (ioctl(tcp, FIONREAD, &one) == 0 && one >= HEADER_LEN)
		cp_hear(&f);
	die("the peer is gone");
}

static void send_all(const uint8_t *p, size_t bytes)
{
	while (bytes) {
		ssize_t n = send(tcp, p, bytes, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			peer_gone();
		p += n;
		bytes -= (size_t)n;
	}
}

void cp_say(enum cp_frame_type type, const void *payload, size_t length)
{
	uint8_t frame[HEADER_LEN + CP_FRAME_MAX];

	put_be32(frame, type);
	put_be32(frame + 4, (uint32_t)length);
	memcpy(frame + HEADER_LEN, payload, length);
	send_all(frame, HEADER_LEN + length);
}

/* Whether so many bytes can be read; a peer that has closed sends no more. */
static bool is_here(int bytes, bool closed)
{
	int here = 0;

	if (ioctl(tcp, FIONREAD, &here))
		die("TCP: %s", strerror(errno));
	if (here < bytes && closed)
		die("the peer is gone");
	return here >= bytes;
}

static bool frame_take(struct cp_frame *f, bool closed)
{
	uint8_t header[HEADER_LEN];

	if (!is_here(HEADER_LEN, closed) || recv(tcp, header, HEADER_LEN, MSG_PEEK) != HEADER_LEN)
		return false;
	f->type = (enum cp_frame_type)get_be32(header);
	f->length = get_be32(header + 4);
	if (f->length > CP_FRAME_MAX || (f->type >= CP_FRAME_TYPES && f->type != CP_FAIL))
		cp_nonsense();
	if (!is_here((int)(HEADER_LEN + f->length), closed))
		return false;
	meet_recv(tcp, header, HEADER_LEN);
	if (f->length)
		meet_recv(tcp, f->payload, f->length);
	if (f->type == CP_FAIL)
		peer_failed(f);
	return true;
}

/* The end of the connection is seen only by poll() when a part of a frame is here. */
static bool hear(struct cp_frame *f, int wait_ms)
{
	struct pollfd fd = {.fd = tcp, .events = POLLIN | POLLRDHUP};
	int n = poll(&fd, 1, wait_ms);

	if (n > 0 && frame_take(f, fd.revents & (POLLRDHUP | POLLHUP | POLLERR)))
		return true;
	if (n > 0)
		poll(NULL, 0, 1); /* the rest of a frame is under way */
	return false;
}

bool cp_hear(struct cp_frame *f)
{
	return hear(f, 0);
}

void cp_await(struct cp_frame *f)
{
	while (!hear(f, -1))
		;
}

void cp_expect(struct cp_frame *f, enum cp_frame_type type)
{
	cp_await(f);
	if (f->type != type)
		cp_nonsense();
}

void cp_nonsense(void)
{
	die("the peer says what no sdr_cp of this version says");
}
