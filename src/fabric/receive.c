/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a port makes of a packet that comes over its link: it judges the packet's bytes, from LRH to
 * VCRC, and counts what is wrong with them (IBTA 7.8, 7.12, 16.1.3.5). Links are perfect unless a
 * fault was asked for, so only a port with a fault has bytes to judge.
 *
 * Invariant: a packet that is refused counts once in PortRcvErrors and once in one of
 * PortRcvErrorDetails, or in VL15Dropped.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/fabric.h"
#include "wire/bth.h"
#include "wire/deth.h"
#include "wire/ib_packet.h"
#include "wire/icrc.h"
#include "wire/notice.h"
#include "wire/opcode.h"
#include "wire/vcrc.h"

/* From one flipped bit to the next, so that they fall everywhere. */
enum { STRIDE = 41 };

static_assert(FABRIC_PACKET_BYTES == LRH_LEN + BTH_LEN + DETH_LEN + MAD_LEN + ICRC_LEN + VCRC_LEN, "of a MAD");

static uint8_t lane_of(const struct fabric_packet *k)
{
	return k->pkey == FABRIC_NO_PARTITION ? VL_MANAGEMENT : 0;
}

/* Data lanes that OperationalVLs says (IBTA 14.2.5.6). */
static uint8_t lanes(const struct port_info *i)
{
	static const uint8_t of[] = {1, 1, 2, 4, 8, 15};

	return i->operational_vls < sizeof(of) ? of[i->operational_vls] : of[sizeof(of) - 1];
}

/* With all 15 in use there is none that the port does not operate. */
static uint8_t wrong_lane(const struct fabric_packet *k, const struct port_info *i)
{
	return lanes(i) < VL_MANAGEMENT ? lanes(i) : lane_of(k);
}

/* The packet as its sender lays it out for port `i`, which writes what the fault says. */
static void lay_out(uint8_t *out, const struct fabric_packet *k, const struct port_info *i,
		    enum fabric_fault_kind fault)
{
	bool management = k->pkey == FABRIC_NO_PARTITION;
	const struct lrh lrh = {.vl = fault == FAULT_LANE ? wrong_lane(k, i) : lane_of(k),
				.lver = fault == FAULT_VERSION,
				.lnh = LNH_LOCAL,
				.dlid = k->dlid,
				.pktlen = (FABRIC_PACKET_BYTES - VCRC_LEN) / 4 + (fault == FAULT_LENGTH),
				.slid = k->slid};
	const struct bth bth = {
		.opcode = OP_UD_SEND_ONLY, .pkey = management ? 0xffff : (uint16_t)k->pkey, .dqpn = k->dqp};
	const struct deth deth = {.qkey = management ? 0 : GSI_QKEY, .sqpn = k->sqp};
	uint8_t *at = out;
	uint32_t icrc;

	lrh_encode(at, &lrh);
	bth_encode(at += LRH_LEN, &bth);
	deth_encode(at += BTH_LEN, &deth);
	memcpy(at += DETH_LEN, k->mad, MAD_LEN);
	at += MAD_LEN;
	icrc = ib_icrc(out, (size_t)(at - out));
	for (int b = 0; b < ICRC_LEN; b++)
		at[b] = (uint8_t)(icrc >> 8 * b);
	vcrc_seal(out, FABRIC_PACKET_BYTES - VCRC_LEN);
}

/* FABRIC_COUNTERS: nothing is wrong. */
static enum fabric_counter judge(const struct port_info *i, const uint8_t *packet)
{
	struct ib_packet p;

	switch (ib_packet_judge(&p, packet, FABRIC_PACKET_BYTES)) {
	case IB_GOOD: return p.lrh.vl != VL_MANAGEMENT && p.lrh.vl >= lanes(i) ? COUNT_MALFORMED : FABRIC_COUNTERS;
	case IB_SHORT:
	case IB_BAD_VCRC: return COUNT_PHYSICAL_ERRORS;
	default: return COUNT_MALFORMED;
	}
}

static void threshold_tell(struct fabric *f, const struct fabric_node *n, uint8_t port, uint16_t trap)
{
	fabric_trap_raise(f, &(struct fabric_trap){.node = (uint16_t)(n - f->nodes), .port = port, .number = trap});
}

/*
 * IBTA 7.12.2: too many physical errors, or too many overruns in a row, are errors of the link,
 * which trains again and succeeds. Here a good packet takes a physical error back, and each packet
 * is a flow control period of its own, as there is no time.
 */
static void thresholds(struct fabric *f, const struct fabric_node *n, uint8_t port, enum fabric_counter wrong)
{
	struct fabric_port *p = &n->ports[port];

	if (wrong == COUNT_PHYSICAL_ERRORS)
		p->physical_errors++;
	else if (p->physical_errors)
		p->physical_errors--;
	p->overruns = wrong == COUNT_OVERRUNS ? p->overruns + 1 : 0;
	if (p->physical_errors > p->info.phy_errors) {
		p->physical_errors = 0;
		p->counters[COUNT_INTEGRITY_ERRORS]++;
		p->counters[COUNT_LINK_RECOVERIES]++;
		threshold_tell(f, n, port, NOTICE_LINK_INTEGRITY);
	}
	if (p->overruns && p->overruns >= p->info.overrun_errors) {
		p->overruns = 0;
		p->counters[COUNT_EXCESSIVE_OVERRUNS]++;
		threshold_tell(f, n, port, NOTICE_OVERRUN);
	}
}

/* VL 15 has no credits: its packets may be dropped, and that is no error (IBTA 7.9.4). */
static bool is_dropped(struct fabric_port *p, const struct fabric_packet *k, enum fabric_fault_kind fault)
{
	if (fault != FAULT_ROOM || lane_of(k) != VL_MANAGEMENT)
		return false;
	p->counters[COUNT_VL15_DROPPED]++;
	return true;
}

bool fabric_receive(struct fabric *f, struct fabric_node *n, uint8_t port, const struct fabric_packet *k)
{
	struct fabric_port *p = &n->ports[port];
	enum fabric_fault_kind fault;
	uint8_t packet[FABRIC_PACKET_BYTES];
	enum fabric_counter wrong;
	uint32_t bit;

	p->counters[COUNT_RCV_PACKETS]++;
	p->counters[COUNT_RCV_WORDS] += (FABRIC_PACKET_BYTES - VCRC_LEN) / 4;
	if (p->fault.kind == FAULT_NONE)
		return true;
	fault = ++p->fault.received % p->fault.every ? FAULT_NONE : p->fault.kind;
	if (is_dropped(p, k, fault))
		return false;
	lay_out(packet, k, &p->info, fault);
	bit = p->fault.received * STRIDE % (FABRIC_PACKET_BYTES * 8);
	if (fault == FAULT_BIT)
		packet[bit / 8] ^= (uint8_t)(1 << bit % 8);
	wrong = fault == FAULT_ROOM ? COUNT_OVERRUNS : judge(&p->info, packet);
	thresholds(f, n, port, wrong);
	if (wrong == FABRIC_COUNTERS)
		return true;
	p->counters[COUNT_RCV_ERRORS]++;
	p->counters[wrong]++;
	return false;
}

/* ---- what a user asks for
 * ------------------------------------------------------------------------ */

static int refuse(char *why, size_t why_bytes, const char *text, const char *reason)
{
	snprintf(why, why_bytes, "\"%s\": %s", text, reason);
	return -EINVAL;
}

/* A number up to the character `end`, or 0. */
static uint32_t number_at(const char *text, char end)
{
	char *rest;
	unsigned long n = strtoul(text, &rest, 10);

	return rest != text && *rest == end && n <= UINT32_MAX ? (uint32_t)n : 0;
}

static enum fabric_fault_kind kind_named(const char *name, size_t len)
{
	static const char *const names[] = {[FAULT_BIT] = "bit",
					    [FAULT_LENGTH] = "length",
					    [FAULT_VERSION] = "version",
					    [FAULT_LANE] = "lane",
					    [FAULT_ROOM] = "room"};

	for (enum fabric_fault_kind k = FAULT_BIT; k <= FAULT_ROOM; k++) {
		if (strlen(names[k]) == len && !memcmp(names[k], name, len))
			return k;
	}
	return FAULT_NONE;
}

int fabric_fault_set(struct fabric *f, const char *text, char *why, size_t why_bytes)
{
	const char *open = strrchr(text, '['), *equals = strrchr(text, '='), *slash = strrchr(text, '/');
	char name[FABRIC_NAME_BYTES];
	struct fabric_fault fault = {0};
	struct fabric_node *n;
	uint32_t port;

	if (!open || !equals || !slash || open > equals || slash < equals || equals == text || equals[-1] != ']' ||
	    (size_t)(open - text) >= sizeof(name))
		return refuse(why, why_bytes, text, "this must be NODE[PORT]=KIND/N");
	memcpy(name, text, (size_t)(open - text));
	name[open - text] = '\0';
	n = fabric_find(f, name);
	port = number_at(open + 1, ']');
	if (!n || !port || port > n->port_count || !n->ports[port].linked)
		return refuse(why, why_bytes, text, "there is no such port with a link");
	fault.kind = kind_named(equals + 1, (size_t)(slash - equals - 1));
	if (fault.kind == FAULT_NONE)
		return refuse(why, why_bytes, text, "the kind must be bit, length, version, lane or room");
	fault.every = number_at(slash + 1, '\0');
	if (fault.every < 2)
		return refuse(why, why_bytes, text, "each how manyth packet must be a number from 2 on");
	n->ports[port].fault = fault;
	return 0;
}
