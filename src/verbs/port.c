/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/port.h"

#include <stddef.h>

enum { DOWN = 1, ACTIVE = 4, POLLING = 2, DISABLED = 3, LINK_UP = 5 };
enum { WIDTH_1X = 1, WIDTH_2X = 16, WIDTH_4X = 2 };
enum { SDR = 1, DDR = 2, FDR10 = 8, EDR = 32, HDR = 64, NDR = 128 };

#define GBPS UINT64_C(1000000000)

const struct port_state *port_state(const struct engine_port *p)
{
	static const struct port_state active = {ACTIVE, LINK_UP, "4: ACTIVE", "5: LinkUp"},
				       polling = {DOWN, POLLING, "1: DOWN", "2: Polling"},
				       disabled = {DOWN, DISABLED, "1: DOWN", "3: Disabled"};

	return p->active ? &active : p->enabled ? &polling : &disabled;
}

static const struct port_rate rates[] = {
	{GBPS, SDR, WIDTH_1X, "2.5 Gb/sec (1X SDR)"},         {10 * GBPS, FDR10, WIDTH_1X, "10 Gb/sec (1X FDR10)"},
	{20 * GBPS, DDR, WIDTH_4X, "20 Gb/sec (4X DDR)"},     {25 * GBPS, EDR, WIDTH_1X, "25 Gb/sec (1X EDR)"},
	{40 * GBPS, FDR10, WIDTH_4X, "40 Gb/sec (4X FDR10)"}, {50 * GBPS, EDR, WIDTH_2X, "50 Gb/sec (2X EDR)"},
	{100 * GBPS, EDR, WIDTH_4X, "100 Gb/sec (4X EDR)"},   {200 * GBPS, HDR, WIDTH_4X, "200 Gb/sec (4X HDR)"},
	{UINT64_MAX, NDR, WIDTH_4X, "400 Gb/sec (4X NDR)"},
};

const struct port_rate *port_rate(uint64_t bps)
{
	const struct port_rate *r = rates;

	while (r->bps_max < (bps ? bps : 100 * GBPS))
		r++;
	return r;
}
