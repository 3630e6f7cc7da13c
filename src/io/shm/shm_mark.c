/* SPDX-License-Identifier: BSD-2-Clause */
/* See shm_mark.h. */
#include "io/shm/shm_mark.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/random.h>

/*
 * Marks lie in a range of so many bytes, whose end is so many bytes below the stack: programs map nothing there, unless
 * they choose the address themselves.
 */
#define PLACES (UINT64_C(1) << 41)

struct shm_mark *shm_mark_new(void)
{
	uint64_t draws[2];
	uintptr_t at;
	struct shm_mark *m;

	if (getrandom(draws, sizeof(draws), 0) != sizeof(draws)) {
		errno = EIO;
		return NULL;
	}
	at = (uintptr_t)draws - (uintptr_t)(PLACES + draws[0] % PLACES);
	/* If that is taken, or beyond what addresses are, the kernel takes another. */
	m = mmap((void *)at, sizeof(*m), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m == MAP_FAILED)
		return NULL;
	madvise(m, sizeof(*m), MADV_DONTFORK);
	m->value = draws[1];
	return m;
}

void shm_mark_free(struct shm_mark *m)
{
	if (m)
		munmap(m, sizeof(*m));
}

void shm_mark_tell(const struct shm_mark *m, struct shm_probe *probe)
{
	atomic_store_explicit(&probe->at, (uintptr_t)&m->value, memory_order_relaxed);
	atomic_store_explicit(&probe->value, m->value, memory_order_relaxed);
}

struct shm_process shm_process_of(pid_t pid, const struct shm_probe *probe)
{
	return (struct shm_process){.pid = pid,
				    .at = (uintptr_t)atomic_load_explicit(&probe->at, memory_order_relaxed),
				    .value = atomic_load_explicit(&probe->value, memory_order_relaxed)};
}

ssize_t shm_process_read(const struct shm_process *p, struct iovec *to, size_t to_count, struct iovec *from,
			 size_t from_count)
{
	uint64_t value;
	ssize_t n;

	to[0] = (struct iovec){&value, sizeof(value)};
	from[0] = (struct iovec){(void *)p->at, sizeof(value)};
	n = process_vm_readv(p->pid, to, to_count, from, from_count, 0) - (ssize_t)sizeof(value);
	return n >= 0 && value == p->value ? n : -1;
}

bool shm_process_is(const struct shm_process *p)
{
	struct iovec to, from;

	return shm_process_read(p, &to, 1, &from, 1) == 0;
}
