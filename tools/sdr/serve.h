/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sdr_cp that waits for any number of senders: a process for each. They come by TCP, from addresses that the user allows.
 *
 * Private to tools/sdr.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Whether an address, as text, is in a list of "ADDRESS[/BITS]" with commas between, or "any". A word of the list that is
 * none of these ends the program. */
bool serve_allows(const char *list, const char *address);

/* Waits at a TCP port, for ever. Returns in a new process, with the connection to a sender that has said the greeting. */
int serve(uint16_t port, const char *list);
