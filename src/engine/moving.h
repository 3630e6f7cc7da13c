/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a device whose time stands still goes to another network namespace of this machine. The sockets there are made by
 * its thread, which goes with it; the program's threads stay where they are (io/net.h).
 *
 * Private to src/engine.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/state.h"

/*
 * The engine's thread, lock held. `to` is *borrowed*. with_addresses: those that queue pairs are connected from and that are
 * not there yet move too. 0, or a negative errno with a sentence in why, and everything is where it was.
 */
int moving_go(struct engine *, int to, bool with_addresses, char *why, size_t why_bytes);
