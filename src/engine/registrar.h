/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process's part in the election of the registrar: the one to which messages come that name nobody, and which tells
 * the peers of those who were killed (docs/rdmacm.md 7).
 *
 * Private to src/engine.
 */
#pragma once

#include <stdint.h>

#include "engine/loop.h"

/* The process uses connection management from now on. Harmless a second time. */
void registrar_join(struct loop *, uint64_t now_ns);
/* The process has joined the group again, or another one, with what cm_rejoin() did. */
void registrar_return(struct loop *, uint64_t now_ns);
/* After group_service(), and when registrar_deadline_ns() is over. */
void registrar_serve(struct loop *, uint64_t now_ns);
uint64_t registrar_deadline_ns(const struct loop *);
