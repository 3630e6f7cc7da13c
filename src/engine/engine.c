/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine as programs' threads call it: polls, posts and the control path. waiting.h has the
 * protocol between them and the engine thread.
 */
#include "engine/state.h"

#include <errno.h>

#include "engine/faulting.h"
#include "engine/freezing.h"
#include "engine/limiting.h"
#include "engine/qps_page.h"
#include "engine/registrar.h"
#include "io/fd_away.h"
#include "io/tcp/tcp.h"
#include "io/uncancelled.h"

/* Longer between two turns, and the sockets are looked at. */
#define GAP_NS UINT64_C(20000000)

uint64_t engine_now_ns(const struct engine *e)
{
	return env_now_ns(e->env);
}

uint64_t engine_wall_at_0_ns(const struct engine *e)
{
	return e->wall_at_0_ns;
}

struct nic *engine_nic(struct engine *e)
{
	return e->loop.nic;
}

unsigned engine_device(const struct engine *e)
{
	return e->device;
}

bool engine_is_rocev1(const struct engine *e)
{
	return e->config.transport.protocol == PROTOCOL_ROCEV1;
}

struct cm *engine_cm(struct engine *e)
{
	return e->loop.cm;
}

void engine_set_cm_sink(struct engine *e, const struct engine_cm_sink *sink)
{
	e->loop.cm_sink = sink;
	registrar_join(&e->loop, env_now_ns(e->env));
}

int engine_fd_away(int fd)
{
	return fd_away(fd);
}

int engine_fd_first(void)
{
	return fd_away_first();
}

uint16_t engine_udp_port(const struct engine *e)
{
	return e->config.transport.rocev2.port;
}

uint64_t engine_refused_rocev2(const struct engine *e)
{
	const struct nic_counters *n = nic_counters(e->loop.nic);

	return n->veroce_unanswered + n->rx_rocev2_refused;
}

long engine_pid_of(const struct engine *e, int slot)
{
	return slot < 0 || !e->group ? 0 : (long)group_pid(e->group, (unsigned)slot);
}

int engine_watch(struct engine *e, int fd)
{
	return e->env->watch(e->env, fd, false);
}

void engine_note_paths(struct engine *e)
{
	e->paths = udp_paths(e->udp);
	for (unsigned i = 0; i < e->paths; i++) {
		e->sport_ipv4[i] = udp_source_port(e->udp, UDP_V4, i);
		e->sport_ipv6[i] = udp_source_port(e->udp, UDP_V6, i);
	}
}

void engine_note_gids(struct engine *e)
{
	struct io_gid gids[IO_GIDS_MAX];

	for (uint32_t i = 0; i < e->gids.count; i++) {
		memcpy(gids[i].gid, e->gids.gids[i].raw, sizeof(gids[i].gid));
		gids[i].ifindex = e->gids.gids[i].ifindex;
	}
	if (e->udp)
		udp_set_gids(e->udp, gids, e->gids.count);
	if (e->tcp && e->config.devices.has_rails)
		tcp_set_gids(e->tcp, gids, e->gids.count);
}

void engine_add_paths(struct engine *e)
{
	uint32_t wanted = e->config.transport.protocol == PROTOCOL_ROCEV2 ? 1 : e->config.transport.paths;

	if (e->closed || !e->udp || e->paths >= wanted || udp_add_paths(e->udp, wanted) == e->paths)
		return;
	engine_note_paths(e);
	nic_set_paths(e->loop.nic, e->paths, e->sport_ipv4, e->sport_ipv6);
}

/* At every address that the device has, of those that the wildcard stands for. */
static int bind_at_chosen(struct engine *e, uint32_t number, const struct flow *wildcard, bool alone)
{
	static const uint8_t ipv4[12] = {[10] = 0xff, [11] = 0xff};
	bool both = memcmp(wildcard->src, ipv4, sizeof(ipv4)) != 0;
	struct flow at = *wildcard;
	int err = -EADDRNOTAVAIL;

	for (uint32_t i = 0; engine_chosen_address(e, i, at.src, &at.ifindex); i++) {
		if (!both && memcmp(at.src, ipv4, sizeof(ipv4)) != 0)
			continue;
		err = tcp_bind(e->tcp, number, &at, alone);
		if (err) {
			tcp_unlisten(e->tcp, number);
			return err;
		}
	}
	return err;
}

int engine_bind(struct engine *e, uint32_t number, const struct flow *at, bool alone)
{
	static const uint8_t ipv4[16] = {[10] = 0xff, [11] = 0xff}, ipv6[16];

	if (engine_is_bound(e) && (!memcmp(at->src, ipv4, sizeof(ipv4)) || !memcmp(at->src, ipv6, sizeof(ipv6))))
		return bind_at_chosen(e, number, at, alone);
	return tcp_bind(e->tcp, number, at, alone);
}

int engine_listen(struct engine *e, uint32_t number, const struct flow *at, int backlog)
{
	int err = tcp_listen(e->tcp, number, backlog);

	if (err != -ENOENT)
		return err;
	err = engine_bind(e, number, at, false);
	return err ? err : tcp_listen(e->tcp, number, backlog);
}

/* Memory and UDP have no cancellation point for a packet; the other back ends have. */
static bool loop_turn_uncancelled(struct engine *e, enum loop_work work, uint64_t now_ns)
{
	bool moved;
	int state;

	if (!e->may_cancel)
		return loop_turn(&e->loop, work, now_ns);
	state = cancel_off();
	moved = loop_turn(&e->loop, work, now_ns);
	cancel_restore(state);
	return moved;
}

static uint32_t same_interface(const void *ctx, uint32_t ifindex)
{
	return ifindex;
}

/* Time has passed without a turn: perhaps the process was restored from an image of it, and nobody had frozen it. */
static __attribute__((cold)) void after_gap(struct engine *e)
{
	if (!e->udp || !udp_heal(e->udp))
		return;
	if (e->group)
		group_steer_again(e->group);
	mcast_leave(e->mcast);
	mcast_return(e->mcast, same_interface, NULL);
}

bool engine_turn(struct engine *e, enum loop_work work, uint64_t now_ns)
{
	if (e->closed)
		return false;
	polls_turn(&e->polls);
	/* A poster reads the clock before it has the lock; another turn may have come between. */
	if (now_ns < e->turned_ns)
		now_ns = e->turned_ns;
	if (now_ns - e->turned_ns >= GAP_NS)
		after_gap(e);
	e->turned_ns = now_ns;
	if (e->loop.faults)
		faulting_serve(e, now_ns);
	if (!loop_turn_uncancelled(e, work, now_ns))
		return false;
	atomic_store_explicit(&e->moved_ns, now_ns, memory_order_relaxed);
	return true;
}

void engine_leave(struct engine *e)
{
	for (;;) {
		if (atomic_load(&e->state) == THREAD_BLOCKED && !e->closed) {
			uint64_t deadline = loop_deadline_ns(&e->loop);

			loop_show_qps(&e->loop);
			if (deadline < e->sleep_until_ns) {
				e->sleep_until_ns = deadline;
				e->env->wake(e->env);
			}
		}
		if (lock_release(&e->lock))
			return;
		engine_turn(e, LOOP_OUTPUT, env_now_ns(e->env));
	}
}

bool engine_has_rfc7306(const struct engine *e)
{
	return e->config.transport.iwarp_rfc7306;
}

const struct profile *engine_profile(const struct engine *e)
{
	return &e->config.profile;
}

bool engine_is_lost(const struct engine *e)
{
	return e->forked;
}

void engine_lock_quietly(struct engine *e)
{
	int state = cancel_off();

	lock_wait(&e->lock);
	e->cancel_state = state;
}

/*
 * An ACK that waits for a packet must not be lost by the caller's next step: if its QP is destroyed
 * or reset, the peer, whose data arrived, would retry in vain.
 */
void engine_lock(struct engine *e)
{
	engine_lock_quietly(e);
	nic_hold_acks(e->loop.nic, false);
	engine_turn(e, LOOP_OUTPUT, env_now_ns(e->env));
}

void engine_unlock(struct engine *e)
{
	int state = e->cancel_state;

	engine_turn(e, LOOP_OUTPUT, env_now_ns(e->env));
	if (e->limits)
		limiting_note(e);
	/* The thread may be awake and without a processor: what a verb did is shown when the verb returns. */
	if (!e->closed)
		loop_show_qps(&e->loop);
	engine_leave(e);
	cancel_restore(state);
}

/* A poll that finds the lock held. True: it has the lock now. */
static bool bounce(struct engine *e)
{
	static _Thread_local uint32_t bounces;

	if (!polls_bounce(&e->polls, &bounces))
		return false;
	e->env->yield(e->env);
	return lock_pass(&e->lock);
}

void engine_serve_group(struct engine *e, uint64_t now_ns)
{
	int state = cancel_off();

	atomic_store_explicit(&e->serve_wanted, false, memory_order_relaxed);
	if (!e->closed) {
		loop_serve_group(&e->loop, now_ns);
		faulting_commands(e, now_ns);
		qps_page_serve(e);
		freezing_commands(e);
	}
	cancel_restore(state);
}

/* Whether the program polls, and the thread looks soon whether it still does. */
static bool is_watched(const struct engine *e)
{
	return atomic_load_explicit(&e->state, memory_order_relaxed) == THREAD_NAP;
}

/* Where time passes only while all wait, the thread does the work, and a poll that finds nothing waits for that. */
static __attribute__((cold)) void poll_in_turn(struct engine *e)
{
	bool moved;

	lock_wait(&e->lock);
	moved = engine_turn(e, LOOP_ALL, env_now_ns(e->env));
	engine_leave(e);
	if (!moved)
		e->env->idle(e->env);
}

bool engine_is_simulated(const struct engine *e)
{
	return e->env->idle;
}

void engine_catch_up(struct engine *e)
{
	e->env->catch_up(e->env);
}

void engine_poll(struct engine *e)
{
	uint64_t now_ns;

	if (__builtin_expect(e->env->idle != NULL, 0)) {
		poll_in_turn(e);
		return;
	}
	if (!lock_try(&e->lock) && !bounce(e))
		return;
	now_ns = env_now_ns(e->env);
	polls_begin(&e->polls, env_self(), now_ns);
	nic_hold_acks(e->loop.nic, true);
	engine_turn(e, is_watched(e) ? LOOP_POLLED : LOOP_ALL, now_ns);
	/* Even one packet of a TCP stream may be long. */
	if (e->loop.moved > (e->loop.streams ? 0 : BRIEF_TURN_PACKETS))
		now_ns = env_now_ns(e->env);
	if (atomic_load_explicit(&e->serve_wanted, memory_order_relaxed))
		engine_serve_group(e, now_ns);
	polls_end(&e->polls, now_ns);
	engine_leave(e);
}

/*
 * Whether to leave the sending to the next poll, so that more WRs share a train: if the QP waits for
 * an answer anyway, or if the program posts one WR after the other. If that took a look at the clock,
 * *now_ns is what it showed.
 */
static bool may_defer(struct engine *e, const struct qp *qp, uint64_t *now_ns)
{
	if (atomic_load(&e->state) != THREAD_NAP)
		return false;
	/* The clock is read only where it decides: it takes as long as the rest of this. */
	if (!qp_in_flight(qp)) {
		*now_ns = env_now_ns(e->env);
		if (!polls_are_posts_many(&e->polls, *now_ns))
			return false;
	}
	return polls_may_defer(&e->polls) && !(polls_run_on(&e->polls, qp) && qp_goes_near(qp));
}

/* Lock held, released here. */
static void post_turn(struct engine *e, uint64_t now_ns)
{
	uint64_t turns_ns = polls_post_begin(&e->polls);

	engine_turn(e, is_watched(e) ? LOOP_POSTED : LOOP_OUTPUT, now_ns);
	polls_post_end(&e->polls, turns_ns, now_ns, env_now_ns(e->env));
	engine_leave(e);
}

void engine_kick(struct engine *e, struct qp *qp)
{
	uint64_t now_ns = 0;
	bool defers = may_defer(e, qp, &now_ns);

	if (!defers && lock_try(&e->lock)) {
		nic_posted(e->loop.nic, qp);
	} else {
		nic_doorbell(e->loop.nic, qp);
		/* The thread may have begun to look before the doorbell rang. */
		defers = defers && atomic_load(&e->state) == THREAD_NAP;
		if (defers || !lock_take_or_pend(&e->lock))
			return;
	}
	post_turn(e, now_ns ? now_ns : env_now_ns(e->env));
}

void engine_hand_over(struct engine *e)
{
	int state = cancel_off();

	/* New packets, and ACKs that waited, need not wait for the thread to run. */
	if (lock_try(&e->lock)) {
		nic_hold_acks(e->loop.nic, false);
		engine_turn(e, LOOP_ALL, env_now_ns(e->env));
		engine_leave(e);
	}
	polls_hand_over(&e->polls);
	thread_end_nap(e);
	cancel_restore(state);
}
