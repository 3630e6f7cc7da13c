/* SPDX-License-Identifier: BSD-2-Clause */
/* Between the group, which passes rings on, and the back end, which uses them. */
#include "engine/neighbours.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "io/shm/shm.h"
#include "io/uncancelled.h"

enum { RINGS_TOLD_LIMIT = 1, RINGS_TOLD_OTHER = 2 };

static_assert((int)GROUP_RING_FDS == 2, "memory and bell");

static size_t place(void *nic, const struct pkt *pkts, size_t n, bool begins, uint8_t **spots)
{
	return nic_place(nic, pkts, n, begins, spots);
}

void neighbours_begin(struct loop *l)
{
	shm_set_placer(l->shm, (struct shm_placer){.place = place, .ctx = l->nic});
}

/* Rare, and so a function of its own: each turn calls the one below. */
static __attribute__((noinline)) void show_changes(struct loop *l)
{
	struct shm_peer p;

	while (shm_next_change(l->shm, &p)) {
		struct nic_peer n = {.near = p.reached, .reads = p.reads, .full = p.full, .loan = p.loan};

		nic_set_peer(l->nic, p.slot, &n);
	}
}

void neighbours_look(struct loop *l, uint64_t now_ns)
{
	if (shm_turn(l->shm, now_ns))
		show_changes(l);
}

bool neighbours_ran(struct loop *l, unsigned slot)
{
	enum shm_sight sight = l->shm ? shm_look_at(l->shm, slot) : SHM_UNSEEN;

	return sight == SHM_RAN || (sight == SHM_UNSEEN && !group_is_stopped(l->group, slot));
}

bool neighbours_reader_lives(void *group, unsigned slot)
{
	return group_ring_lives(group, slot);
}

bool neighbours_keep_waiting(struct loop *l, size_t *waiting, uint64_t now_ns)
{
	neighbours_look(l, now_ns);
	*waiting = shm_kept(l->shm);
	return *waiting;
}

/* Says once for each cause that packets go by UDP, where a user counts on memory. */
static void tell(struct loop *l, int err)
{
	unsigned cause = err == -EDQUOT ? RINGS_TOLD_LIMIT : RINGS_TOLD_OTHER;

	if (l->rings_told & cause)
		return;
	l->rings_told |= cause;
	if (err == -EDQUOT)
		fprintf(stderr,
			"verbena: packets to further processes of this host go by UDP: VERBENA_SHM_BYTES is used up\n");
	else
		fprintf(stderr, "verbena: packets to processes of this host go by UDP: no memory to share: %s\n",
			strerror(-err));
}

static __attribute__((noinline)) void meet(struct loop *l, int slot, uint64_t now_ns)
{
	int fds[GROUP_RING_FDS], err = shm_make(l->shm, (unsigned)slot, now_ns, fds);

	if (err < 0 && err != -EEXIST)
		tell(l, err);
	if (err < 0 || slot == (int)l->slot)
		return;
	if (group_offer_ring(l->group, (unsigned)slot, fds) < 0)
		shm_lose(l->shm, (unsigned)slot, now_ns);
}

void neighbours_meet(struct loop *l, uint64_t now_ns)
{
	int slot, state;

	while ((slot = shm_next_wanted(l->shm)) >= 0) {
		state = cancel_off();
		meet(l, slot, now_ns);
		cancel_restore(state);
	}
}

void neighbours_serve(struct loop *l, uint64_t now_ns)
{
	struct group_ring r;

	while (group_next_ring(l->group, &r)) {
		switch (r.kind) {
		case GROUP_RING_OFFERED:
			if (shm_take_ring(l->shm, r.slot, r.pid, r.fds) < 0)
				group_refuse_ring(l->group, r.slot);
			break;
		case GROUP_RING_IN_ENDED: shm_end_ring(l->shm, r.slot); break;
		case GROUP_RING_OUT_ENDED: shm_lose(l->shm, r.slot, now_ns); break;
		}
	}
	neighbours_meet(l, now_ns);
}
