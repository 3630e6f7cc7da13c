/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer that sends anything: segments of any content in FPDUs that are right, or any bytes as they are, to a QP with
 * receives posted and READs and Sends, or atomics, of its own under way; with CRCs, or without and with bytes put in
 * their places. In any case the QP answers with at most one Terminate, completes each WQE once, and leaves nothing
 * behind. The pipe and the nic check the rest themselves.
 */
#include <string.h>

#include "base/byteorder.h"
#include "iwarp/fpdu.h"
#include "iwarp/pipe.h"
#include "support/fuzz_input.h"

/* Zeroing the memory of the two ends would take most of the time of an input, so they have little. */
enum { RECVS = 4, SENDS = 4, FORGED_MAX = 16384, MEM_BYTES = 72 << 10 };

/* Each ULPDU stands behind its length. STags of ffffffff become the region's, so that some segments get further. */
static void inject(struct pipe *p, const uint8_t *data, size_t size, bool crc)
{
	struct fpdu_framing f = {.crc = crc};
	uint8_t raw[FORGED_MAX + 64];

	while (size >= 2) {
		uint32_t len = get_be16(data) % FORGED_MAX;

		data += 2;
		size -= 2;
		/* Without a CRC long segments are worth their place, whose last bytes an input need not have. */
		if (!crc && len > FORGED_MAX / 2)
			memset(raw + FPDU_LENGTH_LEN, 0, len);
		else if (len > size)
			len = (uint32_t)size;
		memcpy(raw + FPDU_LENGTH_LEN, data, len < size ? len : size);
		for (uint32_t at = 2; at + 4 <= len && at < 40; at += 2) {
			if (get_be32(raw + FPDU_LENGTH_LEN + at) == UINT32_MAX)
				put_be32(raw + FPDU_LENGTH_LEN + at, p->end[PIPE_B].mr->key);
		}
		pipe_inject(p, PIPE_A, raw, fpdu_seal(&f, raw, len));
		data += len < size ? len : size;
		size -= len < size ? len : size;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pipe p;
	struct pkt burst[8];
	struct cqe e;
	int completions = 0;

	if (size < 2)
		return 0;
	pipe_open(&p, &(struct pipe_config){.seed = data[0],
					    .piece_max = data[1] * 4u,
					    .mem_bytes = MEM_BYTES,
					    .rfc7306 = data[0] & 2,
					    .no_crc = data[0] & 8,
					    .places = data[0] & 8});
	for (uint32_t i = 0; i < RECVS; i++)
		pipe_post_recv(&p, PIPE_B, i, i * 4096, 1000);
	for (uint32_t i = 0; i < SENDS; i++)
		pipe_post(&p, PIPE_B,
			  &(struct pipe_wr){.opcode = i % 2         ? WR_SEND
						      : data[0] & 4 ? WR_FETCH_ADD
								    : WR_READ,
					    .at = 65536,
					    .len = i % 2 || !(data[0] & 4) ? 100 : 8,
					    .wr_id = 100 + i});
	/* The other end never gets these: what answers them is the input. */
	nic_output(p.end[PIPE_B].nic, burst, 8, p.now_ns);
	if (data[0] & 1)
		inject(&p, data + 2, size - 2, !(data[0] & 8));
	else
		pipe_inject(&p, PIPE_A, data + 2, size - 2);
	pipe_run(&p);
	nic_stream_finish(p.end[PIPE_A].nic, p.end[PIPE_A].qp, p.now_ns);
	nic_qp_modify(p.end[PIPE_B].nic, p.end[PIPE_B].qp, &(struct qp_attr){.state = QPS_ERR}, QPA_STATE, p.now_ns);
	pipe_run(&p);
	while (pipe_poll(&p, PIPE_B, &e))
		completions++;
	must(completions == RECVS + SENDS);
	pipe_close(&p);
	return 0;
}
