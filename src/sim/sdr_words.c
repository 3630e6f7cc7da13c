/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Control messages between the ends of a line. A nic without payload carries a message's length and its immediate; the
 * bytes wait here under the number that is the immediate. A message that was lost is dropped when its place is needed.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/sdr_words.h"

enum { WORDS_UNDER_WAY = 1 << 14 };

struct word {
	uint32_t number;
	uint32_t len;
	uint8_t bytes[];
};

struct word **sdr_words_create(void)
{
	return calloc(WORDS_UNDER_WAY, sizeof(struct word *));
}

void sdr_words_destroy(struct word **words)
{
	for (uint32_t i = 0; words && i < WORDS_UNDER_WAY; i++)
		free(words[i]);
	free(words);
}

uint32_t sdr_words_put(struct word **words, uint32_t number, const struct control *c, const uint8_t *payload)
{
	struct word **at = &words[number % WORDS_UNDER_WAY], *w;
	uint32_t len = CONTROL_HEADER_LEN + c->length;

	free(*at);
	*at = w = malloc(sizeof(*w) + len);
	if (!w)
		return 0;
	w->number = number;
	w->len = len;
	control_encode(w->bytes, c);
	memcpy(w->bytes + CONTROL_HEADER_LEN, payload, c->length);
	return len;
}

const uint8_t *sdr_words_get(struct word *const *words, uint32_t number, uint32_t *len)
{
	const struct word *w = words[number % WORDS_UNDER_WAY];

	if (!w || w->number != number)
		return NULL;
	*len = w->len;
	return w->bytes;
}
