/* SPDX-License-Identifier: BSD-2-Clause */
/* A command that is carried out. Private to src/rdmacm. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "rdmacm/ucma.h"

struct call {
	const struct ucma_host *host;
	struct cm *cm;
	struct cm_channel *channel;
	struct cm_id *id; /* of commands that name one */
	size_t out;       /* bytes that the program has room for */
	uint64_t now_ns;
};

/*
 * Writes as much of an answer to the program's memory as there is room for: older libraries know less of it. 0, or
 * -EFAULT.
 */
int call_answer(const struct call *, uint64_t to, const void *from, size_t len);
/* Reads the program's memory. 0, or -EFAULT. */
int call_read(const struct call *, void *to, uint64_t from, size_t len);

/* QUERY_ROUTE and QUERY; the bytes of the command are copied and complete. */
int query_route(struct call *, const void *bytes);
int query_any(struct call *, const void *bytes);
