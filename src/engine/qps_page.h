/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the queue pairs and paths of a process do, for tools that ask: pages of a memory file that is written once and
 * sealed. Nothing is kept for it between two questions, so it costs nothing where nobody asks; and a process answers a first
 * question once a second, each question within some 2 ms.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "nic/nic.h"

#define QPS_PAGE_MAGIC 0x76627170u /* "vbqp" */

enum { QPS_PAGE_VERSION = 1, QPS_PAGE_QPS_MAX = 4096, QPS_PAGE_PATHS_MAX = 1024 };

struct qps_page {
	uint32_t magic;
	uint32_t version;
	uint32_t bytes; /* of this struct: a second guard against another layout */
	uint32_t qp_count, path_count;
	uint32_t next;    /* where to ask on; 0: these were the last QPs */
	uint32_t unpaths; /* paths are missing: there are more than fit */
	uint32_t reserved;
	uint64_t at_ns;                                 /* by the process's clock */
	uint64_t took_ns;                               /* of the process's time, for this page */
	struct nic_counters counters;                   /* at the same time */
	struct nic_path_look paths[QPS_PAGE_PATHS_MAX]; /* in the first page */
	struct nic_qp_look qps[QPS_PAGE_QPS_MAX];       /* the file ends behind the last one */
};

struct engine;

/* The engine's: tools that ask one after the other. */
struct qps_round {
	uint64_t again_ns; /* when a first question is answered again */
	uint32_t next;     /* the only other place from which one is answered; 0: none */
};

/* Lock held. Answers a tool of the group, if one asks. */
void qps_page_serve(struct engine *);
