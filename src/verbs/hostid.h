/* SPDX-License-Identifier: BSD-2-Clause */
/* The names by which this host's devices are known. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "engine/devices.h"

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
