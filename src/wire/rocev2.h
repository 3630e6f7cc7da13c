/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers of RoCEv2 (IBTA Annex A17) and path MTU codes, which belong to no single header. */
#pragma once

#include <stdint.h>

enum { ROCEV2_UDP_PORT = 4791, VEROCE_UDP_PORT = 4794 };

/* The codes of the wire and of verbs are the same. */
enum mtu { MTU_256 = 1, MTU_512 = 2, MTU_1024 = 3, MTU_2048 = 4, MTU_4096 = 5 };

/* mtu is one of the enumerators. */
static inline uint32_t mtu_bytes(enum mtu mtu)
{
	return 128u << mtu;
}
