/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of algorithms. */
#include "cc/cc.h"

#include <string.h>

#include "cc/common.h"

static const struct {
	const char *name;
	void (*init)(struct cc *, const struct cc_config *, uint64_t now_ns);
} algorithms[CC_ALGORITHMS] = {
	[CC_NONE] = {"none", cc_none_init},
	[CC_SWIFT] = {"swift", cc_swift_init},
	[CC_DCTCP] = {"dctcp", cc_dctcp_init},
	[CC_DCQCN] = {"dcqcn", cc_dcqcn_init},
	[CC_DCQCN_FW] = {"dcqcn_fw", cc_dcqcn_fw_init},
	[CC_HPCC] = {"hpcc", cc_hpcc_init},
	[CC_TIMELY] = {"timely", cc_timely_init},
	[CC_TIMELY_PATCHED] = {"timely_patched", cc_timely_patched_init},
	[CC_RTTCC] = {"rttcc", cc_rttcc_init},
};

void cc_init(struct cc *c, enum cc_algorithm algorithm, const struct cc_config *config,
	     uint64_t now_ns)
{
	assert(algorithm < CC_ALGORITHMS);
	assert(algorithm == CC_NONE || !config->params || config->params->algorithm == algorithm);
	if (config->params && config->params->init)
		config->params->init(c, config, now_ns);
	else
		algorithms[algorithm].init(c, config, now_ns);
}

const char *cc_name(enum cc_algorithm algorithm)
{
	assert(algorithm < CC_ALGORITHMS);
	return algorithms[algorithm].name;
}

bool cc_by_name(const char *name, enum cc_algorithm *algorithm)
{
	for (unsigned int i = 0; i < CC_ALGORITHMS; i++) {
		if (!strcmp(name, algorithms[i].name)) {
			*algorithm = (enum cc_algorithm)i;
			return true;
		}
	}
	return false;
}

bool cc_needs_int(enum cc_algorithm algorithm)
{
	return algorithm == CC_HPCC;
}
