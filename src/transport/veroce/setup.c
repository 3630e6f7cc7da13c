/* SPDX-License-Identifier: BSD-2-Clause */
/* Settings that all veRoCE QPs of a nic share: the flags they offer, how long ACKs wait, how losses are detected. */
#include <string.h>

#include "base/siphash.h"
#include "transport/veroce/caps.h"
#include "transport/veroce/engine.h"
#include "transport/veroce/loss.h"
#include "wire/encap.h"
#include "wire/veroce.h"

/* Defaults (12.3), where the nic's owner sets nothing. */
enum {
	ACK_NS = 20000,
	ACK_NS_RARE = 100000, /* at most a fourth of the tail probe timeout */
	PTO_NS_MIN = 100000,
	RTO_NS_MIN = 500000,
	FLOWLET_PACKETS = 8,
	EARLY_BYTES_MIN = 64 << 20, /* of early_bytes_max, */
	/*
	 * or so many windows of a queue pair, if that is more. One alone may have half: while a packet is lost twice,
	 * two windows of later packets come.
	 */
	EARLY_WINDOWS = 4
};

void veroce_settle(struct veroce_config *c, uint64_t window_bytes)
{
	uint64_t early_bytes = EARLY_WINDOWS * window_bytes;

	if (!c->port)
		c->port = encaps[ENCAP_VEROCE_IPV4].udp_port;
	if (!c->flowlet_packets)
		c->flowlet_packets = FLOWLET_PACKETS;
	if (!c->rx_window)
		c->rx_window = RX_WINDOW_MAX;
	if (!c->early_bytes_max)
		c->early_bytes_max = early_bytes > EARLY_BYTES_MIN ? early_bytes : EARLY_BYTES_MIN;
	if (!c->rto_ns_min)
		c->rto_ns_min = RTO_NS_MIN;
	if (!c->pto_ns_min)
		c->pto_ns_min = PTO_NS_MIN;
}

/* The extensions that CAPS packets offer. */
static uint16_t caps_flags(const struct transport *tp)
{
	const struct veroce_config *v = &tp->config.veroce;

	if (v->base_only || v->loss == LOSS_BASE)
		return 0;
	return VEROCE_CAPS_FLAGS | (v->trim ? CAPS_TRIM : 0) | (v->large ? CAPS_LARGE : 0) |
	       (v->roam == ROAM_OFF ? 0 : CAPS_ROAM) | (v->seal == SEAL_OFF || tp->unsealed ? 0 : CAPS_SEAL);
}

void veroce_setup(struct transport *tp, const uint8_t secret[16])
{
	static const struct loss_ops *const losses[] = {
		[LOSS_FAST] = &loss_fast, [LOSS_BASE] = &loss_base, [LOSS_IRN] = &loss_irn};
	const struct cc_link *cc = &tp->config.cc;
	uint64_t rare_ns = tp->config.veroce.pto_ns_min / 4;
	uint64_t half[2] = {siphash_u64(secret, 3), siphash_u64(secret, 4)};
	enum cc_shares shares = cc->params ? cc->params->rxshare : CC_SHARES_CROWD;

	memcpy(tp->secret, half, sizeof(half));
	tp->caps_flags = caps_flags(tp);
	/* A queue that trims holds no crowd's packets, but names them to their senders. */
	if (!(tp->caps_flags & VEROCE_CAPS_FLAGS) || (shares == CC_SHARES_CROWD && tp->config.veroce.trim))
		shares = CC_SHARES_OFF;
	rxshare_init(&tp->rxshare, shares == CC_SHARES_CROWD, shares == CC_SHARES_OFF ? 0 : cc->line_rate_bps,
		     cc->base_rtt_ns);
	if (tp->rxshare.line_kbps)
		tp->caps_flags |= CAPS_RXSHARE;
	tp->decoder.veroce_port = tp->config.veroce.port;
	tp->decoder.trims = tp->caps_flags & CAPS_TRIM;
	tp->acks[ACK_LAZY].delay_ns = ACK_NS;
	tp->acks[ACK_RARE].delay_ns = rare_ns < ACK_NS_RARE ? rare_ns : ACK_NS_RARE;
	tp->loss = losses[tp->config.veroce.loss];
	pair_table_init(&tp->pairs, &tp->config, &tp->alloc, tp->secret);
}
