/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Quantities as people write them: "10Gbps", "1.5ms", "64KiB", "0.1%", "1/16", "1e9". One parser for settings,
 * scenarios, parameters and files; a caller says which kind it takes and in which unit it wants the result.
 *
 *     quantity  ::=  decimal unit?  |  whole "/" whole
 *     decimal   ::=  digits with at most one point, at least one digit; "e" and a whole exponent may follow
 *
 *     rate      bps kbps Mbps Gbps Tbps; also Kbps, bit/s kbit/s Mbit/s Gbit/s Tbit/s, and k K M G T
 *     time      ps ns us ms s
 *     bytes     B kB KB MB GB TB: powers of 1000; KiB MiB GiB TiB: of 1024
 *     count     k M G: powers of 1000; Ki Mi: of 1024
 *     share     %
 *
 * There are no signs, no blanks, no infinities, no hexadecimal and no locale. Results are exact: no floating point.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* One unit: factor x 2^shift x 10^exponent. */
struct quantity_unit {
	const char *name; /* NULL: the list's end */
	uint16_t factor;
	int8_t exponent;
	uint8_t shift;
};

extern const struct quantity_unit quantity_rates[]; /* of bit/s */
extern const struct quantity_unit quantity_times[]; /* of seconds */
extern const struct quantity_unit quantity_bytes[];
extern const struct quantity_unit quantity_counts[];
extern const struct quantity_unit quantity_shares[]; /* of the whole */

enum quantity_flags {
	QUANTITY_UNIT = 1 << 0,     /* a number without a unit is refused, but for 0 */
	QUANTITY_NEAREST = 1 << 1,  /* rounded, half up; otherwise what is not whole is refused */
	QUANTITY_FRACTION = 1 << 2, /* "1/16" is taken, and rounded */
	QUANTITY_BLANK = 1 << 3,    /* blanks may stand before the unit */
	QUANTITY_DIGITS = 1 << 4    /* digits and nothing else; all other members are 0 */
};

/* The form that a caller accepts. The result is the number x its unit x 10^exponent x 2^shift. */
struct quantity_form {
	const struct quantity_unit *units; /* NULL: none */
	const struct quantity_unit *also;  /* units that this caller alone has; NULL: none */
	int8_t exponent;                   /* 9: seconds become ns */
	uint8_t shift;                     /* at most 32 */
	uint8_t flags;                     /* enum quantity_flags */
};

/* A whole number: digits. */
extern const struct quantity_form quantity_whole;

enum quantity_fault {
	QUANTITY_GOOD,
	QUANTITY_NO_NUMBER,
	QUANTITY_NO_FRACTION,
	QUANTITY_NO_UNIT,
	QUANTITY_STRANGE_UNIT,
	QUANTITY_TOO_LONG,
	QUANTITY_TOO_FINE,
	QUANTITY_TOO_LARGE
};

/* Parses all of `len` bytes. *out is set only on success. */
enum quantity_fault quantity_parse(const char *text, size_t len, const struct quantity_form *, uint64_t *out);

/* "not a number", "no such unit", ...: the error in the text, to be shown behind it. Static. */
const char *quantity_fault_text(enum quantity_fault);

enum { QUANTITY_TEXT_BYTES = 32 };

/*
 * Writes a result of that form in its notation, "25Gbps": with the largest unit of which it is a whole number. The
 * form has no shift, and a unit (or none, if that is allowed) that is worth 1. quantity_parse() gives the same
 * number back.
 */
void quantity_write(const struct quantity_form *, uint64_t, char text[QUANTITY_TEXT_BYTES]);
