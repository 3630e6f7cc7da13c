/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receiving over UDP: sockets made elsewhere, batches, and trains cut into packets. Internal to the UDP back
 * end.
 *
 * `cur` of `batch` received messages are spent, `offset` bytes of the next one too. No buffer is given to
 * the kernel again before all of a batch has been yielded, and the next batch starts at buffer 0 again: a
 * receiver that keeps up uses only the few buffers that are in cache.
 *
 * Private to src/io.
 */
#pragma once

#include "io/udp/udp_socket.h"

enum { UDP_RX_MESSAGES = 16 };

struct udp_rx_socket {
	int fd;
	enum udp_family family;
	uint16_t port;
	bool timed;        /* its packets tell how long they waited */
	uint32_t overflow; /* the kernel's running count of discarded datagrams, as last seen */
};

struct udp_rx {
	struct io_counters *counters;
	size_t batch;
	size_t cur;
	uint32_t offset;
	uint32_t segment_bytes; /* of message `cur`, once offset is not 0 */
	uint32_t segment;       /* the number of the next one there ... */
	uint32_t segments;      /* ... and how many are left */
	struct udp_rx_socket *batch_socket;
	uint16_t timed_port;   /* udp_config's, */
	struct io_clock clock; /* likewise */
	int64_t asked_at_ns;   /* of a batch of a timed socket: now_ns in CLOCK_REALTIME, which the kernel's stamps have
			      */
	uint32_t waited_ns;    /* of message `cur`, once offset is not 0 */
	size_t ask;            /* messages to ask the kernel for, next time */
	size_t first;          /* socket that is polled first */
	unsigned streak;
	unsigned idle;     /* calls that found the first socket empty since others were polled */
	unsigned patience; /* such calls before the others are polled */
	uint64_t looked_ns;
	bool drained; /* the kernel had fewer messages than the batch */
	struct udp_rx_socket sockets[UDP_RX_SOCKETS_MAX];
	size_t socket_count;
	uint8_t *buffers;
	struct flow flows[UDP_RX_MESSAGES];
	struct mmsghdr messages[UDP_RX_MESSAGES];
	struct iovec iov[UDP_RX_MESSAGES];
	union udp_address from[UDP_RX_MESSAGES];
	struct udp_control control[UDP_RX_MESSAGES];
};

/* *rx is zeroed memory. Borrows the sockets. 0, or -ENOMEM with nothing left to close. */
int udp_rx_open(struct udp_rx *, const struct udp_config *);
void udp_rx_close(struct udp_rx *);
/* Borrows these from now on, instead of those that it had. What it has read of them already is still received. */
void udp_rx_take(struct udp_rx *, const int *fds, size_t count);
/* Whether the kernel gives the first one trains whole, as it was told by udp_rx_prepare(). */
bool udp_rx_has_gro(const struct udp_rx *);
/* Sets all options of the sockets again. */
void udp_rx_heal(struct udp_rx *);
/* As io_ops.recv. */
size_t udp_rx_recv(struct udp_rx *, struct pkt *pkts, size_t max, uint64_t now_ns);
