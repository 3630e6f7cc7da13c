/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QPN 1, the general services interface (IBTA 3.9.4, 10.2.5): management datagrams in and out, as values. No program
 * owns it. Datagrams that arrive are kept for nic_mad_take(); those that are sent leave before the QPs' turns.
 */
#include <errno.h>
#include <string.h>

#include "base/archive.h"
#include "base/ipudp.h"
#include "nic/state.h"
#include "wire/deth.h"
#include "wire/psn.h"

enum { GSI_WAITING_MAX = 1024 /* in either direction; more of them are dropped, as at a receive queue */ };

struct gsi_mad {
	struct list link;
	struct flow flow;
	uint8_t mad[MAD_LEN];
};

void gsi_init(struct gsi *g)
{
	list_init(&g->in);
	list_init(&g->out);
}

static struct gsi_mad *keep(struct nic *nic, struct list *where, uint32_t *count, const struct flow *flow,
			    const uint8_t *mad)
{
	struct gsi_mad *m = *count < GSI_WAITING_MAX ? pool_get(&nic->tp.pool, sizeof(*m)) : NULL;

	if (!m)
		return NULL;
	m->flow = *flow;
	memcpy(m->mad, mad, MAD_LEN);
	list_append(where, &m->link);
	++*count;
	return m;
}

static struct gsi_mad *first(const struct list *where)
{
	return list_empty(where) ? NULL : container_of(where->next, struct gsi_mad, link);
}

static void drop(struct nic *nic, struct gsi_mad *m, uint32_t *count)
{
	list_remove(&m->link);
	--*count;
	pool_put(&nic->tp.pool, m, sizeof(*m));
}

/* ---- in -------------------------------------------------------------------------------------------- */

/* A MAD is one UD packet of MAD_LEN without immediate data, from QPN 1, with the well-known Q_Key (IBTA 13.5.2). */
static bool is_mad(const struct rx *rx)
{
	struct deth deth;

	if (rx->service != SVC_UD || rx->bth->opcode != OP_UD_SEND_ONLY || rx->payload_len != MAD_LEN)
		return false;
	deth_decode(&deth, rx_header(rx, H_DETH));
	return deth.qkey == GSI_QKEY && deth.sqpn == GSI_QPN;
}

void gsi_input(struct nic *nic, const struct rx *rx)
{
	struct nic_counters *n = &nic->tp.counters;

	if (nic->tp.mrs.no_payload || !is_mad(rx))
		n->rx_no_qp++; /* other packets find no QP with that number */
	else if (!nic_has_pkey(nic, rx->bth->pkey))
		n->rx_wrong_pkey++; /* any of the table will do (IBTA 10.9.4) */
	else if (!keep(nic, &nic->gsi.in, &nic->gsi.in_count, rx->pkt->flow, rx->payload))
		n->rx_dropped++;
}

bool nic_has_mads(const struct nic *nic)
{
	return !list_empty(&nic->gsi.in);
}

bool nic_mad_take(struct nic *nic, struct flow *flow, uint8_t *mad)
{
	struct gsi_mad *m;
	bool shown = false;

	while (!shown && (m = first(&nic->gsi.in))) {
		*flow = m->flow;
		shown = nic_show_flow(nic, flow);
		memcpy(mad, m->mad, MAD_LEN);
		drop(nic, m, &nic->gsi.in_count);
		nic->tp.counters.rx_wrong_source += !shown;
	}
	return shown;
}

/* ---- out ------------------------------------------------------------------------------------------- */

bool nic_mad_send(struct nic *nic, const struct flow *flow, const uint8_t *mad)
{
	struct flow f = *flow;

	if (nic->tp.gid_map && !gid_map_hide(nic->tp.gid_map, &f))
		return false;
	f.sport = (flow_is_ipv4(&f) ? nic->tp.config.sport_ipv4 : nic->tp.config.sport_ipv6)[0];
	f.dport = nic->tp.config.rocev2.port;
	return keep(nic, &nic->gsi.out, &nic->gsi.out_count, &f, mad);
}

static bool send_one(struct nic *nic, const struct gsi_mad *m)
{
	struct tx *tx = &nic->tp.tx;
	const struct flow *flow = tx_keep_flow(tx, &m->flow);
	uint8_t *p = flow ? tx_room(tx, MAD_LEN + TX_HEADROOM_MAX) : NULL;

	if (!p)
		return false;
	bth_encode(p, &(struct bth){.opcode = OP_UD_SEND_ONLY,
				    .migreq = true,
				    .pkey = nic->pkeys[0],
				    .dqpn = GSI_QPN,
				    .psn = nic->gsi.psn});
	deth_encode(p + BTH_LEN, &(struct deth){.qkey = GSI_QKEY, .sqpn = GSI_QPN});
	memcpy(p + BTH_LEN + DETH_LEN, m->mad, MAD_LEN);
	tx_commit(tx, flow, GSI_QPN, BTH_LEN + DETH_LEN + MAD_LEN);
	nic->gsi.psn = psn_add(nic->gsi.psn, 1);
	return true;
}

void gsi_output(struct nic *nic)
{
	struct gsi_mad *m;

	while ((m = first(&nic->gsi.out)) && send_one(nic, m))
		drop(nic, m, &nic->gsi.out_count);
}

/* ---- as bytes --------------------------------------------------------------------------------------- */

static void list_archive(struct archive *a, struct nic *nic, struct list *where, uint32_t *count, uint16_t type)
{
	struct list *l = where;
	uint32_t all = archive_count(a, *count, GSI_WAITING_MAX);

	for (uint32_t i = 0; i < all && !a->err; i++) {
		struct gsi_mad new = {0}, *m = &new;

		l = l->next;
		if (!a->loads)
			m = container_of(l, struct gsi_mad, link);
		archive_begin(a, type, 1);
		ARCHIVE_ARRAYS(a, &m->flow, src, dst);
		ARCHIVE(a, &m->flow, flow_label, ifindex, sport, dport, tos, ttl, sl, neighbour);
		ARCHIVE_ARRAYS(a, m, mad);
		archive_end(a);
		if (a->loads && !a->err && !keep(nic, where, count, &m->flow, m->mad))
			archive_fail(a, -ENOMEM);
		l = a->loads ? where : l;
	}
}

void gsi_archive(struct archive *a, struct nic *nic, uint16_t type)
{
	ARCHIVE(a, &nic->gsi, psn);
	list_archive(a, nic, &nic->gsi.in, &nic->gsi.in_count, type);
	list_archive(a, nic, &nic->gsi.out, &nic->gsi.out_count, type);
}
