/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules of waiting, each a function: see waiting.h. */
#include "engine/waiting.h"

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static struct waiting_step act(enum waiting_act act)
{
	return (struct waiting_step){.act = act};
}

/* ---- while a program polls ---- */

/* How long a nap may be, for as long as the program has polled. */
static uint64_t nap_ns(const struct waiting *w, uint64_t now_ns)
{
	uint64_t share_ns = w->polling_since_ns ? (now_ns - w->polling_since_ns) / NAP_SHARE : 0;

	return share_ns < NAP_NS ? NAP_NS : least(share_ns, NAP_NS_MAX);
}

/* When a program last polled, as if the turns of its posts since then had taken no time; 0: it handed over. */
static uint64_t last_poll_ns(const struct waiting_seen *s)
{
	uint64_t polled_ns = s->polled_ns ? s->polled_ns + s->post_turns_ns : 0;

	return s->bounced ? s->now_ns : least(polled_ns, s->now_ns);
}

/*
 * Whether a program polled within NAP_NS, or within a part of a nap if that is more, and until when to nap then. Who
 * has polled for long and not for 50 us was interrupted, perhaps by the thread of another process that looked whether
 * its program polls: this one at work would be the next such interruption.
 */
static bool polled_lately(struct waiting *w, const struct waiting_seen *s)
{
	uint64_t polled_ns = last_poll_ns(s), nap = nap_ns(w, s->now_ns);
	uint64_t gap_ns = nap / GAP_SHARE > NAP_NS ? nap / GAP_SHARE : NAP_NS;

	w->nap_until_ns = polled_ns + gap_ns;
	if (nap > NAP_NS && s->now_ns - polled_ns < NAP_NS)
		w->nap_until_ns = s->now_ns + nap;
	return polled_ns && s->now_ns < polled_ns + gap_ns;
}

static struct waiting_step sleep_for_poller(struct waiting *w, const struct waiting_seen *s, enum waiting_act state,
					    uint64_t until_ns)
{
	w->slept_ns = s->now_ns;
	return (struct waiting_step){.act = state, .until_ns = until_ns};
}

static bool is_serve_due(const struct waiting *w, const struct waiting_seen *s)
{
	return s->now_ns >= w->serve_due_ns || w->group_asks;
}

static void serve_again_later(struct waiting *w, const struct waiting_seen *s)
{
	w->serve_due_ns = s->now_ns + SERVE_NS;
	w->group_asks = false;
}

/* moved_ns may be younger than now_ns: then the difference is huge, and negative. */
static bool is_quiet(const struct waiting_seen *s)
{
	return (int64_t)(s->now_ns - s->moved_ns) > POLLED_QUIET_NS;
}

/* A poller does the work. */
static struct waiting_step stand_back(struct waiting *w, const struct waiting_seen *s)
{
	struct waiting_step step = {.act = WAITING_SERVE, .serve = is_serve_due(w, s), .output = is_quiet(s)};

	w->looked_again = false;
	if (w->instead_of_ns && (!w->excused || s->now_ns - w->instead_of_ns > AWAIT_NS_MAX))
		w->polling_since_ns = 0;
	w->instead_of_ns = 0;
	if (!w->polling_since_ns)
		w->polling_since_ns = s->now_ns;
	if (step.serve)
		serve_again_later(w, s);
	if (step.serve || step.output)
		return step;
	return sleep_for_poller(w, s, WAITING_NAP, w->nap_until_ns);
}

/* It polls in vain, and has nothing to send: packets that come wake the thread sooner than the end of a nap. */
static struct waiting_step served(struct waiting *w, const struct waiting_seen *s)
{
	if (s->locked && is_quiet(s) && !s->moved)
		return act(WAITING_REST);
	return sleep_for_poller(w, s, WAITING_NAP, w->nap_until_ns);
}

/* ---- when polls stop ---- */

static struct waiting_step turn(const struct waiting *w, const struct waiting_seen *s, enum waiting_act act)
{
	return (struct waiting_step){.act = act, .serve = is_serve_due(w, s) || s->serve_wanted};
}

/* Once this thread works instead of one that polled, it goes on until somebody polls again. */
static struct waiting_step work_instead(struct waiting *w, const struct waiting_seen *s, bool excused)
{
	w->instead_of_ns = s->polled_ns;
	w->excused = excused;
	return turn(w, s, WAITING_TRY);
}

/* Nobody has polled for a while: did the thread that polled stop, or does it wait for a processor? */
static struct waiting_step miss_poller(struct waiting *w, const struct waiting_seen *s)
{
	if (!s->polled_ns || s->polled_ns == w->instead_of_ns)
		return turn(w, s, WAITING_TRY);
	if (s->now_ns - s->polled_ns >= AWAIT_NS_MAX)
		return work_instead(w, s, false);
	return act(WAITING_MEASURE);
}

static struct waiting_step ran(struct waiting *w, const struct waiting_seen *s)
{
	if (s->ran_ns < (s->now_ns - w->slept_ns) / 4 * AWAIT_RAN_QUARTERS)
		return act(WAITING_QUESTION);
	return work_instead(w, s, false);
}

static struct waiting_step wanted(struct waiting *w, const struct waiting_seen *s)
{
	uint64_t waited_ns = s->now_ns - s->polled_ns;

	if (!s->wants || !s->may_wait)
		return work_instead(w, s, s->wants);
	w->excused = true;
	return sleep_for_poller(w, s, WAITING_AWAIT, s->polled_ns + least(AWAIT_GROWTH * waited_ns, AWAIT_NS_MAX));
}

static struct waiting_step traces(struct waiting *w, const struct waiting_seen *s)
{
	w->looked_ns = s->now_ns;
	return polled_lately(w, s) ? stand_back(w, s) : miss_poller(w, s);
}

/* ---- the thread at work ---- */

/* Another thread may be in a turn that takes longer than a nap: this one looks again before it waits. */
static struct waiting_step held(struct waiting *w, const struct waiting_seen *s)
{
	if (w->looked_again)
		return turn(w, s, WAITING_TURN);
	w->looked_again = true;
	return sleep_for_poller(w, s, WAITING_NAP, s->now_ns + NAP_NS);
}

/*
 * How long after traffic the thread spins. A peer of this host that reads a MiB of ours asks for more 0.1 ms later: a
 * thread that slept by then would cost it a system call.
 */
static uint64_t spin_ns(const struct waiting *w, const struct waiting_seen *s)
{
	return s->lends ? LENT_TIMES * w->spin_ns : w->spin_ns;
}

static struct waiting_step turned(struct waiting *w, const struct waiting_seen *s)
{
	w->looked_again = false;
	if (!s->polled_ns)
		w->polling_since_ns = 0;
	if (is_serve_due(w, s) || s->serve_wanted)
		serve_again_later(w, s);
	if (s->moved)
		return act(WAITING_LOOK);
	if (s->now_ns - s->moved_ns < spin_ns(w, s) && s->now_ns >= w->crowded_until_ns)
		return act(WAITING_YIELD);
	return act(WAITING_REST);
}

/*
 * Others have had the processor; if they keep it, spinning only delays this thread. A single long yield was to a thread
 * that soon slept again, as a peer's that naps; two in a row were to threads that need the processor.
 */
static struct waiting_step yielded(struct waiting *w, const struct waiting_seen *s)
{
	uint64_t took_ns = least(s->now_ns - w->looked_ns, CROWDED_NS_MAX / CROWDED_TIMES);

	if (took_ns > YIELD_LONG_NS && w->yielded_long)
		w->crowded_until_ns = s->now_ns + CROWDED_TIMES * took_ns;
	w->yielded_long = took_ns > YIELD_LONG_NS;
	return act(WAITING_LOOK);
}

static struct waiting_step rested(struct waiting *w, const struct waiting_seen *s)
{
	struct waiting_step step = {.act = WAITING_BLOCK, .until_ns = s->deadline_ns};

	/* The poller does due work, too. A thread that looked again at once would spin until the next poll. */
	if (s->deadline_ns <= s->now_ns)
		return s->now_ns < w->nap_until_ns ? sleep_for_poller(w, s, WAITING_NAP, w->nap_until_ns)
						   : act(WAITING_LOOK);
	if (s->now_ns - s->stirred_ns < HEARTBEAT_FOR_NS)
		step.until_ns = least(s->deadline_ns, s->now_ns + HEARTBEAT_NS);
	return step;
}

static struct waiting_step woke(struct waiting *w, const struct waiting_seen *s)
{
	w->group_asks |= s->group_asks;
	w->port_asks |= s->port_asks;
	return act(WAITING_LOOK);
}

bool waiting_port_is_due(struct waiting *w, uint64_t now_ns)
{
	if (!w->port_asks && now_ns < w->look_due_ns)
		return false;
	w->port_asks = false;
	w->look_due_ns = now_ns + SERVE_NS;
	return true;
}

struct waiting_step waiting_next(struct waiting *w, const struct waiting_seen *s)
{
	switch (s->what) {
	case SEEN_TRACES: return traces(w, s);
	case SEEN_SERVED: return served(w, s);
	case SEEN_TURN: return turned(w, s);
	case SEEN_HELD: return held(w, s);
	case SEEN_RAN: return ran(w, s);
	case SEEN_WANTS: return wanted(w, s);
	case SEEN_YIELD: return yielded(w, s);
	case SEEN_DEADLINE: return rested(w, s);
	case SEEN_WAKING: return woke(w, s);
	}
	return act(WAITING_LOOK);
}
