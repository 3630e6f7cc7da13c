/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The length judge: the one place that decides whether a packet has the bytes that its opcode
 * prescribes. After it no decoder can fail.
 *
 *     data                                                      data + len
 *     | BTH | extended headers | payload | 0..3 pad | ICRC (4 bytes) |
 *     |<----- *header_len ---->|<------->| *payload_len
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/bth.h"
#include "wire/opcode.h"

/*
 * True where the opcode is known, its headers, the pad and the ICRC fit into len, what lies between
 * headers and ICRC is a multiple of 4 (IBTA 9.2, PadCnt), and an opcode without payload has none.
 * Any bytes at any length may be given. Not judged: the transport version, P_Key, QPN, the ICRC's
 * value, and whether the payload suits the path MTU (F_FULL). Outputs are set only on true.
 */
bool opcode_judge_length(const uint8_t *data, uint32_t len, const struct opcode_info **info, struct bth *bth,
			 uint32_t *header_len, uint32_t *payload_len);
