/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of algorithms. */
#include "cc/cc.h"

#include <errno.h>
#include <string.h>

#include "base/archive.h"
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

void cc_archive(struct archive *a, struct cc *c, enum cc_algorithm algorithm, const struct cc_params *params)
{
	const struct cc_kind *kind = params && params->own ? params->own : cc_kind_of(algorithm);
	struct cc all = *c;

	ARCHIVE(a, &all, cwnd_bytes, rate_bps, probe_wanted);
	ARCHIVE_TIMES(a, &all, deadline_ns);
	if (kind->archive)
		kind->archive(a, &all);
	else if (params && params->own)
		archive_fail(a, -EOPNOTSUPP);
	if (archive_judge(a,
			  all.rate_bps && all.cwnd_bytes >= c->cwnd_bytes_min && all.cwnd_bytes <= c->cwnd_bytes_max))
		*c = all;
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
