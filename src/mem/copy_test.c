/* SPDX-License-Identifier: BSD-2-Clause */
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/prng.h"
#include "mem/copy.h"
#include "support/test.h"

enum { PAGE = 4096, LONG = 2 * PAGE };

/* Two pages that are there, between two that are not. */
static uint8_t *island;
static volatile sig_atomic_t faults;

#if defined(__x86_64__)
#define PC(u) ((u)->uc_mcontext.gregs[REG_RIP])
#elif defined(__aarch64__)
#define PC(u) ((u)->uc_mcontext.pc)
#endif

#ifdef PC
static void on_fault(int sig, siginfo_t *info, void *context)
{
	ucontext_t *u = context;
	uintptr_t at = mem_fixup((uintptr_t)PC(u));

	if (!at)
		abort();
	faults++;
	PC(u) = (__typeof__(PC(u)))at;
}

/* Within the test: cmocka has handlers of its own before it. */
static void recover(void)
{
	struct sigaction act = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};

	assert_int_equal(sigaction(SIGSEGV, &act, NULL), 0);
}
#endif

static int setup(void **state)
{
	uint8_t *p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	assert_int_equal(munmap(p, PAGE), 0);
	assert_int_equal(munmap(p + 3 * PAGE, PAGE), 0);
	island = p + PAGE;
	return 0;
}

static int teardown(void **state)
{
	return munmap(island, 2 * PAGE);
}

typedef bool copy(void *, const void *, size_t);
static copy *const copies[] = {mem_copy, mem_place};

static void fill(uint8_t *p, size_t len, uint64_t seed)
{
	struct prng r;

	prng_init(&r, seed);
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)prng_below(&r, 256);
}

/* Every length up to a few pieces, at every alignment of both ends; nothing beside it is touched. */
TEST(copies_what_memcpy_does)
{
	static uint8_t from[LONG + 64], to[LONG + 128], want[LONG + 128];

	fill(from, sizeof(from), 1);
	for (size_t c = 0; c < 2; c++) {
		for (size_t len = 0; len < 330; len++) {
			for (size_t at = 0; at < 34; at++) {
				size_t off = (at * 7 + len) % 37;

				memset(to, 0xee, 512);
				memset(want, 0xee, 512);
				memcpy(want + 32 + at, from + off, len);
				assert_true(copies[c](to + 32 + at, from + off, len));
				assert_memory_equal(to, want, 512);
			}
		}
		for (size_t len = LONG - 100; len <= LONG; len++) {
			memset(to, 0xee, sizeof(to));
			memset(want, 0xee, sizeof(want));
			memcpy(want + len % 41, from + len % 13, len);
			assert_true(copies[c](to + len % 41, from + len % 13, len));
			assert_memory_equal(to, want, sizeof(to));
		}
	}
}

#ifdef PC
/*
 * One byte too many, at either end and on either side: the call returns false and the process
 * lives.
 */
TEST(memory_that_is_not_there_is_told)
{
	static uint8_t there[LONG + 64];
	int before = faults, tries = 0;

	recover();
	for (size_t c = 0; c < 2; c++) {
		for (size_t len = 1; len <= LONG; len += 1 + len / 3) {
			uint8_t *last = island + LONG - len, *next = last + 1, *early = island - 1;

			assert_true(copies[c](last, there, len));
			assert_true(copies[c](there, last, len));
			assert_false(copies[c](next, there, len));
			assert_false(copies[c](there, next, len));
			assert_false(copies[c](early, there, len));
			assert_false(copies[c](there, early, len));
			tries += 4;
		}
	}
	assert_int_equal(faults - before, tries);
}

/* A fault far into a copy leaves what came before it. */
TEST(what_was_placed_before_the_fault_stays)
{
	static uint8_t from[LONG];

	recover();
	fill(from, sizeof(from), 2);
	memset(island, 0, LONG);
	assert_false(mem_place(island + PAGE, from, PAGE + 1));
	assert_memory_equal(island + PAGE, from, PAGE);
	assert_false(mem_place(island + PAGE + 1, from, LONG));
	assert_memory_equal(island + PAGE + 1, from, PAGE - 256);
}

TEST(memory_that_is_only_readable_is_told)
{
	uint64_t found = 7, *word = (uint64_t *)island;
	uint8_t here[64] = {0};

	recover();
	memset(island, 3, PAGE);
	assert_int_equal(mprotect(island, PAGE, PROT_READ), 0);
	assert_true(mem_copy(here, island, sizeof(here)));
	assert_false(mem_place(island, here, sizeof(here)));
	assert_false(mem_fetch_add(word, 1, &found));
	assert_false(mem_cmp_swap(word, *word, 1, &found));
	assert_false(mem_cmp_swap(word, *word + 1, 1, &found));
	assert_false(mem_store(word, 1));
	assert_int_equal(found, 7);
	assert_int_equal(mprotect(island, PAGE, PROT_READ | PROT_WRITE), 0);
}

TEST(atomics_on_memory_that_is_not_there_are_told)
{
	uint64_t found = 7, *gone = (uint64_t *)(island + LONG);

	recover();
	assert_false(mem_fetch_add(gone, 1, &found));
	assert_false(mem_cmp_swap(gone, 0, 1, &found));
	assert_false(mem_store(gone, 1));
	assert_int_equal(found, 7);
}

TEST(no_other_instruction_is_known)
{
	assert_int_equal(mem_fixup(0), 0);
	assert_int_equal(mem_fixup(UINTPTR_MAX), 0);
	assert_int_equal(mem_fixup((uintptr_t)on_fault), 0);
	assert_int_equal(mem_fixup((uintptr_t)memcpy), 0);
}
#endif

TEST(atomics_tell_what_was_there)
{
	uint64_t word = 40, found = 0;

	assert_true(mem_fetch_add(&word, 2, &found));
	assert_int_equal(found, 40);
	assert_int_equal(word, 42);
	assert_true(mem_fetch_add(&word, UINT64_MAX, &found));
	assert_int_equal(word, 41);
	assert_true(mem_cmp_swap(&word, 40, 7, &found));
	assert_int_equal(found, 41);
	assert_int_equal(word, 41);
	assert_true(mem_cmp_swap(&word, 41, 7, &found));
	assert_int_equal(found, 41);
	assert_int_equal(word, 7);
	assert_true(mem_store(&word, UINT64_C(0x1122334455667788)));
	assert_int_equal(word, UINT64_C(0x1122334455667788));
}

TEST_PROGRAM(setup, teardown)
