/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "nic/state.h"
#include "support/test.h"

enum { QPN_BITS = 10, NUMBERS = (1 << QPN_BITS) - 2 /* 0 and 1 are reserved */ };

static bool out_of_memory;

static void *get(void *ctx, size_t bytes)
{
	return out_of_memory ? NULL : calloc(1, bytes);
}

static void put(void *ctx, void *p, size_t bytes)
{
	free(p);
}

static struct nic *nic_of_slot(uint32_t slot)
{
	struct nic *nic = calloc(1, sizeof(*nic));

	assert_non_null(nic);
	nic->tp.alloc = (struct alloc){.get = get, .put = put};
	nic->qpn_bits = QPN_BITS;
	nic->qpn_base = slot << NIC_QPN_BITS;
	qp_table_init(nic);
	return nic;
}

static void fill(struct nic *nic, struct qp *qps)
{
	for (uint32_t i = 0; i < NUMBERS; i++)
		assert_int_equal(qp_table_add(nic, &qps[i], 0), 0);
}

static void empty(struct nic *nic, struct qp *qps)
{
	for (uint32_t i = 0; i < NUMBERS; i++)
		qp_table_remove(nic, &qps[i]);
	qp_table_fini(nic);
	free(nic);
}

static void check_all(const struct nic *nic, struct qp *qps)
{
	for (uint32_t i = 0; i < NUMBERS; i++) {
		assert_true(qps[i].qpn > 1);
		assert_ptr_equal(qp_table_find(nic, qps[i].qpn), &qps[i]);
	}
}

TEST(every_number_is_given_once_and_finds_its_qp)
{
	struct nic *nic = nic_of_slot(0);
	struct qp *qps = calloc(NUMBERS + 1, sizeof(*qps));

	assert_non_null(qps);
	fill(nic, qps);
	check_all(nic, qps);
	assert_true(qp_table_add(nic, &qps[NUMBERS], 0) < 0);
	empty(nic, qps);
	free(qps);
}

/* Every slot has as many as the device reports, though only the first lacks the two reserved ones. */
TEST(there_are_as_many_as_the_device_says)
{
	struct qp *qps = calloc(NIC_MAX_QP + 1, sizeof(*qps));

	assert_non_null(qps);
	for (uint32_t slot = 0; slot < 2; slot++) {
		struct nic *nic = nic_of_slot(slot);

		nic->qpn_bits = NIC_QPN_BITS;
		for (uint32_t i = 0; i < NIC_MAX_QP; i++)
			assert_int_equal(qp_table_add(nic, &qps[i], 0), 0);
		assert_int_equal(qp_table_add(nic, &qps[NIC_MAX_QP], 0), -ENOMEM);
		qp_table_remove(nic, &qps[7]);
		assert_int_equal(qp_table_add(nic, &qps[7], 0), 0);
		for (uint32_t i = 0; i < NIC_MAX_QP; i++)
			qp_table_remove(nic, &qps[i]);
		qp_table_fini(nic);
		free(nic);
	}
	free(qps);
}

TEST(a_number_that_was_given_back_finds_nobody)
{
	struct nic *nic = nic_of_slot(0);
	struct qp *qps = calloc(NUMBERS, sizeof(*qps));

	assert_non_null(qps);
	fill(nic, qps);
	for (uint32_t i = 0; i < NUMBERS; i += 3) {
		qp_table_remove(nic, &qps[i]);
		assert_null(qp_table_find(nic, qps[i].qpn));
	}
	/* They are given to other QPs. */
	for (uint32_t i = 0; i < NUMBERS; i += 3)
		assert_int_equal(qp_table_add(nic, &qps[i], 0), 0);
	check_all(nic, qps);
	empty(nic, qps);
	free(qps);
}

TEST(numbers_of_another_process_find_nobody)
{
	struct nic *nic = nic_of_slot(1);
	struct qp qp = {0};

	assert_int_equal(qp_table_add(nic, &qp, 0), 0);
	assert_ptr_equal(qp_table_find(nic, qp.qpn), &qp);
	assert_null(qp_table_find(nic, qp.qpn ^ 1u << NIC_QPN_BITS));
	assert_null(qp_table_find(nic, qp.qpn ^ 2u << NIC_QPN_BITS));
	qp_table_remove(nic, &qp);
	qp_table_fini(nic);
	free(nic);
}

TEST(without_memory_for_more_buckets_qps_are_found)
{
	struct nic *nic = nic_of_slot(0);
	struct qp *qps = calloc(NUMBERS, sizeof(*qps));

	assert_non_null(qps);
	out_of_memory = true;
	fill(nic, qps);
	check_all(nic, qps);
	out_of_memory = false;
	empty(nic, qps);
	free(qps);
}
