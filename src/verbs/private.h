/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The provider-private side of the ABI: its version nodes, and how one body is exported under
 * several of them.
 *
 * Private to src/verbs.
 */
#pragma once

#include "verbs/abi.h"

/*
 * `body` is exported as `name` in the node of one family of releases. A link without a version gets
 * that of family 34, which nearly every distribution has.
 */
#define IN_PRIVATE(body, name, at, n) __asm__(".symver " #body ", " #name at "IBVERBS_PRIVATE_" #n)

/* In the node of the family in the macro's name and of every later one. */
#define IN_PRIVATE_65(body, name) IN_PRIVATE(body, name, "@", 65)
#define IN_PRIVATE_64(body, name)  \
	IN_PRIVATE_65(body, name); \
	IN_PRIVATE(body, name, "@", 64)
#define IN_PRIVATE_59(body, name)  \
	IN_PRIVATE_64(body, name); \
	IN_PRIVATE(body, name, "@", 59)
#define IN_PRIVATE_57(body, name)  \
	IN_PRIVATE_59(body, name); \
	IN_PRIVATE(body, name, "@", 57)
#define IN_PRIVATE_34(body, name)  \
	IN_PRIVATE_57(body, name); \
	IN_PRIVATE(body, name, "@@", 34)
#define IN_PRIVATE_33(body, name)  \
	IN_PRIVATE_34(body, name); \
	IN_PRIVATE(body, name, "@", 33)
#define IN_PRIVATE_25(body, name)  \
	IN_PRIVATE_33(body, name); \
	IN_PRIVATE(body, name, "@", 25)
