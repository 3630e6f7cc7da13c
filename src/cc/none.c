/* SPDX-License-Identifier: BSD-2-Clause */
/* No congestion control: the widest window, unpaced, always. */
#include "cc/common.h"

static const struct cc_ops none_ops;

static void none_make(struct cc *c, const struct cc_config *config, uint64_t now_ns)
{
	cc_init_common(c, config, &none_ops);
	/* Nothing is computed with this window, so it may be wider than the algorithms' limit. */
	if (config->cwnd_bytes_max)
		c->cwnd_bytes_max = config->cwnd_bytes_max;
	c->cwnd_bytes = c->cwnd_bytes_max;
}

const struct cc_kind cc_none_kind = {.init = none_make};
