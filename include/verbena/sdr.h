/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libverbena-sdr: RDMA messages of which the receiver sees every chunk as it arrives.
 *
 * The receiver posts a buffer and gets a bitmap with a bit for each chunk of it. The sender writes
 * into the buffer without copies, by unreliable RDMA; a packet that the network loses costs its
 * chunk and nothing else, and the program, or a reliability layer of its choice, decides what to do
 * about the chunks that do not come. It works over any device that libibverbs shows: a NIC, or
 * Verbena under verbena(1).
 *
 * Matching is by order: the n-th send of a connection meets the n-th receive that its peer has
 * posted. A send can begin once that receive is known here; before, it is VERBENA_SDR_RETRY.
 *
 * Calls return VERBENA_SDR_SUCCESS, VERBENA_SDR_RETRY (nothing happened, call again later) or
 * VERBENA_SDR_ERROR (nothing happened, and errno says why). Outputs are written on success alone.
 * Calls on one queue pair may be made from several threads; calls on one handle may not be made at
 * the same time. See verbena-sdr(7).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VERBENA_SDR_API __attribute__((visibility("default")))

enum verbena_sdr_result {
	VERBENA_SDR_SUCCESS = 0,
	VERBENA_SDR_ERROR = 1,
	VERBENA_SDR_RETRY = 2,
};

struct verbena_sdr_context;
struct verbena_sdr_qp;
struct verbena_sdr_mr;

/* ---- contexts: a device, and what watches it */

#define VERBENA_SDR_NO_WORKERS UINT32_MAX

struct verbena_sdr_context_attr {
	uint32_t num_channels; /* of every queue pair: 1 to 128. Default 8 */
	uint32_t log_max_qps;  /* at most 2^this queue pairs: 0 to 16. Default 4 */
	uint32_t num_workers;  /* threads: 1 to num_channels. Default 1. VERBENA_SDR_NO_WORKERS:
				  verbena_sdr_progress() */
	uint32_t port;         /* of the device. Default 1 */
	uint32_t gid_index;    /* in the port's table. Default 0 */
	const char *address;   /* an IP address as text: the GID that is it is taken where the port has one, and that of
				  gid_index where it has none. Borrowed. Default NULL: gid_index */
};

/* Sets the defaults. */
VERBENA_SDR_API void verbena_sdr_context_attr_init(struct verbena_sdr_context_attr *);

/* Opens a device by its name; NULL: the first there is. attr is borrowed; NULL: the defaults. NULL
 * and errno: ENODEV: no such device; EINVAL: an attribute is out of bounds; or what a verb failed
 * with. */
VERBENA_SDR_API struct verbena_sdr_context *verbena_sdr_context_create(const char *device,
								       const struct verbena_sdr_context_attr *attr);
/* ERROR with EBUSY while it has queue pairs or memory regions. */
VERBENA_SDR_API int verbena_sdr_context_destroy(struct verbena_sdr_context *);
/* Without workers this does their work: takes what has come, sends what can be sent. How many
 * packets and messages it saw; it never waits. With workers it does nothing. */
VERBENA_SDR_API uint32_t verbena_sdr_progress(struct verbena_sdr_context *);

/* A descriptor for poll(2) and its kin, for whatever is polled otherwise: it becomes readable when anything of the context
 * may have changed since verbena_sdr_event_arm(). It is the context's: it is not read, nor closed. ERROR: EMFILE and
 * the like. */
VERBENA_SDR_API int verbena_sdr_event_fd_get(struct verbena_sdr_context *, int *fd);
/* Asks for an event, once, as ibv_req_notify_cq() does: look at everything once more before you wait, as what came before
 * gives none. Without workers it does their work too, as does each call after an event. RETRY: it has done some
 * work: look at everything, and call it again before you wait. */
VERBENA_SDR_API int verbena_sdr_event_arm(struct verbena_sdr_context *);

/* ---- queue pairs: a connection */

enum verbena_sdr_transport {
	VERBENA_SDR_UC = 0, /* one message a packet, unreliable */
	VERBENA_SDR_RC = 1, /* for networks that lose nothing, and for measurements. A receive that
			     * is completed while data for it is under way breaks the connection */
};

/* Both ends must have the same, but for the directions, the rate, the batch and the round trip. */
struct verbena_sdr_qp_attr {
	/* Bytes of a packet: 64, 128, .. 4096. 0, the default: what the port carries. */
	uint32_t mtu;
	/* Bytes of a chunk: mtu to 64 mtu. Default 16. */
	uint32_t bitmap_chunk_size_log_bytes;
	/* Receives outstanding: at most 2^msg_id_bits. Default 7. */
	uint32_t max_log_num_msgs;
	/* Bytes of all these together. A message has at most 2^(this - max_log_num_msgs) bytes,
	 * which is at least a chunk. Default 30. */
	uint32_t max_in_flight_log_bytes;
	/* At least one. Default: both. */
	bool send_enable, recv_enable;
	/* Of payload. 0, the default: as fast as it goes, unless rate_auto is set. */
	uint32_t rate_limit_mbps;
	/* 1 to 16; default 4. A packet that is late by fewer than this times as many messages as
	 * can be outstanding is distinguished from new ones. */
	uint32_t generations;
	/* How the 32 bits of a packet's immediate are split. imm_bits is 1, 2, 4 or 8. Default 10,
	 * 18 and 4. */
	uint32_t msg_id_bits, offset_bits, imm_bits;
	/* Default VERBENA_SDR_UC. */
	enum verbena_sdr_transport transport;
	/* Packets handed to the device at a time: 1 to 64. Default 8. */
	uint32_t send_batch;
	/* A guess at the round trip, for repeating what is lost. Default 1 ms. */
	uint64_t rtt_ns;
	/* Idle fill. When all packets of a message with a code over its tail have been sent, more
	 * parities of it follow, until the peer acknowledges the message or a round trip's worth of
	 * them has gone. So a message arrives without a second round trip even if more was lost than
	 * was reckoned with. A parity is sent only while nothing else waits on the context. They have
	 * queue pairs of their own, in the Lower Effort class (RFC 8622, DSCP 1): a network that knows
	 * this class sends everything else first. Not with VERBENA_SDR_RC. Default: off. */
	bool idle_fill;
	/* The rate finds itself, by PINGs while something is sent: as much is in flight as the path holds, and a share of
	 * its queue; random loss of up to a tenth does not count. Nothing limits it where the shortest round
	 * trip is less than 4 ms, as hosts that wait for a processor look like queues there, and where the peer's library
	 * does not count what arrives. Not with rate_limit_mbps. Of the sending end alone; default: off. */
	bool rate_auto;
};

/* Sets the defaults. */
VERBENA_SDR_API void verbena_sdr_qp_attr_init(struct verbena_sdr_qp_attr *);

/* attr is borrowed. NULL and errno: EINVAL: attributes that are out of bounds or do not go
 * together, or an MTU beyond the port's; ENOSPC: max_qps there are; or what a verb failed with. */
VERBENA_SDR_API struct verbena_sdr_qp *verbena_sdr_qp_create(struct verbena_sdr_context *,
							     const struct verbena_sdr_qp_attr *attr);
/* Its handles are invalid from here on, and buffers belong to the user again when it returns. */
VERBENA_SDR_API int verbena_sdr_qp_destroy(struct verbena_sdr_qp *);

/* The description of this end, which the peer needs to connect: `size` bytes. The program carries
 * them to the peer by any way it has. */
VERBENA_SDR_API int verbena_sdr_qp_info_size_get(const struct verbena_sdr_qp *, size_t *size);
VERBENA_SDR_API int verbena_sdr_qp_info_get(const struct verbena_sdr_qp *, void *info, size_t size);
/* Connects with the end that `info` describes; it is borrowed. ERROR: EINVAL: no such description;
 * EPROTO: the ends do not have the same attributes, or neither sends what the other receives;
 * EISCONN: is connected; or what a verb failed with. */
VERBENA_SDR_API int verbena_sdr_qp_connect(struct verbena_sdr_qp *, const void *info, size_t size);

/* ---- memory */

#define VERBENA_SDR_REMOTE_WRITE 1u

/* Registers memory for sends, and with VERBENA_SDR_REMOTE_WRITE for receives too. It stays the
 * user's, and stays mapped until verbena_sdr_mr_dereg(). NULL and errno. */
VERBENA_SDR_API struct verbena_sdr_mr *verbena_sdr_mr_reg(struct verbena_sdr_context *, void *addr, size_t length,
							  uint32_t flags);
/* ERROR with EBUSY while a posted receive lies in it. A send from it that is not done breaks its
 * connection. */
VERBENA_SDR_API int verbena_sdr_mr_dereg(struct verbena_sdr_mr *);
/* The key for blocks and receives. */
VERBENA_SDR_API int verbena_sdr_mr_lkey_get(const struct verbena_sdr_mr *, uint32_t *lkey);
/* The remote key, which this library does not use. */
VERBENA_SDR_API int verbena_sdr_mr_rkey_get(const struct verbena_sdr_mr *, uint32_t *rkey);

/* ---- receiving */

/* Names a posted receive. It is a value: copies are as good, and one that is used after the receive
 * was completed is an error and touches no other message. */
struct verbena_sdr_recv {
	struct verbena_sdr_qp *qp;
	uint64_t number; /* of the receive, from 0 */
};

struct verbena_sdr_recv_attr {
	void *address;
	size_t max_length; /* 1 to the longest message */
	uint32_t lkey;     /* of a region with VERBENA_SDR_REMOTE_WRITE that the buffer lies in */
};

/* Posts a buffer, which is the device's until verbena_sdr_recv_complete(). RETRY: as many as
 * allowed are outstanding, or too many of them are not yet known to the peer. ERROR: EINVAL: length, range or key;
 * ENOTCONN; EOPNOTSUPP: not a receiving end. */
VERBENA_SDR_API int verbena_sdr_recv_post(struct verbena_sdr_qp *, const struct verbena_sdr_recv_attr *,
					  struct verbena_sdr_recv *);
/* The bitmap: chunk i is bit i % 8 of byte i / 8, and bits beyond the last chunk are 0. A bit that
 * is set stays set, and whoever reads it with acquire, as verbena_sdr_chunk_arrived() does, sees
 * every byte of the chunk. The pointer may be read without further calls until
 * verbena_sdr_recv_complete(). A send shorter than the buffer never sets the bits behind its end.
 */
VERBENA_SDR_API int verbena_sdr_recv_bitmap_get(const struct verbena_sdr_recv *, const uint8_t **bitmap, size_t *bytes);
/* Waits until a chunk is there, up to timeout_ms; negative: as long as it takes. RETRY: the time is over. ERROR: EINVAL: the
 * receive has no such chunk, or was completed meanwhile; or as verbena_sdr_event_arm(). One thread of a context
 * waits at a time, for chunks or for events. */
VERBENA_SDR_API int verbena_sdr_recv_chunk_wait(const struct verbena_sdr_recv *, uint32_t chunk, int timeout_ms);
/* The sender's immediate; RETRY until all of it has come. A sender that gave none reads as 0. */
VERBENA_SDR_API int verbena_sdr_recv_imm_get(const struct verbena_sdr_recv *, uint32_t *imm);
/* The packets of a chunk that have come: bit j is packet j. */
VERBENA_SDR_API int verbena_sdr_recv_bitmap_chunk_expand(const struct verbena_sdr_recv *, uint32_t chunk,
							 uint64_t *mask);
/* Ends the receive, whole or not: when it returns, nothing writes into the buffer any more, and the
 * bitmap is gone. Once for each receive that was posted. */
VERBENA_SDR_API int verbena_sdr_recv_complete(const struct verbena_sdr_recv *);

/* Whether a chunk's bit is set; then its bytes may be read. */
static inline bool verbena_sdr_chunk_arrived(const uint8_t *bitmap, uint32_t chunk)
{
	return __atomic_load_n(&bitmap[chunk / 8], __ATOMIC_ACQUIRE) >> chunk % 8 & 1;
}

/* ---- sending */

struct verbena_sdr_send {
	struct verbena_sdr_qp *qp;
	uint64_t number; /* of the send, from 0: that of the receive it meets */
};

/* A block of a message. It lies in the receive buffer from chunk remote_offset on, and is whole
 * chunks, but for one that ends where the receive buffer ends. */
struct verbena_sdr_block {
	const void *address;
	size_t length;
	uint32_t lkey;
	uint32_t remote_offset; /* in chunks */
};

/* Sends one block as a message. imm: the user's immediate, or NULL; with it the block may be empty.
 * RETRY: the receive is not known here yet, or there is no room. ERROR, and no number used: EINVAL:
 * the block does not fit the receive, or the key its memory; ENOTCONN; EOPNOTSUPP: not a sending
 * end; EIO: the connection is broken. */
VERBENA_SDR_API int verbena_sdr_send_post(struct verbena_sdr_qp *, const struct verbena_sdr_block *,
					  const uint32_t *imm, struct verbena_sdr_send *);
/* The same in steps: any number of blocks, in any order, also repeatedly, which is how a layer
 * above sends again what was lost. Blocks are sent in the order in which they are handed over. */
VERBENA_SDR_API int verbena_sdr_send_stream_start(struct verbena_sdr_qp *, const uint32_t *imm,
						  struct verbena_sdr_send *);
VERBENA_SDR_API int verbena_sdr_send_stream_continue(const struct verbena_sdr_send *, const struct verbena_sdr_block *);
/* As verbena_sdr_send_stream_continue(), but the block goes before all blocks, of every send, that were not handed over by
 * this call: what was lost before what is new. */
VERBENA_SDR_API int verbena_sdr_send_stream_repeat(const struct verbena_sdr_send *, const struct verbena_sdr_block *);
VERBENA_SDR_API int verbena_sdr_send_stream_end(const struct verbena_sdr_send *);
/* Ends a send that has ended or has not: what of it was not handed to the device is never sent, and a part of the immediate may be
 * missing. Its number is used; the receive that it meets gets no more. Poll it until it is done. */
VERBENA_SDR_API int verbena_sdr_send_cancel(const struct verbena_sdr_send *);
/* How many bytes of the blocks that were handed over wait for the rate or for room in the device. The device has the rest,
 * which leaves soon; 0 is the moment to hand over more. */
VERBENA_SDR_API int verbena_sdr_send_queued_get(const struct verbena_sdr_send *, uint64_t *bytes);
/* Whether the send has ended and all of it has left the device, so that its memory may be used for
 * something else; that says nothing of its arrival. Once it is done the handle is invalid. ERROR
 * with EIO: the connection is broken, and the handle invalid. */
VERBENA_SDR_API int verbena_sdr_send_poll(const struct verbena_sdr_send *, bool *done);

/* ---- reliable messages: Selective Repeat */

/* Each end of a message has its own: the receiver acknowledges chunks, and the sender sends again
 * those that are not acknowledged. */
struct verbena_sdr_sr_attr {
	/* Of the path. Less than 20 ms, the default 1 ms included, is taken for 20: a process may
	 * wait that long for a processor. */
	uint64_t rtt_ns;
	/* Until a chunk is sent again by itself. 0, the default: 3 RTT. */
	uint64_t rto_ns;
	/* Of a message. 0, the default: 100 RTT and 10 s. */
	uint64_t timeout_ns;
	/* Of a chunk: 1 to 255. Default 64. */
	uint32_t tries_max;
	/* A chunk is missed when one this many behind it is there. Default 2. */
	uint32_t reorder;
	/* The receiver names what it misses. Default: it does. */
	bool nack;
};

/* Sets the defaults. */
VERBENA_SDR_API void verbena_sdr_sr_attr_init(struct verbena_sdr_sr_attr *);

/* Sends a block that fills the receive it meets, and sends again what is lost. attr: NULL for the
 * defaults. As verbena_sdr_send_post() otherwise. Between here and the end of it
 * verbena_sdr_progress() must be called, if the context has no workers. */
VERBENA_SDR_API int verbena_sdr_sr_send(struct verbena_sdr_qp *, const struct verbena_sdr_block *,
					const struct verbena_sdr_sr_attr *attr, struct verbena_sdr_send *);
/* Whether the peer has all of it, and its memory may be used for something else. Once it is, or has
 * failed, the handle is invalid. ERROR: ETIMEDOUT: the message's time is over, or a chunk was sent
 * too often; ECONNABORTED: the peer has completed the receive before it was whole; EIO: the
 * connection is broken. */
VERBENA_SDR_API int verbena_sdr_sr_poll(const struct verbena_sdr_send *, bool *done);

/* From here on a posted receive is acknowledged, until it is completed; also before the
 * connection's other end sends. */
VERBENA_SDR_API int verbena_sdr_sr_recv(const struct verbena_sdr_recv *, const struct verbena_sdr_sr_attr *attr);
/* Whether it is whole. ERROR with ECONNABORTED: the sender has given up. */
VERBENA_SDR_API int verbena_sdr_sr_recv_poll(const struct verbena_sdr_recv *, bool *done);

/* ---- reliable messages: erasure coding */

/* A message's packets are dealt out to groups, and behind the packets of some groups go parities,
 * from which the receiver computes what was lost. What cannot be computed is sent again, or more
 * parities are. The sender alone chooses how a message is coded. */
enum verbena_sdr_code {
	VERBENA_SDR_MDS = 0, /* any parity of a group stands for any packet of it */
	VERBENA_SDR_XOR = 1, /* parity i stands for one of the packets i, i + parity, .. */
};

enum verbena_sdr_fallback {
	/* The receiver names as many pieces as each group lacks and a few more, and the sender answers
	 * with parities that it has not sent before, or with these. Not with VERBENA_SDR_XOR. */
	VERBENA_SDR_FALLBACK_PARITY = 0,
	/* Selective Repeat delivers their data, after a time. */
	VERBENA_SDR_FALLBACK_SR = 1,
};

struct verbena_sdr_ec_attr {
	enum verbena_sdr_code code;
	/* Of a group: packets, parities sent unasked, and parities there may be; data + parity_max
	 * <= 255, or but for VERBENA_SDR_XOR data <= 992 and parity_max <= 32. Default 32, 8 and 16. parity_max is lowered to what there is room for: parities
	 * have half as many bytes as the message and 16 packets, or a chunk. */
	uint32_t data, parity, parity_max;
	uint32_t depth; /* groups that packets are dealt out to in turn. Default 8 */
	size_t uncoded; /* bytes at the beginning that no parity is of; all: none is sent unasked */
	bool chunks;    /* chunks are coded, not packets */
	enum verbena_sdr_fallback fallback;
	bool end_marker;                     /* the receiver is told that all was sent. Default: it is */
	bool nack;                           /* with VERBENA_SDR_FALLBACK_SR: as verbena_sdr_sr_attr's */
	uint64_t rtt_ns, rto_ns, timeout_ns; /* as verbena_sdr_sr_attr's; at most 3.6 s, and less than an hour each */
	uint32_t tries_max;                  /* of a group, likewise */
	double loss;                         /* that is reckoned with: 0 to 0.5. Default 0.01; 0: what has been seen */
	uint64_t rate_mbps;                  /* at which it is sent. 0: as verbena_sdr_tail_attr's */
};

/* Sets the defaults. */
VERBENA_SDR_API void verbena_sdr_ec_attr_init(struct verbena_sdr_ec_attr *);

/* What is known of a link. */
struct verbena_sdr_link {
	uint64_t rate_mbps, rtt_ns; /* > 0 */
	uint64_t sent, lost;        /* packets; 0: nothing is known */
};

/* Chooses a code for a message of so many bytes, behind which `behind` more bytes will be sent, and
 * says in a constant sentence why. ERROR: EINVAL. */
VERBENA_SDR_API int verbena_sdr_ec_choose(const struct verbena_sdr_qp *, const struct verbena_sdr_link *, size_t bytes,
					  uint64_t behind, struct verbena_sdr_ec_attr *, const char **reason);

/* Sends a block that fills the receive it meets, which verbena_sdr_ec_recv_post() has posted. As
 * verbena_sdr_sr_send() otherwise, but that it takes two numbers: the handle's, and the next for the
 * parities. ERROR: EOPNOTSUPP: over VERBENA_SDR_RC, or only one receive can be outstanding. */
VERBENA_SDR_API int verbena_sdr_ec_send(struct verbena_sdr_qp *, const struct verbena_sdr_block *,
					const struct verbena_sdr_ec_attr *attr, struct verbena_sdr_send *);
/* As verbena_sdr_sr_poll(). */
VERBENA_SDR_API int verbena_sdr_ec_poll(const struct verbena_sdr_send *, bool *done);

/* Posts a buffer for a coded message, and memory of the library for its parities: two receives. As
 * verbena_sdr_recv_post() otherwise; verbena_sdr_recv_complete() ends both. */
VERBENA_SDR_API int verbena_sdr_ec_recv_post(struct verbena_sdr_qp *, const struct verbena_sdr_recv_attr *,
					     struct verbena_sdr_recv *);
/* Whether it is whole. The call that finds it so computes what was lost, which takes as long as it
 * takes, and revokes the key before. ERROR: ECONNABORTED: the sender has given up; ENOMEM: nothing
 * has changed, call again. */
VERBENA_SDR_API int verbena_sdr_ec_recv_poll(const struct verbena_sdr_recv *, bool *done);

/* ---- reliable messages: codes over the tail */

/* The receiver names packets that were lost more than a round trip before the end of a message, and
 * they are sent again while the rest is sent. Only the last round trip's packets, or all of a
 * shorter message, have parities, as many as the losses seen so far call for. */
struct verbena_sdr_tail_attr {
	uint64_t rtt_ns;     /* of the path. Default 1 ms; less than 20 is taken for 20 */
	uint64_t timeout_ns; /* of a message, less than an hour. 0, the default: 125 RTT and 10 s */
	uint64_t rate_mbps;  /* at which it is sent. 0, the default: the queue pair's limit, or else 1000 */
	uint64_t behind;     /* bytes that will follow: losses can be repaired meanwhile. Default 0 */
	double loss;         /* that is reckoned with, 0 to 0.5. 0, the default: what has been seen */
};

/* Sets the defaults. */
VERBENA_SDR_API void verbena_sdr_tail_attr_init(struct verbena_sdr_tail_attr *);

/* As verbena_sdr_ec_send() and its kin: two numbers a message, and the receiver posts memory for
 * parities with it. Both ends know the round trip; 0: less than 20 ms. */
VERBENA_SDR_API int verbena_sdr_tail_send(struct verbena_sdr_qp *, const struct verbena_sdr_block *,
					  const struct verbena_sdr_tail_attr *attr, struct verbena_sdr_send *);
VERBENA_SDR_API int verbena_sdr_tail_poll(const struct verbena_sdr_send *, bool *done);
VERBENA_SDR_API int verbena_sdr_tail_recv_post(struct verbena_sdr_qp *, const struct verbena_sdr_recv_attr *,
					       uint64_t rtt_ns, struct verbena_sdr_recv *);
VERBENA_SDR_API int verbena_sdr_tail_recv_poll(const struct verbena_sdr_recv *, bool *done);
/* The loss of packets that the next message reckons with: estimated upwards from what the peer has
 * said of those before. */
VERBENA_SDR_API int verbena_sdr_tail_loss_get(struct verbena_sdr_qp *, double *loss);

/* ---- round trips */

/* Sends a PING, which the peer answers when it looks. RETRY: there is no room. ERROR: ENOTCONN. */
VERBENA_SDR_API int verbena_sdr_ping(struct verbena_sdr_qp *);
/* The shortest round trip that was measured, and a mean that fades. RETRY: none was. */
VERBENA_SDR_API int verbena_sdr_rtt_get(struct verbena_sdr_qp *, uint64_t *least_ns, uint64_t *mean_ns);

/* ---- counters */

struct verbena_sdr_stats {
	uint64_t packets;         /* that were new */
	uint64_t chunks;          /* that became whole */
	uint64_t imm_only;        /* packets that brought a part of an immediate and no payload */
	uint64_t duplicates;      /* packets that were there */
	uint64_t dropped_id;      /* of a message number that cannot be */
	uint64_t dropped_late;    /* of a message that was completed */
	uint64_t dropped_offset;  /* beyond the buffer */
	uint64_t dropped_length;  /* not as long as the packet of that place is */
	uint64_t dropped_control; /* control messages that made no sense */
	uint64_t sent;            /* packets handed to the device */
	uint64_t cts_sent;        /* messages that granted receives to the peer */
	uint64_t cts_repeated;    /* of these, repetitions */
	uint64_t retries;         /* calls that returned VERBENA_SDR_RETRY */
	/* Of coded messages: packets of those that were sent, up to the last that came, how many of these
	 * the peer has missed, and what was computed of those that were received. */
	uint64_t ec_pieces, ec_lost, ec_recovered;
	uint64_t fills;     /* packets of idle fill that were sent, which are among `sent` */
	uint64_t resent;    /* packets of reliable messages that were not the first of their place, likewise */
	uint64_t rate_mbps; /* at which it sends now; 0: as fast as it goes */
};

/* Of a queue pair, since it was made. */
VERBENA_SDR_API int verbena_sdr_qp_stats_get(const struct verbena_sdr_qp *, struct verbena_sdr_stats *);

#ifdef __cplusplus
}
#endif
