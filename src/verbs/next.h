/* SPDX-License-Identifier: BSD-2-Clause */
/* For the library that is loaded before libc: libc's own definition of a call. */
#pragma once

#include <dlfcn.h>
#include <errno.h>

#define EXPORT __attribute__((visibility("default")))

/*
 * The next definition of each call, looked up when the library is loaded, or at the first call if
 * another library's constructor comes earlier. The linker gathers the table.
 */
struct next {
	void **slot;
	const char *name;
};

extern const struct next __start_paths_next[], __stop_paths_next[];

static inline void next_find(const struct next *n)
{
	int saved = errno;

	__atomic_store_n(n->slot, dlsym(RTLD_NEXT, n->name), __ATOMIC_RELAXED);
	errno = saved;
}

/* In a function: `call` is the next definition of `name`, of type name##_type; else NEXT_MISSING is returned. */
#define NEXT(name)                                                                                             \
	static name##_type *slot;                                                                              \
	static const struct next entry __attribute__((section("paths_next"), used)) = {(void **)&slot, #name}; \
	name##_type *call = __atomic_load_n(&slot, __ATOMIC_RELAXED);                                          \
	if (!call) {                                                                                           \
		next_find(&entry);                                                                             \
		call = slot;                                                                                   \
	}                                                                                                      \
	if (!call)                                                                                             \
	return NEXT_MISSING
