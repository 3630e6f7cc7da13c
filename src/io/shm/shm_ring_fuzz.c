/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer that writes anything anywhere into the memory, at any time: whatever comes out is within its bounds, and
 * nothing is read or written outside of the memory, which the sanitizer sees.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "io/shm/shm_ring.h"
#include "support/fuzz_input.h"

enum { STEP_BYTES = 8 };

/* One step of the input: the peer writes a word, or one of the ends does its work. */
static void step(struct shm_memory *m, struct shm_putter *in, struct shm_taker *out, uint8_t *buffer, const uint8_t *s)
{
	uint32_t at = (uint32_t)(s[1] | s[2] << 8 | s[3] << 16), word;
	struct flow flow = {.sport = s[4]};
	struct shm_train t;

	memcpy(&word, s + 4, sizeof(word));
	switch (s[0] % 4) {
	case 0: /* the words that matter most, and small numbers of units in them */
		memcpy((uint8_t *)m + (at % 4) * SHM_UNIT_BYTES, &word, sizeof(word));
		break;
	case 1: memcpy((uint8_t *)m + at % (SHM_MEMORY_BYTES - sizeof(word)), &word, sizeof(word)); break;
	case 2: {
		uint32_t len = 1 + word % PKT_TRAIN_BYTES_MAX, segment = (len + PKT_TRAIN_MAX - 1) / PKT_TRAIN_MAX;

		if (shm_put(in, &flow, buffer, &(struct shm_train){.len = len, .segment = segment}) == SHM_DONE &&
		    at % 2)
			shm_publish(in);
		assert(in->tail < SHM_ROOM_BYTES);
		break;
	}
	default:
		if (shm_take(out, buffer, PKT_TRAIN_BYTES_MAX, &t) == SHM_DONE) {
			assert(t.len && t.len <= PKT_TRAIN_BYTES_MAX && t.segment && t.first < PKT_TRAIN_MAX);
			assert(t.far || (t.len + t.segment - 1) / t.segment <= PKT_TRAIN_MAX);
		}
		assert(out->head < SHM_ROOM_BYTES);
		if (at % 2)
			shm_release(out);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* To the byte, so that a sanitizer sees what goes beyond. */
	struct shm_memory *m = aligned_alloc(4096, SHM_MEMORY_BYTES);
	uint8_t *buffer = calloc(1, PKT_TRAIN_BYTES_MAX);
	struct shm_putter in;
	struct shm_taker out;

	memset(m, 0, SHM_MEMORY_BYTES);
	shm_memory_init(m);
	shm_putter_init(&in, m);
	shm_taker_init(&out, m);
	for (; size >= STEP_BYTES; data += STEP_BYTES, size -= STEP_BYTES)
		step(m, &in, &out, buffer, data);
	free(buffer);
	free(m);
	return 0;
}
