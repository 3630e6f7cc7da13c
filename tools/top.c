/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `verbena top`: what running programs, their paths and their queue pairs did since the last look. A program pays for being
 * looked at with its own time, so where there are many queue pairs the looks are as rare as keeps that below a hundredth.
 */
#include "tool.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "io/clock.h"
#include "looks.h"
#include "top_screen.h"

enum {
	COLUMNS_MAX = 512,
	COLUMNS_FILE = 100,
	ROWS_FILE = 100, /* of each table, where there is no screen */
	COST_MAX = 100,  /* one part of so many of a program's time */
	NUMBER_BYTES = 16
};

static const char usage[] =
	"usage: verbena top [OPTION...]\n"
	"\n"
	"Shows what your running programs, their paths to peers and their queue pairs do, and again each second;\n"
	"q ends it. Rates are bytes a second. If standard output is no terminal it shows that once.\n"
	"\n"
	"  -1, --once           once, after a second, without escape sequences\n"
	"  -b, --batch          again and again, without escape sequences\n"
	"  -d, --delay SECONDS  from one picture to the next; default 1\n"
	"  -h, --help           this text\n";

/* A picture: lines of at most so many columns. */
struct picture {
	FILE *f;
	unsigned columns;
	unsigned rows; /* left; of each table where there is no screen */
	bool screen;
};

struct qp_row {
	const struct look *look;
	const struct nic_qp_look *qp;
	double rx, tx;
};

struct path_row {
	const struct look *look;
	const struct nic_path_look *path;
	double tx, lost;
};

struct program_row {
	const struct look *look;
	double rx, tx, packets, retransmits, timeouts;
};

/* ---- words -------------------------------------------------------------------------------------- */

static void line(struct picture *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void line(struct picture *p, const char *fmt, ...)
{
	char text[COLUMNS_MAX + 1];
	va_list ap;

	if (p->screen && !p->rows)
		return;
	va_start(ap, fmt);
	vsnprintf(text, p->columns < COLUMNS_MAX ? p->columns + 1 : sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(p->f, "%s\n", text);
	if (p->screen)
		p->rows--;
}

/* At most five characters. */
static const char *count_text(double v, char text[NUMBER_BYTES])
{
	static const char units[] = " kMGTPE";
	int u = 0;

	while (v >= 999.5 && units[u + 1]) {
		v /= 1000;
		u++;
	}
	if (!u)
		snprintf(text, NUMBER_BYTES, "%.0f", v);
	else
		snprintf(text, NUMBER_BYTES, "%.*f%c", v < 9.995 ? 2 : v < 99.95 ? 1 : 0, v, units[u]);
	return text;
}

/* At most six characters. */
static const char *time_text(uint64_t ns, char text[NUMBER_BYTES])
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	double v = (double)ns;
	int u = 0;

	while (v >= 999.5 && u < 3) {
		v /= 1000;
		u++;
	}
	if (!ns)
		snprintf(text, NUMBER_BYTES, "-");
	else
		snprintf(text, NUMBER_BYTES, "%.*f%s", u && v < 9.995 ? 2 : u && v < 99.95 ? 1 : 0, v, units[u]);
	return text;
}

/* An address in so many columns; a longer one ends with a mark. */
static const char *peer_text(const uint8_t gid[16], unsigned width, char text[ADDRESS_BYTES])
{
	static const uint8_t none[16];

	if (!memcmp(gid, none, sizeof(none))) {
		snprintf(text, ADDRESS_BYTES, "-");
		return text;
	}
	gid_text(gid, text);
	if (strlen(text) > width) {
		text[width - 1] = '~';
		text[width] = 0;
	}
	return text;
}

/* ---- rates -------------------------------------------------------------------------------------- */

static double seconds_of(const struct look *before, const struct look *now)
{
	return before ? (double)(now->at_ns - before->at_ns) / 1e9 : 0;
}

static double rate(uint64_t before, uint64_t now, double seconds)
{
	return seconds > 0 && now > before ? (double)(now - before) / seconds : 0;
}

static struct program_row program_row(const struct look *before, const struct look *now)
{
	static const struct nic_counters none;
	const struct nic_counters *n = &now->counters, *o = before ? &before->counters : &none;
	double s = seconds_of(before, now);

	return (struct program_row){.look = now,
				    .rx = rate(o->rx_bytes, n->rx_bytes, s),
				    .tx = rate(o->tx_bytes, n->tx_bytes, s),
				    .packets = rate(o->rx_packets + o->tx_packets, n->rx_packets + n->tx_packets, s),
				    .retransmits = rate(o->retransmits, n->retransmits, s),
				    .timeouts = rate(o->timeouts, n->timeouts, s)};
}

static struct path_row path_row(const struct look *before, const struct look *now, const struct nic_path_look *path)
{
	const struct nic_path_look *old = look_path_before(before, path);
	double s = seconds_of(before, now);

	return (struct path_row){.look = now,
				 .path = path,
				 .tx = rate(old ? old->sent_bytes : 0, path->sent_bytes, s),
				 .lost = rate(old ? old->lost_bytes : 0, path->lost_bytes, s)};
}

static struct qp_row qp_row(const struct look *before, const struct look *now, const struct nic_qp_look *qp)
{
	const struct nic_qp_look *old = look_qp_before(before, qp);
	double s = seconds_of(before, now);

	return (struct qp_row){.look = now,
			       .qp = qp,
			       .rx = look_words_rate(old ? old->rx_words : 0, qp->rx_words, s),
			       .tx = look_words_rate(old ? old->tx_words : 0, qp->tx_words, s)};
}

static int by_size(double a, double b)
{
	return (a < b) - (a > b);
}

static int compare_programs(const void *a, const void *b)
{
	const struct program_row *x = a, *y = b;
	int by = by_size(x->rx + x->tx, y->rx + y->tx);

	return by ? by : x->look->pid - y->look->pid;
}

static int compare_paths(const void *a, const void *b)
{
	const struct path_row *x = a, *y = b;
	int by = memcmp(x->path->dst, y->path->dst, sizeof(x->path->dst));

	if (!by)
		by = x->look->pid - y->look->pid;
	return by ? by : (int)x->path->path - (int)y->path->path;
}

static int compare_qps(const void *a, const void *b)
{
	const struct qp_row *x = a, *y = b;
	int by = by_size(x->rx + x->tx, y->rx + y->tx);

	if (!by)
		by = x->look->pid - y->look->pid;
	return by ? by : (x->qp->is.qpn > y->qp->is.qpn) - (x->qp->is.qpn < y->qp->is.qpn);
}

/* ---- tables -------------------------------------------------------------------------------------- */

static void show_programs(struct picture *p, const struct program_row *rows, size_t count, size_t shown)
{
	char rx[NUMBER_BYTES], tx[NUMBER_BYTES], packets[NUMBER_BYTES], again[NUMBER_BYTES], timeouts[NUMBER_BYTES];

	line(p, "%7s %-15s %-11s %6s %5s %5s %6s %7s %6s", "PID", "COMMAND", "DEVICE", "QPS", "RX/s", "TX/s", "PKT/s",
	     "RETR/s", "TIMO/s");
	for (size_t i = 0; i < count && i < shown; i++) {
		const struct program_row *r = &rows[i];

		line(p, "%7d %-15s %-11s %6" PRIu64 " %5s %5s %6s %7s %6s", r->look->pid, r->look->comm,
		     r->look->device, r->look->counters.qps, count_text(r->rx, rx), count_text(r->tx, tx),
		     count_text(r->packets, packets), count_text(r->retransmits, again),
		     count_text(r->timeouts, timeouts));
	}
}

static void show_paths(struct picture *p, const struct path_row *rows, size_t count, size_t shown)
{
	unsigned width = p->columns < 99 ? p->columns > 75 ? p->columns - 60 : 15 : 39;
	char address[ADDRESS_BYTES], rtt[NUMBER_BYTES], least[NUMBER_BYTES], tx[NUMBER_BYTES], lost[NUMBER_BYTES],
		window[NUMBER_BYTES], flying[NUMBER_BYTES], marks[NUMBER_BYTES];

	line(p, "%-*s %4s %7s %5s %6s %6s %6s %6s %6s %5s", (int)width, "PEER", "PATH", "PID", "TX/s", "RTT", "LEAST",
	     "WINDOW", "FLYING", "LOST/s", "MARKS");
	for (size_t i = 0; i < count && i < shown; i++) {
		const struct nic_path_look *q = rows[i].path;

		line(p, "%-*s %4u %7d %5s %6s %6s %6s %6s %6s %5s", (int)width, peer_text(q->dst, width, address),
		     q->path, rows[i].look->pid, count_text(rows[i].tx, tx),
		     q->down ? "down" : time_text(q->srtt_ns, rtt), time_text(q->min_rtt_ns, least),
		     count_text((double)q->cwnd_bytes, window), count_text((double)q->in_flight_bytes, flying),
		     count_text(rows[i].lost, lost), count_text(q->marks, marks));
	}
}

static void show_qps(struct picture *p, const struct qp_row *rows, size_t count, size_t shown)
{
	unsigned width = p->columns < 103 ? p->columns > 79 ? p->columns - 64 : 15 : 39;
	char address[ADDRESS_BYTES], rx[NUMBER_BYTES], tx[NUMBER_BYTES], flying[NUMBER_BYTES], window[NUMBER_BYTES];

	line(p, "%8s %7s %-4s %-5s %-6s %-4s %-*s %5s %5s %5s %5s", "LQPN", "PID", "TYPE", "STATE", "PROTO", "WAY",
	     (int)width, "PEER", "RX/s", "TX/s", "FLYNG", "WINDW");
	for (size_t i = 0; i < count && i < shown; i++) {
		const struct nic_qp_look *q = rows[i].qp;

		line(p, "%8u %7d %-4.4s %-5s %-6s %-4s %-*s %5s %5s %5s %5s", q->is.qpn, rows[i].look->pid,
		     qp_type_word(&q->is), qp_state_word(&q->is), qp_protocol_word(q),
		     qp_way_word(&q->is, rows[i].look->raw), (int)width, peer_text(q->is.peer, width, address),
		     count_text(rows[i].rx, rx), count_text(rows[i].tx, tx), count_text(q->in_flight, flying),
		     q->window_bytes ? count_text((double)q->window_bytes, window) : "-");
	}
}

/* ---- a picture ------------------------------------------------------------------------------------ */

struct tables {
	struct program_row *programs;
	struct path_row *paths;
	struct qp_row *qps;
	size_t program_count, path_count, qp_count;
};

static void tables_free(struct tables *t)
{
	free(t->programs);
	free(t->paths);
	free(t->qps);
}

/* False: out of memory. */
static bool tables_make(struct tables *t, const struct looks *before, const struct looks *now)
{
	size_t paths = 0, qps = 0;

	for (size_t i = 0; i < now->count; i++) {
		paths += now->all[i].path_count;
		qps += now->all[i].qp_count;
	}
	*t = (struct tables){.programs = calloc(now->count + 1, sizeof(*t->programs)),
			     .paths = calloc(paths + 1, sizeof(*t->paths)),
			     .qps = calloc(qps + 1, sizeof(*t->qps))};
	if (!t->programs || !t->paths || !t->qps) {
		tables_free(t);
		return false;
	}
	for (size_t i = 0; i < now->count; i++) {
		const struct look *l = &now->all[i], *old = look_before(before, l);

		t->programs[t->program_count++] = program_row(old, l);
		for (size_t k = 0; k < l->path_count; k++)
			t->paths[t->path_count++] = path_row(old, l, &l->paths[k]);
		for (size_t k = 0; k < l->qp_count; k++)
			t->qps[t->qp_count++] = qp_row(old, l, &l->qps[k]);
	}
	qsort(t->programs, t->program_count, sizeof(*t->programs), compare_programs);
	qsort(t->paths, t->path_count, sizeof(*t->paths), compare_paths);
	qsort(t->qps, t->qp_count, sizeof(*t->qps), compare_qps);
	return true;
}

static void more(struct picture *p, size_t count, size_t shown, const char *what)
{
	if (!p->screen && count > shown)
		line(p, "... and %zu more %s", count - shown, what);
}

/* The screen's rows are shared: a quarter for programs, of the others half for paths; what one does not need is the next one's. */
static void draw(struct picture *p, const struct tables *t)
{
	size_t room = p->screen && p->rows > 9 ? p->rows - 7 : p->screen ? 2 : 3 * ROWS_FILE;
	size_t programs = p->screen ? room / 4 + 1 : ROWS_FILE, paths, qps;
	char now[16];
	time_t wall = (time_t)(clock_wall_ns() / 1000000000);
	struct tm tm;

	if (programs > t->program_count)
		programs = t->program_count;
	paths = p->screen ? (room - programs) / 2 : ROWS_FILE;
	if (paths > t->path_count)
		paths = t->path_count;
	qps = p->screen ? room - programs - paths : ROWS_FILE;
	strftime(now, sizeof(now), "%H:%M:%S", localtime_r(&wall, &tm));
	line(p, "verbena top  %s  programs: %zu  paths: %zu  queue pairs: %zu%s", now, t->program_count, t->path_count,
	     t->qp_count, p->screen ? "  q: quit" : "");
	line(p, " ");
	show_programs(p, t->programs, t->program_count, programs);
	more(p, t->program_count, programs, "programs");
	line(p, " ");
	show_paths(p, t->paths, t->path_count, paths);
	more(p, t->path_count, paths, "paths");
	line(p, " ");
	show_qps(p, t->qps, t->qp_count, qps);
	more(p, t->qp_count, qps, "queue pairs");
}

/* The caller frees it; NULL: out of memory. */
static char *picture_make(const struct tables *t, struct screen *s, size_t *len)
{
	struct picture p = {.columns = COLUMNS_FILE, .screen = s};
	char *text = NULL;

	if (s)
		screen_size(s, &p.rows, &p.columns);
	p.f = open_memstream(&text, len);
	if (!p.f)
		return NULL;
	draw(&p, t);
	if (!fclose(p.f))
		return text;
	free(text);
	return NULL;
}

/* False: out of memory. */
static bool show(const struct tables *t, struct screen *s)
{
	size_t len;
	char *text = picture_make(t, s, &len);

	if (!text)
		return false;
	if (s)
		screen_show(s, text, len);
	else
		fwrite(text, 1, len, stdout);
	free(text);
	return s || !fflush(stdout);
}

/* ---- again and again -------------------------------------------------------------------------------- */

static uint64_t next_ms(const struct looks *looks, double delay_s)
{
	uint64_t wait_ms = (uint64_t)(delay_s * 1000);

	for (size_t i = 0; i < looks->count; i++)
		if (looks->all[i].took_ns * COST_MAX / 1000000 > wait_ms)
			wait_ms = looks->all[i].took_ns * COST_MAX / 1000000;
	return clock_now_ms() + wait_ms;
}

/* Until the next look. True: it is over. */
static bool rest(struct screen *s, const struct tables *t, uint64_t until_ms)
{
	enum screen_event event = SCREEN_RESIZED;

	if (!s) {
		uint64_t now_ms = clock_now_ms();

		clock_sleep_ns(until_ms > now_ms ? (until_ms - now_ms) * 1000000 : 0);
		return false;
	}
	while ((event = screen_wait(s, until_ms)) == SCREEN_RESIZED)
		show(t, s);
	return event == SCREEN_QUIT;
}

static int keep(struct screen *s, const struct config *c, double delay_s, bool once)
{
	struct looks before = {0}, now = {0};
	struct looks_wanted all = {0};
	struct tables t;
	int err = looks_take(&now, c, &all, false);
	bool over = false, fine = true;

	for (unsigned pictures = 0; !err && fine && !over; pictures++) {
		fine = tables_make(&t, &before, &now);
		/* Without a screen nobody needs a picture without rates. */
		if (fine && (s || pictures))
			fine = show(&t, s);
		if (fine)
			over = (once && pictures) || rest(s, &t, next_ms(&now, delay_s));
		if (fine)
			tables_free(&t);
		looks_free(&before);
		before = now;
		now = (struct looks){0};
		if (fine && !over)
			err = looks_take(&now, c, &all, false);
	}
	looks_free(&before);
	looks_free(&now);
	screen_close(s);
	if (err)
		return complain("cannot ask running programs: %s", strerror(-err));
	return fine ? EXIT_SUCCESS : complain("top: %s", ferror(stdout) ? "cannot write" : "out of memory");
}

int cmd_top(int argc, char **argv)
{
	static const struct option options[] = {
		{"once", no_argument, NULL, '1'},
		{"batch", no_argument, NULL, 'b'},
		{"delay", required_argument, NULL, 'd'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	bool once = false, batch = false;
	double delay_s = 1;
	struct screen *s = NULL;
	struct config c;
	char why[1024], *end;
	int opt;

	while ((opt = getopt_long(argc, argv, "1bd:h", options, NULL)) != -1) {
		switch (opt) {
		case '1': once = true; break;
		case 'b': batch = true; break;
		case 'd':
			delay_s = strtod(optarg, &end);
			if (end == optarg || *end || !(delay_s >= 1 && delay_s <= 3600))
				return complain("--delay %s: allowed are seconds from 1 to 3600", optarg);
			break;
		case 'h': fputs(usage, stdout); return EXIT_SUCCESS;
		default: return usage_error("top");
		}
	}
	if (optind < argc)
		return complain("top: '%s': no argument is allowed", argv[optind]);
	if (config_load(&c, why, sizeof(why)))
		return complain("%s", why);
	if (!once && !batch)
		s = screen_open();
	return keep(s, &c, delay_s, once || (!batch && !s));
}
