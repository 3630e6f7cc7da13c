/* SPDX-License-Identifier: BSD-2-Clause */
/* The local address from which the kernel would send to a destination. */
#pragma once

#include <stddef.h>

#include "cm/cm.h"

/* The call route of struct ucma_host. It sends no packet and does not block. */
int source_find(struct cm_addr *src, struct cm_addr *dst);
/*
 * Likewise, from one of our own addresses alone. The kernel prefers one of the host's, so where it is asked without a
 * source and names another, the destination is taken if it is ours, or else the first of ours that it sends from; a
 * destination that is the wildcard is that address.
 */
int source_find_among(const struct cm_addr *own, size_t count, struct cm_addr *src, struct cm_addr *dst);
/* The first port that this process may bind: 0 for root, else the first that needs no privilege. */
uint16_t source_first_port(void);
