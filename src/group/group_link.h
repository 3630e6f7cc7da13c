/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Abstract-name sockets between processes of one user, and records with descriptors over them. All
 * sockets are SOCK_SEQPACKET, close-on-exec and non-blocking.
 *
 * Private to src/group.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "group/group.h"

enum {
	LINK_LOCK = -1, /* in place of a slot: a lock's name; further locks count down */
	LINK_LOCKS = 8
};

enum { LINK_NO_UID = -1 };

struct link_peer {
	pid_t pid; /* 0: not visible from our PID namespace */
	uid_t uid; /* LINK_NO_UID: one that our user namespace has no number for */
};

/*
 * Whether this number belongs to one user only. For a user without a number in our user namespace the kernel
 * shows the overflow uid: the same one for all such users, ourselves included, and for a `nobody` with that
 * number.
 */
bool link_uid_is_certain(uid_t uid);

/*
 * Names. A slot's belongs to a group; a lock's to all groups of the user on that port, so that no two of them settle
 * their addresses at the same time.
 *
 * A socket with a name, which nobody can reach yet, or a negative errno; -EADDRINUSE: the name is
 * taken.
 */
int link_reserve(const struct group_id *, int slot);
/* Makes it reachable for others. 0 or a negative errno; it stays open. */
int link_publish(int fd);

/* Both at once. */
int link_listen(const struct group_id *, int slot);

/*
 * A socket connected to a name, and the process that listens there. -ECONNREFUSED: there is none;
 * -EAGAIN: it does not accept; -EPERM with *peer set: it belongs to another user.
 */
int link_connect(const struct group_id *, int slot, struct link_peer *peer);

/* The process at the other end of a connected socket. */
struct link_peer link_peer_of(int fd);

/*
 * Whether a process is stopped now, by a signal or a debugger, as far as /proc shows. Only a hint, which
 * saves waiting in vain.
 */
bool link_is_stopped(pid_t pid);

/* Sends one record, the concatenation of head and data. Never blocks, never raises SIGPIPE. */
int link_send(int fd, const void *head, size_t head_len, const void *data, size_t data_len, const int *fds,
	      size_t fd_count);

/*
 * Takes one record. The length; 0 at the end; -EAGAIN: none; -EMFILE: we have no room for its
 * descriptors; -EMSGSIZE: it is longer than max. Descriptors are stored only with a positive
 * length, and then the caller owns them.
 */
ssize_t link_recv(int fd, void *buf, size_t max, int *fds, size_t fds_max, size_t *fd_count);

/* Closes those that are not -1. */
void link_close_all(const int *fds, size_t count);
