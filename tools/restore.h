/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbena move --restore`: a whole program goes to another network namespace, by CRIU. */
#pragma once

#include <stdbool.h>

#include "reach.h"

/*
 * The caller is in the network namespace of the devices; `there` is *borrowed*. Prints what the process is then.
 * EXIT_SUCCESS; or EXIT_OURS, it has been said why, and the program goes on where it was, if that is possible at all.
 */
int restore_move(const struct reached *, int there, bool with_addresses);
