/* SPDX-License-Identifier: BSD-2-Clause */
/* The bytes of a line's control messages while they are on their way. Private to src/sim. */
#pragma once

#include <stdint.h>

#include "sdr/message/control.h"

struct sdr_word;

/* NULL: no memory. */
struct sdr_word **sdr_words_create(void);
/* Harmless on NULL. */
void sdr_words_destroy(struct sdr_word **);
/* Keeps a message under its number, which a line counts up from 0; returns its length, 0 without memory. */
uint32_t sdr_words_put(struct sdr_word **, uint32_t number, const struct control *, const uint8_t *payload);
/* The message; NULL: it was lost, and its place taken. Lends until the next put. */
const uint8_t *sdr_words_get(struct sdr_word *const *, uint32_t number, uint32_t *len);
