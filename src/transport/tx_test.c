/* SPDX-License-Identifier: BSD-2-Clause */
#include "mem/mr.h"
#include "support/test.h"
#include "transport/tx.h"
#include "wire/icrc.h"

enum { BURST = 256 };

static struct tx tx;
static struct icrc_ctx seals;
static struct pkt burst[BURST];
static struct flow flow_a, flow_b;

static int setup(void **state)
{
	static const uint8_t gid[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1};

	memset(&tx, 0, sizeof(tx));
	tx.seal = &seal_icrc;
	tx.icrc = &seals;
	tx.arena = aligned_alloc(64, (TX_ARENA_BYTES + 63) / 64 * 64);
	tx.train_max = PKT_TRAIN_MAX;
	memcpy(flow_a.src, gid, 16);
	memcpy(flow_a.dst, gid, 16);
	flow_a.dport = 4791; /* without UDP there are no identifications */
	flow_b = flow_a;
	flow_b.dst[15] = 2;
	tx_start(&tx, burst, BURST);
	return 0;
}

static int teardown(void **state)
{
	free(tx.arena);
	return 0;
}

static void commit(const struct flow *flow, uint32_t dqpn, uint32_t len)
{
	uint8_t *p = tx_room(&tx, len);

	assert_non_null(p);
	memset(p, 0x5a, len);
	tx_commit(&tx, flow, dqpn, len - ICRC_LEN);
	assert_int_equal(tx_last_len(&tx), len);
}

#define CASE(name) TEST_WITH(name, setup, teardown)

CASE(packets_of_one_length_are_one_contiguous_train)
{
	for (int i = 0; i < 5; i++)
		commit(&flow_a, 7, 100);
	assert_int_equal(tx_finish(&tx), 5);
	for (uint16_t i = 0; i < 5; i++) {
		assert_int_equal(burst[i].train, 5 - i);
		assert_int_equal(burst[i].ip_id, i);
		assert_ptr_equal(burst[i].data, burst[0].data + 100 * i);
	}
}

CASE(a_shorter_packet_ends_its_train)
{
	commit(&flow_a, 7, 100);
	commit(&flow_a, 7, 40);
	commit(&flow_a, 7, 40);
	assert_int_equal(tx_finish(&tx), 3);
	assert_int_equal(burst[0].train, 2);
	assert_int_equal(burst[1].train, 1);
	assert_int_equal(burst[2].train, 1);
	assert_int_equal(burst[2].ip_id, 0);
}

CASE(a_longer_packet_begins_a_train)
{
	commit(&flow_a, 7, 40);
	commit(&flow_a, 7, 100);
	tx_finish(&tx);
	assert_int_equal(burst[0].train, 1);
	assert_int_equal(burst[1].ip_id, 0);
}

CASE(another_flow_or_qp_begins_a_train)
{
	commit(&flow_a, 7, 40);
	commit(&flow_b, 7, 40);
	commit(&flow_b, 8, 40);
	tx_finish(&tx);
	for (int i = 0; i < 3; i++)
		assert_int_equal(burst[i].train, 1);
}

CASE(a_train_stays_within_the_kernels_limits)
{
	for (int i = 0; i < 70; i++)
		commit(&flow_a, 7, 40);
	tx_finish(&tx);
	assert_int_equal(burst[0].train, PKT_TRAIN_MAX);
	assert_int_equal(burst[PKT_TRAIN_MAX].train, 70 - PKT_TRAIN_MAX);

	tx_start(&tx, burst, BURST);
	for (int i = 0; i < 20; i++)
		commit(&flow_a, 7, 4136);
	tx_finish(&tx);
	assert_int_equal(burst[0].train, PKT_TRAIN_BYTES_MAX / 4136);
}

CASE(a_back_end_without_trains_gets_none)
{
	tx.train_max = 1;
	commit(&flow_a, 7, 40);
	commit(&flow_a, 7, 40);
	tx_finish(&tx);
	assert_int_equal(burst[0].train, 1);
	assert_int_equal(burst[1].ip_id, 0);
}

CASE(each_packet_is_sealed_with_its_place_in_the_train)
{
	static struct icrc_ctx icrc;
	uint16_t id;

	for (int i = 0; i < 3; i++)
		commit(&flow_a, 7, 100);
	tx_finish(&tx);
	for (int i = 0; i < 3; i++) {
		assert_true(icrc_check(&icrc, &burst[i], 0, &id));
		assert_int_equal(id, i);
	}
}

CASE(a_kept_flow_is_copied_once_and_outlives_the_original)
{
	struct flow gone = flow_a;
	const struct flow *kept = tx_keep_flow(&tx, &gone);

	commit(kept, 7, 40);
	assert_ptr_equal(tx_keep_flow(&tx, &gone), kept);
	commit(kept, 7, 40);
	memset(&gone, 0xff, sizeof(gone));
	assert_memory_equal(kept, &flow_a, sizeof(flow_a));
	assert_ptr_not_equal(tx_keep_flow(&tx, &flow_b), kept);
	tx_finish(&tx);
	assert_int_equal(burst[0].train, 2);
}

CASE(a_full_turn_has_no_room)
{
	size_t n = 0;

	while (tx_room(&tx, 4136)) {
		commit(&flow_a, 7, 4136);
		n++;
	}
	assert_int_equal(n, 2 * (PKT_TRAIN_BYTES_MAX / 4136)); /* no stub of a third train */
	tx_start(&tx, burst, 1);
	commit(&flow_a, 7, 40);
	assert_null(tx_room(&tx, 40));
}

CASE(a_train_that_ends_ends_the_turn_unless_a_whole_one_fits)
{
	for (int i = 0; i < 3; i++)
		commit(&flow_a, 7, 1052);
	commit(&flow_a, 7, 1048);
	assert_non_null(tx_room(&tx, 1052));
	while (tx.used < TX_DATA_BYTES - PKT_TRAIN_BYTES_MAX)
		commit(&flow_a, 7, 1052);
	assert_non_null(tx_room(&tx, 1052));
	commit(&flow_a, 7, 1048);
	assert_null(tx_room(&tx, 1052));
}

static void answer(uint32_t len)
{
	uint8_t *p = tx_room_for_answer(&tx, len);

	assert_non_null(p);
	memset(p, 0x5a, len);
	tx_commit_answer(&tx, &flow_b, 7, len - ICRC_LEN);
}

CASE(a_full_turn_has_room_for_answers)
{
	static const uint32_t lens[] = {40, 1052, 4136};

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		size_t data;

		tx_start(&tx, burst, 2 * PKT_TRAIN_MAX + TX_ANSWERS);
		while (tx_room(&tx, lens[i]))
			commit(&flow_a, 7, lens[i]);
		data = tx.count;
		assert_true(data == 2 * PKT_TRAIN_MAX || data == 2 * (PKT_TRAIN_BYTES_MAX / lens[i]));
		for (int k = 0; k < TX_ANSWERS; k++) {
			assert_non_null(tx_keep_flow(&tx, k & 1 ? &flow_a : &flow_b));
			answer(400);
			/* They are for no more data than before. */
			assert_null(tx_room(&tx, 40));
		}
		assert_int_equal(tx_finish(&tx), data + TX_ANSWERS);
	}
	assert_null(tx_room_for_answer(&tx, PKT_TRAIN_BYTES_MAX));
}

/* Such a turn has no room to keep. */
CASE(a_turn_of_few_packets_is_full_of_data)
{
	tx_start(&tx, burst, 2 * TX_ANSWERS);
	while (tx_room(&tx, 40))
		commit(&flow_a, 7, 40);
	assert_int_equal(tx.count, 2 * TX_ANSWERS);
	assert_null(tx_room_for_answer(&tx, 40));
}

/* The packet that an answer follows was given up after some of it was left out. */
CASE(an_answer_leaves_nothing_out)
{
	struct mr_far far = {0};
	size_t data;

	tx.seal = &seal_none;
	tx.far = &far;
	for (data = 0; tx_room(&tx, 4136); data++) {
		far = (struct mr_far){tx_room(&tx, 4136) + 36, 4096};
		commit(&flow_a, 7, 4136);
	}
	far = (struct mr_far){tx.arena + tx.used, PKT_FAR_BYTES_MIN};
	answer(64);
	tx_finish(&tx);
	assert_int_equal(far.len, 0);
	assert_int_equal(burst[data - 1].far_bytes, 4096);
	assert_int_equal(burst[data].far_at, 0);
	assert_int_equal(burst[data].far_bytes, 0);
}

/* Between processes of a host nothing is sealed, and what was left out of a packet is noted in it. */
CASE(a_packet_says_what_it_leaves_out)
{
	struct mr_far far = {0};

	tx.seal = &seal_none;
	tx.far = &far;
	commit(&flow_a, 7, 2000);
	far = (struct mr_far){tx_room(&tx, 2000) + 60, 1900};
	commit(&flow_a, 7, 2000);
	commit(&flow_a, 7, 2000);
	/* Noted for a packet that was given up: this one is too short to be it. */
	far = (struct mr_far){tx_room(&tx, 2000) + 60, 1900};
	commit(&flow_a, 7, 1000);
	assert_int_equal(far.len, 0);
	assert_int_equal(tx_finish(&tx), 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(burst[i].far_at, i == 1 ? 60 : 0);
		assert_int_equal(burst[i].far_bytes, i == 1 ? 1900 : 0);
	}
}
