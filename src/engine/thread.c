/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine thread: takes over when nobody polls, sleeps when there is nothing to do. See state.h. */
#include "engine/state.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/port.h"
#include "engine/processors.h"
#include "io/shm/shm.h"
#include "space/space.h"

enum {
	STACK_BYTES =
		1 << 20, /* of which hardly any is touched; what is local to threads of a sanitizer takes most of it */
	/* two longer yields in a row gave the processor to threads that need it, and then */
	YIELD_LONG_NS = 20000,
	LENT_TIMES = 6,            /* the thread spins for this many times as long while a peer reads what was sent, */
	CROWDED_TIMES = 10,        /* and not at all for this many times as long, */
	CROWDED_NS_MAX = 20000000, /* up to this */
	EVENTS_MAX = IO_FDS_MAX + 2
};

/* The thread's own state. */
struct self {
	struct engine *e;
	uint64_t serve_due_ns;
	uint64_t crowded_until_ns;
	bool yielded_long;         /* the last time */
	uint64_t polling_since_ns; /* waits for a processor included; 0: nobody polls */
	uint64_t slept_ns;         /* when it last began to sleep for a poller's sake, */
	uint64_t poller_ran_ns;    /* and for how long that thread had run by then */
	uint64_t instead_of_ns;    /* the last poll of one whose work it does, or did last */
	bool excused;              /* that one waited for a processor then */
	bool looked_again;         /* the lock was held, and nobody polled */
	bool group_asks;
	bool world_asks;         /* the port's descriptor is readable */
	uint64_t look_due_ns;    /* when to look whether it is, without that */
	int hung_up[EVENTS_MAX]; /* descriptors that are watched */
	int hung_up_count;
};

void thread_end_nap(struct engine *e)
{
	uint32_t state = atomic_load(&e->state);

	if ((state == THREAD_NAP || state == THREAD_AWAIT) &&
	    atomic_compare_exchange_strong(&e->state, &state, THREAD_RUN))
		e->env->end_nap(e->env, &e->state);
}

/* How long a nap may be, for as long as the program has polled. */
static uint64_t nap_ns(const struct self *s, uint64_t now_ns)
{
	uint64_t share_ns = s->polling_since_ns ? (now_ns - s->polling_since_ns) / NAP_SHARE : 0;

	return share_ns < NAP_NS ? NAP_NS : share_ns < NAP_NS_MAX ? share_ns : NAP_NS_MAX;
}

/* When a program last polled, as if the turns of its posts since then had taken no time; 0: it handed over. */
static uint64_t last_poll_ns(const struct engine *e)
{
	uint64_t polled_ns = atomic_load(&e->polled_ns);

	return polled_ns ? polled_ns + atomic_load_explicit(&e->post_turns_ns, memory_order_relaxed) : 0;
}

/*
 * Whether a program polled within NAP_NS, or within a part of a nap if that is more, and until when to nap then. Who
 * has polled for long and not for 50 us was interrupted, perhaps by the thread of another process that looked whether
 * its program polls: this one at work would be the next such interruption.
 */
static bool polled_lately(const struct self *s, uint64_t now_ns, uint64_t *until_ns)
{
	struct engine *e = s->e;
	uint64_t polled_ns = last_poll_ns(e), nap = nap_ns(s, now_ns);
	uint64_t gap_ns = nap / GAP_SHARE > NAP_NS ? nap / GAP_SHARE : NAP_NS;

	if (atomic_load_explicit(&e->bounced, memory_order_relaxed)) {
		atomic_store_explicit(&e->bounced, false, memory_order_relaxed);
		polled_ns = now_ns;
	}
	if (polled_ns > now_ns)
		polled_ns = now_ns;
	*until_ns = polled_ns + gap_ns;
	if (nap > NAP_NS && now_ns - polled_ns < NAP_NS)
		*until_ns = now_ns + nap;
	return polled_ns && now_ns < polled_ns + gap_ns;
}

/* In NAP or AWAIT. */
static void sleep_until_polled(struct self *s, enum thread_state state, uint64_t now_ns, uint64_t ns)
{
	struct engine *e = s->e;

	s->slept_ns = now_ns;
	s->poller_ran_ns = e->env->ran_ns(e->env, atomic_load_explicit(&e->poller, memory_order_relaxed));
	atomic_store(&e->state, state);
	/* A hand-over between our read of polled_ns and the store is seen here. */
	if (atomic_load(&e->polled_ns))
		e->env->nap(e->env, &e->state, state, now_ns + ns);
	atomic_store(&e->state, THREAD_RUN);
}

/* Whether packets may wait: only those in memory do, while sockets lose what unconnected and UC peers send meanwhile.
 */
static bool may_wait(struct engine *e, uint64_t now_ns)
{
	bool may;

	if (!e->loop.shm || !lock_try(&e->lock))
		return false;
	may = !e->closed && shm_has_all(e->loop.shm, now_ns);
	engine_leave(e);
	return may;
}

/*
 * Whether the thread that polled waits for a processor: it ran for less than three quarters of the last `for_ns`
 * nanoseconds, and is neither asleep nor stopped. False where that cannot be known.
 */
static bool poller_waits(const struct self *s, uint64_t for_ns)
{
	struct engine_env *env = s->e->env;
	pid_t poller = atomic_load_explicit(&s->e->poller, memory_order_relaxed);
	uint64_t ran_ns = env->ran_ns(env, poller);

	return ran_ns && s->poller_ran_ns && ran_ns - s->poller_ran_ns < for_ns / 4 * 3 && env->is_ready(env, poller);
}

/* Nobody has polled for NAP_NS. True: who did waits for a processor, and this thread has slept meanwhile. */
static bool await_poller(struct self *s, uint64_t now_ns)
{
	struct engine *e = s->e;
	uint64_t polled_ns = atomic_load(&e->polled_ns), waited_ns = now_ns - polled_ns, next_ns;

	/* Once this thread works instead, it goes on until somebody polls again. */
	if (!polled_ns || polled_ns == s->instead_of_ns)
		return false;
	s->excused = waited_ns < AWAIT_NS_MAX && poller_waits(s, now_ns - s->slept_ns);
	if (!s->excused || !may_wait(e, now_ns)) {
		s->instead_of_ns = polled_ns;
		return false;
	}
	next_ns = AWAIT_GROWTH * waited_ns < AWAIT_NS_MAX ? AWAIT_GROWTH * waited_ns : AWAIT_NS_MAX;
	sleep_until_polled(s, THREAD_AWAIT, now_ns, next_ns - waited_ns);
	return true;
}

/* Lock held, released here. Sleeps until something happens, or not at all if something is due. */
static void block(struct self *s, uint64_t now_ns)
{
	struct engine *e = s->e;
	struct env_event ev[EVENTS_MAX];
	uint64_t until_ns;
	size_t n;

	if (!e->closed)
		loop_rest(&e->loop);
	until_ns = loop_deadline_ns(&e->loop);
	if (until_ns <= now_ns) {
		engine_leave(e);
		return;
	}
	if (now_ns - e->loop.stirred_ns < HEARTBEAT_FOR_NS && until_ns > now_ns + HEARTBEAT_NS)
		until_ns = now_ns + HEARTBEAT_NS;
	e->sleep_until_ns = until_ns;
	atomic_store(&e->state, THREAD_BLOCKED);
	engine_leave(e);

	n = e->env->wait(e->env, until_ns, ev, EVENTS_MAX);
	atomic_store(&e->state, THREAD_RUN);
	s->hung_up_count = 0; /* who was not told of yet is told again */
	for (size_t i = 0; i < n; i++) {
		if (e->group && ev[i].fd == group_fd(e->group))
			s->group_asks = true;
		s->world_asks |= ev[i].fd == port_fd(e);
		if (ev[i].hung_up)
			s->hung_up[s->hung_up_count++] = ev[i].fd;
	}
}

/*
 * How long after traffic the thread spins. A peer of this host that reads a MiB of ours asks for more 0.1 ms later: a
 * thread that slept by then would cost it a system call.
 */
static uint64_t spin_ns(const struct engine *e)
{
	uint64_t ns = (uint64_t)e->config.spin_us * 1000;

	return nic_lends(e->loop.nic) ? LENT_TIMES * ns : ns;
}

/* Gives others the processor, and notices when they keep it: spinning then only delays this thread. */
static void yield(struct self *s, uint64_t before_ns)
{
	uint64_t now_ns, took_ns;

	s->e->env->yield(s->e->env);
	now_ns = env_now_ns(s->e->env);
	took_ns = now_ns - before_ns;
	if (took_ns > CROWDED_NS_MAX / CROWDED_TIMES)
		took_ns = CROWDED_NS_MAX / CROWDED_TIMES;
	/* A single one was to a thread that soon slept again, as a peer's that naps. */
	if (took_ns > YIELD_LONG_NS && s->yielded_long)
		s->crowded_until_ns = now_ns + CROWDED_TIMES * took_ns;
	s->yielded_long = took_ns > YIELD_LONG_NS;
}

static void serve_again_later(struct self *s, uint64_t now_ns)
{
	s->serve_due_ns = now_ns + SERVE_NS;
	s->group_asks = false;
}

/* A poller does the work. False: there has been none for a while, and the lock is held. */
static bool stand_back(struct self *s, uint64_t now_ns, uint64_t until_ns)
{
	struct engine *e = s->e;
	uint64_t quiet_ns = now_ns - atomic_load_explicit(&e->moved_ns, memory_order_relaxed);
	bool serve = now_ns >= s->serve_due_ns || s->group_asks;

	s->looked_again = false;
	if (s->instead_of_ns && (!s->excused || now_ns - s->instead_of_ns > AWAIT_NS_MAX))
		s->polling_since_ns = 0;
	s->instead_of_ns = 0;
	if (!s->polling_since_ns)
		s->polling_since_ns = now_ns;
	/* moved_ns may be younger than now_ns: then the difference is huge, and negative. */
	if ((int64_t)quiet_ns > POLLED_QUIET_NS || serve) {
		if (serve)
			serve_again_later(s, now_ns);
		if (lock_try(&e->lock)) {
			if (serve)
				engine_serve_group(e, now_ns);
			if ((int64_t)quiet_ns > POLLED_QUIET_NS && !engine_turn(e, LOOP_OUTPUT, now_ns))
				return false;
			engine_leave(e);
		} else if (serve) {
			/*
			 * The poller may have the lock whenever we try. A wait for it would sleep, be woken at the end
			 * of each of the poller's turns, and come after the next one has begun.
			 */
			atomic_store_explicit(&e->serve_wanted, true, memory_order_relaxed);
		}
	}
	sleep_until_polled(s, THREAD_NAP, now_ns, until_ns - now_ns);
	return true;
}

/*
 * A fault whose signal is blocked kills the process, even if there is a handler. This does not go through
 * libc, where the preloaded library stands before the program's calls for these two signals.
 */
static void let_faults_through(void)
{
	const uint64_t faults = 1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1);

	syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &faults, NULL, sizeof(faults));
}

/* A thread that is not in epoll asks the kernel now and then, with one system call, whether the port has changed. */
static void watch_world(struct self *s, uint64_t now_ns)
{
	if (!s->world_asks && now_ns < s->look_due_ns)
		return;
	s->world_asks = false;
	s->look_due_ns = now_ns + SERVE_NS;
	port_look(s->e);
}

static void *thread_main(void *arg)
{
	struct self s = {.e = arg};
	struct engine *e = arg;
	struct env_event first[1];

	prctl(PR_SET_NAME, "verbena");
	processors_take();
	let_faults_through();
	prctl(PR_SET_TIMERSLACK, 1);
	e->env->wait(e->env, env_now_ns(e->env), first, 1);
	for (;;) {
		uint64_t now_ns = env_now_ns(e->env), until_ns;
		bool moved;

		watch_world(&s, now_ns);
		if (polled_lately(&s, now_ns, &until_ns)) {
			if (!stand_back(&s, now_ns, until_ns))
				block(&s, now_ns);
			continue;
		}
		if (await_poller(&s, now_ns))
			continue;
		/*
		 * Another thread may be in a turn that takes longer than a nap: check again before
		 * waiting.
		 */
		if (!lock_try(&e->lock)) {
			if (!s.looked_again) {
				s.looked_again = true;
				sleep_until_polled(&s, THREAD_NAP, now_ns, NAP_NS);
				continue;
			}
			lock_wait(&e->lock);
		}
		s.looked_again = false;
		if (!atomic_load_explicit(&e->polled_ns, memory_order_relaxed))
			s.polling_since_ns = 0;
		if (e->closed) {
			engine_leave(e);
			return NULL;
		}
		nic_hold_acks(e->loop.nic, false);
		while (s.hung_up_count > 0) {
			int fd = s.hung_up[--s.hung_up_count];

			if (e->loop.cm_sink)
				e->loop.cm_sink->hung_up(fd);
		}
		moved = engine_turn(e, LOOP_ALL, now_ns);
		if (s.group_asks || now_ns >= s.serve_due_ns ||
		    atomic_load_explicit(&e->serve_wanted, memory_order_relaxed)) {
			engine_serve_group(e, now_ns);
			serve_again_later(&s, now_ns);
		}
		if (moved) {
			engine_leave(e);
		} else if (now_ns - atomic_load_explicit(&e->moved_ns, memory_order_relaxed) < spin_ns(e) &&
			   now_ns >= s.crowded_until_ns) {
			engine_leave(e);
			yield(&s, now_ns);
		} else {
			block(&s, now_ns);
		}
	}
}

/* Detached: it runs as long as the process does. */
static int thread_create(struct engine *e)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t bytes = page + (STACK_BYTES < PTHREAD_STACK_MIN ? PTHREAD_STACK_MIN : STACK_BYTES);
	uint8_t *stack = space_get(bytes);
	pthread_attr_t attr;
	int err;

	if (!stack)
		return -ENOMEM;
	pthread_attr_init(&attr);
	pthread_attr_setstack(&attr, stack + page, bytes - page);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = pthread_create(&e->thread, &attr, thread_main, e);
	pthread_attr_destroy(&attr);
	if (err)
		space_put(stack, bytes);
	else
		mprotect(stack, page, PROT_NONE); /* its guard */
	return -err;
}

int thread_start(struct engine *e)
{
	int fds[EVENTS_MAX];
	size_t n = io_fds(e->loop.io, fds, IO_FDS_MAX);
	sigset_t all, old;
	int rc = 0;

	fds[n++] = port_fd(e);
	fds[n++] = e->group ? group_fd(e->group) : -1;
	for (size_t i = 0; i < n && !rc; i++)
		rc = fds[i] < 0 ? 0 : e->env->watch(e->env, fds[i], true);
	if (rc)
		return rc;

	/* The program's own threads take its signals. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = thread_create(e);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc;
}
