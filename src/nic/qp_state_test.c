/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/state.h"
#include "support/test.h"

enum {
	TO_INIT_C = QPA_STATE | QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS,
	TO_INIT_UD = QPA_STATE | QPA_PKEY_INDEX | QPA_PORT | QPA_QKEY,
	TO_RTR_UC = QPA_STATE | QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN,
	TO_RTR_RC = TO_RTR_UC | QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER,
	TO_RTS_RC = QPA_STATE | QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_SQ_PSN | QPA_MAX_RD_ATOMIC,
};

static const struct row {
	enum qp_type type;
	enum qp_state from, to;
	uint32_t mask;
	bool legal;
} rows[] = {
	{QPT_RC, QPS_RESET, QPS_INIT, TO_INIT_C, true},
	{QPT_RC, QPS_RESET, QPS_INIT, TO_INIT_C & ~QPA_PORT, false},
	{QPT_RC, QPS_RESET, QPS_INIT, TO_INIT_C | QPA_QKEY, false},
	{QPT_UD, QPS_RESET, QPS_INIT, TO_INIT_UD, true},
	{QPT_UD, QPS_RESET, QPS_INIT, TO_INIT_C, false},
	{QPT_RC, QPS_RESET, QPS_RTR, TO_RTR_RC, false},
	{QPT_RC, QPS_RESET, QPS_RTS, TO_RTS_RC, false},
	{QPT_RC, QPS_INIT, QPS_INIT, QPA_ACCESS_FLAGS, true},
	{QPT_RC, QPS_INIT, QPS_RTR, TO_RTR_RC, true},
	{QPT_RC, QPS_INIT, QPS_RTR, TO_RTR_UC, false},
	{QPT_UC, QPS_INIT, QPS_RTR, TO_RTR_UC, true},
	{QPT_UC, QPS_INIT, QPS_RTR, TO_RTR_RC, false},
	{QPT_UD, QPS_INIT, QPS_RTR, QPA_STATE, true},
	{QPT_UD, QPS_INIT, QPS_RTR, QPA_STATE | QPA_AV, false},
	{QPT_RC, QPS_RTR, QPS_RTS, TO_RTS_RC, true},
	{QPT_RC, QPS_RTR, QPS_RTS, TO_RTS_RC | QPA_CUR_STATE | QPA_MIN_RNR_TIMER, true},
	{QPT_UC, QPS_RTR, QPS_RTS, TO_RTS_RC, false},
	{QPT_UD, QPS_RTR, QPS_RTS, QPA_STATE | QPA_SQ_PSN, true},
	{QPT_RC, QPS_RTR, QPS_INIT, TO_INIT_C, false},
	{QPT_RC, QPS_RTS, QPS_RTS, QPA_ACCESS_FLAGS, true},
	{QPT_RC, QPS_RTS, QPS_RTS, QPA_TIMEOUT, false},
	{QPT_RC, QPS_RTS, QPS_SQD, QPA_STATE | QPA_EN_SQD_ASYNC_NOTIFY, true},
	{QPT_RC, QPS_SQD, QPS_SQD, QPA_TIMEOUT | QPA_RETRY_CNT, true},
	{QPT_UC, QPS_SQD, QPS_SQD, QPA_TIMEOUT, false},
	{QPT_RC, QPS_SQD, QPS_RTS, QPA_STATE, true},
	{QPT_RC, QPS_SQE, QPS_RTS, QPA_STATE, false},
	{QPT_UC, QPS_SQE, QPS_RTS, QPA_STATE, true},
	{QPT_UD, QPS_SQE, QPS_RTS, QPA_STATE | QPA_QKEY, true},
	{QPT_RC, QPS_ERR, QPS_RTS, QPA_STATE, false},
	{QPT_RC, QPS_ERR, QPS_RESET, QPA_STATE, true},
	{QPT_RC, QPS_RTS, QPS_ERR, QPA_STATE, true},
	{QPT_RC, QPS_RTS, QPS_ERR, QPA_STATE | QPA_QKEY, false},
	{QPT_UD, QPS_RESET, QPS_ERR, QPA_STATE, true},
};

TEST(moves_need_exactly_their_attributes)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];

		if (qp_transition_is_legal(r->type, r->from, r->to, r->mask) != r->legal)
			fail_msg("row %zu: type %d, %d -> %d, mask %#x", i, r->type, r->from, r->to, r->mask);
	}
}

TEST(every_state_can_be_reset_or_failed)
{
	static const enum qp_type types[] = {QPT_RC, QPT_UC, QPT_UD};

	for (size_t t = 0; t < 3; t++) {
		for (int from = 0; from < QPS_COUNT; from++) {
			enum qp_state s = (enum qp_state)from;

			assert_true(qp_transition_is_legal(types[t], s, QPS_RESET, QPA_STATE));
			assert_true(qp_transition_is_legal(types[t], s, QPS_ERR, QPA_STATE));
		}
	}
}
