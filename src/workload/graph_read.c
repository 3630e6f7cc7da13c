/* SPDX-License-Identifier: BSD-2-Clause */
/* Which reader a file is for. Text is GOAL unless it begins as another format does. */
#include "workload/graph_read.h"

#include "workload/aicb.h"
#include "workload/chakra.h"
#include "workload/goal.h"

static int read_text(const struct graph_file *f, struct graph **out, struct text_error *err)
{
	return aicb_is(f->text, f->bytes) ? aicb_read(f->text, f->bytes, out, err)
					  : goal_read(f->text, f->bytes, out, err);
}

int graph_read(const struct graph_file *files, uint32_t count, struct graph **out, struct graph_fault *fault)
{
	for (uint32_t i = 0; i < count; i++) {
		fault->file = i;
		if (!files[i].text)
			return text_fail(&fault->error, 0, "rank %u has no file, and there are files of later ones",
					 (uint64_t)i);
	}
	fault->file = 0;
	if (count != 1 || chakra_is(&files[0]))
		return chakra_read(files, count, out, fault);
	return read_text(&files[0], out, &fault->error);
}
