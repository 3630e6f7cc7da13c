/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A text that is accepted gives a topology that passes its check, and any two of its hosts have a
 * path.
 */
#include <assert.h>
#include <string.h>

#include "base/prng.h"
#include "net/topology/topology_hpcc.h"
#include "net/topology/topology_path.h"
#include "support/fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct text_error err = {0};
	struct topology t;
	struct prng r;
	uint64_t longest;

	if (topology_read_hpcc(&t, (const char *)data, size, &err)) {
		assert(err.message[0] && strlen(err.message) < sizeof(err.message));
		return 0;
	}
	assert(topology_check(&t, &err) == 0);

	struct topology_paths *paths = topology_paths_create(&t, 1000);

	assert(paths && topology_paths_longest_rtt_ps(paths, 0, &longest) == 0);
	prng_init(&r, size);
	for (int i = 0; i < 20; i++) {
		uint32_t src = (uint32_t)prng_below(&r, t.host_count);
		uint32_t dst = (uint32_t)prng_below(&r, t.host_count);
		struct topology_path p, back;

		if (src == dst)
			continue;
		assert(topology_paths_get(paths, src, dst, &p) == 0);
		assert(topology_paths_get(paths, dst, src, &back) == 0);
		assert(p.hops >= 1 && p.hops < t.node_count);
		assert(p.rate_bps >= TOPOLOGY_RATE_BPS_MIN && p.rate_bps <= TOPOLOGY_RATE_BPS_MAX);
		assert(topology_path_base_rtt_ps(&p, 0) <= longest);
		assert(topology_paths_links(paths, src, dst, NULL, 0) == p.hops);
		assert(topology_path_base_rtt_ps(&p, 0) == topology_path_base_rtt_ps(&back, 0));
	}
	topology_paths_free(paths);
	topology_free(&t);
	return 0;
}
