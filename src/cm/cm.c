/* SPDX-License-Identifier: BSD-2-Clause */
/* The four calls, and the checks that every MAD passes. */
#include <string.h>

#include "base/siphash.h"
#include "cm/state.h"

static void derive(uint8_t *to, const uint8_t *secret, uint64_t which)
{
	uint64_t half[2] = {siphash_u64(secret, which), siphash_u64(secret, which + 1)};

	memcpy(to, half, sizeof(half));
}

struct cm *cm_create(const struct cm_config *c)
{
	struct cm *cm = alloc_get(&c->alloc, sizeof(*cm));

	if (!cm)
		return NULL;
	cm->alloc = c->alloc;
	pool_init(&cm->pool, &cm->alloc);
	derive(cm->secret, c->secret, 0);
	derive(cm->table_secret, c->secret, 2);
	prng_init(&cm->prng, siphash_u64(c->secret, 4));
	cm->number_step = c->cm_count ? c->cm_count : 1;
	cm->next_number = cm->next_join = c->cm_index;
	cm->bound = c->bound;
	cm->pkey = c->pkey ? c->pkey : NIC_PKEY_DEFAULT;
	cm->next_comm_id = (uint32_t)siphash_u64(c->secret, 5);
	cm->slot = c->slot;
	cm->ca_guid = c->ca_guid;
	cm->port_first = c->port_first;
	cm->port_last = c->port_last;
	cm->registry = (struct registry){.page = c->registry,
					 .slot = c->slot,
					 .lives = c->lives,
					 .ctx = c->lives_ctx,
					 .in_the_way = REGISTRY_NOBODY};
	registry_join(&cm->registry, (uint32_t)siphash_u64(c->secret, 6) | 1);
	cm_set_gids(cm, c->gids, c->gid_count);
	/* The process that had our slot before may have been killed. */
	cm->sweep = (struct registry_sweep){.slot = c->slot, .end = c->slot + 1, .looked = true};
	cm->sweeping = cm->registry.page;
	list_init(&cm->conns);
	list_init(&cm->channels);
	list_init(&cm->stirred);
	list_init(&cm->out);
	map_init(&cm->by_local, &cm->alloc);
	map_init(&cm->by_remote, &cm->alloc);
	map_init(&cm->by_remote_qpn, &cm->alloc);
	map_init(&cm->by_number, &cm->alloc);
	map_init(&cm->by_port, &cm->alloc);
	map_init(&cm->by_join, &cm->alloc);
	mpa_init(cm, c);
	return cm;
}

void cm_destroy(struct cm *cm)
{
	struct alloc alloc;

	if (!cm)
		return;
	alloc = cm->alloc;
	while (!list_empty(&cm->channels))
		cm_channel_destroy(container_of(cm->channels.next, struct cm_channel, link), 0);
	mpa_fini(cm);
	while (!list_empty(&cm->conns))
		conn_close(container_of(cm->conns.next, struct conn, link));
	while (!list_empty(&cm->out))
		cm_output(cm, &(struct flow){0}, (uint8_t[MAD_LEN]){0});
	map_fini(&cm->by_local);
	map_fini(&cm->by_remote);
	map_fini(&cm->by_remote_qpn);
	map_fini(&cm->by_number);
	map_fini(&cm->by_port);
	map_fini(&cm->by_join);
	registry_leave(&cm->registry);
	alloc_put(&alloc, cm->seen, CM_SEEN * sizeof(*cm->seen));
	pool_fini(&cm->pool);
	alloc_put(&alloc, cm, sizeof(*cm));
}

/* ---- in --------------------------------------------------------------------------------------------- */

typedef void input_fn(struct cm *, const struct flow *in, const struct mad *, const uint8_t *msg, uint64_t now_ns);

/* LAP and APR are about alternate paths, which RoCE does not have: no answer, as Linux. */
static input_fn *const input_of[] = {
	[CM_REQ] = passive_req,  [CM_MRA] = hangup_mra,    [CM_REJ] = hangup_rej,
	[CM_REP] = active_rep,   [CM_RTU] = passive_rtu,   [CM_DREQ] = hangup_dreq,
	[CM_DREP] = hangup_drep, [CM_SIDR_REQ] = sidr_req, [CM_SIDR_REP] = sidr_rep,
};

/* A REQ of another class version is answered with REJ; all other unknown messages are dropped (IBTA 12.6.7.2). */
static bool header_makes_sense(const struct mad *h)
{
	return h->base_version == MAD_BASE_VERSION && h->mgmt_class == CM_CLASS && h->method == MAD_METHOD_SEND &&
	       !h->status && (h->class_version == CM_CLASS_VERSION || h->attribute == CM_REQ);
}

/* Only a host can be answered, not a group or the unspecified address. */
static bool source_is_a_host(const struct flow *in)
{
	struct cm_addr from = {0};

	memcpy(from.ip, in->src, sizeof(from.ip));
	if (addr_is_wildcard(&from))
		return false;
	if (ip_is_ipv4(in->src))
		return in->src[12] < 224 && in->src[12] != 0;
	return in->src[0] != 0xff;
}

void cm_input(struct cm *cm, const struct flow *in, const uint8_t *mad, uint64_t now_ns)
{
	struct mad h;
	input_fn *input;

	mad_decode(&h, mad);
	input = h.attribute < sizeof(input_of) / sizeof(input_of[0]) ? input_of[h.attribute] : NULL;
	if (!input || !header_makes_sense(&h) || !source_is_a_host(in))
		return;
	input(cm, in, &h, mad + MAD_HEADER_LEN, now_ns);
}

/* ---- out, and time ------------------------------------------------------------------------------------ */

bool cm_output(struct cm *cm, struct flow *flow, uint8_t *mad)
{
	struct out *o;

	if (list_empty(&cm->out))
		return false;
	o = container_of(cm->out.next, struct out, link);
	*flow = o->flow;
	memcpy(mad, o->mad, MAD_LEN);
	list_remove(&o->link);
	cm->out_count--;
	pool_put(&cm->pool, o, sizeof(*o));
	return true;
}

uint64_t cm_deadline(const struct cm *cm)
{
	uint64_t mads = list_empty(&cm->out) && !will_is_due(cm) ? timers_deadline(&cm->timers) : 0;
	uint64_t streams = mpa_deadline(cm);

	return mads < streams ? mads : streams;
}

void cm_expire(struct cm *cm, uint64_t now_ns)
{
	struct timer *t;

	mpa_expire(cm, now_ns);
	while ((t = timers_take_due(&cm->timers, now_ns)))
		conn_expire(container_of(t, struct conn, timer), now_ns);
	will_expire(cm, now_ns);
}
