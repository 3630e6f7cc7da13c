/* SPDX-License-Identifier: BSD-2-Clause */
/* One line for each cause, with the numbers that matter and what would help. */
#include "rdmacm/trouble.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "cm/registry.h"
#include "engine/engine.h"
#include "verbs/explain.h"

enum {
	TEXT_BYTES = INET6_ADDRSTRLEN + 32,
	NAME_BYTES = 32,
	/* IBTA 12.6.7.2: reasons of a REJ */
	REJ_NO_RESOURCES = 3,
	REJ_TIMEOUT = 4,
	REJ_SERVICE_ID = 8,
	REJ_TRANSPORT = 9,
	REJ_STALE = 10,
	REJ_GID = 12,
	REJ_MTU = 26,
	REJ_CONSUMER = 28,
	REJ_CLASS_VERSION = 31,
	REJ_VENDOR_OPTION = 35,
	/* IBTA 12.11.2: status of a SIDR_REP */
	SIDR_UNSUPPORTED = 1
};

/* ---- noting ------------------------------------------------------------------------------------ */

int trouble_with_route(struct trouble *t, const struct cm_addr *remote, int err)
{
	t->route_err = err;
	t->remote = *remote;
	return err;
}

void trouble_with_event(struct trouble *t, const struct cm_event *e, const struct cm_id_info *info)
{
	t->told = true;
	t->event.type = e->type;
	t->event.status = e->status;
	t->event.answered = e->answered;
	t->info = *info;
}

void trouble_with_command(struct trouble *t, struct engine *e, int err)
{
	struct cm_obstacle obstacle = cm_take_obstacle(engine_cm(e));

	t->err = err;
	t->limits |= cm_take_limits(engine_cm(e));
	t->udp_port = engine_udp_port(e);
	t->rocev2_refused |= engine_refused_rocev2(e) != 0;
	if (obstacle.kind == CM_NO_OBSTACLE)
		return;
	t->obstacle = obstacle;
	if (obstacle.kind == CM_PORT_TAKEN_THERE)
		t->pid = engine_pid_of(e, obstacle.slot);
}

/* ---- telling ----------------------------------------------------------------------------------- */

static const char *ip_text(const struct cm_addr *a, char *text)
{
	bool ipv4 = a->family == CM_IPV4;

	inet_ntop(ipv4 ? AF_INET : AF_INET6, a->ip + (ipv4 ? 12 : 0), text, TEXT_BYTES);
	return text;
}

static const char *space_name(enum cm_space space)
{
	return space == CM_SPACE_TCP ? "RDMA_PS_TCP" : space == CM_SPACE_UDP ? "RDMA_PS_UDP" : "RDMA_PS_IB";
}

static void name_of_process(long pid, char *name)
{
	char path[NAME_BYTES];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%ld/comm", pid);
	f = fopen(path, "re");
	if (!f || !fgets(name, NAME_BYTES, f))
		snprintf(name, NAME_BYTES, "unknown");
	name[strcspn(name, "\n")] = 0;
	if (f)
		fclose(f);
}

static void explain_taken(const struct trouble *t)
{
	const struct cm_obstacle *o = &t->obstacle;
	char name[NAME_BYTES], ip[TEXT_BYTES];

	ip_text(&o->addr, ip);
	if (o->kind == CM_PORT_TAKEN_HERE) {
		EXPLAIN(t->err,
			"rdma_bind_addr or rdma_listen: port %u of %s at %s is taken by another rdma_cm_id of this process",
			o->addr.port, space_name(o->space), ip);
	} else if (t->pid) {
		name_of_process(t->pid, name);
		EXPLAIN(t->err,
			"rdma_bind_addr or rdma_listen: port %u of %s at %s: the port is taken by process %ld of this "
			"user, %s (`verbena stat --all %ld` shows its listeners)",
			o->addr.port, space_name(o->space), ip, t->pid, name, t->pid);
	}
}

static void explain_obstacle(const struct trouble *t)
{
	const struct cm_obstacle *o = &t->obstacle;
	char ip[TEXT_BYTES];

	switch (o->kind) {
	case CM_PORT_TAKEN_HERE:
	case CM_PORT_TAKEN_THERE: explain_taken(t); break;
	case CM_NO_SUCH_ADDRESS:
		EXPLAIN(t->err,
			"rdma_bind_addr or rdma_resolve_addr: no interface of the device has the address %s "
			"(`verbena devices` shows those that it has; an interface must be up, and VERBENA_INTERFACES, if it "
			"is set, must name it)",
			ip_text(&o->addr, ip));
		break;
	case CM_NO_PORT_LEFT:
		EXPLAIN(t->err, "rdma_bind_addr or rdma_resolve_addr: all ports of the range are in use "
				"(net.ipv4.ip_local_port_range)");
		break;
	case CM_NO_ROW_LEFT:
		EXPLAIN(t->err,
			"rdma_bind_addr: this process has asked for %d ports already, which is the most that one may have",
			REGISTRY_ROWS);
		break;
	case CM_NO_ID_LEFT:
		EXPLAIN(t->err, "rdma_create_id: this process has %d ids already, which is the most that one may have",
			CM_IDS_MAX);
		break;
	case CM_NO_OBSTACLE:
		if (t->err == -EACCES)
			EXPLAIN(t->err,
				"rdma_bind_addr: ports below %u are for the privileged "
				"(net.ipv4.ip_unprivileged_port_start)",
				t->first_port);
	}
}

/* REJ's reasons that a connection manager gives, and what would help. */
static const char *reason_text(int reason)
{
	switch (reason) {
	case REJ_NO_RESOURCES: return "no resources: it has reached a limit of its own";
	case REJ_TIMEOUT: return "timeout: it gave up waiting for an answer from here; packets to it may be lost";
	case REJ_TRANSPORT: return "transport type: its listener is for another type of queue pair";
	case REJ_STALE:
		return "stale connection: it still remembers a connection of this queue pair; it forgets it within seconds";
	case REJ_GID:
		return "GID: the packets' addresses are not those in the request; something on the way rewrites addresses (NAT)";
	case REJ_MTU: return "path MTU: its interface carries less than ours; give both the same MTU";
	case REJ_CLASS_VERSION: return "class version: it speaks another version of connection management";
	default: return "see IBTA 12.6.7.2 for the reason";
	}
}

/* iWARP: TCP's errno instead of a REJ's reason. */
static void explain_refused_stream(const struct trouble *t, const char *ip)
{
	int err = -t->event.status;

	if (t->event.answered)
		return; /* the program at the other end wants it so */
	if (err == ECONNREFUSED)
		EXPLAIN(err, "rdma_connect: nobody listens at %s on TCP port %u", ip, t->info.remote.port);
	else
		EXPLAIN(err,
			"rdma_connect: %s has ended the connection to its TCP port %u before it answered; perhaps what listens there "
			"does not speak iWARP",
			ip, t->info.remote.port);
}

static void explain_rejected(const struct trouble *t, const char *ip)
{
	int reason = t->event.status;

	if (reason < 0) {
		explain_refused_stream(t, ip);
		return;
	}
	if (reason == REJ_CONSUMER || reason == REJ_VENDOR_OPTION)
		return; /* the program at the other end wants it so */
	if (reason == REJ_SERVICE_ID)
		EXPLAIN(ECONNREFUSED,
			"rdma_connect: nobody listens at %s on port %u of %s (REJ 8); ports of rdma_cm are not those of "
			"TCP (there, `verbena stat --all` shows the listeners of Verbena's programs)",
			ip, t->info.remote.port, space_name(t->info.space));
	else
		EXPLAIN(ECONNREFUSED, "rdma_connect: %s refuses for port %u with REJ %d, %s", ip, t->info.remote.port,
			reason, reason_text(reason));
}

static void explain_unreachable(const struct trouble *t, const char *ip)
{
	unsigned seconds = (unsigned)((t->info.silent_ns + 500000000) / 1000000000);

	if (t->event.status == SIDR_UNSUPPORTED)
		EXPLAIN(ECONNREFUSED, "rdma_connect: nobody listens at %s on port %u of %s (SIDR_REP 1)", ip,
			t->info.remote.port, space_name(t->info.space));
	else if (t->event.status == -ETIMEDOUT && t->info.asked && !t->info.sends)
		EXPLAIN(ETIMEDOUT,
			"rdma_connect: %s does not answer on TCP port %u. Perhaps a firewall drops what goes there", ip,
			t->info.remote.port);
	else if (t->event.status == -ETIMEDOUT && t->info.asked)
		EXPLAIN(ETIMEDOUT,
			"rdma_connect: %s does not answer: the request for port %u was sent to its UDP port %u %u times in "
			"%u s. Perhaps no process there uses Verbena or RDMA, a firewall drops UDP port %u, or the other end "
			"has another VERBENA_PORT",
			ip, t->info.remote.port, t->udp_port, t->info.sends, seconds, t->udp_port);
	else if (t->event.status == -ETIMEDOUT)
		EXPLAIN(ETIMEDOUT,
			"rdma_accept: %s has asked for a connection and does not answer any more: the reply was sent to its "
			"UDP port %u %u times in %u s. Perhaps the process has ended, or a firewall drops what goes there",
			ip, t->udp_port, t->info.sends, seconds);
}

static void explain_event(const struct trouble *t)
{
	char ip[TEXT_BYTES];

	ip_text(&t->info.remote, ip);
	if (t->event.type == CM_REJECTED && t->info.asked)
		explain_rejected(t, ip);
	else if (t->event.type == CM_UNREACHABLE)
		explain_unreachable(t, ip);
}

static void explain_limits(unsigned limits)
{
	if (limits & 1u << CM_LIMIT_BACKLOG)
		EXPLAIN(0,
			"rdma_listen: more requests came than the backlog holds that the program asked for (%d at most); those "
			"beyond are dropped, and come again",
			CM_BACKLOG_MAX);
	if (limits & 1u << CM_LIMIT_EVENTS)
		EXPLAIN(0, "rdma_get_cm_event: %d events of a channel wait, which is the most; requests are dropped",
			CM_EVENTS_MAX);
	if (limits & 1u << CM_LIMIT_HALF_OPEN)
		EXPLAIN(0, "rdma_get_cm_event: %d requests wait for the program, which is the most; others are dropped",
			CM_HALF_OPEN_MAX);
	if (limits & 1u << CM_LIMIT_HALF_OPEN_OF_ONE)
		EXPLAIN(0,
			"rdma_get_cm_event: %d requests from one address wait for the program, which is the most; others are "
			"dropped, and come again",
			CM_HALF_OPEN_MAX_OF_ONE);
	if (limits & 1u << CM_LIMIT_UNANSWERED_OF_ONE)
		EXPLAIN(0,
			"rdma_accept: an address leaves accepted connections without an answer: %d, or %d where all addresses leave "
			"%d; its further requests are dropped",
			CM_UNANSWERED_MAX_OF_ONE, CM_UNANSWERED_FEW_OF_ONE, CM_UNANSWERED_MANY);
	if (limits & 1u << CM_LIMIT_STRANGERS)
		EXPLAIN(0,
			"rdma_accept: %d accepted connections have no answer, as in a flood of forged requests; those of addresses that "
			"have not answered before are dropped the first time that they come",
			CM_UNANSWERED_MANY);
	if (limits & 1u << CM_LIMIT_IDS)
		EXPLAIN(0, "rdma_get_cm_event: this process has %d ids, which is the most; requests are dropped",
			CM_IDS_MAX);
}

void trouble_explain(const struct trouble *t)
{
	char ip[TEXT_BYTES];

	if (t->unmapped)
		EXPLAIN(-t->route_err, "rdma_resolve_addr: VERBENA_MAP's file has no line for the virtual GID %s",
			ip_text(&t->remote, ip));
	else if (t->route_err)
		EXPLAIN(-t->route_err,
			"rdma_resolve_addr: the kernel has no way to %s: %s (`ip route get %s` says more)",
			ip_text(&t->remote, ip), strerror(-t->route_err), ip);
	if (t->err && t->err != -EAGAIN)
		explain_obstacle(t);
	if (t->told)
		explain_event(t);
	if (t->limits)
		explain_limits(t->limits);
	if (t->rocev2_refused)
		EXPLAIN(0,
			"VERBENA_PROTOCOL=veroce: the peer of a queue pair does not answer in veRoCE, and RoCEv2 is forbidden. The peer "
			"may be Linux's rxe, an adapter, or a program with VERBENA_PROTOCOL=rocev2; without VERBENA_PROTOCOL both ends "
			"find what they have in common");
}

int trouble_with_descriptors(int err)
{
	struct rlimit limit = {0};

	getrlimit(RLIMIT_NOFILE, &limit);
	return EXPLAIN(err, "rdma_create_event_channel: no descriptor is left; the limit is %llu (ulimit -n)",
		       (unsigned long long)limit.rlim_cur);
}
