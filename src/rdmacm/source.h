/* SPDX-License-Identifier: BSD-2-Clause */
/* The local address from which the kernel would send to a destination. */
#ifndef RDMACM_SOURCE_H
#define RDMACM_SOURCE_H

#include "cm/cm.h"

/* The call route of struct ucma_host. It sends no packet and does not block. */
int source_find(struct cm_addr *src, struct cm_addr *dst);
/* The first port that this process may bind: 0 for root, else the first that needs no privilege. */
uint16_t source_first_port(void);

#endif
