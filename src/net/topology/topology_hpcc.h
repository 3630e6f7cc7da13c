/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The topology text of the HPCC simulator (simulation/mix/fat.txt there):
 *
 *   nodes switches links
 *   the switches' node numbers
 *   a b rate delay error       one a link: 0 320 100Gbps 1000ns 0.000000
 *
 * Nodes are numbered 0 .. nodes-1; those that are no switches are hosts. `error` is the share of
 * packets lost. Words may be split over lines at will; text after the last link is not read.
 */
#pragma once

#include <stddef.h>

#include "net/topology/topology.h"

/* As topology_build. */
int topology_read_hpcc(struct topology *, const char *text, size_t bytes, struct text_error *);
