/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CRC of an FPDU (RFC 5044 4.4, RFC 3385): CRC32c, polynomial 0x82f63b78 reflected. The register starts as all ones
 * and is sent inverted, least significant byte first. ISA-L picks the processor's instructions at run time.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <isa-l/crc.h>

#include "base/vectors.h"

enum { CRC32C_LEN = 4 };

#define CRC32C_START 0xffffffffu

/* The register after `len` more bytes; len is at most INT_MAX. */
static inline uint32_t crc32c_add(uint32_t reg, const uint8_t *p, size_t len)
{
	reg = crc32_iscsi((unsigned char *)(uintptr_t)p, (int)len, reg); /* it only reads */
	vectors_clear_upper();
	return reg;
}

static inline void crc32c_put(uint8_t *p, uint32_t reg)
{
	reg = ~reg;
	for (int i = 0; i < CRC32C_LEN; i++)
		p[i] = (uint8_t)(reg >> 8 * i);
}

/* The register that the four bytes were made of. */
static inline uint32_t crc32c_get(const uint8_t *p)
{
	return ~((uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0]);
}
