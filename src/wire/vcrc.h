/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The variant CRC (IBTA 7.8.2): 16 bits with the polynomial 0x100b over all bytes of a packet from the LRH to the ICRC,
 * as they are on that link, least significant byte first behind them. A flow control packet's LPCRC (7.9.4) is the same
 * over its first four bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VCRC_LEN = 2 };

/* Writes it behind n bytes. */
void vcrc_seal(uint8_t *packet, size_t n);
/* Whether the last two of n bytes are that of the others; false for fewer than two. */
bool vcrc_check(const uint8_t *packet, size_t n);
