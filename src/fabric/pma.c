/* SPDX-License-Identifier: BSD-2-Clause */
/* The performance management agent (IBTA 16.1): the counters of the standard that a modelled fabric can have. */
#include <string.h>

#include "base/byteorder.h"
#include "fabric/fabric.h"

enum {
	DATA_AT = 64,
	CLASS_PORT_INFO = 0x01,
	PORT_COUNTERS = 0x12,
	PORT_SELECT_AT = DATA_AT + 1,
	COUNTER_SELECT_AT = DATA_AT + 2,
	LINK_DOWNED_AT = DATA_AT + 7,
	RCV_RELAY_ERRORS_AT = DATA_AT + 12,
	XMIT_CONSTRAINT_ERRORS_AT = DATA_AT + 16,
	RCV_CONSTRAINT_ERRORS_AT = DATA_AT + 17,
	XMIT_DATA_AT = DATA_AT + 24,
	RESPONSE_TIME = 18 /* 4.096 us << 18 */
};

/* Counters stop at their largest value. */
static uint32_t capped(uint64_t v, uint32_t max)
{
	return v < max ? (uint32_t)v : max;
}

static void counters_write(const struct fabric_port *p, uint8_t *mad)
{
	mad[LINK_DOWNED_AT] = (uint8_t)capped(p->links_downed, UINT8_MAX);
	put_be16(mad + RCV_RELAY_ERRORS_AT, (uint16_t)capped(p->rx_errors, UINT16_MAX));
	mad[XMIT_CONSTRAINT_ERRORS_AT] = (uint8_t)capped(p->tx_constraint_errors, UINT8_MAX);
	mad[RCV_CONSTRAINT_ERRORS_AT] = (uint8_t)capped(p->rx_constraint_errors, UINT8_MAX);
	put_be32(mad + XMIT_DATA_AT, capped(p->tx_words, UINT32_MAX));
	put_be32(mad + XMIT_DATA_AT + 4, capped(p->rx_words, UINT32_MAX));
	put_be32(mad + XMIT_DATA_AT + 8, capped(p->tx_packets, UINT32_MAX));
	put_be32(mad + XMIT_DATA_AT + 12, capped(p->rx_packets, UINT32_MAX));
}

/* A Set clears the counters whose bits are set in the selection (IBTA 16.1.3.5). */
static void counters_clear(struct fabric_port *p, uint16_t selected)
{
	if (selected & 1 << 2)
		p->links_downed = 0;
	if (selected & 1 << 5)
		p->rx_errors = 0;
	if (selected & 1 << 7)
		p->tx_constraint_errors = 0;
	if (selected & 1 << 8)
		p->rx_constraint_errors = 0;
	if (selected & 1 << 12)
		p->tx_words = 0;
	if (selected & 1 << 13)
		p->rx_words = 0;
	if (selected & 1 << 14)
		p->tx_packets = 0;
	if (selected & 1 << 15)
		p->rx_packets = 0;
}

static uint16_t port_counters(struct fabric_node *n, uint8_t *mad, bool set)
{
	uint8_t number = mad[PORT_SELECT_AT];
	struct fabric_port *p = number <= n->port_count ? &n->ports[number] : NULL;

	if (!p || (!number && n->type != NODE_SWITCH))
		return MAD_STATUS_BAD_VALUE;
	if (set)
		counters_clear(p, get_be16(mad + COUNTER_SELECT_AT));
	memset(mad + DATA_AT + 4, 0, MAD_LEN - DATA_AT - 4);
	counters_write(p, mad);
	return 0;
}

bool pma_answer(struct fabric_node *n, uint8_t in, uint8_t *bytes)
{
	struct mad h;
	bool set;

	mad_decode(&h, bytes);
	set = h.method == MAD_METHOD_SET;
	if (h.method != MAD_METHOD_GET && !set)
		return false;
	if (h.attribute == PORT_COUNTERS) {
		h.status = port_counters(n, bytes, set);
	} else if (h.attribute == CLASS_PORT_INFO) {
		memset(bytes + DATA_AT, 0, MAD_LEN - DATA_AT);
		bytes[DATA_AT] = MAD_BASE_VERSION;
		bytes[DATA_AT + 1] = 1;
		bytes[DATA_AT + 7] = RESPONSE_TIME;
		h.status = 0;
	} else {
		h.status = MAD_STATUS_BAD_ATTRIBUTE;
	}
	h.method = MAD_METHOD_GET_RESP;
	mad_encode(bytes, &h);
	return true;
}
