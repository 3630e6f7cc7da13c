/* SPDX-License-Identifier: BSD-2-Clause */
/* What a program that is dumped shares with others: its TCP connections, and pipes whose other end is another program's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { ENDS_PIPES_MAX = 8 };

/*
 * The local address of the TCP connection with that number, counted from 0. False: there are no more. Those that listen are
 * none.
 */
bool ends_tcp_address(pid_t, int pidfd, size_t number, uint8_t gid[16]);
/*
 * The process's TCP connections take nothing that arrives, not even to acknowledge it, or they do again. An image made of
 * them has that, too. False: that cannot be had.
 */
bool ends_deafen(pid_t, int pidfd, bool deaf);

struct ends_pipe {
	unsigned long inode;
	int fd; /* the caller's to close */
};

/* Pipes of which the process has one end only, each once. How many there are. */
size_t ends_pipes(pid_t, int pidfd, struct ends_pipe pipes[ENDS_PIPES_MAX]);
