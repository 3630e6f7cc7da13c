/* SPDX-License-Identifier: BSD-2-Clause */
/* Creates and destroys the state that the queue pairs of a nic share. */
#include "transport/qp.h"
#include "transport/veroce/engine.h"

void transport_init(struct transport *tp, const struct transport_config *config, const struct alloc *alloc,
		    const uint8_t secret[16], struct icrc_ctx *icrc)
{
	struct list *lists[] = {&tp->answering, &tp->paused, &tp->doubted, &tp->fired_cqs, &tp->events};

	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
		list_init(lists[i]);
	lender_init(&tp->lender);
	for (int i = 0; i < ACK_WAITS; i++)
		list_init(&tp->acks[i].qps);
	borrower_init(&tp->elsewhere.borrower, NULL);
	for (int i = 0; i < QP_SLS; i++)
		list_init(&tp->active[i]);
	tp->alloc = *alloc;
	pool_init(&tp->pool, &tp->alloc);
	tp->config = *config;
	transport_config_settle(&tp->config);
	tp->tx.icrc = icrc;
	tp->unsealed = !icrc;
	tp->tx.seal = qp_seal(tp, NULL, false);
	tp->tx.train_max = tp->config.train_max;
	veroce_setup(tp, secret);
}

void transport_fini(struct transport *tp)
{
	pair_table_fini(&tp->pairs);
	pool_fini(&tp->pool);
}
