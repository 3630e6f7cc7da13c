/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps the files of the tree that `verbena run` made (tree.h) as true as what verbs say of the port, while a program
 * has the device open. Programs that share a tree write the same into it, each for itself.
 */
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/hostid.h"
#include "verbs/objects.h"
#include "verbs/tree.h"

/* Set before there is a thread of the engine's, which must not read the environment. */
static char tree[PATH_MAX]; /* empty: there is none, or another program made it */
static uint32_t iwarp;
static char given[DEVICE_NAME_BYTES];

static void find(void)
{
	const char *dir = getenv("VERBENA_SYSFS");

	if (dir && dir[0] == '/' && strlen(dir) < sizeof(tree) && getenv("VERBENA_SYSFS_USE"))
		strcpy(tree, dir);
	iwarp = engine_iwarp_devices();
	engine_device_given(given);
}

void tree_follow(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find);
}

static void gid_fill(struct engine *e, uint32_t i, struct tree_gid *to)
{
	struct engine_interface interface;
	struct nic_gid gid;

	*to = (struct tree_gid){0};
	if (nic_gid(engine_nic(e), i, &gid) || engine_gid_interface(e, i, &interface))
		return;
	memcpy(to->raw, gid.raw, sizeof(to->raw));
	memcpy(to->interface, interface.name, sizeof(to->interface));
}

/* Whoever may not write there has another view of the tree, if any. */
void port_changed(struct engine *e)
{
	uint16_t pkeys[NIC_PKEYS_MAX];
	struct tree_gid gids[NIC_GIDS_MAX];
	struct tree_facts facts = {.guid = hostid_guid(),
				   .device_first = engine_device(e),
				   .device_count = engine_device(e) + 1,
				   .iwarp = iwarp,
				   .given = given,
				   .pkeys = pkeys,
				   .rocev1 = engine_is_rocev1(e),
				   .gids = gids,
				   .gid_count = NIC_GIDS_MAX};

	if (!tree[0])
		return;
	engine_lock(e);
	facts.port = engine_port(e);
	for (; facts.pkey_count < nic_pkey_count(engine_nic(e)); facts.pkey_count++)
		pkeys[facts.pkey_count] = nic_pkey(engine_nic(e), facts.pkey_count);
	for (uint32_t i = 0; i < NIC_GIDS_MAX; i++)
		gid_fill(e, i, &gids[i]);
	engine_unlock(e);
	tree_render(tree, &facts);
}
