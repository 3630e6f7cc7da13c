/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as a ULPDU: what passes the judge goes through the decoders that its opcode names, and back. The output
 * differs from the input by reserved bits alone.
 */
#include <stdlib.h>
#include <string.h>

#include "iwarp/rdmap.h"
#include "support/fuzz_input.h"

static void fuzz_header(const struct rdmap_segment *s)
{
	uint8_t in[ATOMIC_REQUEST_LEN], out[ATOMIC_REQUEST_LEN];
	struct read_request read;
	struct atomic_request request;
	struct atomic_response response;

	memcpy(in, s->header, s->info->header_len);
	switch (s->ddp.opcode) {
	case RDMAP_READ_REQUEST:
		read_request_decode(&read, in);
		read_request_encode(out, &read);
		break;
	case RDMAP_ATOMIC_REQUEST:
		memset(in, 0, 3);
		in[3] &= 0xf;
		atomic_request_decode(&request, in);
		atomic_request_encode(out, &request);
		break;
	case RDMAP_ATOMIC_RESPONSE:
		atomic_response_decode(&response, in);
		atomic_response_encode(out, &response);
		break;
	default: return;
	}
	must(!memcmp(in, out, s->info->header_len));
}

/* A Terminate that is understood and written again is understood the same way. */
static void fuzz_terminate(const uint8_t *p, uint32_t len)
{
	uint8_t out[TERM_MAX];
	struct terminate t, back;

	if (!terminate_decode(&t, p, len))
		return;
	must(!t.ddp || (t.ddp >= p && t.ddp + ddp_len(ddp_is_tagged(t.ddp)) <= p + len));
	must(!t.request || (t.request >= p && t.request + READ_REQUEST_LEN <= p + len));
	len = terminate_encode(out, &t);
	must(len <= TERM_MAX);
	if (out[2])
		must(terminate_decode(&back, out, len) && back.cause == t.cause);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t in[DDP_UNTAGGED_LEN], out[DDP_UNTAGGED_LEN];
	struct rdmap_segment s;

	if (size > UINT16_MAX)
		return 0;
	fuzz_terminate(data, (uint32_t)size);
	if (rdmap_judge(&s, data, (uint32_t)size) != TERM_NONE)
		return 0;
	must(s.payload + s.payload_len == data + size);
	memcpy(in, data, ddp_len(s.ddp.tagged));
	in[0] &= 0xc3;
	in[1] &= 0xcf;
	ddp_encode(out, &s.ddp);
	must(!memcmp(in, out, ddp_len(s.ddp.tagged)));
	fuzz_header(&s);
	if (s.ddp.opcode == RDMAP_TERMINATE)
		fuzz_terminate(s.payload, s.payload_len);
	return 0;
}
