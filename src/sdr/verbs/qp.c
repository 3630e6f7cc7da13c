/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection's life: its transport QPs, their description for the peer, and their way to RTS. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "sdr/verbs/objects.h"

void verbena_sdr_qp_attr_init(struct verbena_sdr_qp_attr *attr)
{
	*attr = (struct verbena_sdr_qp_attr){
		.bitmap_chunk_size_log_bytes = 16,
		.max_log_num_msgs = 7,
		.max_in_flight_log_bytes = 30,
		.send_enable = true,
		.recv_enable = true,
		.generations = 4,
		.msg_id_bits = 10,
		.offset_bits = 18,
		.imm_bits = 4,
		.transport = VERBENA_SDR_UC,
		.send_batch = 8,
		.rtt_ns = 1000000,
	};
}

static uint32_t mtu_bytes(enum ibv_mtu mtu)
{
	return 128u << mtu;
}

/* The smallest path MTU that takes a packet. */
static enum ibv_mtu mtu_for(uint32_t bytes)
{
	enum ibv_mtu mtu = IBV_MTU_256;

	while (mtu < IBV_MTU_4096 && mtu_bytes(mtu) < bytes)
		mtu++;
	return mtu;
}

static bool attr_valid(const struct verbena_sdr_qp_attr *a)
{
	return a->bitmap_chunk_size_log_bytes < 32 && a->max_log_num_msgs < 32 && a->max_in_flight_log_bytes < 64 &&
	       a->max_in_flight_log_bytes >= a->max_log_num_msgs && (a->send_enable || a->recv_enable) &&
	       a->msg_id_bits < 32 && a->offset_bits < 32 && a->imm_bits < 32 && a->transport <= VERBENA_SDR_RC &&
	       a->send_batch >= 1 && a->send_batch <= SEND_BATCH_MAX && a->rtt_ns &&
	       !(a->idle_fill && a->transport == VERBENA_SDR_RC) && !(a->rate_auto && a->rate_limit_mbps);
}

static bool shape_read(const struct verbena_sdr_context *ctx, const struct verbena_sdr_qp_attr *a, struct shape *s)
{
	uint32_t port = mtu_bytes(ctx->port_attr.active_mtu);

	if (!attr_valid(a))
		return false;
	*s = (struct shape){
		.split = {(uint8_t)a->msg_id_bits, (uint8_t)a->offset_bits, (uint8_t)a->imm_bits},
		.mtu = a->mtu ? a->mtu : port,
		.chunk_bytes = UINT32_C(1) << a->bitmap_chunk_size_log_bytes,
		.slots = UINT32_C(1) << a->max_log_num_msgs,
		.generations = a->generations,
		.channels = ctx->channels,
		.message_bytes = UINT64_C(1) << (a->max_in_flight_log_bytes - a->max_log_num_msgs),
	};
	return shape_valid(s) && s->mtu <= port;
}

/* ---- transport QPs */

static uint32_t data_count(const struct verbena_sdr_qp *qp)
{
	return info_qps(&qp->mine);
}

/* Of the i-th data QP (info_qp()). Those for idle fill are the last, one of each generation. */
static bool is_for_fill(const struct verbena_sdr_qp *qp, uint32_t i)
{
	return i >= info_qp(&qp->mine, 0, qp->shape.channels);
}

static uint32_t generation_of(const struct verbena_sdr_qp *qp, uint32_t i)
{
	uint32_t channels = qp->shape.channels;

	return is_for_fill(qp, i) ? i - info_qp(&qp->mine, 0, channels) : i / channels;
}

static struct sdr_worker *channel_worker(const struct verbena_sdr_qp *qp, uint32_t i)
{
	uint32_t channels = qp->shape.channels, channel = is_for_fill(qp, i) ? channels : i % channels;

	return &qp->ctx->workers[channel % qp->ctx->worker_count];
}

/* 0 or an errno. */
static int to_init(const struct verbena_sdr_qp *qp, struct ibv_qp *to)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = qp->ctx->port,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};

	return ibv_modify_qp(to, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static struct ibv_qp *transport_make(struct verbena_sdr_qp *qp, struct sdr_worker *w, struct ibv_srq *srq,
				     uint32_t sends)
{
	struct ibv_qp_init_attr init = {
		.send_cq = qp->send_cq,
		.recv_cq = w->cq,
		.srq = srq,
		.cap = {.max_send_wr = sends, .max_send_sge = 1},
		.qp_type = qp->mine.transport == VERBENA_SDR_RC && srq == w->data ? IBV_QPT_RC : IBV_QPT_UC,
	};
	struct ibv_qp *to = ibv_create_qp(qp->ctx->pd, &init);
	int err = to ? to_init(qp, to) : 0;

	if (!err)
		return to;
	ibv_destroy_qp(to);
	return sdr_fail_null(err);
}

static int transports_make(struct verbena_sdr_qp *qp)
{
	bool sends = qp->mine.roles & INFO_SENDS;

	qp->control = transport_make(qp, qp->owner, qp->owner->control, CONTROL_SENDS);
	if (!qp->control)
		return -1;
	for (uint32_t i = 0; i < data_count(qp); i++) {
		struct sdr_worker *w = channel_worker(qp, i);

		qp->data[i] = transport_make(qp, w, w->data, sends ? CHANNEL_DEPTH : 1);
		if (!qp->data[i])
			return -1;
	}
	return 0;
}

static void to_rtr_attr(const struct verbena_sdr_qp *qp, uint32_t qpn, struct ibv_qp_attr *attr)
{
	const struct verbena_sdr_context *ctx = qp->ctx;

	*attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = qp->path_mtu,
		.dest_qp_num = qpn,
		.rq_psn = qp->peer.tag & 0xffffff,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = {.dlid = qp->peer.lid,
			    .port_num = ctx->port,
			    .is_global = ctx->port_attr.link_layer == IBV_LINK_LAYER_ETHERNET,
			    .grh = {.sgid_index = ctx->gid_index, .hop_limit = 64}},
	};
	memcpy(attr->ah_attr.grh.dgid.raw, qp->peer.gid, sizeof(qp->peer.gid));
}

/* 0 or an errno. */
static int transport_connect(const struct verbena_sdr_qp *qp, struct ibv_qp *to, uint32_t qpn, uint8_t traffic_class)
{
	bool rc = to->qp_type == IBV_QPT_RC;
	int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	int rts = IBV_QP_STATE | IBV_QP_SQ_PSN;
	struct ibv_qp_attr attr;
	int err;

	if (rc) {
		rtr |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
		rts |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	}
	to_rtr_attr(qp, qpn, &attr);
	attr.ah_attr.grh.traffic_class = traffic_class;
	err = ibv_modify_qp(to, &attr, rtr);
	if (err)
		return err;
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.sq_psn = qp->mine.tag & 0xffffff,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};
	return ibv_modify_qp(to, &attr, rts);
}

static int transports_connect(const struct verbena_sdr_qp *qp)
{
	int err = transport_connect(qp, qp->control, qp->peer.control_qpn, 0);

	for (uint32_t i = 0; !err && i < data_count(qp); i++)
		err = transport_connect(qp, qp->data[i], info_qpn(&qp->peer, i),
					is_for_fill(qp, i) ? TRAFFIC_CLASS_LOW : 0);
	return err;
}

/* After a failure some are in RTS or RTR and others are not: all go back to INIT, so that the program
 * may try again with another description. */
static void transports_disconnect(const struct verbena_sdr_qp *qp)
{
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};

	for (uint32_t i = 0; i <= data_count(qp); i++) {
		struct ibv_qp *to = i < data_count(qp) ? qp->data[i] : qp->control;

		ibv_modify_qp(to, &reset, IBV_QP_STATE);
		to_init(qp, to);
	}
}

/* ---- what a queue pair is made of */

static int sending_make(struct verbena_sdr_qp *qp)
{
	const size_t bytes = (size_t)CONTROL_SENDS * CONTROL_BYTES;

	bool sends = qp->mine.roles & INFO_SENDS;
	uint32_t lanes = qp->shape.channels + qp->mine.fills;

	/* Each list of packets and each control message under way has one completion. */
	qp->send_cq = ibv_create_cq(qp->ctx->ibv, (sends ? (int)(lanes * CHANNEL_DEPTH) : 0) + CONTROL_SENDS, NULL,
				    qp->owner->channel, 0);
	qp->control_memory = alloc_get(&sdr_heap, bytes);
	if (sends)
		qp->lanes = alloc_get(&sdr_heap, lanes * sizeof(*qp->lanes));
	if (!qp->send_cq || !qp->control_memory || (sends && !qp->lanes))
		return -1;
	qp->control_mr = ibv_reg_mr(qp->ctx->pd, qp->control_memory, bytes, 0);
	return qp->control_mr ? 0 : -1;
}

static int ends_make(struct verbena_sdr_qp *qp, uint64_t rtt_ns)
{
	uint64_t interval_ns = rtt_ns / 4 > 1000000 ? rtt_ns / 4 : 1000000;
	int err = qp->mine.roles & INFO_SENDS ? sender_init(&qp->sender, &qp->shape, &sdr_heap) : 0;

	if (!err)
		err = receiver_init(&qp->receiver, &qp->shape, &sdr_heap);
	if (!err)
		err = grants_init(&qp->grants, qp->shape.slots, interval_ns, &sdr_heap);
	qp->counts = calloc(qp->ctx->worker_count, sizeof(*qp->counts));
	qp->memory = calloc(qp->shape.slots, sizeof(*qp->memory));
	qp->data = calloc(data_count(qp), sizeof(struct ibv_qp *));
	errno = -err;
	if (err || !qp->counts || !qp->memory || !qp->data)
		return -1;
	return reliable_make(qp);
}

static void transports_destroy(struct verbena_sdr_qp *qp)
{
	for (uint32_t i = 0; qp->data && i < data_count(qp); i++) {
		if (qp->data[i])
			ibv_destroy_qp(qp->data[i]);
	}
	if (qp->control)
		ibv_destroy_qp(qp->control);
	if (qp->send_cq)
		ibv_destroy_cq(qp->send_cq);
}

static void windows_close(struct verbena_sdr_qp *qp)
{
	for (uint32_t i = 0; qp->memory && i < qp->shape.slots; i++) {
		if (!qp->memory[i].window)
			continue;
		ibv_dereg_mr(qp->memory[i].window);
		memory_release(qp->memory[i].region);
	}
}

static void qp_free(struct verbena_sdr_qp *qp)
{
	int err = errno;

	transports_destroy(qp);
	windows_close(qp);
	if (qp->control_mr)
		ibv_dereg_mr(qp->control_mr);
	reliable_free(qp);
	if (qp->sender.alloc)
		sender_free(&qp->sender);
	receiver_free(&qp->receiver);
	grants_free(&qp->grants);
	free(qp->control_memory);
	free(qp->lanes);
	free(qp->counts);
	free(qp->memory);
	free(qp->data);
	pthread_mutex_destroy(&qp->lock);
	free(qp);
	errno = err;
}

static void describe(struct verbena_sdr_qp *qp, const struct verbena_sdr_qp_attr *attr)
{
	qp->mine = (struct info){
		.shape = qp->shape,
		.roles = (uint8_t)((attr->send_enable ? INFO_SENDS : 0) | (attr->recv_enable ? INFO_RECEIVES : 0)),
		.transport = (uint8_t)attr->transport,
		.fills = attr->idle_fill,
		.lid = qp->ctx->port_attr.lid,
	};
	memcpy(qp->mine.gid, qp->ctx->gid.raw, sizeof(qp->mine.gid));
	qp->path_mtu = mtu_for(qp->shape.mtu);
	qp->batch = attr->send_batch;
	auto_rate_init(&qp->rate, attr->rate_auto, qp->shape.mtu, RATE_SLACK_NS, sdr_now_ns());
	qp->rate_bps = attr->rate_auto ? auto_rate_bps(&qp->rate) : (uint64_t)attr->rate_limit_mbps * 1000000;
}

/* Makes the queue pair known to the workers, whose gates are closed. */
static int publish(struct verbena_sdr_qp *qp)
{
	struct verbena_sdr_context *ctx = qp->ctx;

	if (ctx->qp_count == ctx->qps_max)
		return ENOSPC;
	if (routes_reserve(ctx, data_count(qp) + 1))
		return ENOMEM;
	for (uint32_t i = 0; i < data_count(qp); i++)
		route_add(ctx, (struct route){.qpn = qp->data[i]->qp_num,
					      .generation = (uint16_t)generation_of(qp, i),
					      .qp = qp});
	route_add(ctx, (struct route){.qpn = qp->control->qp_num, .control = true, .qp = qp});
	ctx->qps[ctx->qp_count++] = qp;
	return 0;
}

struct verbena_sdr_qp *verbena_sdr_qp_create(struct verbena_sdr_context *ctx, const struct verbena_sdr_qp_attr *attr)
{
	struct verbena_sdr_qp_attr defaults;
	struct verbena_sdr_qp *qp;
	struct shape shape;
	int err;

	verbena_sdr_qp_attr_init(&defaults);
	attr = attr ? attr : &defaults;
	if (!ctx || !shape_read(ctx, attr, &shape))
		return sdr_fail_null(EINVAL);
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	pthread_mutex_init(&qp->lock, NULL);
	qp->ctx = ctx;
	qp->shape = shape;
	qp->owner = &ctx->workers[atomic_fetch_add(&ctx->made, 1) % ctx->worker_count];
	describe(qp, attr);
	if (ends_make(qp, attr->rtt_ns) || sending_make(qp) || transports_make(qp) ||
	    getrandom(&qp->mine.tag, sizeof(qp->mine.tag), 0) != sizeof(qp->mine.tag)) {
		err = errno;
	} else {
		qp->mine.control_qpn = qp->control->qp_num;
		gates_close(ctx);
		err = publish(qp);
		gates_open(ctx);
	}
	if (!err)
		return qp;
	qp_free(qp);
	return sdr_fail_null(err);
}

/* Packets have taken receives out of the shared queues. These come back as completions, which a device
 * may drop when the QP is destroyed. So the QPs stop receiving first, then all completions are taken,
 * and only then the QPs are destroyed. */
static void drain(struct verbena_sdr_qp *qp)
{
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};

	ibv_modify_qp(qp->control, &err, IBV_QP_STATE);
	for (uint32_t i = 0; i < data_count(qp); i++)
		ibv_modify_qp(qp->data[i], &err, IBV_QP_STATE);
	for (uint32_t w = 0; w < qp->ctx->worker_count; w++) {
		while (worker_take_arrived(&qp->ctx->workers[w], sdr_now_ns()))
			;
	}
}

static void unpublish(struct verbena_sdr_qp *qp)
{
	struct verbena_sdr_context *ctx = qp->ctx;

	routes_remove(ctx, qp);
	for (uint32_t i = 0; i < ctx->qp_count; i++) {
		if (ctx->qps[i] == qp)
			ctx->qps[i] = ctx->qps[--ctx->qp_count];
	}
}

int verbena_sdr_qp_destroy(struct verbena_sdr_qp *qp)
{
	if (!qp)
		return sdr_fail(EINVAL);
	gates_close(qp->ctx);
	drain(qp);
	unpublish(qp);
	gates_open(qp->ctx);
	qp_free(qp);
	return VERBENA_SDR_SUCCESS;
}

/* ---- descriptions and connecting */

int verbena_sdr_qp_info_size_get(const struct verbena_sdr_qp *qp, size_t *size)
{
	if (!qp || !size)
		return sdr_fail(EINVAL);
	*size = info_len(&qp->mine);
	return VERBENA_SDR_SUCCESS;
}

int verbena_sdr_qp_info_get(const struct verbena_sdr_qp *qp, void *info, size_t size)
{
	if (!qp || !info || size < info_len(&qp->mine))
		return sdr_fail(EINVAL);
	info_encode(info, &qp->mine);
	for (uint32_t i = 0; i < data_count(qp); i++)
		info_put_qpn(info, i, qp->data[i]->qp_num);
	return VERBENA_SDR_SUCCESS;
}

/* 0 or an errno; the lock is held. */
static int connect_with(struct verbena_sdr_qp *qp, const struct info *peer)
{
	int err;

	if (qp->connected)
		return EISCONN;
	if (!info_match(&qp->mine, peer))
		return EPROTO;
	qp->peer = *peer;
	err = transports_connect(qp);
	if (err)
		transports_disconnect(qp);
	qp->peer.qpns = NULL;
	qp->connected = !err;
	return err;
}

int verbena_sdr_qp_connect(struct verbena_sdr_qp *qp, const void *info, size_t size)
{
	struct info peer;
	int err;

	if (!qp || !info || !info_decode(&peer, info, size))
		return sdr_fail(EINVAL);
	pthread_mutex_lock(&qp->lock);
	err = connect_with(qp, &peer);
	pthread_mutex_unlock(&qp->lock);
	return err ? sdr_fail(err) : VERBENA_SDR_SUCCESS;
}

/* Workers go on counting meanwhile, so the sum may lag behind. */
int verbena_sdr_qp_stats_get(const struct verbena_sdr_qp *qp, struct verbena_sdr_stats *stats)
{
	uint64_t sum[SDR_VERDICTS] = {0};

	if (!qp || !stats)
		return sdr_fail(EINVAL);
	for (uint32_t w = 0; w < qp->ctx->worker_count; w++) {
		for (int v = 0; v < SDR_VERDICTS; v++)
			sum[v] += __atomic_load_n(&qp->counts[w].verdicts[v], __ATOMIC_RELAXED);
	}
	*stats = (struct verbena_sdr_stats){
		.packets = sum[SDR_TAKEN] + sum[SDR_CHUNK],
		.chunks = sum[SDR_CHUNK],
		.imm_only = sum[SDR_IMM_ONLY],
		.duplicates = sum[SDR_DUP],
		.dropped_id = sum[SDR_DROP_ID],
		.dropped_late = sum[SDR_DROP_LATE],
		.dropped_offset = sum[SDR_DROP_OFFSET],
		.dropped_length = sum[SDR_DROP_LEN],
		.dropped_control = qp->dropped_control,
		.sent = qp->sent,
		.cts_sent = qp->grants.sent,
		.cts_repeated = qp->grants.repeated,
		.retries = qp->retries,
		.ec_pieces = qp->reliable.pieces,
		.ec_lost = qp->reliable.lost,
		.ec_recovered = qp->reliable.recovered,
		.fills = qp->reliable.fills,
		.resent = qp->reliable.resent,
		.rate_mbps = (__atomic_load_n(&qp->rate_bps, __ATOMIC_RELAXED) + 999999) / 1000000,
	};
	return VERBENA_SDR_SUCCESS;
}
