/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MPA's framing (RFC 5044 4): a ULPDU on a stream of bytes.
 *
 *     +-------------------------------+
 *     | ULPDU_Length (16)             |
 *     | ULPDU ...                     |
 *     | pad 0 .. 3, zero              |   length, ULPDU and pad are a multiple of 4
 *     | CRC32c (32)                   |   always there; any value where CRCs are off
 *     +-------------------------------+
 *
 * Markers (RFC 5044 4.3), where the receiver asked for them, stand at each 512th byte of the stream, counted from the
 * first byte of full operation, themselves included: 16 bits of zero, and the distance back to the ULPDU_Length. A
 * marker right before a ULPDU_Length has distance 0 and belongs to that FPDU.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"

enum {
	FPDU_LENGTH_LEN = 2,
	FPDU_CRC_LEN = 4,
	FPDU_MARKER_LEN = 4,
	FPDU_MARKER_SPACING = 512,
	FPDU_ULPDU_MAX = 65535,
	FPDU_ULPDU_MAX_MARKED = 65000, /* with markers, whose distance has 16 bits too */
	FPDU_PLAIN_MAX = (FPDU_LENGTH_LEN + FPDU_ULPDU_MAX + 3) / 4 * 4 + FPDU_CRC_LEN, /* without markers */
	FPDU_MULPDU_MIN = 128                                                           /* RFC 5044 4.5 */
};

/* A direction of a stream, as its sender or its receiver counts it. */
struct fpdu_framing {
	bool crc;
	bool markers;
	uint16_t pos; /* of the next byte, modulo FPDU_MARKER_SPACING; a multiple of 4 at the start of an FPDU */
};

/* Bytes of the FPDU with that ULPDU that begins at framing->pos. */
uint32_t fpdu_len(const struct fpdu_framing *, uint32_t ulpdu_len);
/*
 * The ULPDU stands at p + FPDU_LENGTH_LEN. Makes it an FPDU of fpdu_len() bytes, for which there is room, and steps
 * over it. Returns that length.
 */
uint32_t fpdu_seal(struct fpdu_framing *, uint8_t *p, uint32_t ulpdu_len);
/* The largest ULPDU whose FPDU fills a TCP segment of that size (RFC 5044 4.5). */
uint32_t fpdu_mulpdu(uint32_t emss, bool markers);

/* Takes a stream apart, whatever pieces it comes in. Zero, framing aside, is a reader at the start of a stream. */
struct fpdu_reader {
	struct fpdu_framing framing;
	bool lent;        /* the ULPDU in `staged` was yielded */
	uint8_t head[6];  /* of an FPDU whose length is not known yet */
	uint32_t have;    /* bytes of the present FPDU in head or staged */
	uint32_t raw_len; /* of the present FPDU, markers included; 0: not known yet */
	/* gap_len bytes of its ULPDU, from the gap_at-th on, that fpdu_skip() was told of. They are not in `staged`. */
	uint16_t gap_at, gap_len;
	uint8_t *staged; /* raw_len bytes from the pool; NULL: none needed */
};

enum fpdu_result {
	FPDU_NONE,  /* all bytes given are taken; more are needed */
	FPDU_ULPDU, /* *ulpdu is one; call again */
	FPDU_BAD_CRC,
	FPDU_BAD_MARKER,
	FPDU_NO_MEMORY /* for an FPDU that came in pieces; as the bad ones, the end of the stream */
};

/*
 * Takes from the *len bytes at *data as many as the next ULPDU needs, and steps over them. Lends the ULPDU until the
 * next call: it lies in the bytes given if the FPDU came whole there.
 */
enum fpdu_result fpdu_read(struct fpdu_reader *, struct pool *, const uint8_t **data, size_t *len,
			   const uint8_t **ulpdu, uint32_t *ulpdu_len);
/*
 * The ULPDU that has come in part, as far as it has come: *have bytes of *ulpdu_len, a gap included. Borrowed until the
 * next call. NULL: none has; or it may not be used before it is whole, since it has a CRC, or has markers.
 */
const uint8_t *fpdu_begun(const struct fpdu_reader *, uint32_t *ulpdu_len, uint32_t *have);
/*
 * The next `len` bytes of the ULPDU that fpdu_begun() returns, which is not whole then, are elsewhere, and fpdu_read()
 * does not get them. They follow the gap, if there is one.
 */
void fpdu_skip(struct fpdu_reader *, uint32_t len);
/* The stream may end here without having lost anything. */
bool fpdu_is_between(const struct fpdu_reader *);
/* Gives back what it has from the pool. */
void fpdu_reader_fini(struct fpdu_reader *, struct pool *);
