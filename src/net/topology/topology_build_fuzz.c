/* SPDX-License-Identifier: BSD-2-Clause */
/* With any accepted parameters the topology passes its check and keeps to the limits. */
#include <assert.h>

#include "net/topology/topology_build.h"
#include "net/topology/topology_path.h"
#include "support/fuzz_input.h"

/* Small numbers mostly, so that a run is quick; the largest now and then. */
static uint32_t take_size(struct input *in)
{
	uint32_t value = (uint32_t)next_number(in, 1);

	return value == 255 ? UINT32_MAX : value == 254 ? 1u << 20 : value % 12;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	struct topology_long_link far[4] = {{0}};
	struct topology_params p = topology_params_default();
	struct text_error err = {0};
	struct topology t;
	uint32_t kinds = 0;
	uint64_t longest;

	while (topology_kinds[kinds])
		kinds++;

	const char *kind = topology_kinds[next_number(&in, 1) % kinds];
	uint64_t site = next_number(&in, 1);

	p.site_kind = site % (kinds + 1) < kinds ? topology_kinds[site % (kinds + 1)] : NULL;
	p.hosts = take_size(&in);
	p.bottlenecks = take_size(&in);
	p.leaves = take_size(&in);
	p.hosts_per_leaf = take_size(&in);
	p.spines = take_size(&in);
	p.uplinks = take_size(&in);
	p.k = take_size(&in);
	p.nics = take_size(&in);
	p.groups = p.k;
	p.borders = take_size(&in);
	p.long_link_count = (uint32_t)next_number(&in, 1) % 5;
	p.long_links = far;
	if (next_number(&in, 1) % 4 == 0) {
		p.rate_bps = next_number(&in, 8);
		p.fabric_rate_bps = next_number(&in, 8);
		p.border_rate_bps = next_number(&in, 8);
		p.delay_ps = next_number(&in, 8);
		p.fabric_delay_ps = next_number(&in, 8);
		p.loss_ppb = (uint32_t)next_number(&in, 4);
	}
	for (int i = 0; i < 4; i++)
		far[i] = (struct topology_long_link){next_number(&in, 6), next_number(&in, 6),
						     (uint32_t)next_number(&in, 3)};
	if (topology_build(&t, kind, &p, &err)) {
		assert(err.message[0]);
		return 0;
	}
	assert(topology_check(&t, &err) == 0);
	if (t.node_count < 300) {
		struct topology_paths *paths = topology_paths_create(&t, 1000);

		assert(paths && topology_paths_longest_rtt_ps(paths, 0, &longest) == 0);
		topology_paths_free(paths);
	}
	topology_free(&t);
	return 0;
}
