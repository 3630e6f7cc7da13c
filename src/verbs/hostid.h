/* SPDX-License-Identifier: BSD-2-Clause */
/* The names by which this host's devices are known. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define DEVICE_UVERBS     "uverbs%u" /* with the number of the device, from 0 */
#define DEVICE_NAME_BYTES 24
#define DEVICE_BOARD_ID   "verbena"
#define DEVICE_VENDOR_ID  0x025642u /* locally administered, so no vendor's OUI */
#define DEVICE_PART_ID    1u
#define DEVICE_HW_VERSION 0u

/*
 * The GUID of the host, the same for every process, in host order: the system image GUID, and the node GUID of device
 * 0. Keeps errno.
 */
uint64_t hostid_guid(void);

/* The node GUID of a device of the host with that GUID. */
static inline uint64_t device_guid(uint64_t hostid, unsigned device)
{
	return (hostid & ~UINT64_C(0xff)) | ((hostid + device) & 0xff);
}

/* `iwarp` has a bit for each device that speaks iWARP. The devices of each kind are numbered by themselves. */
static inline void device_name(char name[DEVICE_NAME_BYTES], uint32_t iwarp, unsigned device)
{
	bool is_iwarp = iwarp >> device & 1;
	uint32_t before = (is_iwarp ? iwarp : ~iwarp) & ((UINT32_C(1) << device) - 1);

	snprintf(name, DEVICE_NAME_BYTES, is_iwarp ? "verbena_iw%d" : "verbena%d", __builtin_popcount(before));
}
