/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an id knows of its addresses, its path and its GIDs. librdmacm asks for paths and GIDs only if it could bind to
 * an address of family AF_IB; other libraries may ask at any time.
 */
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <netinet/in.h>
#include <rdma/rdma_user_cm.h>

#include "rdmacm/call.h"
#include "rdmacm/ucma_addr.h"

enum {
	PACKET_LIFE_TIME = 16,
	EXACTLY = 2,        /* how a path record's MTU, rate and life time are meant */
	RATE_100_GBPS = 16, /* the port's, as query_port says */
	HOP_LIMIT = 64,
	FAMILY_IB = 27,
	QUERY_IB_SERVICE = 3, /* since rdma-core 60 */
	IB_SERVICE_BYTES_MIN = 8,
	PATH_GMP_PRIMARY_BOTH_WAYS = 0x2b, /* rdma/ib_user_sa.h */
	ROUTE_BYTES = 208,
	ADDR_BYTES_MIN = offsetof(struct rdma_ucm_query_addr_resp, ibdev_index)
};

/* A path record as it is on the wire (IBTA 15.2.5.16), behind its flags: struct ib_path_rec_data. */
struct path_data {
	uint32_t flags;
	uint32_t reserved;
	uint8_t record[64];
};

struct path_resp {
	uint32_t num_paths;
	uint32_t reserved;
	struct path_data path;
};

/* struct sockaddr_ib: linux/include/rdma/ib.h is the kernel's own. */
struct sockaddr_of_gid {
	uint16_t family;
	uint16_t pkey;
	uint32_t flowinfo;
	uint8_t gid[16];
	uint64_t service_id, service_id_mask, scope_id;
};

static_assert(sizeof(struct rdma_ucm_query_route_resp) == ROUTE_BYTES, "ABI");
static_assert(sizeof(struct rdma_ucm_query_addr_resp) == 280, "ABI");
static_assert(sizeof(struct rdma_ucm_query_path_resp) == offsetof(struct path_resp, path), "ABI");
static_assert(sizeof(struct ib_user_path_rec) == 64, "ABI");
static_assert(sizeof(struct path_data) == 72, "ABI");
static_assert(sizeof(struct sockaddr_of_gid) == 48, "ABI");

static bool has_device(const struct cm_id_info *info)
{
	return info->gid_index >= 0;
}

static bool has_path(const struct cm_id_info *info)
{
	return has_device(info) && info->resolved;
}

static struct ib_user_path_rec path_of(const struct cm_id_info *info)
{
	struct ib_user_path_rec p = {.flow_label = htobe32(info->flow_label),
				     .reversible = 1,
				     .mtu = info->mtu,
				     .pkey = htobe16(info->pkey),
				     .hop_limit = HOP_LIMIT,
				     .traffic_class = info->tos,
				     .numb_path = 1,
				     .mtu_selector = EXACTLY,
				     .rate_selector = EXACTLY,
				     .rate = RATE_100_GBPS,
				     .packet_life_time_selector = EXACTLY,
				     .packet_life_time = PACKET_LIFE_TIME};

	memcpy(p.sgid, info->sgid, sizeof(p.sgid));
	memcpy(p.dgid, info->dgid, sizeof(p.dgid));
	return p;
}

int query_route(struct call *c, const void *bytes)
{
	const struct rdma_ucm_query *cmd = bytes;
	struct rdma_ucm_query_route_resp r = {0};
	struct cm_id_info info;

	cm_id_query(c->id, &info);
	ucma_addr_write(&r.src_addr, sizeof(r.src_addr), &info.local);
	ucma_addr_write(&r.dst_addr, sizeof(r.dst_addr), &info.remote);
	if (has_device(&info)) {
		r.node_guid = c->at->node_guid;
		r.port_num = 1;
		r.ibdev_index = c->at->device_index;
		/* Without a path Linux gives the GIDs all the same. */
		memcpy(r.ib_route[0].sgid, info.sgid, sizeof(info.sgid));
		memcpy(r.ib_route[0].dgid, info.dgid, sizeof(info.dgid));
		r.ib_route[0].pkey = htobe16(info.pkey);
	}
	if (has_path(&info)) {
		r.num_paths = 1;
		r.ib_route[0] = path_of(&info);
	}
	return call_answer(c, cmd->response, &r, sizeof(r));
}

static void describe_device(const struct call *c, const struct cm_id_info *info, struct rdma_ucm_query_addr_resp *r)
{
	if (!has_device(info))
		return;
	r->node_guid = c->at->node_guid;
	r->port_num = 1;
	r->pkey = info->pkey;
	r->ibdev_index = c->at->device_index;
}

static int query_addr(struct call *c, const struct rdma_ucm_query *cmd)
{
	struct rdma_ucm_query_addr_resp r = {0};
	struct cm_id_info info;

	if (c->out < ADDR_BYTES_MIN)
		return -ENOSPC;
	cm_id_query(c->id, &info);
	r.src_size = (uint16_t)ucma_addr_write(&r.src_addr, sizeof(r.src_addr), &info.local);
	r.dst_size = (uint16_t)ucma_addr_write(&r.dst_addr, sizeof(r.dst_addr), &info.remote);
	describe_device(c, &info, &r);
	return call_answer(c, cmd->response, &r, sizeof(r));
}

/* IBTA 15.2.5.16, from byte 8 on. RoCE has no LIDs. */
static void record_write(uint8_t *to, const struct cm_id_info *info)
{
	uint32_t flow = htobe32(info->flow_label << 8 | HOP_LIMIT);
	uint16_t pkey = htobe16(info->pkey);

	memcpy(to + 8, info->dgid, 16);
	memcpy(to + 24, info->sgid, 16);
	memcpy(to + 44, &flow, sizeof(flow));
	to[48] = info->tos;
	to[49] = 0x80 | 1; /* reversible, one path */
	memcpy(to + 50, &pkey, sizeof(pkey));
	to[54] = (uint8_t)(EXACTLY << 6 | info->mtu);
	to[55] = EXACTLY << 6 | RATE_100_GBPS;
	to[56] = EXACTLY << 6 | PACKET_LIFE_TIME;
}

static int query_path(struct call *c, const struct rdma_ucm_query *cmd)
{
	struct path_resp r = {0};
	size_t len = offsetof(struct path_resp, path);
	struct cm_id_info info;

	if (c->out < len)
		return -ENOSPC;
	cm_id_query(c->id, &info);
	r.num_paths = has_path(&info);
	/* Linux wants more room than the record takes. */
	if (r.num_paths && c->out > sizeof(r)) {
		r.path.flags = PATH_GMP_PRIMARY_BOTH_WAYS;
		record_write(r.path.record, &info);
		len = sizeof(r);
	}
	return call_answer(c, cmd->response, &r, len);
}

static uint16_t gid_write(void *to, const uint8_t gid[16], uint16_t port, const struct cm_id_info *info)
{
	struct sockaddr_of_gid s = {.family = FAMILY_IB};

	if (has_device(info)) {
		s.pkey = info->pkey;
		memcpy(s.gid, gid, sizeof(s.gid));
	}
	s.service_id = htobe64((uint64_t)info->space << 16 | port);
	memcpy(to, &s, sizeof(s));
	return sizeof(s);
}

static int query_gid(struct call *c, const struct rdma_ucm_query *cmd)
{
	struct rdma_ucm_query_addr_resp r = {0};
	struct cm_id_info info;

	if (c->out < ADDR_BYTES_MIN)
		return -ENOSPC;
	cm_id_query(c->id, &info);
	r.src_size = gid_write(&r.src_addr, info.sgid, info.local.port, &info);
	r.dst_size = gid_write(&r.dst_addr, info.dgid, info.remote.port, &info);
	describe_device(c, &info, &r);
	return call_answer(c, cmd->response, &r, sizeof(r));
}

int query_any(struct call *c, const void *bytes)
{
	const struct rdma_ucm_query *cmd = bytes;

	switch (cmd->option) {
	case RDMA_USER_CM_QUERY_ADDR: return query_addr(c, cmd);
	case RDMA_USER_CM_QUERY_PATH: return query_path(c, cmd);
	case RDMA_USER_CM_QUERY_GID: return query_gid(c, cmd);
	case QUERY_IB_SERVICE: /* resolve_ib_service() never finds one */
		return c->out < IB_SERVICE_BYTES_MIN ? -ENOSPC : -ENODATA;
	default: return -ENOSYS;
	}
}
