/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine's thread: does what the rules of waiting.h say, and reports what it saw. */
#include "engine/state.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/freezing.h"
#include "engine/port.h"
#include "engine/processors.h"
#include "io/shm/shm.h"
#include "space/space.h"

enum {
	STACK_BYTES =
		1 << 20, /* of which hardly any is touched; what is local to threads of a sanitizer takes most of it */
	EVENTS_MAX = IO_FDS_MAX + 2
};

/* The thread's own state. */
struct self {
	struct engine *e;
	struct waiting waiting;
	struct waiting_seen seen;
	uint64_t poller_ran_ns;  /* for how long the thread that polls had run when this one last began a nap */
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

/* ---- sights ---- */

static uint64_t moved_ns(const struct engine *e)
{
	return atomic_load_explicit(&e->moved_ns, memory_order_relaxed);
}

static enum waiting_sight look(struct self *s)
{
	struct waiting_seen *seen = &s->seen;
	struct engine *e = s->e;

	seen->now_ns = env_now_ns(e->env);
	if (waiting_port_is_due(&s->waiting, seen->now_ns) ||
	    atomic_load_explicit(&e->port_deeds.count, memory_order_relaxed) ||
	    atomic_load_explicit(&e->renamed, memory_order_relaxed))
		port_look(e);
	if (atomic_load_explicit(&e->freeze_asked, memory_order_acquire)) {
		freezing_obey(e);
		seen->now_ns = env_now_ns(e->env);
	}
	seen->polled_ns = atomic_load(&e->polls.polled_ns);
	seen->post_turns_ns = atomic_load_explicit(&e->polls.post_turns_ns, memory_order_relaxed);
	seen->bounced = atomic_load_explicit(&e->polls.bounced, memory_order_relaxed);
	if (seen->bounced)
		atomic_store_explicit(&e->polls.bounced, false, memory_order_relaxed);
	seen->serve_wanted = atomic_load_explicit(&e->serve_wanted, memory_order_relaxed);
	seen->moved_ns = moved_ns(e);
	return SEEN_TRACES;
}

static pid_t poller(const struct engine *e)
{
	return atomic_load_explicit(&e->polls.poller, memory_order_relaxed);
}

static enum waiting_sight measure(struct self *s)
{
	uint64_t ran_ns = s->e->env->ran_ns(s->e->env, poller(s->e));

	s->seen.ran_ns = ran_ns && s->poller_ran_ns ? ran_ns - s->poller_ran_ns : UINT64_MAX;
	return SEEN_RAN;
}

/* Whether packets may wait: only those in memory do, while sockets lose what unconnected and UC peers send meanwhile.
 */
static bool may_wait(struct self *s)
{
	struct engine *e = s->e;
	bool may;

	if (!e->loop.shm || !lock_try(&e->lock))
		return false;
	may = !e->closed && shm_has_all(e->loop.shm, s->seen.now_ns);
	engine_leave(e);
	return may;
}

static enum waiting_sight question(struct self *s)
{
	s->seen.wants = s->e->env->is_ready(s->e->env, poller(s->e));
	s->seen.may_wait = s->seen.wants && may_wait(s);
	return SEEN_WANTS;
}

/* ---- work ---- */

static enum waiting_sight serve(struct self *s, const struct waiting_step *step)
{
	struct engine *e = s->e;

	s->seen.moved = false;
	s->seen.locked = lock_try(&e->lock);
	if (s->seen.locked) {
		if (step->serve)
			engine_serve_group(e, s->seen.now_ns);
		if (step->output)
			s->seen.moved = engine_turn(e, LOOP_OUTPUT, s->seen.now_ns);
	} else if (step->serve) {
		/*
		 * The poller may have the lock whenever we try. A wait for it would sleep, be woken at the end
		 * of each of the poller's turns, and come after the next one has begun.
		 */
		atomic_store_explicit(&e->serve_wanted, true, memory_order_relaxed);
	}
	return SEEN_SERVED;
}

static void tell_hung_up(struct self *s)
{
	while (s->hung_up_count > 0) {
		int fd = s->hung_up[--s->hung_up_count];

		if (s->e->loop.cm_sink)
			s->e->loop.cm_sink->hung_up(fd);
	}
}

/* Lock held. */
static enum waiting_sight turn(struct self *s, const struct waiting_step *step)
{
	struct engine *e = s->e;

	s->seen.locked = true;
	if (e->closed)
		return SEEN_TURN;
	nic_hold_acks(e->loop.nic, false);
	tell_hung_up(s);
	s->seen.moved = engine_turn(e, LOOP_ALL, s->seen.now_ns);
	if (step->serve)
		engine_serve_group(e, s->seen.now_ns);
	s->seen.lends = nic_lends(e->loop.nic);
	s->seen.moved_ns = moved_ns(e);
	return SEEN_TURN;
}

static enum waiting_sight yield(struct self *s)
{
	s->e->env->yield(s->e->env);
	s->seen.now_ns = env_now_ns(s->e->env);
	return SEEN_YIELD;
}

/* ---- sleep ---- */

static enum waiting_sight rest(struct self *s)
{
	if (!s->e->closed)
		loop_rest(&s->e->loop);
	s->seen.deadline_ns = loop_deadline_ns(&s->e->loop);
	s->seen.stirred_ns = s->e->loop.stirred_ns;
	return SEEN_DEADLINE;
}

static enum waiting_sight nap(struct self *s, enum thread_state state, uint64_t until_ns)
{
	struct engine *e = s->e;

	s->poller_ran_ns = e->env->ran_ns(e->env, poller(e));
	atomic_store(&e->state, state);
	/* A hand-over between our look and the store is seen here. */
	if (atomic_load(&e->polls.polled_ns))
		e->env->nap(e->env, &e->state, state, env_clock_ns(e->env, until_ns));
	atomic_store(&e->state, THREAD_RUN);
	s->seen.group_asks = s->seen.port_asks = false;
	return SEEN_WAKING;
}

static void note_events(struct self *s, const struct env_event *events, size_t n)
{
	struct engine *e = s->e;

	s->hung_up_count = 0; /* whoever was not told of yet is reported again */
	s->seen.group_asks = s->seen.port_asks = false;
	for (size_t i = 0; i < n; i++) {
		s->seen.group_asks |= e->group && events[i].fd == group_fd(e->group);
		s->seen.port_asks |= events[i].fd == port_fd(e);
		if (events[i].hung_up)
			s->hung_up[s->hung_up_count++] = events[i].fd;
	}
}

/* Lock held, released here. */
static enum waiting_sight block(struct self *s, uint64_t until_ns)
{
	struct env_event events[EVENTS_MAX];
	struct engine *e = s->e;

	e->sleep_until_ns = until_ns;
	atomic_store(&e->state, THREAD_BLOCKED);
	s->seen.locked = false;
	engine_leave(e);
	note_events(s, events, e->env->wait(e->env, env_clock_ns(e->env, until_ns), events, EVENTS_MAX));
	atomic_store(&e->state, THREAD_RUN);
	return SEEN_WAKING;
}

/* ---- the thread ---- */

static bool keeps_lock(enum waiting_act act)
{
	return act == WAITING_REST || act == WAITING_BLOCK;
}

static enum waiting_sight take_step(struct self *s, const struct waiting_step *step)
{
	struct engine *e = s->e;

	if (s->seen.locked && !keeps_lock(step->act)) {
		s->seen.locked = false;
		engine_leave(e);
	}
	switch (step->act) {
	case WAITING_LOOK: return look(s);
	case WAITING_SERVE: return serve(s, step);
	case WAITING_MEASURE: return measure(s);
	case WAITING_QUESTION: return question(s);
	case WAITING_TRY: return lock_try(&e->lock) ? turn(s, step) : SEEN_HELD;
	case WAITING_TURN: lock_wait(&e->lock); return turn(s, step);
	case WAITING_YIELD: return yield(s);
	case WAITING_REST: return rest(s);
	case WAITING_NAP: return nap(s, THREAD_NAP, step->until_ns);
	case WAITING_AWAIT: return nap(s, THREAD_AWAIT, step->until_ns);
	case WAITING_BLOCK: return block(s, step->until_ns);
	}
	return SEEN_WAKING;
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

static void *thread_main(void *arg)
{
	struct self s = {.e = arg};
	struct engine *e = arg;
	struct env_event none[1];
	struct waiting_step step = {.act = WAITING_LOOK};

	prctl(PR_SET_NAME, "verbena");
	processors_take();
	let_faults_through();
	prctl(PR_SET_TIMERSLACK, 1);
	e->env->wait(e->env, env_now_ns(e->env), none, 1);
	s.waiting.spin_ns = (uint64_t)e->config.spin_us * 1000;
	for (;;) {
		s.seen.what = take_step(&s, &step);
		if (s.seen.what == SEEN_TURN && e->closed) {
			engine_leave(e);
			return NULL;
		}
		step = waiting_next(&s.waiting, &s.seen);
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
