/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The processes of a host in one: each has a nic, a cm and a loop as in the product, and they share a registry. Around
 * them is a model of what the kernel and src/group do: the steering of packets to sockets, packets that are passed on,
 * and a connection to the registrar that breaks with either end. The group's functions are defined here, so a program
 * with this fixture has the model instead of src/group. Time is virtual. Process 0 is on another host, alone.
 */
#pragma once

#include <errno.h>
#include <sys/mman.h>

#include "base/byteorder.h"
#include "cm/registry.h"
#include "engine/loop.h"
#include "engine/registrar.h"
#include "engine/requests.h"
#include "support/heap.h"
#include "support/test.h"
#include "wire/cm_msg.h"
#include "wire/cm_rej.h"
#include "wire/mad.h"

enum { CLIENT, A, B, C, PROCESSES, PORT = 7174, UID = 100, BOX = 1024, BYTES = 320, LENT = 64, MAD_AT = 20 };

/* The slots are those of no process's number. */
enum { SLOT_OF_A = 3, SLOT_STEP = 2 };

struct letter {
	struct flow flow;
	uint32_t len;
	unsigned hops;
	uint8_t bytes[BYTES];
};

struct box {
	struct letter letters[BOX];
	uint32_t head, tail;
};

struct group {
	unsigned slot;
	int watched; /* a slot; -1: none */
	bool ended;  /* the watched one has */
	bool left;   /* somebody who watched us has */
	struct box forwarded;
	unsigned hops[LENT];
	uint8_t lent[LENT][BYTES];
	struct flow flows[LENT];
};

struct process {
	struct loop loop;
	struct io io;
	struct group group;
	struct cm_channel *channel;
	struct box socket;
	uint8_t lent[LENT][BYTES];
	struct flow flows[LENT];
	bool killed, stopped;
	bool lingers; /* killed, but its name is still there */
};

static struct process processes[PROCESSES];
static struct registry_page *page;
static struct heap heap;
static uint64_t now_ns;
static unsigned requests_slot;         /* what the steering program says of packets that name nobody */
static int misled_to;                  /* the kernel gives every packet to this process; 0: to whom it belongs */
static unsigned sent[PROCESSES][0x20]; /* messages, by attribute */

static inline struct process *with_slot(unsigned slot)
{
	for (int i = A; i < PROCESSES; i++) {
		if (processes[i].group.slot == slot)
			return &processes[i];
	}
	return NULL;
}

/* ---- the wire ------------------------------------------------------------------------------------------ */

static inline void box_put(struct box *b, const struct pkt *p, unsigned hops)
{
	struct letter *l = &b->letters[b->tail % BOX];

	assert_true(b->tail - b->head < BOX && p->len <= BYTES);
	b->tail++;
	l->flow = *p->flow;
	l->len = p->len;
	l->hops = hops;
	memcpy(l->bytes, p->data, p->len);
}

static inline size_t box_take(struct box *b, struct pkt *pkts, size_t max, uint8_t lent[][BYTES], struct flow *flows,
			      unsigned *hops)
{
	size_t n = 0;

	for (; n < max && n < LENT && b->head != b->tail; n++, b->head++) {
		const struct letter *l = &b->letters[b->head % BOX];

		memcpy(lent[n], l->bytes, l->len);
		flows[n] = l->flow;
		if (hops)
			hops[n] = l->hops;
		pkts[n] = (struct pkt){.data = lent[n], .flow = &flows[n], .len = l->len, .train = 1};
	}
	return n;
}

/* To the socket that the steering program says; what is for a process that is gone is lost. */
static inline void deliver(const struct pkt *p)
{
	unsigned slot = group_slot_of(p);
	struct process *to = with_slot(slot == GROUP_ANY_SLOT ? requests_slot : slot);

	if (p->flow->dst[15] == 1)
		to = &processes[CLIENT];
	else if (misled_to)
		to = &processes[misled_to];
	if (to && !to->killed)
		box_put(&to->socket, p, 0);
}

static inline size_t io_model_send(struct io *io, const struct pkt *pkts, size_t n, uint64_t now)
{
	struct process *from = container_of(io, struct process, io);

	for (size_t i = 0; i < n; i++) {
		struct flow f = *pkts[i].flow;
		struct pkt p = pkts[i];

		if (p.len >= MAD_AT + MAD_LEN)
			sent[from - processes][get_be16(p.data + MAD_AT + 16) & 0x1f]++;
		p.flow = &f;
		deliver(&p);
	}
	return n;
}

static inline size_t io_model_recv(struct io *io, struct pkt *pkts, size_t max, uint64_t now)
{
	struct process *p = container_of(io, struct process, io);

	return box_take(&p->socket, pkts, max, p->lent, p->flows, NULL);
}

static inline uint64_t io_model_deadline(const struct io *io)
{
	return UINT64_MAX;
}

static inline void io_model_flush(struct io *io)
{
}

static const struct io_ops io_model = {
	.recv = io_model_recv, .send = io_model_send, .deadline_ns = io_model_deadline, .flush = io_model_flush};

/* ---- the group ------------------------------------------------------------------------------------------- */

unsigned group_slot(const struct group *g)
{
	return g->slot;
}

bool group_lives(const struct group *g, unsigned slot)
{
	struct process *p = with_slot(slot);

	return p && (!p->killed || p->lingers);
}

bool group_ring_lives(const struct group *g, unsigned slot)
{
	return group_lives(g, slot);
}

int group_steer_requests(struct group *g, unsigned slot)
{
	requests_slot = slot;
	return 0;
}

int group_watch(struct group *g, unsigned slot)
{
	if (!group_lives(g, slot))
		return -ECONNREFUSED;
	g->watched = (int)slot;
	g->ended = false;
	return 0;
}

void group_name_heir(struct group *g, const char *name)
{
	(void)g;
	(void)name;
}

void group_unwatch(struct group *g)
{
	g->watched = -1;
}

bool group_is_watching(const struct group *g)
{
	return g->watched >= 0 && !g->ended;
}

bool group_watch_ended(const struct group *g)
{
	return g->watched >= 0 && g->ended;
}

bool group_watched_is_stopped(const struct group *g)
{
	return group_is_watching(g) && with_slot((unsigned)g->watched)->stopped;
}

bool group_is_stopped(const struct group *g, unsigned slot)
{
	(void)g;
	return with_slot(slot)->stopped;
}

bool group_somebody_left(struct group *g)
{
	bool left = g->left;

	g->left = false;
	return left;
}

void group_service(struct group *g)
{
}

bool group_forward(struct group *g, unsigned slot, const struct pkt *p, unsigned hops)
{
	struct process *to = with_slot(slot);

	if (!to || to->killed || slot == g->slot)
		return false;
	box_put(&to->group.forwarded, p, hops + 1);
	return true;
}

size_t group_recv_forwarded(struct group *g, struct pkt *pkts, size_t max)
{
	return box_take(&g->forwarded, pkts, max, g->lent, g->flows, g->hops);
}

unsigned group_hops(const struct group *g, size_t i)
{
	return g->hops[i];
}

/* No rings. */
int group_offer_ring(struct group *g, unsigned slot, const int fds[GROUP_RING_FDS])
{
	return -EOPNOTSUPP;
}

void group_refuse_ring(struct group *g, unsigned slot)
{
}

bool group_next_ring(struct group *g, struct group_ring *r)
{
	return false;
}

/* ---- processes ------------------------------------------------------------------------------------------- */

static inline void on_cq(void *owner)
{
}

static inline void on_async(const struct async_event *ev)
{
}

static const struct engine_sink events_sink = {.cq_event = on_cq, .async_event = on_async};

static inline bool lives(void *ctx, uint32_t slot)
{
	return group_lives(NULL, slot);
}

static inline void process_start(int which)
{
	struct process *p = &processes[which];
	struct nic_config *nc = calloc(1, sizeof(*nc));
	struct cm_config *cc = calloc(1, sizeof(*cc));
	struct nic_gid gid = {
		.raw = {[10] = 0xff, 0xff, 10, 0, 0, which == CLIENT ? 1 : 2}, .ifindex = 1, .ip_mtu = 1500};

	*p = (struct process){.io.ops = &io_model, .group.watched = -1};
	p->group.slot = which == CLIENT ? 0 : SLOT_OF_A + (unsigned)(which - A) * SLOT_STEP;
	nc->alloc = cc->alloc = heap_alloc(&heap);
	nc->secret[0] = cc->secret[0] = (uint8_t)(which + 1);
	nc->transport.sport_ipv4[0] = 49152;
	nc->transport.paths = 1;
	nc->gids[0] = cc->gids[0] = gid;
	nc->gid_count = cc->gid_count = 1;
	cc->slot = p->group.slot;
	cc->ca_guid = 0x1000u + (unsigned)which;
	cc->port_first = 32768;
	cc->port_last = 60999;
	cc->registry = which == CLIENT ? NULL : page;
	cc->lives = lives;
	p->loop = (struct loop){.nic = nic_create(nc),
				.cm = cm_create(cc),
				.io = &p->io,
				.sink = &events_sink,
				.group = which == CLIENT ? NULL : &p->group};
	assert_true(p->loop.nic && p->loop.cm);
	assert_int_equal(loop_init(&p->loop), 0);
	assert_int_equal(cm_channel_create(p->loop.cm, p, &p->channel), 0);
	free(nc);
	free(cc);
}

static inline int processes_start(void **state)
{
	heap = (struct heap)HEAP_INIT;
	page = mmap(NULL, registry_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(page, MAP_FAILED);
	now_ns = 1000000000;
	requests_slot = 0;
	misled_to = 0;
	memset(sent, 0, sizeof(sent));
	for (int i = CLIENT; i < PROCESSES; i++)
		process_start(i);
	return 0;
}

static inline int processes_end(void **state)
{
	for (int i = CLIENT; i < PROCESSES; i++) {
		cm_destroy(processes[i].loop.cm);
		nic_destroy(processes[i].loop.nic);
		loop_fini(&processes[i].loop);
	}
	munmap(page, registry_bytes());
	assert_int_equal(heap.blocks, 0);
	return 0;
}

/* A process that is killed does nothing any more, and those who are connected with it learn of it. */
static inline void process_kill(int which)
{
	struct process *dead = &processes[which];

	dead->killed = true;
	for (int i = A; i < PROCESSES; i++) {
		struct group *g = &processes[i].group;

		if (g->watched == (int)dead->group.slot)
			g->ended = true;
		if (dead->group.watched == (int)g->slot)
			g->left = true;
	}
}

static inline void run_ms(unsigned ms)
{
	for (unsigned i = 0; i < ms; i++, now_ns += 1000000) {
		for (int k = CLIENT; k < PROCESSES; k++) {
			struct process *p = &processes[k];

			if (p->killed || p->stopped)
				continue;
			loop_serve_group(&p->loop, now_ns);
			loop_turn(&p->loop, LOOP_ALL, now_ns);
		}
	}
}

/* ---- programs ---------------------------------------------------------------------------------------------- */

static inline struct cm_addr address(int which, uint16_t port)
{
	return (struct cm_addr){
		.ip = {[10] = 0xff, 0xff, 10, 0, 0, which == CLIENT ? 1 : 2}, .port = port, .family = CM_IPV4};
}

/* Opens the device, and so takes part. */
static inline void join(int which)
{
	registrar_join(&processes[which].loop, now_ns);
}

static inline struct cm_id *listen_on(int which, uint16_t port)
{
	struct cm_addr a = address(which, port);
	struct cm_id *id;

	assert_int_equal(cm_id_create(processes[which].channel, CM_SPACE_TCP, QPT_RC, UID, &id), 0);
	assert_int_equal(cm_id_bind(id, &a), 0);
	assert_int_equal(cm_id_listen(id, 1000), 0);
	return id;
}

static inline struct cm_event take(int which, enum cm_event_type type)
{
	struct cm_event e;

	assert_true(cm_channel_take_event(processes[which].channel, &e));
	assert_int_equal(e.type, type);
	return e;
}

static inline size_t events_of(int which)
{
	return cm_channel_events(processes[which].channel);
}

static inline struct cm_id *ask(uint16_t port)
{
	struct cm_addr src = address(CLIENT, 0), dst = address(A, port);
	struct cm_param p = {.qpn = 0x1234, .retry_count = 7};
	struct cm_id *id;

	assert_int_equal(cm_id_create(processes[CLIENT].channel, CM_SPACE_TCP, QPT_RC, UID, &id), 0);
	assert_int_equal(cm_id_resolve_addr(id, &src, &dst), 0);
	assert_int_equal(cm_id_resolve_route(id), 0);
	take(CLIENT, CM_ADDR_RESOLVED);
	take(CLIENT, CM_ROUTE_RESOLVED);
	assert_int_equal(cm_id_connect(id, &p, now_ns), 0);
	return id;
}

/* The client is connected with a process, which listens. The server's id is returned. */
static inline struct cm_id *connect_with(int which, uint16_t port)
{
	struct cm_param p = {.qpn = 0x5678, .retry_count = 7};
	struct cm_id *client, *server;

	client = ask(port);
	run_ms(3);
	server = cm_id_find(processes[which].loop.cm, take(which, CM_CONNECT_REQUEST).number);
	assert_non_null(server);
	assert_int_equal(cm_id_accept(server, UID, &p, now_ns), 0);
	run_ms(3);
	take(CLIENT, CM_CONNECT_RESPONSE);
	assert_int_equal(cm_id_confirm(client, now_ns), 0);
	run_ms(3);
	take(which, CM_ESTABLISHED);
	return server;
}
