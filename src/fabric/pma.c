/* SPDX-License-Identifier: BSD-2-Clause */
/* The performance management agent (IBTA 16.1): the counters of the standard that a modelled fabric
 * can have. */
#include <string.h>

#include "base/byteorder.h"
#include "fabric/fabric.h"

enum {
	DATA_AT = 64,
	CLASS_PORT_INFO = 0x01,
	PORT_COUNTERS = 0x12,
	PORT_RCV_ERROR_DETAILS = 0x15,
	PORT_XMIT_DISCARD_DETAILS = 0x16,
	PORT_SELECT_AT = DATA_AT + 1,
	COUNTER_SELECT_AT = DATA_AT + 2,
	COUNTERS_AT = DATA_AT + 4,
	RESPONSE_TIME = 18 /* 4.096 us << 18 */
};

/* Where a counter stands in its attribute, in bits from the attribute's data, and its bit in
 * CounterSelect. */
struct place {
	uint16_t attribute;
	uint8_t counter; /* enum fabric_counter */
	uint16_t at;
	uint8_t bits;
	uint8_t select;
};

/* clang-format off */
static const struct place places[] = {
	/* IBTA 16.1.3.5 */
	{PORT_COUNTERS, COUNT_LINK_RECOVERIES,         48,  8,  1},
	{PORT_COUNTERS, COUNT_LINKS_DOWNED,            56,  8,  2},
	{PORT_COUNTERS, COUNT_RCV_ERRORS,              64, 16,  3},
	{PORT_COUNTERS, COUNT_RELAY_ERRORS,            96, 16,  5},
	{PORT_COUNTERS, COUNT_XMIT_DISCARDS,          112, 16,  6},
	{PORT_COUNTERS, COUNT_XMIT_CONSTRAINT_ERRORS, 128,  8,  7},
	{PORT_COUNTERS, COUNT_RCV_CONSTRAINT_ERRORS,  136,  8,  8},
	{PORT_COUNTERS, COUNT_INTEGRITY_ERRORS,       152,  4,  9},
	{PORT_COUNTERS, COUNT_EXCESSIVE_OVERRUNS,     156,  4, 10},
	{PORT_COUNTERS, COUNT_VL15_DROPPED,           176, 16, 11},
	{PORT_COUNTERS, COUNT_XMIT_WORDS,             192, 32, 12},
	{PORT_COUNTERS, COUNT_RCV_WORDS,              224, 32, 13},
	{PORT_COUNTERS, COUNT_XMIT_PACKETS,           256, 32, 14},
	{PORT_COUNTERS, COUNT_RCV_PACKETS,            288, 32, 15},
	/* IBTA 16.1.4.1, 16.1.4.2 */
	{PORT_RCV_ERROR_DETAILS, COUNT_PHYSICAL_ERRORS, 32, 16, 0},
	{PORT_RCV_ERROR_DETAILS, COUNT_MALFORMED,       48, 16, 1},
	{PORT_RCV_ERROR_DETAILS, COUNT_OVERRUNS,        64, 16, 2},
	{PORT_RCV_ERROR_DETAILS, COUNT_DLID_MAPPING,    80, 16, 3},
	{PORT_RCV_ERROR_DETAILS, COUNT_VL_MAPPING,      96, 16, 4},
	{PORT_RCV_ERROR_DETAILS, COUNT_LOOPING,        112, 16, 5},
	{PORT_XMIT_DISCARD_DETAILS, COUNT_INACTIVE,     32, 16, 0},
};
/* clang-format on */

/* Counters stop at their largest value. */
static void place_write(const struct place *c, uint8_t *data, uint64_t v)
{
	uint64_t max = (UINT64_C(1) << c->bits) - 1;
	uint8_t *p = data + c->at / 8;

	if (v > max)
		v = max;
	if (c->bits == 4)
		*p |= (uint8_t)(v << (4 - c->at % 8));
	else if (c->bits == 8)
		*p = (uint8_t)v;
	else if (c->bits == 16)
		put_be16(p, (uint16_t)v);
	else
		put_be32(p, (uint32_t)v);
}

/* A Set clears the counters whose bits are set in the selection (IBTA 16.1.3.5). */
static uint16_t counters_answer(struct fabric_node *n, uint16_t attribute, uint8_t *mad, bool set)
{
	uint16_t selected = get_be16(mad + COUNTER_SELECT_AT);
	uint8_t number = mad[PORT_SELECT_AT];
	struct fabric_port *p = number <= n->port_count ? &n->ports[number] : NULL;

	if (!p || (!number && n->type != NODE_SWITCH))
		return MAD_STATUS_BAD_VALUE;
	memset(mad + COUNTERS_AT, 0, MAD_LEN - COUNTERS_AT);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (places[i].attribute != attribute)
			continue;
		if (set && selected >> places[i].select & 1)
			p->counters[places[i].counter] = 0;
		place_write(&places[i], mad + DATA_AT, p->counters[places[i].counter]);
	}
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
	switch (h.attribute) {
	case PORT_COUNTERS:
	case PORT_RCV_ERROR_DETAILS:
	case PORT_XMIT_DISCARD_DETAILS: h.status = counters_answer(n, h.attribute, bytes, set); break;
	case CLASS_PORT_INFO:
		memset(bytes + DATA_AT, 0, MAD_LEN - DATA_AT);
		bytes[DATA_AT] = MAD_BASE_VERSION;
		bytes[DATA_AT + 1] = 1;
		bytes[DATA_AT + 7] = RESPONSE_TIME;
		h.status = 0;
		break;
	default: h.status = MAD_STATUS_BAD_ATTRIBUTE;
	}
	h.method = MAD_METHOD_GET_RESP;
	mad_encode(bytes, &h);
	return true;
}
