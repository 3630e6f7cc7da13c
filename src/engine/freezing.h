/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device whose time stands still on command, and one that goes to another network namespace: `verbena freeze`, `thaw`
 * and `move`. The engine's thread does it and holds the lock all the while: posts fill their queues, polls find what is
 * there, and calls that need the lock wait.
 *
 * Private to src/engine.
 */
#pragma once

#include "engine/state.h"

/* Lock held, after group_service(): hands commands to the thread. */
void freezing_commands(struct engine *);
/* Obeys the commands that wait. Called by the engine's thread, with the lock not held. */
void freezing_obey(struct engine *);
