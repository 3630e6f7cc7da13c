/* SPDX-License-Identifier: BSD-2-Clause */
/* Drawings by gnuplot, as SVG text for a page (page.h), with the numbers that are drawn. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct plot;

/* False: gnuplot is missing or does not work; plot_end then gives NULL. */
bool plot_possible(void);

/*
 * Begins a drawing of that size in CSS pixels; write gnuplot's commands to *script, after the
 * common ones.
 */
struct plot *plot_begin(unsigned width, unsigned height, FILE **script);

/* Also draws it with a logarithmic y axis, from the values above 0. */
void plot_logarithmic(struct plot *);

/* The result of one; all NULL: there is none. */
struct plotted {
	char *svg;     /* an <svg> element without ids, in colours that follow the page */
	char *svg_log; /* likewise, with a logarithmic axis; NULL: none, or no value is above 0 */
	char *table;   /* the numbers that are drawn, as gnuplot's `set table` writes them */
	char *x, *y;   /* the names of the axes; NULL: none */
};

/* Runs it. *Caller calls plotted_free().* */
struct plotted plot_end(struct plot *);
void plotted_free(struct plotted *);

/* The colour of series i, the same in every drawing. */
const char *plot_colour(unsigned i);

/* Text in gnuplot's quotes. */
void plot_quote(FILE *, const char *);
