/* SPDX-License-Identifier: BSD-2-Clause */
/* Attaching a UD queue pair to multicast groups. The engine joins a group with the first one and leaves it with the
 * last. */
#include "verbs/explain.h"
#include "verbs/objects.h"

static int explain_attach(const struct abi_qp *qp, const union ibv_gid *gid, int err)
{
	if (qp->pub.qp_type != IBV_QPT_UD)
		return EXPLAIN(err, "ibv_attach_mcast: only a UD queue pair can be attached");
	if (!nic_gid_is_multicast(gid->raw))
		return EXPLAIN(err, "ibv_attach_mcast: the GID is no multicast address (224.0.0.0/4 as ::ffff:a.b.c.d, "
				    "or ff00::/8)");
	if (err == ENOMEM)
		return EXPLAIN(err,
			       "ibv_attach_mcast: %d groups a process, %d queue pairs a group are allowed "
			       "(and see net.ipv4.igmp_max_memberships)",
			       NIC_MAX_MCAST_GROUPS, NIC_MAX_MCAST_QPS);
	return EXPLAIN(err, "ibv_attach_mcast: no interface with a GID can join the group");
}

int ibv_attach_mcast(struct ibv_qp *pub, const union ibv_gid *gid, uint16_t lid)
{
	struct abi_qp *qp = qp_of(pub);
	struct nic *nic = context_of(pub->context)->nic;
	int err;

	if (!context_has(pub->context, PROFILE_MULTICAST))
		return fail(context_of(pub->context)->profile->refused);
	engine_lock(qp->engine);
	err = -nic_mcast_attach(nic, qp->core, gid->raw);
	if (!err) {
		err = -engine_join(qp->engine, gid->raw, 0);
		if (err)
			nic_mcast_detach(nic, qp->core, gid->raw);
	}
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
