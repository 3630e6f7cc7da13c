/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The network namespace of the devices of this process: that of its threads, or another one to which they were moved. A
 * socket belongs to the namespace in which it is made, for good, so all of them are made here.
 */
#pragma once

#include <stdbool.h>

/* As socket(2). */
int net_socket(int domain, int type, int protocol);

/*
 * From now on sockets are made in that namespace. *Takes* the descriptor; -1: in that of whichever thread makes one.
 * Returns the one before, which is the caller's.
 */
int net_set(int fd);

/*
 * The calling thread goes there and stays: for what libc and /proc show it of interfaces. 0, or a negative errno as
 * setns(2).
 */
int net_enter(int fd);
/* It comes back, by what net_own() returned before. */
void net_leave(int own);
/* The calling thread's own, to return to; the caller closes it. A negative errno: it cannot be had. */
int net_own(void);
