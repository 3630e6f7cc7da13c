/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions that the subcommands of `verbena` share. */
#pragma once

#include <stdint.h>
#include <stdio.h>

enum {
	EXIT_OURS = 125, /* verbena itself failed, as with env(1) and timeout(1) */
	EXIT_NOT_EXECUTABLE = 126,
	EXIT_NOT_FOUND = 127,
	ADDRESS_BYTES = 48
};

/* Each gets its own name as argv[0] and returns the exit status. */
int cmd_run(int argc, char **argv);
int cmd_devices(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_qps(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_fault(int argc, char **argv);
int cmd_freeze(int argc, char **argv);
int cmd_thaw(int argc, char **argv);
int cmd_move(int argc, char **argv);
int cmd_stat(int argc, char **argv);
int cmd_sim(int argc, char **argv);
int cmd_sdr(int argc, char **argv);
int cmd_fabric(int argc, char **argv);

/* Prints "verbena: " and a sentence to stderr; returns EXIT_OURS. */
int complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Says where help is, after getopt has named an unknown option. Returns EXIT_OURS. */
int usage_error(const char *command);

/* A GID in the usual notation of addresses: 192.0.2.1, fe80::1. */
const char *gid_text(const uint8_t raw[16], char text[ADDRESS_BYTES]);

/* A JSON string, quotes included. */
void json_string(FILE *, const char *);

/*
 * Copies a text of another process, at most len bytes or to its end, with '?' in place of all that is not printable
 * ASCII: root looks at it on a terminal.
 */
void printable(char *to, size_t size, const char *from, size_t len);
