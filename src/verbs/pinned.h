/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether memory is there, which a kernel driver learns by pinning its pages. Private to src/verbs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * 0, or EFAULT when a part of [addr, addr + length) does not exist or, with `write`, may not be written.
 * Afterwards all pages of a short range are in memory; those of a long one are as before.
 */
int pages_check(const void *addr, size_t length, bool write);

/* Likewise, and afterwards all pages are in memory, and writable ones are the process's own with `write`. */
int pages_bring_in(const void *addr, size_t length, bool write);
