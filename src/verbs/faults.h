/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SIGSEGV and SIGBUS, shared with the program. Once claimed, the process's handler of both is ours. After a
 * fault of an instruction that the fix-up knows, execution continues at the place that the fix-up gives; every
 * other signal goes to the program's handler. faults_action() is the program's sigaction() for these two
 * signals. The program sees the same as without us: mask, alternate stack, one-shot handlers, siginfo and
 * context, and, without a handler, a death by the signal with a core.
 *
 * The library that `verbena run` preloads (signals.c) redirects a program's sigaction() to here. Without that
 * library a handler that the program installs after the claim takes the place of ours.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Where execution continues after a fault at pc; 0: not our fault. Called in a signal handler. */
typedef uintptr_t fault_fixup(uintptr_t pc);

/*
 * Claims both signals for the life of the process. A second call changes nothing. A fork needs no
 * further call.
 */
void faults_claim(fault_fixup *);

static inline bool faults_has(int sig)
{
	return sig == SIGSEGV || sig == SIGBUS;
}

/* The program's sigaction(), claimed or not; sig is one of the two. */
int faults_action(int sig, const struct sigaction *act, struct sigaction *old);

/* The kernel's sigaction(); the library that links faults.c provides it. */
int faults_kernel_action(int sig, const struct sigaction *act, struct sigaction *old);

/*
 * For a signal that was sent and not caused by an instruction: whether the program has blocked it in this
 * thread, so that it must wait; `mask` is the thread's mask in the kernel. The library that links faults.c
 * provides it.
 */
bool faults_is_blocked(int sig, const sigset_t *mask);
