/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What programs do without a call: they read the processor's time stamp counter, and memory until that changes.
 *
 * No kernel traps the counter's instructions everywhere. So those of the program and its libraries are found by what
 * compilers put behind them, the two halves of the result being put together, and are replaced by one that is no
 * instruction: the counter is then what the handler of its signal says, nanoseconds of simulated time.
 *
 * A thread that runs on is looked at by a signal, now and then. If it has the same registers at the same place each
 * time, it can only be waiting for memory to change, and goes to sleep in the handler. A thread that computes counts
 * something, or follows something.
 */
#undef _FORTIFY_SOURCE /* the calls are defined here, not called */
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "lockstep/baton.h"
#include "lockstep/preload.h"

/* ---- /proc/cpuinfo ---- */

/* The counter's rate is where programs look for it. */
static const char cpuinfo[] = "processor\t: 0\nvendor_id\t: Verbena\nmodel name\t: simulated time @ 1.00GHz\n"
			      "cpu MHz\t\t: 1000.000\n\n";

static FILE *open_cpuinfo(const char *path, const char *mode)
{
	if (!preload_page || !path || strcmp(path, "/proc/cpuinfo") != 0 || *mode != 'r')
		return NULL;
	return fmemopen((void *)cpuinfo, sizeof(cpuinfo) - 1, "r");
}

OURS FILE *fopen(const char *restrict path, const char *restrict mode)
{
	FILE *f = open_cpuinfo(path, mode);

	return f ? f : NEXT(fopen)(path, mode);
}

OURS FILE *fopen64(const char *restrict path, const char *restrict mode)
{
	FILE *f = open_cpuinfo(path, mode);

	return f ? f : NEXT(fopen64)(path, mode);
}

#ifdef __x86_64__

enum {
	PLACES_MAX = 4096,
	TAIL_BYTES = 40,  /* in which the halves are put together */
	SPLIT_BYTES = 16, /* or the upper one is put aside */
	SAMPLES = 8,
	SAMPLES_EQUAL = 3, /* so often a thread is seen in a state before it is taken to wait */
	BETWEEN_NS = 20000 /* that it has run between two looks */
};

struct place {
	uintptr_t at;
	unsigned bytes; /* 2: RDTSC; 3: RDTSCP */
};

static struct place places[PLACES_MAX];
static size_t places_count;
static struct sigaction theirs; /* the program's own, for SIGILL */

static _Thread_local struct {
	gregset_t samples[SAMPLES];
	unsigned count, oldest, equal;
	uint64_t ran_ns; /* when it was last looked at */
	unsigned looks;
} seen;

unsigned counter_looks(void)
{
	return seen.looks;
}

/* ---- a thread that reads memory until that changes ---- */

void counter_forget(void)
{
	seen.count = seen.oldest = seen.equal = 0;
}

static uint64_t ran_ns(void)
{
	struct timespec t;

	syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &t);
	return timespec_ns(&t);
}

/* True: it has been in this very state before. */
static bool note_sample(const greg_t *now)
{
	for (unsigned i = 0; i < seen.count; i++) {
		const greg_t *before = seen.samples[i];

		if (before[REG_RIP] != now[REG_RIP])
			continue;
		if (!memcmp(before, now, REG_RIP * sizeof(*now)))
			return true;
		seen.count = seen.oldest = seen.equal = 0;
		break;
	}
	memcpy(seen.samples[seen.oldest], now, sizeof(gregset_t));
	seen.oldest = (seen.oldest + 1) % SAMPLES;
	seen.count += seen.count < SAMPLES;
	return false;
}

/* Behind the instruction, or before it if it begins again. */
static bool is_in_system_call(const greg_t *now)
{
	static const uint8_t call[] = {0x0f, 0x05};
	const uint8_t *at = (const void *)now[REG_RIP];

	return !memcmp(at - 2, call, 2) || !memcmp(at, call, 2);
}

static void look(const greg_t *now)
{
	uint64_t ns = ran_ns();

	seen.looks++;
	if (!preload_runs() || is_in_system_call(now) || ns - seen.ran_ns < BETWEEN_NS)
		return;
	if (note_sample(now) && ++seen.equal >= SAMPLES_EQUAL) {
		seen.equal = SAMPLES_EQUAL - 1;
		verbena_baton.idle(verbena_baton.ctx);
	}
	seen.ran_ns = ran_ns();
}

void counter_look_at(pid_t tid)
{
	syscall(SYS_tgkill, getpid(), tid, SIGILL);
}

/* ---- the counter ---- */

static const struct place *place_of(uintptr_t at)
{
	for (size_t i = 0; i < places_count; i++)
		if (places[i].at == at)
			return &places[i];
	return NULL;
}

static void count(greg_t *registers, unsigned bytes)
{
	uint64_t ns = clocks_read_ns();

	registers[REG_RAX] = (greg_t)(uint32_t)ns;
	registers[REG_RDX] = (greg_t)(ns >> 32);
	if (bytes == 3)
		registers[REG_RCX] = 0; /* the processor's number */
	registers[REG_RIP] += bytes;
}

static void handle(int number, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
	const struct place *p = info->si_code > 0 ? place_of((uintptr_t)registers[REG_RIP]) : NULL;
	int saved = errno;

	if (p)
		count(registers, p->bytes);
	else if (info->si_code == SI_TKILL && info->si_pid == getpid())
		look(registers);
	else
		NEXT(sigaction)(number, &theirs, NULL); /* and it happens again */
	errno = saved;
}

/* Whether the counter's two halves are used behind it: there are bytes that look like the instruction and are none. */
static bool is_used(const uint8_t *at, const uint8_t *end)
{
	static const uint8_t shl_rdx_32[] = {0x48, 0xc1, 0xe2, 0x20};

	for (size_t i = 0; i < TAIL_BYTES && at + i + sizeof(shl_rdx_32) <= end; i++) {
		if (!memcmp(at + i, shl_rdx_32, sizeof(shl_rdx_32)))
			return true;
		/* MOV from EDX to another register. */
		if (i < SPLIT_BYTES && at[i] == 0x89 && (at[i + 1] & 0xf8) == 0xd0)
			return true;
	}
	return false;
}

static bool replace(uint8_t *at, unsigned bytes)
{
	uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE), page = (uintptr_t)at & ~(page_bytes - 1);
	size_t length = (uintptr_t)at + bytes - page;

	if (places_count == PLACES_MAX || mprotect((void *)page, length, PROT_READ | PROT_WRITE | PROT_EXEC))
		return false;
	places[places_count++] = (struct place){(uintptr_t)at, bytes};
	at[0] = 0x0f; /* UD2 */
	at[1] = 0x0b;
	return !mprotect((void *)page, length, PROT_READ | PROT_EXEC);
}

static void replace_all(uint8_t *at, uint8_t *end)
{
	while ((at = memchr(at, 0x0f, (size_t)(end - at))) && at + 3 < end) {
		if (at[1] == 0x31 && is_used(at + 2, end))
			replace(at, 2);
		else if (at[1] == 0x01 && at[2] == 0xf9 && is_used(at + 3, end))
			replace(at, 3);
		at++;
	}
}

/* The loader and the kernel's own pages read it for themselves. */
static int look_through(struct dl_phdr_info *object, size_t bytes, void *unused)
{
	if (strstr(object->dlpi_name, "/ld-linux") || strstr(object->dlpi_name, "linux-vdso"))
		return 0;
	for (unsigned i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &object->dlpi_phdr[i];
		uint8_t *at = (uint8_t *)object->dlpi_addr + h->p_vaddr;

		if (h->p_type == PT_LOAD && (h->p_flags & PF_X))
			replace_all(at, at + h->p_memsz);
	}
	return 0;
}

/* The handler is there before there is anything to handle. */
void counter_find(void)
{
	struct sigaction ours = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK | SA_NODEFER};

	NEXT(sigaction)(SIGILL, &ours, &theirs);
	dl_iterate_phdr(look_through, NULL);
}

/* ---- the signal stays ours ---- */

OURS int sigaction(int number, const struct sigaction *restrict new, struct sigaction *restrict old)
{
	struct sigaction before = theirs;

	if (!preload_page || number != SIGILL)
		return NEXT(sigaction)(number, new, old);
	if (new)
		theirs = *new;
	if (old)
		*old = before;
	return 0;
}

OURS __sighandler_t signal(int number, __sighandler_t handler)
{
	struct sigaction new = {.sa_handler = handler}, old;

	if (!preload_page || number != SIGILL)
		return NEXT(signal)(number, handler);
	sigaction(number, &new, &old);
	return old.sa_handler;
}

/* Without SIGILL; `room` has place for it. */
static const sigset_t *without_ours(int how, const sigset_t *set, sigset_t *room)
{
	if (!preload_page || !set || how == SIG_UNBLOCK)
		return set;
	*room = *set;
	sigdelset(room, SIGILL);
	return room;
}

OURS int sigprocmask(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
	sigset_t room;

	return NEXT(sigprocmask)(how, without_ours(how, set, &room), old);
}

OURS int pthread_sigmask(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
	sigset_t room;

	return NEXT(pthread_sigmask)(how, without_ours(how, set, &room), old);
}

#else

unsigned counter_looks(void)
{
	return 0;
}

void counter_forget(void)
{
}

void counter_look_at(pid_t tid)
{
}

void counter_find(void)
{
}

#endif
