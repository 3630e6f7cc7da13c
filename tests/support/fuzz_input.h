/* SPDX-License-Identifier: BSD-2-Clause */
/* The bytes by which a fuzz target steers what it does, one at a time. An input that has ended goes on as zeros. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *data;
	size_t size;
};

static inline uint8_t next_byte(struct input *in)
{
	if (!in->size)
		return 0;
	in->size--;
	return *in->data++;
}

/* A number of so many bytes, the lowest first. */
static inline uint64_t next_number(struct input *in, int bytes)
{
	uint64_t value = 0;

	for (int i = 0; i < bytes && in->size; i++)
		value |= (uint64_t)next_byte(in) << 8 * i;
	return value;
}

/* What does not hold ends the target, so that the fuzzer keeps the input. */
static inline void must(bool claim)
{
	if (!claim)
		abort();
}
