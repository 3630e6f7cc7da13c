/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An ordinary program of librdmacm that lends memory through memory windows. The server binds them
 * and says by a message what the client is to do with them, and how that must end; the client does
 * it.
 *
 *	windows ADDRESS PORT      the server: a connection for each case, then it ends
 *	windows -c ADDRESS PORT   the client
 *
 * Both say what went otherwise than it must, and end with status 1 then.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/rdma_verbs.h>

#include "cm_end.h"

enum { BYTES = 8192, AT = 4096, LENGTH = 1000, PART = 100, FILL = 0x5a, ADDED = 5 };
enum { READ = IBV_ACCESS_REMOTE_READ, WRITE = IBV_ACCESS_REMOTE_WRITE, ATOMIC = IBV_ACCESS_REMOTE_ATOMIC };

/* What the client is to do: one operation, and then a message where it succeeds. */
struct offer {
	uint64_t addr;
	uint32_t rkey, length;
	uint8_t opcode; /* enum ibv_wr_opcode */
	bool fails, invalidates;
	bool last; /* none follows */
	bool ends; /* nor does a connection */
};

static const struct rdma_conn_param PARAM = {
	.responder_resources = 4, .initiator_depth = 4, .retry_count = 7, .rnr_retry_count = 7};

static struct {
	struct rdma_cm_id *id;
	struct ibv_mr *mr, *letters;
	struct offer offer;
	_Alignas(8) uint8_t memory[BYTES];
	bool last_case;
	int wrong;
} g;

static void must(bool holds, const char *what)
{
	if (holds)
		return;
	printf("%s: %s\n", trying ? trying : "windows", what);
	g.wrong = 1;
}

static void lend(int access)
{
	g.mr = ibv_reg_mr(g.id->pd, g.memory, BYTES, IBV_ACCESS_LOCAL_WRITE | access);
	g.letters = rdma_reg_msgs(g.id, &g.offer, sizeof(g.offer));
	if (!g.mr || !g.letters)
		fail("register");
}

static void expect_letter(void)
{
	if (rdma_post_recv(g.id, NULL, &g.offer, sizeof(g.offer), g.letters))
		fail("receive");
}

static struct ibv_wc received(void)
{
	struct ibv_wc wc;

	if (rdma_get_recv_comp(g.id, &wc) != 1)
		fail("await a message");
	return wc;
}

static enum ibv_wc_status done(struct ibv_send_wr wr)
{
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	wr.send_flags |= IBV_SEND_SIGNALED;
	errno = ibv_post_send(g.id->qp, &wr, &bad);
	if (errno)
		fail("post");
	if (rdma_get_send_comp(g.id, &wc) != 1)
		fail("await a completion");
	return wc.status;
}

static enum ibv_wc_status tell(uint32_t invalidated)
{
	struct ibv_sge sge = {.addr = (uintptr_t)&g.offer, .length = sizeof(g.offer), .lkey = g.letters->lkey};

	return done((struct ibv_send_wr){.sg_list = &sge,
					 .num_sge = 1,
					 .opcode = invalidated ? IBV_WR_SEND_WITH_INV : IBV_WR_SEND,
					 .invalidate_rkey = invalidated});
}

static void hang_up(void)
{
	rdma_disconnect(g.id);
	must(!ibv_dereg_mr(g.mr), "the region is not given back");
	rdma_dereg_mr(g.letters);
	rdma_destroy_ep(g.id);
}

/* ---- the client ---------------------------------------------------------------------------------
 */

static void take_part(const struct offer *o)
{
	struct ibv_sge sge = {.addr = (uintptr_t)g.memory, .length = o->length, .lkey = g.mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = o->opcode};
	enum ibv_wc_status status;

	memset(g.memory, o->opcode == IBV_WR_RDMA_WRITE ? FILL : 0, BYTES);
	if (o->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = o->addr;
		wr.wr.atomic.rkey = o->rkey;
		wr.wr.atomic.compare_add = ADDED;
	} else {
		wr.wr.rdma.remote_addr = o->addr;
		wr.wr.rdma.rkey = o->rkey;
	}
	status = done(wr);
	must(status == (o->fails ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS), ibv_wc_status_str(status));
	if (status != IBV_WC_SUCCESS)
		return;
	must(o->opcode != IBV_WR_RDMA_READ || g.memory[o->length - 1] == FILL, "something else was read");
	must(tell(o->invalidates ? o->rkey : 0) == IBV_WC_SUCCESS, "the message was not sent");
}

/* True: another connection follows. */
static bool client(char **where, unsigned *nr)
{
	struct rdma_conn_param param = PARAM;
	struct offer o = {.ends = true};
	char title[32];

	g.id = endpoint(where, 0, 8, 0);
	lend(0);
	expect_letter();
	if (rdma_connect(g.id, &param))
		fail("connect");
	do {
		snprintf(title, sizeof(title), "offer %u", ++*nr);
		trying = title;
		if (received().status != IBV_WC_SUCCESS)
			fail("an offer");
		o = g.offer;
		expect_letter();
		take_part(&o);
	} while (!o.last && !g.wrong);
	hang_up();
	trying = NULL;
	return !o.ends && !g.wrong;
}

/* ---- the server ---------------------------------------------------------------------------------
 */

static struct ibv_mw_bind_info info(uint32_t length, unsigned access)
{
	return (struct ibv_mw_bind_info){
		.mr = g.mr, .addr = (uintptr_t)g.memory + AT, .length = length, .mw_access_flags = access};
}

static void bind_1(struct ibv_mw *mw, uint32_t length, unsigned access)
{
	struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED, .bind_info = info(length, access)};
	struct ibv_wc wc;

	errno = ibv_bind_mw(g.id->qp, mw, &bind);
	if (errno || rdma_get_send_comp(g.id, &wc) != 1)
		fail("bind");
	must(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_BIND_MW, "it was not bound");
}

static void bind_2(struct ibv_mw *mw, unsigned access)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW};

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = info(LENGTH, access);
	must(done(wr) == IBV_WC_SUCCESS, "it was not bound");
	mw->rkey = wr.bind_mw.rkey;
}

static void invalidate(const struct ibv_mw *mw)
{
	must(done((struct ibv_send_wr){.opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = mw->rkey}) == IBV_WC_SUCCESS,
	     "it was not invalidated");
}

static struct offer offer(const struct ibv_mw *mw, enum ibv_wr_opcode opcode)
{
	return (struct offer){.addr = (uintptr_t)g.memory + AT,
			      .rkey = mw->rkey,
			      .length = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? sizeof(uint64_t) : PART,
			      .opcode = (uint8_t)opcode};
}

static void await_the_end(void)
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(g.id->channel, &event))
		fail("event");
	must(event->event == RDMA_CM_EVENT_DISCONNECTED, rdma_event_str(event->event));
	rdma_ack_cm_event(event);
}

static void ask(struct offer o)
{
	const uint8_t *part = g.memory + AT;
	uint8_t fill = o.opcode == IBV_WR_RDMA_READ ? FILL : 0;
	struct ibv_wc wc;

	memset(g.memory, fill, BYTES);
	o.ends = g.last_case;
	g.offer = o;
	/* The client's failure may come before its acknowledgement. */
	must(tell(0) == IBV_WC_SUCCESS || o.fails, "the offer was not sent");
	if (o.fails) {
		await_the_end();
		must(part[0] == fill, "something was written all the same");
		return;
	}
	wc = received();
	expect_letter();
	must(wc.status == IBV_WC_SUCCESS, "the client does not go on");
	/* Not by wc_flags: rxe has the kernel's bit there, which says something else to a program.
	 */
	must(!o.invalidates || wc.invalidated_rkey == o.rkey, "something else was invalidated");
	if (o.opcode == IBV_WR_RDMA_WRITE)
		must(!part[-1] && part[0] == FILL && part[o.length - 1] == FILL && !part[o.length],
		     "something else was written");
	else if (o.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		must(part[0] == ADDED && !part[o.length], "something else was added");
}

static void ask_last(struct offer o, bool fails)
{
	o.last = true;
	o.fails = fails;
	ask(o);
}

static void type_1(struct ibv_mw *mw)
{
	uint32_t before;

	bind_1(mw, LENGTH, READ | WRITE | ATOMIC);
	ask(offer(mw, IBV_WR_RDMA_WRITE));
	ask(offer(mw, IBV_WR_RDMA_READ));
	ask(offer(mw, IBV_WR_ATOMIC_FETCH_AND_ADD));
	before = mw->rkey;
	bind_1(mw, LENGTH, WRITE);
	must(mw->rkey != before, "the same key twice");
	ask_last(offer(mw, IBV_WR_RDMA_WRITE), false);
}

static void type_1_without_the_right(struct ibv_mw *mw)
{
	bind_1(mw, LENGTH, WRITE);
	ask(offer(mw, IBV_WR_RDMA_WRITE));
	ask_last(offer(mw, IBV_WR_RDMA_READ), true);
}

/* By no length and a region: without a region librxe crashes. */
static void type_1_unbound(struct ibv_mw *mw)
{
	struct offer by_the_old_key;

	bind_1(mw, LENGTH, WRITE);
	by_the_old_key = offer(mw, IBV_WR_RDMA_WRITE);
	ask(by_the_old_key);
	bind_1(mw, 0, 0);
	ask_last(by_the_old_key, true);
}

static void type_2_invalidated_here(struct ibv_mw *mw)
{
	for (int i = 0; i < 2; i++) { /* once freed, it is bound again */
		bind_2(mw, READ | WRITE);
		ask(offer(mw, IBV_WR_RDMA_WRITE));
		ask(offer(mw, IBV_WR_RDMA_READ));
		invalidate(mw);
	}
	ask_last(offer(mw, IBV_WR_RDMA_WRITE), true);
}

static void type_2_invalidated_by_the_peer(struct ibv_mw *mw)
{
	struct offer o;

	bind_2(mw, WRITE);
	o = offer(mw, IBV_WR_RDMA_WRITE);
	o.invalidates = true;
	ask(o);
	ask_last(o, true);
}

static void type_2_zero_based(struct ibv_mw *mw)
{
	struct offer o;

	bind_2(mw, WRITE | IBV_ACCESS_ZERO_BASED);
	o = offer(mw, IBV_WR_RDMA_WRITE);
	o.addr = 0;
	ask_last(o, false);
}

static void type_2_beyond_its_end(struct ibv_mw *mw)
{
	struct offer o;

	bind_2(mw, WRITE);
	o = offer(mw, IBV_WR_RDMA_WRITE);
	o.length = LENGTH;
	ask(o);
	o.length++;
	ask_last(o, true);
}

static void serve(struct rdma_cm_id *listener, enum ibv_mw_type type, void (*act)(struct ibv_mw *))
{
	struct rdma_conn_param param = PARAM;
	struct ibv_mw *mw;

	if (rdma_get_request(listener, &g.id))
		fail("request");
	lend(IBV_ACCESS_MW_BIND);
	expect_letter();
	if (rdma_accept(g.id, &param))
		fail("accept");
	mw = ibv_alloc_mw(g.id->pd, type);
	if (!mw)
		fail("allocate a window");
	act(mw);
	printf("%s: done\n", trying);
	fflush(stdout);
	must(!ibv_dealloc_mw(mw), "the window is not given back");
	hang_up();
}

static void server(char **where)
{
	static const struct {
		const char *title;
		enum ibv_mw_type type;
		void (*act)(struct ibv_mw *);
	} cases[] = {
		{"type 1", IBV_MW_TYPE_1, type_1},
		{"type 1 without the right", IBV_MW_TYPE_1, type_1_without_the_right},
		{"type 1 unbound", IBV_MW_TYPE_1, type_1_unbound},
		{"type 2 invalidated here", IBV_MW_TYPE_2, type_2_invalidated_here},
		{"type 2 invalidated by the peer", IBV_MW_TYPE_2, type_2_invalidated_by_the_peer},
		{"type 2 zero-based", IBV_MW_TYPE_2, type_2_zero_based},
		{"type 2 beyond its end", IBV_MW_TYPE_2, type_2_beyond_its_end},
	};
	struct rdma_cm_id *listener = endpoint(where, RAI_PASSIVE, 8, 0);
	unsigned count = sizeof(cases) / sizeof(cases[0]);

	/* Linux's rxe holds an access to the bounds of the region alone. */
	if (!strncmp(ibv_get_device_name(listener->verbs->device), "rxe", 3))
		count--;
	if (rdma_listen(listener, 8))
		fail("listen");
	printf("listening\n");
	fflush(stdout);
	for (unsigned i = 0; i < count && !g.wrong; i++) {
		trying = cases[i].title;
		g.last_case = i == count - 1;
		serve(listener, cases[i].type, cases[i].act);
	}
	rdma_destroy_ep(listener);
}

int main(int argc, char **argv)
{
	unsigned nr = 0;

	if (argc == 3)
		server(argv + 1);
	else if (argc == 4 && !strcmp(argv[1], "-c"))
		while (client(argv + 2, &nr))
			;
	else
		return 2;
	if (!g.wrong)
		printf("all as it must be\n");
	return g.wrong;
}
