/* SPDX-License-Identifier: BSD-2-Clause */
/* Words and numbers out of a text in memory; every read is bounded by the text's end. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "net/text.h"

enum { SHOWN_WORD_MAX = 40 };

static bool blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

void text_start(struct text *t, const char *bytes, size_t size)
{
	*t = (struct text){.at = bytes, .end = size ? bytes + size : bytes, .line = 1};
}

bool text_word(struct text *t, struct word *w)
{
	t->begun = true;
	while (t->at < t->end && blank(*t->at))
		t->at++;

	const char *from = t->at;

	while (t->at < t->end && !blank(*t->at) && *t->at != '\n')
		t->at++;
	*w = (struct word){from, (size_t)(t->at - from)};
	return w->len > 0;
}

static bool line_over(struct text *t)
{
	while (t->at < t->end && *t->at != '\n')
		t->at++;
	if (t->at == t->end)
		return false;
	t->at++;
	t->line++;
	return true;
}

bool text_token(struct text *t, struct word *w)
{
	while (!text_word(t, w))
		if (!line_over(t))
			return false;
	return true;
}

bool text_next_line(struct text *t)
{
	struct word w;

	while (!t->begun || line_over(t)) {
		const char *from = t->at;

		if (text_word(t, &w) && w.at[0] != '#') {
			t->at = from;
			return true;
		}
	}
	return false;
}

bool word_is(struct word w, const char *s)
{
	return strlen(s) == w.len && memcmp(w.at, s, w.len) == 0;
}

static bool digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Reads a number from the word's front and tells how much of the word it was; 0: none. */
static size_t number_prefix(struct word w, int exponent, uint64_t *out)
{
	enum { EXPONENT_MAX = 60 };
	unsigned __int128 value = 0, most = (unsigned __int128)1 << 120;
	size_t i = 0, digits = 0;
	bool point = false;

	for (; i < w.len; i++) {
		if (w.at[i] == '.' && !point) {
			point = true;
		} else if (digit(w.at[i])) {
			digits++;
			/* Digits that no result of 64 bits can show are dropped, not counted. */
			if (value < most / 16) {
				value = value * 10 + (unsigned)(w.at[i] - '0');
				exponent -= point;
			} else {
				exponent += !point;
			}
		} else {
			break;
		}
	}
	if (!digits)
		return 0;
	if (i < w.len && (w.at[i] == 'e' || w.at[i] == 'E')) {
		size_t j = i + 1;
		bool minus = false;
		int e = 0;

		if (j < w.len && (w.at[j] == '+' || w.at[j] == '-'))
			minus = w.at[j++] == '-';
		if (j < w.len && digit(w.at[j])) {
			for (; j < w.len && digit(w.at[j]); j++)
				if (e < 10 * EXPONENT_MAX)
					e = e * 10 + (w.at[j] - '0');
			exponent += minus ? -e : e;
			i = j;
		}
	}
	for (; exponent > 0 && value; exponent--) {
		if (value > UINT64_MAX)
			return 0;
		value *= 10;
	}
	if (exponent < -EXPONENT_MAX) {
		value = 0;
	} else if (exponent < 0) {
		for (; exponent < -1; exponent++)
			value /= 10;
		value = (value + 5) / 10;
	}
	if (value > UINT64_MAX)
		return 0;
	*out = (uint64_t)value;
	return i;
}

bool word_number(struct word w, int exponent, uint64_t *out)
{
	uint64_t value;

	if (!w.len || number_prefix(w, exponent, &value) != w.len)
		return false;
	*out = value;
	return true;
}

bool word_count(struct word w, uint64_t max, uint64_t *out)
{
	uint64_t value = 0;

	if (!w.len)
		return false;
	for (size_t i = 0; i < w.len; i++) {
		if (!digit(w.at[i]) || value > (UINT64_MAX - 9) / 10)
			return false;
		value = value * 10 + (unsigned)(w.at[i] - '0');
	}
	if (value > max)
		return false;
	*out = value;
	return true;
}

struct unit {
	const char *name;
	int exponent;
};

static bool with_unit(struct word w, const struct unit *units, size_t count, uint64_t *out)
{
	uint64_t value;
	size_t n = number_prefix(w, 0, &value);

	if (!n)
		return false;

	struct word number = {w.at, n}, unit = {w.at + n, w.len - n};

	for (size_t i = 0; i < count; i++)
		if (word_is(unit, units[i].name))
			return word_number(number, units[i].exponent, out);
	return false;
}

bool word_rate_bps(struct word w, uint64_t *out)
{
	static const struct unit units[] = {
		{"", 0},  {"bps", 0},  {"K", 3}, {"k", 3},    {"Kbps", 3}, {"kbps", 3},
		{"M", 6}, {"Mbps", 6}, {"G", 9}, {"Gbps", 9}, {"T", 12},   {"Tbps", 12},
	};

	return with_unit(w, units, sizeof(units) / sizeof(units[0]), out);
}

bool word_time_ps(struct word w, uint64_t *out)
{
	static const struct unit units[] = {
		{"", 12}, {"s", 12}, {"ms", 9}, {"us", 6}, {"ns", 3}, {"ps", 0},
	};

	return with_unit(w, units, sizeof(units) / sizeof(units[0]), out);
}

struct message_buffer {
	struct text_error *err;
	size_t len;
};

static void put(struct message_buffer *b, char c)
{
	if (b->len + 1 < sizeof(b->err->message))
		b->err->message[b->len++] = c;
}

static void put_number(struct message_buffer *b, uint64_t n)
{
	char digits[20];
	size_t len = 0;

	do
		digits[len++] = (char)('0' + n % 10);
	while (n /= 10);
	while (len)
		put(b, digits[--len]);
}

int text_fail(struct text_error *err, uint32_t line, const char *format, ...)
{
	struct message_buffer b = {.err = err};
	va_list ap;

	if (!err)
		return -EINVAL;
	err->line = line;
	va_start(ap, format);
	for (const char *f = format; *f; f++) {
		if (*f != '%') {
			put(&b, *f);
			continue;
		}
		f++;
		if (*f == 's') {
			for (const char *s = va_arg(ap, const char *); *s; s++)
				put(&b, *s);
		} else if (*f == 'u') {
			put_number(&b, va_arg(ap, uint64_t));
		} else if (*f == 'w') {
			struct word w = va_arg(ap, struct word);

			for (size_t i = 0; i < w.len && i < SHOWN_WORD_MAX; i++)
				put(&b, w.at[i] >= ' ' && w.at[i] <= '~' ? w.at[i] : '?');
			if (w.len > SHOWN_WORD_MAX)
				for (int i = 0; i < 3; i++)
					put(&b, '.');
		} else {
			put(&b, *f);
			if (!*f)
				break;
		}
	}
	va_end(ap);
	err->message[b.len] = '\0';
	return -EINVAL;
}
