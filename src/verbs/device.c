/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device list: one device, which is static because programs keep using it after they have freed
 * the list. Nothing is started here: MPI launchers list devices and never open one.
 */
#include <endian.h>
#include <stdio.h>

#include "verbs/hostid.h"
#include "verbs/objects.h"

/*
 * Providers' libraries recognise their devices by a pointer that they keep behind struct
 * ibv_device: here they find zeros.
 */
static struct {
	struct ibv_device pub;
	uint8_t tail[DEVICE_TAIL_BYTES];
} device = {
	.pub = {
		.node_type = IBV_NODE_CA,
		.transport_type = IBV_TRANSPORT_IB,
		.name = DEVICE_NAME,
		.dev_name = DEVICE_UVERBS,
	},
};

static pthread_once_t device_once = PTHREAD_ONCE_INIT;

static_assert(sizeof(struct ibv_device) == 664, "ABI");
static_assert(offsetof(struct ibv_device, node_type) == 16, "ABI");
static_assert(offsetof(struct ibv_device, name) == 24, "ABI");
static_assert(offsetof(struct ibv_device, dev_name) == 88, "ABI");
static_assert(offsetof(struct ibv_device, dev_path) == 152, "ABI");
static_assert(offsetof(struct ibv_device, ibdev_path) == 408, "ABI");

static void device_fill(void)
{
	const char *root = ibv_get_sysfs_path();

	/*
	 * A root that is too long for the struct gives paths that do not exist; readers handle
	 * that.
	 */
	if (snprintf(device.pub.dev_path, sizeof(device.pub.dev_path),
		     "%s/class/infiniband_verbs/" DEVICE_UVERBS, root) >= IBV_SYSFS_PATH_MAX)
		device.pub.dev_path[0] = '\0';
	if (snprintf(device.pub.ibdev_path, sizeof(device.pub.ibdev_path),
		     "%s/class/infiniband/" DEVICE_NAME, root) >= IBV_SYSFS_PATH_MAX)
		device.pub.ibdev_path[0] = '\0';
}

struct ibv_device *device_get(void)
{
	pthread_once(&device_once, device_fill);
	return &device.pub;
}

bool device_is_ours(const struct ibv_device *d)
{
	return d == &device.pub;
}

struct ibv_device **ibv_get_device_list(int *num_devices)
{
	struct ibv_device **list = calloc(2, sizeof(*list));

	if (num_devices)
		*num_devices = list ? 1 : 0;
	if (!list)
		return fail_null(ENOMEM);
	list[0] = device_get();
	return list;
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
	return device_is_ours(d) ? 0 : -1;
}

__be64 ibv_get_device_guid(struct ibv_device *d)
{
	return htobe64(hostid_guid());
}
