/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Says why a call is refused, for programs that can report no more than an errno: one line on
 * standard error, once for each cause, and none with VERBENA_QUIET. Calls by which programs probe
 * for a feature (dmabufs, more and more inline bytes) are refused silently.
 *
 * Private to src/verbs and src/rdmacm.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

/* Prints the line, unless *told shows that this was done. Returns err and keeps errno. */
int explain(atomic_flag *told, int err, const char *fmt, ...) __attribute__((cold, format(printf, 3, 4)));

/* Whether VERBENA_QUIET is set. Only a thread of the program's may ask: another one may set variables meanwhile. */
bool explain_is_quiet(void);
/* Explains something that no call has asked for, on the engine's thread. The caller has checked that a line may be
 * printed. */
void explain_unasked(atomic_flag *told, const char *fmt, ...) __attribute__((cold, format(printf, 2, 3)));

/* Each use in the source is a cause of its own. */
#define EXPLAIN(err, ...)                                        \
	({                                                       \
		static atomic_flag told_here = ATOMIC_FLAG_INIT; \
		explain(&told_here, err, __VA_ARGS__);           \
	})
