/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The other end of sdr_cp on a host that ssh reaches: it is started there, and what the two ends say to each other goes
 * through ssh, which has proved who each of them is. Both ends have a stream socket for it, as with meet(). Errors end
 * the program.
 *
 * Private to tools/sdr.
 */
#pragma once

#include <stdbool.h>

/* The command that is run there unless the user names another: with Verbena if this end runs on it. */
const char *remote_command(void);

/* Whether `text` is HOST:PATH, or HOST::PATH for a host where an sdr_cp waits for senders. An IPv6 address is a host in
 * brackets. Both are written, and are the caller's. */
enum remote_kind { REMOTE_NONE, REMOTE_SHELL, REMOTE_SERVER };
enum remote_kind remote_split(const char *text, char **host, char **path);

/* Runs `shell` (words between spaces, as "ssh -p 22") with the host and "`command` --server", and waits for the other
 * end's greeting. A socket. */
int remote_start(const char *shell, const char *host, const char *command);
/* Waits for the shell, which may have something to say. The socket is closed. */
void remote_end(int fd);

/* At the end that was started: a socket for standard input and output, which are something else afterwards. */
int remote_serve(void);
/* The addresses of the two hosts, as sshd has them: of this end, and of the one that started it. NULL: not known; valid
 * until the next of these calls. */
const char *remote_here(void);
const char *remote_there(void);
