/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP connections as a back end: numbered streams (base/stream_event.h). Who opens a stream chooses its number,
 * below TCP_ACCEPTED; those that are accepted get theirs here, above it. A stream's flow has the addresses and ports of
 * its two ends in GID form, seen from here.
 *
 * It takes what it granted room for: what a socket does not take at once it keeps, and grants that room again when it
 * has left. A stream is gone when a STREAM_RESET was given or taken, or STREAM_FIN both ways. A STREAM_RESET behind a
 * STREAM_FIN takes nothing back: the kernel goes on with what it has.
 *
 * Unlike other back ends it allocates: for each stream, and for what a socket did not take.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/io.h"

enum {
	TCP_ROOM_BYTES = 512 << 10,            /* what a stream takes ahead of its socket, at most */
	TCP_KEPT_BYTES = TCP_ROOM_BYTES + 256, /* with a last short message */
	TCP_READ_BYTES = 256 << 10             /* what is read at a time, of all streams together */
};

#define TCP_ACCEPTED 0x80000000u

/* 0, or a negative errno and a sentence. Counters are borrowed until close. */
int tcp_open(struct io **, struct io_counters *counters, char *why, size_t why_bytes);
/*
 * Takes port at->sport at at->src, a wildcard's too, for a listener: nobody listens there yet, and the kernel gives the
 * port to no other socket that asks for any. The listener has a number like a stream, which several may share. alone:
 * the port must be nobody's at all; else it may be that of others that do not listen either. 0 or a negative errno.
 */
int tcp_bind(struct io *, uint32_t number, const struct flow *at, bool alone);
/* Listens at each port that was taken by that number. 0 or a negative errno, and then none is taken any more; -ENOENT:
 * none was. */
int tcp_listen(struct io *, uint32_t number, int backlog);
/* As a STREAM_RESET for every listener with that number. Streams that were accepted stay. Harmless if there is no such
 * listener. */
void tcp_unlisten(struct io *, uint32_t number);
/*
 * Asks where the next bytes of a stream belong, as nic_stream_place(), with whose conditions tcp_recv() complies: the
 * packet has their number in pkt.far_bytes. Memory that is not there is not an error: the bytes come in the packet.
 */
struct tcp_placer {
	size_t (*place)(void *ctx, uint32_t number, uint8_t **to);
	void *ctx;
};

void tcp_set_placer(struct io *, struct tcp_placer);
/*
 * From now on a connection to another host leaves by the interface of its source address alone, and so does the answer to one
 * that arrived by it, as with an adapter. Listeners hear at other interfaces, too, and answer from there as the routing table
 * says. It is for connections and listeners to come, and as long as the kernel allows it: without privilege from Linux 5.7 on.
 */
void tcp_set_gids(struct io *, const struct io_gid *, size_t count);
/* Streams that there are now. */
size_t tcp_streams(const struct io *);
/* What would be lost if the process ended, of all streams together. */
struct tcp_leaving {
	size_t bytes;       /* that no peer's TCP has acknowledged */
	size_t half_closed; /* streams whose peers have not ended yet: what they say would reset them */
};

struct tcp_leaving tcp_leaving(const struct io *);
