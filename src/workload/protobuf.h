/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wire format of Protocol Buffers: fields, of which each has a number and one of five wire types. Reads are bounded
 * by the end of the bytes, which are borrowed. Groups, wire types 3 and 4, have gone out of use and are refused.
 *
 * Private to src/workload.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum protobuf_wire { PROTOBUF_VARINT = 0, PROTOBUF_FIXED64 = 1, PROTOBUF_BYTES = 2, PROTOBUF_FIXED32 = 5 };

struct protobuf {
	const uint8_t *at, *end;
};

struct protobuf_field {
	uint32_t number;
	enum protobuf_wire wire;
	uint64_t value;        /* of varint, fixed64, fixed32 */
	struct protobuf bytes; /* of bytes */
};

enum protobuf_result { PROTOBUF_FIELD, PROTOBUF_END, PROTOBUF_BAD };

/* A base-128 number, the low bits first. False: it does not end, or has more than 64 bits. */
bool protobuf_varint(struct protobuf *, uint64_t *out);
enum protobuf_result protobuf_next(struct protobuf *, struct protobuf_field *out);
