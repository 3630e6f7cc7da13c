/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The events of a network as lines of text, so that diff can compare two runs. A line has the time in
 * picoseconds, the event, its place, and further facts, with one blank between them:
 *
 *     80000 sent 0-3 flow 2 RC_WRITE_FIRST psn 4711 qp 0x1c2a bytes 1122 class 3
 *     1169760 dropped 3-1 flow 2 RC_WRITE_MIDDLE psn 4719 qp 0x1c2a bytes 1106 class 3 queue 60830 buffer-full
 *
 * Ports are two nodes, from and to. An answer's flow is the one that its queue pair is working on; "-" is
 * none.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "net/network.h"

enum { EVENT_LOG_LINE_BYTES = 256 };

/* Writes a line that ends in a newline; returns its length. */
size_t event_log_network(char line[EVENT_LOG_LINE_BYTES], const struct topology *, const struct network_record *,
			 uint64_t now_ps);

/* "posted", "done", "broke": a flow from host to host. */
size_t event_log_flow(char line[EVENT_LOG_LINE_BYTES], const char *what, uint32_t flow, uint32_t src, uint32_t dst,
		      uint64_t bytes, uint64_t now_ps);
