/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of algorithms. */
#include "cc/cc.h"

#include <string.h>

#include "cc/common.h"

static const struct {
	const char *name;
	const struct cc_kind *kind;
} algorithms[CC_ALGORITHMS] = {
#define CC_ROW(value, name, kind) [value] = {name, &(kind)},
	CC_ALGORITHM_ROWS(CC_ROW)
#undef CC_ROW
};

const struct cc_kind *cc_kind_of(enum cc_algorithm algorithm)
{
	assert(algorithm < CC_ALGORITHMS);
	return algorithms[algorithm].kind;
}

void cc_init(struct cc *c, enum cc_algorithm algorithm, const struct cc_config *config, uint64_t now_ns)
{
	assert(algorithm == CC_NONE || !config->params || config->params->algorithm == algorithm);
	if (config->params && config->params->own)
		config->params->own->init(c, config, now_ns);
	else
		cc_kind_of(algorithm)->init(c, config, now_ns);
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
