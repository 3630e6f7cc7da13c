/* SPDX-License-Identifier: BSD-2-Clause */
/* The log as its readers see it, and the names of what programs are shown. */
#include "faults/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { READ_TRIES = 1000 };

struct named {
	const char *name;
	int value;
};

#define ERRNO(e)      \
	{             \
#e, e \
	}
static const struct named errnos[] = {
	ERRNO(ENOMEM), ERRNO(EAGAIN),     ERRNO(EINVAL), ERRNO(EIO),   ERRNO(ENODEV), ERRNO(EPERM),     ERRNO(EACCES),
	ERRNO(EBUSY),  ERRNO(EOPNOTSUPP), ERRNO(ENOSPC), ERRNO(EINTR), ERRNO(EFAULT), ERRNO(ETIMEDOUT), ERRNO(EMFILE),
};

/* The numbers are the ABI's; some no adapter gives to a send request without cause, and a program must bear them too. */
static const struct named statuses[] = {
	{"IBV_WC_LOC_LEN_ERR", 1},    {"IBV_WC_LOC_QP_OP_ERR", 2},   {"IBV_WC_LOC_PROT_ERR", 4},
	{"IBV_WC_WR_FLUSH_ERR", 5},   {"IBV_WC_MW_BIND_ERR", 6},     {"IBV_WC_BAD_RESP_ERR", 7},
	{"IBV_WC_LOC_ACCESS_ERR", 8}, {"IBV_WC_REM_INV_REQ_ERR", 9}, {"IBV_WC_REM_ACCESS_ERR", 10},
	{"IBV_WC_REM_OP_ERR", 11},    {"IBV_WC_RETRY_EXC_ERR", 12},  {"IBV_WC_RNR_RETRY_EXC_ERR", 13},
	{"IBV_WC_REM_ABORT_ERR", 16}, {"IBV_WC_FATAL_ERR", 19},      {"IBV_WC_RESP_TIMEOUT_ERR", 20},
	{"IBV_WC_GENERAL_ERR", 21},
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static int value_of(const struct named *list, size_t count, const char *name, size_t len)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(list[i].name) == len && !strncmp(list[i].name, name, len))
			return list[i].value;
	return -1;
}

static const char *name_of(const struct named *list, size_t count, uint32_t value)
{
	for (size_t i = 0; i < count; i++)
		if ((uint32_t)list[i].value == value)
			return list[i].name;
	return "?";
}

static void names(const struct named *list, size_t count, char *text, size_t bytes)
{
	size_t n = 0;

	text[0] = 0;
	for (size_t i = 0; i < count && n < bytes; i++)
		n += (size_t)snprintf(text + n, bytes - n, "%s%s", i ? ", " : "", list[i].name);
}

int fault_status_of(const char *name, size_t len)
{
	return value_of(statuses, COUNT(statuses), name, len);
}

int fault_errno_of(const char *name, size_t len)
{
	return value_of(errnos, COUNT(errnos), name, len);
}

void fault_status_names(char *text, size_t bytes)
{
	names(statuses, COUNT(statuses), text, bytes);
}

void fault_errno_names(char *text, size_t bytes)
{
	names(errnos, COUNT(errnos), text, bytes);
}

const char *fault_action_name(enum fault_action action)
{
	static const char *const texts[FAULT_ACTIONS] = {
		[FAULT_DROP] = "drop",
		[FAULT_CORRUPT] = "corrupt",
		[FAULT_MARK] = "mark",
		[FAULT_DOUBLE] = "double",
		[FAULT_SWAP] = "swap",
		[FAULT_DELAY] = "delay",
		[FAULT_RATE] = "rate",
		[FAULT_SILENT] = "silent",
		[FAULT_FAIL] = "fail",
		[FAULT_COMPLETE] = "complete",
		[FAULT_QP_ERROR] = "error",
		[FAULT_QP_HANG] = "hang",
		[FAULT_QP_OVERFLOW] = "overflow",
		[FAULT_LINK_DOWN] = "link down",
		[FAULT_LINK_UP] = "link up",
		[FAULT_GID_MOVE] = "gid move",
		[FAULT_GID_REMOVE] = "gid remove",
		[FAULT_GID_ADD] = "gid add",
		[FAULT_DEVICE_FATAL] = "device fatal",
		[FAULT_DEVICE_HANG] = "device hang",
		[FAULT_QUOTA] = "quota",
	};

	return action < FAULT_ACTIONS ? texts[action] : "?";
}

/* The event of an action, and of its end. */
static const char *event_of(const struct fault_record *r)
{
	switch (r->action) {
	case FAULT_LINK_DOWN: return r->outcome == FAULT_UNDONE ? "IBV_EVENT_PORT_ACTIVE" : "IBV_EVENT_PORT_ERR";
	case FAULT_LINK_UP: return "IBV_EVENT_PORT_ACTIVE";
	case FAULT_GID_MOVE:
	case FAULT_GID_REMOVE:
	case FAULT_GID_ADD: return "IBV_EVENT_GID_CHANGE";
	case FAULT_QP_ERROR: return "IBV_EVENT_QP_FATAL";
	case FAULT_QP_OVERFLOW: return "IBV_EVENT_CQ_ERR";
	case FAULT_DEVICE_FATAL: return r->outcome == FAULT_UNDONE ? "" : "IBV_EVENT_DEVICE_FATAL";
	default: return "";
	}
}

void fault_shown(const struct fault_record *r, char shown[FAULT_SHOWN_BYTES])
{
	static const char *const nothing[FAULT_OUTCOMES] = {
		[FAULT_NO_QP] = "nothing: no such queue pair",
		[FAULT_NO_GID] = "nothing: no such GID",
		[FAULT_WAITS] = "nothing yet: nothing was posted",
		[FAULT_ALREADY] = "nothing: it was so already",
	};
	const char *text = event_of(r);

	if (r->outcome < FAULT_OUTCOMES && nothing[r->outcome])
		text = nothing[r->outcome];
	else if (r->action == FAULT_QUOTA)
		text = "ENOMEM";
	else if (r->action == FAULT_FAIL)
		text = name_of(errnos, COUNT(errnos), r->value);
	else if (r->action == FAULT_COMPLETE)
		text = name_of(statuses, COUNT(statuses), r->value);
	snprintf(shown, FAULT_SHOWN_BYTES, "%s", text);
}

void fault_log_add(struct fault_log *log, const struct fault_record *record)
{
	uint32_t turn = atomic_load_explicit(&log->turn, memory_order_relaxed) | 1;

	atomic_store_explicit(&log->turn, turn, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	log->records[log->record_count++ % FAULT_RECORDS_MAX] = *record;
	atomic_store_explicit(&log->turn, turn + 1, memory_order_release);
}

bool fault_log_read(const struct fault_log *log, struct fault_log *out)
{
	for (unsigned i = 0; i < READ_TRIES; i++) {
		uint32_t turn = atomic_load_explicit((_Atomic uint32_t *)&log->turn, memory_order_acquire);

		if (turn & 1)
			continue;
		memcpy(out, log, sizeof(*out));
		atomic_thread_fence(memory_order_acquire);
		if (atomic_load_explicit((_Atomic uint32_t *)&log->turn, memory_order_relaxed) != turn)
			continue;
		if (out->rule_count > FAULT_RULES_MAX)
			out->rule_count = FAULT_RULES_MAX;
		for (uint32_t k = 0; k < out->rule_count; k++)
			out->rules[k].where[FAULT_WHERE_BYTES - 1] = out->rules[k].text[FAULT_TEXT_BYTES - 1] = 0;
		for (uint32_t k = 0; k < FAULT_RECORDS_MAX; k++)
			if (out->records[k].rule != FAULT_NO_RULE)
				out->records[k].rule %= FAULT_RULES_MAX;
		return true;
	}
	return false;
}
