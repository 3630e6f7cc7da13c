/* SPDX-License-Identifier: BSD-2-Clause */
/* Words and numbers out of a text in memory; every read is bounded by the text's end. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/quantity.h"
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

static bool parse(struct word w, const struct quantity_form *form, uint64_t *out)
{
	return quantity_parse(w.at, w.len, form, out) == QUANTITY_GOOD;
}

bool word_number(struct word w, int exponent, uint64_t *out)
{
	return parse(w, &(struct quantity_form){.exponent = (int8_t)exponent, .flags = QUANTITY_NEAREST}, out);
}

bool word_count(struct word w, uint64_t max, uint64_t *out)
{
	uint64_t value;

	if (!parse(w, &quantity_whole, &value) || value > max)
		return false;
	*out = value;
	return true;
}

bool word_rate_bps(struct word w, uint64_t *out)
{
	static const struct quantity_form form = {.units = quantity_rates, .flags = QUANTITY_NEAREST};

	return parse(w, &form, out);
}

bool word_time_ps(struct word w, uint64_t *out)
{
	static const struct quantity_form form = {.units = quantity_times, .exponent = 12, .flags = QUANTITY_NEAREST};

	return parse(w, &form, out);
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
