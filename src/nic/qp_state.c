/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The QP life cycle as a table (IBTA 10.3.1 and the Modify QP attributes of 11.2.5.2): the legal
 * moves, and the attributes that each requires and allows, by QP type. A move without a row is
 * illegal, except to RESET and ERR, which can be reached from every state without any attribute.
 */
#include "nic/state.h"

/* XRC's two halves of RC are columns of their own. */
enum { XRC_SEND, XRC_RECV, TYPES = QPT_UD + 1 };

/* clang-format off */
#define IDENTITY_UD (QPA_PKEY_INDEX | QPA_PORT | QPA_QKEY)
#define IDENTITY_C  (QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS)
#define PEER_UC     (QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN)
#define PEER_RC     (PEER_UC | QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER)
#define SEND_RC     (QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_SQ_PSN | QPA_MAX_RD_ATOMIC)
#define LIVE_UD     (QPA_CUR_STATE | QPA_QKEY)
#define LIVE_UC     (QPA_CUR_STATE | QPA_ALT_PATH | QPA_ACCESS_FLAGS | QPA_PATH_MIG_STATE)
#define LIVE_RC     (LIVE_UC | QPA_MIN_RNR_TIMER)
#define DRAINED_UC  (QPA_AV | QPA_ALT_PATH | QPA_ACCESS_FLAGS | QPA_PKEY_INDEX | QPA_PATH_MIG_STATE)
#define DRAINED_RC  (DRAINED_UC | QPA_PORT | QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY | \
		     QPA_MAX_RD_ATOMIC | QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER)
#define LIVE        { [QPT_RC] = LIVE_RC, [QPT_UC] = LIVE_UC, [QPT_UD] = LIVE_UD, \
		      [XRC_SEND] = LIVE_UC, [XRC_RECV] = LIVE_RC }

static const struct row {
	bool legal;
	uint32_t required[TYPES];
	uint32_t optional[TYPES];
} rows[QPS_COUNT][QPS_COUNT] = {
	[QPS_RESET][QPS_INIT] = { true,
		{ [QPT_RC] = IDENTITY_C, [QPT_UC] = IDENTITY_C, [QPT_UD] = IDENTITY_UD,
		  [XRC_SEND] = IDENTITY_C, [XRC_RECV] = IDENTITY_C }, { 0 } },
	[QPS_INIT][QPS_INIT] = { true, { 0 },
		{ [QPT_RC] = IDENTITY_C, [QPT_UC] = IDENTITY_C, [QPT_UD] = IDENTITY_UD,
		  [XRC_SEND] = IDENTITY_C, [XRC_RECV] = IDENTITY_C } },
	[QPS_INIT][QPS_RTR] = { true,
		{ [QPT_RC] = PEER_RC, [QPT_UC] = PEER_UC, [XRC_SEND] = PEER_UC, [XRC_RECV] = PEER_RC },
		{ [QPT_RC] = QPA_ALT_PATH | QPA_ACCESS_FLAGS | QPA_PKEY_INDEX,
		  [QPT_UC] = QPA_ALT_PATH | QPA_ACCESS_FLAGS | QPA_PKEY_INDEX,
		  [XRC_SEND] = QPA_ALT_PATH | QPA_ACCESS_FLAGS | QPA_PKEY_INDEX,
		  [XRC_RECV] = QPA_ALT_PATH | QPA_ACCESS_FLAGS | QPA_PKEY_INDEX,
		  [QPT_UD] = QPA_PKEY_INDEX | QPA_QKEY } },
	[QPS_RTR][QPS_RTS] = { true,
		{ [QPT_RC] = SEND_RC, [QPT_UC] = QPA_SQ_PSN, [QPT_UD] = QPA_SQ_PSN,
		  [XRC_SEND] = SEND_RC, [XRC_RECV] = QPA_TIMEOUT | QPA_SQ_PSN },
		LIVE },
	[QPS_RTS][QPS_RTS] = { true, { 0 },
		LIVE },
	[QPS_RTS][QPS_SQD] = { true, { 0 },
		{ [QPT_RC] = QPA_EN_SQD_ASYNC_NOTIFY, [QPT_UC] = QPA_EN_SQD_ASYNC_NOTIFY,
		  [XRC_SEND] = QPA_EN_SQD_ASYNC_NOTIFY, [XRC_RECV] = QPA_EN_SQD_ASYNC_NOTIFY,
		  [QPT_UD] = QPA_EN_SQD_ASYNC_NOTIFY } },
	[QPS_SQD][QPS_RTS] = { true, { 0 },
		LIVE },
	[QPS_SQD][QPS_SQD] = { true, { 0 },
		{ [QPT_RC] = DRAINED_RC, [QPT_UC] = DRAINED_UC,
		  [XRC_SEND] = DRAINED_RC & ~(QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER),
		  [XRC_RECV] = DRAINED_RC & ~(QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_MAX_RD_ATOMIC),
		  [QPT_UD] = QPA_PKEY_INDEX | QPA_QKEY } },
	[QPS_SQE][QPS_RTS] = { true, { 0 },
		{ [QPT_UC] = QPA_CUR_STATE | QPA_ACCESS_FLAGS, [QPT_UD] = LIVE_UD } },
};
/* clang-format on */

bool qp_transition_is_legal(enum qp_type type, enum qp_state from, enum qp_state to, uint32_t mask)
{
	const struct row *row = &rows[from][to];
	unsigned column = type == QPT_XRC_SEND ? XRC_SEND : type == QPT_XRC_RECV ? XRC_RECV : type;

	mask &= ~(uint32_t)QPA_STATE;
	if (to == QPS_RESET || to == QPS_ERR)
		return !(mask & ~(uint32_t)QPA_CUR_STATE);
	if (!row->legal || (from == QPS_SQE && type != QPT_UC && type != QPT_UD)) /* RC has no SQE */
		return false;
	return (mask & row->required[column]) == row->required[column] &&
	       !(mask & ~(row->required[column] | row->optional[column]));
}
