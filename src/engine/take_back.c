/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that the kernel still sends from when a verb gives it back to the program. Mostly the peer has it already, and
 * the kernel says so in the next turn. A peer that takes nothing is waited for as long as at the end of a connection
 * (cm/mpa.h); then the connection is reset, after which the kernel has no use for the memory, but for what a queue of
 * the host may hold (io/tcp.h).
 */
#include "engine/state.h"

#include <assert.h>
#include <unistd.h>

#include "io/tcp.h"

static_assert((int)STREAM_LENT_MAX <= (int)TCP_LENT_MAX, "a back end takes what a nic lends");

enum { LOOK_US = 100 };

#define PATIENCE_NS UINT64_C(5000000000)
#define RESET_NS    (TCP_LEAVE_NS + UINT64_C(1000000000))

/* As engine_unlock() and engine_lock(), but the thread is not cancelled meanwhile. */
static void let_others(struct engine *e)
{
	engine_leave(e);
	usleep(LOOK_US);
	lock_wait(&e->lock);
}

void engine_take_back(struct engine *e, const struct stream_lent *which)
{
	uint64_t began_ns = engine_now_ns();
	bool recalled = false;

	while (!e->closed && nic_streams_lend(e->loop.nic, which)) {
		uint64_t now_ns = engine_now_ns(), since_ns = now_ns - began_ns;

		engine_turn(e, LOOP_ALL, now_ns);
		if (!nic_streams_lend(e->loop.nic, which) || since_ns >= PATIENCE_NS + RESET_NS)
			return;
		if (!recalled && since_ns >= PATIENCE_NS) {
			cm_recall(e->loop.cm, which, now_ns);
			recalled = true;
		}
		let_others(e);
	}
}
