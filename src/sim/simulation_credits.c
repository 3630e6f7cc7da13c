/* SPDX-License-Identifier: BSD-2-Clause */
/* Links with credits: scenario to network, and what the network says of them to the results. */
#include <stdio.h>

#include "net/credit.h"
#include "sim/simulation_parts.h"

/* A lane with weight 0 has high priority without a limit; of the others each unit of weight is a packet. */
static bool set_arbitration(const struct scenario *s, struct network_config *c, struct why why)
{
	struct vl_tables *t = &c->credits.arbitration;
	uint32_t blocks = (c->mtu_bytes + CREDIT_BLOCK_BYTES - 1) / CREDIT_BLOCK_BYTES;

	*t = (struct vl_tables){.high_limit = VL_HIGH_UNLIMITED};
	for (uint8_t vl = 0; vl < VL_LANES; vl++) {
		const struct vl_entry e = {vl, (uint8_t)(blocks < UINT8_MAX ? blocks : UINT8_MAX)};

		if (!s->sw.weight[vl])
			t->high[t->high_count++] = e;
		for (uint32_t i = 0; i < s->sw.weight[vl]; i++) {
			if (t->low_count == VL_ENTRIES_MAX)
				return refuse(why, "switch.weights: with credits their sum is at most %d",
					      VL_ENTRIES_MAX);
			t->low[t->low_count++] = e;
		}
	}
	return true;
}

bool parts_credits(const struct scenario *s, struct network_config *c, struct why why)
{
	if (s->sw.low_class != SCENARIO_NONE)
		return refuse(why, "switch.low: with credits the tables of VL arbitration say what goes first");
	c->mtu_bytes = (uint32_t)s->transport.payload_bytes + HOST_LRH_BYTES + 64;
	c->credits.buffer_bytes = (uint32_t)s->sw.lane_buffer_bytes;
	c->credits.queue_per_output = s->sw.lane_queue == SCENARIO_LANE_QUEUE_OUTPUT;
	c->credits.lifetime_ps = s->sw.lane_lifetime_ps == SCENARIO_NEVER ? 0 : s->sw.lane_lifetime_ps;
	c->buffer_bytes = 0;
	c->class_queue_bytes = 0;
	c->red.classes = 0;
	return set_arbitration(s, c, why);
}

void parts_deadlock_text(const struct network_deadlock *d, const struct topology *t, char *text, size_t bytes)
{
	size_t n = (size_t)snprintf(text, bytes,
				    "deadlock, found at %.1f us: %u lanes wait for room in each other's buffers:",
				    (double)d->found_ps / 1e6, d->count);

	for (uint32_t i = 0; i < d->count && i < NETWORK_DEADLOCK_LANES && n < bytes; i++) {
		const struct topology_link *l = &t->links[d->lanes[i].link];
		uint32_t from = d->lanes[i].end ? l->b : l->a, to = d->lanes[i].end ? l->a : l->b;

		n += (size_t)snprintf(text + n, bytes - n, "%s %u-%u lane %u", i ? "," : "", t->nodes[from].number,
				      t->nodes[to].number, d->lanes[i].vl);
	}
}
