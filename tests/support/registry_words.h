/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/cm/registry.c with each access to the shared memory as a call of touch(), which the test defines: it does the
 * access and returns what the word has (LOAD) or had (the others). `expected` is for SWAP alone, which writes only
 * where the word has it.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum access_kind { LOAD, STORE, OR, AND, SWAP };

static uint64_t touch(volatile void *word, size_t bytes, enum access_kind, uint64_t value, uint64_t expected);

static bool swap(volatile void *word, size_t bytes, void *expected, uint64_t value)
{
	uint64_t want = 0, found;

	memcpy(&want, expected, bytes);
	found = touch(word, bytes, SWAP, value, want);
	memcpy(expected, &found, bytes);
	return found == want;
}

#define WORD(p) (volatile void *)(uintptr_t)(p), sizeof(*(p))

#undef atomic_load
#undef atomic_store
#undef atomic_fetch_or
#undef atomic_fetch_and
#undef atomic_compare_exchange_strong
#define atomic_load(p)                                 touch(WORD(p), LOAD, 0, 0)
#define atomic_store(p, v)                             ((void)touch(WORD(p), STORE, v, 0))
#define atomic_fetch_or(p, v)                          ((void)touch(WORD(p), OR, v, 0))
#define atomic_fetch_and(p, v)                         ((void)touch(WORD(p), AND, v, 0))
#define atomic_compare_exchange_strong(p, expected, v) swap(WORD(p), expected, v)

#include "cm/registry.c" /* the code under test, with the words above */
