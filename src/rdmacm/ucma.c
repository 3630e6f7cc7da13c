/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of commands, and a function for each. Before the function is called, its id is looked up and its bytes are
 * copied, so that another thread cannot change them. Errors are those that a program gets from Linux
 * (drivers/infiniband/core/ucma.c), because programs choose their next step by them.
 */
#include "rdmacm/ucma.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <netinet/in.h>
#include <rdma/rdma_user_cm.h>

#include "rdmacm/call.h"
#include "rdmacm/ucma_addr.h"

static_assert(sizeof(struct rdma_ucm_cmd_hdr) == 8, "ABI");
static_assert(sizeof(struct rdma_ucm_connect) == 288, "ABI");
static_assert(sizeof(struct rdma_ucm_accept) == 296, "ABI");
static_assert(sizeof(struct rdma_ucm_event_resp) == 336, "ABI");
static_assert(sizeof(struct ib_uverbs_qp_attr) == 144, "ABI");

enum {
	COMMAND_BYTES_MAX = 320,
	CONNECT_BYTES_MIN = offsetof(struct rdma_ucm_connect, ece),
	ACCEPT_BYTES_MIN = offsetof(struct rdma_ucm_accept, ece),
	EVENT_BYTES_MIN = offsetof(struct rdma_ucm_event_resp, reserved),
	ROUTE_BYTES_MIN = offsetof(struct rdma_ucm_query_route_resp, ibdev_index),
	PATH_BYTES = 72,   /* a record of IB_PATH: flags, reserved, path */
	PATH_FLAGS = 0x2b, /* IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL | ..: of the record that is used */
	REJECT_CONSUMER = 28,
	REJECT_VENDOR_OPTION = 35,
	EVENT_COMM_ESTABLISHED = 4, /* IBV_EVENT_COMM_EST */
	CMD_RESOLVE_IB_SERVICE = 23,
	CMD_WRITE_CM_EVENT = 24,
	FAMILY_IB = 27,
	FAMILY_IB_BYTES = 48
};

/* Commands that librdmacm has since rdma-core 60, and the headers of before do not. */
struct resolve_ib_service {
	uint32_t id;
	_Alignas(8) uint64_t service_id;
	uint8_t name[64];
	uint32_t flags, reserved;
};

struct write_cm_event {
	uint32_t id, reserved, event, status;
	union {
		uint64_t arg;
		uint8_t bytes[304]; /* the largest parameters of an event */
	} param;
};

static_assert(sizeof(struct resolve_ib_service) == 88, "ABI");
static_assert(sizeof(struct write_cm_event) == 320, "ABI");

/* ---- answers ------------------------------------------------------------------------------------- */

static int copy(const struct ucma_host *host, void *to, const void *from, size_t len)
{
	if (!to || !from)
		return len ? -EFAULT : 0;
	if (host->copy)
		return host->copy(to, from, len) ? 0 : -EFAULT;
	memcpy(to, from, len);
	return 0;
}

int call_answer(const struct call *c, uint64_t to, const void *from, size_t len)
{
	return copy(c->host, (void *)(uintptr_t)to, from, len < c->out ? len : c->out);
}

int call_read(const struct call *c, void *to, uint64_t from, size_t len)
{
	return copy(c->host, to, (const void *)(uintptr_t)from, len);
}

static int answer_u32(const struct call *c, uint64_t to, uint32_t value)
{
	return call_answer(c, to, &value, sizeof(value));
}

/* ---- ids ------------------------------------------------------------------------------------------- */

/* -1: there is no such port space or type. */
static int qp_type_of(uint16_t space, uint8_t asked)
{
	switch (space) {
	case RDMA_PS_TCP: return QPT_RC;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB: return QPT_UD;
	case RDMA_PS_IB: return asked;
	default: return -1;
	}
}

static int forget_id(struct call *c, const void *bytes)
{
	c->taken += cm_id_destroy(c->id, c->now_ns);
	return 0;
}

static int create_id(struct call *c, const void *bytes)
{
	const struct rdma_ucm_create_id *cmd = bytes;
	int type = qp_type_of(cmd->ps, cmd->qp_type), err = type < 0 ? -EINVAL : 0;
	struct cm_id *id = NULL, *twin;

	for (size_t i = 0; i < c->count && !err; i++) {
		struct cm_channel *ch = c->ends[i].channel;

		if (id)
			err = cm_id_create_twin(ch, id, &twin);
		else
			err = cm_id_create(ch, (enum cm_space)cmd->ps, (enum qp_type)type, cmd->uid, &id);
		/* A device of streams has no such type. */
		if (err == -EINVAL && (id || i + 1 < c->count))
			err = 0;
	}
	if (!err && id)
		err = answer_u32(c, cmd->response, cm_id_number(id));
	if (err && id) {
		c->number = cm_id_number(id);
		call_on_each(c, forget_id, NULL);
	}
	return err;
}

static void leave_unused(const struct call *c)
{
	if (c->host->leave)
		c->host->leave(c->host->ctx);
}

static int destroy_id(struct call *c, const void *bytes)
{
	const struct rdma_ucm_destroy_id *cmd = bytes;

	call_on_each(c, forget_id, NULL);
	leave_unused(c);
	return answer_u32(c, cmd->response, c->taken);
}

static int move_id(struct call *c, const void *bytes)
{
	c->taken += cm_id_migrate(c->id, c->at->channel);
	return 0;
}

static int migrate_id(struct call *c, const void *bytes)
{
	const struct rdma_ucm_migrate_id *cmd = bytes;
	struct cm_channel *from[UCMA_ENDS_MAX];
	int err = c->host->channel(c->host->ctx, (int)cmd->fd, from);

	if (err)
		return err;
	c->number = cmd->id;
	if (!call_go_to_first(c))
		return -ENOENT;
	if (cm_id_channel(c->id) != from[c->at - c->ends])
		return -EINVAL;
	call_on_each(c, move_id, NULL);
	c->out = sizeof(struct rdma_ucm_migrate_resp); /* nobody asks */
	return answer_u32(c, cmd->response, c->taken);
}

/* ---- paths --------------------------------------------------------------------------------------------- */

static int resolve_route(struct call *c, const void *bytes)
{
	const struct rdma_ucm_resolve_route *cmd = bytes;

	return cmd->timeout_ms ? cm_id_resolve_route(c->id) : -EINVAL;
}

static int resolve_ib_service(struct call *c, const void *bytes)
{
	return cm_id_resolve_service(c->id);
}

/* ---- conversations ------------------------------------------------------------------------------------ */

static void param_read(struct cm_param *to, const struct rdma_ucm_conn_param *from)
{
	*to = (struct cm_param){.qpn = from->qp_num & 0xffffff,
				.qkey = from->qkey,
				.responder_resources = from->responder_resources,
				.initiator_depth = from->initiator_depth,
				.flow_control = from->flow_control,
				.retry_count = from->retry_count,
				.rnr_retry_count = from->rnr_retry_count,
				.srq = from->srq,
				.data_len = from->private_data_len};
	memcpy(to->data, from->private_data, sizeof(from->private_data));
}

/* The command of an older library ends before these members, which are then 0. */
static void ece_read(struct cm_param *to, const struct rdma_ucm_ece *from)
{
	to->ece_vendor = from->vendor_id;
	to->ece_options = from->attr_mod;
}

static int connect_to(struct call *c, const void *bytes)
{
	const struct rdma_ucm_connect *cmd = bytes;
	struct cm_param p;

	param_read(&p, &cmd->conn_param);
	ece_read(&p, &cmd->ece);
	return cm_id_connect(c->id, &p, c->now_ns);
}

/* Without parameters the command is the active side's: it confirms the REP. */
static int try_to_accept(struct call *c, const struct rdma_ucm_accept *cmd)
{
	struct cm_param p;

	if (!cmd->conn_param.valid)
		return cm_id_confirm(c->id, c->now_ns);
	param_read(&p, &cmd->conn_param);
	ece_read(&p, &cmd->ece);
	return cm_id_accept(c->id, cmd->uid, &p, c->now_ns);
}

/* What cannot be accepted is refused, as in Linux: the peer need not wait for a program that has given up. */
static int accept_it(struct call *c, const void *bytes)
{
	int err = try_to_accept(c, bytes);

	if (err)
		cm_id_reject(c->id, REJECT_CONSUMER, NULL, 0);
	return err;
}

static int reject(struct call *c, const void *bytes)
{
	const struct rdma_ucm_reject *cmd = bytes;
	uint8_t reason = cmd->reason ? cmd->reason : REJECT_CONSUMER;

	return cm_id_reject(c->id, reason, cmd->private_data, cmd->private_data_len);
}

static int disconnect(struct call *c, const void *bytes)
{
	return cm_id_disconnect(c->id, c->now_ns);
}

static int notify(struct call *c, const void *bytes)
{
	const struct rdma_ucm_notify *cmd = bytes;

	return cmd->event == EVENT_COMM_ESTABLISHED ? cm_id_established(c->id) : -EINVAL;
}

static void ah_write(struct ib_uverbs_ah_attr *to, const struct ah_attr *from)
{
	*to = (struct ib_uverbs_ah_attr){.grh = {.flow_label = from->flow_label,
						 .sgid_index = from->sgid_index,
						 .hop_limit = from->hop_limit,
						 .traffic_class = from->traffic_class},
					 .sl = from->sl,
					 .is_global = from->is_global,
					 .port_num = from->port};
	memcpy(to->grh.dgid, from->dgid, sizeof(to->grh.dgid));
}

static uint32_t mtu_code(uint32_t bytes)
{
	return bytes ? (uint32_t)__builtin_ctz(bytes) - 7 : 0;
}

static int init_qp_attr(struct call *c, const void *bytes)
{
	const struct rdma_ucm_init_qp_attr *cmd = bytes;
	struct ib_uverbs_qp_attr r = {0};
	struct qp_attr a = {.state = (enum qp_state)cmd->qp_state};
	uint32_t mask;
	int err;

	err = cm_id_qp_attr(c->id, &a, &mask);
	if (err)
		return err;
	r.qp_attr_mask = mask;
	r.qp_state = a.state;
	r.path_mtu = mtu_code(a.path_mtu_bytes);
	r.qkey = a.qkey;
	r.rq_psn = a.rq_psn;
	r.sq_psn = a.sq_psn;
	r.dest_qp_num = a.dest_qpn;
	r.qp_access_flags = a.access;
	ah_write(&r.ah_attr, &a.av);
	r.pkey_index = a.pkey_index;
	r.max_rd_atomic = a.max_rd_atomic;
	r.max_dest_rd_atomic = a.max_dest_rd_atomic;
	r.min_rnr_timer = a.min_rnr_timer;
	r.port_num = a.port;
	r.timeout = a.timeout;
	r.retry_cnt = a.retry_cnt;
	r.rnr_retry = a.rnr_retry;
	return call_answer(c, cmd->response, &r, sizeof(r));
}

/* ---- events -------------------------------------------------------------------------------------------- */

static uint8_t data_len_of(const struct cm_param *p)
{
	return p->data_len < UINT8_MAX ? (uint8_t)p->data_len : UINT8_MAX;
}

static void conn_write(struct rdma_ucm_conn_param *to, const struct cm_param *from)
{
	*to = (struct rdma_ucm_conn_param){.qp_num = from->qpn,
					   .private_data_len = data_len_of(from),
					   .srq = from->srq,
					   .responder_resources = from->responder_resources,
					   .initiator_depth = from->initiator_depth,
					   .flow_control = from->flow_control,
					   .retry_count = from->retry_count,
					   .rnr_retry_count = from->rnr_retry_count};
	memcpy(to->private_data, from->data, sizeof(to->private_data));
}

static void ud_write(struct rdma_ucm_ud_param *to, const struct cm_event *e)
{
	*to = (struct rdma_ucm_ud_param){
		.qp_num = e->param.qpn, .qkey = e->param.qkey, .private_data_len = data_len_of(&e->param)};
	ah_write(&to->ah_attr, &e->ah);
	memcpy(to->private_data, e->param.data, sizeof(to->private_data));
}

static void tell_host(const struct call *c, const struct cm_event *e)
{
	const struct cm_id *id = cm_id_find(c->at->cm, e->number);
	struct cm_id_info info;

	if (!c->host->told || !id)
		return;
	cm_id_query(id, &info);
	c->host->told(c->host->ctx, e, &info);
}

/* librdmacm tells itself CM_INTERNAL, when it has resolved a name. */
static bool is_own_event(uint32_t type)
{
	return type == CM_USER || type == CM_INTERNAL;
}

static int write_event(struct call *c, const void *bytes)
{
	const struct write_cm_event *cmd = bytes;

	return cm_id_tell(c->id, (enum cm_event_type)cmd->event, (int32_t)cmd->status, cmd->param.arg);
}

/* The devices take turns. False: none has an event. */
static bool go_to_event(struct call *c)
{
	size_t last = c->host->turn ? *c->host->turn : 0;

	for (size_t i = 1; i <= c->count; i++) {
		size_t next = (last + i) % c->count;

		c->at = &c->ends[next];
		if (!cm_channel_events(c->at->channel))
			continue;
		if (c->host->turn)
			*c->host->turn = next;
		return true;
	}
	return false;
}

static int get_event(struct call *c, const void *bytes)
{
	const struct rdma_ucm_get_event *cmd = bytes;
	struct rdma_ucm_event_resp r = {0};
	struct cm_event e;

	if (!go_to_event(c))
		return -EAGAIN;
	/* An event that cannot be told stays. */
	if (call_answer(c, cmd->response, &r, sizeof(r)))
		return -EFAULT;
	cm_channel_take_event(c->at->channel, &e);
	tell_host(c, &e);
	r.uid = e.uid;
	r.id = e.number;
	r.event = e.type;
	r.status = (uint32_t)e.status;
	if (is_own_event(e.type))
		memcpy(&r.param, &e.arg, sizeof(e.arg));
	else if (e.datagram)
		ud_write(&r.param.ud, &e);
	else
		conn_write(&r.param.conn, &e.param);
	r.ece.vendor_id = e.param.ece_vendor;
	r.ece.attr_mod = e.param.ece_options;
	return call_answer(c, cmd->response, &r, sizeof(r));
}

/* ---- options -------------------------------------------------------------------------------------------- */

static int set_id_option(struct call *c, const struct rdma_ucm_set_option *cmd)
{
	int value = 0; /* of one byte: the lowest one is first */

	if ((cmd->optlen == 1 || cmd->optlen == sizeof(value)) && call_read(c, &value, cmd->optval, cmd->optlen))
		return -EFAULT;
	switch (cmd->optname) {
	case RDMA_OPTION_ID_TOS:
		if (cmd->optlen != 1)
			return -EINVAL;
		cm_id_set_tos(c->id, (uint8_t)value);
		return 0;
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		return cmd->optlen == 1 ? cm_id_set_ack_timeout(c->id, (uint8_t)value) : -EINVAL;
	case RDMA_OPTION_ID_REUSEADDR: return cmd->optlen == sizeof(value) ? cm_id_set_reuse(c->id, value) : -EINVAL;
	case RDMA_OPTION_ID_AFONLY: return cmd->optlen == sizeof(value) ? cm_id_set_afonly(c->id, value) : -EINVAL;
	default: return -ENOSYS;
	}
}

/* The path records of a program that resolves its routes itself. On Ethernet they are checked and not needed. */
static int set_ib_path(struct call *c, const struct rdma_ucm_set_option *cmd)
{
	if (!cmd->optlen || cmd->optlen % PATH_BYTES)
		return -EINVAL;
	for (size_t at = 0; at < cmd->optlen; at += PATH_BYTES) {
		uint32_t flags;

		if (call_read(c, &flags, cmd->optval + at, sizeof(flags)))
			return -EFAULT;
		if (flags == PATH_FLAGS)
			return cm_id_resolve_route(c->id);
	}
	return -EINVAL;
}

static int set_here(struct call *c, const void *bytes)
{
	const struct rdma_ucm_set_option *cmd = bytes;

	if (!cmd->optval && cmd->optlen)
		return -EFAULT;
	if (cmd->level == RDMA_OPTION_ID)
		return set_id_option(c, cmd);
	if (cmd->level == RDMA_OPTION_IB && cmd->optname == RDMA_OPTION_IB_PATH)
		return set_ib_path(c, cmd);
	return -ENOSYS;
}

static int set_option(struct call *c, const void *bytes)
{
	return call_on_each(c, set_here, bytes);
}

/* ---- groups ---------------------------------------------------------------------------------------------- */

static size_t size_of_family(const void *sockaddr)
{
	sa_family_t family;

	memcpy(&family, sockaddr, sizeof(family));
	return family == AF_INET ? sizeof(struct sockaddr_in) : family == AF_INET6 ? sizeof(struct sockaddr_in6) : 0;
}

/*
 * If the host cannot join the group, an event reports it, as an event reports that InfiniBand's subnet administrator
 * refused a join. The command itself succeeds.
 */
static int join(struct call *c, const struct rdma_ucm_join_mcast *cmd)
{
	bool send_only = cmd->join_flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER;
	struct cm_addr group;
	struct cm_join *j;
	int err;

	if (!cmd->addr_size || cmd->addr_size != size_of_family(&cmd->addr) ||
	    (cmd->join_flags != RDMA_MC_JOIN_FLAG_FULLMEMBER && !send_only))
		return -EINVAL;
	if (!cmd->response)
		return -EFAULT;
	if (!c->host->join)
		return -EOPNOTSUPP;
	err = ucma_addr_read(&group, &cmd->addr, cmd->addr_size);
	if (!err)
		err = cm_id_join(c->id, group.ip, send_only, cmd->uid, &j);
	if (err)
		return err;
	if (!send_only)
		err = c->host->join(c->host->ctx, c->id, group.ip, cm_join_interface(j));
	cm_join_done(j, err);
	return answer_u32(c, cmd->response, cm_join_number(j));
}

static int join_mcast(struct call *c, const void *bytes)
{
	return join(c, bytes);
}

static int join_ip_mcast(struct call *c, const void *bytes)
{
	const struct rdma_ucm_join_ip_mcast *cmd = bytes;
	struct rdma_ucm_join_mcast full = {.response = cmd->response,
					   .uid = cmd->uid,
					   .id = cmd->id,
					   .addr_size = (uint16_t)size_of_family(&cmd->addr),
					   .join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER};

	memcpy(&full.addr, &cmd->addr, sizeof(cmd->addr));
	return join(c, &full);
}

/* The command's id is the number of a membership. */
static int leave_mcast(struct call *c, const void *bytes)
{
	const struct rdma_ucm_destroy_id *cmd = bytes;
	struct cm_join *j = NULL;
	uint32_t taken;

	for (c->at = c->ends; !(j = cm_join_find(c->at->cm, cmd->id)); c->at++)
		if (c->at + 1 == c->ends + c->count)
			return -ENOENT;
	if (cm_id_channel(cm_join_id(j)) != c->at->channel)
		return -EINVAL;
	if (!cmd->response)
		return -EFAULT;
	taken = cm_join_leave(j);
	leave_unused(c);
	return answer_u32(c, cmd->response, taken);
}

/* ---- what Linux looks at before it looks for the id -------------------------------------------------------- */

/* 0: no family that rdma_cm knows. */
static size_t sockaddr_bytes(const void *sockaddr)
{
	sa_family_t family;

	memcpy(&family, sockaddr, sizeof(family));
	switch (family) {
	case AF_INET: return sizeof(struct sockaddr_in);
	case AF_INET6: return sizeof(struct sockaddr_in6);
	case FAMILY_IB: return FAMILY_IB_BYTES;
	default: return 0;
	}
}

static bool is_ip(const void *sockaddr_in6)
{
	size_t n = sockaddr_bytes(sockaddr_in6);

	return n && n <= sizeof(struct sockaddr_in6);
}

static bool bind_ip_makes_sense(const void *bytes)
{
	const struct rdma_ucm_bind_ip *cmd = bytes;

	return is_ip(&cmd->addr);
}

static bool bind_makes_sense(const void *bytes)
{
	const struct rdma_ucm_bind *cmd = bytes;

	return !cmd->reserved && cmd->addr_size && cmd->addr_size == sockaddr_bytes(&cmd->addr);
}

static bool resolve_ip_makes_sense(const void *bytes)
{
	const struct rdma_ucm_resolve_ip *cmd = bytes;

	return (!cmd->src_addr.sin6_family || is_ip(&cmd->src_addr)) && is_ip(&cmd->dst_addr);
}

static bool resolve_addr_makes_sense(const void *bytes)
{
	const struct rdma_ucm_resolve_addr *cmd = bytes;

	return !cmd->reserved && (!cmd->src_size || cmd->src_size == sockaddr_bytes(&cmd->src_addr)) && cmd->dst_size &&
	       cmd->dst_size == sockaddr_bytes(&cmd->dst_addr);
}

static bool connect_makes_sense(const void *bytes)
{
	const struct rdma_ucm_connect *cmd = bytes;

	return cmd->conn_param.valid;
}

static bool reject_makes_sense(const void *bytes)
{
	const struct rdma_ucm_reject *cmd = bytes;

	return !cmd->reason || cmd->reason == REJECT_CONSUMER || cmd->reason == REJECT_VENDOR_OPTION;
}

static bool state_makes_sense(const void *bytes)
{
	const struct rdma_ucm_init_qp_attr *cmd = bytes;

	return cmd->qp_state < QPS_COUNT;
}

static bool event_makes_sense(const void *bytes)
{
	const struct write_cm_event *cmd = bytes;

	return is_own_event(cmd->event);
}

/* ---- the table -------------------------------------------------------------------------------------------- */

enum { NO_ID = -1 };

#define ROW_OF(number, function, type, in, id_at, ...) \
	[number] = {function, sizeof(struct type), in, id_at, __VA_ARGS__}
#define ROW(number, ...) ROW_OF(RDMA_USER_CM_CMD_##number, __VA_ARGS__)
#define ID(type)         offsetof(struct type, id)

static const struct command {
	command_fn *run;
	uint16_t bytes;  /* of the whole command */
	uint16_t in_min; /* least length, as older libraries send it */
	int16_t id_at;   /* offset of the id, which must belong to the channel; or NO_ID */
	uint16_t out_min;
	bool (*makes_sense)(const void *bytes); /* else -EINVAL, whatever the id; NULL: it does */
} commands[] = {
	ROW(CREATE_ID, create_id, rdma_ucm_create_id, 24, NO_ID, 4),
	ROW(DESTROY_ID, destroy_id, rdma_ucm_destroy_id, 16, ID(rdma_ucm_destroy_id), 4),
	ROW(BIND_IP, bind_ip, rdma_ucm_bind_ip, 40, ID(rdma_ucm_bind_ip), 0, bind_ip_makes_sense),
	ROW(RESOLVE_IP, resolve_ip, rdma_ucm_resolve_ip, 64, ID(rdma_ucm_resolve_ip), 0, resolve_ip_makes_sense),
	ROW(RESOLVE_ROUTE, resolve_route, rdma_ucm_resolve_route, 8, ID(rdma_ucm_resolve_route), 0),
	ROW(QUERY_ROUTE, query_route, rdma_ucm_query, 12, ID(rdma_ucm_query), ROUTE_BYTES_MIN),
	ROW(CONNECT, connect_to, rdma_ucm_connect, CONNECT_BYTES_MIN, ID(rdma_ucm_connect), 0, connect_makes_sense),
	ROW(LISTEN, listen_for, rdma_ucm_listen, 8, ID(rdma_ucm_listen), 0),
	ROW(ACCEPT, accept_it, rdma_ucm_accept, ACCEPT_BYTES_MIN, ID(rdma_ucm_accept), 0),
	ROW(REJECT, reject, rdma_ucm_reject, 264, ID(rdma_ucm_reject), 0, reject_makes_sense),
	ROW(DISCONNECT, disconnect, rdma_ucm_disconnect, 4, ID(rdma_ucm_disconnect), 0),
	ROW(INIT_QP_ATTR, init_qp_attr, rdma_ucm_init_qp_attr, 16, ID(rdma_ucm_init_qp_attr), 144, state_makes_sense),
	ROW(GET_EVENT, get_event, rdma_ucm_get_event, 8, NO_ID, EVENT_BYTES_MIN),
	ROW(SET_OPTION, set_option, rdma_ucm_set_option, 24, ID(rdma_ucm_set_option), 0),
	ROW(NOTIFY, notify, rdma_ucm_notify, 8, ID(rdma_ucm_notify), 0),
	ROW(JOIN_IP_MCAST, join_ip_mcast, rdma_ucm_join_ip_mcast, 48, ID(rdma_ucm_join_ip_mcast), 4),
	ROW(LEAVE_MCAST, leave_mcast, rdma_ucm_destroy_id, 16, NO_ID, 4),
	ROW(MIGRATE_ID, migrate_id, rdma_ucm_migrate_id, 16, NO_ID, 0),
	ROW(QUERY, query_any, rdma_ucm_query, 16, ID(rdma_ucm_query), 0),
	ROW(BIND, bind_any, rdma_ucm_bind, 8, ID(rdma_ucm_bind), 0, bind_makes_sense),
	ROW(RESOLVE_ADDR, resolve_addr, rdma_ucm_resolve_addr, 16, ID(rdma_ucm_resolve_addr), 0,
	    resolve_addr_makes_sense),
	ROW(JOIN_MCAST, join_mcast, rdma_ucm_join_mcast, 24, ID(rdma_ucm_join_mcast), 4),
	ROW_OF(CMD_RESOLVE_IB_SERVICE, resolve_ib_service, resolve_ib_service, 88, ID(resolve_ib_service), 0),
	ROW_OF(CMD_WRITE_CM_EVENT, write_event, write_cm_event, 320, ID(write_cm_event), 0, event_makes_sense),
};

static_assert(sizeof(struct rdma_ucm_accept) <= COMMAND_BYTES_MAX, "the largest command");
static_assert(sizeof(struct rdma_ucm_resolve_addr) <= COMMAND_BYTES_MAX, "the largest command");
static_assert(sizeof(struct write_cm_event) <= COMMAND_BYTES_MAX, "the largest command");

/* Looks up the id that the command names, which must belong to the channel. */
static int find_id(struct call *c, const struct command *cmd, const uint8_t *bytes)
{
	if (cmd->id_at == NO_ID)
		return 0;
	memcpy(&c->number, bytes + cmd->id_at, sizeof(c->number));
	if (!call_go_to_first(c))
		return -ENOENT;
	return cm_id_channel(c->id) == c->at->channel ? 0 : -EINVAL;
}

ssize_t ucma_command(const struct ucma_host *host, const struct ucma_end *ends, size_t count, const void *buf,
		     size_t len, uint64_t now_ns)
{
	struct call c = {.host = host, .ends = ends, .count = count, .at = ends, .now_ns = now_ns};
	_Alignas(8) uint8_t bytes[COMMAND_BYTES_MAX] = {0};
	struct rdma_ucm_cmd_hdr hdr;
	const struct command *cmd;
	size_t given;
	int err;

	if (len < sizeof(hdr))
		return -EINVAL;
	if (copy(host, &hdr, buf, sizeof(hdr)))
		return -EFAULT;
	if (hdr.cmd >= sizeof(commands) / sizeof(commands[0]) || hdr.in + sizeof(hdr) > len)
		return -EINVAL;
	cmd = &commands[hdr.cmd];
	if (!cmd->run)
		return -ENOSYS;
	/* Linux goes by hdr.in where a command has grown, else it reads as much as it needs, even behind the program's
	 * bytes. */
	given = cmd->in_min < cmd->bytes ? hdr.in : len - sizeof(hdr);
	if (given < cmd->in_min)
		return -EINVAL;
	if (hdr.out < cmd->out_min)
		return -ENOSPC;
	if (copy(host, bytes, (const uint8_t *)buf + sizeof(hdr), given < cmd->bytes ? given : cmd->bytes))
		return -EFAULT;
	c.out = hdr.out;
	err = cmd->makes_sense && !cmd->makes_sense(bytes) ? -EINVAL : find_id(&c, cmd, bytes);
	if (!err)
		err = cmd->run(&c, bytes);
	return err ? err : (ssize_t)len;
}
