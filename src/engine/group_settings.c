/* SPDX-License-Identifier: BSD-2-Clause */
/* What an engine tells the group of the processes that share its port: see state.h. */
#include "engine/state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cm/registry.h"
#include "engine/port.h"

static int inherited_fd; /* 0: none */

void engine_inherit(int shared_fd)
{
	inherited_fd = shared_fd;
}

unsigned engine_requests_slot(const void *shared)
{
	int slot = registry_requests_slot(shared);

	return slot < 0 ? 0 : (unsigned)slot;
}

static struct group_address address_of(const struct io_gid *gid)
{
	bool is_link_local = gid->gid[0] == 0xfe && (gid->gid[1] & 0xc0) == 0x80;
	struct group_address a = {.ifindex = is_link_local ? gid->ifindex : 0};

	memcpy(a.gid, gid->gid, sizeof(a.gid));
	return a;
}

/* Two interfaces may have the same one. */
static void add_address(struct group_config *group, struct group_address a)
{
	for (size_t i = 0; i < group->address_count; i++)
		if (!memcmp(&group->addresses[i], &a, sizeof(a)))
			return;
	group->addresses[group->address_count++] = a;
}

int engine_group_members(const struct engine *e, const struct gid_table *gids, struct group_config *group,
			 struct group_address host[NIC_GIDS_MAX], char *why, size_t why_bytes)
{
	struct io_gid all[IO_GIDS_MAX];
	int count = port_host_gids(all, why, why_bytes);

	if (count < 0)
		return count;
	if (!count) {
		snprintf(why, why_bytes, "no interface is up, not even loopback, by which the programs of a host meet");
		return -EADDRNOTAVAIL;
	}
	for (int i = 0; i < count; i++)
		host[group->host_count++] = address_of(&all[i]);
	group->host = host;
	/* A device that is bound has a part of the addresses, and the group has those of all. */
	if (e->config.address[0] && e->config.devices.has_rails) {
		count = port_chosen_gids(e, all, why, why_bytes);
		if (count < 0)
			return count;
		for (int i = 0; i < count && group->address_count < GROUP_ADDRESSES_MAX; i++)
			add_address(group, address_of(&all[i]));
	} else if (e->config.address[0]) {
		for (uint32_t i = 0; i < gids->count && group->address_count < GROUP_ADDRESSES_MAX; i++) {
			const struct nic_gid *g = &gids->gids[i];
			struct io_gid own = {.ifindex = g->ifindex};

			memcpy(own.gid, g->raw, sizeof(own.gid));
			if (g->ifindex)
				add_address(group, address_of(&own));
		}
	}
	group->stat_fd = e->stat_fd;
	group->counters = &e->loop.page->io;
	group->shared_bytes = registry_bytes();
	group->shared_fd = inherited_fd;
	group->requests_slot = engine_requests_slot;
	return 0;
}

int engine_group_settings(const struct engine *e, const struct gid_table *gids, struct group_config *group,
			  struct group_address host[NIC_GIDS_MAX], char *why, size_t why_bytes)
{
	/* Both ports, with any protocol: all members of a group have the same ports. */
	*group = (struct group_config){.ports = {e->config.transport.rocev2.port, e->config.transport.veroce.port},
				       .port_count = 2,
				       .rings = config_has_shm(&e->config)};
	return engine_group_members(e, gids, group, host, why, why_bytes);
}
