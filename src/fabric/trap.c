/* SPDX-License-Identifier: BSD-2-Clause */
/* Traps (IBTA 13.4.9): what agents tell the manager of their own accord. They wait here until
 * somebody carries them. */
#include <string.h>

#include "fabric/fabric.h"
#include "wire/notice.h"

enum { METHOD_RESPONSE = 0x80 };

void fabric_trap_raise(struct fabric *f, const struct fabric_trap *t)
{
	for (uint16_t i = 0; i < f->trap_count; i++) {
		const struct fabric_trap *w = &f->traps[i];

		if (w->node == t->node && w->port == t->port && w->number == t->number && w->slid == t->slid &&
		    w->pkey == t->pkey)
			return;
	}
	if (f->trap_count < FABRIC_TRAPS)
		f->traps[f->trap_count++] = *t;
}

static void trap_take(struct fabric *f, struct fabric_trap *t)
{
	*t = f->traps[0];
	memmove(f->traps, f->traps + 1, --f->trap_count * sizeof(f->traps[0]));
}

static void trap_encode(uint8_t *bytes, const struct fabric_trap *t, const struct fabric_node *n, uint32_t tid)
{
	const struct smp s = {.mad = {.base_version = MAD_BASE_VERSION,
				      .mgmt_class = SMP_CLASS_LID,
				      .class_version = SMP_CLASS_VERSION,
				      .method = MAD_METHOD_TRAP,
				      .tid = tid,
				      .attribute = SMP_NOTICE}};
	const struct notice notice = {.trap = t->number,
				      .producer = n->type,
				      .issuer_lid = n->ports[n->type == NODE_SWITCH ? 0 : t->port].info.lid,
				      .slid = t->slid,
				      .dlid = t->dlid,
				      .pkey = t->pkey,
				      .sqp = t->sqp,
				      .dqp = t->dqp,
				      .port = t->port};

	smp_encode(bytes, &s);
	notice_encode(bytes + SMP_DATA_AT, &notice);
}

bool fabric_trap_next(struct fabric *f, struct fabric_mad *m)
{
	while (f->trap_count) {
		struct fabric_trap t;
		const struct fabric_node *n;
		const struct port_info *own;

		trap_take(f, &t);
		n = &f->nodes[t.node];
		own = &n->ports[n->type == NODE_SWITCH ? 0 : t.port].info;
		*m = (struct fabric_mad){.node = t.node, .port = t.port, .slid = own->lid, .dlid = own->sm_lid};
		trap_encode(m->bytes, &t, n, ++f->trap_tid);
		if (fabric_carry_trap(f, m) && f->nodes[m->node].is_sm)
			return true;
	}
	return false;
}

bool fabric_is_request(const uint8_t *mad)
{
	return !(mad[3] & METHOD_RESPONSE) && mad[3] != MAD_METHOD_TRAP && mad[3] != MAD_METHOD_TRAP_REPRESS;
}
