/* SPDX-License-Identifier: BSD-2-Clause */
/* A command that is carried out. Private to src/rdmacm. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "rdmacm/ucma.h"

struct call {
	const struct ucma_host *host;
	const struct ucma_end *ends; /* *borrowed* */
	size_t count;                /* of them */
	const struct ucma_end *at;   /* the one where the command is carried out */
	uint32_t number;             /* of commands that name an id, */
	struct cm_id *id;            /* and that id there */
	size_t out;                  /* bytes that the program has room for */
	uint32_t taken;              /* events of the id that the program has had */
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

typedef int command_fn(struct call *, const void *bytes);

/* Goes on with the id as it is on a device, or on the first that has it. False: it is not there. */
bool call_go_to(struct call *, const struct ucma_end *);
bool call_go_to_first(struct call *);
/* Carries it out on each device that has the id, to the first error, and ends at the first of them. */
int call_on_each(struct call *, command_fn *, const void *bytes);

/* The commands of their names, likewise: these decide on which device the id is. */
command_fn bind_ip, bind_any, resolve_ip, resolve_addr, listen_for;
