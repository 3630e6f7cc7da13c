/* SPDX-License-Identifier: BSD-2-Clause */
/* The flows of golden packets, one of each family: for tests of src/base and src/wire. */
#pragma once

#include "base/pkt.h"

static const struct flow flow4 = {
	.src = {[10] = 0xff, [11] = 0xff, 10, 1, 2, 3},
	.dst = {[10] = 0xff, [11] = 0xff, 192, 168, 7, 9},
	.sport = 50000,
	.dport = 4791,
	.tos = 0x68,
	.ttl = 63,
};

static const struct flow flow6 = {
	.src = {0x20, 0x01, 0x0d, 0xb8, [15] = 1},
	.dst = {0xfe, 0x80, [14] = 0xab, 0xcd},
	.sport = 50000,
	.dport = 4791,
	.flow_label = 0x12345,
	.tos = 0x68,
	.ttl = 63,
};
