/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device, its port and their tables. Everything reported here is true of the nic, because a
 * program uses a feature as soon as it is reported.
 */
#include <endian.h>
#include <stdio.h>

#include "verbs/hostid.h"
#include "verbs/objects.h"
#include "verbs/port.h"
#include "verbs/private.h"

static_assert(sizeof(struct ibv_device_attr) == 232, "ABI");
static_assert(sizeof(struct ibv_device_attr_ex) == 400, "ABI");
static_assert(offsetof(struct ibv_port_attr, link_layer) == 46, "ABI");
static_assert(offsetof(struct ibv_port_attr, flags) == 47, "ABI");
static_assert(offsetof(struct ibv_port_attr, port_cap_flags2) == 48, "ABI");
static_assert(sizeof(struct ibv_gid_entry) == 32, "ABI");

/* Port numbers as IBTA tables 155 ff. have them. */
enum { VL_COUNT_1 = 1 };

/* The part of struct ibv_port_attr that programs of before 2019 know. */
enum { PORT_ATTR_COMPAT_BYTES = 48 };

/* Of rdma-core's IB_UVERBS_DEVICE_*; the headers of release 44 lack them. Of persistence there is nothing to report. */
#define DEVICE_FLUSH_GLOBAL (UINT64_C(1) << 38)
#define DEVICE_ATOMIC_WRITE (UINT64_C(1) << 40)
/* Of IBV_ODP_SUPPORT_*. */
#define ODP_FLUSH        (1u << 6)
#define ODP_ATOMIC_WRITE (1u << 7)

/* The engine answers a peer within 4.096 us * 2^15 = 134 ms, even on a busy host. */
enum { LOCAL_ACK_DELAY = 15 };

/*
 * RFC 5040: a Read Request names one sink, there is no RNR, and atomics are RFC 7306's. There are no datagrams, and so
 * no groups.
 */
static void device_attr_iwarp(struct ibv_context *context, struct ibv_device_attr *a)
{
	a->device_cap_flags &= ~(unsigned int)(IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_XRC);
	a->max_mcast_grp = 0;
	a->max_mcast_qp_attach = 0;
	a->max_total_mcast_qp_attach = 0;
	a->max_sge_rd = 1;
	if (!engine_has_rfc7306(context_of(context)->engine))
		a->atomic_cap = IBV_ATOMIC_NONE;
	a->max_ah = 0;
}

/* What the profile lacks is not reported. */
static void profile_take(const struct profile *p, struct ibv_device_attr *a)
{
	static const struct {
		enum profile_set set;
		unsigned int bit, flags;
	} rows[] = {
		{PROFILE_VERBS, PROFILE_WINDOWS, IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B},
		{PROFILE_VERBS, PROFILE_WINDOWS, IBV_DEVICE_MEM_MGT_EXTENSIONS},
		{PROFILE_OPERATIONS, PROFILE_SEND_INV, IBV_DEVICE_MEM_MGT_EXTENSIONS},
		{PROFILE_VERBS, PROFILE_RESIZE_SRQ, IBV_DEVICE_SRQ_RESIZE},
		{PROFILE_VERBS, PROFILE_HAS_SRQ, IBV_DEVICE_SRQ_RESIZE},
		{PROFILE_QP_TYPES, PROFILE_XRC, IBV_DEVICE_XRC},
		{PROFILE_QP_TYPES, PROFILE_RC, IBV_DEVICE_RC_RNR_NAK_GEN},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!profile_has(p, rows[i].set, rows[i].bit))
			a->device_cap_flags &= ~rows[i].flags;
	}
	if (!profile_has(p, PROFILE_VERBS, PROFILE_WINDOWS))
		a->max_mw = 0;
	if (!profile_has(p, PROFILE_VERBS, PROFILE_HAS_SRQ))
		a->max_srq = a->max_srq_wr = a->max_srq_sge = 0;
	if (!profile_has(p, PROFILE_VERBS, PROFILE_MULTICAST))
		a->max_mcast_grp = a->max_mcast_qp_attach = a->max_total_mcast_qp_attach = 0;
	if (!profile_has(p, PROFILE_OPERATIONS, PROFILE_ATOMIC))
		a->atomic_cap = IBV_ATOMIC_NONE;
}

/* No more than all queue pairs may have. */
static uint32_t res_rd_atom(const struct profile *p)
{
	uint32_t most = p->max[PROFILE_RD_ATOM] * p->max[PROFILE_QP];

	return p->max[PROFILE_RES_RD_ATOM] < most ? p->max[PROFILE_RES_RD_ATOM] : most;
}

static void device_attr_fill(struct ibv_context *context, struct ibv_device_attr *a)
{
	const struct profile *p = context_of(context)->profile;

	*a = (struct ibv_device_attr){
		.node_guid = ibv_get_device_guid(context->device),
		.sys_image_guid = htobe64(hostid_guid()),
		.max_mr_size = engine_quota(context_of(context)->engine, LIMIT_MR_BYTES),
		.page_size_cap = 0xfffff000,
		.vendor_id = DEVICE_VENDOR_ID,
		.vendor_part_id = DEVICE_PART_ID,
		.hw_ver = DEVICE_HW_VERSION,
		.max_qp = (int)p->max[PROFILE_QP],
		.max_qp_wr = (int)p->max[PROFILE_QP_WR],
		.device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_SYS_IMAGE_GUID |
				    IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B |
				    IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_XRC | IBV_DEVICE_SRQ_RESIZE,
		.max_sge = (int)p->max[PROFILE_SGE],
		.max_sge_rd = (int)p->max[PROFILE_SGE],
		.max_cq = (int)p->max[PROFILE_CQ],
		.max_cqe = (int)p->max[PROFILE_CQE],
		.max_mr = (int)p->max[PROFILE_MR],
		.max_mw = (int)p->max[PROFILE_MW],
		.max_pd = (int)p->max[PROFILE_PD],
		.max_qp_rd_atom = (int)p->max[PROFILE_RD_ATOM],
		.max_res_rd_atom = (int)res_rd_atom(p),
		.max_qp_init_rd_atom = (int)p->max[PROFILE_RD_ATOM],
		.atomic_cap = IBV_ATOMIC_HCA,
		.max_mcast_grp = (int)p->max[PROFILE_MCAST_GRP],
		.max_mcast_qp_attach = (int)p->max[PROFILE_MCAST_QP],
		.max_total_mcast_qp_attach = (int)p->max[PROFILE_MCAST_TOTAL],
		.max_ah = (int)p->max[PROFILE_AH],
		.max_srq = (int)p->max[PROFILE_SRQ],
		.max_srq_wr = (int)p->max[PROFILE_SRQ_WR],
		.max_srq_sge = (int)p->max[PROFILE_SRQ_SGE],
		.max_pkeys = (uint16_t)nic_pkey_count(context_of(context)->nic),
		.local_ca_ack_delay = LOCAL_ACK_DELAY,
		.phys_port_cnt = PORT_COUNT,
	};
	snprintf(a->fw_ver, sizeof(a->fw_ver), "%s", VERBENA_VERSION);
	if (context->device->transport_type == IBV_TRANSPORT_IWARP)
		device_attr_iwarp(context, a);
	profile_take(p, a);
}

/* FLUSH and ATOMIC WRITE. */
static bool has_placement(struct ibv_context *context)
{
	return context->device->transport_type != IBV_TRANSPORT_IWARP &&
	       profile_has(context_of(context)->profile, PROFILE_OPERATIONS, PROFILE_PLACEMENT);
}

/* Regions whose memory may come and go: whatever is sent, read or written there may fault. */
static void odp_caps_fill(struct ibv_context *context, struct ibv_device_attr_ex *a)
{
	const uint32_t ud = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV;
	const uint32_t uc = ud | IBV_ODP_SUPPORT_WRITE;
	const uint32_t rc = uc | IBV_ODP_SUPPORT_READ;
	const uint32_t placement = has_placement(context) ? ODP_FLUSH | ODP_ATOMIC_WRITE : 0;
	bool is_iwarp = context->device->transport_type == IBV_TRANSPORT_IWARP;

	if (!mem_survives_faults() || !context_has(context, PROFILE_ON_DEMAND))
		return;
	a->odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
	a->odp_caps.per_transport_caps.rc_odp_caps =
		rc | placement | (a->orig_attr.atomic_cap != IBV_ATOMIC_NONE ? IBV_ODP_SUPPORT_ATOMIC : 0);
	a->odp_caps.per_transport_caps.uc_odp_caps = is_iwarp ? 0 : uc;
	a->odp_caps.per_transport_caps.ud_odp_caps = is_iwarp ? 0 : ud;
	a->xrc_odp_caps = is_iwarp ? 0 : rc | IBV_ODP_SUPPORT_ATOMIC;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	device_attr_fill(context, attr);
	return 0;
}

int query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
		    struct ibv_device_attr_ex *attr, size_t size)
{
	struct ibv_device_attr_ex all = {
		.completion_timestamp_mask = UINT64_MAX,
		.hca_core_clock = 1000000, /* kHz: CQEs are stamped in nanoseconds */
		.max_dm_size = context_has(context, PROFILE_DEVICE_MEMORY) ? DM_BYTES_MAX : 0,
		.phys_port_cnt_ex = PORT_COUNT,
	};

	if (input && input->comp_mask)
		return fail(EINVAL);
	if (size < sizeof(attr->orig_attr))
		return fail(EINVAL);
	device_attr_fill(context, &all.orig_attr);
	all.device_cap_flags_ex = all.orig_attr.device_cap_flags;
	if (has_placement(context))
		all.device_cap_flags_ex |= DEVICE_FLUSH_GLOBAL | DEVICE_ATOMIC_WRITE;
	odp_caps_fill(context, &all);
	memset(attr, 0, size);
	memcpy(attr, &all, size < sizeof(all) ? size : sizeof(all));
	return 0;
}

int query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	uint32_t asked = values->comp_mask;
	uint64_t now_ns;

	values->comp_mask = asked & IBV_VALUES_MASK_RAW_CLOCK;
	if (values->comp_mask) {
		now_ns = engine_now_ns(context_of(context)->engine);
		values->raw_clock.tv_sec = (time_t)(now_ns / 1000000000);
		values->raw_clock.tv_nsec = (long)(now_ns % 1000000000);
	}
	return asked & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK ? fail(EOPNOTSUPP) : 0;
}

enum ibv_mtu mtu_from_bytes(uint32_t bytes)
{
	return bytes >= 4096   ? IBV_MTU_4096
	       : bytes >= 2048 ? IBV_MTU_2048
	       : bytes >= 1024 ? IBV_MTU_1024
	       : bytes >= 512  ? IBV_MTU_512
			       : IBV_MTU_256;
}

uint32_t mtu_to_bytes(enum ibv_mtu mtu)
{
	return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << mtu : 0;
}

static bool gid_get(struct abi_context *ctx, uint32_t index, struct nic_gid *gid)
{
	static const uint8_t none[16];
	int err;

	engine_lock(ctx->engine);
	err = nic_gid(ctx->nic, index, gid);
	engine_unlock(ctx->engine);
	if (err)
		memset(gid, 0, sizeof(*gid));
	return memcmp(gid->raw, none, sizeof(none)) != 0;
}

uint32_t port_mtu_bytes(struct abi_context *ctx)
{
	uint32_t mtu;

	engine_lock(ctx->engine);
	mtu = nic_active_mtu(ctx->nic);
	engine_unlock(ctx->engine);
	return mtu;
}

int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size)
{
	struct ibv_port_attr all = {
		.max_mtu = IBV_MTU_4096,
		.gid_tbl_len = NIC_GIDS_MAX,
		.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS,
		.max_msg_sz = NIC_MSG_BYTES_MAX,
		.pkey_tbl_len = (uint16_t)nic_pkey_count(context_of(context)->nic),
		.max_vl_num = VL_COUNT_1,
		.link_layer = IBV_LINK_LAYER_ETHERNET,
		.flags = IBV_QPF_GRH_REQUIRED,
	};

	struct abi_context *ctx = context_of(context);
	struct engine_port now;
	const struct port_rate *rate;

	if (port != PORT)
		return fail(EINVAL);
	engine_lock(ctx->engine);
	now = engine_port(ctx->engine);
	all.bad_pkey_cntr = (uint32_t)nic_counters(ctx->nic)->rx_wrong_pkey;
	engine_unlock(ctx->engine);
	rate = port_rate(now.speed_bps);
	all.state = (enum ibv_port_state)port_state(&now)->state;
	all.phys_state = port_state(&now)->phys_state;
	all.active_speed = rate->speed;
	all.active_width = rate->width;
	all.active_mtu = mtu_from_bytes(port_mtu_bytes(ctx));
	memset(attr, 0, size);
	memcpy(attr, &all, size < sizeof(all) ? size : sizeof(all));
	return 0;
}

int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	return query_port(context, port, (struct ibv_port_attr *)attr, PORT_ATTR_COMPAT_BYTES);
}

/* In 100 Mb/s: what a lane has by active_speed, whose values are bits, and how many lanes active_width stands for. */
static uint64_t speed_of(const struct ibv_port_attr *p)
{
	static const uint64_t lane[8] = {25, 50, 100, 100, 140, 250, 500, 1000};
	static const uint64_t lanes[17] = {[1] = 1, [2] = 4, [4] = 8, [8] = 12, [16] = 2};

	if (!p->active_speed || p->active_width > 16)
		return 0;
	return lane[__builtin_ctz(p->active_speed)] * lanes[p->active_width];
}

/* Of rdma-core 62 and later: NCCL asks each port. */
EXPORT int ibv_query_port_speed(struct ibv_context *context, uint32_t port, uint64_t *speed);

int ibv_query_port_speed(struct ibv_context *context, uint32_t port, uint64_t *speed)
{
	struct ibv_port_attr p;

	if (port != PORT)
		return fail(EINVAL);
	query_port(context, PORT, &p, sizeof(p));
	*speed = speed_of(&p);
	return 0;
}

int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	struct nic_gid entry;

	if (port != PORT || index < 0 || index >= NIC_GIDS_MAX)
		return fail_minus_one(EINVAL);
	gid_get(context_of(context), (uint32_t)index, &entry);
	memcpy(gid->raw, entry.raw, sizeof(gid->raw));
	return 0;
}

static enum ibv_gid_type gid_type(struct ibv_context *context)
{
	return engine_is_rocev1(context_of(context)->engine) ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2;
}

/* The numbers are those of the kernel's gid_attrs/types, not of enum ibv_gid_type. */
enum gid_type_sysfs { GID_TYPE_SYSFS_ROCE_V1, GID_TYPE_SYSFS_ROCE_V2 };

EXPORT int query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index, enum gid_type_sysfs *type);

int query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index, enum gid_type_sysfs *type)
{
	struct nic_gid entry;

	if (port != PORT || index >= NIC_GIDS_MAX)
		return fail_minus_one(EINVAL);
	*type = gid_get(context_of(context), index, &entry) && gid_type(context) == IBV_GID_TYPE_ROCE_V2
			? GID_TYPE_SYSFS_ROCE_V2
			: GID_TYPE_SYSFS_ROCE_V1;
	return 0;
}
IN_PRIVATE_25(query_gid_type, ibv_query_gid_type);

static void entry_fill(struct ibv_gid_entry *e, size_t size, enum ibv_gid_type type, uint32_t index,
		       const struct nic_gid *gid)
{
	struct ibv_gid_entry all = {
		.gid_index = index,
		.port_num = PORT,
		.gid_type = type,
		.ndev_ifindex = gid->ifindex,
	};

	memcpy(all.gid.raw, gid->raw, sizeof(all.gid.raw));
	memset(e, 0, size);
	memcpy(e, &all, size < sizeof(all) ? size : sizeof(all));
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry,
		      uint32_t flags, size_t entry_size)
{
	struct nic_gid gid;

	if (port != PORT || index >= NIC_GIDS_MAX)
		return fail(EINVAL);
	if (flags)
		return fail(EOPNOTSUPP);
	if (!gid_get(context_of(context), index, &gid))
		return fail(ENODATA);
	entry_fill(entry, entry_size, gid_type(context), index, &gid);
	return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max_entries,
			     uint32_t flags, size_t entry_size)
{
	struct nic_gid gid;
	size_t n = 0;

	if (flags)
		return -fail(EOPNOTSUPP);
	for (uint32_t i = 0; i < NIC_GIDS_MAX; i++) {
		if (!gid_get(context_of(context), i, &gid))
			continue;
		if (n == max_entries)
			return -fail(EINVAL);
		entry_fill((struct ibv_gid_entry *)((char *)entries + n * entry_size), entry_size, gid_type(context), i,
			   &gid);
		n++;
	}
	return (ssize_t)n;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
	const struct nic *nic = context_of(context)->nic;

	if (port != PORT || index < 0 || (uint32_t)index >= nic_pkey_count(nic))
		return fail_minus_one(EINVAL);
	*pkey = htobe16(nic_pkey(nic, (uint32_t)index));
	return 0;
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
	const struct nic *nic = context_of(context)->nic;

	for (uint32_t i = 0; port == PORT && i < nic_pkey_count(nic); i++)
		if (pkey == htobe16(nic_pkey(nic, i)))
			return (int)i;
	return fail_minus_one(EINVAL);
}
