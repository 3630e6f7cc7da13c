/* SPDX-License-Identifier: BSD-2-Clause */
/* TCP for those that are about to use something else. */
#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "sdr/meet.h"

enum { CONNECT_S = 10, GREETING_S = 5, GUESTS_MAX = 16, INFO_BYTES_MAX = 1 << 16 };

#define SECOND_NS UINT64_C(1000000000)

/* Both ends say it first, so that neither takes a stranger for the other. */
static const char greeting[] = "verbena-sdr 1\n";

bool (*die_tell)(const char *sentence);

void die(const char *fmt, ...)
{
	char sentence[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(sentence, sizeof(sentence), fmt, ap);
	va_end(ap);
	if (!die_tell || !die_tell(sentence))
		fprintf(stderr, "%s: %s\n", program_invocation_short_name, sentence);
	exit(1);
}

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static struct addrinfo *resolve(const char *host, uint16_t port)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
				 .ai_flags = host ? 0 : AI_PASSIVE,
				 .ai_family = host ? AF_UNSPEC : AF_INET6};
	struct addrinfo *res;
	char service[8];
	int err;

	snprintf(service, sizeof(service), "%u", port);
	err = getaddrinfo(host, service, &hints, &res);
	if (err)
		die("%s: %s", host ? host : "any address", gai_strerror(err));
	return res;
}

static int connect_once(const struct addrinfo *res)
{
	for (; res; res = res->ai_next) {
		int s = socket(res->ai_family, res->ai_socktype | SOCK_CLOEXEC, 0);

		if (s >= 0 && !connect(s, res->ai_addr, res->ai_addrlen))
			return s;
		if (s >= 0)
			close(s);
	}
	return -1;
}

enum meet_answer meet_greet(int fd)
{
	char answer[sizeof(greeting)];
	ssize_t n;

	/* Who is gone already may have said something before. */
	send(fd, greeting, sizeof(greeting) - 1, MSG_NOSIGNAL);
	n = recv(fd, answer, sizeof(greeting) - 1, MSG_WAITALL);
	if (n <= 0)
		return MEET_SILENT;
	return n == (ssize_t)sizeof(greeting) - 1 && !memcmp(answer, greeting, (size_t)n) ? MEET_KNOWN : MEET_STRANGER;
}

bool meet_answer(int fd)
{
	char word[sizeof(greeting)];

	if (recv(fd, word, sizeof(greeting) - 1, MSG_WAITALL) != (ssize_t)sizeof(greeting) - 1 ||
	    memcmp(word, greeting, sizeof(greeting) - 1))
		return false;
	meet_send(fd, greeting, sizeof(greeting) - 1);
	return true;
}

static void greet_server(int tcp, const char *host, uint16_t port)
{
	const struct timeval patience = {.tv_sec = CONNECT_S}, none = {0};

	setsockopt(tcp, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (meet_greet(tcp) != MEET_KNOWN)
		die("%s, TCP port %u: no program of this kind answers there", host, port);
	setsockopt(tcp, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none));
}

static int to_server(const char *host, uint16_t port)
{
	const struct timespec pause = {.tv_nsec = 50000000};
	struct addrinfo *res = resolve(host, port);
	uint64_t end = now_ns() + CONNECT_S * SECOND_NS;
	int s;

	while ((s = connect_once(res)) < 0) {
		if (now_ns() > end)
			die("%s, TCP port %u: %s", host, port, strerror(errno));
		nanosleep(&pause, NULL);
	}
	freeaddrinfo(res);
	greet_server(s, host, port);
	return s;
}

/* Who has connected and not yet said all of the greeting. */
struct guest {
	int tcp;
	size_t said;
	uint64_t end_ns;
};

/* Takes what a guest says. False: it is not the other end. */
static bool listen_to(struct guest *g)
{
	char word[sizeof(greeting)];
	ssize_t n = recv(g->tcp, word, sizeof(greeting) - 1 - g->said, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n <= 0 || memcmp(word, greeting + g->said, (size_t)n))
		return false;
	g->said += (size_t)n;
	return true;
}

static void drop_guest(struct guest *guests, size_t *count, size_t i)
{
	close(guests[i].tcp);
	memmove(&guests[i], &guests[i + 1], (--*count - i) * sizeof(*guests));
}

/*
 * The first one that says the greeting. Strangers, and those that say nothing, keep nobody out: each has a few seconds,
 * and where there are too many the oldest goes.
 */
static int first_to_greet(int listener)
{
	struct guest guests[GUESTS_MAX + 1];
	size_t count = 0;

	for (;;) {
		struct pollfd fds[GUESTS_MAX + 1] = {{.fd = listener, .events = POLLIN}};

		for (size_t i = 0; i < count; i++)
			fds[1 + i] = (struct pollfd){.fd = guests[i].tcp, .events = POLLIN};
		if (poll(fds, 1 + count, count ? 1000 : -1) < 0 && errno != EINTR)
			die("TCP: %s", strerror(errno));
		for (size_t i = count; i-- > 0;) {
			if ((fds[1 + i].revents && !listen_to(&guests[i])) || now_ns() > guests[i].end_ns)
				drop_guest(guests, &count, i);
		}
		for (size_t i = 0; i < count; i++) {
			int tcp = guests[i].tcp;

			if (guests[i].said < sizeof(greeting) - 1)
				continue;
			guests[i].tcp = -1;
			while (count)
				drop_guest(guests, &count, count - 1);
			return tcp;
		}
		if (fds[0].revents & POLLIN) {
			int tcp = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

			if (tcp >= 0)
				guests[count++] = (struct guest){tcp, 0, now_ns() + GREETING_S * SECOND_NS};
			if (count > GUESTS_MAX)
				drop_guest(guests, &count, 0);
		}
	}
}

int meet_listen(uint16_t port)
{
	struct addrinfo *res = resolve(NULL, port);
	int one = 1, s = socket(res->ai_family, res->ai_socktype | SOCK_CLOEXEC, 0);

	if (s < 0)
		die("TCP: %s", strerror(errno));
	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(s, res->ai_addr, res->ai_addrlen) || listen(s, GUESTS_MAX))
		die("TCP port %u: %s", port, strerror(errno));
	freeaddrinfo(res);
	return s;
}

static int from_client(uint16_t port)
{
	int s = meet_listen(port), tcp = first_to_greet(s);

	meet_send(tcp, greeting, sizeof(greeting) - 1);
	close(s);
	return tcp;
}

int meet(const char *host, uint16_t port)
{
	return host ? to_server(host, port) : from_client(port);
}

static bool address_write(const struct sockaddr_storage *at, socklen_t len, char text[MEET_ADDRESS])
{
	const char *mapped = "::ffff:";

	text[0] = 0;
	if (at->ss_family == AF_UNIX ||
	    getnameinfo((const struct sockaddr *)at, len, text, MEET_ADDRESS, NULL, 0, NI_NUMERICHOST))
		return false;
	text[strcspn(text, "%")] = 0; /* the interface of a link-local one */
	if (!strncmp(text, mapped, strlen(mapped)) && strchr(text, '.'))
		memmove(text, text + strlen(mapped), strlen(text + strlen(mapped)) + 1);
	return true;
}

bool meet_address(int tcp, char text[MEET_ADDRESS])
{
	struct sockaddr_storage at = {0};
	socklen_t len = sizeof(at);

	getsockname(tcp, (struct sockaddr *)&at, &len);
	return address_write(&at, len, text);
}

bool meet_peer(int tcp, char text[MEET_ADDRESS])
{
	struct sockaddr_storage at = {0};
	socklen_t len = sizeof(at);

	getpeername(tcp, (struct sockaddr *)&at, &len);
	return address_write(&at, len, text);
}

void meet_send(int tcp, const void *data, size_t bytes)
{
	const char *p = data;

	while (bytes) {
		ssize_t n = send(tcp, p, bytes, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			die("the peer is gone: %s", strerror(errno));
		p += n;
		bytes -= (size_t)n;
	}
}

void meet_recv(int tcp, void *data, size_t bytes)
{
	if (recv(tcp, data, bytes, MSG_WAITALL) != (ssize_t)bytes)
		die("the peer is gone");
}

void meet_send_numbers(int tcp, const uint64_t *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t wire = htobe64(numbers[i]);

		meet_send(tcp, &wire, sizeof(wire));
	}
}

void (*meet_look)(void);

/* Waits for a number's bytes. */
static void look(int tcp)
{
	uint64_t some;

	if (meet_look && recv(tcp, &some, sizeof(some), MSG_PEEK | MSG_WAITALL) == sizeof(some))
		meet_look();
}

void meet_recv_numbers(int tcp, uint64_t *numbers, size_t count)
{
	look(tcp);
	meet_recv(tcp, numbers, count * sizeof(*numbers));
	for (size_t i = 0; i < count; i++)
		numbers[i] = be64toh(numbers[i]);
}

size_t meet_poll(int tcp, void *records, size_t bytes, size_t max, int wait_ms)
{
	struct pollfd fd = {.fd = tcp, .events = POLLIN | POLLRDHUP};
	int there = 0;
	size_t n;

	if (poll(&fd, 1, wait_ms) <= 0)
		return 0;
	/* Less than a record is no more than it will ever be when the peer has closed. */
	if (ioctl(tcp, FIONREAD, &there) || ((size_t)there < bytes && fd.revents & (POLLRDHUP | POLLHUP | POLLERR)))
		die("the peer is gone");
	if (there)
		look(tcp);
	n = (size_t)there / bytes < max ? (size_t)there / bytes : max;
	if (n)
		meet_recv(tcp, records, n * bytes);
	return n;
}

void meet_rest(struct verbena_sdr_context *ctx, int tcp, int most_ms)
{
	struct pollfd fds[2] = {{.events = POLLIN}, {.fd = tcp, .events = POLLIN | POLLRDHUP}};
	int armed = VERBENA_SDR_ERROR;

	if (!verbena_sdr_event_fd_get(ctx, &fds[0].fd))
		armed = verbena_sdr_event_arm(ctx);
	if (armed == VERBENA_SDR_ERROR)
		die("waiting for the network: %s", strerror(errno));
	if (armed == VERBENA_SDR_SUCCESS)
		poll(fds, 2, most_ms);
}

void meet_connect(int tcp, struct verbena_sdr_qp *qp)
{
	uint64_t bytes[2];
	uint8_t *info;
	size_t size;

	verbena_sdr_qp_info_size_get(qp, &size);
	info = malloc(INFO_BYTES_MAX);
	if (!info || verbena_sdr_qp_info_get(qp, info, size))
		die("the queue pair has no description: %s", strerror(errno));
	bytes[0] = size;
	meet_send_numbers(tcp, bytes, 1);
	meet_send(tcp, info, size);
	meet_recv_numbers(tcp, bytes, 1);
	if (bytes[0] > INFO_BYTES_MAX)
		die("the peer is no program of this kind");
	meet_recv(tcp, info, bytes[0]);
	if (verbena_sdr_qp_connect(qp, info, bytes[0]))
		die("cannot connect to the peer's queue pair: %s", strerror(errno));
	free(info);
	/* Neither end goes on before both are connected. */
	meet_send_numbers(tcp, bytes, 1);
	meet_recv_numbers(tcp, bytes, 1);
}

void meet_agree(int tcp, bool client, uint64_t *plan, size_t count)
{
	if (client)
		meet_send_numbers(tcp, plan, count);
	else
		meet_recv_numbers(tcp, plan, count);
}

int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

uint32_t log2_up(uint64_t v)
{
	uint32_t log = 0;

	while (UINT64_C(1) << log < v)
		log++;
	return log;
}

struct verbena_sdr_context *meet_context(const struct meet_device *d)
{
	struct verbena_sdr_context_attr attr;
	struct verbena_sdr_context *ctx;

	verbena_sdr_context_attr_init(&attr);
	attr.num_workers = d->workers ? (uint32_t)d->workers : VERBENA_SDR_NO_WORKERS;
	if (d->channels)
		attr.num_channels = (uint32_t)d->channels;
	if (d->ib_port)
		attr.port = (uint32_t)d->ib_port;
	attr.gid_index = (uint32_t)d->gid_index;
	attr.address = d->address;
	ctx = verbena_sdr_context_create(d->name, &attr);
	if (!ctx)
		die("device %s: %s", d->name ? d->name : "", strerror(errno));
	return ctx;
}

struct verbena_sdr_qp *meet_qp(struct verbena_sdr_context *ctx, const struct meet_device *d)
{
	uint64_t longest = d->message_bytes > d->chunk ? d->message_bytes : d->chunk;
	struct verbena_sdr_qp_attr attr;
	struct verbena_sdr_qp *qp;

	if (!d->chunk || d->chunk & (d->chunk - 1))
		die("chunks of %llu bytes: a power of two is allowed", (unsigned long long)d->chunk);
	verbena_sdr_qp_attr_init(&attr);
	attr.mtu = (uint32_t)d->mtu;
	attr.bitmap_chunk_size_log_bytes = log2_up(d->chunk);
	attr.max_log_num_msgs = d->messages_log;
	/* The parities of a small message may have a chunk more than it. */
	attr.max_in_flight_log_bytes = d->messages_log + log2_up(longest + (d->plain ? 0 : d->chunk));
	attr.send_enable = d->sends;
	attr.recv_enable = d->receives;
	attr.rate_limit_mbps = (uint32_t)d->rate_mbps;
	attr.rate_auto = d->rate_auto;
	attr.idle_fill = d->idle_fill;
	attr.transport = d->rc ? VERBENA_SDR_RC : VERBENA_SDR_UC;
	if (d->generations)
		attr.generations = (uint32_t)d->generations;
	if (d->batch)
		attr.send_batch = (uint32_t)d->batch;
	if (d->rtt_ns)
		attr.rtt_ns = d->rtt_ns;
	qp = verbena_sdr_qp_create(ctx, &attr);
	if (!qp)
		die("no queue pair for messages of %llu bytes, chunks of %llu, packets of %llu: %s",
		    (unsigned long long)d->message_bytes, (unsigned long long)d->chunk, (unsigned long long)d->mtu,
		    strerror(errno));
	return qp;
}

void *meet_memory(struct verbena_sdr_context *ctx, uint64_t bytes, uint32_t flags, struct verbena_sdr_mr **mr,
		  uint32_t *lkey)
{
	uint64_t pages = (bytes + 4095) / 4096 * 4096;
	void *p = aligned_alloc(4096, pages);

	if (!p)
		die("%llu bytes of memory: %s", (unsigned long long)pages, strerror(errno));
	memset(p, 0, pages);
	*mr = verbena_sdr_mr_reg(ctx, p, pages, flags);
	if (!*mr || verbena_sdr_mr_lkey_get(*mr, lkey))
		die("registering %llu bytes: %s", (unsigned long long)pages, strerror(errno));
	return p;
}
