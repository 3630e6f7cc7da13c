/* SPDX-License-Identifier: BSD-2-Clause */
/* What the fault engine must know of the verbs' objects. */
#include "verbs/objects.h"

static void name_qps(struct abi_context *ctx, void *arg)
{
	struct engine *engine = arg;

	if (ctx->engine != engine)
		return;
	for (struct list *l = ctx->objects.next; l != &ctx->objects; l = l->next) {
		struct abi_qp *qp = qp_of_object(container_of(l, struct object, link));

		/* Another handle of a shared one has no number. */
		if (!qp || !qp->number)
			continue;
		engine_fault_qp_made(engine, qp->core, qp->number);
		if (qp_state(qp->core) >= QPS_RTR)
			engine_fault_qp_peer(engine, qp->core);
	}
}

void each_qp(struct engine *engine)
{
	contexts_each(name_qps, engine);
}
