/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An image is any bytes, whose CRC is made right here. What is loaded from it is saved, loaded and saved again, to the
 * same bytes; then it gets turns and time. Its regions are put where there is memory.
 */
#include <stdlib.h>
#include <string.h>

#include "nic/state.h"
#include "nic/traffic.h"
#include "wire/crc32.h"

enum { BYTES_MAX = 32 << 20, MEMORY = 1 << 16, TURNS = 24, BURST = 68, CRC_BYTES = 4 };

static int64_t held;

/* Not more than an image of that size may need. */
static void *get(void *ctx, size_t bytes)
{
	void *p = held + (int64_t)bytes <= BYTES_MAX ? heap_get(ctx, bytes) : NULL;

	held += p ? (int64_t)bytes : 0;
	return p;
}

static void put(void *ctx, void *p, size_t bytes)
{
	held -= (int64_t)bytes;
	heap_put(ctx, p, bytes);
}

static void give_memory(struct nic *nic)
{
	static uint64_t memory[MEMORY / 8];
	static void *at[4096];
	size_t n = nic_objects(nic, NIC_MW, at, 4096);

	for (size_t i = 0; i < n; i++)
		((struct mw *)at[i])->opened.length = 0;
	n = nic_objects(nic, NIC_MR, at, 4096);
	for (size_t i = 0; i < n; i++) {
		struct mr *mr = at[i];

		mr->addr = (uint8_t *)memory;
		mr->length = mr->length < MEMORY ? mr->length : MEMORY;
	}
}

static void go_on(struct nic *nic, uint64_t now_ns)
{
	struct async_event event;
	struct pkt burst[BURST];

	for (int i = 0; i < TURNS; i++) {
		uint64_t deadline_ns = nic_deadline(nic);

		nic_output(nic, burst, BURST, now_ns);
		nic_next_async_event(nic, &event);
		nic_next_cq_event(nic);
		if (deadline_ns == UINT64_MAX)
			return;
		now_ns = deadline_ns > now_ns ? deadline_ns : now_ns;
		nic_expire(nic, now_ns);
	}
}

/* What was loaded is an image like any other. */
static void load_again(const struct nic_config *config, struct nic *nic)
{
	struct nic_image first, second;
	struct nic *other;

	if (nic_save(nic, DUO_START_NS, &first))
		return; /* no memory */
	if (!nic_load(config, &first, DUO_START_NS, &other)) {
		if (!nic_save(other, DUO_START_NS, &second)) {
			assert(second.size == first.size && !memcmp(second.bytes, first.bytes, first.size));
			nic_image_free(&second);
		}
		nic_destroy(other);
	}
	nic_image_free(&first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Behind the image: how many owners there are, and which kind of nic it is for. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void *owners[UINT8_MAX];
	static struct heap heap = HEAP_INIT;
	static struct duo *d;
	struct nic_image image = {.owners = owners};
	struct nic_config config;
	struct nic *nic;
	uint32_t crc;

	if (size < 2)
		return 0;
	if (!d || traffic_now != &traffics[data[size - 1] % TRAFFICS]) {
		traffic_now = &traffics[data[size - 1] % TRAFFICS];
		if (d)
			duo_destroy(d);
		d = duo_create(1, traffic_config);
	}
	image.owner_count = data[size - 2];
	image.size = size - 2 + CRC_BYTES;
	image.bytes = malloc(image.size);
	memcpy(image.bytes, data, size - 2);
	crc = crc32_ieee(0, data, size - 2);
	memcpy(image.bytes + size - 2, &crc, CRC_BYTES);
	config = d->host[DUO_A].config;
	config.alloc = (struct alloc){.get = get, .put = put, .ctx = &heap};
	if (!nic_load(&config, &image, DUO_START_NS, &nic)) {
		load_again(&config, nic);
		give_memory(nic);
		go_on(nic, DUO_START_NS);
		nic_destroy(nic);
	}
	assert(!heap.blocks);
	free(image.bytes);
	return 0;
}
