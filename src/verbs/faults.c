/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See faults.h. The kernel's action for each signal has the program's flags and mask and our handler, so
 * everything that happens before a handler is called happens as the program asked, and passing a signal on is
 * a plain call.
 *
 * The lock is taken with every signal blocked, so no handler on this thread can need it meanwhile. A child of
 * vfork() has its parent's memory, but its own actions in the kernel: there the program's requests go to the
 * kernel and are not remembered.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "verbs/faults.h"

#if defined(__x86_64__)
#define PC(context) (((ucontext_t *)(context))->uc_mcontext.gregs[REG_RIP])
#elif defined(__aarch64__)
#define PC(context) (((ucontext_t *)(context))->uc_mcontext.pc)
#endif

enum { SIGNALS = 2, SIGSET_BYTES = 8 /* the kernel's */ };

static const int signals[SIGNALS] = {SIGSEGV, SIGBUS};
static struct sigaction program[SIGNALS]; /* the program's action; valid once claimed */
static fault_fixup *_Atomic fixup;        /* not NULL: claimed */
static pid_t owner;                       /* the process that has these actions */
static atomic_flag locked = ATOMIC_FLAG_INIT;

static void lock(uint64_t *mask)
{
	const uint64_t all = UINT64_MAX;

	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, mask, SIGSET_BYTES);
	while (atomic_flag_test_and_set_explicit(&locked, memory_order_acquire))
		sched_yield();
}

static void unlock(const uint64_t *mask)
{
	atomic_flag_clear_explicit(&locked, memory_order_release);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, mask, NULL, SIGSET_BYTES);
}

static struct sigaction *program_of(int sig)
{
	return &program[sig == signals[1]];
}

static bool is_handler(const struct sigaction *a)
{
	return a->sa_handler != SIG_DFL && a->sa_handler != SIG_IGN;
}

/* Whether an instruction of this thread caused the signal, and would again. */
static bool is_caused(int sig, const siginfo_t *info)
{
	return info->si_code > 0 && !(sig == SIGBUS && info->si_code == BUS_MCEERR_AO);
}

/* Ends the process by the signal. */
static void die(int sig, siginfo_t *info)
{
	const struct sigaction act = {.sa_handler = SIG_DFL};

	faults_kernel_action(sig, &act, NULL);
	if (!is_caused(sig, info))
		syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), sig, info);
}

/* The signal waits, as the program asked, and so does the next one. */
static void postpone(int sig, siginfo_t *info, void *context)
{
	int saved = errno;

	sigaddset(&((ucontext_t *)context)->uc_sigmask, sig);
	if (info->si_code == SI_TKILL) {
		syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), sig, info);
	} else if (syscall(SYS_rt_sigqueueinfo, getpid(), sig, info)) {
		/*
		 * Only the first thread may send a signal to the process that looks as if it came
		 * from kill().
		 */
		info->si_code = SI_QUEUE;
		syscall(SYS_rt_sigqueueinfo, getpid(), sig, info);
	}
	errno = saved;
}

/* Passes the signal to the program, as the kernel would. */
static void hand_on(int sig, siginfo_t *info, void *context)
{
	struct sigaction act;
	uint64_t mask;

	lock(&mask);
	act = *program_of(sig);
	if (is_handler(&act) && act.sa_flags & (int)SA_RESETHAND)
		program_of(sig)->sa_handler = SIG_DFL;
	unlock(&mask);
	/* A fault that is ignored or blocked ends the process, since it cannot continue. */
	if (act.sa_handler == SIG_DFL || (act.sa_handler == SIG_IGN && is_caused(sig, info)))
		die(sig, info);
	else if (act.sa_handler == SIG_IGN)
		return;
	else if (act.sa_flags & SA_SIGINFO)
		act.sa_sigaction(sig, info, context);
	else
		act.sa_handler(sig);
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
#ifdef PC
	uintptr_t at = is_caused(sig, info) ? fixup((uintptr_t)PC(context)) : 0;

	if (at) {
		PC(context) = (__typeof__(PC(context)))at;
		return;
	}
#endif
	if (!is_caused(sig, info) && faults_is_blocked(sig, &((ucontext_t *)context)->uc_sigmask))
		postpone(sig, info, context);
	else
		hand_on(sig, info, context);
}

/* Lock held. */
static void install(int sig)
{
	struct sigaction act = *program_of(sig);

	if (!is_handler(&act)) {
		act.sa_flags = SA_ONSTACK | SA_RESTART;
		sigemptyset(&act.sa_mask);
	}
	act.sa_sigaction = on_signal;
	act.sa_flags = (act.sa_flags & ~(int)SA_RESETHAND) | SA_SIGINFO;
	faults_kernel_action(sig, &act, NULL);
}

int faults_action(int sig, const struct sigaction *act, struct sigaction *old)
{
	struct sigaction wanted, was;
	uint64_t mask;
	int rc = 0;

	if (act)
		wanted = *act; /* a bad pointer faults here, not under the lock */
	lock(&mask);
	if (!fixup || getpid() != owner) {
		rc = faults_kernel_action(sig, act ? &wanted : NULL, &was);
		if (!rc && was.sa_sigaction == on_signal)
			was = *program_of(sig);
	} else {
		was = *program_of(sig);
		if (act) {
			*program_of(sig) = wanted;
			install(sig);
		}
	}
	unlock(&mask);
	if (!rc && old)
		*old = was;
	return rc;
}

static uint64_t fork_mask;

static void fork_prepare(void)
{
	uint64_t mask;

	lock(&mask);
	fork_mask = mask;
}

static void fork_parent(void)
{
	uint64_t mask = fork_mask;

	unlock(&mask);
}

static void fork_child(void)
{
	owner = getpid();
	fork_parent();
}

void faults_claim(fault_fixup *f)
{
#ifdef PC
	uint64_t mask;
	bool first;

	lock(&mask);
	first = !fixup;
	for (int i = 0; first && i < SIGNALS; i++)
		faults_kernel_action(signals[i], NULL, &program[i]);
	fixup = f;
	for (int i = 0; first && i < SIGNALS; i++) {
		owner = getpid();
		install(signals[i]);
	}
	unlock(&mask);
	if (first)
		pthread_atfork(fork_prepare, fork_parent, fork_child);
#endif
}
