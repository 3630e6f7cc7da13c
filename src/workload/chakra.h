/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chakra execution traces, schema 0.0.4: a file for each rank, a row of protobuf messages of which each follows its
 * length as a varint. The first is GlobalMetadata with the version, the others are nodes, which are ordered by their ids.
 *
 *   compute     takes `runtime` us if it has that attribute, else duration_micros; on stream 0, with is_cpu_op = true on
 *               stream 2. num_ops and tensor_size are for a model of the processor, and there is none
 *   memory      the same, on stream 3
 *   send, recv  comm_size bytes to comm_dst, or from comm_src, with comm_tag; a send holds stream 1, a receive none
 *   collective  comm_type, comm_size bytes, on stream 1, among the group pg_name, or all ranks; comm_src is the root,
 *               else the group's first rank is
 *   others      take no time
 *
 * comm_size is what a rank puts in, so an all-gather of n ranks is one of n x comm_size (collective.h), and so is a
 * gather; that of a scatter is the root's. Nodes wait for the ends of their ctrl_deps and data_deps. A group is made of
 * the ranks whose files have a collective with that pg_name. Fields and attributes of other names are skipped, and
 * counted in graph.skipped.
 */
#pragma once

#include "workload/graph_read.h"

/* Whether the bytes can be the beginning of a trace. */
bool chakra_is(const struct graph_file *);

/*
 * `files` is by rank. 0 with the finished graph in *out, which the caller frees; -EINVAL with *fault, whose line is the
 * number of the message, from 1; -ENOMEM.
 */
int chakra_read(const struct graph_file *files, uint32_t count, struct graph **out, struct graph_fault *fault);
