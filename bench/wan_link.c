/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A link between two network namespaces that is long, narrow and loses packets, for kernels that have
 * no netem: TCP and everything else that goes through it meet the same. Each end is a TUN device
 * called wan0. A packet is lost with the chance that is given, or when the queue is full; then it
 * waits for its turn at the link's rate, and for the delay. The seed decides which are lost.
 *
 *	wan_link NAMESPACE NAMESPACE RATE_MBPS DELAY_MS LOSS_PPM QUEUE_MS SEED
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/prng.h"
#include "io/clock.h"

enum { PACKETS = 16384, PACKET_BYTES = 1600 };

struct packet {
	uint64_t due_ns;
	uint32_t bytes;
	uint8_t data[PACKET_BYTES];
};

/* What goes from one end to the other. */
struct way {
	int from, to;
	struct packet *packet; /* PACKETS of them, a ring */
	uint64_t head, tail;
	uint64_t free_ns; /* when the link takes the next packet */
	uint64_t passed, lost, full;
};

static struct {
	uint64_t rate_mbps, delay_ns, loss_ppm, queue_ns;
	struct prng rng;
	struct way way[2];
} g;

static void die(const char *what)
{
	fprintf(stderr, "wan_link: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int tun_open(const char *space)
{
	struct ifreq ifr = {.ifr_flags = IFF_TUN | IFF_NO_PI, .ifr_name = "wan0"};
	char path[256];
	int ns, fd;

	snprintf(path, sizeof(path), "/run/netns/%s", space);
	ns = open(path, O_RDONLY | O_CLOEXEC);
	if (ns < 0 || setns(ns, CLONE_NEWNET))
		die(path);
	fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, TUNSETIFF, &ifr))
		die("/dev/net/tun");
	close(ns);
	return fd;
}

/* A packet that comes while the link has more than queue_ns of work is lost. */
static void take(struct way *w, uint64_t now)
{
	struct packet *p = &w->packet[w->tail % PACKETS];
	uint64_t start_ns = w->free_ns > now ? w->free_ns : now;
	ssize_t n = read(w->from, p->data, PACKET_BYTES);

	if (n <= 0)
		return;
	if (prng_below(&g.rng, 1000000) < g.loss_ppm) {
		w->lost++;
		return;
	}
	if (start_ns - now > g.queue_ns || w->tail - w->head == PACKETS) {
		w->full++;
		return;
	}
	w->free_ns = start_ns + (uint64_t)n * 8000 / g.rate_mbps;
	p->due_ns = w->free_ns + g.delay_ns;
	p->bytes = (uint32_t)n;
	w->tail++;
}

static void give(struct way *w, uint64_t now)
{
	while (w->head < w->tail && w->packet[w->head % PACKETS].due_ns <= now) {
		const struct packet *p = &w->packet[w->head++ % PACKETS];

		if (write(w->to, p->data, p->bytes) == (ssize_t)p->bytes)
			w->passed++;
	}
}

static int wait_ms(uint64_t now)
{
	uint64_t due_ns = UINT64_MAX;

	for (int i = 0; i < 2; i++) {
		const struct way *w = &g.way[i];

		if (w->head < w->tail && w->packet[w->head % PACKETS].due_ns < due_ns)
			due_ns = w->packet[w->head % PACKETS].due_ns;
	}
	if (due_ns == UINT64_MAX)
		return 1000;
	return due_ns <= now ? 0 : (int)((due_ns - now) / 1000000);
}

int main(int argc, char **argv)
{
	struct pollfd fds[2];

	if (argc != 8) {
		fprintf(stderr, "wan_link NAMESPACE NAMESPACE RATE_MBPS DELAY_MS LOSS_PPM QUEUE_MS SEED\n");
		return 1;
	}
	for (int i = 0; i < 2; i++) {
		fds[i] = (struct pollfd){.fd = tun_open(argv[1 + i]), .events = POLLIN};
		g.way[i].packet = calloc(PACKETS, sizeof(struct packet));
		if (!g.way[i].packet)
			die("memory");
	}
	for (int i = 0; i < 2; i++) {
		g.way[i].from = fds[i].fd;
		g.way[i].to = fds[1 - i].fd;
	}
	g.rate_mbps = strtoull(argv[3], NULL, 10);
	g.delay_ns = strtoull(argv[4], NULL, 10) * 1000000;
	g.loss_ppm = strtoull(argv[5], NULL, 10);
	g.queue_ns = strtoull(argv[6], NULL, 10) * 1000000;
	prng_init(&g.rng, strtoull(argv[7], NULL, 10));
	if (!g.rate_mbps)
		return 1;
	printf("ready\n");
	fflush(stdout);
	for (;;) {
		uint64_t now = clock_now_ns();

		poll(fds, 2, wait_ms(now));
		now = clock_now_ns();
		for (int i = 0; i < 2; i++) {
			for (int k = 0; k < 64 && fds[i].revents; k++)
				take(&g.way[i], now);
			give(&g.way[i], now);
		}
	}
}
