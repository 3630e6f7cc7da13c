/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Last wills: the message by which a process that is killed would have left its peers is in the registry, and another
 * process sends it. The
 * peer's answers go to the dead one's slot, so a few sends have to do.
 */
#include "cm/state.h"

enum {
	WILLS_A_TURN = 64,
	WILLS_OPEN_MAX = REGISTRY_WILLS /* as many as one process can have */
};

static bool is_wanted(const struct conn *c)
{
	switch (c->state) {
	case CONN_REP_RCVD:
	case CONN_REP_SENT:
	case CONN_ESTABLISHED:
	case CONN_DREQ_SENT: return true;
	default: return false;
	}
}

void will_update(struct conn *c)
{
	struct registry *r = &c->cm->registry;

	if (!is_wanted(c)) {
		registry_drop_will(r, c->will);
		c->will = REGISTRY_NO_ROW;
	} else if (c->will == REGISTRY_NO_ROW) {
		c->will = registry_make_will(r, &(struct registry_will){.flow = c->flow,
									.local_comm_id = c->local_comm_id,
									.remote_comm_id = c->remote_comm_id,
									.remote_qpn = c->remote_qpn});
	}
}

/* Anybody may have written it. Two that name the same id would be in each other's way, and in that of a conn of ours.
 */
static bool makes_sense(const struct cm *cm, const struct registry_will *will)
{
	return will->local_comm_id >> CM_SLOT_SHIFT == cm->sweep.slot && !conn_find(cm, will->local_comm_id);
}

/* As if the dead one hung up itself. */
static void carry_out(struct cm *cm, const struct registry_will *will, uint64_t now_ns)
{
	struct flow flow = will->flow;
	struct conn *c;

	if (!makes_sense(cm, will))
		return;
	flow.ttl = CM_HOP_LIMIT;
	c = conn_create_as(cm, NULL, &flow, will->local_comm_id);
	if (!c)
		return;
	c->willed = true;
	cm->wills_open++;
	c->remote_comm_id = will->remote_comm_id;
	c->remote_qpn = will->remote_qpn;
	hangup_start(c, now_ns);
	cm->counters.wills++;
}

void cm_look_for_the_dead(struct cm *cm)
{
	cm->sweep = (struct registry_sweep){0};
	cm->sweeping = cm->registry.page;
}

bool cm_has_wills(const struct cm *cm)
{
	return cm->sweeping || cm->wills_open;
}

bool will_is_due(const struct cm *cm)
{
	return cm->sweeping && cm->wills_open < WILLS_OPEN_MAX;
}

void will_expire(struct cm *cm, uint64_t now_ns)
{
	struct registry_will will;

	for (unsigned n = 0; will_is_due(cm) && n < WILLS_A_TURN && cm->out_count < CM_OUT_MAX / 2; n++) {
		cm->sweeping = registry_next_will(&cm->registry, &cm->sweep, &will);
		if (cm->sweeping)
			carry_out(cm, &will, now_ns);
	}
}

int cm_registrar(const struct cm *cm)
{
	int slot = registry_registrar(&cm->registry);

	return cm->registry.page ? slot : (int)cm->slot;
}

bool cm_take_over(struct cm *cm, int from)
{
	return registry_take_over(&cm->registry, from);
}
