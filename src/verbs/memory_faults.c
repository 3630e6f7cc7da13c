/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults of the nic's copies are survived in every process that opens the device: by the preloaded library,
 * which sees what the program does with its signals, or, where that is not there, by a handler of our own.
 */
#include <dlfcn.h>

#include "mem/copy.h"
#include "verbs/faults.h"
#include "verbs/objects.h"

int faults_kernel_action(int sig, const struct sigaction *act, struct sigaction *old)
{
	return sigaction(sig, act, old);
}

/* Here it is really blocked, and waits by itself. */
bool faults_is_blocked(int sig, const sigset_t *mask)
{
	return false;
}

void memory_faults_claim(void)
{
	void (*claim)(fault_fixup *) = (void (*)(fault_fixup *))dlsym(RTLD_DEFAULT,
								      "verbena_faults_claim");

	(claim ? claim : faults_claim)(mem_fixup);
}
