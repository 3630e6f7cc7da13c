/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SIGSEGV and SIGBUS, shared with the program. Once claimed, the process's handler of both is ours: a fault of
 * an instruction that the fix-up knows goes on where that says, anything else is handed to the handler that
 * the program has, or would have: faults_action() is its sigaction() for these two signals. What it sees is
 * what it would see without us: mask, alternate stack, one-shot handlers, the siginfo and the context, and a
 * death by the signal, with a core, where it has no handler.
 *
 * A program's call of sigaction() is led here by the library that `verbena run` preloads (signals.c). Without
 * that library a handler that the program installs after the claim takes the place of ours.
 */
#ifndef VERBS_FAULTS_H
#define VERBS_FAULTS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Where to go on after a fault at pc; 0: that is not for us. Called in a signal handler. */
typedef uintptr_t fault_fixup(uintptr_t pc);

/* From now on, for good. A second claim is the first. Forks are looked after. */
void faults_claim(fault_fixup *);

static inline bool faults_has(int sig)
{
	return sig == SIGSEGV || sig == SIGBUS;
}

/* sigaction() as the program means it, claimed or not; sig is one of the two. */
int faults_action(int sig, const struct sigaction *act, struct sigaction *old);

/* sigaction() as the kernel means it; whoever links faults.c provides it. */
int faults_kernel_action(int sig, const struct sigaction *act, struct sigaction *old);

/*
 * For a signal that was sent and not caused: whether the program has blocked it in this thread, whose mask the
 * kernel says is `mask`, so that it shall wait. Whoever links faults.c provides it.
 */
bool faults_is_blocked(int sig, const sigset_t *mask);

#endif
