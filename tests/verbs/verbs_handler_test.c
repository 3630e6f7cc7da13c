/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program's own handlers of SIGSEGV and SIGBUS, its masks and its default actions, beside faults of the
 * nic's copies. Each case is a process of its own, as some of them die.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"
#include "support/test.h"

/* A child that hangs ends; the time is longer than all that a child waits for (pair.c), so that what failed is what is
 * told. */
enum { PAGE = 4096, CHILD_S = 300, FAILED = 99 };

#define CHECK(x)                                                                \
	do {                                                                    \
		if (!(x)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x); \
			_exit(FAILED);                                          \
		}                                                               \
	} while (0)

static volatile sig_atomic_t calls;
static void *volatile fault_at;
static sigjmp_buf back;
static char *nowhere;

static void on_info(int sig, siginfo_t *info, void *context)
{
	calls++;
	fault_at = info->si_addr;
	if (info->si_code > 0)
		siglongjmp(back, 1);
}

static void on_plain(int sig)
{
	calls++;
	siglongjmp(back, 1);
}

static void on_sent(int sig)
{
	calls++;
}

static void set(int sig, void (*handler)(int, siginfo_t *, void *), int flags)
{
	struct sigaction act = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};

	CHECK(!sigaction(sig, &act, NULL));
}

static void (*plain_handler(int sig))(int)
{
	struct sigaction now;

	CHECK(!sigaction(sig, NULL, &now));
	return now.sa_handler;
}

static void unset_all(void)
{
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
}

/*
 * A fault of the nic, in this thread or the engine's: the peer gets a NAK, and no handler is
 * called.
 */
static void nic_fault(void)
{
	int before = calls;
	struct pair p;
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	struct ibv_mr *mr;
	uint8_t *gone = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	pair_make(&p, (struct wishes){0});
	mr = ibv_reg_mr(p.pd, gone, PAGE, ACCESS_ALL);
	CHECK(mr && !munmap(gone, PAGE));
	sge = sge_at(&p, A, 0, PAGE);
	wr.wr.rdma.remote_addr = (uintptr_t)gone;
	wr.wr.rdma.rkey = mr->rkey;
	CHECK(!ibv_post_send(p.side[A].qp, &wr, &bad));
	CHECK(wc_await(p.side[A].cq).status == IBV_WC_REM_ACCESS_ERR);
	CHECK(!ibv_dereg_mr(mr));
	pair_destroy(&p);
	CHECK(calls == before);
}

/* The program's own. */
static void own_fault(void)
{
	if (!sigsetjmp(back, 1))
		*(volatile char *)nowhere = 1;
}

static void run(void (*body)(void), int status_wanted, int signal_wanted)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		alarm(CHILD_S);
		unset_all();
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status) && WTERMSIG(status) != signal_wanted)
		fail_msg("the child died by SIG%s", sigabbrev_np(WTERMSIG(status)));
	if (signal_wanted) {
		assert_true(WIFSIGNALED(status));
	} else {
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), status_wanted);
	}
}

/* ---- both kinds of faults ---------------------------------------------------------------------- */

static void before_body(void)
{
	set(SIGSEGV, on_info, 0);
	nic_fault();
	own_fault();
	CHECK(calls == 1 && fault_at == nowhere);
	CHECK(plain_handler(SIGSEGV) == (void (*)(int))(void *)on_info);
	nic_fault();
}

TEST(handler_set_before_is_kept)
{
	run(before_body, 0, 0);
}

static void after_body(void)
{
	struct sigaction old, mine = {.sa_handler = on_plain, .sa_flags = SA_NODEFER};

	nic_fault();
	sigaddset(&mine.sa_mask, SIGUSR1);
	CHECK(!sigaction(SIGSEGV, &mine, &old));
	CHECK(old.sa_handler == SIG_DFL);
	nic_fault();
	own_fault();
	own_fault();
	CHECK(calls == 2);
	nic_fault();
	CHECK(!sigaction(SIGSEGV, NULL, &old));
	CHECK(old.sa_handler == on_plain && old.sa_flags & SA_NODEFER);
	CHECK(sigismember(&old.sa_mask, SIGUSR1) == 1 && sigismember(&old.sa_mask, SIGUSR2) == 0);
	CHECK(signal(SIGSEGV, SIG_DFL) == on_plain && signal(SIGSEGV, on_plain) == SIG_DFL);
	own_fault();
	CHECK(calls == 3);
	nic_fault();
}

TEST(handler_set_after_is_kept)
{
	run(after_body, 0, 0);
}

static void bus_body(void)
{
	int fd = memfd_create("bus", 0);
	char *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0); /* behind its end */

	CHECK(p != MAP_FAILED);
	nic_fault();
	set(SIGBUS, on_info, 0);
	nowhere = p;
	own_fault();
	CHECK(calls == 1 && fault_at == p);
	nic_fault();
}

TEST(both_signals_are_the_programs)
{
	run(bus_body, 0, 0);
}

/* Handlers that chain to what they replaced, as crash reporters do. */
static struct sigaction replaced;

static void on_chained(int sig, siginfo_t *info, void *context)
{
	calls++;
	if (replaced.sa_flags & SA_SIGINFO)
		replaced.sa_sigaction(sig, info, context);
	siglongjmp(back, 1);
}

static void chain_body(void)
{
	struct sigaction act = {.sa_sigaction = on_chained, .sa_flags = SA_SIGINFO};

	set(SIGSEGV, on_info, 0);
	nic_fault();
	CHECK(!sigaction(SIGSEGV, &act, &replaced));
	CHECK(replaced.sa_sigaction == on_info);
	own_fault();
	CHECK(calls == 2);
	nic_fault();
}

TEST(handlers_may_chain)
{
	run(chain_body, 0, 0);
}

/* ---- actions that are no handlers ------------------------------------------------------------- */

static void default_body(void)
{
	nic_fault();
	own_fault();
}

static void sent_default_body(void)
{
	nic_fault();
	raise(SIGBUS);
}

static void ignored_body(void)
{
	signal(SIGSEGV, SIG_IGN);
	nic_fault();
	CHECK(plain_handler(SIGSEGV) == SIG_IGN);
	raise(SIGSEGV);
	kill(getpid(), SIGSEGV);
	nic_fault();
}

static void ignored_fault_body(void)
{
	ignored_body();
	own_fault();
}

TEST(without_a_handler_it_dies)
{
	run(default_body, 0, SIGSEGV);
	run(sent_default_body, 0, SIGBUS);
	run(ignored_body, 0, 0);
	run(ignored_fault_body, 0, SIGSEGV);
}

static void once_body(void)
{
	nic_fault();
	set(SIGSEGV, on_info, (int)SA_RESETHAND);
	nic_fault();
	own_fault();
	CHECK(calls == 1);
	CHECK(plain_handler(SIGSEGV) == SIG_DFL);
	nic_fault();
	own_fault();
}

TEST(one_shot_handler_is_called_once)
{
	run(once_body, 0, SIGSEGV);
}

/* ---- stacks and masks -------------------------------------------------------------------------- */

static int deeper(volatile char *above)
{
	volatile char here[1024];

	here[0] = above ? above[0] : 1;
	return here[0] ? deeper(here) + here[0] : 0;
}

static void on_overflow(int sig, siginfo_t *info, void *context)
{
	stack_t s;

	calls += !sigaltstack(NULL, &s) && s.ss_flags & SS_ONSTACK;
	siglongjmp(back, 1);
}

static void stack_body(void)
{
	stack_t s = {.ss_sp = malloc(64 << 10), .ss_size = 64 << 10};

	CHECK(!sigaltstack(&s, NULL));
	set(SIGSEGV, on_overflow, SA_ONSTACK);
	nic_fault();
	if (!sigsetjmp(back, 1))
		deeper(NULL);
	CHECK(calls == 1);
	nic_fault();
}

TEST(handler_has_the_stack_it_asked_for)
{
	run(stack_body, 0, 0);
}

/* Threads of libraries often block everything. Then a signal that is sent waits, and a fault of the nic's does not
 * kill. */
static void mask_body(void)
{
	sigset_t all, was, one;
	int sig = 0;

	sigfillset(&all);
	CHECK(!sigprocmask(SIG_BLOCK, &all, &was));
	CHECK(!sigismember(&was, SIGSEGV));
	nic_fault();
	CHECK(!pthread_sigmask(SIG_BLOCK, NULL, &was));
	CHECK(sigismember(&was, SIGSEGV) && sigismember(&was, SIGBUS) && sigismember(&was, SIGUSR1));
	signal(SIGBUS, on_sent);
	CHECK(!kill(getpid(), SIGBUS) && !raise(SIGBUS));
	usleep(10000);
	CHECK(!calls);
	sigemptyset(&one);
	sigaddset(&one, SIGBUS);
	CHECK(!sigwait(&one, &sig) && sig == SIGBUS && !calls);
	CHECK(!sigprocmask(SIG_UNBLOCK, &one, &was));
	CHECK(calls == 1 && sigismember(&was, SIGBUS));
	CHECK(!sigprocmask(SIG_BLOCK, NULL, &was));
	CHECK(sigismember(&was, SIGSEGV) && !sigismember(&was, SIGBUS));
	nic_fault();
}

TEST(blocked_signals_wait_and_faults_do_not_kill)
{
	run(mask_body, 0, 0);
}

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static void old_calls_body(void)
{
	struct sigaction now;

	nic_fault();
	CHECK(sysv_signal(SIGSEGV, on_plain) == SIG_DFL);
	CHECK(!sigaction(SIGSEGV, NULL, &now) && now.sa_handler == on_plain);
	CHECK(now.sa_flags & (int)SA_RESETHAND && now.sa_flags & SA_NODEFER);
	CHECK(signal(SIGSEGV, on_plain) == on_plain);
	CHECK(!sigaction(SIGSEGV, NULL, &now) && now.sa_flags & SA_RESTART);
	CHECK(!siginterrupt(SIGSEGV, 1));
	CHECK(!sigaction(SIGSEGV, NULL, &now) && !(now.sa_flags & SA_RESTART));
	CHECK(signal(SIGUSR1, on_plain) == SIG_DFL && signal(SIGUSR1, SIG_IGN) == on_plain);
	nic_fault();
	own_fault();
	CHECK(calls == 1);
}

TEST(older_calls_are_led_too)
{
	run(old_calls_body, 0, 0);
}

/* ---- children ---------------------------------------------------------------------------------- */

static void children_body(void)
{
	int status;
	pid_t pid;

	set(SIGSEGV, on_info, 0);
	nic_fault();
	pid = fork();
	if (!pid) {
		own_fault();
		CHECK(calls == 1);
		set(SIGSEGV, on_overflow, 0);
		signal(SIGSEGV, SIG_DFL);
		own_fault();
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	CHECK(plain_handler(SIGSEGV) == (void (*)(int))(void *)on_info);

	/* It has our memory, and its own actions. */
	pid = vfork();
	if (!pid) {
		signal(SIGSEGV, SIG_DFL);
		raise(SIGSEGV);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	CHECK(plain_handler(SIGSEGV) == (void (*)(int))(void *)on_info);
	own_fault();
	CHECK(calls == 1);
	nic_fault();
}

TEST(children_have_their_own)
{
	run(children_body, 0, 0);
}

static int setup(void **state)
{
	nowhere = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return nowhere == MAP_FAILED;
}

TEST_PROGRAM(setup, NULL)
