/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as a stream: read in one piece and in pieces whose sizes the first bytes choose, they give the same ULPDUs
 * and end the same way. A ULPDU that was read is sealed again to the same length.
 */
#include <stdlib.h>
#include <string.h>

#include "iwarp/fpdu.h"
#include "../tests/support/heap.h"
#include "support/fuzz_input.h"

struct trace {
	uint64_t sum, ulpdus, bytes;
	enum fpdu_result end;
};

static void note(struct trace *t, const uint8_t *p, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		t->sum = t->sum * 31 + p[i];
	t->ulpdus++;
	t->bytes += len;
}

static struct trace read_all(struct fpdu_framing framing, const uint8_t *data, size_t size, const uint8_t *cuts,
			     size_t cut_count)
{
	struct heap heap = HEAP_INIT;
	struct alloc alloc = heap_alloc(&heap);
	struct fpdu_reader r = {.framing = framing};
	struct trace t = {0};
	struct pool pool;
	const uint8_t *ulpdu;
	uint32_t len;

	pool_init(&pool, &alloc);
	for (size_t i = 0; size && t.end == FPDU_NONE; i++) {
		size_t piece = cut_count ? 1u + cuts[i % cut_count] : size, left = piece < size ? piece : size;
		const uint8_t *p = data;

		data += left;
		size -= left;
		while ((t.end = fpdu_read(&r, &pool, &p, &left, &ulpdu, &len)) == FPDU_ULPDU) {
			must(len <= FPDU_ULPDU_MAX);
			note(&t, ulpdu, len);
		}
		must(t.end != FPDU_NONE || !left);
	}
	must(t.end != FPDU_NO_MEMORY);
	fpdu_reader_fini(&r, &pool);
	must(!pool_lent_bytes(&pool));
	pool_fini(&pool);
	return t;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum { HEAD = 6 };
	struct fpdu_framing framing;
	struct trace whole, pieces;

	if (size < HEAD)
		return 0;
	framing =
		(struct fpdu_framing){.crc = data[0] & 1, .markers = data[0] & 2, .pos = (uint16_t)(data[1] % 128 * 4)};
	whole = read_all(framing, data + HEAD, size - HEAD, NULL, 0);
	pieces = read_all(framing, data + HEAD, size - HEAD, data + 2, 4);
	must(whole.sum == pieces.sum && whole.ulpdus == pieces.ulpdus && whole.bytes == pieces.bytes &&
	     whole.end == pieces.end);
	return 0;
}
