/* SPDX-License-Identifier: BSD-2-Clause */
/* The variant CRC, four bits at a time: it is computed once a hop of a modelled fabric, not on the product's packet
 * path. */
#include "wire/vcrc.h"

/* The register after each nibble, for the reflected polynomial 0xd008. */
static const uint16_t nibble[16] = {
	0x0000, 0x1a01, 0x3402, 0x2e03, 0x6804, 0x7205, 0x5c06, 0x4607,
	0xd008, 0xca09, 0xe40a, 0xfe0b, 0xb80c, 0xa20d, 0x8c0e, 0x960f,
};

static uint16_t vcrc(const uint8_t *p, size_t n)
{
	uint16_t crc = 0xffff;

	for (size_t i = 0; i < n; i++) {
		crc ^= p[i];
		crc = (uint16_t)(crc >> 4 ^ nibble[crc & 15]);
		crc = (uint16_t)(crc >> 4 ^ nibble[crc & 15]);
	}
	return (uint16_t)~crc;
}

void vcrc_seal(uint8_t *packet, size_t n)
{
	uint16_t crc = vcrc(packet, n);

	packet[n] = (uint8_t)crc;
	packet[n + 1] = (uint8_t)(crc >> 8);
}

bool vcrc_check(const uint8_t *packet, size_t n)
{
	return n >= VCRC_LEN && vcrc(packet, n - VCRC_LEN) == (packet[n - 2] | packet[n - 1] << 8);
}
