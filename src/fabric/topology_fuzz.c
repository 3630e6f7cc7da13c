/* SPDX-License-Identifier: BSD-2-Clause */
/* Any text as a topology: what is read has links that both ends know. */
#include "fabric/fabric.h"
#include "support/fuzz_input.h"

static void check_port(const struct fabric *f, uint16_t node, uint8_t port)
{
	const struct fabric_port *p = &f->nodes[node].ports[port], *q;

	if (!p->linked)
		return;
	must(p->peer < f->count && p->peer_port && p->peer_port <= f->nodes[p->peer].port_count);
	q = &f->nodes[p->peer].ports[p->peer_port];
	must(q->linked && q->peer == node && q->peer_port == port && q != p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fabric f;
	char why[128];

	if (fabric_read(&f, (const char *)data, size, why, sizeof(why)))
		return 0;
	for (uint16_t n = 0; n < f.count; n++) {
		for (unsigned i = 0; i <= f.nodes[n].port_count; i++)
			check_port(&f, n, (uint8_t)i);
	}
	fabric_free(&f);
	return 0;
}
