/* SPDX-License-Identifier: BSD-2-Clause */
/* Which reader a file is for. */
#include "workload/graph_read.h"

#include "workload/goal.h"

int graph_read(const struct graph_file *files, uint32_t count, struct graph **out, struct graph_fault *fault)
{
	for (uint32_t i = 0; i < count; i++) {
		fault->file = i;
		if (!files[i].text)
			return text_fail(&fault->error, 0, "rank %u has no file, and there are files of later ones",
					 (uint64_t)i);
	}
	fault->file = 0;
	if (count != 1)
		return text_fail(&fault->error, 0, "%u files of GOAL text; it has one for all ranks", (uint64_t)count);
	return goal_read(files[0].text, files[0].bytes, out, &fault->error);
}
