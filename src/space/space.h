/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of the device itself, in addresses that are the device's alone. A program may unmap or free a region and
 * forget to deregister it; with its key peers may still write there. The addresses are then the program's to use again,
 * and must never become those of a ring, a queue or a packet buffer. So the first call reserves a part of the address
 * space, which takes no memory, and everything of ours lies in it; it is never given back.
 *
 * Where the limit of the process's address space (ulimit -v) leaves no room for that, and for what is beyond its end,
 * memory comes from the kernel at any address. All calls may be made by any thread, and none for a packet.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/alloc.h"
#include "base/own.h"

/* Zeroed memory aligned to 64 bytes, or NULL and errno. Long pieces take no memory until they are touched. */
void *space_get(size_t bytes);
/* Takes back what space_get(bytes) gave. Harmless on NULL. */
void space_put(void *, size_t bytes);
/* The same for the core. */
extern const struct alloc space_alloc;

/* Maps the first bytes of a memory file, for reading and writing, shared. NULL and errno if that cannot be. */
void *space_map(int fd, size_t bytes);
void space_unmap(void *, size_t bytes);

/*
 * All addresses of the device's: what is reserved, and this library's own code and data. Once memory comes from anywhere
 * else, all that there are.
 */
extern struct own space_own;

/* Whether some of these bytes are reserved for the device. */
bool space_has(const void *, size_t bytes);

/* Around a fork, in both processes, by the thread that forks: the last lock that it takes. */
void space_fork_begin(void);
void space_fork_end(void);
