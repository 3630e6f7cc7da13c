/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device list. Devices are static because programs keep using them after they have freed the
 * list. Nothing is started here: MPI launchers list devices and never open one.
 */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/hostid.h"
#include "verbs/objects.h"

/*
 * Providers' libraries recognise their devices by a pointer that they keep behind struct
 * ibv_device: here they find zeros.
 */
static struct {
	struct ibv_device pub;
	uint8_t tail[DEVICE_TAIL_BYTES];
} devices[ENGINE_DEVICES_MAX];

static unsigned device_count;
static pthread_once_t devices_once = PTHREAD_ONCE_INIT;

static_assert(sizeof(struct ibv_device) == 664, "ABI");
static_assert(offsetof(struct ibv_device, node_type) == 16, "ABI");
static_assert(offsetof(struct ibv_device, name) == 24, "ABI");
static_assert(offsetof(struct ibv_device, dev_name) == 88, "ABI");
static_assert(offsetof(struct ibv_device, dev_path) == 152, "ABI");
static_assert(offsetof(struct ibv_device, ibdev_path) == 408, "ABI");

static void device_fill(struct ibv_device *d, unsigned device)
{
	const char *root = ibv_get_sysfs_path();
	uint32_t iwarp = engine_iwarp_devices();
	char name[DEVICE_NAME_BYTES], given[DEVICE_NAME_BYTES];

	d->node_type = iwarp >> device & 1 ? IBV_NODE_RNIC : IBV_NODE_CA;
	d->transport_type = iwarp >> device & 1 ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
	engine_device_given(given);
	device_name(name, iwarp, given, device);
	memcpy(d->name, name, sizeof(name));
	snprintf(d->dev_name, sizeof(d->dev_name), DEVICE_UVERBS, device);
	/* A root too long for the struct leaves paths that do not exist, which readers cope with. */
	if (snprintf(d->dev_path, sizeof(d->dev_path), "%s/class/infiniband_verbs/" DEVICE_UVERBS, root, device) >=
	    IBV_SYSFS_PATH_MAX)
		d->dev_path[0] = '\0';
	if (snprintf(d->ibdev_path, sizeof(d->ibdev_path), "%s/class/infiniband/%s", root, name) >= IBV_SYSFS_PATH_MAX)
		d->ibdev_path[0] = '\0';
}

static void devices_fill(void)
{
	device_count = engine_device_count();
	for (unsigned i = 0; i < device_count; i++)
		device_fill(&devices[i].pub, i);
}

struct ibv_device *device_get(unsigned device)
{
	pthread_once(&devices_once, devices_fill);
	return device < device_count ? &devices[device].pub : NULL;
}

int device_index(const struct ibv_device *d)
{
	for (unsigned i = 0; i < device_count; i++) {
		if (d == &devices[i].pub)
			return (int)i;
	}
	return -1;
}

/* Of the heap, and not of the device's own memory as all else is: there are programs that end it with free(). */
struct ibv_device **ibv_get_device_list(int *num_devices)
{
	struct ibv_device **list = calloc(ENGINE_DEVICES_MAX + 1, sizeof(*list));
	int n = 0;

	while (list && n < ENGINE_DEVICES_MAX && (list[n] = device_get((unsigned)n)))
		n++;
	if (num_devices)
		*num_devices = n;
	return list ? list : fail_null(ENOMEM);
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *d)
{
	return d->name;
}

int ibv_get_device_index(struct ibv_device *d)
{
	return device_index(d);
}

/* A device keeps its GUID, whatever becomes of the host's name. */
static uint64_t host_guid;
static char host_given[DEVICE_NAME_BYTES];
static pthread_once_t host_guid_once = PTHREAD_ONCE_INIT;

static void host_guid_find(void)
{
	host_guid = hostid_guid();
	engine_device_given(host_given);
}

__be64 ibv_get_device_guid(struct ibv_device *d)
{
	int device = device_index(d);

	pthread_once(&host_guid_once, host_guid_find);
	return device < 0 ? 0 : htobe64(device_guid(host_guid, host_given, (unsigned)device));
}
