/* SPDX-License-Identifier: BSD-2-Clause */
/* Which local address leads to a destination: the kernel is asked. */
#ifndef RDMACM_SOURCE_H
#define RDMACM_SOURCE_H

#include "cm/cm.h"

/* See struct ucma_host. Blocks for nothing: no packet is sent. */
int source_find(struct cm_addr *src, struct cm_addr *dst);
/* The first port that needs no privilege, or 0 for a process that has it. */
uint16_t source_first_port(void);

#endif
