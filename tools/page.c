/* SPDX-License-Identifier: BSD-2-Clause */
/* The page's frame and style: self-contained, light or dark by the reader's setting, printable. */
#include "page.h"

#include <stdlib.h>
#include <string.h>

static const char style[] = ":root{--page:#f6f7f9;--card:#fff;--ink:#1c2430;--soft:#5c6878;--faint:#c9d0d9;--line:#"
			    "e5e9ee;"
			    "--accent:#2f7ed8;--warn:#8a4b00;--warn-bg:#fff3e0;color-scheme:light dark}\n"
			    "@media "
			    "(prefers-color-scheme:dark){:root{--page:#12161c;--card:#1a2029;--ink:#e3e8ef;--soft:#"
			    "98a5b5;"
			    "--faint:#47525f;--line:#2a323d;--accent:#6aa9f0;--warn:#ffc98a;--warn-bg:#3a2a14}}\n"
			    "*{box-sizing:border-box}\n"
			    "body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 "
			    "system-ui,-apple-system,'Segoe UI',"
			    "Roboto,'Helvetica Neue',Arial,sans-serif;-webkit-text-size-adjust:100%}\n"
			    "main{max-width:1160px;margin:0 auto;padding:40px 24px 64px}\n"
			    "h1{font-size:28px;line-height:1.2;margin:0;letter-spacing:-.01em}\n"
			    "h2{font-size:15px;margin:0;font-weight:600}\n"
			    ".title{color:var(--soft);font-size:17px;margin:6px 0 0}\n"
			    ".chips{display:flex;flex-wrap:wrap;gap:8px;margin:18px 0 0;padding:0;list-style:none}\n"
			    ".chips li{border:1px solid "
			    "var(--line);background:var(--card);border-radius:999px;padding:3px 12px;"
			    "font-size:13px;color:var(--soft)}\n"
			    ".chips b{color:var(--ink);font-weight:600}\n"
			    ".partial{margin:20px 0 0;padding:12px 16px;border-radius:10px;background:var(--warn-bg);"
			    "color:var(--warn)}\n"
			    ".tiles{display:grid;grid-template-columns:repeat(4,minmax(0,1fr));gap:12px;margin:28px 0 "
			    "0}\n"
			    ".tile{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:14px "
			    "16px}\n"
			    ".tile span{display:block;color:var(--soft);font-size:13px}\n"
			    ".tile "
			    "strong{display:block;font-size:22px;line-height:1.3;font-weight:600;letter-spacing:-.01em;"
			    "font-variant-numeric:tabular-nums;white-space:nowrap}\n"
			    ".tile em{display:block;font-style:normal;color:var(--soft);font-size:12px}\n"
			    ".cards{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:16px;margin:16px 0 "
			    "0}\n"
			    ".card{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:18px "
			    "20px;"
			    "min-width:0;break-inside:avoid}\n"
			    ".wide{grid-column:1/-1}\n"
			    ".note{color:var(--soft);font-size:13px;margin:2px 0 12px}\n"
			    ".card svg{display:block;width:100%;height:auto}\n"
			    ".scroll{overflow-x:auto}\n"
			    "table{border-collapse:collapse;width:100%;font-size:13.5px;font-variant-numeric:tabular-"
			    "nums}\n"
			    "th{color:var(--soft);font-weight:500;text-align:right;padding:6px 8px;border-bottom:1px "
			    "solid "
			    "var(--faint);white-space:nowrap}\n"
			    "td{text-align:right;padding:5px 8px;border-bottom:1px solid "
			    "var(--line);white-space:nowrap}\n"
			    "tr:last-child td{border-bottom:0}\n"
			    "th:first-child,td:first-child{text-align:left;padding-left:0}\n"
			    "th:last-child,td:last-child{padding-right:0}\n"
			    ".columns{columns:3 280px;column-gap:36px}\n"
			    ".columns div{display:flex;justify-content:space-between;gap:16px;padding:4px 0;"
			    "border-bottom:1px solid var(--line);break-inside:avoid;font-size:13.5px}\n"
			    ".columns span{color:var(--soft)}\n"
			    ".columns b{font-weight:500;font-variant-numeric:tabular-nums;white-space:nowrap}\n"
			    "pre{margin:0;overflow-x:auto;font:13px/1.55 ui-monospace,SFMono-Regular,Menlo,Consolas,"
			    "'DejaVu Sans Mono',monospace}\n"
			    "a{color:var(--accent)}\n"
			    "td small{display:block;color:var(--soft);font-size:12px}\n"
			    ".plot input{position:absolute;opacity:0;width:0;height:0}\n"
			    ".plot "
			    "label{display:inline-block;font-size:12px;color:var(--soft);cursor:pointer;padding:1px "
			    "9px;margin:0 4px "
			    "6px 0;border:1px solid var(--line);border-radius:999px}\n"
			    ".plot input:checked+label{color:var(--ink);border-color:var(--soft)}\n"
			    ".plot input:focus-visible+label{outline:2px solid var(--accent)}\n"
			    ".plot .drawn-log,.plot .log:checked~.drawn{display:none}\n"
			    ".plot .log:checked~.drawn-log{display:block}\n"
			    ".card:has(.zoom:checked){grid-column:1/-1}\n"
			    "details{margin:8px 0 0;font-size:13px}\n"
			    "summary{color:var(--soft);cursor:pointer}\n"
			    "h3{font-size:13px;font-weight:600;margin:12px 0 2px}\n"
			    ".numbers{max-height:320px;overflow:auto}\n"
			    ".numbers th,.numbers td{padding:1px 8px}\n"
			    "footer{color:var(--soft);font-size:13px;margin:32px 0 0}\n"
			    "@media (max-width:820px){.cards{grid-template-columns:minmax(0,1fr)}main{padding:24px "
			    "14px 40px}"
			    ".tiles{grid-template-columns:repeat(2,minmax(0,1fr))}}\n"
			    "@media print{.plot "
			    "label,details{display:none}body{background:#fff}main{max-width:none;padding:0}}\n";

static unsigned half_cards, plots; /* drawings of this page so far */

static void html_bytes(FILE *f, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		switch (s[i]) {
		case '&': fputs("&amp;", f); break;
		case '<': fputs("&lt;", f); break;
		case '>': fputs("&gt;", f); break;
		case '"': fputs("&quot;", f); break;
		default: fputc(s[i], f);
		}
	}
}

void html_text(FILE *f, const char *s)
{
	html_bytes(f, s, strlen(s));
}

void page_begin(FILE *f, const char *title, const char *maker)
{
	half_cards = plots = 0;
	fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
	      f);
	html_text(f, title);
	fputs(" - ", f);
	html_text(f, maker);
	fprintf(f, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<main>\n", style);
}

void page_end(FILE *f)
{
	fputs("</main>\n</body>\n</html>\n", f);
}

void page_card_begin(FILE *f, const char *title, const char *note, bool wide)
{
	half_cards += !wide;
	fprintf(f, "<section class=\"card%s\">\n<h2>", wide ? " wide" : "");
	html_text(f, title);
	fputs("</h2>\n<p class=\"note\">", f);
	html_text(f, note);
	fputs("</p>\n", f);
}

bool page_row_is_open(void)
{
	return half_cards % 2;
}

void page_card_end(FILE *f)
{
	fputs("</section>\n", f);
}

static void table_head(FILE *f, const struct plotted *d, bool two)
{
	fputs("<table><tr><th>", f);
	html_text(f, d->x ? d->x : "x");
	fputs("<th>", f);
	html_text(f, d->y && d->y[0] ? d->y : "value");
	if (two)
		fputs(" from<th>to", f);
	fputs("</tr>\n", f);
}

/* The head of gnuplot's table is in comments: a title, and the number of columns. */
static void table_comment(FILE *f, const struct plotted *d, const char *line, size_t n, bool *open)
{
	static const char title[] = "# Curve title: \"", columns[] = "# x y";

	if (n > sizeof(title) && !strncmp(line, title, sizeof(title) - 1)) {
		fputs(*open ? "</table>\n" : "", f);
		*open = false;
		fputs("<h3>", f);
		html_bytes(f, line + sizeof(title) - 1, n - sizeof(title));
		fputs("</h3>\n", f);
	} else if (!strncmp(line, columns, sizeof(columns) - 1)) {
		fputs(*open ? "</table>\n" : "", f);
		table_head(f, d, line[sizeof(columns) - 1] == '1');
		*open = true;
	}
}

/* The row without the letter at its end, which marks a point as drawn or not. */
static void table_row(FILE *f, const char *line, size_t n)
{
	fputs("<tr>", f);
	for (size_t i = 0; i < n;) {
		size_t word = strcspn(line + i, " \t\n");

		if (word && i + word < n)
			fprintf(f, "<td>%.*s", (int)word, line + i);
		i += word + 1;
	}
	fputs("</tr>\n", f);
}

static void write_numbers(FILE *f, const struct plotted *d)
{
	bool open = false;

	fputs("<details><summary>Numbers</summary><div class=\"numbers\">\n", f);
	for (const char *line = d->table; *line;) {
		size_t n = strcspn(line, "\n"), end = n;

		while (end && line[end - 1] == ' ')
			end--;
		if (line[0] == '#')
			table_comment(f, d, line, end, &open);
		else if (end && open && line[end - 1] == 'i')
			table_row(f, line, end);
		line += n + (line[n] == '\n');
	}
	fputs(open ? "</table>\n</div></details>\n" : "</div></details>\n", f);
}

void page_plotted(FILE *f, const struct plotted *d)
{
	unsigned n = plots++;

	fputs("<div class=\"plot\">\n", f);
	if (d->svg_log)
		fprintf(f,
			"<input type=\"radio\" name=\"axis%u\" id=\"lin%u\" class=\"lin\" "
			"checked><label "
			"for=\"lin%u\">linear</label>\n<input type=\"radio\" name=\"axis%u\" "
			"id=\"log%u\" "
			"class=\"log\"><label for=\"log%u\">logarithmic</label>\n",
			n, n, n, n, n, n);
	fprintf(f,
		"<input type=\"checkbox\" id=\"wide%u\" class=\"zoom\"><label "
		"for=\"wide%u\">larger</label>\n",
		n, n);
	fprintf(f, "<div class=\"drawn\">%s</div>\n", d->svg);
	if (d->svg_log)
		fprintf(f, "<div class=\"drawn-log\">%s</div>\n", d->svg_log);
	fputs("</div>\n", f);
	if (d->table)
		write_numbers(f, d);
}

void page_plot(FILE *f, struct plot *p)
{
	struct plotted d = plot_end(p);

	if (d.svg)
		page_plotted(f, &d);
	else
		fputs("<p class=\"note\">Not drawn: gnuplot is missing or failed. The numbers are "
		      "in the CSV "
		      "files.</p>\n",
		      f);
	plotted_free(&d);
}
