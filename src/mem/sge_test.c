/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/prng.h"
#include "mem/sge.h"
#include "support/heap.h"
#include "support/test.h"

enum { REGION_BYTES = 4096, IOVA = 1 << 20 };

struct world {
	struct heap heap;
	struct alloc alloc;
	struct mr_table table;
	struct pd pd, other_pd;
	struct mr *rw, *ro;
	uint8_t rw_mem[REGION_BYTES], ro_mem[REGION_BYTES];
};

static struct world *world_new(void)
{
	static const uint8_t secret[16] = {9};
	struct world *w = calloc(1, sizeof(*w));

	w->heap.gets_left = -1;
	w->alloc = heap_alloc(&w->heap);
	assert_int_equal(mr_table_init(&w->table, &w->alloc, secret), 0);
	assert_int_equal(
		mr_create(&w->table, &w->pd, (struct mr_range){w->rw_mem, REGION_BYTES, IOVA}, MR_LOCAL_WRITE, &w->rw),
		0);
	assert_int_equal(mr_create(&w->table, &w->pd, (struct mr_range){w->ro_mem, REGION_BYTES, IOVA}, 0, &w->ro), 0);
	return w;
}

static void world_free(struct world *w)
{
	mr_table_fini(&w->table);
	assert_int_equal(w->heap.bytes, 0);
	free(w);
}

#define CASE(name) TEST_OF(name, struct world *, w, world_new(), world_free(w))

CASE(check_looks_at_every_element)
{
	uint32_t rw = w->rw->key, ro = w->ro->key, none = 0;
	const struct {
		struct sge sge[3];
		uint32_t count, access;
		bool ok;
	} rows[] = {
		{{{0}}, 0, MR_LOCAL_WRITE, true},
		{{{IOVA, 10, rw}, {IOVA + 4000, 96, rw}}, 2, MR_LOCAL_WRITE, true},
		{{{IOVA, 10, rw}, {IOVA + 4000, 97, rw}}, 2, MR_LOCAL_WRITE, false},
		{{{IOVA, 10, rw}, {IOVA, 10, ro}}, 2, MR_LOCAL_WRITE, false},
		{{{IOVA, 10, rw}, {IOVA, 10, ro}}, 2, 0, true},
		{{{IOVA, 10, rw}, {IOVA, 10, none}}, 2, 0, false},
		{{{IOVA, 10, rw}, {IOVA, 0, none}, {IOVA, 1, rw}}, 3, 0, true},
		{{{IOVA - 1, 10, rw}}, 1, 0, false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(
			sge_check(&w->table, &w->pd, (struct sge_list){rows[i].sge, rows[i].count}, rows[i].access),
			rows[i].ok);
	assert_false(sge_check(&w->table, &w->other_pd, (struct sge_list){rows[1].sge, 1}, 0));
}

CASE(copies_agree_with_a_byte_by_byte_model)
{
	enum { ELEMENTS = 6, ROUNDS = 4000 };
	struct prng r;

	prng_init(&r, 3);
	for (int round = 0; round < ROUNDS; round++) {
		struct sge sge[ELEMENTS];
		uint32_t count = 1 + (uint32_t)prng_below(&r, ELEMENTS), at = 0;

		/* Disjoint pieces in ascending order, so that a scatter is unambiguous. */
		for (uint32_t i = 0; i < count; i++) {
			at += (uint32_t)prng_below(&r, 50);
			uint32_t len = prng_below(&r, 4) ? (uint32_t)prng_below(&r, 300) : 0;

			sge[i] = (struct sge){IOVA + at, len, w->rw->key};
			at += len;
		}

		const struct sge_list list = {sge, count};
		uint64_t total = sge_total(sge, count);
		uint64_t off = prng_below(&r, total + 1), len = prng_below(&r, total - off + 1);
		uint8_t msg[ELEMENTS * 300], want[REGION_BYTES], flat[ELEMENTS * 300];
		uint8_t *where[ELEMENTS * 300];
		size_t n = 0;

		for (uint32_t i = 0; i < count; i++) {
			for (uint32_t k = 0; k < sge[i].len; k++)
				where[n++] = w->rw_mem + (sge[i].addr - IOVA) + k;
		}
		for (size_t i = 0; i < REGION_BYTES; i++)
			w->rw_mem[i] = (uint8_t)prng_next(&r);
		for (size_t i = 0; i < n; i++)
			flat[i] = *where[i];
		assert_true(sge_gather(&w->table, &w->pd, list, off, msg, len));
		assert_memory_equal(msg, flat + off, len);

		for (size_t i = 0; i < len; i++)
			msg[i] = (uint8_t)prng_next(&r);
		memcpy(want, w->rw_mem, sizeof(want));
		for (size_t i = 0; i < len; i++)
			want[where[off + i] - w->rw_mem] = msg[i];
		assert_true(sge_scatter(&w->table, &w->pd, list, off, msg, len));
		assert_memory_equal(w->rw_mem, want, REGION_BYTES);
	}
}

CASE(copies_stop_at_a_key_that_does_not_open)
{
	uint8_t msg[64] = {0};
	const struct sge two[] = {{IOVA, 16, w->rw->key}, {IOVA, 16, 0}};
	const struct sge one[] = {{IOVA, 16, w->ro->key}};
	const struct sge_list good_then_bad = {two, 2}, read_only = {one, 1};

	assert_true(sge_gather(&w->table, &w->pd, good_then_bad, 0, msg, 16));
	assert_false(sge_gather(&w->table, &w->pd, good_then_bad, 0, msg, 17));
	assert_false(sge_scatter(&w->table, &w->pd, good_then_bad, 16, msg, 1));
	assert_true(sge_gather(&w->table, &w->pd, read_only, 0, msg, 16));
	assert_false(sge_scatter(&w->table, &w->pd, read_only, 0, msg, 1));

	/* A region that went away between two packets of one message is not touched. */
	const struct sge live[] = {{IOVA, 16, w->rw->key}};
	const struct sge_list going = {live, 1};

	assert_true(sge_scatter(&w->table, &w->pd, going, 0, msg, 8));
	mr_rekey(&w->table, w->rw);
	assert_false(sge_scatter(&w->table, &w->pd, going, 8, msg, 8));
}

TEST(lengths_add_up_beyond_32_bits)
{
	const struct sge sge[] = {{0, UINT32_MAX, 0}, {0, UINT32_MAX, 0}};

	assert_true(sge_total(sge, 2) == 2 * (uint64_t)UINT32_MAX);
	assert_true(sge_total(sge, 0) == 0);
}
