/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sdr/cp_progress.h"
#include "sdr/meet.h"

#define SECOND_NS UINT64_C(1000000000)

enum { BAR = 20, TERMINAL_NS = 200000000, LINES_S = 5 };

void cp_progress_start(struct cp_progress *p, bool quiet, uint64_t bytes)
{
	*p = (struct cp_progress){.quiet = quiet, .bytes = bytes, .terminal = isatty(2), .start_ns = now_ns()};
	p->seen_ns = p->start_ns;
	p->show_ns = p->terminal ? p->start_ns : p->start_ns + LINES_S * SECOND_NS;
}

const char *cp_bytes_text(uint64_t bytes, char text[16])
{
	static const char units[] = "kMGTPE";
	double v = (double)bytes / 1000;
	int u = 0;

	if (bytes < 1000) {
		snprintf(text, 16, "%u B", (unsigned)bytes);
		return text;
	}
	for (; v >= 999.5; u++)
		v /= 1000;
	snprintf(text, 16, "%.*f %cB", v < 10 ? 2 : v < 100 ? 1 : 0, v, units[u]);
	return text;
}

/* The rate of the last seconds, or of all when that is not long. */
static void rate_look(struct cp_progress *p, uint64_t done, uint64_t now)
{
	double s = (double)(now - p->seen_ns) / 1e9, rate = (double)(done - p->seen) * 8 / s;
	double all = (double)(now - p->start_ns) / 1e9;

	if (s < 0.2)
		return;
	if (all < 5)
		p->rate_bps = (double)done * 8 / all;
	else
		p->rate_bps += (rate - p->rate_bps) * (s < 5 ? s / 5 : 1);
	p->seen_ns = now;
	p->seen = done;
}

static void time_left(const struct cp_progress *p, uint64_t done, char text[32])
{
	double s = p->rate_bps > 0 ? (double)(p->bytes - done) * 8 / p->rate_bps : -1;
	unsigned left = s >= 0 && s < 4e6 ? (unsigned)(s + 0.5) : 0;

	if (s < 0 || s >= 4e6)
		snprintf(text, 32, "some time left");
	else if (left < 3600)
		snprintf(text, 32, "%u:%02u left", left / 60, left % 60);
	else
		snprintf(text, 32, "%u:%02u:%02u left", left / 3600, left / 60 % 60, left % 60);
}

static void bar(uint64_t done, uint64_t bytes, char text[BAR + 1])
{
	unsigned full = (unsigned)(bytes ? (double)done / (double)bytes * BAR : BAR);

	for (unsigned i = 0; i < BAR; i++)
		text[i] = i < full ? '#' : '.';
	text[BAR] = 0;
}

static void line(const struct cp_progress *p, uint64_t done, double lost, char *text, size_t size)
{
	char a[16], b[16], left[32], loss[32] = "";

	time_left(p, done, left);
	if (lost >= 0)
		snprintf(loss, sizeof(loss), ", %.2f %% lost", lost * 100);
	snprintf(text, size, "%3.0f %%  %s of %s, %.1f Mbit/s, %s%s%s",
		 p->bytes ? (double)done / (double)p->bytes * 100 : 100, cp_bytes_text(done, a),
		 cp_bytes_text(p->bytes, b), p->rate_bps / 1e6, left, loss, p->file);
}

void cp_progress_show(struct cp_progress *p, uint64_t done, double lost)
{
	uint64_t now = now_ns();
	char text[224], picture[BAR + 1];

	if (p->quiet || now < p->show_ns)
		return;
	rate_look(p, done, now);
	line(p, done, lost, text, sizeof(text));
	bar(done, p->bytes, picture);
	if (p->terminal)
		fprintf(stderr, "\r[%s] %s\033[K", picture, text);
	else
		fprintf(stderr, "%s\n", text);
	p->shown = true;
	p->show_ns = now + (p->terminal ? TERMINAL_NS : LINES_S * SECOND_NS);
}

int cp_progress_ms(const struct cp_progress *p)
{
	return p->terminal && !p->quiet ? TERMINAL_NS / 1000000 : 1000;
}

/* A terminal shows what is in a name, and the end of a long one. */
void cp_progress_file(struct cp_progress *p, const struct cp_list *l, struct cp_cursor at)
{
	enum { SHOWN = 40 };
	const struct cp_entry *e = &l->entry[at.entry];
	size_t len = strlen(e->name), skipped = len > SHOWN ? len - SHOWN : 0;
	char name[SHOWN + 1];

	if (p->quiet)
		return;
	snprintf(name, sizeof(name), "%s", e->name + skipped);
	for (char *c = name; *c; c++)
		*c = iscntrl((unsigned char)*c) ? '?' : *c;
	snprintf(p->file, sizeof(p->file), "; %s %u %%", name, (unsigned)((uint64_t)at.block * 100 / cp_blocks(e)));
}

void cp_progress_clear(struct cp_progress *p)
{
	if (p->terminal && p->shown)
		fputs("\r\033[K", stderr);
	p->shown = false;
}
