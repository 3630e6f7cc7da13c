/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Everybody who takes part is connected with the registrar, so each learns of the other's end at once. A registrar that
 * is stopped hangs up nowhere, so who listens looks at it now and then.
 */
#include "engine/registrar.h"

#include <errno.h>
#include <stdlib.h>

enum { TRIES = 8 };

static const uint64_t look_ns = 1000000000;
/*
 * A process that is killed loses its descriptors one by one, and may hang up here while its listener, by which it seems
 * to live, is still there. So the dead are looked for again, on a busy machine a second time.
 */
static const uint64_t again_ns[] = {20000000, 1000000000};

static bool is_registrar(const struct loop *l)
{
	return cm_registrar(l->cm) == (int)l->slot;
}

static void become(struct loop *l)
{
	group_unwatch(l->group);
	group_steer_requests(l->group, l->slot);
	cm_look_for_the_dead(l->cm);
	l->registrar.serves = true;
}

/* Finds a registrar that lives, or becomes it. One that ends in between is noticed at the next look. */
static void elect(struct loop *l)
{
	for (unsigned i = 0; i < TRIES && !is_registrar(l); i++) {
		int who = cm_registrar(l->cm), err = who < 0 ? -ECONNREFUSED : group_watch(l->group, (unsigned)who);

		l->registrar.watched = who;
		if (err != -ECONNREFUSED)
			return;
		if (cm_take_over(l->cm, who))
			become(l);
	}
}

void registrar_join(struct loop *l, uint64_t now_ns)
{
	const char *heir = getenv("VERBENA_HEIR");

	if (!l->group || l->streams || !l->cm || l->registrar.takes_part)
		return;
	if (heir)
		group_name_heir(l->group, heir);
	l->registrar.takes_part = true;
	l->registrar.look_ns = now_ns + look_ns;
	elect(l);
}

void registrar_return(struct loop *l, uint64_t now_ns)
{
	bool took_part = l->registrar.takes_part;

	l->registrar.takes_part = l->registrar.serves = false;
	if (took_part)
		registrar_join(l, now_ns);
}

static void look(struct loop *l, uint64_t now_ns)
{
	l->registrar.look_ns = now_ns + look_ns;
	if (group_watched_is_stopped(l->group) && cm_take_over(l->cm, l->registrar.watched))
		become(l);
	else if (!group_is_watching(l->group))
		elect(l);
}

/* `looks`: how many times it has looked for those that left last. */
static void look_for_the_dead(struct loop *l, unsigned looks, uint64_t now_ns)
{
	bool again = looks < sizeof(again_ns) / sizeof(again_ns[0]);

	cm_look_for_the_dead(l->cm);
	l->registrar.looks = looks + 1;
	l->registrar.again_at_ns = again ? now_ns + again_ns[looks] : UINT64_MAX;
}

void registrar_serve(struct loop *l, uint64_t now_ns)
{
	bool left;

	if (!l->cm || (!l->registrar.takes_part && !is_registrar(l)))
		return;
	left = group_somebody_left(l->group);
	if (is_registrar(l)) {
		/* By its slot, too: its last owner was it. */
		if (left || !l->registrar.serves)
			look_for_the_dead(l, 0, now_ns);
		else if (now_ns >= l->registrar.again_at_ns)
			look_for_the_dead(l, l->registrar.looks, now_ns);
		l->registrar.serves = true;
		return;
	}
	l->registrar.serves = false;
	if (group_watch_ended(l->group) || cm_registrar(l->cm) != l->registrar.watched) {
		group_unwatch(l->group);
		elect(l);
	}
	if (now_ns >= registrar_deadline_ns(l))
		look(l, now_ns);
}

uint64_t registrar_deadline_ns(const struct loop *l)
{
	if (l->cm && is_registrar(l) && l->registrar.serves)
		return l->registrar.again_at_ns;
	if (!l->registrar.takes_part || is_registrar(l) || !cm_listeners(l->cm))
		return UINT64_MAX;
	return l->registrar.look_ns;
}
