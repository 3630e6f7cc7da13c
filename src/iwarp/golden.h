/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames as they must be, in hex, spaces ignored. All were dissected by tshark 4.0.17 as named, with a good CRC; the two
 * with markers are RFC 5044's figures 5 and 6. For tests.
 */
#ifndef IWARP_GOLDEN_H
#define IWARP_GOLDEN_H

#include <stddef.h>
#include <stdint.h>

#define GOLDEN_REQUEST "4d504120494420526571204672616d65 50020008 8010c010 70696e67"
#define GOLDEN_REPLY "4d504120494420526570204672616d65 50020008 80108010 706f6e67"
#define GOLDEN_RTR_WRITE "000ec140 00000001 0000000000000000 ebd34c5f"
#define GOLDEN_SEND "001b4143 00000000 00000000 00000001 00000000 76657262656e612121000000 65bd6d1c"
#define GOLDEN_WRITE "001ec140 11223344 0000560012345000 000102030405060708090a0b0c0d0e0f 7ce58a59"
#define GOLDEN_READ_REQUEST                                                                                            \
	"002e4141 00000000 00000001 00000001 00000000 55667788 0000000000001000 00001000 11223344 0000560012345000 " \
	"3a9c32d2"
#define GOLDEN_READ_RESPONSE "0012c142 55667788 0000000000001000 30313233 e0eec679"
#define GOLDEN_SEND_SE_INV "00164146 11223344 00000000 00000002 00000000 646f6e65 4bab2bb4"
#define GOLDEN_IMM "001a4148 00000000 00000000 00000003 00000000 cafe000100000000 2ec26c7d"
#define GOLDEN_ATOMIC_REQUEST                                                                                          \
	"0046414a 00000000 00000001 00000002 00000000 00000000 00000007 11223344 0000560012345008 "                    \
	"0000000000000001 0000000000000000 0000000000000000 ffffffffffffffff 6676522d"
#define GOLDEN_ATOMIC_RESPONSE "001e414b 00000000 00000003 00000001 00000000 00000007 0000000000000029 b9ebafe8"
#define GOLDEN_TERMINATE_STAG                                                                                          \
	"00264147 00000000 00000002 00000001 00000000 1100c000 001e c140112233440000560012345000 068c8fa9"
#define GOLDEN_TERMINATE_CRC "00164147 00000000 00000002 00000001 00000000 20020000 7fe42585"
#define GOLDEN_MARKER_FIRST                                                                                            \
	"00000000 002a4143 00000000 00000000 00000001 00000000 "                                                       \
	"000000000000000000000000000000000000000000000000 52239983"
#define GOLDEN_MARKER_INSIDE                                                                                           \
	"002a4143 00000000 00000000 00000002 00000000 00000014 "                                                       \
	"000000000000000000000000000000000000000000000000 84925898"

enum { GOLDEN_MARKER_INSIDE_POS = 492 };

static inline int golden_nibble(char c)
{
	return c <= '9' ? c - '0' : c - 'a' + 10;
}

static inline size_t golden_bytes(uint8_t *out, const char *hex)
{
	size_t n = 0;

	for (; *hex; hex++) {
		if (*hex == ' ')
			continue;
		out[n++] = (uint8_t)(golden_nibble(hex[0]) << 4 | golden_nibble(hex[1]));
		hex++;
	}
	return n;
}

#endif
