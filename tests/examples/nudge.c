/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Congestion control: each marked packet takes a part of a packet off the window, each round trip
 * without marks adds one. A timeout begins anew. No state but the window, in 1/65536 bytes.
 */
#include "cc/common.h"
#include "policies.h"

static const struct nudge *nudge_of(const struct cc *c)
{
	return (const struct nudge *)(uintptr_t)c->other[1];
}

static void set(struct cc *c, uint64_t cwnd_q16)
{
	c->other[0] = cc_clamp_q16(c, cwnd_q16);
	c->cwnd_bytes = c->other[0] >> 16;
}

static void on_ack(struct cc *c, uint64_t now_ns, const struct cc_ack *ack)
{
	uint64_t marked = cc_marked_bytes(ack), cut = marked * nudge_of(c)->cut_q16;
	uint64_t cwnd = c->other[0] + cc_additive_q16(c, c->other[0], 1 << 16, cc_acked_bytes(ack) - marked);

	set(c, cwnd > cut ? cwnd - cut : 0);
}

static void on_loss(struct cc *c, uint64_t now_ns, enum cc_loss loss)
{
	if (loss == CC_LOSS_RTO)
		set(c, (uint64_t)c->mtu_bytes << 16);
}

static const struct cc_ops ops = {.on_ack = on_ack, .on_loss = on_loss};

/* config->params is the first member of a struct nudge. */
static void init(struct cc *c, const struct cc_config *config, uint64_t now_ns)
{
	cc_init_common(c, config, &ops);
	c->other[1] = (uintptr_t)config->params;
	set(c, c->cwnd_bytes << 16);
}

/* ACKs must report marks: the algorithm ignores CNPs. */
static const struct cc_kind kind = {.init = init, .needs = CC_NEEDS_MARKS};

void nudge_params(struct nudge *n)
{
	cc_params_default(&n->params, CC_NONE);
	n->params.own = &kind;
	n->cut_q16 = 1 << 14;
}
