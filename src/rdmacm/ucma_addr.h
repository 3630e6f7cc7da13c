/* SPDX-License-Identifier: BSD-2-Clause */
/* Socket addresses as cm has them. */
#ifndef RDMACM_UCMA_ADDR_H
#define RDMACM_UCMA_ADDR_H

#include <netinet/in.h>
#include <stddef.h>

#include "cm/cm.h"

/* From `len` bytes. -EAFNOSUPPORT: no IP address, -EINVAL: cut off, or the scope of a link-local one is missing. */
int ucma_addr_read(struct cm_addr *out, const void *sockaddr, size_t len);
/* Writes what has been read before; of no address, zeros. At most `room` bytes. How many it takes. */
size_t ucma_addr_write(void *sockaddr, size_t room, const struct cm_addr *);

#endif
