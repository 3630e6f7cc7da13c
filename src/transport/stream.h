/* SPDX-License-Identifier: BSD-2-Clause */
/* All that a QP must know of a stream on which MPA's start-up is done (RFC 5044 7.1). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/pkt.h"

struct stream_start {
	struct flow flow;       /* its flow_label is the stream's number */
	uint32_t room_bytes;    /* that may be sent now */
	uint16_t segment_bytes; /* the largest TCP segment */
	bool crc;               /* both ways */
	bool send_markers, receive_markers;
	bool sends_first; /* an RDMA Write without bytes is the first message (RFC 6581 9) */
	bool hears_first; /* nothing may be sent before the peer's first FPDU (RFC 5044 7.1.2) */
	uint8_t max_rd_atomic, max_dest_rd_atomic;
};
