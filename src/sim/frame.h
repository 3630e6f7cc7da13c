/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A packet of the simulated network as the Ethernet frame that a capture shows. It has MAC, IPv4 and
 * UDP headers, and the transport's headers as the nic wrote them. Payload and ICRC do not exist, so a
 * frame is cut before them and only its length counts them. A PFC frame is complete.
 *
 * Host number i is 10.0.0.0 + i at MAC address 02:00:00:00:00:00 + i on its whole way, as if all
 * switches were one bridge.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "net/packet.h"

enum {
	FRAME_BODY_BYTES_MAX = 256, /* of a packet's body that are shown */
	FRAME_BYTES_MAX = 14 + 20 + 8 + FRAME_BODY_BYTES_MAX
};

/*
 * Writes the frame without its FCS; returns how many bytes exist. *length: its bytes on the wire,
 * without FCS.
 */
size_t frame_encode(uint8_t frame[FRAME_BYTES_MAX], const struct packet *, uint32_t *length);

/*
 * Completes a frame that frame_encode() wrote, `bytes` of `length`, in a buffer of `length`: payload of
 * zeroes and the ICRC that belongs to it, for dissectors that need complete packets.
 */
void frame_fill(uint8_t *frame, size_t bytes, uint32_t length);
