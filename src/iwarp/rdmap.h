/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMAP's messages (RFC 5040 4, RFC 7306 4 to 6): the table of opcodes, the headers that some have behind DDP's, and
 * the judge of a ULPDU's form.
 *
 *   Read Request, 28 bytes:    sink STag 32 | sink TO 64 | size 32 | source STag 32 | source TO 64
 *   Atomic Request, 52 bytes:  reserved 28, operation 4 | request id 32 | STag 32 | TO 64 | add or swap data 64 |
 *                              add or swap mask 64 | compare data 64 | compare mask 64
 *   Atomic Response, 12 bytes: request id 32 | value found 64
 *   Immediate Data, 8 bytes
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "iwarp/ddp.h"
#include "iwarp/terminate.h"

enum rdmap_opcode {
	RDMAP_WRITE = 0,
	RDMAP_READ_REQUEST = 1,
	RDMAP_READ_RESPONSE = 2,
	RDMAP_SEND = 3,
	RDMAP_SEND_INV = 4,
	RDMAP_SEND_SE = 5,
	RDMAP_SEND_SE_INV = 6,
	RDMAP_TERMINATE = 7,
	RDMAP_IMM = 8,
	RDMAP_IMM_SE = 9,
	RDMAP_ATOMIC_REQUEST = 10,
	RDMAP_ATOMIC_RESPONSE = 11,
	RDMAP_OPCODES = 16 /* that the field can hold */
};

enum rdmap_flags {
	RDMAP_F_PAYLOAD = 1, /* bytes of the message follow */
	RDMAP_F_SE = 2,
	RDMAP_F_INV = 4,
	RDMAP_F_RFC7306 = 8 /* of the extension */
};

/* DDP's queues: an untagged message has one (RFC 5040 4.1, RFC 7306 5). */
enum rdmap_queue { QN_SEND = 0, QN_READ = 1, QN_TERMINATE = 2, QN_ATOMIC_RESPONSE = 3, QN_COUNT = 4 };

enum { READ_REQUEST_LEN = 28, ATOMIC_REQUEST_LEN = 52, ATOMIC_RESPONSE_LEN = 12, IMM_LEN = 8 };

struct rdmap_info {
	const char *name; /* NULL: there is no such opcode */
	bool tagged;
	uint8_t qn;
	uint8_t header_len; /* behind DDP's */
	uint8_t flags;
};

/* Of every value that the field can have. */
extern const struct rdmap_info rdmap_table[RDMAP_OPCODES];

struct read_request {
	uint32_t sink_stag;
	uint64_t sink_to;
	uint32_t size;
	uint32_t source_stag;
	uint64_t source_to;
};

enum { ATOMIC_FETCH_ADD = 0, ATOMIC_CMP_SWAP = 2 };

struct atomic_request {
	uint8_t operation; /* 4 bits */
	uint32_t id;
	uint32_t stag;
	uint64_t to;
	uint64_t add_swap, add_swap_mask;
	uint64_t compare, compare_mask;
};

struct atomic_response {
	uint32_t id;
	uint64_t found;
};

/* The headers as the wire has them (RFC 5040 4.4, RFC 7306 5). The bytes were judged to be as many. */
void read_request_decode(struct read_request *, const uint8_t *);
void read_request_encode(uint8_t *, const struct read_request *);
void atomic_request_decode(struct atomic_request *, const uint8_t *);
void atomic_request_encode(uint8_t *, const struct atomic_request *);
void atomic_response_decode(struct atomic_response *, const uint8_t *);
void atomic_response_encode(uint8_t *, const struct atomic_response *);

/* A ULPDU whose form is right: what it is, and where its parts are. Borrows the bytes. */
struct rdmap_segment {
	struct ddp ddp;
	const struct rdmap_info *info;
	const uint8_t *ulpdu;  /* DDP's header; the RDMAP header follows */
	const uint8_t *header; /* info->header_len bytes */
	const uint8_t *payload;
	uint32_t ulpdu_len;
	uint32_t payload_len;
};

/*
 * Judges versions, queue, opcode and length; after that no decoder can fail. TERM_NONE, or the cause with which the
 * stream ends; then of *out `ulpdu`, `ulpdu_len` and, if there was a whole header, `ddp` are set.
 */
enum term_cause rdmap_judge(struct rdmap_segment *out, const uint8_t *ulpdu, uint32_t len);
