/* SPDX-License-Identifier: BSD-2-Clause */
/* A small shape for SDR's tests: messages of up to 256 packets, 4 to a chunk, in 4 slots and 3
 * generations. */
#pragma once

#include "sdr/message/shape.h"

static const struct shape small = {
	.split = {10, 18, 4},
	.mtu = 64,
	.chunk_bytes = 256,
	.slots = 4,
	.generations = 3,
	.channels = 2,
	.message_bytes = 16384,
};
