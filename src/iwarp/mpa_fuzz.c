/* SPDX-License-Identifier: BSD-2-Clause */
/* Any bytes as a start-up frame: the length is said once and for all; what is a frame comes back as it went in. */
#include <string.h>

#include "iwarp/mpa.h"
#include "support/fuzz_input.h"

static void fuzz(const uint8_t *data, size_t size, bool reply)
{
	uint8_t in[MPA_FRAME_MAX], out[MPA_FRAME_MAX];
	int len = mpa_frame_len(data, size, reply);
	struct mpa_frame f;

	for (size_t have = 0; have < size; have++) {
		int then = mpa_frame_len(data, have, reply);

		must(then == 0 || then == len);
	}
	if (len <= 0 || (size_t)len > size)
		return;
	memcpy(in, data, (size_t)len);
	mpa_decode(&f, in);
	must(f.reply == reply);
	in[16] &= f.rev == 2 ? 0xf0 : 0xe0; /* reserved */
	memset(out, 0xa5, sizeof(out));
	must(mpa_encode(out, &f) == (size_t)len);
	must(!memcmp(in, out, (size_t)len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz(data, size, false);
	fuzz(data, size, true);
	return 0;
}
