/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The other half of the library to preload. Calls that set the action of SIGSEGV or SIGBUS go through
 * faults.c, which stands between the program and the kernel once the device is open. Neither signal is ever
 * really blocked, because a fault whose signal is blocked ends the process at once. The library keeps what
 * the program asked for, and returns it in queries. Other signals are untouched.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "verbs/faults.h"
#include "verbs/next.h"

static int missing(void)
{
	errno = ENOSYS;
	return -1;
}

#define NEXT_MISSING missing()

typedef int sigaction_type(int, const struct sigaction *, struct sigaction *);
typedef int mask_fn(int, const sigset_t *, sigset_t *);
typedef void (*handler_fn)(int);
typedef handler_fn signal_fn(int, handler_fn);

/* ---- actions ----------------------------------------------------------------------------------- */

int faults_kernel_action(int sig, const struct sigaction *act, struct sigaction *old)
{
	NEXT(sigaction);
	return call(sig, act, old);
}

EXPORT int sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	return faults_has(sig) ? faults_action(sig, act, old) : faults_kernel_action(sig, act, old);
}

/* How libibverbs.so.1 finds this library. */
EXPORT void verbena_faults_claim(fault_fixup *);
void verbena_faults_claim(fault_fixup *f)
{
	faults_claim(f);
}

static bool interrupts[2]; /* set by siginterrupt(), for later calls of signal() */

static handler_fn set_handler(int sig, handler_fn handler, int flags)
{
	struct sigaction act = {.sa_handler = handler, .sa_flags = flags}, old;

	if (handler == SIG_ERR) {
		errno = EINVAL;
		return SIG_ERR;
	}
	if (!(flags & (int)SA_RESETHAND))
		sigaddset(&act.sa_mask, sig);
	return faults_action(sig, &act, &old) ? SIG_ERR : old.sa_handler;
}

#undef NEXT_MISSING
#define NEXT_MISSING (missing(), SIG_ERR)

#define WRAP_SIGNAL(name, flags)                                                                \
	EXPORT handler_fn name(int sig, handler_fn handler);                                    \
	handler_fn name(int sig, handler_fn handler)                                            \
	{                                                                                       \
		NEXT(name);                                                                     \
		return faults_has(sig) ? set_handler(sig, handler, flags) : call(sig, handler); \
	}

#define signal_type        signal_fn
#define bsd_signal_type    signal_fn
#define ssignal_type       signal_fn
#define sysv_signal_type   signal_fn
#define __sysv_signal_type signal_fn
#define BSD_FLAGS          (interrupts[sig == SIGBUS] ? 0 : SA_RESTART)
#define SYSV_FLAGS         ((int)SA_RESETHAND | SA_NODEFER)

WRAP_SIGNAL(signal, BSD_FLAGS)
WRAP_SIGNAL(bsd_signal, BSD_FLAGS)
WRAP_SIGNAL(ssignal, BSD_FLAGS)
WRAP_SIGNAL(sysv_signal, SYSV_FLAGS)
WRAP_SIGNAL(__sysv_signal, SYSV_FLAGS)

#undef NEXT_MISSING
#define NEXT_MISSING missing()

typedef int siginterrupt_type(int, int);
typedef int sigignore_type(int);

EXPORT int siginterrupt(int sig, int flag)
{
	struct sigaction act;
	NEXT(siginterrupt);

	if (!faults_has(sig))
		return call(sig, flag);
	interrupts[sig == SIGBUS] = flag;
	faults_action(sig, NULL, &act);
	act.sa_flags = flag ? act.sa_flags & ~SA_RESTART : act.sa_flags | SA_RESTART;
	return faults_action(sig, &act, NULL);
}

EXPORT int sigignore(int sig)
{
	NEXT(sigignore);
	if (!faults_has(sig))
		return call(sig);
	return set_handler(sig, SIG_IGN, (int)SA_RESETHAND) == SIG_ERR ? -1 : 0;
}

/* ---- masks ------------------------------------------------------------------------------------- */

/* Which of the two this thread has blocked, as the program sees it; valid after its first call. */
static __thread struct {
	sigset_t blocked;
	bool known;
} mine __attribute__((tls_model("initial-exec")));

/*
 * Until then the thread has its inherited mask, which the kernel knows except for these two: if all other
 * signals are blocked, these two count as blocked as well.
 */
static bool has_everything_else(const sigset_t *mask)
{
	for (int sig = 1; sig < 32; sig++) {
		if (sig != SIGKILL && sig != SIGSTOP && !faults_has(sig) && sigismember(mask, sig) != 1)
			return false;
	}
	return true;
}

bool faults_is_blocked(int sig, const sigset_t *mask)
{
	return mine.known ? sigismember(&mine.blocked, sig) == 1 : has_everything_else(mask);
}

static void know(mask_fn *call)
{
	sigset_t mask;

	if (mine.known || call(SIG_BLOCK, NULL, &mask))
		return;
	if (has_everything_else(&mask)) {
		sigaddset(&mine.blocked, SIGSEGV);
		sigaddset(&mine.blocked, SIGBUS);
	}
	mine.known = true;
}

static void note(int how, int sig, const sigset_t *set)
{
	bool named = sigismember(set, sig) == 1;

	if (how == SIG_SETMASK ? named : named && how == SIG_BLOCK)
		sigaddset(&mine.blocked, sig);
	else if (named || how == SIG_SETMASK)
		sigdelset(&mine.blocked, sig);
}

static int set_mask(mask_fn *call, int how, const sigset_t *set, sigset_t *old)
{
	sigset_t ours, before;
	int rc;

	know(call);
	before = mine.blocked;
	if (set) {
		/* This comes first, because waiting signals arrive before the call returns. */
		note(how, SIGSEGV, set);
		note(how, SIGBUS, set);
		ours = *set;
		if (how != SIG_UNBLOCK) {
			sigdelset(&ours, SIGSEGV);
			sigdelset(&ours, SIGBUS);
		}
	}
	rc = call(how, set ? &ours : NULL, old);
	if (rc)
		mine.blocked = before;
	else if (old)
		sigorset(old, old, &before);
	return rc;
}

#define sigprocmask_type     mask_fn
#define pthread_sigmask_type mask_fn

EXPORT int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	NEXT(sigprocmask);
	return set_mask(call, how, set, old);
}

#undef NEXT_MISSING
#define NEXT_MISSING (missing(), SIG_ERR)

#define sigset_type signal_fn

/* System V's: the action and the mask in one call. */
EXPORT handler_fn sigset(int sig, handler_fn handler)
{
	struct sigaction act = {.sa_handler = handler}, old;
	bool hold = handler == SIG_HOLD, held;
	sigset_t one, was;
	NEXT(sigset);

	if (!faults_has(sig))
		return call(sig, handler);
	sigemptyset(&one);
	sigaddset(&one, sig);
	if (handler == SIG_ERR || faults_action(sig, hold ? NULL : &act, &old) ||
	    sigprocmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &one, &was))
		return SIG_ERR;
	held = sigismember(&was, sig) == 1;
	return held ? SIG_HOLD : old.sa_handler;
}

#undef NEXT_MISSING
#define NEXT_MISSING ENOSYS

EXPORT int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	NEXT(pthread_sigmask);
	return set_mask(call, how, set, old);
}
