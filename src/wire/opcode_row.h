/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a row of an opcode table is written, for the tables alone. It names the opcode, its headers
 * and its flags; the length and the F_IMM, F_INV and F_FULL flags follow from them.
 */
#pragma once

#include "wire/aeth.h"
#include "wire/atomicacketh.h"
#include "wire/atomiceth.h"
#include "wire/bth.h"
#include "wire/capseth.h"
#include "wire/deth.h"
#include "wire/feth.h"
#include "wire/holdeth.h"
#include "wire/ieth.h"
#include "wire/immdt.h"
#include "wire/msneth.h"
#include "wire/opcode.h"
#include "wire/poeth.h"
#include "wire/reth.h"
#include "wire/roameth.h"
#include "wire/rqeth.h"
#include "wire/rtteth.h"
#include "wire/sacketh.h"
#include "wire/xrceth.h"

/* Total length of the headers in the set h. */
#define HEADERS_LEN(h)                                                                                               \
	(((h)&H_BTH ? BTH_LEN : 0) + ((h)&H_XRCETH ? XRCETH_LEN : 0) + ((h)&H_DETH ? DETH_LEN : 0) +                 \
	 ((h)&H_MSNETH ? MSNETH_LEN : 0) + ((h)&H_FETH ? FETH_LEN : 0) + ((h)&H_RETH ? RETH_LEN : 0) +               \
	 ((h)&H_ATOMICETH ? ATOMICETH_LEN : 0) + ((h)&H_AETH ? AETH_LEN : 0) + ((h)&H_RQETH ? RQETH_LEN : 0) +       \
	 ((h)&H_POETH ? POETH_LEN : 0) + ((h)&H_SACKETH ? SACKETH_LEN : 0) +                                         \
	 ((h)&H_ATOMICACKETH ? ATOMICACKETH_LEN : 0) + ((h)&H_IMMDT ? IMMDT_LEN : 0) + ((h)&H_IETH ? IETH_LEN : 0) + \
	 ((h)&H_RTTETH ? RTTETH_LEN : 0) + ((h)&H_CAPSETH ? CAPSETH_LEN : 0) + ((h)&H_HOLDETH ? HOLDETH_LEN : 0) +   \
	 ((h)&H_ROAMETH ? ROAMETH_LEN : 0))

#define DERIVED_FLAGS(h, f) \
	(((h)&H_IMMDT ? F_IMM : 0) | ((h)&H_IETH ? F_INV : 0) | ((f) & (F_FIRST | F_MIDDLE) ? F_FULL : 0))

#define ROW(op, h, f) \
	[OP_##op] = {.headers = (h), .flags = (f) | DERIVED_FLAGS((h), (f)), .header_len = HEADERS_LEN(h), .name = #op}
