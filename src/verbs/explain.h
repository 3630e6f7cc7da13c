/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Why a call is refused, in words, for programs that can report no more than an errno: one line on
 * standard error, once a cause, and none with VERBENA_QUIET. What programs try in order to learn
 * whether it works (memory windows, dmabufs, ever more inline bytes) is refused without a word.
 */
#ifndef VERBS_EXPLAIN_H
#define VERBS_EXPLAIN_H

#include <stdatomic.h>

/* Says it, unless *told says that it was said. Returns err and keeps errno. */
int explain(atomic_flag *told, int err, const char *fmt, ...)
	__attribute__((cold, format(printf, 3, 4)));

/* Each place in the source is a cause. */
#define EXPLAIN(err, ...)                                                                          \
	({                                                                                         \
		static atomic_flag told_here = ATOMIC_FLAG_INIT;                                   \
		explain(&told_here, err, __VA_ARGS__);                                             \
	})

#endif
