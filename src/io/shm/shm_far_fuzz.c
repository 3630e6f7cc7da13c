/* SPDX-License-Identifier: BSD-2-Clause */
/* Any bytes as a description: packets are laid out within bounds, and so is all that is read into them. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "io/shm/shm_far.h"
#include "support/fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct shm_far f = {.here_count = 0};
	uint16_t head[2];
	uint8_t *from, *to;
	size_t missing = 0;
	uint32_t len;

	if (size < sizeof(head) || size > SHM_FAR_BYTES_MAX)
		return 0;
	memcpy(head, data, sizeof(head));
	data += sizeof(head);
	size -= sizeof(head);
	/* To the byte, so that a sanitizer sees what goes beyond. */
	from = malloc(size + 1);
	memcpy(from, data, size);
	to = malloc(head[1] + 1u);
	len = shm_far_lay_out(from, (uint32_t)size, head[0], to, head[1], &f);
	if (len) {
		assert(f.here_count && f.here_count <= PKT_TRAIN_MAX && f.there_count && f.there_count <= f.here_count);
		assert(len <= head[1]);
		/* They are cut to this length. */
		assert((len + head[0] - 1) / head[0] == f.here_count);
		for (size_t i = 0; i < f.here_count; i++) {
			uint8_t *p = f.here[i].iov_base;

			assert(p >= to && p + f.here[i].iov_len <= to + len);
			memset(p, 1, f.here[i].iov_len);
			missing += f.here[i].iov_len;
		}
		for (size_t i = 0; i < f.there_count; i++)
			missing -= f.there[i].iov_len;
		assert(!missing);
	} else {
		assert(!f.here_count && !f.there_count);
	}
	free(to);
	free(from);
	return 0;
}
