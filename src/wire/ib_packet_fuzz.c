/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as a packet of a link: what is good has its parts inside, and its headers come back as they were. The same
 * bytes with a VCRC that fits reach the checks behind the first one. The first six bytes are a flow control packet,
 * too.
 */
#include <stdlib.h>
#include <string.h>

#include "support/fuzz_input.h"
#include "wire/bth.h"
#include "wire/flow_control.h"
#include "wire/ib_packet.h"
#include "wire/icrc.h"
#include "wire/vcrc.h"

static void check_packet(const uint8_t *data, size_t size)
{
	uint8_t head[LRH_LEN + GRH_LEN];
	struct ib_packet p;

	if (ib_packet_judge(&p, data, size) != IB_GOOD)
		return;
	must(p.at + (size_t)p.len + VCRC_LEN == size && p.len >= BTH_LEN + ICRC_LEN);
	must(p.lrh.dlid && p.lrh.slid && !p.lrh.lver);
	lrh_encode(head, &p.lrh);
	must(head[0] == data[0] && head[1] == (data[1] & 0xf3) && !memcmp(head + 2, data + 2, 2));
	must(head[4] == (data[4] & 7) && !memcmp(head + 5, data + 5, 3));
	if (p.lrh.lnh == LNH_GLOBAL) {
		grh_encode(head, &p.grh);
		must(!memcmp(head, data + LRH_LEN, GRH_LEN));
	}
	ib_icrc(data, size - VCRC_LEN - ICRC_LEN);
}

static void check_flow_control(const uint8_t *data)
{
	uint8_t copy[FLOW_CONTROL_LEN], out[FLOW_CONTROL_LEN];
	struct flow_control h;

	memcpy(copy, data, sizeof(copy));
	vcrc_seal(copy, FLOW_CONTROL_LEN - VCRC_LEN);
	must(flow_control_decode(&h, copy));
	flow_control_encode(out, &h);
	must(!memcmp(out, copy, sizeof(out)));
	must(flow_control_decode(&h, data) == !memcmp(data, copy, sizeof(copy)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy;

	if (size >= FLOW_CONTROL_LEN)
		check_flow_control(data);
	check_packet(data, size);
	if (size < VCRC_LEN)
		return 0;
	copy = malloc(size);
	must(copy != NULL);
	memcpy(copy, data, size);
	vcrc_seal(copy, size - VCRC_LEN);
	check_packet(copy, size);
	free(copy);
	return 0;
}
