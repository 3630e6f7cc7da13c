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
 * Without a preset the values are the defaults of src/cc, except for algorithms that use delay: their
 * values suit threads that wait for a processor. The preset "default" is src/cc's.
 *
 * Algorithms, presets, parameters and values are those of cc/cc.h and cc/params.h, except algorithms
 * that need an INT stack: no real network provides one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "nic/nic.h"

struct cc_setting {
	bool given; /* false: auto, each engine's own choice */
	struct cc_params params;
};

/*
 * 0, or -EINVAL with nothing set and a sentence in why that names the part that is wrong and what is
 * allowed there.
 */
int cc_setting_parse(const char *text, struct cc_setting *, char *why, size_t why_bytes);

/* Swift: the setting names the queueing that its target allows. Otherwise the engine chooses it. */
bool cc_setting_has_target(const struct cc_setting *);
