/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What fails on command: the fault engine says what (faults/faults.h), and this does it to the device. Its rules come
 * from VERBENA_FAULTS, from VERBENA_IMPAIR and, while the program runs, from `verbena fault`.
 *
 * Private to src/engine.
 */
#pragma once

#include <stddef.h>

#include "engine/state.h"

/* Before the back end: makes the engine if the settings ask for faults. 0, or a negative errno with a sentence in why. */
int faulting_open(struct engine *, char *why, size_t why_bytes);
/* Puts the wrapper for packets around *io if there is an engine. Likewise; *io stays as it is when it fails. */
int faulting_wrap(struct engine *, struct io **io, char *why, size_t why_bytes);

/* Lock held, with an engine: does what is due. */
void faulting_serve(struct engine *, uint64_t now_ns);
/* The engine's thread, lock not held: what is due to the port. True: the port or its table has changed. */
bool faulting_serve_port(struct engine *);
/* Lock held, after group_service(): takes commands and answers them. */
void faulting_commands(struct engine *, uint64_t now_ns);
