/* SPDX-License-Identifier: BSD-2-Clause */
/* The page's frame and looks: self-contained, light or dark as the reader has it, printable. */
#include "sim.h"

#include <stdlib.h>

static const char style[] =
	":root{--page:#f6f7f9;--card:#fff;--ink:#1c2430;--soft:#5c6878;--faint:#c9d0d9;--line:#"
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
	"footer{color:var(--soft);font-size:13px;margin:32px 0 0}\n"
	"@media (max-width:820px){.cards{grid-template-columns:minmax(0,1fr)}main{padding:24px "
	"14px 40px}"
	".tiles{grid-template-columns:repeat(2,minmax(0,1fr))}}\n"
	"@media print{body{background:#fff}main{max-width:none;padding:0}}\n";

static unsigned half_cards; /* of this page so far */

void html_text(FILE *f, const char *s)
{
	for (; *s; s++) {
		switch (*s) {
		case '&':
			fputs("&amp;", f);
			break;
		case '<':
			fputs("&lt;", f);
			break;
		case '>':
			fputs("&gt;", f);
			break;
		case '"':
			fputs("&quot;", f);
			break;
		default:
			fputc(*s, f);
		}
	}
}

void page_begin(FILE *f, const char *title)
{
	half_cards = 0;
	fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
	      f);
	html_text(f, title);
	fprintf(f, " - verbena sim</title>\n<style>\n%s</style>\n</head>\n<body>\n<main>\n", style);
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

void page_plot(FILE *f, struct plot *p)
{
	char *svg = plot_end(p);

	if (svg)
		fputs(svg, f);
	else
		fputs("<p class=\"note\">Not drawn: gnuplot is missing or failed. The numbers are "
		      "in the CSV "
		      "files.</p>\n",
		      f);
	free(svg);
}
