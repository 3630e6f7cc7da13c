/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fork: registered memory is touched by this process itself, not by a device at physical addresses,
 * so copy-on-write does no harm and no range needs protection. (The engine handles its threads.)
 */
#include "verbs/objects.h"

int ibv_fork_init(void)
{
	return 0;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

int ibv_dontfork_range(void *base, size_t size)
{
	return 0;
}

int ibv_dofork_range(void *base, size_t size)
{
	return 0;
}
