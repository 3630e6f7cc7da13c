/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as a control message and as the description of an end: what is taken must come out
 * again as it went in, and a sender and the grants of a receiver must stay within their bounds
 * whatever a message says.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/byteorder.h"
#include "sdr/message/control.h"
#include "sdr/message/info.h"
#include "sdr/message/sender.h"
#include "support/heap.h"
#include "support/sdr_small.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int claim)
{
	if (!claim)
		abort();
}

static void cts_again(const uint8_t *p, uint16_t len)
{
	struct grant grants[CTS_GRANTS_MAX];
	uint8_t out[CTS_FIXED_LEN + CTS_GRANTS_MAX * CTS_GRANT_LEN];
	struct heap heap = HEAP_INIT;
	struct alloc alloc = heap_alloc(&heap);
	struct sender s;
	struct cts cts;

	cts_decode(&cts, p);
	must(cts.count <= CTS_GRANTS_MAX);
	for (uint32_t i = 0; i < cts.count; i++)
		grants[i] = cts_grant(p, i);
	must(cts_encode(out, &cts, grants) == len && !memcmp(p, out, len));
	must(!sender_init(&s, &small, &alloc));
	sender_cts(&s, &cts, p);
	must(s.granted <= small.slots);
	sender_free(&s);
}

static void ack_again(const uint8_t *p, uint16_t len)
{
	static struct ack_run runs[16384];
	static uint8_t out[65536];
	struct sr_ack ack;

	sr_ack_decode(&ack, p);
	for (uint32_t i = 0; i < ack.count; i++)
		runs[i] = sr_ack_run(p, i);
	must(sr_ack_encode(out, &ack, runs) == len && !memcmp(p, out, len));
}

static void nack_again(const uint8_t *p, uint16_t len)
{
	struct chunk_run runs[8192];
	static uint8_t out[65536];

	for (uint32_t i = 0; i < sr_nack_count(p); i++)
		runs[i] = sr_nack_run(p, i);
	must(sr_nack_encode(out, runs, sr_nack_count(p)) == len && !memcmp(p, out, len));
}

static void count_again(const uint8_t *p)
{
	uint8_t out[COUNT_LEN];
	struct count count;

	count_decode(&count, p);
	count_encode(out, &count);
	must(!memcmp(p, out, sizeof(out)));
}

static void fuzz_control(const uint8_t *data, size_t size)
{
	uint8_t header[CONTROL_HEADER_LEN];
	struct control c;
	uint32_t tag = size >= 8 ? get_be32(data + 4) : 0;

	if (!control_decode(&c, data, size, tag))
		return;
	must(!control_decode(&c, data, size, tag + 1));
	must(size == (size_t)CONTROL_HEADER_LEN + c.length);
	control_encode(header, &c);
	must(!memcmp(header, data, sizeof(header)));
	if (c.type == CONTROL_CTS)
		cts_again(data + CONTROL_HEADER_LEN, c.length);
	if (c.type == CONTROL_SR_ACK)
		ack_again(data + CONTROL_HEADER_LEN, c.length);
	if (c.type == CONTROL_COUNT)
		count_again(data + CONTROL_HEADER_LEN);
	if (c.type == CONTROL_SR_NACK)
		nack_again(data + CONTROL_HEADER_LEN, c.length);
}

static void fuzz_info(const uint8_t *data, size_t size)
{
	uint8_t out[INFO_LEN_MAX];
	struct info i;

	if (!info_decode(&i, data, size))
		return;
	must(size == info_len(&i) && size <= sizeof(out) && shape_valid(&i.shape));
	info_encode(out, &i);
	for (uint32_t place = 0; place < info_qps(&i); place++)
		info_put_qpn(out, place, info_qpn(&i, place));
	must(!memcmp(out, data, size));
	info_match(&i, &i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_control(data, size);
	fuzz_info(data, size);
	return 0;
}
