/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FPDUs. "Plain" is an FPDU without markers, "raw" as it is on the stream. Since both are multiples of 4, a marker
 * never splits a length or a CRC.
 *
 * The reader verifies an FPDU before anybody sees its ULPDU (RFC 5044 6), so one that comes in pieces is gathered
 * first.
 */
#include "iwarp/fpdu.h"

#include <assert.h>
#include <string.h>

#include "base/byteorder.h"
#include "iwarp/crc32c.h"

enum { PLAIN_SPACING = FPDU_MARKER_SPACING - FPDU_MARKER_LEN };

static_assert(FPDU_CRC_LEN == (int)CRC32C_LEN, "one CRC");

static uint32_t plain_len(uint32_t ulpdu_len)
{
	return (FPDU_LENGTH_LEN + ulpdu_len + 3) / 4 * 4 + FPDU_CRC_LEN;
}

/* Bytes from the start of an FPDU to the first place for a marker. */
static uint32_t first_marker(const struct fpdu_framing *f)
{
	return (uint32_t)(FPDU_MARKER_SPACING - f->pos) % FPDU_MARKER_SPACING;
}

static uint32_t marker_count(const struct fpdu_framing *f, uint32_t plain)
{
	uint32_t first = first_marker(f);

	return f->markers && plain > first ? (plain - first + PLAIN_SPACING - 1) / PLAIN_SPACING : 0;
}

uint32_t fpdu_len(const struct fpdu_framing *f, uint32_t ulpdu_len)
{
	uint32_t plain = plain_len(ulpdu_len);

	return plain + marker_count(f, plain) * FPDU_MARKER_LEN;
}

static void step(struct fpdu_framing *f, uint32_t raw)
{
	f->pos = (uint16_t)((f->pos + raw) % FPDU_MARKER_SPACING);
}

/* The distance in a marker that stands `at` bytes from the start of its FPDU; the first marker is at `first`. */
static uint16_t distance(uint32_t at, uint32_t first)
{
	return (uint16_t)(first || !at ? at : at - FPDU_MARKER_LEN);
}

/* The last block moves first, so none is overwritten. */
static void insert_markers(uint8_t *p, uint32_t first, uint32_t count, uint32_t plain)
{
	while (count--) {
		uint32_t from = first + count * PLAIN_SPACING, at = first + count * FPDU_MARKER_SPACING;
		uint32_t left = plain - from;

		memmove(p + at + FPDU_MARKER_LEN, p + from, left < PLAIN_SPACING ? left : PLAIN_SPACING);
		put_be32(p + at, distance(at, first));
	}
}

uint32_t fpdu_seal(struct fpdu_framing *f, uint8_t *p, uint32_t ulpdu_len)
{
	uint32_t plain = plain_len(ulpdu_len), raw = fpdu_len(f, ulpdu_len), end = FPDU_LENGTH_LEN + ulpdu_len;

	assert(ulpdu_len <= FPDU_ULPDU_MAX);
	put_be16(p, (uint16_t)ulpdu_len);
	memset(p + end, 0, plain - end);
	insert_markers(p, first_marker(f), marker_count(f, plain), plain);
	if (f->crc)
		crc32c_put(p + raw - CRC32C_LEN, crc32c_add(CRC32C_START, p, raw - CRC32C_LEN));
	step(f, raw);
	return raw;
}

uint32_t fpdu_mulpdu(uint32_t emss, bool markers)
{
	uint32_t around = FPDU_LENGTH_LEN + FPDU_CRC_LEN + emss % 4, room;

	if (markers)
		around += FPDU_MARKER_LEN * ((emss + FPDU_MARKER_SPACING - 1) / FPDU_MARKER_SPACING);
	room = emss > around ? emss - around : 0;
	if (room > (markers ? FPDU_ULPDU_MAX_MARKED : FPDU_ULPDU_MAX))
		room = markers ? FPDU_ULPDU_MAX_MARKED : FPDU_ULPDU_MAX;
	return room < FPDU_MULPDU_MIN ? FPDU_MULPDU_MIN : room;
}

/* ---- the reader ------------------------------------------------------------------------------ */

/* Where the length of an FPDU stands: behind the marker that belongs to it. */
static uint32_t length_at(const struct fpdu_framing *f)
{
	return f->markers && !f->pos ? FPDU_MARKER_LEN : 0;
}

static uint32_t raw_len(const struct fpdu_framing *f, const uint8_t *p)
{
	return fpdu_len(f, get_be16(p + length_at(f)));
}

/* Checks markers and takes them out. */
static bool remove_markers(const struct fpdu_framing *f, uint8_t *p, uint32_t raw)
{
	uint32_t first = first_marker(f), to = first;

	for (uint32_t at = first; at < raw; at += FPDU_MARKER_SPACING) {
		uint32_t block = raw - at < FPDU_MARKER_SPACING ? raw - at : FPDU_MARKER_SPACING;

		/* The two low bits are of no account to a receiver (RFC 5044 4.3). */
		if ((get_be16(p + at + 2) & ~3u) != distance(at, first))
			return false;
		memmove(p + to, p + at + FPDU_MARKER_LEN, block - FPDU_MARKER_LEN);
		to += block - FPDU_MARKER_LEN;
	}
	return true;
}

/* The `raw` bytes at p are an FPDU; they are written to only where there are markers. */
static enum fpdu_result finish(struct fpdu_reader *r, uint8_t *p, uint32_t raw, const uint8_t **ulpdu,
			       uint32_t *ulpdu_len)
{
	struct fpdu_framing *f = &r->framing;
	uint32_t end = raw - CRC32C_LEN;

	if (f->crc && crc32c_add(CRC32C_START, p, end) != crc32c_get(p + end))
		return FPDU_BAD_CRC;
	if (f->markers && !remove_markers(f, p, raw))
		return FPDU_BAD_MARKER;
	step(f, raw);
	*ulpdu = p + FPDU_LENGTH_LEN;
	*ulpdu_len = get_be16(p);
	return FPDU_ULPDU;
}

static void take(uint8_t *to, uint32_t *have, uint32_t want, const uint8_t **data, size_t *len)
{
	uint32_t n = *len < want - *have ? (uint32_t)*len : want - *have;

	memcpy(to + *have, *data, n);
	*have += n;
	*data += n;
	*len -= n;
}

/* The present FPDU is not whole in the bytes given: gathers it. */
static enum fpdu_result gather(struct fpdu_reader *r, struct pool *pool, const uint8_t **data, size_t *len)
{
	uint32_t head = length_at(&r->framing) + FPDU_LENGTH_LEN;

	if (!r->raw_len) {
		take(r->head, &r->have, head, data, len);
		if (r->have < head)
			return FPDU_NONE;
		r->staged = pool_get(pool, raw_len(&r->framing, r->head));
		if (!r->staged)
			return FPDU_NO_MEMORY;
		r->raw_len = raw_len(&r->framing, r->head);
		memcpy(r->staged, r->head, head);
	}
	take(r->staged, &r->have, r->raw_len, data, len);
	return r->have == r->raw_len ? FPDU_ULPDU : FPDU_NONE;
}

void fpdu_reader_fini(struct fpdu_reader *r, struct pool *pool)
{
	pool_put(pool, r->staged, r->raw_len);
	r->staged = NULL;
	r->raw_len = 0;
	r->have = 0;
	r->lent = false;
	r->gap_len = 0;
}

const uint8_t *fpdu_begun(const struct fpdu_reader *r, uint32_t *ulpdu_len, uint32_t *have)
{
	if (!r->staged || r->lent || r->framing.crc || r->framing.markers)
		return NULL;
	*ulpdu_len = get_be16(r->staged);
	*have = r->have - FPDU_LENGTH_LEN < *ulpdu_len ? r->have - FPDU_LENGTH_LEN : *ulpdu_len;
	return r->staged + FPDU_LENGTH_LEN;
}

void fpdu_skip(struct fpdu_reader *r, uint32_t len)
{
	uint32_t at = r->have - FPDU_LENGTH_LEN;

	assert(r->staged && !r->lent);
	assert(at + len < get_be16(r->staged));
	assert(!r->gap_len || r->gap_at + r->gap_len == (int)at);
	if (!r->gap_len)
		r->gap_at = (uint16_t)at;
	r->gap_len = (uint16_t)(r->gap_len + len);
	r->have += len;
}

bool fpdu_is_between(const struct fpdu_reader *r)
{
	return r->lent || !r->have;
}

enum fpdu_result fpdu_read(struct fpdu_reader *r, struct pool *pool, const uint8_t **data, size_t *len,
			   const uint8_t **ulpdu, uint32_t *ulpdu_len)
{
	enum fpdu_result result;
	uint8_t *p;

	if (r->lent)
		fpdu_reader_fini(r, pool);
	if (!*len)
		return FPDU_NONE;
	if (!r->have && !r->framing.markers && *len >= FPDU_LENGTH_LEN && raw_len(&r->framing, *data) <= *len) {
		uint32_t raw = raw_len(&r->framing, *data);

		p = (uint8_t *)(uintptr_t)*data; /* not written to: there are no markers */
		*data += raw;
		*len -= raw;
		return finish(r, p, raw, ulpdu, ulpdu_len);
	}
	result = gather(r, pool, data, len);
	if (result != FPDU_ULPDU)
		return result;
	r->lent = true;
	return finish(r, r->staged, r->raw_len, ulpdu, ulpdu_len);
}
