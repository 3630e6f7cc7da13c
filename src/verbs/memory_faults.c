/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every process that opens the device survives faults of the nic's copies: by the preloaded library, which
 * sees the program's calls for its signals, or, without that library, by a handler of our own.
 */
#include <dlfcn.h>

#include "mem/copy.h"
#include "verbs/faults.h"
#include "verbs/objects.h"

int faults_kernel_action(int sig, const struct sigaction *act, struct sigaction *old)
{
	return sigaction(sig, act, old);
}

/* Without the library a blocked signal is really blocked, and waits in the kernel. */
bool faults_is_blocked(int sig, const sigset_t *mask)
{
	return false;
}

void memory_faults_claim(void)
{
	void (*claim)(fault_fixup *) = (void (*)(fault_fixup *))dlsym(RTLD_DEFAULT, "verbena_faults_claim");

	(claim ? claim : faults_claim)(mem_fixup);
}

bool memory_copy(void *to, const void *from, size_t len)
{
	return mem_copy(to, from, len);
}
