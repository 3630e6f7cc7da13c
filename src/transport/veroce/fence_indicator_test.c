/* SPDX-License-Identifier: BSD-2-Clause */
/* Which pairs of work requests may not be under way together, by what they do and where. */
#include "support/test.h"
#include "transport/veroce/fence_indicator.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

enum { ELEMENTS = 3 };

struct slot {
	_Alignas(struct send_wqe) uint8_t bytes[sizeof(struct send_wqe) + ELEMENTS * sizeof(struct wqe_sge)];
};

static struct send_wqe *wqe(struct slot *s, enum wr_opcode opcode, uint64_t local, uint64_t remote, uint32_t len)
{
	struct send_wqe *w = (struct send_wqe *)s->bytes;

	memset(s, 0, sizeof(*s));
	w->opcode = (uint8_t)opcode;
	w->num_sge = 1;
	w->length = len;
	w->remote_va = remote;
	w->sge[0] = (struct wqe_sge){.addr = local, .len = len};
	return w;
}

static const enum wr_opcode opcodes[] = {WR_SEND, WR_SEND_IMM, WR_SEND_INV,  WR_WRITE,       WR_WRITE_IMM,
					 WR_READ, WR_CMP_SWAP, WR_FETCH_ADD, WR_ATOMIC_WRITE};

/* A row each older one, a column each newer one, in that order: x waits. */
static const char *const local[COUNT(opcodes)] = {
	".........", ".........", ".........", ".........", ".........",
	"xxxxxxxxx", "xxxxxxxxx", "xxxxxxxxx", ".........",
};
static const char *const remote[COUNT(opcodes)] = {
	".........", ".........", ".........", "...xx....", "...xx....",
	"...xx.xxx", "...xx....", "...xx....", "...xx....",
};

TEST(a_pair_counts_where_weak_order_could_be_seen)
{
	struct slot a, b;

	for (size_t i = 0; i < COUNT(opcodes); i++) {
		for (size_t k = 0; k < COUNT(opcodes); k++) {
			const struct send_wqe *older = wqe(&a, opcodes[i], 1000, 9000, 8);

			assert_int_equal(fence_indicated(older, wqe(&b, opcodes[k], 1000, 5000, 8)),
					 local[i][k] == 'x');
			assert_int_equal(fence_indicated(older, wqe(&b, opcodes[k], 3000, 9000, 8)),
					 remote[i][k] == 'x');
			assert_int_equal(fence_indicated(older, wqe(&b, opcodes[k], 1000, 9000, 8)),
					 local[i][k] == 'x' || remote[i][k] == 'x');
			assert_false(fence_indicated(older, wqe(&b, opcodes[k], 3000, 5000, 8)));
			/* Local bytes of one and remote bytes of the other do not overlap. */
			assert_false(fence_indicated(older, wqe(&b, opcodes[k], 9000, 1000, 8)));
		}
	}
}

static const struct {
	uint64_t a;
	uint32_t a_len;
	uint64_t b;
	uint32_t b_len;
	bool meet;
} ranges[] = {
	{100, 10, 100, 10, true},
	{100, 10, 109, 1, true},
	{100, 10, 110, 1, false},
	{100, 10, 99, 1, false},
	{100, 10, 99, 2, true},
	{100, 10, 0, 1000, true},
	{0, 1000, 100, 10, true},
	{100, 10, 100, 0, false},
	{100, 0, 100, 10, false},
	{100, 0, 0, 1000, false},
	{0, 0, 0, 0, false},
	{UINT64_MAX - 9, 10, UINT64_MAX, 1, true},
	{UINT64_MAX - 9, 10, 0, 1, false},
	{UINT64_MAX - 9, 10, UINT64_MAX - 10, 1, false},
	{0, 1, UINT64_MAX, 1, false},
	{0, 1u << 31, (1u << 31) - 1, 1u << 31, true},
	{0, 1u << 31, 1u << 31, 1u << 31, false},
};

TEST(bytes_meet_or_they_do_not)
{
	struct slot a, b;

	for (size_t i = 0; i < COUNT(ranges); i++) {
		const struct send_wqe *older, *newer;

		older = wqe(&a, WR_WRITE, 0, ranges[i].a, ranges[i].a_len);
		newer = wqe(&b, WR_WRITE, 0, ranges[i].b, ranges[i].b_len);
		assert_int_equal(fence_indicated(older, newer), ranges[i].meet);
		older = wqe(&a, WR_READ, ranges[i].a, 0, ranges[i].a_len);
		newer = wqe(&b, WR_SEND, ranges[i].b, 0, ranges[i].b_len);
		assert_int_equal(fence_indicated(older, newer), ranges[i].meet);
	}
}

TEST(atomics_touch_eight_bytes)
{
	struct slot a, b;
	const struct send_wqe *older = wqe(&a, WR_FETCH_ADD, 0, 800, 8);

	assert_true(fence_indicated(older, wqe(&b, WR_WRITE, 5000, 807, 100)));
	assert_false(fence_indicated(older, wqe(&b, WR_WRITE, 5000, 808, 100)));
	assert_true(fence_indicated(older, wqe(&b, WR_WRITE, 5000, 700, 101)));
	assert_false(fence_indicated(older, wqe(&b, WR_WRITE, 5000, 700, 100)));
}

TEST(every_element_is_looked_at)
{
	struct slot a, b;

	for (uint32_t i = 0; i < ELEMENTS; i++) {
		for (uint32_t k = 0; k < ELEMENTS; k++) {
			struct send_wqe *older = wqe(&a, WR_READ, 0, 0, 300);
			struct send_wqe *newer = wqe(&b, WR_SEND, 0, 0, 300);

			older->num_sge = newer->num_sge = ELEMENTS;
			for (uint32_t n = 0; n < ELEMENTS; n++) {
				older->sge[n] = (struct wqe_sge){.addr = 10000 + 1000 * n, .len = 100};
				newer->sge[n] = (struct wqe_sge){.addr = 20000 + 1000 * n, .len = 100};
			}
			assert_false(fence_indicated(older, newer));
			newer->sge[k].addr = older->sge[i].addr + 99;
			assert_true(fence_indicated(older, newer));
			/* Elements beyond the count are not there, nor those of bytes that were taken. */
			newer->num_sge = (uint16_t)k;
			assert_false(fence_indicated(older, newer));
			newer->num_sge = ELEMENTS;
			newer->flags = WR_INLINE;
			assert_false(fence_indicated(older, newer));
		}
	}
}

TEST(keys_do_not_matter)
{
	struct slot a, b;
	struct send_wqe *older = wqe(&a, WR_WRITE, 0, 800, 8), *newer = wqe(&b, WR_WRITE, 0, 800, 8);

	older->rkey = 1;
	newer->rkey = 2;
	assert_true(fence_indicated(older, newer));
	older = wqe(&a, WR_READ, 100, 800, 8);
	newer = wqe(&b, WR_SEND, 100, 800, 8);
	older->sge[0].lkey = 1;
	newer->sge[0].lkey = 2;
	assert_true(fence_indicated(older, newer));
}
