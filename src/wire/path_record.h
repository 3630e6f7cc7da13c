/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asking a subnet administrator for the service level between two LIDs: SubnAdmGet(PathRecord) (IBTA 15.2.5.16, 15.4.4).
 * Offsets in the MAD:
 *
 *   24 RMPP header (12 bytes, 0 for a single packet)
 *   36 SM_Key (8 bytes)
 *   44 attribute offset | reserved
 *   48 component mask (8 bytes): which of the record's fields count
 *   56 PathRecord: 0 service id, 8 DGID, 24 SGID, 40 DLID | SLID, 44 hop limit and others, 48 TClass, 49 paths, 50 P_Key,
 *      52 QoS class:12 | SL:4, 54 MTU, rate, ...
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/mad.h"

enum { SA_CLASS = 0x03, SA_CLASS_VERSION = 2, SA_PATH_RECORD = 0x35, SA_METHOD_GET = 0x01, SA_METHOD_GET_RESP = 0x81 };

/* Makes a whole MAD. */
void path_query_encode(uint8_t mad[MAD_LEN], uint64_t tid, uint16_t slid, uint16_t dlid);

struct path_record {
	uint16_t slid, dlid;
	uint8_t sl;
};

/* False: it is no answer to such a query, or one that says there is no path. */
bool path_record_decode(struct path_record *, const uint8_t mad[MAD_LEN]);
