/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether memory can be registered: what pinning its pages tells a kernel driver. */
#ifndef VERBS_PINNED_H
#define VERBS_PINNED_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Brings the pages of [addr, addr + length) into memory. 0, or EFAULT when a part of the range is
 * not there or, with `write`, may not be written.
 */
int pages_populate(const void *addr, size_t length, bool write);

#endif
