/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loads and stores of memory that may not be there. A program may unmap what it has registered, or cut a
 * mapped file short: an adapter has the pages pinned, and to a process the next access is a fault.
 *
 * The instructions that may meet one are in a table, each with the place to go on at. Whoever handles the
 * process's signals asks mem_fixup() for it by the address of the instruction, resumes the thread there, and
 * the call returns false. Without such a handler, and on processors that copy.c does not know, a fault is what
 * it is anywhere else.
 */
#ifndef MEM_COPY_H
#define MEM_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As memcpy. False: some of it is not there, and a part perhaps copied. */
bool mem_copy(void *to, const void *from, size_t len) __attribute__((warn_unused_result));

/*
 * Likewise, and who sees the last byte sees all: a program may poll memory for it, as real adapters write it
 * last.
 */
bool mem_place(void *to, const void *from, size_t len) __attribute__((warn_unused_result));

/* Atomic against every other thread; *found is what the word, aligned to 8 bytes, was. */
bool mem_fetch_add(uint64_t *word, uint64_t add, uint64_t *found) __attribute__((warn_unused_result));
bool mem_cmp_swap(uint64_t *word, uint64_t compare, uint64_t swap, uint64_t *found)
	__attribute__((warn_unused_result));

/* Where to go on when the instruction at pc met a fault; 0: it is none of these. Any thread, any time. */
uintptr_t mem_fixup(uintptr_t pc);

#endif
