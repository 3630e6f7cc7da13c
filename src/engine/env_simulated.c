/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who runs when:
 *
 *   - The engine's thread is in wait() whenever it has nothing to do, and only there it gives the turn away. Before, it
 *     lets polls look once more (`looks` grows), and waits until all threads are asleep (asleep.h).
 *   - A poll that finds nothing sleeps in idle() until `looks` grows. It may sleep only if it has looked since that
 *     happened last, so no completion is missed.
 *   - pause() sleeps likewise, until its time is there; wait() lasts no longer than that.
 *   - A thread that the world has woken while the simulator has the turn (a pipe, a signal) is out of turn. It asks for
 *     the turn when it does something that the simulator must know.
 *
 * The descriptors that are watched are those of env_host.c, whose environment this one begins with.
 */
#include "engine/env_simulated.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/prng.h"
#include "engine/asleep.h"
#include "io/fd_away.h"
#include "lockstep/baton.h"
#include "lockstep/lockstep.h"
#include "space/space.h"

enum {
	INBOX = 4096, /* packets that arrive in one turn: more than a link brings in the time between two */
	LENT = 64,
	PAUSES_MAX = 1024, /* as many as preload.c has threads */
	SPORT_FIRST = 49152,
	RCVBUF_BYTES = 4 << 20,
	IP_MTU = 9000,
	SETTLE_NS_MIN = 10000, /* between two looks at threads that run */
	SETTLE_NS_MAX = 300000,
	LOOK_NS = 80000 /* between two looks by which a thread that runs is asked what it does */
};

struct simulated {
	struct env_host host; /* first */
	size_t (*host_wait)(struct engine_env *, uint64_t until_ns, struct env_event *, size_t max);
	void (*host_close)(struct engine_env *);
	const struct lockstep_page *page;
	struct baton *baton; /* NULL: threads run as the kernel lets them */
	int fd;
	struct asleep asleep;
	struct prng prng;
	_Atomic bool woken;
	_Atomic bool away;                            /* the simulator has the turn */
	_Atomic uint32_t sending;                     /* threads that are in send() of the io */
	_Atomic uint32_t looks;                       /* a futex: polls may find something since it grew */
	_Atomic uint64_t pauses_until_ns[PAUSES_MAX]; /* 0: free */

	struct io io;
	struct io_counters *counters;
	uint32_t head, tail; /* free-running; under the engine's lock, or the engine's thread has the turn */
	struct lockstep_message inbox[INBOX];
	struct flow lent_flows[LENT];
	uint8_t lent[LENT][LOCKSTEP_BYTES_MAX];
};

static bool joined; /* in children of fork too: one process of a host has its device */

static struct simulated *of(const struct engine_env *env)
{
	return (struct simulated *)env;
}

static struct simulated *of_io(const struct io *io)
{
	return (struct simulated *)((uint8_t *)io - offsetof(struct simulated, io));
}

/* ---- time ---- */

static uint64_t now_ns(const struct engine_env *env)
{
	return atomic_load_explicit(&of(env)->page->now_ns, memory_order_acquire);
}

static uint64_t wall_ns(const struct engine_env *env)
{
	return now_ns(env) + LOCKSTEP_WALL_NS;
}

/* The world of this process is gone. */
static _Noreturn void end_with_simulator(void)
{
	_exit(125);
}

static void tell(struct simulated *s, enum lockstep_kind kind, uint64_t value)
{
	struct lockstep_head head = {.kind = kind, .value = value};

	if (lockstep_send(s->fd, &head, NULL))
		end_with_simulator();
}

/* Something happens here although the turn was given away. */
static void ask_for_turn(struct simulated *s)
{
	if (atomic_exchange(&s->away, false))
		tell(s, LOCKSTEP_BACK, 0);
}

static void wake(struct engine_env *env)
{
	struct simulated *s = of(env);
	int saved = errno;

	atomic_store(&s->woken, true);
	ask_for_turn(s);
	errno = saved;
}

static void let_look(struct simulated *s)
{
	atomic_fetch_add(&s->looks, 1);
	syscall(SYS_futex, &s->looks, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, NULL, 0);
}

static void wait_for_look(struct simulated *s, uint32_t seen)
{
	int saved = errno;

	syscall(SYS_futex, &s->looks, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
	errno = saved;
}

static void take_baton(const struct simulated *s)
{
	if (s->baton)
		s->baton->take();
}

static void catch_up(struct engine_env *env)
{
	if (of(env)->baton)
		of(env)->baton->catch_up();
}

static void idle(struct engine_env *env)
{
	static _Thread_local uint32_t seen;
	struct simulated *s = of(env);
	uint32_t looks = atomic_load(&s->looks);

	catch_up(env);
	if (looks == seen) {
		wait_for_look(s, seen);
		take_baton(s);
	}
	seen = atomic_load(&s->looks);
}

static void yield(struct engine_env *env)
{
	sched_yield();
}

/* Where it is noted; NULL: there is no room until another one ends. */
static _Atomic uint64_t *note_pause(struct simulated *s, uint64_t until_ns)
{
	for (unsigned i = 0; i < PAUSES_MAX; i++) {
		uint64_t none = 0;

		if (atomic_compare_exchange_strong(&s->pauses_until_ns[i], &none, until_ns))
			return &s->pauses_until_ns[i];
	}
	return NULL;
}

static void pause_for(struct engine_env *env, uint64_t ns)
{
	struct simulated *s = of(env);
	uint64_t until_ns = now_ns(env) + ns;
	_Atomic uint64_t *noted = NULL;

	for (;;) {
		uint32_t seen = atomic_load(&s->looks);

		if (now_ns(env) >= until_ns || s->fd < 0)
			break;
		if (!noted)
			noted = note_pause(s, until_ns);
		wait_for_look(s, seen);
	}
	if (noted)
		atomic_store(noted, 0);
	take_baton(s);
}

/* Of pauses, and of what the program waits for with a limit. */
static uint64_t first_limit_ns(const struct simulated *s)
{
	uint64_t first_ns = s->baton ? s->baton->next_ns() : UINT64_MAX;

	for (unsigned i = 0; i < PAUSES_MAX; i++) {
		uint64_t until_ns = atomic_load(&s->pauses_until_ns[i]);

		if (until_ns && until_ns < first_ns)
			first_ns = until_ns;
	}
	return first_ns;
}

/* Naps are for programs that poll, and under this environment polls wait: the lock is held for a moment. */
static void nap(struct engine_env *env, _Atomic uint32_t *word, uint32_t value, uint64_t until_ns)
{
	sched_yield();
}

/* ---- turns ---- */

static void sleep_in_world(uint64_t ns)
{
	struct timespec t = {0, (long)ns};

	syscall(SYS_nanosleep, &t, NULL);
}

/* Until all threads are asleep. */
static void wait_for_sleep(struct simulated *s)
{
	uint64_t ns = SETTLE_NS_MIN;

	while (!asleep_all(&s->asleep) || atomic_load(&s->sending)) {
		if (s->baton && s->asleep.runner && ns >= LOOK_NS)
			s->baton->look_at(s->asleep.runner);
		sleep_in_world(ns);
		ns = ns * 2 < SETTLE_NS_MAX ? ns * 2 : SETTLE_NS_MAX;
	}
}

/* Until there is nothing to do for any of them. */
static void settle(struct simulated *s)
{
	do
		wait_for_sleep(s);
	while (s->baton && s->baton->pass());
}

/* What finds no room is lost, as in a receive queue that is full. */
static void keep(struct simulated *s, const struct lockstep_message *m)
{
	if (s->tail - s->head == INBOX) {
		s->counters->rx_overflow++;
		return;
	}
	if (s->tail == s->head)
		s->tail = s->head = 0; /* so that few pages of it are ever touched */
	s->inbox[s->tail++ % INBOX] = *m;
}

static void give_turn(struct simulated *s, uint64_t until_ns)
{
	struct lockstep_message m;

	tell(s, LOCKSTEP_WAIT, until_ns);
	atomic_store(&s->away, true);
	if (atomic_load(&s->woken))
		ask_for_turn(s);
	for (;;) {
		if (lockstep_receive(s->fd, &m, true) != 1)
			end_with_simulator();
		if (m.head.kind == LOCKSTEP_RUN)
			break;
		if (m.head.kind == LOCKSTEP_PACKET)
			keep(s, &m);
	}
	atomic_store(&s->away, false);
}

static size_t wait_for(struct engine_env *env, uint64_t until_ns, struct env_event *events, size_t max)
{
	struct simulated *s = of(env);
	uint64_t first_ns;
	size_t n;

	if (s->baton)
		s->baton->expire(now_ns(env));
	let_look(s);
	settle(s);
	n = s->host_wait(env, 0, events, max);
	if (n || atomic_exchange(&s->woken, false))
		return n;
	first_ns = first_limit_ns(s);
	give_turn(s, first_ns < until_ns ? first_ns : until_ns);
	return 0;
}

/* ---- packets ---- */

static size_t receive(struct io *io, struct pkt *pkts, size_t max, uint64_t at_ns)
{
	struct simulated *s = of_io(io);
	size_t n = 0;

	for (; n < max && n < LENT && s->head != s->tail; n++, s->head++) {
		const struct lockstep_message *m = &s->inbox[s->head % INBOX];

		memcpy(s->lent[n], m->bytes, m->head.bytes);
		s->lent_flows[n] = m->head.flow;
		pkts[n] = (struct pkt){.data = s->lent[n],
				       .flow = &s->lent_flows[n],
				       .len = m->head.bytes,
				       .ip_id = m->head.ip_id,
				       .train = 1};
		s->counters->rx_packets++;
		s->counters->rx_bytes += m->head.bytes;
	}
	return n;
}

static size_t send_all(struct io *io, const struct pkt *pkts, size_t n, uint64_t at_ns)
{
	struct simulated *s = of_io(io);

	if (s->fd < 0)
		return n;
	atomic_fetch_add(&s->sending, 1);
	for (size_t i = 0; i < n; i++) {
		struct lockstep_head head = {
			.kind = LOCKSTEP_PACKET, .bytes = pkts[i].len, .flow = *pkts[i].flow, .ip_id = pkts[i].ip_id};

		if (pkts[i].len > LOCKSTEP_BYTES_MAX) {
			s->counters->tx_drops++;
			continue;
		}
		if (lockstep_send(s->fd, &head, pkts[i].data))
			end_with_simulator();
		s->counters->tx_packets++;
		s->counters->tx_bytes += pkts[i].len;
	}
	ask_for_turn(s);
	atomic_fetch_sub(&s->sending, 1);
	return n;
}

static size_t no_fds(const struct io *io, int *fds, size_t max)
{
	return 0;
}

static uint64_t no_deadline_ns(const struct io *io)
{
	return UINT64_MAX;
}

static size_t no_trains(const struct io *io)
{
	return 1;
}

static void nothing(struct io *io)
{
}

static const struct io_ops simulated_io = {.recv = receive,
					   .send = send_all,
					   .fds = no_fds,
					   .deadline_ns = no_deadline_ns,
					   .train_max = no_trains,
					   .flush = nothing,
					   .close = nothing};

static int open_port(struct engine_env *env, const struct config *c, struct io_counters *counters,
		     struct env_port *port, char *why, size_t why_bytes)
{
	struct simulated *s = of(env);
	struct gid_choice choice = gids_choice(c, 0);
	int rc;

	if (c->transport.protocol == PROTOCOL_ROCEV1) {
		snprintf(why, why_bytes, "VERBENA_PROTOCOL=rocev1: in simulated time allowed are auto, veroce, rocev2");
		return -EOPNOTSUPP;
	}
	rc = gids_load(&port->gids, &choice, why, why_bytes);
	if (rc)
		return rc;
	/* The addresses are loopback's, and the links are not. */
	port->gids.loopback_mtu = 0;
	for (uint32_t i = 0; i < port->gids.count; i++)
		port->gids.gids[i].ip_mtu = IP_MTU;
	s->counters = counters;
	s->io.ops = &simulated_io;
	port->io = &s->io;
	port->slot = 1; /* so that no QPN is 0 or 1 */
	port->paths = c->transport.protocol == PROTOCOL_ROCEV2 ? 1 : c->transport.paths;
	for (unsigned i = 0; i < UDP_PATHS_MAX; i++)
		port->sport_ipv4[i] = port->sport_ipv6[i] = (uint16_t)(SPORT_FIRST + i);
	port->rcvbuf_bytes = RCVBUF_BYTES;
	return 0;
}

/* ---- life ---- */

static bool draw(struct engine_env *env, void *to, size_t bytes)
{
	uint8_t *at = to;

	for (size_t i = 0; i < bytes; i++)
		at[i] = (uint8_t)prng_below(&of(env)->prng, 256);
	return true;
}

/* The page stays, for the clock. In a child of fork the simulator's end is the parent's. */
static void close_simulated(struct engine_env *env)
{
	struct simulated *s = of(env);

	if (s->baton)
		s->baton->end();
	s->host_close(env);
	asleep_close(&s->asleep);
	close(s->fd);
	s->fd = -1;
}

bool env_is_simulated(void)
{
	return getenv(LOCKSTEP_VARIABLE) != NULL;
}

static const struct lockstep_page *map_page(int fd)
{
	struct lockstep_page *p = space_map(fd, sizeof(*p));

	if (!p || p->magic == LOCKSTEP_MAGIC)
		return p;
	space_unmap(p, sizeof(*p));
	return NULL;
}

static void baton_wants(void *simulated)
{
	ask_for_turn(simulated);
}

static void baton_idle(void *simulated)
{
	idle(simulated);
}

/* Without the preloaded library, programs of one thread are as well off. */
static void find_baton(struct simulated *s)
{
	s->baton = dlsym(RTLD_DEFAULT, BATON_SYMBOL);
	if (!s->baton)
		return;
	s->baton->wants = baton_wants;
	s->baton->idle = baton_idle;
	s->baton->ctx = s;
	s->baton->begin();
}

/* Descriptors that this process was not given, or not any more, are not touched. */
static int join(struct simulated *s, unsigned device, char *why, size_t why_bytes)
{
	struct lockstep_message m;
	int fd, page_fd;

	if (device) {
		snprintf(why, why_bytes, "a program in simulated time has one device, and not a device number %u",
			 device);
		return -EOPNOTSUPP;
	}
	if (joined || !lockstep_parse(getenv(LOCKSTEP_VARIABLE), &fd, &page_fd) || !(s->page = map_page(page_fd))) {
		snprintf(why, why_bytes,
			 "the simulated host's device is another process's: one process of a host may have it");
		return -EBUSY;
	}
	joined = true;
	close(page_fd);
	s->fd = fd_away(fd);
	tell(s, LOCKSTEP_JOIN, (uint64_t)getpid());
	if (lockstep_receive(s->fd, &m, true) != 1 || m.head.kind != LOCKSTEP_WELCOME)
		end_with_simulator();
	prng_init(&s->prng, m.head.value);
	return 0;
}

static void fill_in(struct simulated *s)
{
	struct engine_env *env = &s->host.env;

	s->host_wait = env->wait;
	s->host_close = env->close;
	env->now_ns = now_ns;
	env->wall_ns = wall_ns;
	env->wake = wake;
	env->yield = yield;
	env->pause = pause_for;
	env->nap = nap;
	env->wait = wait_for;
	env->idle = idle;
	env->catch_up = catch_up;
	env->draw = draw;
	env->open_port = open_port;
	env->close = close_simulated;
}

int env_simulated_open(struct engine_env **env, unsigned device, char *why, size_t why_bytes)
{
	struct simulated *s = space_get(sizeof(*s));
	int rc = -ENOMEM;

	if (!s) {
		snprintf(why, why_bytes, "out of memory");
		return rc;
	}
	rc = join(s, device, why, why_bytes);
	if (!rc) {
		rc = env_host_open(&s->host);
		if (!rc)
			rc = asleep_open(&s->asleep);
		if (rc)
			snprintf(why, why_bytes, "cannot make descriptors to wait for: %s", strerror(-rc));
	}
	if (rc) {
		space_put(s, sizeof(*s));
		return rc;
	}
	fill_in(s);
	find_baton(s);
	*env = &s->host.env;
	return 0;
}
