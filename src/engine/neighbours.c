/* SPDX-License-Identifier: BSD-2-Clause */
/* Between the group, which passes rings on, and the back end, which uses them. */
#include "engine/neighbours.h"

#include <assert.h>
#include <string.h>

#include "io/shm.h"

static_assert((int)GROUP_RING_FDS == 2, "memory and bell");

void neighbours_look(struct loop *l, uint64_t now_ns)
{
	struct shm_reach reach;
	struct nic_neighbours n;

	/* A program that deregisters a region after its peer has read it revokes nothing of others' then. */
	if (nic_lends(l->nic) && shm_is_taken(l->shm))
		nic_lent_is_read(l->nic);
	if (!shm_turn(l->shm, now_ns, &reach))
		return;
	memcpy(n.slots, reach.slots, sizeof(n.slots));
	memcpy(n.readers, reach.readers, sizeof(n.readers));
	memcpy(n.full, reach.full, sizeof(n.full));
	nic_set_neighbours(l->nic, &n);
}

bool neighbours_keep_waiting(struct loop *l, size_t *waiting, uint64_t now_ns)
{
	neighbours_look(l, now_ns);
	*waiting = shm_kept(l->shm);
	return *waiting;
}

void neighbours_meet(struct loop *l, uint64_t now_ns)
{
	int slot, fds[GROUP_RING_FDS];

	while ((slot = shm_next_wanted(l->shm)) >= 0) {
		if (shm_make(l->shm, (unsigned)slot, now_ns, fds) < 0 || slot == (int)l->slot)
			continue;
		if (group_offer_ring(l->group, (unsigned)slot, fds) < 0)
			shm_lose(l->shm, (unsigned)slot, now_ns);
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
		case GROUP_RING_IN_ENDED:
			shm_end_ring(l->shm, r.slot);
			break;
		case GROUP_RING_OUT_ENDED:
			shm_lose(l->shm, r.slot, now_ns);
			break;
		}
	}
	neighbours_meet(l, now_ns);
}
