/* SPDX-License-Identifier: BSD-2-Clause */
/* The names by which this host's devices are known. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "engine/engine.h"

#define DEVICE_UVERBS     "uverbs%u" /* with the number of the device, from 0 */
#define DEVICE_BOARD_ID   "verbena"
#define DEVICE_VENDOR_ID  0x025642u /* locally administered, so no vendor's OUI */
#define DEVICE_PART_ID    1u
#define DEVICE_HW_VERSION 0u

/*
 * The GUID of the host, the same for every process, in host order: the system image GUID, and the node GUID of device
 * 0. Keeps errno.
 */
uint64_t hostid_guid(void);

/* The node GUID of a device of the host with that GUID; of a virtual device with the name `given`, unless that is empty. */
uint64_t device_guid(uint64_t hostid, const char *given, unsigned device);

/*
 * `iwarp` has a bit for each device that speaks iWARP. The devices of each kind are numbered by themselves, unless there is
 * one, whose name is `given` (VERBENA_DEVICE); empty: it is not.
 */
static inline void device_name(char name[DEVICE_NAME_BYTES], uint32_t iwarp, const char *given, unsigned device)
{
	bool is_iwarp = iwarp >> device & 1;
	uint32_t before = (is_iwarp ? iwarp : ~iwarp) & ((UINT32_C(1) << device) - 1);

	if (given[0])
		snprintf(name, DEVICE_NAME_BYTES, "%s", given);
	else
		snprintf(name, DEVICE_NAME_BYTES, is_iwarp ? "verbena_iw%d" : "verbena%d", __builtin_popcount(before));
}
