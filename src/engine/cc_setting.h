/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The setting VERBENA_CC as text:
 *
 *     auto
 *     <algorithm>[:<preset>][,<parameter>=<value>]...
 *
 *     dcqcn
 *     dcqcn_fw:connectx
 *     swift,base=30us
 *     dctcp:hpcc-eval,rate_ai=100Mbps,loss=halve
 *
 * Without a preset the values are the defaults of src/cc, but for those of algorithms that go by delay:
 * they have what suits threads that wait for a processor. The preset "default" is src/cc's.
 *
 * Algorithms, presets, parameters and values are those of cc/cc.h and cc/params.h, less what a network
 * of real switches cannot feed: nothing fills in an INT stack there.
 */
#ifndef ENGINE_CC_SETTING_H
#define ENGINE_CC_SETTING_H

#include <stdbool.h>
#include <stddef.h>

#include "nic/nic.h"

struct cc_setting {
	bool given; /* false: auto, each engine has its own */
	struct cc_params params;
};

/*
 * 0, or -EINVAL with nothing set and a sentence in why that names the part that is wrong and what is
 * allowed there.
 */
int cc_setting_parse(const char *text, struct cc_setting *, char *why, size_t why_bytes);

/* Swift: how much queueing it lets be was named. Otherwise it is for the engine to say. */
bool cc_setting_has_target(const struct cc_setting *);

#endif
