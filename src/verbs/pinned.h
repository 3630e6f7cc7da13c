/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether memory can be registered: what pinning its pages tells a kernel driver. */
#ifndef VERBS_PINNED_H
#define VERBS_PINNED_H

#include <stdbool.h>
#include <stddef.h>

/*
 * 0, or EFAULT when a part of [addr, addr + length) is not there or, with `write`, may not be written. The
 * pages of a short range are in memory then, of a long one those that were.
 */
int pages_check(const void *addr, size_t length, bool write);

#endif
