/* SPDX-License-Identifier: BSD-2-Clause */
/* Each connection has one request and one answer (RFC 9112 9.6: Connection: close). */
#include "http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http_request.h"
#include "io/clock.h"
#include "tool.h"

enum { CLIENTS_MAX = 64, CLIENT_MS_MAX = 5000, BACKLOG = 64, ADDRESS_TEXT_BYTES = 64 };

struct client {
	int fd; /* -1: none */
	uint64_t until_ms;
	char request[HTTP_REQUEST_BYTES_MAX];
	size_t got;
	char *answer; /* NULL: the request is not complete */
	size_t answer_bytes, sent;
};

struct http {
	int fd;
	struct client clients[CLIENTS_MAX];
};

/* ---- listening ------------------------------------------------------------------------------------ */

/* Splits ADDRESS:PORT; an address of IPv6 loses its brackets. */
static bool split(const char *where, char address[ADDRESS_TEXT_BYTES], const char **port)
{
	const char *colon = strrchr(where, ':');
	size_t len = colon ? (size_t)(colon - where) : 0;
	char *end;
	unsigned long number = colon ? strtoul(colon + 1, &end, 10) : 0;

	if (!len || colon[1] < '0' || colon[1] > '9' || *end || number < 1 || number > 65535)
		return false;
	if (*where == '[' && where[len - 1] == ']') {
		where++;
		len -= 2;
	} else if (memchr(where, ':', len)) {
		return false;
	}
	*port = colon + 1;
	return len && (size_t)snprintf(address, ADDRESS_TEXT_BYTES, "%.*s", (int)len, where) < ADDRESS_TEXT_BYTES;
}

/* A listening socket, or -1 after a sentence. */
static int listen_at(const char *where, const struct addrinfo *at)
{
	int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1;

	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd >= 0 && at->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	if (fd >= 0 && !bind(fd, at->ai_addr, at->ai_addrlen) && !listen(fd, BACKLOG))
		return fd;
	complain("--prometheus %s: %s", where,
		 errno == EADDRINUSE      ? "another program has that port"
		 : errno == EADDRNOTAVAIL ? "no interface of this host has that address"
					  : strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

struct http *http_open(const char *where)
{
	const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
	char address[ADDRESS_TEXT_BYTES];
	struct addrinfo *at = NULL;
	struct http *h;
	const char *port;

	if (!split(where, address, &port) || getaddrinfo(address, port, &hints, &at)) {
		complain("--prometheus %s: allowed are addresses and ports, as 127.0.0.1:9399 and [::1]:9399", where);
		return NULL;
	}
	h = calloc(1, sizeof(*h));
	if (!h)
		complain("out of memory");
	for (int i = 0; h && i < CLIENTS_MAX; i++)
		h->clients[i].fd = -1;
	if (h) {
		h->fd = listen_at(where, at);
		if (h->fd < 0) {
			free(h);
			h = NULL;
		}
	}
	freeaddrinfo(at);
	return h;
}

/* ---- clients ---------------------------------------------------------------------------------------- */

static void client_end(struct client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	free(c->answer);
	c->fd = -1;
	c->answer = NULL;
}

void http_close(struct http *h)
{
	if (!h)
		return;
	for (int i = 0; i < CLIENTS_MAX; i++)
		client_end(&h->clients[i]);
	close(h->fd);
	free(h);
}

static void admit(struct http *h, uint64_t now_ms)
{
	int fd;

	while ((fd = accept4(h->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
		struct client *c = h->clients;

		/* A free place, or that of the oldest. */
		for (int i = 1; i < CLIENTS_MAX && c->fd >= 0; i++)
			if (h->clients[i].fd < 0 || h->clients[i].until_ms < c->until_ms)
				c = &h->clients[i];
		client_end(c);
		c->fd = fd;
		c->until_ms = now_ms + CLIENT_MS_MAX;
		c->got = c->sent = c->answer_bytes = 0;
	}
}

static const char *reason(int status)
{
	switch (status) {
	case 200: return "OK";
	case 404: return "Not Found";
	case 405: return "Method Not Allowed";
	case 431: return "Request Header Fields Too Large";
	case 505: return "HTTP Version Not Supported";
	default: return "Bad Request";
	}
}

/* False: out of memory. */
static bool answer(struct client *c, const struct http_request *r, const char *metrics, size_t metrics_bytes)
{
	static const char index[] = "<!DOCTYPE html><title>Verbena</title><a href=\"/metrics\">Metrics</a>\n";
	bool is_page = r->status == 200, is_metrics = is_page && r->page == HTTP_METRICS;
	const char *body = is_metrics ? metrics : is_page ? index : reason(r->status);
	size_t body_bytes = is_metrics ? metrics_bytes : strlen(body);
	FILE *f = open_memstream(&c->answer, &c->answer_bytes);

	if (!f)
		return false;
	fprintf(f,
		"HTTP/1.1 %d %s\r\nContent-Type: %s; charset=utf-8\r\nContent-Length: %zu\r\n%sConnection: close\r\n\r\n",
		r->status, reason(r->status),
		is_metrics ? "text/plain; version=0.0.4"
		: is_page  ? "text/html"
			   : "text/plain",
		body_bytes, r->status == 405 ? "Allow: GET, HEAD\r\n" : "");
	if (!r->head)
		fwrite(body, 1, body_bytes, f);
	return fclose(f) == 0;
}

/* False: the connection is at its end. */
static bool client_read(struct client *c, const char *metrics, size_t metrics_bytes)
{
	struct http_request r;
	ssize_t n = recv(c->fd, c->request + c->got, sizeof(c->request) - c->got, 0);

	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR);
	c->got += (size_t)n;
	r = http_judge(c->request, c->got);
	return !r.status || answer(c, &r, metrics, metrics_bytes);
}

/*
 * After the answer only this end is closed, and what the client still says is read and dropped until it has closed too:
 * else the kernel would reset the connection, and the client might lose the answer.
 */
static bool client_write(struct client *c)
{
	char rest[1024];
	ssize_t n;

	if (c->sent == c->answer_bytes) {
		n = recv(c->fd, rest, sizeof(rest), 0);
		return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
	}
	n = send(c->fd, c->answer + c->sent, c->answer_bytes - c->sent, MSG_NOSIGNAL);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	c->sent += (size_t)n;
	if (c->sent == c->answer_bytes)
		shutdown(c->fd, SHUT_WR);
	return true;
}

void http_serve(struct http *h, const char *page, size_t page_bytes, int fd, uint64_t until_ms)
{
	struct pollfd p[CLIENTS_MAX + 2];
	uint64_t now_ms = clock_now_ms();

	do {
		uint64_t wake_ms = until_ms;

		p[0] = (struct pollfd){.fd = fd, .events = POLLIN};
		p[1] = (struct pollfd){.fd = h->fd, .events = POLLIN};
		for (int i = 0; i < CLIENTS_MAX; i++) {
			struct client *c = &h->clients[i];

			if (c->fd >= 0 && c->until_ms <= now_ms)
				client_end(c);
			if (c->fd >= 0 && c->until_ms < wake_ms)
				wake_ms = c->until_ms;
			p[i + 2] = (struct pollfd){.fd = c->fd,
						   .events = c->answer && c->sent < c->answer_bytes ? POLLOUT : POLLIN};
		}
		poll(p, CLIENTS_MAX + 2, wake_ms > now_ms ? (int)(wake_ms - now_ms) : 0);
		now_ms = clock_now_ms();
		for (int i = 0; i < CLIENTS_MAX; i++) {
			struct client *c = &h->clients[i];

			if (p[i + 2].revents && c->fd >= 0 &&
			    !(c->answer ? client_write(c) : client_read(c, page, page_bytes)))
				client_end(c);
		}
		if (p[1].revents)
			admit(h, now_ms);
	} while (!p[0].revents && now_ms < until_ms);
}
