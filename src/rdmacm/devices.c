/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which devices an id is on: all of them until it has an address, and then the one that has that. So these commands are
 * here that give it one, and the one that makes it listen.
 */
#include <errno.h>
#include <string.h>
#include <rdma/rdma_user_cm.h>

#include "rdmacm/call.h"
#include "rdmacm/ucma_addr.h"

enum { DRAWS = 64 /* of a port that TCP does not have for us, or another device */ };

bool call_go_to(struct call *c, const struct ucma_end *end)
{
	struct cm_id *id = cm_id_find(end->cm, c->number);

	if (!id)
		return false;
	c->at = end;
	c->id = id;
	return true;
}

bool call_go_to_first(struct call *c)
{
	for (size_t i = 0; i < c->count; i++)
		if (call_go_to(c, &c->ends[i]))
			return true;
	return false;
}

int call_on_each(struct call *c, command_fn *run, const void *bytes)
{
	int err = 0;

	for (size_t i = 0; i < c->count && !err; i++)
		if (call_go_to(c, &c->ends[i]))
			err = run(c, bytes);
	call_go_to_first(c);
	return err;
}

/* The id is on the present device alone from now on. */
static void stay(struct call *c)
{
	for (size_t i = 0; i < c->count; i++) {
		struct cm_id *twin = &c->ends[i] == c->at ? NULL : cm_id_find(c->ends[i].cm, c->number);

		if (twin)
			cm_id_destroy(twin, c->now_ns);
	}
}

/* To the device that has the address and the id, if there is one. */
static void go_to_address(struct call *c, const struct cm_addr *a)
{
	for (size_t i = 0; i < c->count; i++)
		if (cm_has_address(c->ends[i].cm, a) && call_go_to(c, &c->ends[i]))
			return;
}

/* ---- addresses -------------------------------------------------------------------------------------- */

/*
 * Where connections are streams ports are TCP's. One that is drawn is nobody's there, and nobody gets it by chance
 * before the program listens. One that the program has asked for may be somebody's until then, as with Linux, where TCP
 * is asked last.
 */
static int bind_and_take(struct call *c, const struct cm_addr *a)
{
	int err = -EADDRINUSE;

	for (unsigned i = 0; i < DRAWS && err == -EADDRINUSE; i++) {
		err = cm_id_bind(c->id, a);
		if (err || !c->host->bind || !cm_id_listener(c->id))
			return err;
		err = c->host->bind(c->host->ctx, c->id, !a->port);
		if (a->port || err != -EADDRINUSE)
			return 0;
		cm_id_unbind(c->id);
	}
	return err;
}

static int unbind(struct call *c, const void *bytes)
{
	cm_id_unbind(c->id);
	return 0;
}

/* Binds the other devices to the wildcard with the port that the first has. */
static int bind_the_others(struct call *c, const struct cm_addr *wildcard)
{
	const struct ucma_end *first = c->at;
	struct cm_addr a = *wildcard;
	struct cm_id_info info;
	int err = 0;

	cm_id_query(c->id, &info);
	a.port = info.local.port;
	for (const struct ucma_end *e = first + 1; e < c->ends + c->count && !err; e++)
		if (call_go_to(c, e))
			err = bind_and_take(c, &a);
	call_go_to(c, first);
	return err;
}

/* A port that is drawn has to be free on all devices. */
static int bind_on_each(struct call *c, const struct cm_addr *wildcard)
{
	int err;

	for (unsigned i = 0; i < DRAWS; i++) {
		err = bind_and_take(c, wildcard);
		if (err)
			return err;
		err = bind_the_others(c, wildcard);
		if (!err)
			return 0;
		call_on_each(c, unbind, NULL);
		if (wildcard->port)
			break;
	}
	return err;
}

static bool is_wildcard(const struct cm_addr *a)
{
	static const uint8_t ipv4[16] = {[10] = 0xff, [11] = 0xff}, ipv6[16];

	return !memcmp(a->ip, ipv4, sizeof(ipv4)) || !memcmp(a->ip, ipv6, sizeof(ipv6));
}

/* The device that has the address is the id's from then on; one that none has, as loopback's, is the first one's. */
static int bind_where_it_is(struct call *c, const struct cm_addr *a)
{
	int err;

	if (is_wildcard(a))
		return bind_on_each(c, a);
	go_to_address(c, a);
	err = bind_and_take(c, a);
	if (!err)
		stay(c);
	return err;
}

static int bind_to(struct call *c, const void *sockaddr, size_t len)
{
	struct cm_addr a;
	int err = ucma_addr_read(&a, sockaddr, len);

	if (err)
		return err;
	if (a.port && c->host->first_port && a.port < c->host->first_port(c->host->ctx))
		return -EACCES;
	return bind_where_it_is(c, &a);
}

int bind_ip(struct call *c, const void *bytes)
{
	const struct rdma_ucm_bind_ip *cmd = bytes;

	return bind_to(c, &cmd->addr, sizeof(cmd->addr));
}

int bind_any(struct call *c, const void *bytes)
{
	const struct rdma_ucm_bind *cmd = bytes;

	return bind_to(c, &cmd->addr, cmd->addr_size);
}

/* The source address: the command's or, if it has none, the one that the id is bound to. */
static int source_of(const struct call *c, struct cm_addr *src, const void *sockaddr, size_t len)
{
	struct cm_id_info info;
	sa_family_t family = AF_UNSPEC;

	cm_id_query(c->id, &info);
	if (len >= sizeof(family))
		memcpy(&family, sockaddr, sizeof(family));
	if (info.local.family == CM_NO_FAMILY && family != AF_UNSPEC)
		return ucma_addr_read(src, sockaddr, len);
	*src = info.local;
	return 0;
}

static int resolve(struct call *c, const void *from, size_t from_len, const void *to, size_t to_len)
{
	struct cm_addr src = {0}, dst;
	int err = ucma_addr_read(&dst, to, to_len);

	if (!err)
		err = source_of(c, &src, from, from_len);
	if (err)
		return err;
	if (src.family != CM_NO_FAMILY && src.family != dst.family)
		return -EINVAL;
	err = c->host->route(c->host->ctx, &src, &dst);
	if (err)
		return cm_id_unresolved(c->id, err);
	go_to_address(c, &src);
	err = cm_id_resolve_addr(c->id, &src, &dst);
	if (!err)
		stay(c);
	return err;
}

int resolve_ip(struct call *c, const void *bytes)
{
	const struct rdma_ucm_resolve_ip *cmd = bytes;

	return resolve(c, &cmd->src_addr, sizeof(cmd->src_addr), &cmd->dst_addr, sizeof(cmd->dst_addr));
}

int resolve_addr(struct call *c, const void *bytes)
{
	const struct rdma_ucm_resolve_addr *cmd = bytes;

	return resolve(c, &cmd->src_addr, cmd->src_size, &cmd->dst_addr, cmd->dst_size);
}

/* ---- listeners ------------------------------------------------------------------------------------------ */

static int listen_here(struct call *c, const void *bytes)
{
	const struct rdma_ucm_listen *cmd = bytes;
	int err = cm_id_listen(c->id, (int)cmd->backlog);

	if (err || !cm_id_listener(c->id) || !c->host->listen)
		return err;
	err = c->host->listen(c->host->ctx, c->id, (int)cmd->backlog);
	if (err)
		cm_id_unlisten(c->id);
	return err;
}

static int unlisten(struct call *c, const void *bytes)
{
	if (cm_id_listens(c->id))
		cm_id_unlisten(c->id);
	return 0;
}

int listen_for(struct call *c, const void *bytes)
{
	static const struct cm_addr anywhere = {.ip = {[10] = 0xff, [11] = 0xff}, .family = CM_IPV4};
	struct cm_id_info info;
	int err = 0;

	cm_id_query(c->id, &info);
	if (info.local.family == CM_NO_FAMILY)
		err = bind_on_each(c, &anywhere);
	else if (cm_id_listens(c->id))
		return -EINVAL;
	if (err)
		return err;
	err = call_on_each(c, listen_here, bytes);
	if (err)
		call_on_each(c, unlisten, NULL);
	return err;
}
