/* SPDX-License-Identifier: BSD-2-Clause */
/* The name by which this host's device is known. */
#ifndef VERBS_HOSTID_H
#define VERBS_HOSTID_H

#include <stdint.h>

#define DEVICE_NAME       "verbena0"
#define DEVICE_UVERBS     "uverbs0"
#define DEVICE_BOARD_ID   "verbena"
#define DEVICE_VENDOR_ID  0x025642u /* locally administered, so no vendor's OUI */
#define DEVICE_PART_ID    1u
#define DEVICE_HW_VERSION 0u

/* The node GUID, the same for every process of a host, in host order. Keeps errno. */
uint64_t hostid_guid(void);

#endif
