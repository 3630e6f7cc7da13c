/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program says "I listen" and "connect to me" over different ways, so a request may come some milliseconds before its
 * listener. A kernel takes as long to resolve the address. The number kept is bounded, in all and from one source; a
 * request that does not fit is dropped, and comes again.
 */
#include "engine/requests.h"

#include <string.h>

#include "engine/map_file.h"
#include "space/space.h"

enum {
	MAD_AT = 20, /* behind BTH and DETH */
	KEPT_MAX = 256,
	KEPT_MAX_OF_ONE = 64, /* from one address */
	PACKET_BYTES_MAX = 320,
	HOPS_MAX = 2, /* so that no message circulates, whatever the registry says */
	KEPT_NS = 100000000,
	AGAIN_NS = 10000000
};

struct kept {
	struct flow flow;
	uint64_t until_ns;
	uint32_t len; /* 0: none */
	unsigned hops;
	uint8_t bytes[PACKET_BYTES_MAX];
};

struct requests {
	unsigned count;
	uint64_t again_ns;
	uint32_t listens; /* of cm, at the last look */
	struct kept kept[KEPT_MAX];
};

struct requests *requests_new(void)
{
	return space_get(sizeof(struct requests));
}

void requests_free(struct requests *r)
{
	space_put(r, sizeof(*r));
}

/* A place to keep it in, or NULL. */
static struct kept *room_for(struct requests *r, const struct pkt *p)
{
	struct kept *room = NULL;
	unsigned of_one = 0;

	if (r->count == KEPT_MAX || p->len > PACKET_BYTES_MAX)
		return NULL;
	for (unsigned i = 0; i < KEPT_MAX; i++) {
		struct kept *k = &r->kept[i];

		if (!k->len)
			room = k;
		else if (!memcmp(k->flow.src, p->flow->src, sizeof(k->flow.src)))
			of_one++;
	}
	return of_one < KEPT_MAX_OF_ONE ? room : NULL;
}

static void keep(struct loop *l, const struct pkt *p, unsigned hops, uint64_t now_ns)
{
	struct requests *r = l->requests;
	struct kept *k = room_for(r, p);

	if (!k)
		return;
	if (!r->count++)
		r->again_ns = now_ns + AGAIN_NS;
	k->flow = *p->flow;
	k->until_ns = now_ns + KEPT_NS;
	k->hops = hops;
	k->len = p->len;
	memcpy(k->bytes, p->data, p->len);
}

/* The slot of the process that gets the message. CM_NOWHERE: none, or one that has ended. */
static int route(struct loop *l, const struct pkt *p, unsigned hops)
{
	struct flow shown = *p->flow;
	int to;

	map_follow(l->map);
	if (!nic_show_flow(l->nic, &shown))
		return CM_HERE; /* where it is dropped */
	to = cm_route(l->cm, &shown, p->data + MAD_AT, !hops);
	if (to >= 0 && (hops >= HOPS_MAX || cm_is_gone(l->cm, to)))
		return CM_NOWHERE;
	return to;
}

static bool is_whole(const struct pkt *p)
{
	return p->len >= MAD_AT + MAD_LEN;
}

void requests_take(struct loop *l, const struct pkt *p, unsigned hops, uint64_t now_ns)
{
	int to = l->cm && is_whole(p) ? route(l, p, hops) : CM_HERE;

	if (to >= 0)
		group_forward(l->group, (unsigned)to, p, hops);
	else if (to == CM_NOWHERE && l->requests)
		keep(l, p, hops, now_ns);
	else
		nic_input(l->nic, p, 1, now_ns);
}

/* True: it is kept no longer. When its time is over the cm gets it, and refuses it. */
static bool let_go(struct loop *l, struct kept *k, uint64_t now_ns)
{
	struct pkt p = {.data = k->bytes, .flow = &k->flow, .len = k->len, .train = 1};
	int to = route(l, &p, k->hops);

	if (to == CM_NOWHERE && now_ns < k->until_ns)
		return false;
	if (to >= 0)
		group_forward(l->group, (unsigned)to, &p, k->hops);
	else
		nic_input(l->nic, &p, 1, now_ns);
	return true;
}

bool requests_again(struct loop *l, uint64_t now_ns)
{
	struct requests *r = l->requests;
	bool moved = false;

	if (!r || !r->count || (now_ns < r->again_ns && r->listens == cm_listens(l->cm)))
		return false;
	for (unsigned i = 0; i < KEPT_MAX; i++) {
		if (!r->kept[i].len || !let_go(l, &r->kept[i], now_ns))
			continue;
		r->kept[i].len = 0;
		r->count--;
		moved = true;
	}
	r->listens = cm_listens(l->cm);
	r->again_ns = now_ns + AGAIN_NS;
	return moved;
}

uint64_t requests_deadline_ns(const struct loop *l)
{
	return l->requests && l->requests->count ? l->requests->again_ns : UINT64_MAX;
}
