/* SPDX-License-Identifier: BSD-2-Clause */
/* RDMAP's opcodes and headers, and the form of a ULPDU. */
#include "iwarp/rdmap.h"

#include "base/byteorder.h"

/* clang-format off */
const struct rdmap_info rdmap_table[RDMAP_OPCODES] = {
	[RDMAP_WRITE]           = {"Write",                       true,  0,                  0, RDMAP_F_PAYLOAD},
	[RDMAP_READ_REQUEST]    = {"Read Request",                false, QN_READ,            READ_REQUEST_LEN, 0},
	[RDMAP_READ_RESPONSE]   = {"Read Response",               true,  0,                  0, RDMAP_F_PAYLOAD},
	[RDMAP_SEND]            = {"Send",                        false, QN_SEND,            0, RDMAP_F_PAYLOAD},
	[RDMAP_SEND_INV]        = {"Send with Invalidate",        false, QN_SEND,            0, RDMAP_F_PAYLOAD | RDMAP_F_INV},
	[RDMAP_SEND_SE]         = {"Send with SE",                false, QN_SEND,            0, RDMAP_F_PAYLOAD | RDMAP_F_SE},
	[RDMAP_SEND_SE_INV]     = {"Send with SE and Invalidate", false, QN_SEND,            0,
				   RDMAP_F_PAYLOAD | RDMAP_F_SE | RDMAP_F_INV},
	[RDMAP_TERMINATE]       = {"Terminate",                   false, QN_TERMINATE,       0, RDMAP_F_PAYLOAD},
	[RDMAP_IMM]             = {"Immediate Data",              false, QN_SEND,            IMM_LEN, RDMAP_F_RFC7306},
	[RDMAP_IMM_SE]          = {"Immediate Data with SE",      false, QN_SEND,            IMM_LEN, RDMAP_F_SE | RDMAP_F_RFC7306},
	[RDMAP_ATOMIC_REQUEST]  = {"Atomic Request",              false, QN_READ,            ATOMIC_REQUEST_LEN, RDMAP_F_RFC7306},
	[RDMAP_ATOMIC_RESPONSE] = {"Atomic Response",             false, QN_ATOMIC_RESPONSE, ATOMIC_RESPONSE_LEN, RDMAP_F_RFC7306},
};
/* clang-format on */

void read_request_decode(struct read_request *h, const uint8_t *p)
{
	h->sink_stag = get_be32(p);
	h->sink_to = get_be64(p + 4);
	h->size = get_be32(p + 12);
	h->source_stag = get_be32(p + 16);
	h->source_to = get_be64(p + 20);
}

void read_request_encode(uint8_t *p, const struct read_request *h)
{
	put_be32(p, h->sink_stag);
	put_be64(p + 4, h->sink_to);
	put_be32(p + 12, h->size);
	put_be32(p + 16, h->source_stag);
	put_be64(p + 20, h->source_to);
}

void atomic_request_decode(struct atomic_request *h, const uint8_t *p)
{
	h->operation = p[3] & 0xf;
	h->id = get_be32(p + 4);
	h->stag = get_be32(p + 8);
	h->to = get_be64(p + 12);
	h->add_swap = get_be64(p + 20);
	h->add_swap_mask = get_be64(p + 28);
	h->compare = get_be64(p + 36);
	h->compare_mask = get_be64(p + 44);
}

void atomic_request_encode(uint8_t *p, const struct atomic_request *h)
{
	put_be32(p, h->operation & 0xfu);
	put_be32(p + 4, h->id);
	put_be32(p + 8, h->stag);
	put_be64(p + 12, h->to);
	put_be64(p + 20, h->add_swap);
	put_be64(p + 28, h->add_swap_mask);
	put_be64(p + 36, h->compare);
	put_be64(p + 44, h->compare_mask);
}

void atomic_response_decode(struct atomic_response *h, const uint8_t *p)
{
	h->id = get_be32(p);
	h->found = get_be64(p + 4);
}

void atomic_response_encode(uint8_t *p, const struct atomic_response *h)
{
	put_be32(p, h->id);
	put_be64(p + 4, h->found);
}

/* The version is looked at first: another one may mean other headers (RFC 5041 7.1, 7.2). */
static enum term_cause judge_ddp(const struct ddp *h)
{
	if (h->ddp_version != DDP_VERSION)
		return h->tagged ? TERM_TAGGED_VERSION : TERM_UNTAGGED_VERSION;
	return !h->tagged && h->qn >= QN_COUNT ? TERM_UNTAGGED_QN : TERM_NONE;
}

/* RFC 5040 7.2: an opcode on another queue, or as the other kind of message, is an unexpected one. */
static enum term_cause judge_opcode(const struct ddp *h, const struct rdmap_info *info)
{
	if (h->rdmap_version != RDMAP_VERSION)
		return TERM_OPERATION_VERSION;
	if (!info->name || h->tagged != info->tagged || (!h->tagged && h->qn != info->qn))
		return TERM_OPERATION_OPCODE;
	return TERM_NONE;
}

enum term_cause rdmap_judge(struct rdmap_segment *s, const uint8_t *ulpdu, uint32_t len)
{
	enum term_cause cause;
	uint32_t headers;

	*s = (struct rdmap_segment){.ulpdu = ulpdu, .ulpdu_len = len};
	/* RFC 5041 has no code for a segment that is shorter than its header. */
	if (len < DDP_TAGGED_LEN || len < ddp_len(ddp_is_tagged(ulpdu)))
		return TERM_DDP_CATASTROPHIC;
	ddp_decode(&s->ddp, ulpdu);
	s->info = &rdmap_table[s->ddp.opcode];
	cause = judge_ddp(&s->ddp);
	if (cause == TERM_NONE)
		cause = judge_opcode(&s->ddp, s->info);
	if (cause != TERM_NONE)
		return cause;
	headers = ddp_len(s->ddp.tagged) + s->info->header_len;
	/* A header that is cut into segments, or followed by bytes, is no message of that opcode. */
	if (len < headers || (!(s->info->flags & RDMAP_F_PAYLOAD) && (len != headers || !s->ddp.last || s->ddp.mo)))
		return TERM_OPERATION_OTHER;
	s->header = ulpdu + ddp_len(s->ddp.tagged);
	s->payload = ulpdu + headers;
	s->payload_len = len - headers;
	return TERM_NONE;
}
