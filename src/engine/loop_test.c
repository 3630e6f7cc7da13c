/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Turns of the loop in virtual time: one nic whose queue pairs talk to each other through a queue of packets,
 * as two processes do through the buffers of their sockets. The tests check the effect of a pause in which no
 * thread ran: everything that came meanwhile waits to be read, and every deadline has passed.
 */
#include "engine/loop.h"

#include <stdio.h>
#include <unistd.h>

#include "limits/limits.h"
#include "support/heap.h"
#include "support/test.h"

enum { PAIRS = 400, BYTES = 64, QUEUE = 4096, PACKET_MAX = 2048, LENT = 64 };

static const uint64_t pause_ns = 300000000; /* more than any timer of a QP with timeout 14 */
static const uint64_t step_ns = 1000;

/* ---- a back end that is a queue ------------------------------------------------------------------ */

struct wire {
	struct io io;
	uint32_t head, tail; /* free-running */
	bool floods;         /* there is always one more packet, which is of no use */
	size_t takes;        /* packets that wire_send() takes until it has room again */
	struct flow flows[QUEUE];
	uint32_t lens[QUEUE];
	uint8_t bytes[QUEUE][PACKET_MAX];
	uint8_t lent[LENT][PACKET_MAX]; /* may be written to */
	struct flow lent_flows[LENT];
};

static struct wire wire;
static uint64_t wire_bytes; /* sent, with the headers around a packet */

static size_t wire_recv(struct io *io, struct pkt *pkts, size_t max, uint64_t now_ns)
{
	size_t n = 0;

	assert_true(max <= LENT);
	for (; n < max && wire.head != wire.tail; n++, wire.head++) {
		uint32_t i = wire.head % QUEUE;

		memcpy(wire.lent[n], wire.bytes[i], wire.lens[i]);
		wire.lent_flows[n] = wire.flows[i];
		pkts[n] = (struct pkt){
			.data = wire.lent[n], .flow = &wire.lent_flows[n], .len = wire.lens[i], .train = 1};
	}
	for (; wire.floods && n < max; n++)
		pkts[n] = (struct pkt){.data = wire.lent[n], .flow = &wire.lent_flows[n], .len = 20, .train = 1};
	return n;
}

static size_t wire_send(struct io *io, const struct pkt *pkts, size_t n, uint64_t now_ns)
{
	n = n < wire.takes ? n : wire.takes;
	wire.takes -= n;
	for (size_t i = 0; i < n; i++) {
		uint32_t at = wire.tail++ % QUEUE;

		assert_true(wire.tail - wire.head <= QUEUE && pkts[i].len <= PACKET_MAX);
		memcpy(wire.bytes[at], pkts[i].data, pkts[i].len);
		wire.flows[at] = *pkts[i].flow;
		wire.lens[at] = pkts[i].len;
		wire_bytes += pkts[i].len + 66;
	}
	return n;
}

static uint64_t wire_deadline_ns(const struct io *io)
{
	return UINT64_MAX;
}

static const struct io_ops wire_ops = {.recv = wire_recv, .send = wire_send, .deadline_ns = wire_deadline_ns};

/* ---- queue pairs ------------------------------------------------------------------------------------ */

static void on_cq(void *owner)
{
}

static void on_async(const struct async_event *ev)
{
}

static const struct engine_sink sink = {.cq_event = on_cq, .async_event = on_async};
static struct heap heap;
static struct loop loop;
static uint64_t now_ns;
static uint8_t memory[2 * BYTES];
static struct pd *pd;
static struct mr *mr;
static struct cq *cq;
static struct qp *requesters[PAIRS], *responders[PAIRS];

static void connect_end(struct qp *qp, const struct qp *peer, const struct nic_gid *gid)
{
	struct qp_attr attr = {
		.state = QPS_INIT,
		.port = 1,
		.access = MR_LOCAL_WRITE | MR_REMOTE_WRITE,
		.path_mtu_bytes = 1024,
		.dest_qpn = qp_number(peer),
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.av = {.is_global = 1, .port = 1, .hop_limit = 64},
	};

	memcpy(attr.av.dgid, gid->raw, sizeof(gid->raw));
	assert_int_equal(
		nic_qp_modify(loop.nic, qp, &attr, QPA_STATE | QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS, now_ns),
		0);
	attr.state = QPS_RTR;
	assert_int_equal(nic_qp_modify(loop.nic, qp, &attr,
				       QPA_STATE | QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN |
					       QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER,
				       now_ns),
			 0);
	attr.state = QPS_RTS;
	assert_int_equal(
		nic_qp_modify(loop.nic, qp, &attr,
			      QPA_STATE | QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_SQ_PSN | QPA_MAX_RD_ATOMIC,
			      now_ns),
		0);
}

/* Until nothing is on its way. */
static void settle(void)
{
	for (bool moved = true; moved || wire.head != wire.tail; now_ns += step_ns)
		moved = loop_turn(&loop, LOOP_ALL, now_ns);
}

static void start(enum protocol protocol)
{
	struct nic_config c = {
		.alloc = {heap_get, heap_put, &heap},
		.secret = "loop_test",
		.transport.sport_ipv4 = {49152},
		.transport.paths = 1,
		.transport.protocol = protocol,
		.transport.veroce.cc = VEROCE_CC_NONE,
		.transport.veroce.rto_ns_min = 4000000,
		.transport.veroce.pto_ns_min = 2000000,
		.transport.window_bytes = 1 << 20,
		.gids = {{.raw = {[10] = 0xff, 0xff, 127, 0, 0, 1}, .ifindex = 1, .ip_mtu = 65536}},
		.gid_count = 1,
	};
	struct qp_init init = {
		.type = QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};

	heap = (struct heap){.gets_left = -1};
	wire.io.ops = &wire_ops;
	wire.head = wire.tail;
	wire.takes = SIZE_MAX;
	now_ns = 1000000;
	loop = (struct loop){.nic = nic_create(&c), .io = &wire.io, .sink = &sink};
	assert_non_null(loop.nic);
	assert_int_equal(loop_init(&loop), 0);
	assert_int_equal(nic_pd_alloc(loop.nic, &pd), 0);
	assert_int_equal(nic_mr_reg(loop.nic, pd, (struct mr_range){memory, sizeof(memory), (uintptr_t)memory},
				    MR_LOCAL_WRITE | MR_REMOTE_WRITE, &mr),
			 0);
	assert_int_equal(nic_cq_create(loop.nic, 4 * PAIRS, NULL, &cq), 0);
	init.pd = pd;
	init.send_cq = init.recv_cq = cq;
	for (size_t i = 0; i < PAIRS; i++) {
		assert_int_equal(nic_qp_create(loop.nic, &init, &requesters[i]), 0);
		assert_int_equal(nic_qp_create(loop.nic, &init, &responders[i]), 0);
		connect_end(responders[i], requesters[i], c.gids);
		connect_end(requesters[i], responders[i], c.gids);
	}
	settle();
}

static void end(void)
{
	loop_fini(&loop);
	nic_destroy(loop.nic);
	assert_int_equal(heap.blocks, 0);
}

static void post(struct qp *qp)
{
	struct send_wqe *w = sq_slot(qp_sq(qp), 0);

	assert_non_null(w);
	memset(w, 0, sizeof(*w));
	w->opcode = WR_WRITE;
	w->flags = WR_SIGNALED;
	w->num_sge = 1;
	w->length = BYTES;
	w->rkey = mr->key;
	w->remote_va = (uintptr_t)memory + BYTES;
	w->sge[0] = (struct wqe_sge){(uintptr_t)memory, BYTES, mr->key};
	sq_post(qp_sq(qp), 1);
	nic_doorbell(loop.nic, qp);
}

static uint32_t completions(void)
{
	uint32_t n = 0;

	for (const struct cqe *e; (e = cq_peek(cq, n)); n++)
		assert_int_equal(e->status, WC_SUCCESS);
	cq_consume(cq, n);
	return n;
}

static void expect_no_repetition(void)
{
	const struct nic_counters *n = nic_counters(loop.nic);

	assert_int_equal(n->timeouts, 0);
	assert_int_equal(n->tail_probes, 0);
	assert_int_equal(n->retransmits, 0);
}

/* `count` WRITEs on as many QPs, whose acknowledgements are all under way when the pause begins. */
static void write_and_pause(size_t count)
{
	for (size_t i = 0; i < count; i++)
		post(requesters[i]);
	while (nic_deadline(loop.nic) == 0)
		loop_turn(&loop, LOOP_OUTPUT, now_ns);
	assert_int_equal(wire.tail - wire.head, count);
	/* The responders' side, whose answers stay in the queue. */
	for (uint32_t last = wire.tail; wire.head != last;) {
		struct pkt pkts[LENT];
		size_t n = wire_recv(&wire.io, pkts, last - wire.head < LENT ? last - wire.head : LENT, now_ns);

		nic_input(loop.nic, pkts, n, now_ns);
	}
	now_ns += 200000; /* held acknowledgements too */
	while (wire.tail - wire.head < count) {
		loop_turn(&loop, LOOP_OUTPUT, now_ns);
		now_ns += step_ns;
	}
	assert_int_equal(completions(), 0);
	now_ns += pause_ns;
}

/* On to when something happens. */
static void step(void)
{
	uint64_t due_ns;

	if (loop_turn(&loop, LOOP_ALL, now_ns) || wire.head != wire.tail) {
		now_ns += step_ns;
		return;
	}
	due_ns = loop_deadline_ns(&loop);
	assert_true(due_ns < now_ns + pause_ns);
	now_ns = due_ns > now_ns ? due_ns : now_ns + step_ns;
}

static const enum protocol protocols[] = {PROTOCOL_ROCEV2, PROTOCOL_VEROCE};

/* A program's thread comes back and posts before it has read its input. */
TEST(post_after_a_pause_repeats_nothing)
{
	for (size_t i = 0; i < 2; i++) {
		start(protocols[i]);
		write_and_pause(1);
		post(requesters[1]);
		loop_turn(&loop, LOOP_OUTPUT, now_ns);
		expect_no_repetition();
		settle();
		assert_int_equal(completions(), 2);
		expect_no_repetition();
		end();
	}
}

/* More came than one turn reads. */
TEST(long_backlog_is_read_before_timers_judge)
{
	for (size_t i = 0; i < 2; i++) {
		start(protocols[i]);
		write_and_pause(PAIRS);
		loop_turn(&loop, LOOP_ALL, now_ns);
		expect_no_repetition();
		assert_in_range(completions(), 1, PAIRS - 1);
		assert_int_equal(loop_deadline_ns(&loop), 0);
		/* Those of the others are past, and still to be looked at. */
		assert_true(nic_deadline(loop.nic) <= now_ns);
		settle();
		expect_no_repetition();
		end();
	}
}

/* Timers run even if input never ends. */
TEST(endless_input_does_not_stop_the_clock)
{
	for (size_t i = 0; i < 2; i++) {
		start(protocols[i]);
		post(requesters[0]);
		loop_turn(&loop, LOOP_OUTPUT, now_ns);
		wire.head = wire.tail; /* lost */
		wire.floods = true;
		for (int turns = 0; turns < 3000 && !nic_counters(loop.nic)->retransmits; turns++) {
			loop_turn(&loop, LOOP_ALL, now_ns);
			now_ns += 100000;
		}
		wire.floods = false;
		assert_int_not_equal(nic_counters(loop.nic)->retransmits, 0);
		settle();
		assert_int_equal(completions(), 1);
		end();
	}
}

/* Neither if a program polls, and each poll finds a packet. */
TEST(polls_that_find_something_do_not_stop_the_clock)
{
	for (size_t i = 0; i < 2; i++) {
		start(protocols[i]);
		post(requesters[0]);
		loop_turn(&loop, LOOP_POSTED, now_ns);
		assert_int_equal(wire.tail - wire.head, 1);
		wire.head = wire.tail; /* lost */
		for (int turns = 0; turns < 3000 && !nic_counters(loop.nic)->retransmits; turns++) {
			wire.lens[wire.tail++ % QUEUE] = 20; /* of no use */
			loop_turn(&loop, LOOP_POLLED, now_ns);
			now_ns += 100000;
		}
		assert_int_not_equal(nic_counters(loop.nic)->retransmits, 0);
		settle();
		assert_int_equal(completions(), 1);
		end();
	}
}

/* The acknowledgement waits, and the thread may not sleep until the rest was done. */
TEST(poll_that_finds_a_packet_leaves_the_rest_to_the_next)
{
	for (size_t i = 0; i < 2; i++) {
		start(protocols[i]);
		memset(memory, (int)i + 1, BYTES);
		nic_hold_acks(loop.nic, true);
		post(requesters[0]);
		loop_turn(&loop, LOOP_POSTED, now_ns);
		assert_true(loop_turn(&loop, LOOP_POLLED, now_ns));
		assert_int_equal(memory[BYTES], i + 1);
		assert_int_equal(wire.tail - wire.head, 0);
		assert_int_equal(loop_deadline_ns(&loop), 0);
		loop_turn(&loop, LOOP_POLLED, now_ns);
		assert_int_equal(wire.tail - wire.head, 1);
		assert_int_not_equal(loop_deadline_ns(&loop), 0);
		nic_hold_acks(loop.nic, false);
		settle();
		assert_int_equal(completions(), 1);
		end();
	}
}

TEST(poll_that_finds_a_packet_sends_what_was_posted)
{
	for (size_t i = 0; i < 2; i++) {
		start(protocols[i]);
		nic_hold_acks(loop.nic, true);
		post(requesters[0]);
		loop_turn(&loop, LOOP_POSTED, now_ns);
		post(requesters[1]);
		loop_turn(&loop, LOOP_POLLED, now_ns);
		assert_int_not_equal(wire.tail - wire.head, 0);
		nic_hold_acks(loop.nic, false);
		settle();
		assert_int_equal(completions(), 2);
		end();
	}
}

/* Each queue pair's packet is a train of its own, so the back end may take any number of them. */
TEST(what_the_back_end_has_no_room_for_goes_first_when_it_has)
{
	enum { POSTED = 10, TAKEN = 3 };

	for (size_t i = 0; i < 2; i++) {
		start(protocols[i]);
		wire.takes = TAKEN;
		for (size_t k = 0; k < POSTED; k++)
			post(requesters[k]);
		loop_turn(&loop, LOOP_OUTPUT, now_ns);
		assert_int_equal(wire.tail - wire.head, TAKEN);
		/* It is tried again after a while, and until then nothing is due. */
		assert_in_range(loop_deadline_ns(&loop), now_ns + 1, now_ns + 1000000);
		now_ns = loop_deadline_ns(&loop);
		wire.takes = SIZE_MAX;
		settle();
		assert_int_equal(completions(), POSTED);
		expect_no_repetition();
		end();
	}
}

/*
 * A link that is down by a script takes nothing of a stream: what waits for it, in the stash and behind it, is not due.
 * Datagrams are, since they are taken and lost.
 */
TEST(what_waits_for_a_stream_whose_link_is_down_is_not_due)
{
	static const char down[] = "at 0s link down\n";
	static struct fault_script script;
	static const struct fault_host host = {.devices = 1};
	static struct fault_log log;
	struct fault_deed d;
	char why[256];

	start(PROTOCOL_ROCEV2);
	fault_script_init(&script);
	assert_int_equal(fault_script_read(&script, "test", down, strlen(down), false, &host, why, sizeof(why)), 0);
	loop.faults = faults_new(&(struct alloc){heap_get, heap_put, &heap}, &log, 0, now_ns);
	assert_int_equal(faults_add(loop.faults, &script, now_ns), 0);
	wire.takes = 0;
	for (size_t k = 0; k < PAIRS; k++)
		post(requesters[k]);
	loop_turn(&loop, LOOP_OUTPUT, now_ns);
	assert_true(nic_has_output(loop.nic));
	loop.streams = true;
	assert_int_equal(loop_deadline_ns(&loop), 0);
	assert_true(faults_next(loop.faults, now_ns, &d));
	faults_done(loop.faults, &d, FAULT_DONE, now_ns);
	assert_true(loop_deadline_ns(&loop) > now_ns);
	loop.streams = false;
	assert_int_equal(loop_deadline_ns(&loop), 0);
	faults_free(loop.faults);
	loop.faults = NULL;
	wire.takes = SIZE_MAX;
	settle();
	assert_int_equal(completions(), PAIRS);
	end();
}

/*
 * A device with a rate never sends more than that and a burst, which one call of the nic's may pass, with the answers to what
 * that sent: answers do not wait, and are paid for later.
 */
TEST(data_wait_for_the_rate_and_then_leave_without_repetition)
{
	enum { RATE_BYTES_A_S = 1000000, BURST = 4096, CALL_BYTES = 132 * (200 + 150) };
	const struct limits_config c = {.rate_bps = 8 * RATE_BYTES_A_S, .burst_bytes = BURST};

	for (size_t i = 0; i < 2; i++) {
		char name[LIMITS_NAME_BYTES], why[512] = "";
		struct limits *limits = NULL;
		uint64_t begun_ns;
		uint32_t done = 0;

		start(protocols[i]);
		snprintf(name, sizeof(name), "loop-%d", (int)getpid());
		if (limits_join(&limits, name, &c, 0, now_ns, why, sizeof(why)))
			fail_msg("%s", why);
		loop.limits = limits;
		begun_ns = now_ns;
		wire_bytes = 0;
		for (size_t k = 0; k < PAIRS; k++)
			post(requesters[k]);
		for (; done < PAIRS; done += completions()) {
			step();
			assert_true(wire_bytes <=
				    (now_ns - begun_ns) * RATE_BYTES_A_S / 1000000000 + BURST + CALL_BYTES);
		}
		/* And it uses what it may. */
		assert_true(wire_bytes + RATE_BYTES_A_S / 100 > (now_ns - begun_ns) * RATE_BYTES_A_S / 1000000000);
		assert_true(now_ns - begun_ns > 50000000);
		expect_no_repetition();
		limits_leave(limits);
		end();
	}
}
