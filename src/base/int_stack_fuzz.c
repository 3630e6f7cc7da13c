/* SPDX-License-Identifier: BSD-2-Clause */
/* Any bytes: what decodes encodes to the same bytes, and no hop unpacks to anything absurd. */
#include <string.h>

#include "base/int_stack.h"
#include "support/fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t buf[INT_LEN_MAX];
	struct int_stack s;
	size_t len = int_stack_decode(&s, data, size);

	if (!len)
		return 0;
	must(len <= size && s.hops <= INT_HOPS_MAX && s.path_id < 1 << 12);
	must(int_stack_encode(buf, &s) == len && !memcmp(buf, data, len));
	for (unsigned int i = 0; i < s.hops; i++) {
		struct int_hop h = int_hop_unpack(s.hop[i]), first = int_hop_unpack(s.hop[0]);

		must(h.ts_ns < INT_WRAP_NS);
		must(int_ts_diff_ns(&h, &first) < INT_WRAP_NS);
		must(int_tx_diff_bytes(&h, &first) <= UINT64_C(128) * 64 << 20);
		if (h.rate_bps)
			must(int_hop_pack(&h) == s.hop[i]);
	}
	return 0;
}
