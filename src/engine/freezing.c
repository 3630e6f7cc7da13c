/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * While time stands still the thread is in wait(), with nothing to wait for but tools and the end of its patience: a
 * device is never frozen for good. When it thaws, its time goes on from where it stood, so no timer has run.
 */
#include "engine/freezing.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/leaving.h"
#include "engine/moving.h"

enum { COMMAND_BYTES = 128, WHY_BYTES = 512, EVENTS_MAX = IO_FDS_MAX + 3 };

#define AGAIN_NS UINT64_C(100000000) /* between tries to thaw */
/* How often it looks whether peers have answered. */
#define TELL_LOOK_NS UINT64_C(100000)
#define HOLD_NS_MAX  UINT64_C(3600000000000)

enum {
	MS_NS = 1000000,
	THAW_MS = 500, /* what it may take to thaw */
	MOVE_MS = 100, /* what a move takes, and what it may */
	MOVE_MS_MAX = 2000,
	TELL_MS_MIN = 10, /* for so long it waits for answers: a small part of the pause */
	TELL_MS_MAX = 100,
	TELL_SHARE = 16
};

void freezing_commands(struct engine *e)
{
	char text[COMMAND_BYTES];

	if (!e->group || (!group_next_command(e->group, GROUP_COMMAND_FREEZE, text, sizeof(text)) &&
			  !group_next_command(e->group, GROUP_COMMAND_MOVE, text, sizeof(text))))
		return;
	atomic_store_explicit(&e->freeze_asked, true, memory_order_release);
	thread_end_nap(e);
	e->env->wake(e->env);
}

/* What cannot be frozen, and why. NULL: it can. */
static const char *obstacle(const struct engine *e)
{
	if (e->loop.streams)
		return "the connections of its iWARP device are the kernel's TCP connections, which stay where they are and whose time goes on";
	if (!e->udp)
		return "its RoCEv1 device has sockets of its own kind, which cannot be left";
	return NULL;
}

/* ---- peers ---- */

static uint64_t tell_ns(uint32_t expected_ms)
{
	uint32_t ms = expected_ms / TELL_SHARE;

	return (uint64_t)MS_NS * (ms < TELL_MS_MIN ? TELL_MS_MIN : ms > TELL_MS_MAX ? TELL_MS_MAX : ms);
}

static void tell_peers(struct engine *e, uint32_t most_ms, uint32_t expected_ms)
{
	uint64_t began_ns = env_now_ns(e->env);

	nic_hold(e->loop.nic, most_ms, expected_ms);
	for (;;) {
		engine_turn(e, LOOP_ALL, env_now_ns(e->env));
		if (!nic_hold_awaits(e->loop.nic) || env_now_ns(e->env) - began_ns >= tell_ns(expected_ms))
			return;
		e->env->pause(e->env, TELL_LOOK_NS);
	}
}

/* How long peers wait, as the tool reads it. */
static void answer_patience(struct engine *e)
{
	struct nic_patience p;
	char text[COMMAND_BYTES];

	if (!nic_patience(e->loop.nic, &p))
		snprintf(text, sizeof(text), "patience without end");
	else
		snprintf(text, sizeof(text), "patience %" PRIu64 " %" PRIu32 " %u", p.ns, p.qpn, p.protocol);
	group_answer_command(e->group, text);
}

/* The addresses that queue pairs and ids of rdma_cm need, one each time. */
static void answer_address(struct engine *e, uint32_t index)
{
	uint8_t gid[16];
	char text[COMMAND_BYTES] = "no address", address[COMMAND_BYTES / 2];

	if (leaving_address(e, index, gid))
		snprintf(text, sizeof(text), "address %s", leaving_address_text(gid, address, sizeof(address)));
	group_answer_command(e->group, text);
}

/* ---- frozen ---- */

struct frozen {
	struct engine *e;
	uint64_t until_ns; /* the clock's */
	bool while_asked;  /* as long as the tool is there that asked for it */
	bool told;
};

/* False: it stays frozen, with the reason in why. */
static bool thaw(struct frozen *f, bool strict, char *why)
{
	return !leaving_return(f->e, true, strict, why, WHY_BYTES);
}

/* True: it has thawed. */
static bool hear_tools(struct frozen *f)
{
	struct group *g = f->e->group;
	char text[COMMAND_BYTES], why[WHY_BYTES];
	bool thawed;

	if (!group_next_command(g, GROUP_COMMAND_FREEZE, text, sizeof(text))) {
		if (group_next_command(g, GROUP_COMMAND_MOVE, text, sizeof(text)) ||
		    group_next_command(g, GROUP_COMMAND_FAULT, text, sizeof(text)))
			group_answer_command(g, "it is frozen: verbena thaw lets it go on");
		return false;
	}
	if (strcmp(text, "thaw") != 0) {
		group_answer_command(g, "it is frozen already");
		return false;
	}
	thawed = thaw(f, true, why);
	if (!thawed)
		group_answer_command(g, why);
	return thawed;
}

/* Nobody is left to say whether its addresses are there, so they are not looked for. */
static bool thaw_unasked(struct frozen *f)
{
	char why[WHY_BYTES];

	if (thaw(f, false, why))
		return true;
	if (!f->told)
		fprintf(stderr, "verbena: the device stays frozen until it can go on: %s\n", why);
	f->told = true;
	f->while_asked = false;
	f->until_ns = f->e->env->now_ns(f->e->env) + AGAIN_NS;
	return false;
}

static void stay(struct frozen *f)
{
	struct env_event events[EVENTS_MAX];
	struct engine *e = f->e;

	for (;;) {
		e->env->wait(e->env, f->until_ns, events, EVENTS_MAX);
		group_service(e->group);
		if (hear_tools(f))
			return;
		if ((e->env->now_ns(e->env) >= f->until_ns || (f->while_asked && group_asker_left(e->group))) &&
		    thaw_unasked(f))
			return;
	}
}

static void go_on(struct engine *e)
{
	env_let_time_go_on(e->env);
	nic_resume(e->loop.nic);
	e->loop.behind_ns = env_clock_ns(e->env, 0);
	engine_turn(e, LOOP_ALL, env_now_ns(e->env));
}

static void freeze(struct engine *e, uint64_t hold_ns, bool while_asked)
{
	struct frozen f = {.e = e, .while_asked = while_asked, .until_ns = e->env->now_ns(e->env) + hold_ns};
	uint32_t ms = (uint32_t)(hold_ns / MS_NS) + THAW_MS; /* of an hour at most */
	char text[COMMAND_BYTES];

	leaving_settle(e);
	tell_peers(e, ms, ms);
	env_stop_time(e->env);
	leaving_leave(e);
	if (while_asked)
		group_keep_asker(e->group);
	group_answer_command(e->group, "");
	stay(&f);
	go_on(e);
	if (group_next_command(e->group, GROUP_COMMAND_FREEZE, text, sizeof(text)))
		group_answer_command(e->group, "");
}

static int move(struct engine *e, int to, bool with_addresses, char *why)
{
	int rc;

	leaving_settle(e);
	tell_peers(e, MOVE_MS_MAX, MOVE_MS);
	env_stop_time(e->env);
	rc = moving_go(e, to, with_addresses, why, WHY_BYTES);
	go_on(e);
	return rc;
}

/* ---- commands ---- */

static void obey_freeze(struct engine *e, const char *text)
{
	uint64_t hold_ns;
	uint32_t index;
	char how[COMMAND_BYTES];

	if (!strcmp(text, "thaw"))
		group_answer_command(e->group, "it is not frozen");
	else if (obstacle(e))
		group_answer_command(e->group, obstacle(e));
	else if (!strcmp(text, "patience"))
		answer_patience(e);
	else if (sscanf(text, "address %" SCNu32, &index) == 1)
		answer_address(e, index);
	else if (sscanf(text, "freeze %" SCNu64 " %7s", &hold_ns, how) == 2 && hold_ns <= HOLD_NS_MAX)
		freeze(e, hold_ns, !strcmp(how, "while"));
	else
		group_answer_command(e->group, "it does not know that command");
}

static void obey_move(struct engine *e)
{
	char why[WHY_BYTES] = "", how[COMMAND_BYTES] = "";
	int to = group_take_command_fd(e->group), rc = -EINVAL;

	group_next_command(e->group, GROUP_COMMAND_MOVE, how, sizeof(how));
	if (obstacle(e))
		snprintf(why, sizeof(why), "%s", obstacle(e));
	else if (e->config.devices.count > 1 || e->config.devices.has_rails)
		snprintf(why, sizeof(why),
			 "it has %u device%s (VERBENA_DEVICES), and only a program with one that is not bound can move",
			 e->config.devices.count, e->config.devices.count > 1 ? "s" : " that is bound");
	else if (to >= 0)
		rc = move(e, to, !strcmp(how, "with addresses"), why);
	if (to >= 0)
		close(to);
	group_answer_command(e->group, rc ? why : "");
}

/* Lock held. */
static void obey(struct engine *e)
{
	char text[COMMAND_BYTES];

	if (group_next_command(e->group, GROUP_COMMAND_FREEZE, text, sizeof(text)))
		obey_freeze(e, text);
	else if (group_next_command(e->group, GROUP_COMMAND_MOVE, text, sizeof(text)))
		obey_move(e);
}

void freezing_obey(struct engine *e)
{
	bool closed;

	lock_wait(&e->lock);
	atomic_store_explicit(&e->freeze_asked, false, memory_order_relaxed);
	closed = e->closed;
	if (!closed)
		obey(e);
	engine_leave(e);
	if (!closed)
		e->loop.sink->port_changed(e);
}
