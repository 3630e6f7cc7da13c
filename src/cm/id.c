/* SPDX-License-Identifier: BSD-2-Clause */
/* Ids: the calls that a program may make in each state (rdma_cm(7)). */
#include <errno.h>
#include <string.h>

#include "cm/state.h"
#include "wire/cm_rej.h"
#include "wire/cm_sidr.h"

/* ---- life ------------------------------------------------------------------------------------------- */

static bool space_is_known(enum cm_space space)
{
	return space == CM_SPACE_TCP || space == CM_SPACE_UDP || space == CM_SPACE_IB || space == CM_SPACE_IPOIB;
}

static bool type_is_known(enum qp_type type)
{
	return type == QPT_RC || type == QPT_UC || type == QPT_UD || type == QPT_XRC_SEND || type == QPT_XRC_RECV;
}

/* Numbers are taken in turn, so that a stale one is noticed. */
static uint32_t new_number(struct cm *cm)
{
	while (cm_id_find(cm, cm->next_number))
		cm->next_number = (cm->next_number + cm->number_step) & INT32_MAX;
	return cm->next_number;
}

static struct cm_id *id_new_as(struct cm_channel *ch, uint32_t number, enum cm_space space, enum qp_type qp_type)
{
	struct cm *cm = ch->cm;
	struct cm_id *id = cm->id_count < CM_IDS_MAX ? pool_get(&cm->pool, sizeof(*id)) : NULL;

	if (!id) {
		cm->obstacle = (struct cm_obstacle){.kind = cm->id_count < CM_IDS_MAX ? CM_NO_OBSTACLE : CM_NO_ID_LEFT};
		return NULL;
	}
	*id = (struct cm_id){.cm = cm,
			     .channel = ch,
			     .number = number,
			     .space = space,
			     .qp_type = qp_type,
			     .row = REGISTRY_NO_ROW,
			     .gid_index = -1,
			     .ack_timeout = CM_ACK_TIMEOUT};
	list_init(&id->joins);
	map_add(&cm->by_number, &id->by_number, id->number);
	list_append(&ch->ids, &id->link);
	cm->id_count++;
	return id;
}

static struct cm_id *id_new(struct cm_channel *ch, enum cm_space space, enum qp_type qp_type)
{
	uint32_t number = new_number(ch->cm);
	struct cm_id *id = id_new_as(ch, number, space, qp_type);

	if (id)
		ch->cm->next_number = (number + ch->cm->number_step) & INT32_MAX;
	return id;
}

void id_drop(struct cm_id *id)
{
	struct cm *cm = id->cm;

	port_leave(id);
	map_remove(&cm->by_number, &id->by_number);
	list_remove(&id->link);
	cm->id_count--;
	pool_put(&cm->pool, id, sizeof(*id));
}

int cm_id_create(struct cm_channel *ch, enum cm_space space, enum qp_type qp_type, uint64_t uid, struct cm_id **out)
{
	struct cm_id *id;

	if (cm_has_streams(&ch->cm->streams) && qp_type != QPT_RC)
		return -EINVAL;
	if (!space_is_known(space) || !type_is_known(qp_type))
		return -EINVAL;
	id = id_new(ch, space, qp_type);
	if (!id)
		return -ENOMEM;
	id->uid = uid;
	*out = id;
	return 0;
}

int cm_id_create_twin(struct cm_channel *ch, const struct cm_id *of, struct cm_id **out)
{
	struct cm_id *id;

	if (cm_has_streams(&ch->cm->streams) && of->qp_type != QPT_RC)
		return -EINVAL;
	if (cm_id_find(ch->cm, of->number))
		return -EEXIST;
	id = id_new_as(ch, of->number, of->space, of->qp_type);
	if (!id)
		return -ENOMEM;
	id->uid = of->uid;
	*out = id;
	return 0;
}

uint32_t cm_id_destroy(struct cm_id *id, uint64_t now_ns)
{
	uint32_t taken = id->events_taken;

	if (id->state == ID_LISTENING) {
		id->state = ID_BOUND; /* accepts no request any more */
		id->cm->listener_count--;
	}
	event_forget(id, now_ns);
	join_leave_all(id);
	if (id->conn)
		conn_abandon(id->conn, now_ns);
	mpa_abandon(id, now_ns);
	id_drop(id);
	return taken;
}

uint32_t cm_id_migrate(struct cm_id *id, struct cm_channel *to)
{
	if (to != id->channel) {
		event_move(id, to);
		list_remove(&id->link);
		list_append(&to->ids, &id->link);
		id->channel = to;
	}
	return id->events_taken;
}

uint32_t cm_id_number(const struct cm_id *id)
{
	return id->number;
}

struct cm_id *cm_id_find(const struct cm *cm, uint32_t number)
{
	struct map_node *n = map_first(&cm->by_number, number);

	return n ? container_of(n, struct cm_id, by_number) : NULL;
}

struct cm_channel *cm_id_channel(const struct cm_id *id)
{
	return id->channel;
}

/* ---- addresses --------------------------------------------------------------------------------------- */

static bool is_empty(const struct nic_gid *g)
{
	static const uint8_t zero[16];

	return !memcmp(g->raw, zero, sizeof(zero));
}

/* Others learn which addresses those are. */
static void tell_own(struct cm *cm)
{
	uint8_t own[NIC_GIDS_MAX][16];
	uint32_t n = 0;

	for (uint32_t i = 0; i < cm->gid_count; i++)
		if (!is_empty(&cm->gids[i]))
			memcpy(own[n++], cm->gids[i].raw, sizeof(own[0]));
	registry_set_own(&cm->registry, own, n);
}

void cm_set_gids(struct cm *cm, const struct nic_gid *gids, uint32_t count)
{
	cm->gid_count = count < NIC_GIDS_MAX ? count : NIC_GIDS_MAX;
	for (uint32_t i = 0; i < cm->gid_count; i++) {
		uint32_t before = cm->gids[i].ifindex;

		cm->gids[i] = gids[i];
		/* Its ids, and the groups that they have joined, are of that interface still. */
		if (is_empty(&gids[i]))
			cm->gids[i].ifindex = before;
	}
	if (cm->bound)
		tell_own(cm);
}

/* The ids of a channel as they are now: events add none. */
static void tell_channel(struct cm_channel *ch, uint32_t ifindex, enum cm_event_type type)
{
	for (struct list *l = ch->ids.next; l != &ch->ids; l = l->next) {
		struct cm_id *id = container_of(l, struct cm_id, link);

		if (id->gid_index >= 0 && ch->cm->gids[id->gid_index].ifindex == ifindex)
			event_tell(id, type, 0, NULL);
	}
}

void cm_tell_interface(struct cm *cm, uint32_t ifindex, enum cm_event_type type)
{
	for (struct list *l = cm->channels.next; l != &cm->channels; l = l->next)
		tell_channel(container_of(l, struct cm_channel, link), ifindex, type);
}

int gid_index_of(const struct cm *cm, const uint8_t *ip, uint32_t ifindex)
{
	for (uint32_t i = 0; i < cm->gid_count; i++) {
		const struct nic_gid *g = &cm->gids[i];

		if (!is_empty(g) && !memcmp(g->raw, ip, sizeof(g->raw)) &&
		    (!ifindex || !g->ifindex || g->ifindex == ifindex))
			return (int)i;
	}
	return -1;
}

uint8_t mtu_code(uint32_t bytes)
{
	uint8_t code = 1;

	while (code < 5 && bytes >= 256u << code)
		code++;
	return code;
}

/* The path to an address of this host uses no interface (nic_resolve()). */
uint8_t path_mtu_code(const struct cm *cm, int gid_index, const uint8_t *remote)
{
	if (gid_index_of(cm, remote, 0) >= 0)
		return mtu_code(NIC_MTU_BYTES_MAX);
	return mtu_code(nic_path_mtu(cm->gids[gid_index].ip_mtu));
}

/* So that flows of one pair of hosts take several paths (IBTA A17.4.7; the rule is Linux's). */
uint32_t flow_label_of(uint16_t sport, uint16_t dport)
{
	return (sport * 31u + dport) & 0xfffff;
}

/*
 * The GID that a loopback address stands for: the first of its family that is none, and not of a link alone if there is
 * another, or else the first that is none; -1: the device has loopback's alone.
 */
static int stand_in(const struct cm *cm, const uint8_t *ip)
{
	int best = -1, best_rank = 0;

	for (uint32_t i = 0; i < cm->gid_count; i++) {
		const uint8_t *raw = cm->gids[i].raw;
		bool akin = ip_is_ipv4(raw) == ip_is_ipv4(ip), link_local = raw[0] == 0xfe && (raw[1] & 0xc0) == 0x80;
		int rank = 1 + 2 * akin + !link_local;

		if (is_empty(&cm->gids[i]) || ip_is_loopback(raw) || rank <= best_rank)
			continue;
		best = (int)i;
		best_rank = rank;
	}
	return best;
}

/*
 * A loopback address names no device where there are others, as with Linux, whose devices have none: libfabric binds to
 * one, and offers the addresses of interfaces to its peers only if that gives no device.
 */
static bool addr_names_device(const struct cm *cm, const struct cm_addr *a)
{
	return !addr_is_wildcard(a) && (!ip_is_loopback(a->ip) || stand_in(cm, a->ip) < 0);
}

bool cm_has_address(const struct cm *cm, const struct cm_addr *a)
{
	return gid_index_of(cm, a->ip, a->ifindex) >= 0;
}

static bool addr_is_ours(const struct cm *cm, const struct cm_addr *a)
{
	return !addr_names_device(cm, a) || gid_index_of(cm, a->ip, a->ifindex) >= 0;
}

const uint8_t *id_gid(const struct cm_id *id, const struct cm_addr *a)
{
	return id->looped ? id->own : a->ip;
}

void id_address(const struct cm_id *id, struct flow *f)
{
	memcpy(f->src, id_gid(id, &id->local), sizeof(f->src));
	memcpy(f->dst, id_gid(id, &id->remote), sizeof(f->dst));
	f->ifindex = id->looped && f->dst[0] == 0xfe ? id->cm->gids[id->gid_index].ifindex : id->remote.ifindex;
}

/* A loopback address of ours that was chosen leads to others that are not. */
static bool is_looped(const struct cm *cm, int own, const struct cm_addr *src, const struct cm_addr *dst)
{
	if (!ip_is_loopback(dst->ip) || addr_names_device(cm, dst))
		return false;
	return own < 0 || !ip_is_loopback(src->ip) || gid_index_of(cm, dst->ip, 0) >= 0;
}

/* As Linux's cma_bind_loopback(): by the device that the id has, or else by any. */
static int loop(struct cm_id *id, const struct cm_addr *dst)
{
	const struct cm *cm = id->cm;
	int index = id->gid_index >= 0 && !is_empty(&cm->gids[id->gid_index]) ? id->gid_index : stand_in(cm, dst->ip);

	id->looped = true;
	memcpy(id->own, cm->gids[index].raw, sizeof(id->own));
	return index;
}

static int bind_to(struct cm_id *id, const struct cm_addr *addr, bool asked)
{
	int err;

	if (id->state != ID_IDLE || id->space == CM_SPACE_IPOIB)
		return -EINVAL;
	if (!addr_is_ours(id->cm, addr)) {
		id->cm->obstacle = (struct cm_obstacle){.kind = CM_NO_SUCH_ADDRESS, .space = id->space, .addr = *addr};
		return -EADDRNOTAVAIL;
	}
	err = port_bind(id, addr, asked);
	if (err)
		return err;
	if (addr_names_device(id->cm, addr))
		id->gid_index = gid_index_of(id->cm, addr->ip, addr->ifindex);
	id->state = ID_BOUND;
	return 0;
}

int cm_id_bind(struct cm_id *id, const struct cm_addr *addr)
{
	int err = bind_to(id, addr, true);

	if (!err && cm_has_streams(&id->cm->streams))
		mpa_bind(id);
	return err;
}

void cm_id_unbind(struct cm_id *id)
{
	mpa_unbind(id);
	port_leave(id);
	id->local = (struct cm_addr){0};
	id->gid_index = -1;
	id->state = ID_IDLE;
}

static bool may_resolve(const struct cm_id *id)
{
	return (id->state == ID_IDLE || id->state == ID_BOUND) && id->space != CM_SPACE_IPOIB;
}

int cm_id_resolve_addr(struct cm_id *id, const struct cm_addr *src, const struct cm_addr *dst)
{
	struct cm_addr from = *src;
	int index = gid_index_of(id->cm, src->ip, src->ifindex), err;
	bool looped = is_looped(id->cm, index, src, dst);

	if (!may_resolve(id))
		return -EINVAL;
	if (index < 0 && !looped) {
		id->cm->obstacle = (struct cm_obstacle){.kind = CM_NO_SUCH_ADDRESS, .space = id->space, .addr = *src};
		return -ENODEV;
	}
	if (id->state == ID_IDLE) {
		err = bind_to(id, &from, false);
		if (err)
			return err;
	}
	from.port = id->local.port;
	id->local = from;
	id->remote = *dst;
	id->gid_index = looped ? loop(id, dst) : index;
	id->state = ID_ADDR_RESOLVED;
	event_tell(id, CM_ADDR_RESOLVED, 0, NULL);
	return 0;
}

int cm_id_unresolved(const struct cm_id *id, int status)
{
	return may_resolve(id) ? status : -EINVAL;
}

int cm_id_resolve_route(struct cm_id *id)
{
	if (id->state != ID_ADDR_RESOLVED)
		return -EINVAL;
	id->state = ID_ROUTE_RESOLVED;
	event_tell(id, CM_ROUTE_RESOLVED, 0, NULL);
	return 0;
}

int cm_id_resolve_service(const struct cm_id *id)
{
	return id->state == ID_BOUND && id->gid_index >= 0 ? -EOPNOTSUPP : -EINVAL;
}

/* ---- conversations ------------------------------------------------------------------------------------ */

struct cm_id *id_for_request(struct cm_id *listener, const struct cm_addr *local, const struct cm_addr *remote,
			     const uint8_t gid[16])
{
	struct cm_id *id = id_new(listener->channel, listener->space, listener->qp_type);

	if (!id && listener->cm->id_count >= CM_IDS_MAX)
		limit_reached(listener->cm, CM_LIMIT_IDS);
	if (!id)
		return NULL;
	id->state = ID_CONNECTING;
	id->local = *local;
	id->remote = *remote;
	id->gid_index = gid_index_of(id->cm, gid, local->ifindex);
	/* A stream may come to a loopback address itself. */
	if (id->gid_index < 0)
		id->gid_index = stand_in(id->cm, gid);
	id->looped = memcmp(gid, local->ip, sizeof(local->ip)) != 0;
	memcpy(id->own, gid, sizeof(id->own));
	return id;
}

int cm_id_listen(struct cm_id *id, int backlog)
{
	static const struct cm_addr anywhere = {.ip = {[10] = 0xff, [11] = 0xff}, .family = CM_IPV4};
	int err = id->state == ID_IDLE ? cm_id_bind(id, &anywhere) : 0;

	if (err)
		return err;
	if (id->state != ID_BOUND)
		return -EINVAL;
	err = port_listen(id);
	if (err)
		return err == -ENOMEM ? err : -EADDRINUSE;
	id->backlog = backlog > 0 && backlog < CM_BACKLOG_MAX ? backlog : CM_BACKLOG_MAX;
	id->state = ID_LISTENING;
	id->cm->listener_count++;
	id->cm->listens++;
	return 0;
}

bool cm_id_listens(const struct cm_id *id)
{
	return id->state == ID_LISTENING;
}

uint32_t cm_listeners(const struct cm *cm)
{
	return cm->listener_count;
}

uint32_t cm_listens(const struct cm *cm)
{
	return cm->listens;
}

int cm_id_connect(struct cm_id *id, const struct cm_param *param, uint64_t now_ns)
{
	int err;

	if (id->state != ID_ROUTE_RESOLVED)
		return -EINVAL;
	if (cm_has_streams(&id->cm->streams))
		err = mpa_connect(id, param, now_ns);
	else
		err = id->qp_type == QPT_UD ? sidr_connect(id, param, now_ns) : active_connect(id, param, now_ns);
	if (err)
		return err;
	id->state = ID_CONNECTING;
	id->asked = true;
	return 0;
}

/* Events bear the uid, so the program gets that of the connection after the uid is known. */
static int mpa_accept_as(struct cm_id *id, uint64_t uid, const struct cm_param *param, uint64_t now_ns)
{
	static const struct cm_param nothing;
	int established = mpa_accept(id, param, now_ns);

	if (established < 0)
		return established;
	id->uid = uid;
	if (established)
		event_tell(id, CM_ESTABLISHED, 0, &nothing);
	return 0;
}

int cm_id_accept(struct cm_id *id, uint64_t uid, const struct cm_param *param, uint64_t now_ns)
{
	int err;

	if (cm_has_streams(&id->cm->streams))
		return mpa_accept_as(id, uid, param, now_ns);
	if (!id->conn)
		return -EINVAL;
	err = id->qp_type == QPT_UD ? sidr_accept(id->conn, param) : passive_accept(id->conn, param, now_ns);
	if (!err)
		id->uid = uid;
	return err;
}

int cm_id_confirm(struct cm_id *id, uint64_t now_ns)
{
	if (!id->conn || id->conn->state != CONN_REP_RCVD)
		return -EINVAL;
	active_confirm(id->conn);
	return 0;
}

int cm_id_established(struct cm_id *id)
{
	if (id->conn && id->conn->state == CONN_ESTABLISHED)
		return -EISCONN;
	if (!id->conn || id->conn->state != CONN_REP_SENT)
		return -EINVAL;
	passive_established(id->conn);
	return 0;
}

int cm_id_reject(struct cm_id *id, uint16_t reason, const uint8_t *data, size_t len)
{
	struct conn *c = id->conn;

	if (cm_has_streams(&id->cm->streams))
		return mpa_reject(id, data, len);
	if (!c)
		return -EINVAL;
	switch (c->state) {
	case CONN_SIDR_REQ_RCVD:
		if (len > CM_SIDR_REP_DATA_LEN)
			return -EINVAL;
		sidr_refuse(c, data, len);
		return 0;
	case CONN_REQ_SENT:
	case CONN_REQ_RCVD:
	case CONN_REP_RCVD:
	case CONN_REP_SENT:
		if (len > CM_REJ_DATA_LEN)
			return -EINVAL;
		hangup_refuse(c, reason, data, len);
		return 0;
	default: return -EINVAL;
	}
}

int cm_id_disconnect(struct cm_id *id, uint64_t now_ns)
{
	struct conn *c = id->conn;

	if (id->gid_index < 0 ||
	    (id->state != ID_LISTENING && id->state != ID_CONNECTING && id->state != ID_DISCONNECTED))
		return -EINVAL;
	if (cm_has_streams(&id->cm->streams))
		mpa_disconnect(id, now_ns);
	if (c && c->state == CONN_ESTABLISHED)
		hangup_start(c, now_ns);
	else if (c && c->state == CONN_DREQ_RCVD)
		hangup_answer(c, now_ns);
	return 0;
}

/* ---- options and queries -------------------------------------------------------------------------------- */

void cm_id_set_tos(struct cm_id *id, uint8_t tos)
{
	id->tos = tos;
}

int cm_id_set_ack_timeout(struct cm_id *id, uint8_t code)
{
	if (code > 31 || (id->qp_type != QPT_RC && id->qp_type != QPT_XRC_SEND))
		return -EINVAL;
	id->ack_timeout = code;
	id->ack_timeout_set = true;
	return 0;
}

/* As Linux: once it is bound an id may begin to share, but not stop. */
int cm_id_set_reuse(struct cm_id *id, bool reuse)
{
	if (reuse ? id->state == ID_LISTENING : id->state != ID_IDLE)
		return -EINVAL;
	id->reuse = reuse;
	port_amend(id);
	return 0;
}

int cm_id_set_afonly(struct cm_id *id, bool afonly)
{
	if (id->state != ID_IDLE && id->state != ID_BOUND)
		return -EINVAL;
	id->afonly = afonly;
	port_amend(id);
	return 0;
}

void cm_id_query(const struct cm_id *id, struct cm_id_info *info)
{
	*info = (struct cm_id_info){.space = id->space,
				    .local = id->local,
				    .remote = id->remote,
				    .gid_index = id->gid_index,
				    .resolved = id->remote.family != CM_NO_FAMILY && id->state != ID_ADDR_RESOLVED,
				    .asked = id->asked,
				    .sends = id->sends,
				    .silent_ns = id->silent_ns,
				    .tos = id->tos,
				    .ack_timeout = id->ack_timeout,
				    .pkey = id->cm->pkey,
				    .flow_label = flow_label_of(id->local.port, id->remote.port)};
	memcpy(info->sgid, id_gid(id, &id->local), sizeof(info->sgid));
	memcpy(info->dgid, id_gid(id, &id->remote), sizeof(info->dgid));
	if (id->gid_index >= 0 && id->remote.family != CM_NO_FAMILY)
		info->mtu = path_mtu_code(id->cm, id->gid_index, info->dgid);
}
