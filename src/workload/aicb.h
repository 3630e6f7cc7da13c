/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Workloads of AICB, as SimAI reads them: a header, the number of rows, and a row for each layer:
 *
 *     HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 32 ...
 *     1
 *     name -1 FORWARD_NS COLLECTIVE BYTES  INPUT_NS COLLECTIVE BYTES  WEIGHT_NS COLLECTIVE BYTES  UPDATE_NS
 *
 * A rank goes through the rows and back. Forward: compute, then its collective, for which the next row waits. Backward:
 * the input gradient's compute and its collective; beside that collective the weight gradient's compute; the next row
 * waits for both. The weight gradient's collective has a stream of its own, and only the update waits for it. A row of
 * checkpoint_initiates first repeats the forward rows since the last one of checkpoints.
 *
 * Ranks are numbered by tensor group, then data parallel group, then stage. A collective without a suffix is one of the
 * tensor group, of weights one of the data parallel group; _EP is one of the expert group, `ep` neighbours of a data
 * parallel group, and _DP_EP one of those that have the same expert. Bytes are S of collective.h. With pp > 1 each stage
 * has all rows, receives pp_comm bytes before them and sends as many behind them, forward and backward. vpp and ga have
 * no effect: a file has the rows of all micro-batches.
 */
#pragma once

#include <stddef.h>

#include "workload/graph.h"

/* Whether the text begins with the header of such a workload. */
bool aicb_is(const char *text, size_t bytes);

/* 0 with the finished graph in *out, which the caller frees; -EINVAL with the line and the reason; -ENOMEM. */
int aicb_read(const char *text, size_t bytes, struct graph **out, struct text_error *);
