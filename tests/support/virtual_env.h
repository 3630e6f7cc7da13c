/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An environment in virtual time, for tests of a running engine. Of two threads, the test's and the engine's, one runs
 * at a time: the engine's gets its turn in virtual_run(), and gives it back when it waits, naps or yields. The time passes
 * in virtual_run() and by what reading the clock costs. Packets come back to the engine that sent them.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "engine/env.h"
#include "support/test.h"

enum { VIRTUAL_QUEUE = 1024, VIRTUAL_PACKET_MAX = 4352, VIRTUAL_LENT = 64 };

struct virtual_packet {
	uint64_t arrives_ns;
	struct flow flow;
	uint32_t len;
	uint8_t bytes[VIRTUAL_PACKET_MAX];
};

/* The engine's thread does one of these until its time has come. */
enum virtual_wait { VIRTUAL_RUNS, VIRTUAL_WAITS, VIRTUAL_NAPS, VIRTUAL_YIELDS };

static struct {
	struct engine_env env;
	_Atomic uint64_t now_ns;
	uint64_t reading_ns; /* what a look at the clock takes */
	uint64_t yield_ns;   /* and a yield */
	uint64_t wire_ns;    /* how long a packet travels */
	/* How often the engine's thread began to. */
	unsigned waits, naps, yields;
	unsigned programs_yields; /* and the test's thread */
	unsigned trains;          /* that were sent, though train_max says that there are none */
	uint64_t poller_ran_ns;   /* what is said of the thread that polls */
	bool poller_is_ready;

	pthread_t test;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	enum virtual_wait wait;
	uint64_t until_ns; /* of that */
	bool woken;

	struct io io;
	uint32_t head, tail; /* free-running */
	struct virtual_packet packets[VIRTUAL_QUEUE];
	uint8_t lent[VIRTUAL_LENT][VIRTUAL_PACKET_MAX];
	struct flow lent_flows[VIRTUAL_LENT];
} virtual = {
	.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .yield_ns = 1000, .wire_ns = 5000};

/* ---- time ---- */

static inline uint64_t virtual_now_ns(const struct engine_env *env)
{
	return atomic_fetch_add(&virtual.now_ns, virtual.reading_ns) + virtual.reading_ns;
}

static inline uint64_t virtual_wall_ns(const struct engine_env *env)
{
	return virtual_now_ns(env) + 1000000000000000000;
}

/* The engine's thread gives its turn away. */
static inline void virtual_sleep(enum virtual_wait wait, uint64_t until_ns)
{
	pthread_mutex_lock(&virtual.mutex);
	virtual.wait = wait;
	virtual.until_ns = until_ns;
	pthread_cond_broadcast(&virtual.changed);
	while (virtual.wait != VIRTUAL_RUNS)
		pthread_cond_wait(&virtual.changed, &virtual.mutex);
	pthread_mutex_unlock(&virtual.mutex);
}

/* The test's thread: lets the engine's have its turns until then. */
static inline void virtual_run(uint64_t until_ns)
{
	pthread_mutex_lock(&virtual.mutex);
	for (;;) {
		uint64_t due_ns;

		while (virtual.wait == VIRTUAL_RUNS)
			pthread_cond_wait(&virtual.changed, &virtual.mutex);
		due_ns = virtual.woken ? 0 : virtual.until_ns;
		if (due_ns > until_ns)
			break;
		if (due_ns > virtual.now_ns)
			virtual.now_ns = due_ns;
		else if (virtual.now_ns > until_ns)
			break; /* what reading the clock took */
		virtual.woken = false;
		virtual.wait = VIRTUAL_RUNS;
		pthread_cond_broadcast(&virtual.changed);
	}
	pthread_mutex_unlock(&virtual.mutex);
	if (virtual.now_ns < until_ns)
		virtual.now_ns = until_ns;
}

static inline void virtual_pass(uint64_t ns)
{
	virtual_run(virtual.now_ns + ns);
}

static inline void virtual_wake(struct engine_env *env)
{
	virtual.woken = true;
}

static inline void virtual_end_nap(struct engine_env *env, _Atomic uint32_t *word)
{
	assert_int_equal(virtual.wait, VIRTUAL_NAPS);
	virtual.until_ns = 0;
}

static inline void virtual_yield(struct engine_env *env)
{
	if (pthread_equal(pthread_self(), virtual.test)) {
		virtual.programs_yields++;
		virtual.now_ns += virtual.yield_ns;
		return;
	}
	virtual.yields++;
	virtual_sleep(VIRTUAL_YIELDS, virtual.now_ns + virtual.yield_ns);
}

static inline void virtual_pause(struct engine_env *env, uint64_t ns)
{
	virtual_pass(ns);
}

static inline int virtual_watch(struct engine_env *env, int fd, bool reads)
{
	return 0;
}

static inline void virtual_unwatch(struct engine_env *env, int fd)
{
}

static inline uint64_t virtual_ran_ns(struct engine_env *env, pid_t tid)
{
	return virtual.poller_ran_ns;
}

static inline bool virtual_is_ready(struct engine_env *env, pid_t tid)
{
	return virtual.poller_is_ready;
}

static inline void virtual_nap(struct engine_env *env, _Atomic uint32_t *word, uint32_t value, uint64_t until_ns)
{
	assert_int_equal(atomic_load(word), value);
	virtual.naps++;
	virtual_sleep(VIRTUAL_NAPS, until_ns);
}

static inline size_t virtual_wait_for(struct engine_env *env, uint64_t until_ns, struct env_event *events, size_t max)
{
	virtual.waits++;
	virtual_sleep(VIRTUAL_WAITS, until_ns);
	return 0;
}

static inline void virtual_close(struct engine_env *env)
{
}

/* ---- packets ---- */

static inline size_t virtual_recv(struct io *io, struct pkt *pkts, size_t max, uint64_t now_ns)
{
	size_t n = 0;

	assert_true(max <= VIRTUAL_LENT);
	for (; n < max && virtual.head != virtual.tail; n++, virtual.head++) {
		const struct virtual_packet *p = &virtual.packets[virtual.head % VIRTUAL_QUEUE];

		if (p->arrives_ns > now_ns)
			break;
		memcpy(virtual.lent[n], p->bytes, p->len);
		virtual.lent_flows[n] = p->flow;
		pkts[n] = (struct pkt){
			.data = virtual.lent[n], .flow = &virtual.lent_flows[n], .len = p->len, .train = 1};
	}
	return n;
}

static inline size_t virtual_send(struct io *io, const struct pkt *pkts, size_t n, uint64_t now_ns)
{
	for (size_t i = 0; i < n; i++) {
		struct virtual_packet *p = &virtual.packets[virtual.tail++ % VIRTUAL_QUEUE];

		assert_true(virtual.tail - virtual.head <= VIRTUAL_QUEUE && pkts[i].len <= VIRTUAL_PACKET_MAX);
		virtual.trains += pkts[i].train > 1;
		p->arrives_ns = now_ns + virtual.wire_ns;
		p->flow = *pkts[i].flow;
		p->len = pkts[i].len;
		memcpy(p->bytes, pkts[i].data, p->len);
	}
	return n;
}

static inline size_t virtual_fds(const struct io *io, int *fds, size_t max)
{
	return 0;
}

static inline uint64_t virtual_deadline_ns(const struct io *io)
{
	return virtual.head == virtual.tail ? UINT64_MAX : virtual.packets[virtual.head % VIRTUAL_QUEUE].arrives_ns;
}

static inline size_t virtual_train_max(const struct io *io)
{
	return 1;
}

static inline void virtual_nothing(struct io *io)
{
}

static const struct io_ops virtual_io_ops = {.recv = virtual_recv,
					     .send = virtual_send,
					     .fds = virtual_fds,
					     .deadline_ns = virtual_deadline_ns,
					     .train_max = virtual_train_max,
					     .flush = virtual_nothing,
					     .close = virtual_nothing};

/* One address, 127.0.0.1, of an interface of the highest MTU. */
static inline int virtual_open_port(struct engine_env *env, const struct config *config, struct io_counters *counters,
				    struct env_port *port, char *why, size_t why_bytes)
{
	static const struct nic_gid gid = {.raw = {[10] = 0xff, 0xff, 127, 0, 0, 1}, .ifindex = 1, .ip_mtu = 65535};

	virtual.io.ops = &virtual_io_ops;
	port->io = &virtual.io;
	port->gids.gids[0] = gid;
	port->gids.interfaces[0] = (struct engine_interface){.name = "virtual", .ifindex = 1, .mtu = 65535};
	port->gids.count = 1;
	port->gids.port = (struct engine_port){.active = true, .enabled = true};
	port->paths = 1;
	port->sport_ipv4[0] = 49152;
	port->rcvbuf_bytes = 1 << 22;
	return 0;
}

/* For engine_set_env(). Of one engine. */
static inline struct engine_env *virtual_env(unsigned device)
{
	virtual.test = pthread_self();
	virtual.now_ns = 1000000000;
	virtual.env = (struct engine_env){.now_ns = virtual_now_ns,
					  .wall_ns = virtual_wall_ns,
					  .wake = virtual_wake,
					  .end_nap = virtual_end_nap,
					  .yield = virtual_yield,
					  .pause = virtual_pause,
					  .watch = virtual_watch,
					  .unwatch = virtual_unwatch,
					  .ran_ns = virtual_ran_ns,
					  .is_ready = virtual_is_ready,
					  .nap = virtual_nap,
					  .wait = virtual_wait_for,
					  .open_port = virtual_open_port,
					  .close = virtual_close};
	return &virtual.env;
}
