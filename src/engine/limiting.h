/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The limits of the device (limits/limits.h) as its engine keeps to them: verbs ask engine_room() before they make an
 * object, what there is is noted whenever they are done, and the loop holds back data.
 *
 * Private to src/engine.
 */
#pragma once

#include <stddef.h>

#include "engine/state.h"

/* Takes a place in the device, if the settings give limits. 0, or a negative errno with a sentence in why. */
int limiting_open(struct engine *, char *why, size_t why_bytes);
/* Lock held: the process ends. */
void limiting_close(struct engine *);
/* Lock held, with a place: what the nic has now. */
void limiting_note(struct engine *);
