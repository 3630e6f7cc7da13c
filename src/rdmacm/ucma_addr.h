/* SPDX-License-Identifier: BSD-2-Clause */
/* Between socket addresses and struct cm_addr. */
#pragma once

#include <netinet/in.h>
#include <stddef.h>

#include "cm/cm.h"

/* Reads `len` bytes. -EAFNOSUPPORT: no IP address. -EINVAL: cut off, or a link-local address without its scope. */
int ucma_addr_read(struct cm_addr *out, const void *sockaddr, size_t len);
/* Writes at most `room` bytes: zeros if there is no address. Returns the size of the whole address. */
size_t ucma_addr_write(void *sockaddr, size_t room, const struct cm_addr *);
