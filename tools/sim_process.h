/* SPDX-License-Identifier: BSD-2-Clause */
/* The processes of programs in simulated time: how they start and end, and what the kernel shows of them. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sim_turns.h"

/* From here on orphans of programs are this process's children, so that process_end_all() finds them. */
void process_adopt(void);
/*
 * Starts the program, in a group of processes of its own, which dies with this process. It inherits the page's
 * descriptor and *socket_fd's other end. The pid, or a negative errno.
 */
pid_t process_start(const struct turns_program *, size_t rank, size_t ranks, int page_fd, int *socket_fd);
/* Kills those programs, and every other child of this process. */
void process_end_all(const struct turns_program *, size_t count);
/* "thread 17 waits in futex, thread 18 in read", as far as it fits. */
void process_waits_text(pid_t, char *text, size_t bytes);
