/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A worker's pass, and the thread that makes one after the other. A worker that finds nothing to do
 * goes on looking for a while, because what comes next mostly comes soon; then it asks to be woken
 * by completions and sleeps.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "sdr/verbs/objects.h"

enum { LOOK_NS = 50000, PACE_NS = 500000, PACE_PACKETS = 64 };

/* ---- gates */

/* `changing` keeps a worker that is always busy from taking its gate again before we have had it.
 */
void gates_close(struct verbena_sdr_context *ctx)
{
	atomic_fetch_add(&ctx->changing, 1);
	for (uint32_t i = 0; i < ctx->worker_count; i++)
		pthread_mutex_lock(&ctx->workers[i].gate);
	atomic_fetch_sub(&ctx->changing, 1);
}

void gates_open(struct verbena_sdr_context *ctx)
{
	for (uint32_t i = 0; i < ctx->worker_count; i++)
		pthread_mutex_unlock(&ctx->workers[i].gate);
}

/* ---- what comes */

static void leave_slot(struct sdr_worker *w)
{
	if (!w->inside)
		return;
	worker_rest(&w->inside->counts[w->index]);
	if (w->inside->owner != w)
		worker_wake(w->inside->owner); /* what has come may have to be acknowledged */
	w->inside = NULL;
}

static void take_packet(struct sdr_worker *w, const struct route *r, const struct ibv_wc *wc)
{
	if (w->inside != r->qp)
		leave_slot(w);
	w->inside = r->qp;
	worker_note(&r->qp->counts[w->index], &r->qp->receiver, r->generation, be32toh(wc->imm_data), wc->byte_len);
}

int control_repost(struct sdr_worker *w, uint32_t i)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)w->control_memory + (uintptr_t)i * CONTROL_BYTES,
		.length = CONTROL_BYTES,
		.lkey = w->control_mr->lkey,
	};
	struct ibv_recv_wr *bad, wr = {.wr_id = i + 1, .sg_list = &sge, .num_sge = 1};

	return ibv_post_srq_recv(w->control, &wr, &bad);
}

/* Receives for packets have the wr_id 0; those for control messages one more than the number of
 * their memory. */
static void take_one(struct sdr_worker *w, const struct ibv_wc *wc, uint64_t now_ns)
{
	const struct route *r = route_find(w->ctx, wc->qp_num);
	uint32_t at = (uint32_t)wc->wr_id - 1;

	if (wc->wr_id) {
		leave_slot(w); /* before a lock is taken: whoever has it may wait for us to leave */
		if (wc->status == IBV_WC_SUCCESS && r && r->control)
			control_take(r->qp, w->control_memory + (size_t)at * CONTROL_BYTES, wc->byte_len, now_ns);
		control_repost(w, at);
		return;
	}
	if (wc->status == IBV_WC_SUCCESS && wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM && r && !r->control)
		take_packet(w, r, wc);
}

static void repost_data(struct sdr_worker *w, uint32_t count)
{
	struct ibv_recv_wr *bad, wr[POLL_BATCH] = {0};

	for (uint32_t i = 0; i + 1 < count; i++)
		wr[i].next = &wr[i + 1];
	if (count)
		ibv_post_srq_recv(w->data, wr, &bad);
}

uint32_t worker_take_arrived(struct sdr_worker *w, uint64_t now_ns)
{
	struct ibv_wc wc[POLL_BATCH];
	int n = ibv_poll_cq(w->cq, POLL_BATCH, wc);
	uint32_t data = 0;

	for (int i = 0; i < n; i++) {
		take_one(w, &wc[i], now_ns);
		data += !wc[i].wr_id;
	}
	leave_slot(w);
	repost_data(w, data);
	return n > 0 ? (uint32_t)n : 0;
}

/* ---- what goes */

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* What the pace did not allow yet is sent some packets at a time, as waking for each costs more than it. A window that is
 * full opens when a COUNT comes, or a little by itself. */
static uint64_t pace_due_ns(const struct verbena_sdr_qp *qp, uint64_t now_ns)
{
	uint64_t rest_ns;

	if (sender_idle(&qp->sender) || !qp->rate_bps)
		return UINT64_MAX;
	rest_ns = UINT64_C(8000000000) * PACE_PACKETS * qp->shape.mtu / qp->rate_bps;
	rest_ns = rest_ns < PACE_NS ? rest_ns : PACE_NS;
	return qp->pace_ns > now_ns + rest_ns ? qp->pace_ns : now_ns + rest_ns;
}

static void ping_by_itself(struct verbena_sdr_qp *qp, uint64_t now_ns, uint64_t *due_ns)
{
	if (auto_rate_due(&qp->rate) <= now_ns)
		control_ping(qp, now_ns);
	*due_ns = earlier(*due_ns, auto_rate_due(&qp->rate));
}

static uint32_t serve(struct verbena_sdr_qp *qp, uint64_t now_ns, uint64_t *due_ns)
{
	uint32_t done = 0;

	pthread_mutex_lock(&qp->lock);
	if (qp->connected) {
		if (qp->unreturned)
			done = send_collect(qp);
		done += reliable_serve(qp, now_ns, due_ns);
		done += send_pump(qp, now_ns);
		if (reliable_fill(qp, now_ns, due_ns))
			done += send_pump(qp, now_ns);
		if (grants_due(&qp->grants) <= now_ns)
			control_tell_grants(qp, now_ns);
		*due_ns = earlier(*due_ns, grants_due(&qp->grants));
		*due_ns = earlier(*due_ns, pace_due_ns(qp, now_ns));
		ping_by_itself(qp, now_ns, due_ns);
	}
	pthread_mutex_unlock(&qp->lock);
	return done;
}

uint32_t worker_pass(struct sdr_worker *w, uint64_t *due_ns)
{
	uint64_t now_ns = sdr_now_ns();
	uint32_t done = worker_take_arrived(w, now_ns);

	for (uint32_t i = 0; i < w->ctx->qp_count; i++) {
		if (w->ctx->qps[i]->owner == w)
			done += serve(w->ctx->qps[i], now_ns, due_ns);
	}
	return done;
}

uint32_t verbena_sdr_progress(struct verbena_sdr_context *ctx)
{
	uint64_t due_ns = UINT64_MAX;
	uint32_t done;

	if (!ctx || ctx->threads)
		return 0;
	pthread_mutex_lock(&ctx->workers[0].gate);
	atomic_store(&ctx->workers[0].asleep, false);
	done = worker_pass(&ctx->workers[0], &due_ns);
	pthread_mutex_unlock(&ctx->workers[0].gate);
	return done;
}

/* ---- threads */

void worker_wake(struct sdr_worker *w)
{
	uint64_t one = 1;

	if (atomic_load(&w->asleep))
		(void)!write(w->wake_fd, &one, sizeof(one));
}

/* Asks for events of what comes, and of sends that are done where more waits to be sent. */
static void ask_for_events(struct sdr_worker *w)
{
	ibv_req_notify_cq(w->cq, 0);
	for (uint32_t i = 0; i < w->ctx->qp_count; i++) {
		struct verbena_sdr_qp *qp = w->ctx->qps[i];

		pthread_mutex_lock(&qp->lock);
		if (qp->owner == w && (!sender_idle(&qp->sender) || qp->reliable.two))
			ibv_req_notify_cq(qp->send_cq, 0);
		pthread_mutex_unlock(&qp->lock);
	}
}

static void take_events(struct sdr_worker *w)
{
	struct ibv_cq *cq;
	uint64_t n;
	void *context;

	(void)!read(w->wake_fd, &n, sizeof(n));
	while (!ibv_get_cq_event(w->channel, &cq, &context))
		ibv_ack_cq_events(cq, 1);
}

void worker_ask(struct sdr_worker *w)
{
	take_events(w);
	ask_for_events(w);
}

static void sleep_until(struct sdr_worker *w, uint64_t due_ns)
{
	struct pollfd fds[2] = {{.fd = w->channel->fd, .events = POLLIN}, {.fd = w->wake_fd, .events = POLLIN}};
	uint64_t now_ns = sdr_now_ns(), left = due_ns > now_ns ? due_ns - now_ns : 0;
	struct timespec ts = {(time_t)(left / 1000000000u), (long)(left % 1000000000u)};

	ppoll(fds, 2, due_ns == UINT64_MAX ? NULL : &ts, NULL);
}

/* One pass. Before a sleep the worker asks for events first, so that a completion between the pass and
 * the sleep wakes it. */
static uint32_t pass(struct sdr_worker *w, bool before_sleep, uint64_t *due_ns)
{
	uint32_t done;

	while (atomic_load(&w->ctx->changing))
		sched_yield();
	pthread_mutex_lock(&w->gate);
	if (before_sleep)
		worker_ask(w);
	done = worker_pass(w, due_ns);
	pthread_mutex_unlock(&w->gate);
	return done;
}

static void *worker_run(void *arg)
{
	struct sdr_worker *w = arg;
	uint64_t busy_ns = sdr_now_ns();

	while (!atomic_load(&w->ctx->stopping)) {
		uint64_t due_ns = UINT64_MAX;

		if (pass(w, false, &due_ns)) {
			events_tell(w->ctx);
			busy_ns = sdr_now_ns();
			continue;
		}
		if (sdr_now_ns() - busy_ns < LOOK_NS)
			continue;
		atomic_store(&w->asleep, true);
		due_ns = UINT64_MAX;
		if (!pass(w, true, &due_ns) && !atomic_load(&w->ctx->stopping))
			sleep_until(w, due_ns);
		atomic_store(&w->asleep, false);
		events_tell(w->ctx);
	}
	return NULL;
}

static int worker_start(struct sdr_worker *w)
{
	sigset_t all, before;
	int err;

	fcntl(w->channel->fd, F_SETFL, fcntl(w->channel->fd, F_GETFL) | O_NONBLOCK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the program's threads' */
	err = pthread_create(&w->thread, NULL, worker_run, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

static void workers_join(struct verbena_sdr_context *ctx, uint32_t count)
{
	uint64_t one = 1;

	atomic_store(&ctx->stopping, true);
	for (uint32_t i = 0; i < count; i++) {
		(void)!write(ctx->workers[i].wake_fd, &one, sizeof(one));
		pthread_join(ctx->workers[i].thread, NULL);
	}
}

int workers_start(struct verbena_sdr_context *ctx)
{
	for (uint32_t i = 0; i < ctx->worker_count; i++) {
		int err = worker_start(&ctx->workers[i]);

		if (err) {
			workers_join(ctx, i);
			errno = err;
			return -1;
		}
	}
	return 0;
}

void workers_stop(struct verbena_sdr_context *ctx)
{
	if (ctx->threads)
		workers_join(ctx, ctx->worker_count);
}
