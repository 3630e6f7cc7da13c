/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How an engine ends, when its process exits: the last ACKs are sent and files flushed, within a tenth of a second; the
 * kernel does the rest. Bytes of TCP streams leave before, however long that takes while they move. The thread is not
 * joined, because it may be in any state.
 */
#include "engine/state.h"

#include "engine/limiting.h"
#include "engine/neighbours.h"
#include "io/tcp/tcp.h"

enum {
	EXIT_TRY_NS = 100000,
	EXIT_LOOK_NS = 500000, /* at streams whose bytes leave */
	KEPT_TRIES = 2500,     /* vain ones */
	KEPT_TRY_NS = 200000
};

#define EXIT_PATIENCE_NS UINT64_C(5000000000)
#define EXIT_FIN_NS      UINT64_C(1000000000)

static bool has_moved(const struct tcp_leaving *a, const struct tcp_leaving *b)
{
	return a->bytes != b->bytes || a->half_closed != b->half_closed;
}

/*
 * Work requests are complete whose bytes are in a socket or wait for it. If the process ended now, the kernel would
 * answer the peer's next bytes with a reset, and they would be lost. So they leave first, unless nothing moves for
 * EXIT_PATIENCE_NS; and peers, which by then have all bytes, are given EXIT_FIN_NS to end their direction.
 */
static void let_bytes_leave(struct engine *e)
{
	struct tcp_leaving before = tcp_leaving(e->tcp), now = before;
	uint64_t moved_ns = env_now_ns(e->env);

	while (now.bytes || now.half_closed) {
		if (env_now_ns(e->env) - moved_ns >= (now.bytes ? EXIT_PATIENCE_NS : EXIT_FIN_NS))
			return;
		e->env->pause(e->env, EXIT_LOOK_NS);
		engine_turn(e, LOOP_ALL, env_now_ns(e->env));
		now = tcp_leaving(e->tcp);
		if (has_moved(&before, &now))
			moved_ns = env_now_ns(e->env);
		before = now;
	}
}

/*
 * UC and UD have completed what waits for room in a ring, and over a network it would arrive. A process that takes
 * nothing is not waited for.
 */
static void engine_send_kept(struct engine *e)
{
	size_t before = SIZE_MAX, waiting;

	for (int vain = 0; vain < KEPT_TRIES && neighbours_keep_waiting(&e->loop, &waiting, env_now_ns(e->env));
	     vain++) {
		if (waiting < before)
			vain = 0;
		before = waiting;
		e->env->pause(e->env, KEPT_TRY_NS);
	}
}

void engine_end(struct engine *e, int *tries)
{
	for (; *tries; (*tries)--) {
		if (lock_try(&e->lock)) {
			nic_hold_acks(e->loop.nic, false);
			nic_take_last_turns(e->loop.nic);
			if (!e->closed)
				cm_hang_up(e->loop.cm, env_now_ns(e->env));
			engine_turn(e, LOOP_ALL, env_now_ns(e->env));
			if (!e->closed && e->group)
				group_leave_nothing(e->group);
			if (!e->closed && e->tcp)
				let_bytes_leave(e);
			if (!e->closed && e->loop.shm)
				engine_send_kept(e);
			if (!e->closed)
				loop_rest(&e->loop);
			limiting_close(e);
			e->closed = true;
			engine_leave(e);
			return;
		}
		e->env->pause(e->env, EXIT_TRY_NS);
	}
}
