/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How packets reach a network: one contract for every back end (udp) and for the wrappers around
 * one (shm, impair, pcap), which are back ends themselves.
 *
 * A struct io belongs to one thread at a time. No call blocks, allocates or logs. The clock is the
 * caller's: now_ns is its time at the call, used by wrappers that delay packets; a back end
 * that needs no time ignores it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/pkt.h"

/*
 * Counters of a struct io, in memory that the opener lends until close; readers elsewhere may share
 * it. One writer; each counter is a plain aligned 64-bit store.
 *
 * rx_* count packets that the kernel delivered to this process, impair_* what a wrapper then did to
 * them. tx_drops and rx_drops are packets that were dropped here, rx_overflow those that the kernel
 * discarded because the receive queue was full.
 */
struct io_counters {
	uint64_t tx_packets;
	uint64_t tx_bytes;  /* of UDP payload */
	uint64_t tx_trains; /* messages handed to the kernel, each a train of one or more packets */
	uint64_t tx_syscalls;
	uint64_t tx_drops; /* refused by the kernel: unreachable, too big, no route, no permission */
	uint64_t tx_again; /* calls cut short by EAGAIN or ENOBUFS */

	uint64_t rx_packets;
	uint64_t rx_bytes;
	uint64_t rx_trains; /* datagrams as the kernel coalesced them */
	uint64_t rx_syscalls;
	uint64_t rx_drops;    /* truncated, or without the address it was sent to */
	uint64_t rx_overflow; /* discarded by the kernel (SO_RXQ_OVFL); may lag */

	uint64_t impair_dropped;
	uint64_t impair_duplicated;
	uint64_t impair_reordered;
	uint64_t impair_corrupted;
	uint64_t impair_marked;
	uint64_t impair_overflow; /* found no room to be held back in */

	uint64_t forward_sent; /* forwarded to the group member they belong to */
	uint64_t forward_received;
	uint64_t forward_dropped;

	uint64_t shm_tx_packets; /* through memory, to processes of this host; counted nowhere else */
	uint64_t shm_tx_bytes;
	uint64_t shm_rx_packets;
	uint64_t shm_rx_bytes;
	uint64_t shm_tx_far;     /* of the packets sent: their receiver reads the payload in our memory */
	uint64_t shm_helped;     /* pieces of this process's memory that it copied to a process that read it */
	uint64_t shm_far_failed; /* trains whose payload could not be read there, or was taken back: dropped */
	uint64_t shm_full;       /* times that a ring was full, and its peer not sent to any more */
	uint64_t shm_dropped;    /* a full ring had too many waiting, or what one held was for somebody else */
	uint64_t shm_broken;     /* rings given up because of what the peer wrote */
	uint64_t shm_peers;      /* processes that there is a ring to now */

	uint64_t pcap_packets;
	uint64_t pcap_errors; /* 0 or 1: a failed capture stops */
};

/* A GID of this host, and the interface that has it. */
struct io_gid {
	uint8_t gid[16];
	uint32_t ifindex;
};

enum { IO_GIDS_MAX = 64 };

struct io;

struct io_ops {
	size_t (*recv)(struct io *, struct pkt *pkts, size_t max, uint64_t now_ns);
	size_t (*send)(struct io *, const struct pkt *pkts, size_t n, uint64_t now_ns);
	size_t (*fds)(const struct io *, int *fds, size_t max);
	uint64_t (*deadline_ns)(const struct io *);
	size_t (*train_max)(const struct io *);
	void (*flush)(struct io *);
	void (*close)(struct io *);
};

/* A back end puts this first in its own struct. */
struct io {
	const struct io_ops *ops;
};

/*
 * Takes up to max packets that have arrived. *Lends* data and flow until the next io_recv on the
 * same io; the data may be written to. pkt.train counts to the end of the datagram that the kernel
 * coalesced, which may be beyond this burst; ip_id is a guess, the packet's place in that datagram.
 * Fewer than max, or even 0, does not prove that nothing is left: a caller that polls calls again;
 * one that is about to sleep waits for io_fds, level-triggered, and io_deadline_ns.
 */
static inline size_t io_recv(struct io *io, struct pkt *pkts, size_t max, uint64_t now_ns)
{
	return io->ops->recv(io, pkts, max, now_ns);
}

/*
 * Sends packets in order; *borrows* them for the call. Those of a train (the first packet's
 * pkt.train) leave in one message, several messages in one system call. Returns how many packets
 * were consumed, from the first: sent, or refused for good (unreachable, too big) and counted.
 * Fewer than n only if the kernel has no room now, and then always whole trains. n must end with a
 * train.
 */
static inline size_t io_send(struct io *io, const struct pkt *pkts, size_t n, uint64_t now_ns)
{
	return io->ops->send(io, pkts, n, now_ns);
}

/* Descriptors that become readable when io_recv may have something; at most IO_FDS_MAX. */
static inline size_t io_fds(const struct io *io, int *fds, size_t max)
{
	return io->ops->fds(io, fds, max);
}

/* When io_recv will have a packet although no descriptor is readable; UINT64_MAX: never. */
static inline uint64_t io_deadline_ns(const struct io *io)
{
	return io->ops->deadline_ns(io);
}

/*
 * How many packets a train may have now: PKT_TRAIN_MAX, or 1 where the kernel cannot send trains.
 * It may fall to 1 while running; then longer trains over IPv4 are dropped, since their packets,
 * sent alone, would not carry the IP identification that their ICRC covers.
 */
static inline size_t io_train_max(const struct io *io)
{
	return io->ops->train_max(io);
}

/* Called when idle: writes buffered data to its file. May block on a file system. */
static inline void io_flush(struct io *io)
{
	io->ops->flush(io);
}

/* Releases the io and, for a wrapper, what it wraps. Descriptors that were lent stay open. */
static inline void io_close(struct io *io)
{
	io->ops->close(io);
}

enum { IO_FDS_MAX = 12 };
