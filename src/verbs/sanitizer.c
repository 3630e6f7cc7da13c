/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the sanitizers' runtimes ask a program at its start, answered for programs that do not answer it themselves:
 * this library is loaded before the runtime, in every program that is started below `verbena run`, however it is
 * started.
 */
#include "verbs/next.h"

EXPORT const char *__asan_default_options(void);
EXPORT const char *__tsan_default_suppressions(void);

/*
 * The shared runtime of AddressSanitizer ends a program in which another library comes first, because calls might not
 * reach it. All calls that this library defines do, as they go on to the next definition. ASAN_OPTIONS are read after
 * this.
 */
const char *__asan_default_options(void)
{
	return "verify_asan_link_order=0";
}

/*
 * ThreadSanitizer sees the memory that libibverbs.so.1 copies, but not the engine's lock by which its threads take
 * turns, because that is no call. So it is told to look away there. Of descriptors it sees those that the engine opens
 * through this library, and not that the engine closes them: what is about such a one is no race either. The folder
 * makes the names ours alone.
 */
const char *__tsan_default_suppressions(void)
{
	return "called_from_lib:verbena/libibverbs.so\n"
	       "race:verbena/libverbena-paths.so\n";
}
