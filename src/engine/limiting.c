/* SPDX-License-Identifier: BSD-2-Clause */
/* The nic counts its objects, so what the process has is never counted here. */
#include "engine/limiting.h"

#include <errno.h>
#include <stdio.h>

#include "engine/devices.h"

int limiting_open(struct engine *e, char *why, size_t why_bytes)
{
	const struct config *c = &e->config;
	uint64_t line_bps = engine_line_rate_bps(e);
	char name[DEVICE_NAME_BYTES];
	int rc;

	if (!limits_are_given(&c->limits))
		return 0;
	if (c->limits.weight && !line_bps) {
		snprintf(
			why, why_bytes,
			"VERBENA_WEIGHT=%u: no interface of the device says how fast it is: set VERBENA_LINE_RATE, which "
			"devices have shares of",
			c->limits.weight);
		return -EINVAL;
	}
	device_name(name, c->devices.iwarp, c->device, e->device);
	rc = limits_join(&e->limits, name, &c->limits, line_bps, env_clock_ns(e->env, env_now_ns(e->env)), why,
			 why_bytes);
	if (rc)
		return rc;
	if (limits_pace(e->limits))
		e->loop.limits = e->limits;
	limits_report(e->limits, &e->loop.page->limits);
	return 0;
}

void limiting_close(struct engine *e)
{
	if (e->loop.data_waits)
		nic_pause(e->loop.nic, 0);
	e->loop.data_waits = false;
	e->loop.limits = NULL;
	limits_leave(e->limits);
	e->limits = NULL;
}

static void count(const struct engine *e, uint64_t have[LIMITS])
{
	const struct nic_counters *n = nic_counters(e->loop.nic);

	have[LIMIT_QPS] = n->qps;
	have[LIMIT_CQS] = n->cqs;
	have[LIMIT_MRS] = n->mrs;
	have[LIMIT_MR_BYTES] = n->mr_bytes;
	have[LIMIT_HCA_OBJECT] = n->qps + n->cqs + n->mrs + n->mws + n->pds + n->srqs;
}

void limiting_note(struct engine *e)
{
	uint64_t have[LIMITS];

	count(e, have);
	limits_note(e->limits, have);
	limits_report(e->limits, &e->loop.page->limits);
}

/* A program that tries again and again leaves one line. */
static void tell(struct engine *e, enum limit over)
{
	e->loop.page->limit.quota_refusals++;
	if (e->quotas_told >> over & 1)
		return;
	e->quotas_told |= 1u << over;
	fault_log_add(&e->loop.page->faults, &(struct fault_record){.time_ns = env_now_ns(e->env) - e->opened_ns,
								    .rule = FAULT_NO_RULE,
								    .action = FAULT_QUOTA,
								    .value = over});
}

int engine_room(struct engine *e, enum limit kind, uint64_t bytes)
{
	uint64_t wanted[LIMITS];
	enum limit over;

	if (!e->limits)
		return 0;
	count(e, wanted);
	if (kind != LIMIT_MR_BYTES)
		wanted[LIMIT_HCA_OBJECT]++;
	if (kind <= LIMIT_MRS)
		wanted[kind]++;
	if (__builtin_add_overflow(wanted[LIMIT_MR_BYTES], bytes, &wanted[LIMIT_MR_BYTES]))
		wanted[LIMIT_MR_BYTES] = UINT64_MAX;
	if (!limits_take(e->limits, wanted, &over)) {
		tell(e, over);
		return ENOMEM;
	}
	e->quotas_told &= ~(1u << kind);
	return 0;
}

uint64_t engine_quota(const struct engine *e, enum limit k)
{
	return e->config.limits.quota[k] ? e->config.limits.quota[k] : UINT64_MAX;
}
