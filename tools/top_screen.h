/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A terminal that shows one picture after the other, and is as it was when that ends: by a key, by a signal, or because the
 * terminal is gone. The escape sequences are those that every terminal of today and its emulators have (ECMA-48, xterm).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum screen_event { SCREEN_TIME, SCREEN_RESIZED, SCREEN_QUIT };

struct screen;

/* NULL: standard output is no terminal, or one that knows no escape sequences. */
struct screen *screen_open(void);
/* Restores the terminal. NULL is harmless. */
void screen_close(struct screen *);
/* Never 0. */
void screen_size(const struct screen *, unsigned *rows, unsigned *columns);
/* Shows a text whose lines end with '\n', in place of the one before. */
void screen_show(struct screen *, const char *text, size_t len);
/* Until that time of io/clock.h, or something happens. Stops and goes on meanwhile, where the terminal asks for that. */
enum screen_event screen_wait(struct screen *, uint64_t until_ms);
