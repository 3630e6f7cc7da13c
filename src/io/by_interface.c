/* SPDX-License-Identifier: BSD-2-Clause */
/* See by_interface.h. A row is complete before it is counted, and never goes: readers take it as it is. */
#include "io/by_interface.h"

#include <net/if.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>

#include "io/uncancelled.h"

struct io_interface *io_interface_find(struct io_interfaces *t, uint32_t ifindex)
{
	struct io_interface *row;
	int state;

	for (uint32_t i = 0; i < t->count; i++)
		if (t->rows[i].ifindex == ifindex)
			return &t->rows[i];
	if (t->count == IO_INTERFACES_MAX)
		return NULL;
	row = &t->rows[t->count];
	row->ifindex = ifindex;
	state = cancel_off();
	if (!if_indextoname(ifindex, row->name))
		snprintf(row->name, sizeof(row->name), "%u", ifindex);
	cancel_restore(state);
	atomic_thread_fence(memory_order_release);
	t->count++;
	return row;
}
