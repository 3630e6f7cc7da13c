/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The back end over UDP sockets.
 *
 * Receiving: at most one socket per family and port, or per address and port, made elsewhere (group.h, or
 * udp_rx_socket below), which only this io reads; flow.dport is the port. Sending: sockets of its
 * own, one for each path and family, so that source ports distinguish processes; packets that arrive
 * at those ports are discarded. The ports are in 49152 .. 65535, and that of path i is i modulo 16,
 * unless that part of the range is crowded: then the kernel chooses.
 *
 * A packet leaves by the interface of its source GID if that one has a route to the destination, else as the routing
 * table says.
 *
 * ICMP from a peer never reaches a sender: sockets that are neither connected nor set to IP_RECVERR
 * ignore it.
 *
 * IPv4 packets leave with DF set and an identification of 0, and 0, 1, 2 .. along a train:
 * IP_PMTUDISC_PROBE does so (DO does too, but with DO a forged ICMP message could shrink our path
 * MTU). UDP checksums are on. The flow label of IPv6 is the kernel's choice; the ICRC does not cover
 * it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/by_interface.h"
#include "io/clock.h"
#include "io/io.h"

enum udp_family { UDP_V4, UDP_V6, UDP_FAMILIES };

enum {
	UDP_RX_SOCKETS_MAX = 8,
	UDP_PATHS_MAX = 16,
	UDP_SOURCE_PORT_MIN = 49152, /* the ports for dynamic use, RFC 6335 */
	UDP_RCVBUF_BYTES = 32 << 20, /* requested; unprivileged processes get net.core.rmem_max */
	UDP_SNDBUF_BYTES = 8 << 20
};

struct udp_config {
	int rx_fds[UDP_RX_SOCKETS_MAX]; /* *borrowed*: they outlive the io */
	size_t rx_count;
	bool no_ipv6;       /* make no IPv6 transmit sockets */
	unsigned paths;     /* source ports of each family, 1 .. UDP_PATHS_MAX; 0 means 1 */
	unsigned spare_fds; /* descriptors to leave to others when making further paths */
	bool bound;         /* packets leave by the interface of their source GID alone, as an adapter's do */
	/*
	 * For packets to this port pkt.waited_ns is set, and those to it that the way is too narrow for are fragmented; 0:
	 * for none. It is a port of peers that compute the ICRC as here, whatever identification a packet had.
	 */
	uint16_t timed_port;
	/*
	 * The time that calls are made for, as it is now, or none: that of the call. A process may lose its processor
	 * between its look at the clock and the call, and packets that arrive meanwhile have not waited for that time.
	 */
	struct io_clock clock;
	bool no_trains;                   /* as on a kernel without UDP_SEGMENT; for tests */
	struct io_counters *counters;     /* *borrowed*, zeroed by the caller */
	struct io_interfaces *interfaces; /* likewise; NULL: nobody reads it */
};

/*
 * Opens the back end. 0, or a negative errno with the reason, in words, in why. A host without
 * IPv6 gets a back end without it.
 */
int udp_open(struct io **, const struct udp_config *, char *why, size_t why_bytes);

/*
 * The GIDs of this host, and their interfaces, from now on; at most IO_GIDS_MAX. Packets leave by the interface of
 * their source GID (udp_routes.h). All routes that are kept are forgotten, so it is also called when the host's routes
 * have changed.
 */
void udp_set_gids(struct io *, const struct io_gid *, size_t count);

/*
 * How many paths each family has: as many as configured unless descriptors ran short, but at least
 * one.
 */
unsigned udp_paths(const struct io *);

/* Makes sockets until there are `paths` of them; returns how many there are. */
unsigned udp_add_paths(struct io *, unsigned paths);

/* The source port of a path, host order; 0: there is no such path. flow.sport must be one of them.
 */
uint16_t udp_source_port(const struct io *, enum udp_family, unsigned path);

/*
 * Leaves: all its own sockets are closed, and those of the caller forgotten. Until udp_return() nothing is sent or
 * received.
 */
void udp_leave(struct io *);
/*
 * Sends by new sockets, from the same ports, in the network namespace where sockets are made now (io/net.h), and receives
 * by these, as udp_config.rx_fds. 0, or a negative errno with the reason in why, and it is as it was: -EADDRINUSE, another
 * process has one of the ports.
 */
int udp_return(struct io *, const int *rx_fds, size_t rx_count, char *why, size_t why_bytes);

/*
 * Whether its sockets have lost the options that they were given, as those have that a tool made anew for a restored
 * process (CRIU knows few). If so they are given them again, in either direction. A system call.
 */
bool udp_heal(struct io *);

/* The smallest SO_RCVBUF that the receive sockets really have, in the kernel's count. */
size_t udp_rcvbuf_bytes(const struct io *);

/*
 * An unbound socket with every option that udp_open needs in a receive socket. A negative errno:
 * -EAFNOSUPPORT where the host has no such family. The caller binds it, and closes it.
 */
int udp_rx_socket(enum udp_family);

/* Sets those options again on a socket that another process made. */
void udp_rx_prepare(int fd, enum udp_family);
