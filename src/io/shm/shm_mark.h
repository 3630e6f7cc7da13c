/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A mark by which a process is known again whenever its memory is read or written by its id: an id is used again after
 * its process has ended, and exec() puts another program behind it.
 *
 * The mark is a page whose place and value are drawn. It ends with the process, and with exec(), and no child inherits
 * it. A call of process_vm_readv(2) or process_vm_writev(2) is about the memory that one process has when the call
 * begins, whatever becomes of the id meanwhile, and handles one piece after the other. So the first piece of each call
 * is in the mark. Where there is no mark the call ends there, and who reads compares the value, too, before it believes
 * the rest. Who writes relies on the place, one of 2^29: the next owner of the id would need to have it within the
 * microseconds since its peer began to wait, with memory of its own at that place.
 *
 * A descriptor of /proc/PID/mem stays with the memory that it was opened for, and leaves no such chance. But pwrite(2)
 * has its destination in a register, and process_vm_writev(2) reads it in shared memory, where the peer can take it
 * back (shm_job_cancel()): a process that was stopped just before pwrite(2) would write when it goes on, when the
 * peer's program has that memory again. It also takes half as long again, because it copies twice.
 *
 * Private to src/io.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "io/shm/shm_ring.h"

struct shm_mark {
	uint64_t value;
	uint64_t written; /* by others, and read by nobody */
};

/* NULL, with errno: no memory, or no random numbers. */
struct shm_mark *shm_mark_new(void);
void shm_mark_free(struct shm_mark *);
void shm_mark_tell(const struct shm_mark *, struct shm_probe *);

/* Another process, as it was when it published its mark. */
struct shm_process {
	pid_t pid;
	uintptr_t at;
	uint64_t value;
};

/* The mark that it published may be anything, and may change later. */
struct shm_process shm_process_of(pid_t, const struct shm_probe *);
/*
 * As process_vm_readv(2), but the caller leaves the first piece here and there free, and it is not counted. -1: it is
 * another process by now, or may not be read, and the caller forgets the bytes that came.
 */
ssize_t shm_process_read(const struct shm_process *, struct iovec *to, size_t to_count, struct iovec *from,
			 size_t from_count);
/* Whether it is still that process, and may be read. */
bool shm_process_is(const struct shm_process *);
