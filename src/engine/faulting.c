/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deeds are done by whoever does a turn, with the lock; those of the link and of GIDs by the engine's thread, which alone
 * writes the port's table. What packets feel of them holds from the moment when the fault engine names them.
 */
#include "engine/faulting.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/port.h"
#include "io/spoil.h"
#include "space/space.h"

atomic_bool engine_faulty;

enum { COMMAND_BYTES = 256, ANSWER_BYTES = 768 };

static int make_engine(struct engine *e)
{
	e->loop.faults = faults_new(&space_alloc, &e->loop.page->faults, e->device, e->opened_ns);
	return e->loop.faults ? 0 : -ENOMEM;
}

/* From now on verbs tell of QPs, requests and calls. */
static void see_qps(struct engine *e)
{
	atomic_store(&engine_faulty, true);
	e->knows_qps = true;
}

/* Adds the rules of the settings. `limit` becomes the number of packets that may be held back. */
static int add_settings(struct engine *e, struct fault_script *s, char *why, size_t why_bytes)
{
	struct impair_config impair;
	int rc = 0;

	if (e->config.faults[0]) {
		rc = config_script(&e->config, s, why, why_bytes);
		if (!rc)
			rc = faults_add(e->loop.faults, s, env_now_ns(e->env));
		if (!rc)
			see_qps(e);
	}
	if (rc || !e->config.impair[0])
		return rc;
	rc = impair_parse(e->config.impair, &impair, why, why_bytes);
	if (rc)
		return rc;
	fault_script_init(s);
	fault_script_impair(s, &impair);
	e->hold_max = impair.limit;
	rc = faults_add(e->loop.faults, s, env_now_ns(e->env));
	if (rc == -ENOSPC)
		snprintf(why, why_bytes, "VERBENA_FAULTS and VERBENA_IMPAIR have more than %d rules together",
			 FAULT_RULES_MAX);
	return rc;
}

int faulting_open(struct engine *e, char *why, size_t why_bytes)
{
	struct fault_script *s;
	int rc;

	e->hold_max = FAULT_LIMIT_DEFAULT;
	if (!e->config.faults[0] && !e->config.impair[0])
		return 0;
	snprintf(why, why_bytes, "out of memory");
	s = space_get(sizeof(*s));
	rc = s ? make_engine(e) : -ENOMEM;
	if (!rc)
		rc = add_settings(e, s, why, why_bytes);
	space_put(s, sizeof(*s));
	return rc;
}

static uint64_t now_of(const void *engine)
{
	return engine_now_ns(engine);
}

int faulting_wrap(struct engine *e, struct io **io, char *why, size_t why_bytes)
{
	struct spoil_config c = {.faults = e->loop.faults,
				 .limit = e->hold_max,
				 .streams = e->config.transport.protocol == PROTOCOL_IWARP,
				 .clock = {now_of, e}};
	int rc = c.faults ? spoil_open(io, *io, &c, &e->loop.page->io) : 0;

	if (rc)
		snprintf(why, why_bytes, "out of memory");
	else
		e->wrapped = c.faults;
	return rc;
}

/* ---- deeds ---- */

static bool is_of_port(enum fault_action action)
{
	return action == FAULT_LINK_DOWN || action == FAULT_LINK_UP || action == FAULT_GID_MOVE ||
	       action == FAULT_GID_REMOVE || action == FAULT_GID_ADD;
}

static bool has_room(const struct engine *e)
{
	return atomic_load_explicit(&e->port_deeds.count, memory_order_relaxed) < PORT_DEEDS_MAX;
}

static void hand_to_thread(struct engine *e, const struct fault_deed *d)
{
	unsigned n = atomic_load_explicit(&e->port_deeds.count, memory_order_relaxed);

	e->port_deeds.deeds[n] = *d;
	atomic_store_explicit(&e->port_deeds.count, n + 1, memory_order_release);
	e->env->wake(e->env);
}

static enum fault_outcome do_to_qp(struct engine *e, const struct fault_deed *d, uint64_t now_ns)
{
	struct nic *nic = e->loop.nic;
	struct qp *qp = nic_qp_find(nic, d->qpn);

	if (!qp)
		return FAULT_NO_QP;
	switch (d->action) {
	case FAULT_COMPLETE:
		if (nic_qp_fail(nic, qp, (enum wc_status)d->rule->value, now_ns))
			return FAULT_DONE;
		faults_wait_wr(e->loop.faults, d);
		return FAULT_WAITS;
	case FAULT_QP_ERROR:
		if (qp_state(qp) == QPS_ERR)
			return FAULT_ALREADY;
		nic_qp_break(nic, qp, now_ns);
		return FAULT_DONE;
	case FAULT_QP_OVERFLOW: return nic_qp_overflow(nic, qp) ? FAULT_DONE : FAULT_ALREADY;
	case FAULT_QP_HANG: nic_qp_hang(nic, qp, !d->undo, now_ns); return FAULT_DONE;
	default: return FAULT_DONE;
	}
}

static enum fault_outcome do_one(struct engine *e, const struct fault_deed *d, uint64_t now_ns)
{
	if (d->qp)
		return do_to_qp(e, d, now_ns);
	if (d->action == FAULT_DEVICE_FATAL && !d->undo) {
		nic_break_all(e->loop.nic, now_ns);
		e->loop.sink->port_event(e, EVENT_DEVICE_FATAL);
	}
	return FAULT_DONE;
}

/*
 * Bytes of a stream stay in its socket while the link is down or the device hangs, as datagrams do not, which are taken and
 * lost. To be woken by them would be to spin.
 */
static void watch_or_not(struct engine *e)
{
	bool deaf = e->loop.streams && faults_stops(e->loop.faults);
	int fds[IO_FDS_MAX];
	size_t n;

	if (deaf == e->deaf)
		return;
	e->deaf = deaf;
	n = io_fds(e->loop.io, fds, IO_FDS_MAX);
	for (size_t i = 0; i < n; i++)
		e->env->watch(e->env, fds[i], !deaf);
}

void faulting_serve(struct engine *e, uint64_t now_ns)
{
	struct faults *f = e->loop.faults;
	struct fault_deed d;

	if (faults_due_ns(f) > now_ns)
		return;
	/* While the thread is behind, what is due stays due. */
	while (has_room(e) && faults_next(f, now_ns, &d)) {
		if (is_of_port(d.action))
			hand_to_thread(e, &d);
		else
			faults_done(f, &d, do_one(e, &d, now_ns), now_ns);
	}
	watch_or_not(e);
}

static enum fault_outcome do_to_port(struct engine *e, const struct fault_deed *d)
{
	switch (d->action) {
	case FAULT_LINK_DOWN: return port_unplug(e, !d->undo) ? FAULT_DONE : FAULT_ALREADY;
	case FAULT_LINK_UP: return port_unplug(e, false) ? FAULT_DONE : FAULT_ALREADY;
	case FAULT_GID_REMOVE: return port_hide_gid(e, d->rule->gid, !d->undo) ? FAULT_DONE : FAULT_NO_GID;
	case FAULT_GID_ADD: return port_hide_gid(e, d->rule->gid, false) ? FAULT_DONE : FAULT_NO_GID;
	default: return port_move_gid(e, d->rule->gid) ? FAULT_DONE : FAULT_NO_GID;
	}
}

bool faulting_serve_port(struct engine *e)
{
	struct port_deeds *p = &e->port_deeds;
	unsigned n;

	if (!atomic_load_explicit(&p->count, memory_order_acquire))
		return false;
	lock_wait(&e->lock);
	n = atomic_load_explicit(&p->count, memory_order_relaxed);
	for (unsigned i = 0; i < n && !e->closed; i++)
		faults_done(e->loop.faults, &p->deeds[i], do_to_port(e, &p->deeds[i]), env_now_ns(e->env));
	atomic_store_explicit(&p->count, 0, memory_order_relaxed);
	engine_leave(e);
	return true;
}

/* ---- what verbs ask ---- */

static bool is_creating(enum fault_call call)
{
	return call == FAULT_CALL_alloc_pd || call == FAULT_CALL_reg_mr || call == FAULT_CALL_alloc_mw ||
	       call == FAULT_CALL_create_cq || call == FAULT_CALL_create_qp || call == FAULT_CALL_create_srq ||
	       call == FAULT_CALL_create_ah;
}

int engine_fault_call(struct engine *e, enum fault_call call)
{
	uint64_t now_ns = env_now_ns(e->env);
	int err = 0;

	engine_lock_quietly(e);
	if (e->loop.faults) {
		err = faults_call(e->loop.faults, call, now_ns);
		if (!err && faults_is_dead(e->loop.faults) && is_creating(call))
			err = EIO;
	}
	engine_unlock(e);
	return err;
}

struct fault_wr engine_fault_wr(struct engine *e, const struct qp *qp)
{
	struct fault_wr answer = {0};

	engine_lock_quietly(e);
	if (e->loop.faults)
		answer = faults_wr(e->loop.faults, qp_number(qp), env_now_ns(e->env));
	engine_unlock(e);
	return answer;
}

uint32_t engine_number_qp(struct engine *e)
{
	return ++e->qps_made;
}

void engine_fault_qp_made(struct engine *e, const struct qp *qp, uint32_t number)
{
	if (e->knows_qps)
		faults_qp_made(e->loop.faults, number, qp_number(qp));
}

void engine_fault_qp_peer(struct engine *e, const struct qp *qp)
{
	struct qp_attr a;
	struct qp_init init;

	if (!e->knows_qps)
		return;
	nic_qp_query(e->loop.nic, qp, &a, &init);
	/* Packets have the address of the wire. */
	if (a.av.is_global && engine_hide_address(e, a.av.dgid))
		faults_qp_peer(e->loop.faults, qp_number(qp), a.av.dgid, a.dest_qpn);
}

void engine_fault_qp_gone(struct engine *e, const struct qp *qp)
{
	if (e->knows_qps)
		faults_qp_gone(e->loop.faults, qp_number(qp));
}

/* ---- commands of tools ---- */

/* The first rules come after the device has begun: the wrapper is put around all that is there. */
static int begin(struct engine *e, char *why, size_t why_bytes)
{
	int rc = e->loop.faults ? 0 : make_engine(e);

	if (!rc && !e->wrapped)
		rc = faulting_wrap(e, &e->loop.io, why, why_bytes);
	if (rc || e->knows_qps)
		return rc;
	see_qps(e);
	if (e->loop.sink->each_qp)
		e->loop.sink->each_qp(e);
	return 0;
}

/* Every device of a process gets the command; one that it does not name stays as it is. */
static bool concerns(const struct engine *e, const struct fault_script *s)
{
	bool does = !s->count;

	for (uint32_t i = 0; i < s->count; i++)
		does |= s->rules[i].device < 0 || s->rules[i].device == (int)e->device;
	return does;
}

static int obey(struct engine *e, const char *command, struct fault_script *s, char *why, size_t why_bytes)
{
	const struct fault_host host = {.devices = e->config.devices.count, .iwarp = e->config.devices.iwarp};
	int rc;

	fault_script_init(s);
	rc = fault_script_read(s, "command", command, strlen(command), true, &host, why, why_bytes);
	if (rc || !concerns(e, s))
		return rc;
	rc = begin(e, why, why_bytes);
	if (!rc)
		rc = faults_add(e->loop.faults, s, env_now_ns(e->env));
	if (rc == -ENOSPC)
		snprintf(why, why_bytes, "command: there are %d rules already, and no more are allowed",
			 FAULT_RULES_MAX);
	if (!rc && faults_picks_out(e->loop.faults))
		nic_set_train_max(e->loop.nic, 1);
	return rc;
}

void faulting_commands(struct engine *e, uint64_t now_ns)
{
	char command[COMMAND_BYTES], why[ANSWER_BYTES];
	struct fault_script *s;
	int rc;

	if (!e->group || !group_next_command(e->group, GROUP_COMMAND_FAULT, command, sizeof(command)))
		return;
	snprintf(why, sizeof(why), "command: out of memory");
	s = space_get(sizeof(*s));
	rc = s ? obey(e, command, s, why, sizeof(why)) : -ENOMEM;
	space_put(s, sizeof(*s));
	group_answer_command(e->group, rc ? why : "");
}
