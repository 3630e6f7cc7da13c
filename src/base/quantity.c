/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads and writes quantities. A number is kept as digits and a power of ten until its unit is known, so nothing is
 * rounded twice. Digits beyond the first 23 cannot be seen in a result of 64 bits, and are only remembered as
 * having been there.
 */
#include "base/quantity.h"

#include <stdbool.h>
#include <string.h>

typedef unsigned __int128 wide;

enum { EXPONENT_MAX = 600 };

static const wide mantissa_full = (wide)1 << 76; /* one digit more makes less than 2^80; shifts need 41 bits more */

const struct quantity_unit quantity_rates[] = {
	{"bps", 1, 0, 0},   {"kbps", 1, 3, 0},   {"Mbps", 1, 6, 0},   {"Gbps", 1, 9, 0},   {"Tbps", 1, 12, 0},
	{"bit/s", 1, 0, 0}, {"kbit/s", 1, 3, 0}, {"Mbit/s", 1, 6, 0}, {"Gbit/s", 1, 9, 0}, {"Tbit/s", 1, 12, 0},
	{"Kbps", 1, 3, 0},  {"k", 1, 3, 0},      {"K", 1, 3, 0},      {"M", 1, 6, 0},      {"G", 1, 9, 0},
	{"T", 1, 12, 0},    {NULL, 0, 0, 0},
};
const struct quantity_unit quantity_times[] = {
	{"ps", 1, -12, 0}, {"ns", 1, -9, 0}, {"us", 1, -6, 0}, {"ms", 1, -3, 0}, {"s", 1, 0, 0}, {NULL, 0, 0, 0},
};
const struct quantity_unit quantity_bytes[] = {
	{"B", 1, 0, 0},    {"kB", 1, 3, 0},   {"KB", 1, 3, 0},   {"MB", 1, 6, 0},   {"GB", 1, 9, 0}, {"TB", 1, 12, 0},
	{"KiB", 1, 0, 10}, {"MiB", 1, 0, 20}, {"GiB", 1, 0, 30}, {"TiB", 1, 0, 40}, {NULL, 0, 0, 0},
};
const struct quantity_unit quantity_counts[] = {
	{"k", 1, 3, 0}, {"M", 1, 6, 0}, {"G", 1, 9, 0}, {"Ki", 1, 0, 10}, {"Mi", 1, 0, 20}, {NULL, 0, 0, 0},
};
const struct quantity_unit quantity_shares[] = {{"%", 1, -2, 0}, {NULL, 0, 0, 0}};

const struct quantity_form quantity_whole = {.flags = QUANTITY_DIGITS};

static const struct quantity_unit no_unit = {"", 1, 0, 0};

struct text {
	const char *at, *end;
};

/* mantissa x 10^exponent */
struct decimal {
	wide mantissa;
	int exponent;
	bool cut; /* digits other than 0 were left out at its end */
};

static bool is_digit(const struct text *t)
{
	return t->at < t->end && *t->at >= '0' && *t->at <= '9';
}

static void take_digit(struct decimal *d, unsigned digit, bool behind_point)
{
	if (d->mantissa < mantissa_full) {
		d->mantissa = d->mantissa * 10 + digit;
		d->exponent -= behind_point;
	} else {
		d->cut |= digit != 0;
		d->exponent += !behind_point;
	}
}

/* "e9", "E-3", "e+2" behind a number; what is none is left where it is. */
static void take_exponent(struct text *t, struct decimal *d)
{
	struct text rest = *t;
	bool minus = false;
	int e = 0;

	if (rest.at == rest.end || (*rest.at != 'e' && *rest.at != 'E'))
		return;
	rest.at++;
	if (rest.at < rest.end && (*rest.at == '+' || *rest.at == '-'))
		minus = *rest.at++ == '-';
	if (!is_digit(&rest))
		return;
	for (; is_digit(&rest); rest.at++) {
		if (e < EXPONENT_MAX)
			e = e * 10 + (*rest.at - '0');
	}
	d->exponent += minus ? -e : e;
	*t = rest;
}

static bool take_decimal(struct text *t, struct decimal *d)
{
	bool seen = false, point = false;

	*d = (struct decimal){0};
	for (; t->at < t->end; t->at++) {
		if (is_digit(t)) {
			seen = true;
			take_digit(d, (unsigned)(*t->at - '0'), point);
		} else if (*t->at == '.' && !point) {
			point = true;
		} else {
			break;
		}
	}
	if (seen)
		take_exponent(t, d);
	return seen;
}

static enum quantity_fault take_whole(struct text *t, uint64_t *out)
{
	uint64_t v = 0;

	if (!is_digit(t))
		return QUANTITY_NO_NUMBER;
	for (; is_digit(t); t->at++) {
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (uint64_t)(*t->at - '0'), &v))
			return QUANTITY_TOO_LARGE;
	}
	*out = v;
	return QUANTITY_GOOD;
}

static enum quantity_fault parse_digits(struct text t, uint64_t *out)
{
	uint64_t v;
	enum quantity_fault fault = take_whole(&t, &v);

	if (!fault && t.at != t.end)
		fault = QUANTITY_STRANGE_UNIT;
	if (!fault)
		*out = v;
	return fault;
}

/* v x 10^exponent, to nearest or whole. */
static enum quantity_fault scale(wide v, int exponent, bool nearest, uint64_t *out)
{
	for (; exponent > 0 && v; exponent--) {
		if (v > UINT64_MAX)
			return QUANTITY_TOO_LARGE;
		v *= 10;
	}
	for (; exponent < 0 && v; exponent++) {
		if (!nearest && v % 10)
			return QUANTITY_TOO_FINE;
		v = exponent == -1 ? (v + (nearest ? 5 : 0)) / 10 : v / 10;
	}
	if (v > UINT64_MAX)
		return QUANTITY_TOO_LARGE;
	*out = (uint64_t)v;
	return QUANTITY_GOOD;
}

static enum quantity_fault apply(const struct decimal *d, const struct quantity_unit *u,
				 const struct quantity_form *form, uint64_t *out)
{
	bool nearest = form->flags & QUANTITY_NEAREST;

	if (d->cut && !nearest)
		return QUANTITY_TOO_LONG;
	/* Less than 2^80 x 2^16, so the shift may take 32 bits; a unit that has one has the factor 1. */
	return scale((d->mantissa * u->factor) << u->shift << form->shift, d->exponent + u->exponent + form->exponent,
		     nearest, out);
}

static const struct quantity_unit *find(const struct quantity_unit *units, struct text name)
{
	size_t len = (size_t)(name.end - name.at);

	for (; units && units->name; units++) {
		if (strlen(units->name) == len && !memcmp(units->name, name.at, len))
			return units;
	}
	return NULL;
}

static enum quantity_fault parse_fraction(struct text t, const struct quantity_form *form, uint64_t *out)
{
	uint64_t num, den;
	enum quantity_fault fault = take_whole(&t, &num);
	wide scaled;

	if (fault)
		return fault;
	if (t.at == t.end || *t.at++ != '/' || take_whole(&t, &den) || t.at != t.end || !den)
		return QUANTITY_NO_FRACTION;
	scaled = (wide)num << form->shift;
	for (int i = 0; i < form->exponent; i++) {
		if (scaled >> 120)
			return QUANTITY_TOO_LARGE;
		scaled *= 10;
	}
	scaled = (scaled + den / 2) / den;
	if (scaled > UINT64_MAX)
		return QUANTITY_TOO_LARGE;
	*out = (uint64_t)scaled;
	return QUANTITY_GOOD;
}

enum quantity_fault quantity_parse(const char *text, size_t len, const struct quantity_form *form, uint64_t *out)
{
	struct text t = {text, text + len};
	const struct quantity_unit *u = &no_unit;
	struct decimal d;

	if (form->flags & QUANTITY_DIGITS)
		return parse_digits(t, out);
	if (form->flags & QUANTITY_FRACTION && memchr(text, '/', len))
		return parse_fraction(t, form, out);
	if (!take_decimal(&t, &d))
		return QUANTITY_NO_NUMBER;
	while (form->flags & QUANTITY_BLANK && t.at < t.end && *t.at == ' ')
		t.at++;
	if (t.at < t.end) {
		u = find(form->units, t);
		if (!u)
			u = find(form->also, t);
		if (!u)
			return QUANTITY_STRANGE_UNIT;
	} else if (form->flags & QUANTITY_UNIT && d.mantissa) {
		return QUANTITY_NO_UNIT;
	}
	return apply(&d, u, form, out);
}

const char *quantity_fault_text(enum quantity_fault fault)
{
	static const char *const texts[] = {
		[QUANTITY_GOOD] = "good",
		[QUANTITY_NO_NUMBER] = "not a number",
		[QUANTITY_NO_FRACTION] = "not a fraction",
		[QUANTITY_NO_UNIT] = "its unit is missing",
		[QUANTITY_STRANGE_UNIT] = "no such unit",
		[QUANTITY_TOO_LONG] = "too many digits",
		[QUANTITY_TOO_FINE] = "too fine: no exact value",
		[QUANTITY_TOO_LARGE] = "too large",
	};

	return texts[fault];
}

/* How much one of the unit is in the form's result; 0: less than 1, or more than 2^64. */
static uint64_t worth(const struct quantity_form *form, const struct quantity_unit *u)
{
	int exponent = u->exponent + form->exponent;
	uint64_t v;

	return exponent < 0 || scale((wide)u->factor << u->shift, exponent, false, &v) ? 0 : v;
}

void quantity_write(const struct quantity_form *form, uint64_t v, char text[QUANTITY_TEXT_BYTES])
{
	uint64_t most = form->flags & QUANTITY_UNIT ? 0 : worth(form, &no_unit);
	const char *name = most ? no_unit.name : "";
	char digits[20];
	size_t n = 0;

	if (most && v % most)
		most = 0;
	for (const struct quantity_unit *u = form->units; u && u->name; u++) {
		uint64_t one = u->shift ? 0 : worth(form, u);

		if (one <= most || v % one || (!v && most))
			continue;
		most = one;
		name = u->name;
	}
	if (most)
		v /= most;
	do
		digits[n++] = (char)('0' + v % 10);
	while (v /= 10);
	while (n)
		*text++ = digits[--n];
	memcpy(text, name, strlen(name) + 1);
}
