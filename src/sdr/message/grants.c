/* SPDX-License-Identifier: BSD-2-Clause */
/* `told` runs up to `made` when something is due, and falls back to `known` when the wait for the
 * peer's confirmation is over. */
#include <assert.h>
#include <errno.h>

#include "sdr/message/grants.h"

int grants_init(struct grants *g, uint32_t slots, uint64_t interval_ns, const struct alloc *alloc)
{
	*g = (struct grants){
		.slots = slots,
		.interval_ns = interval_ns,
		.wait_ns = interval_ns,
		.due_ns = UINT64_MAX,
		.alloc = alloc,
	};
	g->ring = alloc_get(alloc, slots * sizeof(*g->ring));
	return g->ring ? 0 : -ENOMEM;
}

void grants_free(struct grants *g)
{
	alloc_put(g->alloc, g->ring, g->slots * sizeof(*g->ring));
	g->ring = NULL;
}

bool grants_room(const struct grants *g, uint32_t count)
{
	return g->made - g->known + count <= g->slots;
}

void grants_add(struct grants *g, struct grant grant, uint64_t now_ns)
{
	assert(grants_room(g, 1));
	g->ring[g->made++ & (g->slots - 1)] = grant;
	g->wait_ns = g->interval_ns;
	g->due_ns = now_ns;
}

void grants_confirm(struct grants *g, uint64_t known)
{
	if (known <= g->known || known > g->made)
		return;
	g->known = known;
	if (g->told < known)
		g->told = known;
	if (g->known == g->made)
		g->due_ns = UINT64_MAX;
}

/* All grants were sent: waits, then begins again with the first that the peer has not confirmed. */
static void wait_for_answer(struct grants *g, uint64_t now_ns)
{
	g->due_ns = now_ns + g->wait_ns;
	if (g->wait_ns < g->interval_ns * GRANTS_WAIT_FACTOR)
		g->wait_ns *= 2;
}

uint16_t grants_tell(struct grants *g, uint8_t *p, size_t max, uint16_t *flags, uint64_t now_ns)
{
	size_t room = (max - CTS_FIXED_LEN) / CTS_GRANT_LEN;
	struct grant run[CTS_GRANTS_MAX];
	struct cts cts = {.posted = (uint32_t)g->made};
	bool again;

	if (now_ns < g->due_ns || g->known == g->made)
		return 0;
	again = g->told == g->made;
	if (again)
		g->told = g->known;
	cts.first = (uint32_t)g->told;
	while (g->told < g->made && cts.count < room && cts.count < CTS_GRANTS_MAX)
		run[cts.count++] = g->ring[g->told++ & (g->slots - 1)];
	g->sent++;
	g->repeated += again;
	*flags = again ? CONTROL_ANSWER : 0;
	if (g->told == g->made)
		wait_for_answer(g, now_ns);
	return cts_encode(p, &cts, run);
}
