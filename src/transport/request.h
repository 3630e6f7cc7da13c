/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Send WQEs at a requester of any protocol: judging one, reading its bytes, failing it.
 *
 * Private to src/transport and src/iwarp and src/nic.
 */
#pragma once

#include "transport/qp.h"

/* A packet's place in its message. */
enum request_place { REQUEST_FIRST, REQUEST_MIDDLE, REQUEST_LAST, REQUEST_ONLY, REQUEST_PLACES };

/* RC's numbers; UC's are UC_OPCODES higher. */
enum { UC_OPCODES = 0x20 };
extern const uint8_t request_opcode[WR_OPCODE_COUNT][REQUEST_PLACES];

static inline bool request_is_read(const struct send_wqe *w)
{
	return w->opcode == WR_READ;
}

/* Its response has the value that was there. */
static inline bool request_is_atomic(const struct send_wqe *w)
{
	return w->opcode == WR_CMP_SWAP || w->opcode == WR_FETCH_ADD;
}

/* It counts against max_rd_atomic, and is done when its response has come. */
static inline bool request_has_response(const struct send_wqe *w)
{
	const uint32_t have =
		1u << WR_READ | 1u << WR_CMP_SWAP | 1u << WR_FETCH_ADD | 1u << WR_FLUSH | 1u << WR_ATOMIC_WRITE;

	return have >> w->opcode & 1;
}

/* Bytes that the packet of a request with a response carries. */
static inline uint32_t request_payload(const struct send_wqe *w)
{
	return w->opcode == WR_ATOMIC_WRITE ? ATOMIC_WRITE_BYTES : 0;
}

/* Bytes of a response that go to the WQE's memory. */
static inline uint32_t request_result_bytes(const struct send_wqe *w)
{
	return w->opcode == WR_ATOMIC_WRITE ? 0 : w->length;
}

/* No packet is sent for it: it is done when its turn comes, and complete when all before it are. */
static inline bool request_is_local(const struct send_wqe *w)
{
	return w->opcode == WR_BIND_MW || w->opcode == WR_LOCAL_INV;
}

/* Packets that `bytes` are cut into; 0 bytes are one packet. */
static inline uint32_t request_packets(uint32_t bytes, uint32_t mtu)
{
	return bytes > mtu ? (bytes - 1) / mtu + 1 : 1;
}

static inline enum request_place request_place(bool first, bool last)
{
	if (first)
		return last ? REQUEST_ONLY : REQUEST_FIRST;
	return last ? REQUEST_LAST : REQUEST_MIDDLE;
}

/*
 * Executes the local request at qp->sq.next (IBTA 10.6.7.1.2, 10.6.7.2.5), once, and counts it as started. False: it is
 * not allowed and fails in turn, or a CQ overran.
 */
bool request_execute(struct transport *, struct qp *, uint64_t now_ns);
/* Judges a WQE before its first packet; WC_SUCCESS: it may be sent. */
enum wc_status request_judge(const struct transport *, const struct qp *, const struct send_wqe *);
/*
 * Whether there is nothing to judge: a SEND or WRITE of one packet. Its memory is checked once, when request_gather()
 * reads it: WC_LOC_PROT_ERR comes then.
 */
static inline bool request_is_plain(const struct send_wqe *w, uint32_t mtu)
{
	const uint32_t plain = 1u << WR_SEND | 1u << WR_SEND_IMM | 1u << WR_WRITE | 1u << WR_WRITE_IMM;

	return w->length <= mtu && plain >> w->opcode & 1;
}

/* Copies message bytes off .. off + len - 1; false: an L_Key does not open them, or their memory is gone. */
bool request_gather(const struct transport *, const struct qp *, struct send_wqe *, uint32_t off, uint8_t *to,
		    uint32_t len);
/* The WQE with that SQ index fails locally, once all earlier ones are complete. */
void request_fail_in_turn(struct transport *, struct qp *, uint32_t index, enum wc_status, uint64_t now_ns);
