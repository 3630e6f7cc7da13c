/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The flow lists of two other simulators, so that one input drives all three.
 *
 * hpcc-flows (simulation/mix/flow.txt of the HPCC simulator): a count, then as many of
 *
 *   src dst class dport bytes start_s          3 1 3 100 200000000 2
 *
 * Words may be split over lines at will; text after the last flow is not read, as in that
 * simulator. `class` is taken as the traffic class (0 to 7); dport is checked (0 to 65535) and has
 * no further meaning here.
 *
 * htsim-matrix (connection matrices of csg-htsim): lines, '#' begins one that is a comment,
 *
 *   Nodes n
 *   Connections m
 *   Triggers t                                 if there are any
 *   a->b id i start ps size bytes
 *   a->b id i trigger t size bytes [send_done_trigger u] [recv_done_trigger v] [prio p]
 *   trigger id t oneshot | multishot | barrier count c
 *
 * `start` is in ps (a fraction is rounded); ids are from 1 and unique; `prio` is read and has no
 * meaning here. A oneshot releases all its flows, a multishot the next of them each time it fires,
 * a barrier all of them when it has fired c times. Failures are not read: links fail by other means
 * here.
 *
 * Private to src/workload.
 */
#pragma once

#include "workload/workload_part.h"

/* The readers are kinds of part: hpcc_flows_create and htsim_matrix_create. */
