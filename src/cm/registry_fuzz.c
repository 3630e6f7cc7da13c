/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection manager whose registry another process writes rubbish into, between any two accesses. registry.c is
 * compiled here with each access to the shared memory as a call, which sometimes finds another value than was there.
 * With any value, no access leaves the memory, nothing is written but the own area and the few words that are
 * everybody's, each call ends after a bounded number of accesses, and what comes out is in its bounds.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "support/registry_words.h"
#undef FREE

#define TEST_OWN_MAIN
#include "support/cm_pair.h"
#include "support/fuzz_input.h"

enum { OURS = 5, THEIRS = 9, LIFE = 77, GUARD = 1 << 20, ACCESSES_MAX = 40000000 };

static struct {
	struct registry_page *page;
	struct prng prng;
	uint32_t one_in;   /* so many accesses find rubbish; 0: none */
	bool watched;      /* the cm of this process runs, and not a member that joins properly */
	uint64_t accesses; /* of the present call */
} memory;

static struct world w;

/* ---- one access ----------------------------------------------------------------------------------- */

/* A number that means something here is worse than any other. */
static uint64_t rubbish(uint64_t was)
{
	static const uint32_t lives_of[] = {0, LIFE, 1, UINT32_MAX};
	uint64_t any = prng_next(&memory.prng);

	switch (any % 8) {
	case 0: return 0;
	case 1: return UINT64_MAX;
	case 2: return was ^ UINT64_C(1) << (any >> 8) % 64;
	case 3: return (was & ~UINT64_C(0xff)) | (any >> 8 & 0xff);
	case 4: return (uint64_t)lives_of[any >> 8 & 3] << LIFE_SHIFT | (any >> 16 & 7);
	case 5: return (uint64_t)w.ends[SERVER].cm->registry.life << LIFE_SHIFT | (any >> 16 & 7);
	default: return any;
	}
}

static bool is_everybodys(const volatile void *word)
{
	return (const volatile uint8_t *)word < (const uint8_t *)&memory.page->areas[0];
}

static bool is_ours(const volatile void *word)
{
	const volatile uint8_t *p = word;

	return p >= (const uint8_t *)&memory.page->areas[OURS] && p < (const uint8_t *)&memory.page->areas[OURS + 1];
}

static void judge_access(volatile void *word, size_t bytes, enum access_kind kind)
{
	uintptr_t at = (uintptr_t)word - (uintptr_t)memory.page;

	must(at < registry_bytes() && bytes <= registry_bytes() - at && !(at % bytes));
	if (!memory.watched)
		return;
	must(++memory.accesses < ACCESSES_MAX);
	must(kind == LOAD || kind == SWAP || is_everybodys(word) || is_ours(word));
}

static uint64_t touch(volatile void *word, size_t bytes, enum access_kind kind, uint64_t value, uint64_t expected)
{
	uint64_t was = 0;

	judge_access(word, bytes, kind);
	memcpy(&was, (void *)(uintptr_t)word, bytes);
	if (memory.watched && memory.one_in && !prng_below(&memory.prng, memory.one_in)) {
		was = rubbish(was);
		memcpy((void *)(uintptr_t)word, &was, bytes);
		if (bytes < sizeof(was))
			was &= (UINT64_C(1) << 8 * bytes) - 1;
	}
	value = kind == OR ? was | value : kind == AND ? was & value : value;
	if (kind != LOAD && (kind != SWAP || was == expected))
		memcpy((void *)(uintptr_t)word, &value, bytes);
	return was;
}

/* ---- processes --------------------------------------------------------------------------------------- */

static bool lives(void *ctx, uint32_t slot)
{
	must(slot < REGISTRY_SLOTS);
	return memory.watched ? prng_next(&memory.prng) & 1 : true;
}

static void nothing(struct world *world, int from, const struct flow *flow, const uint8_t *mad)
{
}

static struct cm *process(void)
{
	struct cm_config c = {.alloc = {.get = pair_get, .put = pair_put},
			      .slot = OURS,
			      .ca_guid = 0x2000,
			      .gid_count = 1,
			      .port_first = 50000,
			      .port_last = 50255,
			      .registry = memory.page,
			      .lives = lives};

	memset(c.secret, 3, sizeof(c.secret));
	memcpy(c.gids[0].raw, w.ends[SERVER].addr.ip, 16);
	c.gids[0].ip_mtu = 1500;
	return cm_create(&c);
}

/* Another process, which listens on some ports, has drawn one, and has a will. */
static void neighbour(void)
{
	struct registry r = {.page = memory.page, .slot = THEIRS, .lives = lives};
	struct registry_claim c = {.space = CM_SPACE_TCP, .addr = w.ends[SERVER].addr, .listening = true};
	struct registry_will will = {
		.local_comm_id = THEIRS << CM_SLOT_SHIFT | 1, .remote_comm_id = 1, .remote_qpn = 17};
	uint32_t row;

	registry_join(&r, LIFE);
	for (c.addr.port = SERVER_PORT; c.addr.port < SERVER_PORT + 4; c.addr.port++)
		registry_bind(&r, &c, &row);
	registry_draw(&r, CM_SPACE_TCP, 50001);
	memcpy(will.flow.src, w.ends[SERVER].addr.ip, 16);
	memcpy(will.flow.dst, w.ends[CLIENT].addr.ip, 16);
	registry_make_will(&r, &will);
	registry_take_over(&r, REGISTRY_NOBODY);
}

/* ---- what the process does ------------------------------------------------------------------------------ */

static struct cm_id *some_id(unsigned which)
{
	struct cm_channel *ch = w.ends[SERVER].channel;
	struct list *l = ch->ids.next;

	while (which-- && l->next != &ch->ids)
		l = l->next;
	return l == &ch->ids ? NULL : container_of(l, struct cm_id, link);
}

static void a_port(struct input *in)
{
	uint8_t how = next_byte(in);
	struct cm_addr a = w.ends[SERVER].addr;
	struct cm_id *id;

	a.port = (uint16_t)(how & 8 ? 0 : SERVER_PORT + how % 8);
	if (cm_id_create(w.ends[SERVER].channel, CM_SPACE_TCP, QPT_RC, SERVER_UID, &id))
		return;
	cm_id_set_reuse(id, how & 16);
	cm_id_bind(id, &a);
	if (how & 32)
		cm_id_listen(id, 3);
}

static void an_id(struct input *in)
{
	uint8_t how = next_byte(in);
	struct cm_id *id = some_id(how & 7);

	if (!id)
		return;
	switch (how >> 3 & 3) {
	case 0: cm_id_listen(id, 3); break;
	case 1: cm_id_set_reuse(id, how & 32); break;
	case 2: cm_id_set_afonly(id, how & 32); break;
	default: cm_id_destroy(id, w.now_ns); break;
	}
}

/* Towards the client, who does not answer. */
static void a_connection(struct input *in)
{
	struct cm_addr dst = w.ends[CLIENT].addr;
	struct cm_param p = param_with(next_byte(in) + 2u, "fuzz");
	struct cm_id *id;

	dst.port = 1;
	if (cm_id_create(w.ends[SERVER].channel, CM_SPACE_TCP, QPT_RC, CLIENT_UID, &id) ||
	    cm_id_resolve_addr(id, &w.ends[SERVER].addr, &dst) || cm_id_resolve_route(id))
		return;
	cm_id_connect(id, &p, w.now_ns);
}

static void a_request(struct input *in)
{
	struct cm_ip ip = {.ip_version = 4, .src = {[12] = 10, [15] = 1}, .dst = {[12] = 10, [15] = 2}};
	uint8_t mad[MAD_LEN], which = next_byte(in);
	uint8_t *msg = mad + MAD_HEADER_LEN;
	struct cm *cm = w.ends[SERVER].cm;
	struct flow flow = {0};
	int to;

	memcpy(flow.src, w.ends[CLIENT].addr.ip, 16);
	memcpy(flow.dst, w.ends[SERVER].addr.ip, 16);
	message_start(mad, CM_REQ, which);
	put_be32(msg, which + 1u);
	put_be64(msg + 8, service_id_of(CM_SPACE_TCP, SERVER_PORT + which % 8));
	put_be64(msg + 16, which);
	put_be24(msg + 32, 100u + which);
	msg[50] = 3 << 4;
	memcpy(msg + 56, flow.src, 16);
	memcpy(msg + 72, flow.dst, 16);
	cm_ip_encode(msg + 140, &ip);
	to = cm_route(cm, &flow, mad, which & 64);
	must(to >= CM_NOWHERE && to < REGISTRY_SLOTS && to != OURS);
	if (to >= 0)
		cm_is_gone(cm, to);
	else
		cm_input(cm, &flow, mad, w.now_ns);
}

/* The next a_request() with this number was noted before, or so it seems. */
static void a_forged_note(struct input *in)
{
	static const uint8_t slots[] = {0, 1, OURS + 1, THEIRS + 1, REGISTRY_SLOTS, REGISTRY_SLOTS + 1, 0xff};
	uint8_t which = next_byte(in);
	struct flow flow = {0};
	uint64_t key;

	memcpy(flow.src, w.ends[CLIENT].addr.ip, 16);
	memcpy(flow.dst, w.ends[SERVER].addr.ip, 16);
	key = request_note(&flow, which, which + 1u);
	memory.page->notes[key >> 8 & (NOTES - 1)] = (key & ~UINT64_C(0xff)) | slots[next_byte(in) % sizeof(slots)];
	memory.page->used[REGISTRY_SLOTS / BITS] |= UINT32_C(1) << REGISTRY_SLOTS % BITS; /* the first that is none */
}

static void the_election(struct input *in)
{
	struct cm *cm = w.ends[SERVER].cm;
	int who = cm_registrar(cm);

	must(who >= REGISTRY_NOBODY && who < REGISTRY_SLOTS);
	if (next_byte(in) & 1)
		cm_take_over(cm, who);
	cm_look_for_the_dead(cm);
}

static void time_passes(struct input *in)
{
	struct cm *cm = w.ends[SERVER].cm;
	uint8_t mad[MAD_LEN];
	struct flow flow;

	w.now_ns += next_byte(in) * SECONDS / 16;
	if (cm_deadline(cm) <= w.now_ns)
		cm_expire(cm, w.now_ns);
	must(cm->out_count <= CM_OUT_MAX);
	while (cm_output(cm, &flow, mad))
		must(attribute_of(mad) <= CM_APR);
}

static void a_tool_looks(struct input *in)
{
	struct registry_claim c;
	uint32_t slot = next_byte(in), row = next_byte(in) * 16u;

	if (registry_row(memory.page, slot, row, &c))
		must(slot < REGISTRY_SLOTS && row < REGISTRY_ROWS);
	must(registry_requests_slot(memory.page) < REGISTRY_SLOTS);
}

static void begin(uint64_t seed)
{
	if (!memory.page) {
		/* What leaves the memory by a little is a fault, too. */
		uint8_t *p = mmap(NULL, registry_bytes() + 2 * GUARD, PROT_NONE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		must(p != MAP_FAILED && !mprotect(p + GUARD, registry_bytes(), PROT_READ | PROT_WRITE));
		memory.page = (struct registry_page *)(void *)(p + GUARD);
	}
	madvise(memory.page, registry_bytes(), MADV_DONTNEED);
	memory.watched = false;
	prng_init(&memory.prng, seed);
	world_init(&w, nothing, 1);
	cm_destroy(w.ends[SERVER].cm);
	neighbour();
	w.ends[SERVER].cm = process();
	must(!cm_channel_create(w.ends[SERVER].cm, &w, &w.ends[SERVER].channel));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const acts[])(struct input *) = {a_port,       an_id,       a_connection, a_request,
						       the_election, time_passes, a_tool_looks, a_forged_note};
	struct input in = {data, size};

	begin(next_byte(&in));
	memory.one_in = next_byte(&in);
	memory.watched = true;
	while (in.size) {
		memory.accesses = 0;
		acts[next_byte(&in) % (sizeof(acts) / sizeof(acts[0]))](&in);
	}
	/* What others wrote does no harm either when they write no more. */
	memory.one_in = 0;
	memory.accesses = 0;
	world_fini(&w);
	return 0;
}
