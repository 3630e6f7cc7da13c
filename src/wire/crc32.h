/* SPDX-License-Identifier: BSD-2-Clause */
/* The CRC-32 of Ethernet (IEEE 802.3, 3.2.9), which the ICRC takes over (IBTA 7.8.1). */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The CRC-32 of what `crc` is the CRC-32 of (0: nothing), followed by these n bytes. */
uint32_t crc32_ieee(uint32_t crc, const uint8_t *p, size_t n);
