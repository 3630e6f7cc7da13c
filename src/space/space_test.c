/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/prng.h"
#include "space/space.h"
#define TEST_OWN_MAIN
#include "support/test.h"

enum { UNIT = 64 << 10, MIB = 1 << 20, PIECES = 100, ROUNDS = 2000 };

static bool is_zero(const uint8_t *p, size_t bytes)
{
	return !p[0] && !memcmp(p, p + 1, bytes - 1);
}

/* The mappings that the process has. */
static size_t maps(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	size_t n = 0;

	assert_non_null(f);
	for (int c; (c = fgetc(f)) != EOF;)
		n += c == '\n';
	fclose(f);
	return n;
}

static size_t resident_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	size_t total, resident;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%zu %zu", &total, &resident), 2);
	fclose(f);
	return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static int memory_file(size_t bytes)
{
	int fd = memfd_create("space_test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	return fd;
}

TEST(memory_is_zeroed_and_aligned_however_it_was_used)
{
	static const size_t sizes[] = {1, 64, 65, 1000, 32768, 32769, UNIT, UNIT + 1, 5 * UNIT};

	for (size_t i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t bytes = sizes[i / 2];
		uint8_t *p = space_get(bytes);

		assert_non_null(p);
		assert_int_equal((uintptr_t)p % 64, 0);
		assert_true(is_zero(p, bytes));
		assert_true(space_has(p, bytes));
		memset(p, 0xff, bytes);
		space_put(p, bytes);
	}
	space_put(NULL, 100);
}

/* And what is the program's is not. */
TEST(what_is_the_device_s_is_known)
{
	void *p = space_get(UNIT), *theirs = malloc(64);

	assert_true(own_has(&space_own, (uintptr_t)p, 1));
	assert_true(own_has(&space_own, (uintptr_t)p - 8, 9));
	assert_true(own_has(&space_own, (uintptr_t)&space_own, 1));
	assert_false(own_has(&space_own, (uintptr_t)theirs, 64));
	free(theirs);
	space_put(p, UNIT);
}

struct piece {
	uint8_t *at;
	size_t bytes;
	bool file;
	uint8_t mark;
};

static void piece_get(struct piece *p, struct prng *r, int fd)
{
	p->file = prng_below(r, 4) == 0;
	p->bytes = p->file ? 2 * UNIT : 1 + prng_below(r, prng_below(r, 2) ? 5 * UNIT : 5000);
	p->at = p->file ? space_map(fd, p->bytes) : space_get(p->bytes);
	assert_non_null(p->at);
	assert_true(space_has(p->at, p->bytes));
	p->mark = (uint8_t)prng_next(r);
	if (!p->file)
		memset(p->at, p->mark, p->bytes);
}

static void piece_put(struct piece *p)
{
	if (p->file)
		space_unmap(p->at, p->bytes);
	else if (p->at)
		assert_true(p->at[0] == p->mark && !memcmp(p->at, p->at + 1, p->bytes - 1));
	if (!p->file)
		space_put(p->at, p->bytes);
	*p = (struct piece){0};
}

/* Of any sizes and in any order. What is left afterwards is few mappings: the kernel merges most of those between files
 * again. */
TEST(pieces_never_overlap)
{
	struct piece pieces[PIECES] = {0};
	int fd = memory_file(2 * UNIT);
	size_t before = maps();
	struct prng r;

	prng_init(&r, 1);
	for (int i = 0; i < ROUNDS; i++) {
		struct piece *p = &pieces[prng_below(&r, PIECES)];

		if (p->at)
			piece_put(p);
		else
			piece_get(p, &r, fd);
	}
	for (int i = 0; i < PIECES; i++)
		piece_put(&pieces[i]);
	close(fd);
	assert_in_range(maps(), before, before + PIECES / 4);
}

TEST(neighbours_that_are_given_back_are_one_run)
{
	enum { RUNS = 4, RUN = 16 * UNIT };
	static const int order[RUNS] = {2, 0, 3, 1};
	uint8_t *first = space_get(RUNS * RUN), *runs[RUNS], *all = first;

	for (int round = 0; round < 10; round++) {
		assert_non_null(all);
		space_put(all, RUNS * RUN);
		for (int i = 0; i < RUNS; i++) {
			runs[i] = space_get(RUN);
			assert_non_null(runs[i]);
		}
		for (int i = 0; i < RUNS; i++)
			space_put(runs[order[i]], RUN);
		all = space_get(RUNS * RUN);
		assert_ptr_equal(all, first);
	}
	space_put(all, RUNS * RUN);
}

TEST(what_is_given_back_takes_no_memory)
{
	enum { BYTES = 64 * MIB };
	size_t before = resident_bytes();
	uint8_t *p = space_get(BYTES);

	assert_non_null(p);
	assert_in_range(resident_bytes(), 0, before + BYTES / 4);
	memset(p, 1, BYTES);
	assert_true(resident_bytes() >= before + BYTES / 2);
	space_put(p, BYTES);
	assert_in_range(resident_bytes(), 0, before + BYTES / 4);
}

/* Not even while nothing of ours is there. */
TEST(nobody_else_is_given_its_addresses)
{
	uint8_t *p = space_get(4 * MIB), *theirs[64];

	assert_non_null(p);
	space_put(p, 4 * MIB);
	for (int i = 0; i < 64; i++) {
		theirs[i] = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert_true(theirs[i] != MAP_FAILED);
		assert_false(space_has(theirs[i], MIB));
	}
	assert_true(space_has(p - MIB, MIB + 1) && space_has(p + 4 * MIB, 1));
	for (int i = 0; i < 64; i++)
		munmap(theirs[i], MIB);
}

TEST(the_reservation_ends_where_it_says)
{
	uint8_t *p = space_get(UNIT), *from = p;

	assert_non_null(p);
	while (space_has(from - UNIT, UNIT))
		from -= UNIT;
	assert_false(space_has(from - 1, 1) || space_has(from - UNIT, UNIT) || space_has(NULL, 1));
	assert_true(space_has(from - 1, 2) && space_has(from, 1) && space_has(NULL, SIZE_MAX));
	space_put(p, UNIT);
}

TEST(a_file_is_shared_and_then_gone)
{
	int fd = memory_file(UNIT);
	uint8_t *a = space_map(fd, UNIT), *b = space_map(fd, UNIT), *c;

	assert_true(a && b && space_has(a, UNIT) && space_has(b, UNIT));
	a[UNIT - 1] = 7;
	assert_int_equal(b[UNIT - 1], 7);
	space_unmap(a, UNIT);
	c = space_get(UNIT);
	assert_ptr_equal(c, a);
	assert_true(is_zero(c, UNIT));
	c[UNIT - 1] = 8;
	assert_int_equal(b[UNIT - 1], 7);
	space_unmap(b, UNIT);
	space_put(c, UNIT);
	close(fd);
}

TEST(what_cannot_be_mapped_takes_no_place)
{
	uint8_t *p;

	assert_null(space_map(-1, UNIT));
	assert_int_equal(errno, EBADF);
	p = space_get(UNIT);
	assert_non_null(p);
	p[0] = 1;
	space_put(p, UNIT);
	assert_null(space_get((size_t)1 << 50));
	assert_int_equal(errno, ENOMEM);
}

/* The process's own threads use it at the same time. */
static void *churn(void *seed)
{
	struct piece pieces[20] = {0};
	struct prng r;

	prng_init(&r, (uintptr_t)seed);
	for (int i = 0; i < 200; i++) {
		struct piece *p = &pieces[prng_below(&r, 20)];

		if (p->at)
			piece_put(p);
		p->bytes = 1 + prng_below(&r, 2 * UNIT);
		p->at = space_get(p->bytes);
		assert_non_null(p->at);
		p->mark = (uint8_t)prng_next(&r);
		memset(p->at, p->mark, p->bytes);
	}
	for (int i = 0; i < 20; i++)
		piece_put(&pieces[i]);
	return NULL;
}

TEST(threads_share_it)
{
	pthread_t threads[4];

	for (uintptr_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

static bool ends_well(pid_t pid)
{
	int status;

	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(a_child_has_its_own_copy)
{
	uint8_t *p = space_get(2 * UNIT), *q = space_get(100);
	pid_t pid;

	assert_true(p && q);
	p[0] = q[0] = 1;
	space_fork_begin();
	pid = fork();
	space_fork_end();
	assert_true(pid >= 0);
	if (!pid) {
		uint8_t *more = space_get(UNIT);

		p[0] = q[0] = 2;
		space_put(p, 2 * UNIT);
		space_put(q, 100);
		_exit(!more || !is_zero(more, UNIT) || !space_has(more, UNIT));
	}
	assert_true(ends_well(pid));
	assert_true(p[0] == 1 && q[0] == 1);
	space_put(p, 2 * UNIT);
	space_put(q, 100);
}

/* In processes of their own, as there is one reservation in a process. True: all was as it should be. */
static bool with_limit(int resource, rlim_t bytes, bool reserved)
{
	struct rlimit limit = {bytes, bytes};
	uint8_t *p, *q, *few;
	bool ok;

	if (setrlimit(resource, &limit))
		return false;
	p = space_get(MIB);
	q = space_get(MIB);
	few = space_get(100);
	ok = p && q && few && space_has(p, MIB) == reserved && space_has(few, 100) == reserved;
	if (!ok)
		return false;
	/* Where the device's memory may be anywhere, all is. */
	ok = is_zero(p, MIB) && is_zero(q, MIB) && own_has(&space_own, (uintptr_t)&limit, 1) == !reserved;
	memset(p, 1, MIB);
	space_put(p, MIB);
	space_put(q, MIB);
	space_put(few, 100);
	p = mmap(NULL, bytes / 2, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return ok && p != MAP_FAILED;
}

static int limited(const char *name)
{
	struct rlimit now;

	getrlimit(RLIMIT_AS, &now);
	if (!strcmp(name, "some"))
		return !with_limit(RLIMIT_AS, 512 * MIB, true);
	if (!strcmp(name, "little")) /* too little to reserve a part of it */
		return !with_limit(RLIMIT_AS, 24 * MIB, false);
	return 2;
}

#if defined(__SANITIZE_ADDRESS__)
enum { HAS_SANITIZER = 1 };
#else
enum { HAS_SANITIZER = 0 };
#endif

TEST(limits_of_the_address_space_are_kept)
{
	static const char *const names[] = {"some", "little"};

	if (HAS_SANITIZER)
		skip(); /* its shadow is larger than any limit */
	for (int i = 0; i < 2; i++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (!pid) {
			execl("/proc/self/exe", "space_test", names[i], NULL);
			_exit(1);
		}
		assert_true(ends_well(pid));
	}
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return limited(argv[1]);
	return test_run(argc, argv);
}
