/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Selective Repeat's sender gets any words at any time, and sends the chunks that it returns. A model
 * with a flag for each chunk must agree on what is acknowledged; a chunk that is acknowledged is
 * never sent again, one that is not can always be had, now or after its time, and lists and
 * counters stay whole.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sdr/repeat/sr_sender.h"
#include "support/heap.h"

enum { CHUNKS_MAX = 96, OPS_MAX = 500 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int claim)
{
	if (!claim)
		abort();
}

static void hear_ack(struct sr_sender *s, uint8_t *acked, const uint8_t *arg, uint64_t now_ns)
{
	struct ack_run runs[2] = {{arg[2] % 32, arg[2] / 32}, {arg[3] % 32, arg[3] / 32}};
	struct sr_ack ack = {.cum = arg[0] % 128, .from = arg[1] % 128, .count = 2};
	uint32_t second = ack.from + runs[0].there + runs[0].missing;
	uint32_t end = second + runs[1].there + runs[1].missing;
	uint8_t payload[SR_ACK_FIXED_LEN + 2 * SR_ACK_RUN_LEN];
	bool running = s->end == SR_RUNNING, fits = ack.cum <= s->chunks && end <= s->chunks;

	sr_ack_encode(payload, &ack, runs);
	must(sr_sender_ack(s, payload, now_ns) == fits);
	if (!fits || !running)
		return;
	memset(acked, 1, ack.cum);
	memset(acked + ack.from, 1, runs[0].there);
	memset(acked + second, 1, runs[1].there);
}

static void hear_nack(struct sr_sender *s, const uint8_t *arg, uint64_t now_ns)
{
	struct chunk_run runs[2] = {{arg[0] % 128, arg[1] % 32}, {arg[2] % 128, arg[3] % 32}};
	uint8_t payload[SR_NACK_FIXED_LEN + 2 * SR_NACK_RUN_LEN];

	sr_nack_encode(payload, runs, 2);
	sr_sender_nack(s, payload, now_ns);
}

static void must_be_whole(const struct sr_sender *s, const uint8_t *acked)
{
	uint32_t have = 0, listed = 0, waiting = 0;

	for (uint32_t i = 0; i < s->chunks; i++) {
		must((s->chunk[i].state == SR_ACKED) == acked[i]);
		must(s->chunk[i].tries <= s->config.tries_max);
		have += acked[i];
		waiting += s->chunk[i].state == SR_SENT || s->chunk[i].state == SR_DUE;
	}
	for (uint32_t i = s->sent.first; i != UINT32_MAX; i = s->chunk[i].next)
		must(s->chunk[i].state == SR_SENT && listed++ < s->chunks);
	for (uint32_t i = s->due.first; i != UINT32_MAX; i = s->chunk[i].next)
		must(s->chunk[i].state == SR_DUE && listed++ < s->chunks);
	must(have == s->acked && listed == waiting);
	must((s->end == SR_DONE) == (have == s->chunks) || s->end > SR_DONE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct heap heap = HEAP_INIT;
	struct alloc alloc = heap_alloc(&heap);
	struct sr_config config = {.rtt_ns = 100, .rto_ns = 300, .timeout_ns = 20000, .tries_max = 6};
	uint8_t acked[CHUNKS_MAX] = {0};
	uint64_t now_ns = 0;
	struct sr_sender s;
	uint32_t chunk;

	if (!size)
		return 0;
	must(!sr_sender_init(&s, &config, 1 + data[0] % CHUNKS_MAX, 0, &alloc));
	data++;
	size--;
	for (int op = 0; op < OPS_MAX && size >= 5; op++, data += 5, size -= 5) {
		now_ns += data[1] % 64;
		if (data[0] % 8 == 0) {
			hear_ack(&s, acked, data + 1, now_ns);
		} else if (data[0] % 8 == 1) {
			hear_nack(&s, data + 1, now_ns);
		} else if (data[0] % 8 == 2) {
			sr_sender_expire(&s, now_ns);
			must(s.end != SR_RUNNING || sr_sender_deadline(&s) > now_ns);
		} else if (sr_sender_next(&s, &chunk)) {
			must(!acked[chunk]);
			sr_sender_sent(&s, chunk, now_ns);
		}
		must_be_whole(&s, acked);
	}
	sr_sender_free(&s);
	must(!heap.blocks);
	return 0;
}
