/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loads and stores of memory that may not be there. A program may unmap what it has registered, or truncate a
 * mapped file. An adapter has pinned the pages; here the next access is a fault.
 *
 * The instructions that may fault are in a table, each with the place where execution continues. The process's
 * signal handler gets that place from mem_fixup() by the address of the instruction and resumes the thread
 * there; the interrupted call then returns false. Without such a handler, and on processors that copy.c does
 * not know, a fault ends the process.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As memcpy. False: some of the memory is not there; a part may have been copied. */
bool mem_copy(void *to, const void *from, size_t len) __attribute__((warn_unused_result));

/*
 * As mem_copy(), and a processor that sees the last byte sees all bytes: programs poll for it, since
 * adapters write it last.
 */
bool mem_place(void *to, const void *from, size_t len) __attribute__((warn_unused_result));

/*
 * Atomic against every other thread; *found becomes the old value of the word, which is aligned to
 * 8 bytes.
 */
bool mem_fetch_add(uint64_t *word, uint64_t add, uint64_t *found) __attribute__((warn_unused_result));
bool mem_cmp_swap(uint64_t *word, uint64_t compare, uint64_t swap, uint64_t *found) __attribute__((warn_unused_result));

/* Writes an aligned word by one store: no thread sees a part of it. */
bool mem_store(uint64_t *word, uint64_t value) __attribute__((warn_unused_result));

/* Whether calls return false at all on this processor, and the process does not end. */
bool mem_survives_faults(void);

/*
 * Where execution continues after a fault at pc; 0: the instruction is none of copy.c's. Any
 * thread, any time.
 */
uintptr_t mem_fixup(uintptr_t pc);
