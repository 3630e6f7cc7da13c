/* SPDX-License-Identifier: BSD-2-Clause */
/* Attaching a UD queue pair to multicast groups. The engine joins a group with the first one and leaves it with the
 * last. */
#include "base/ipudp.h"
#include "verbs/explain.h"
#include "verbs/objects.h"

static int explain_attach(const struct abi_qp *qp, const union ibv_gid *gid, int err)
{
	const struct profile *p = context_of(qp->pub.context)->profile;

	if (qp->pub.qp_type != IBV_QPT_UD)
		return EXPLAIN(err, "ibv_attach_mcast: only a UD queue pair can be attached");
	if (!gid_is_multicast(gid->raw))
		return EXPLAIN(err, "ibv_attach_mcast: the GID is no multicast address (224.0.0.0/4 as ::ffff:a.b.c.d, "
				    "or ff00::/8)");
	if (err == ENOMEM || err == p->full)
		return EXPLAIN(
			err,
			"ibv_attach_mcast: %u groups a process, %u queue pairs a group and %u in all are allowed "
			"(and see net.ipv4.igmp_max_memberships)",
			p->max[PROFILE_MCAST_GRP], p->max[PROFILE_MCAST_QP], p->max[PROFILE_MCAST_TOTAL]);
	return EXPLAIN(err, "ibv_attach_mcast: no interface with a GID can join the group");
}

/* Engine locked: whether what is attached now is no more than the device takes. */
static bool is_within(const struct abi_context *ctx, const uint8_t gid[16])
{
	struct nic_mcast_use use = nic_mcast_use(ctx->nic, gid);
	const uint32_t *max = ctx->profile->max;

	return use.groups <= max[PROFILE_MCAST_GRP] && use.attached <= max[PROFILE_MCAST_QP] &&
	       use.total <= max[PROFILE_MCAST_TOTAL];
}

/* Engine locked. */
static int attach(struct abi_context *ctx, struct abi_qp *qp, const uint8_t gid[16])
{
	int err = -nic_mcast_attach(ctx->nic, qp->core, gid);

	if (err)
		return err;
	err = is_within(ctx, gid) ? -engine_join(qp->engine, gid, 0) : ctx->profile->full;
	if (err)
		nic_mcast_detach(ctx->nic, qp->core, gid);
	return err;
}

int ibv_attach_mcast(struct ibv_qp *pub, const union ibv_gid *gid, uint16_t lid)
{
	struct abi_qp *qp = qp_of(pub);
	struct abi_context *ctx = context_of(pub->context);
	int err;

	if (!context_has(pub->context, PROFILE_MULTICAST))
		return fail(ctx->profile->refused);
	engine_lock(qp->engine);
	err = attach(ctx, qp, gid->raw);
	engine_unlock(qp->engine);
	return err ? fail(explain_attach(qp, gid, err)) : 0;
}

int ibv_detach_mcast(struct ibv_qp *pub, const union ibv_gid *gid, uint16_t lid)
{
	struct abi_qp *qp = qp_of(pub);
	int err;

	engine_lock(qp->engine);
	err = -nic_mcast_detach(context_of(pub->context)->nic, qp->core, gid->raw);
	if (!err)
		engine_leave_unused(qp->engine);
	engine_unlock(qp->engine);
	return err ? fail(err) : 0;
}
