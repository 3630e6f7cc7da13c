/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending over UDP: one socket a path and family, trains as one message each. Internal to the UDP back end.
 *
 * Private to src/io.
 */
#pragma once

#include "io/udp/udp_routes.h"
#include "io/udp/udp_socket.h"

enum { UDP_TX_MESSAGES = 16 };

/*
 * A message whose TOS is not the socket's own says so in a control message, for 0.1 us. The TOS of
 * most messages becomes the socket's own, so a path that carries veRoCE data soon has ECT(0) without
 * it.
 */
struct udp_tx_socket {
	int fd; /* -1: none */
	uint16_t port;
	uint8_t tos;       /* the socket's own */
	uint8_t other_tos; /* of the last messages, `other_run` in a row */
	unsigned other_run;
	bool off_host; /* this host gets no copies of packets to groups: flows with FLOW_OFF_HOST */
};

struct udp_tx {
	struct io_counters *counters;
	bool trains; /* the kernel and the interfaces take them */
	unsigned paths;
	unsigned spare_fds;
	uint16_t fragmented_port; /* packets to it may be fragmented: udp_config.timed_port */
	uint64_t now_ns;
	struct udp_routes routes;
	struct udp_tx_socket sockets[UDP_FAMILIES][UDP_PATHS_MAX];
	struct mmsghdr messages[UDP_TX_MESSAGES];
	size_t packets[UDP_TX_MESSAGES];         /* packets in each message */
	uint32_t segment_bytes[UDP_TX_MESSAGES]; /* of each of them but the last */
	struct io_interface *counts[UDP_TX_MESSAGES];
	struct iovec iov[UDP_TX_MESSAGES];
	union udp_address to[UDP_TX_MESSAGES];
	struct udp_control control[UDP_TX_MESSAGES];
};

/*
 * *tx is zeroed memory. 0, or a negative errno if not even one path can be made; the caller closes
 * it in either case.
 */
int udp_tx_open(struct udp_tx *, const struct udp_config *);
/* Makes more paths, up to that many, as far as descriptors suffice. */
void udp_tx_add_paths(struct udp_tx *, unsigned paths);
void udp_tx_close(struct udp_tx *);
/* Closes all sockets; their ports are known still. */
void udp_tx_leave(struct udp_tx *);
/* New sockets with the same ports, instead of those that there were. 0, or a negative errno with nothing changed, and
 * *port set to the one that failed. */
int udp_tx_return(struct udp_tx *, uint16_t *port);
/* Sets all options of the sockets again. */
void udp_tx_heal(struct udp_tx *);
/* As io_ops.send. */
size_t udp_tx_send(struct udp_tx *, const struct pkt *pkts, size_t n, uint64_t now_ns);
