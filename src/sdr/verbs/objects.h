/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The objects behind the handles of libverbena-sdr, and the threads that may touch them.
 *
 * A context has workers. Worker w serves the channels c with c mod workers = w of every queue pair,
 * by one shared receive queue and one completion queue, and drives the sends and the control path
 * of the queue pairs that are its own. While it works it holds its gate; whoever adds or removes a
 * queue pair holds all gates. A queue pair's sending end, its grants and its control path are under
 * its lock; the packets that come go into its receiver without one.
 *
 * Order of locks: gates, then a queue pair's, then the context's for memory.
 *
 * Private to src/sdr/verbs.
 */
#pragma once

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>

#include "sdr/message/grants.h"
#include "sdr/message/info.h"
#include "sdr/message/receiver.h"
#include "sdr/message/sender.h"
#include "sdr/rate/auto_rate.h"
#include "sdr/verbs/reliable.h"
#include <verbena/sdr.h>

enum {
	POLL_BATCH = 64,
	RECV_DEPTH = 8192,   /* packets that may come between two looks */
	CONTROL_DEPTH = 128, /* control messages, likewise */
	CONTROL_SENDS = 64,  /* control messages under way, of a queue pair */
	CONTROL_BYTES = SHAPE_MTU_MAX,
	CHANNEL_DEPTH = 128, /* packets handed to the device, of a channel of a queue pair */
	QP_DEPTH = 512,      /* and of a queue pair: whatever is queued later, repetitions too, waits behind them */
	SEND_BATCH_MAX = 64,
};

/* The wr_id of control messages; those of packets are below. */
#define WR_CONTROL UINT64_MAX

/* A process may wait so long for a processor: less is no queue of the network. */
#define RATE_SLACK_NS UINT64_C(4000000)

/* A transport QP of ours, found by its number. */
struct route {
	uint32_t qpn; /* 0: none */
	uint16_t generation;
	bool control;
	struct verbena_sdr_qp *qp;
};

struct sdr_worker {
	struct verbena_sdr_context *ctx;
	uint32_t index;
	pthread_mutex_t gate;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;       /* of everything that comes */
	struct ibv_srq *data;    /* receives without memory, for packets */
	struct ibv_srq *control; /* receives into control_memory */
	struct ibv_mr *control_mr;
	uint8_t *control_memory;
	struct verbena_sdr_qp *inside; /* its struct worker may be inside a slot */
	pthread_t thread;
	int wake_fd;
	_Atomic bool asleep;
};

/* What a program waits for. */
struct sdr_events {
	int fd, timer_fd; /* 0: not opened */
	_Atomic bool armed;
};

struct verbena_sdr_context {
	struct ibv_context *ibv;
	struct ibv_pd *pd;
	struct ibv_port_attr port_attr;
	union ibv_gid gid;
	uint32_t channels, worker_count, qps_max;
	uint8_t port, gid_index;
	bool threads;
	_Atomic bool stopping;
	_Atomic uint32_t changing; /* threads that wait for all gates */
	_Atomic uint32_t made;     /* queue pairs made so far, which go to the workers in turn */
	struct sdr_worker *workers;
	struct sdr_events events;
	/* All gates, or a worker's own gate to read. */
	struct route *routes;
	uint32_t route_mask, route_count;
	struct verbena_sdr_qp **qps; /* qp_count of qps_max */
	uint32_t qp_count;
	/* Sorted by key. */
	pthread_mutex_t memory_lock;
	struct verbena_sdr_mr **mrs;
	uint32_t mr_count, mr_room;
};

struct verbena_sdr_mr {
	struct verbena_sdr_context *ctx;
	struct ibv_mr *ibv;
	uint32_t flags;
	uint32_t receives; /* that are posted and lie in it */
};

/* A posted receive's memory: the key that the peer writes with, and the region it lies in. */
struct recv_memory {
	struct ibv_mr *window;
	struct verbena_sdr_mr *region;
};

/* What gives way has the Lower Effort code point (RFC 8622), above the two bits of ECN. */
enum { TRAFFIC_CLASS_LOW = 1 << 2 };

/* Packets gathered for one post to one transport QP. */
struct lane {
	struct ibv_send_wr wr[SEND_BATCH_MAX];
	struct ibv_sge sge[SEND_BATCH_MAX];
	uint32_t count, slot, generation;
	uint32_t in_flight; /* of the channel, over all generations */
};

struct verbena_sdr_qp {
	struct verbena_sdr_context *ctx;
	struct sdr_worker *owner;
	struct shape shape;
	struct info mine, peer;
	enum ibv_mtu path_mtu;
	struct ibv_qp **data; /* by info_qp() */
	struct ibv_qp *control;
	bool connected; /* under the lock; set once */
	pthread_mutex_t lock;

	/* Of an end that sends; all zero otherwise. */
	struct sender sender;
	struct lane *lanes; /* a channel each, and the last for idle fill if there is such a channel */
	struct ibv_cq *send_cq;
	uint32_t in_flight;  /* packets handed to the device */
	uint32_t unreturned; /* packets and control messages whose completions send_cq will have */
	uint32_t batch;
	uint64_t rate_bps, pace_ns; /* pace_ns: when the next packet may go */
	struct auto_rate rate;      /* PINGs, and the rate if it finds itself */
	bool broken;
	_Atomic bool sending; /* packets wait to be sent or to be given back; other queue pairs' workers look, too */
	uint64_t sent, retries;

	struct receiver receiver;
	struct worker *counts;      /* a worker each; its own */
	struct recv_memory *memory; /* a slot each */
	struct grants grants;

	struct reliable reliable;

	uint8_t *control_memory;
	struct ibv_mr *control_mr;
	uint32_t control_next, control_out;
	uint64_t dropped_control;
};

extern const struct alloc sdr_heap;

/* CLOCK_MONOTONIC, in nanoseconds. */
uint64_t sdr_now_ns(void);
/* Sets errno and returns NULL. */
void *sdr_fail_null(int err);
/* Sets errno and returns VERBENA_SDR_ERROR. */
int sdr_fail(int err);

/* All gates: no worker is at work, and none inside a slot. */
void gates_close(struct verbena_sdr_context *);
void gates_open(struct verbena_sdr_context *);
/* Wakes the worker if it sleeps. */
void worker_wake(struct sdr_worker *);
/* Forgets events that have come, and asks for the next ones; the worker's gate is held. */
void worker_ask(struct sdr_worker *);
int workers_start(struct verbena_sdr_context *);
void workers_stop(struct verbena_sdr_context *);

/* A worker has done something, or time has passed. */
void events_tell(struct verbena_sdr_context *);
void events_close(struct verbena_sdr_context *);

/* All gates are held, but for route_find(), which needs one. Makes room for so many more; -ENOMEM.
 */
int routes_reserve(struct verbena_sdr_context *, uint32_t more);
void route_add(struct verbena_sdr_context *, struct route);
void routes_remove(struct verbena_sdr_context *, const struct verbena_sdr_qp *);
const struct route *route_find(const struct verbena_sdr_context *, uint32_t qpn);

/* Takes a batch of what has come; how many. */
uint32_t worker_take_arrived(struct sdr_worker *, uint64_t now_ns);
/* One pass of a worker, which holds its gate. Returns how much it did, and lowers *due_ns to the time
 * of the next pass if that is earlier. */
uint32_t worker_pass(struct sdr_worker *, uint64_t *due_ns);
/* Does all that this end of the queue pair can do now, under its lock. Returns how much it did. */
uint32_t send_pump(struct verbena_sdr_qp *, uint64_t now_ns);
uint32_t send_collect(struct verbena_sdr_qp *);
/* Whether another queue pair of the context has packets to send; a gate is held. */
bool send_others(const struct verbena_sdr_qp *);
/* The calls that send begin with this one: 0 or a negative errno, and the block as sender.h has it. */
int send_ready(const struct verbena_sdr_qp *, const struct verbena_sdr_block *, struct send_block *);
/* They end with this one, which pumps, unlocks, and makes the result for the program from err. */
int send_settle(struct verbena_sdr_qp *, int err);
/* Whether `count` receives may be posted, the first of that length: 0, -EAGAIN, or why not. */
int recv_ready(const struct verbena_sdr_qp *, size_t length, uint32_t count);
/* The calls that post end with this one: it unlocks, and makes the handle and the result for the program from err. */
int recv_settle(struct verbena_sdr_qp *, int err, uint64_t number, struct verbena_sdr_recv *);
/* What has become of a message, under the lock: 1: the peer has it, or all of it has come; 0: not yet; or a negative
 * errno. */
typedef int message_outcome(struct verbena_sdr_qp *, uint64_t number);
/* The polls of layers: *done and the result for the program from the outcome. */
int send_poll_by(const struct verbena_sdr_send *, bool *done, message_outcome *);
int recv_poll_by(const struct verbena_sdr_recv *, bool *done, message_outcome *);
/* Posts a receive that recv_ready() allows. */
int recv_open(struct verbena_sdr_qp *, const struct verbena_sdr_recv_attr *, uint64_t *number);
/* Revokes the key of a posted receive: nothing writes into its buffer any more. */
void recv_revoke(struct verbena_sdr_qp *, uint64_t number);
/* Completes a receive; false if it is not posted. */
bool recv_close(struct verbena_sdr_qp *, uint64_t number);
void control_take(struct verbena_sdr_qp *, const uint8_t *message, size_t len, uint64_t now_ns);
void control_tell_grants(struct verbena_sdr_qp *, uint64_t now_ns);
void control_returned(struct verbena_sdr_qp *);
/* Sends a PING, if there is room. */
bool control_ping(struct verbena_sdr_qp *, uint64_t now_ns);
/* Posts the worker's i-th receive for control messages. */
int control_repost(struct sdr_worker *, uint32_t i);
/* How many blocks of so many bytes to have queued, 2 to `most`: what leaves in a quarter of a round trip, so that
 * timers start about when a block leaves, and one that is sent again does not wait long. */
uint32_t send_room(const struct verbena_sdr_qp *, uint64_t bytes, uint64_t rtt_ns, uint32_t most);
/* Sends a control message that lies behind the header's room in control_buffer(), which is NULL
 * when too many are under way. */
uint8_t *control_buffer(struct verbena_sdr_qp *);
void control_post(struct verbena_sdr_qp *, enum control_type, uint32_t number, uint16_t length, uint16_t flags);
/* The most bytes of a control message's payload. */
size_t control_room(const struct verbena_sdr_qp *);

/* The region of that key if the range lies in it and it has the flags; takes the context's lock.
 * With `hold` it counts a receive. */
struct verbena_sdr_mr *memory_find(struct verbena_sdr_context *, uint32_t lkey, const void *addr, size_t length,
				   uint32_t flags, bool hold);
void memory_release(struct verbena_sdr_mr *);
