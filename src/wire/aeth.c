/* SPDX-License-Identifier: BSD-2-Clause */
/* The RNR NAK timer codes. */
#include "wire/aeth.h"

/* Units of 10 us (IBTA Table 45). Code 0 is the longest wait. */
/* clang-format off */
static const uint32_t rnr_10us[AETH_VALUE_MASK + 1] = {
	65536,    1,    2,     3,     4,     6,     8,    12,
	   16,   24,   32,    48,    64,    96,   128,   192,
	  256,  384,  512,   768,  1024,  1536,  2048,  3072,
	 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};
/* clang-format on */

uint64_t aeth_rnr_ns(uint8_t code)
{
	return rnr_10us[code & AETH_VALUE_MASK] * UINT64_C(10000);
}
