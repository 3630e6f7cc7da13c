/* SPDX-License-Identifier: BSD-2-Clause */
/* Resources of a host's guest: a completion queue, UC queue pairs, regions. host.c calls the guest. */
#include "sim/host.h"
#include "sim/host_state.h"

void *host_guest(const struct host *h)
{
	return h->guest;
}

bool host_set_guest(struct host *h, const struct host_guest *calls, void *guest)
{
	if (nic_cq_create(h->nic, CQES, h, &h->guest_cq))
		return false;
	h->guest = guest;
	h->guest_calls = calls;
	return true;
}

struct qp *host_guest_qp(struct host *h, uint32_t send_wrs, void *owner)
{
	return host_make_qp(h, QPT_UC, h->guest_cq, send_wrs, owner);
}

int host_guest_connect(struct host *at, struct qp *qp, const struct host *to, const struct qp *peer, uint8_t class)
{
	struct qp_attr attr = {
		.state = QPS_INIT,
		.port = 1,
		.access = MR_REMOTE_WRITE,
		.path_mtu_bytes = at->config->mtu_bytes,
		.dest_qpn = qp_number(peer),
		.av = {.hop_limit = SIM_TTL, .port = 1, .is_global = 1, .sl = class},
	};
	int err = nic_qp_modify(at->nic, qp, &attr, QPA_STATE | QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS, 0);

	attr.state = QPS_RTR;
	host_address(to->index, attr.av.dgid);
	if (!err)
		err = nic_qp_modify(at->nic, qp, &attr, QPA_STATE | QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN,
				    0);
	attr.state = QPS_RTS;
	return err ? err : nic_qp_modify(at->nic, qp, &attr, QPA_STATE | QPA_SQ_PSN, 0);
}

struct mr *host_region(struct host *h, uint64_t bytes)
{
	struct mr_range range = {(void *)(uintptr_t)MEMORY_VA, bytes, 0};
	struct mr *mr;

	return nic_mr_reg(h->nic, h->pd, range, MR_LOCAL_WRITE | MR_REMOTE_WRITE, &mr) ? NULL : mr;
}

void host_region_end(struct host *h, struct mr *mr)
{
	nic_mr_dereg(h->nic, mr);
}

uint64_t host_packet_ps(const struct host *h, uint32_t payload_bytes)
{
	uint32_t wire = host_message_wire(h->config, payload_bytes, true).last_bytes;

	return wire * UINT64_C(8000000000000) / network_host_rate_bps(h->network, h->index);
}
