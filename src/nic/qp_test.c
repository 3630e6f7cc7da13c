/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "nic/nic.h"
#include "nic/state.h"
#include "support/test.h"

/* The allocation that fails, counted from 0; -1: none does. */
static int to_fail = -1;

static void *get(void *ctx, size_t bytes)
{
	void *p;

	if (!to_fail--)
		return NULL;
	p = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
	return p ? memset(p, 0, bytes) : NULL;
}

static void put(void *ctx, void *p, size_t bytes)
{
	free(p);
}

struct fixture {
	struct nic *nic;
	struct pd *pd;
	struct cq *cq;
	struct qp *qp;
};

static const uint8_t gid[16] = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 1};

static struct fixture qp_in_init(enum qp_type type, struct nic_config *c)
{
	struct fixture f;
	struct qp_init init = {.type = type, .cap = {.max_send_wr = 4, .max_recv_wr = 4}};
	struct qp_attr a = {.state = QPS_INIT, .port = 1};
	uint32_t mask = QPA_STATE | QPA_PKEY_INDEX | QPA_PORT | (type == QPT_UD ? QPA_QKEY : QPA_ACCESS_FLAGS);

	c->alloc = (struct alloc){.get = get, .put = put};
	/* An entry behind an empty one: the address of a QP without a peer must not match it. */
	c->gid_count = 2;
	memcpy(c->gids[1].raw, gid, sizeof(gid));
	c->gids[1].ip_mtu = 9000;
	f.nic = nic_create(c);
	assert_non_null(f.nic);
	assert_int_equal(nic_pd_alloc(f.nic, &f.pd), 0);
	assert_int_equal(nic_cq_create(f.nic, 16, NULL, &f.cq), 0);
	init.pd = f.pd;
	init.send_cq = init.recv_cq = f.cq;
	assert_int_equal(nic_qp_create(f.nic, &init, &f.qp), 0);
	assert_int_equal(nic_qp_modify(f.nic, f.qp, &a, mask, 0), 0);
	return f;
}

static struct qp_attr peer(void)
{
	struct qp_attr a = {
		.state = QPS_RTR,
		.path_mtu_bytes = 1024,
		.rq_psn = 0x123456,
		.dest_qpn = 0x654321,
		.access = MR_REMOTE_WRITE,
		.av = {.sgid_index = 1, .hop_limit = 3, .traffic_class = 8, .sl = 2, .port = 1, .is_global = 1},
		.min_rnr_timer = 12,
		.max_dest_rd_atomic = 16,
	};

	memcpy(a.av.dgid, gid, sizeof(gid));
	a.av.dgid[15] = 9;
	return a;
}

static uint32_t peer_mask(enum qp_type type)
{
	if (type == QPT_UD)
		return QPA_STATE;
	return QPA_STATE | QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN | QPA_ACCESS_FLAGS |
	       (type == QPT_RC ? QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER : 0);
}

/* Copies everything that a modify can change, for a comparison. */
static void look(const struct fixture *f, struct qp *copy)
{
	memcpy((void *)copy, f->qp, sizeof(*copy));
}

/* Lets each allocation of a modify fail in turn, until none fails. Returns how many there were. */
static int modify_out_of_memory(struct fixture *f, const struct qp_attr *a, uint32_t mask)
{
	struct qp before, after;

	for (int failed = 0;; failed++) {
		int err;

		look(f, &before);
		to_fail = failed;
		err = nic_qp_modify(f->nic, f->qp, a, mask, 1);
		to_fail = -1;
		if (!err)
			return failed;
		assert_int_equal(err, -ENOMEM);
		look(f, &after);
		assert_memory_equal(&before, &after, sizeof(before));
	}
}

TEST(modify_changes_nothing_without_memory)
{
	static const struct {
		enum qp_type type;
		enum protocol protocol;
		int allocations;
	} rows[] = {
		{QPT_RC, PROTOCOL_AUTO, 2}, /* veroce, pair */
		{QPT_RC, PROTOCOL_VEROCE, 2},
		{QPT_RC, PROTOCOL_ROCEV2, 4}, /* and requester and responder, their ring */
		{QPT_UC, PROTOCOL_AUTO, 1},
		{QPT_UD, PROTOCOL_AUTO, 1},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct nic_config *c = calloc(1, sizeof(*c));
		struct fixture f;
		struct qp_attr a = peer();

		assert_non_null(c);
		c->transport.protocol = rows[i].protocol;
		f = qp_in_init(rows[i].type, c);
		/* A pair that was made in vain stays for later QPs. */
		assert_in_range(modify_out_of_memory(&f, &a, peer_mask(rows[i].type)), 1, rows[i].allocations);
		assert_int_equal(qp_state(f.qp), QPS_RTR);
		nic_destroy(f.nic);
		free(c);
	}
}

TEST(more_reads_than_there_is_memory_for_change_nothing)
{
	struct nic_config *c = calloc(1, sizeof(*c));
	struct fixture f;
	struct qp_attr a = peer(), send = {.state = QPS_RTS, .timeout = 14, .max_rd_atomic = 64};

	assert_non_null(c);
	c->transport.protocol = PROTOCOL_ROCEV2;
	f = qp_in_init(QPT_RC, c);
	assert_int_equal(nic_qp_modify(f.nic, f.qp, &a, peer_mask(QPT_RC), 1), 0);
	assert_int_equal(modify_out_of_memory(&f, &send,
					      QPA_STATE | QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_SQ_PSN |
						      QPA_MAX_RD_ATOMIC),
			 1);
	assert_int_equal(qp_state(f.qp), QPS_RTS);
	nic_destroy(f.nic);
	free(c);
}

TEST(reports_say_where_queue_pairs_lead)
{
	static const struct {
		enum qp_type type;
		uint8_t gid; /* of the peer, its last byte */
		bool near;   /* memory takes packets to the peer's slot */
		enum nic_way way;
	} rows[] = {
		{QPT_RC, 9, false, NIC_WAY_PACKETS}, {QPT_RC, 9, true, NIC_WAY_PACKETS}, /* another host's slot */
		{QPT_RC, 1, false, NIC_WAY_PACKETS}, {QPT_RC, 1, true, NIC_WAY_MEMORY},
		{QPT_UC, 1, true, NIC_WAY_MEMORY},   {QPT_UD, 9, false, NIC_WAY_EACH},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct nic_config *c = calloc(1, sizeof(*c));
		struct fixture f = qp_in_init(rows[i].type, c);
		struct nic_peer n = {.near = rows[i].near};
		struct qp_attr a = peer();
		struct nic_qp_report r[2];
		uint64_t changes = nic_qp_changes(f.nic);

		assert_int_equal(nic_report_qps(f.nic, r, 2), 1);
		assert_int_equal(r[0].state, QPS_INIT);
		assert_int_equal(r[0].dest_qpn, 0);
		assert_int_equal(r[0].way, rows[i].type == QPT_UD ? NIC_WAY_EACH : NIC_WAY_NONE);
		a.av.dgid[15] = rows[i].gid;
		assert_int_equal(nic_qp_modify(f.nic, f.qp, &a, peer_mask(rows[i].type), 0), 0);
		assert_true(nic_qp_changes(f.nic) != changes);
		changes = nic_qp_changes(f.nic);
		nic_set_peer(f.nic, 0x654321 >> NIC_QPN_BITS, &n);
		assert_int_equal(nic_qp_changes(f.nic) != changes, rows[i].near);

		assert_int_equal(nic_report_qps(f.nic, r, 2), 1);
		assert_int_equal(r[0].qpn, qp_number(f.qp));
		assert_int_equal(r[0].type, rows[i].type);
		assert_int_equal(r[0].state, QPS_RTR);
		assert_int_equal(r[0].way, rows[i].way);
		if (rows[i].type != QPT_UD) {
			assert_int_equal(r[0].dest_qpn, 0x654321);
			assert_memory_equal(r[0].peer, a.av.dgid, 16);
		}
		assert_int_equal(nic_report_qps(f.nic, r, 0), 0);
		changes = nic_qp_changes(f.nic);
		nic_qp_destroy(f.nic, f.qp);
		assert_true(nic_qp_changes(f.nic) != changes);
		assert_int_equal(nic_report_qps(f.nic, r, 2), 0);
		nic_destroy(f.nic);
		free(c);
	}
}

/* Each look has some rows; between two of them the table may grow. */
TEST(looks_in_parts_show_each_queue_pair)
{
	enum { QPS = 100, MORE = 300, PART = 8 };
	struct nic_config *c = calloc(1, sizeof(*c));
	struct fixture f = qp_in_init(QPT_RC, c);
	struct qp_init init = {.type = QPT_RC,
			       .cap = {.max_send_wr = 1, .max_recv_wr = 1},
			       .pd = f.pd,
			       .send_cq = f.cq,
			       .recv_cq = f.cq};
	struct qp *qps[QPS + MORE] = {f.qp};
	struct nic_qp_look l[PART];
	bool seen[QPS] = {false};
	uint32_t at = 0, parts = 0;
	size_t n;

	for (int i = 1; i < QPS; i++)
		assert_int_equal(nic_qp_create(f.nic, &init, &qps[i]), 0);
	do {
		uint32_t from = at;

		n = nic_look_qps(f.nic, &at, l, PART);
		assert_true(n <= PART && (!at || at > from));
		for (size_t k = 0; k < n; k++)
			for (int i = 0; i < QPS; i++)
				seen[i] |= qp_number(qps[i]) == l[k].is.qpn;
		for (int i = QPS; !parts && i < QPS + MORE; i++)
			assert_int_equal(nic_qp_create(f.nic, &init, &qps[i]), 0);
		parts++;
	} while (at);
	assert_true(parts > QPS / PART);
	for (int i = 0; i < QPS; i++)
		assert_true(seen[i]);
	for (int i = 0; i < QPS + MORE; i++)
		nic_qp_destroy(f.nic, qps[i]);
	nic_destroy(f.nic);
	free(c);
}

/* Memory takes packets between the host's own addresses alone, as they are now. */
TEST(a_queue_pair_is_near_while_the_host_has_its_addresses)
{
	struct nic_config *c = calloc(1, sizeof(*c));
	struct fixture f = qp_in_init(QPT_RC, c);
	struct nic_peer n = {.near = true};
	struct nic_gid gone = {0}, entry;
	struct qp_attr a = peer();
	struct nic_qp_report r;
	uint64_t changes;

	a.av.dgid[15] = 1;
	assert_int_equal(nic_qp_modify(f.nic, f.qp, &a, peer_mask(QPT_RC), 0), 0);
	nic_set_peer(f.nic, 0x654321 >> NIC_QPN_BITS, &n);
	for (int there = 0; there < 2; there++) {
		struct nic_gid gids[2] = {gone, there ? c->gids[1] : gone};

		changes = nic_qp_changes(f.nic);
		nic_set_gids(f.nic, gids, 2);
		assert_true(nic_qp_changes(f.nic) != changes);
		assert_int_equal(nic_report_qps(f.nic, &r, 1), 1);
		assert_int_equal(r.way, there ? NIC_WAY_MEMORY : NIC_WAY_PACKETS);
		assert_int_equal(nic_gid(f.nic, 1, &entry), 0);
		assert_memory_equal(entry.raw, gids[1].raw, 16);
		assert_int_equal(nic_resolve(f.nic, &a.av, &(struct flow){0}, NULL), there ? 0 : -EINVAL);
	}
	nic_destroy(f.nic);
	free(c);
}
