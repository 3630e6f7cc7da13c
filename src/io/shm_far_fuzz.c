/* SPDX-License-Identifier: BSD-2-Clause */
/* Any bytes as a description: packets are laid out within bounds, and so is all that is read into them. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "io/shm_far.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct shm_far f;
	uint16_t head[2];
	uint8_t *from, *to;
	uint32_t missing = 0;

	if (size < sizeof(head) || size > SHM_FAR_BYTES_MAX)
		return 0;
	memcpy(head, data, sizeof(head));
	data += sizeof(head);
	size -= sizeof(head);
	/* To the byte, so that a sanitizer sees what goes beyond. */
	from = malloc(size + 1);
	memcpy(from, data, size);
	to = malloc(head[1] + 1u);
	if (shm_far_lay_out(from, (uint32_t)size, head[0], to, head[1], &f)) {
		assert(f.here_count && f.here_count <= PKT_TRAIN_MAX && f.there_count && f.there_count <= f.here_count);
		assert(f.len <= head[1] && f.missing <= f.len);
		for (size_t i = 0; i < f.here_count; i++) {
			uint8_t *p = f.here[i].iov_base;

			assert(p >= to && p + f.here[i].iov_len <= to + f.len);
			memset(p, 1, f.here[i].iov_len);
			missing += (uint32_t)f.here[i].iov_len;
		}
		assert(missing == f.missing);
		for (size_t i = 0; i < f.there_count; i++)
			missing -= (uint32_t)f.there[i].iov_len;
		assert(!missing);
	}
	free(to);
	free(from);
	return 0;
}
