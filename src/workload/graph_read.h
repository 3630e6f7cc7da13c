/* SPDX-License-Identifier: BSD-2-Clause */
/* Graphs from files, whose first bytes say which format they have. */
#pragma once

#include "workload/graph.h"

/* *Borrowed* while it is read. */
struct graph_file {
	const char *text; /* NULL: there is no such file */
	size_t bytes;
};

/* Where a file is wrong. */
struct graph_fault {
	uint32_t file; /* index of the file */
	struct text_error error;
};

/*
 * One file for all ranks, or a file for each. 0 with the finished graph in *out, which the caller frees; -EINVAL with
 * *fault; -ENOMEM.
 */
int graph_read(const struct graph_file *files, uint32_t count, struct graph **out, struct graph_fault *fault);
