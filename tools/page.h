/* SPDX-License-Identifier: BSD-2-Clause */
/* A self-contained page of cards: light or dark as the reader has it, printable, without scripts. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "plot.h"

void html_text(FILE *, const char *);
/* maker: what the window is called by, behind the title. */
void page_begin(FILE *, const char *title, const char *maker);
void page_end(FILE *);
void page_card_begin(FILE *, const char *title, const char *note, bool wide);
void page_card_end(FILE *);
bool page_row_is_open(void);           /* there is room for half a card beside the last one */
void page_plot(FILE *, struct plot *); /* ends the plot; without gnuplot the card says so */
/* Adds a plot that has ended: its drawings, one at a time, and its numbers behind them. */
void page_plotted(FILE *, const struct plotted *);
