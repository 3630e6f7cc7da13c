/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The nic refuses without a reason. Its checks are repeated here, by its contract and in its order,
 * until one explains the refusal.
 */
#include <arpa/inet.h>
#include <string.h>

#include "verbs/explain.h"
#include "verbs/qp_explain.h"

static bool is_ipv4(const uint8_t gid[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(gid, mapped, sizeof(mapped));
}

static bool is_empty(const uint8_t gid[16])
{
	static const uint8_t none[16];

	return !memcmp(gid, none, sizeof(none));
}

bool explain_address(struct abi_context *ctx, const struct ibv_ah_attr *a, const char *call)
{
	const uint8_t *dgid = a->grh.dgid.raw;
	unsigned int index = a->grh.sgid_index;
	uint8_t hidden[16];
	char text[INET6_ADDRSTRLEN];
	struct nic_gid own;
	bool there, in_map;

	if (a->port_num != PORT)
		return EXPLAIN(true, "%s: the address has port_num %u; the only port is %d", call, a->port_num, PORT);
	if (!a->is_global)
		return EXPLAIN(true,
			       "%s: the address has no GRH, and RoCE addresses by GIDs alone: it "
			       "needs is_global, grh.sgid_index and grh.dgid; many programs have "
			       "an option for the GID index, such as -g of ibv_rc_pingpong and -x "
			       "of perftest, and 'verbena devices' shows them",
			       call);
	engine_lock(ctx->engine);
	there = !nic_gid(ctx->nic, index, &own) && !is_empty(own.raw);
	memcpy(hidden, dgid, sizeof(hidden));
	in_map = engine_hide_address(ctx->engine, hidden);
	engine_unlock(ctx->engine);
	if (!there)
		return EXPLAIN(true, "%s: there is no GID %u; 'verbena devices' shows them", call, index);
	if (is_empty(dgid))
		return EXPLAIN(true, "%s: the address's dgid is zero", call);
	if (!in_map)
		return EXPLAIN(true, "%s: VERBENA_MAP's file has no line for the peer's GID %s", call,
			       inet_ntop(is_ipv4(dgid) ? AF_INET : AF_INET6, dgid + (is_ipv4(dgid) ? 12 : 0), text,
					 sizeof(text)));
	if (is_ipv4(dgid) != is_ipv4(own.raw))
		return EXPLAIN(true, "%s: the address's dgid is an %s address, and its source, GID %u, is not", call,
			       is_ipv4(dgid) ? "IPv4" : "IPv6", index);
	return false;
}

static bool is_loopback(const uint8_t gid[16])
{
	static const uint8_t one[16] = {[15] = 1};

	return is_ipv4(gid) ? gid[12] == 127 : !memcmp(gid, one, sizeof(one));
}

void explain_peer(struct abi_context *ctx, const struct ibv_ah_attr *a)
{
	const uint8_t *dgid = a->grh.dgid.raw;
	struct nic_gid own;

	if (!is_loopback(dgid))
		return;
	engine_lock(ctx->engine);
	nic_gid(ctx->nic, a->grh.sgid_index, &own);
	engine_unlock(ctx->engine);
	if (!is_loopback(own.raw))
		EXPLAIN(0,
			"ibv_modify_qp: the peer's GID is %s, a loopback address, and this end's, GID %u, is not: if the peer is "
			"on another host, it is never reached, and should choose another of its GIDs",
			is_ipv4(dgid) ? "of 127.0.0.0/8" : "::1", a->grh.sgid_index);
}

/* ---- ibv_create_qp --------------------------------------------------------------------------- */

static const char *type_name(enum ibv_qp_type type)
{
	switch ((int)type) {
	case IBV_QPT_RAW_PACKET: return "raw packet";
	case IBV_QPT_DRIVER: return "a driver's own";
	default: return NULL;
	}
}

int explain_create(const struct profile *p, const struct ibv_qp_init_attr *a, int err)
{
	const char *name = type_name(a->qp_type);

	if (name)
		return EXPLAIN(err,
			       "ibv_create_qp: queue pairs of the type %s are not supported: there are "
			       "RC, UC, UD and XRC",
			       name);
	if (err != EINVAL)
		return err;
	if (a->cap.max_send_wr > p->max[PROFILE_QP_WR] || (!a->srq && a->cap.max_recv_wr > p->max[PROFILE_QP_WR]))
		return EXPLAIN(err, "ibv_create_qp: %u send and %u receive WRs; %u are allowed (max_qp_wr)",
			       a->cap.max_send_wr, a->cap.max_recv_wr, p->max[PROFILE_QP_WR]);
	if (a->cap.max_send_sge > p->max[PROFILE_SGE] || (!a->srq && a->cap.max_recv_sge > p->max[PROFILE_SGE]))
		return EXPLAIN(err, "ibv_create_qp: %u send and %u receive SGEs; %u are allowed (max_sge)",
			       a->cap.max_send_sge, a->cap.max_recv_sge, p->max[PROFILE_SGE]);
	return err;
}

/* ---- ibv_modify_qp --------------------------------------------------------------------------- */

static const char *state_name(enum ibv_qp_state state)
{
	static const char *const names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

	return (size_t)state < sizeof(names) / sizeof(names[0]) ? names[state] : "an unknown state";
}

/* The first attribute in the mask whose value is not allowed. */
static const char *bad_value(uint32_t pkey_index_max, uint32_t rd_atom_max, const struct ibv_qp_attr *a, int mask)
{
	const struct {
		int bit;
		uint32_t value, max;
		const char *name;
	} rows[] = {
		{IBV_QP_PKEY_INDEX, a->pkey_index, pkey_index_max, "pkey_index (see pkey_tbl_len)"},
		{IBV_QP_TIMEOUT, a->timeout, 31, "timeout (0 to 31)"},
		{IBV_QP_RETRY_CNT, a->retry_cnt, 7, "retry_cnt (0 to 7)"},
		{IBV_QP_RNR_RETRY, a->rnr_retry, 7, "rnr_retry (0 to 7)"},
		{IBV_QP_MIN_RNR_TIMER, a->min_rnr_timer, 31, "min_rnr_timer (0 to 31)"},
		{IBV_QP_MAX_QP_RD_ATOMIC, a->max_rd_atomic, rd_atom_max, "max_rd_atomic (see max_qp_rd_atom)"},
		{IBV_QP_MAX_DEST_RD_ATOMIC, a->max_dest_rd_atomic, rd_atom_max,
		 "max_dest_rd_atomic (see max_qp_rd_atom)"},
		{IBV_QP_DEST_QPN, a->dest_qp_num, 0xffffff, "dest_qp_num (24 bits)"},
		{IBV_QP_PATH_MIG_STATE, a->path_mig_state, IBV_MIG_MIGRATED, "path_mig_state (there is one path)"},
	};

	if (mask & IBV_QP_PORT && a->port_num != PORT)
		return "port_num (1 is the only one)";
	if (mask & IBV_QP_PATH_MTU && !mtu_to_bytes(a->path_mtu))
		return "path_mtu (an enum ibv_mtu)";
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (mask & rows[i].bit && rows[i].value > rows[i].max)
			return rows[i].name;
	}
	return NULL;
}

static bool path_is_too_narrow(struct abi_context *ctx, const struct ibv_qp_attr *a)
{
	struct ah_attr av;
	struct flow flow;
	uint32_t ip_mtu;
	int err;

	ah_attr_from_verbs(&av, &a->ah_attr);
	engine_lock(ctx->engine);
	err = nic_resolve(ctx->nic, &av, &flow, &ip_mtu);
	engine_unlock(ctx->engine);
	return !err && mtu_to_bytes(a->path_mtu) > nic_path_mtu(ip_mtu);
}

int explain_modify(struct abi_qp *qp, const struct ibv_qp_attr *a, int mask, int err)
{
	struct abi_context *ctx = context_of(qp->pub.context);
	enum ibv_qp_state from = (enum ibv_qp_state)qp_state(qp->core);
	enum ibv_qp_state to = mask & IBV_QP_STATE ? a->qp_state : from;
	const char *value = bad_value(nic_pkey_count(ctx->nic) - 1, ctx->profile->max[PROFILE_RD_ATOM], a, mask);

	if (mask & IBV_QP_ALT_PATH)
		return EXPLAIN(err, "ibv_modify_qp: alternate paths are not supported: there is one port");
	if (value)
		return EXPLAIN(err, "ibv_modify_qp: out of range: %s", value);
	if (mask & IBV_QP_AV) {
		if (explain_address(ctx, &a->ah_attr, "ibv_modify_qp"))
			return err;
		if (mask & IBV_QP_PATH_MTU && path_is_too_narrow(ctx, a))
			return EXPLAIN(err,
				       "ibv_modify_qp: a path MTU of %u is more than the interface "
				       "of GID %u carries; see 'verbena devices'",
				       mtu_to_bytes(a->path_mtu), a->ah_attr.grh.sgid_index);
	}
	if (err != EINVAL)
		return err;
	return EXPLAIN(err,
		       "ibv_modify_qp: from %s to %s with the attributes 0x%x: there is no such move for "
		       "a QP of this type, or it needs other attributes (ibv_modify_qp(3) lists them)",
		       state_name(from), state_name(to), (unsigned int)mask);
}
