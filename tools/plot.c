/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Drawings by gnuplot, as SVG text for a page, with the numbers that are drawn. Scripts and their
 * output pass through memory files, so that no pipe can fill up. Ink follows the page's text
 * colour; the colours of series differ on white and on black.
 */
#include "plot.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct plot {
	FILE *script;
	unsigned width, height;
	bool logarithmic; /* it has a second drawing */
};

/* The outputs of a script, by descriptor: the standard output, and two more. */
enum { DRAWN, TABLE, DRAWN_LOG, OUTPUTS };

/* Placeholders for the page's text colour and its faint version; nothing else has these colours. */
#define INK   "#010203"
#define FAINT "#040506"

static const struct {
	const char *drawn, *page;
} inks[] = {
	{"rgb(  1,   2,   3)", "currentColor"}, {"rgb(1,2,3)", "currentColor"}, {"rgb(  4,   5,   6)", "var(--faint)"},
	{"rgb(4,5,6)", "var(--faint)"},         {"'black'", "'currentColor'"},  {"\"black\"", "\"currentColor\""},
};

static const char preamble[] = "set datafile separator ' '\n"
			       "set border 1 lc rgb '" FAINT "' lw 1\n"
			       "set tics nomirror out scale 0.4 textcolor rgb '" INK "'\n"
			       "set ytics scale 0\n"
			       "set grid ytics lt 1 lc rgb '" FAINT "' lw 0.6\n"
			       "set xlabel textcolor rgb '" INK "' offset 0,0.4\n"
			       "set ylabel textcolor rgb '" INK "' offset 0.6,0\n"
			       "set key outside top left horizontal Left reverse samplen 1.2 "
			       "spacing 1.1 textcolor rgb '" INK "'\n"
			       "set lmargin 9\n"
			       "set rmargin 3\n"
			       "set bmargin 3.2\n"
			       "set style fill solid 1 noborder\n";

const char *plot_colour(unsigned i)
{
	static const char *const colours[] = {
		"#2f7ed8", "#e8743b", "#19a979", "#c2489f", "#8a63d2", "#c9a227", "#3aa7c9", "#8d6e63",
	};

	return colours[i % (sizeof(colours) / sizeof(colours[0]))];
}

void plot_quote(FILE *f, const char *s)
{
	fputc('\'', f);
	for (; *s; s++) {
		if (*s == '\'')
			fputs("''", f);
		else if ((unsigned char)*s >= 0x20)
			fputc(*s, f);
	}
	fputc('\'', f);
}

static int memory_file(void)
{
	return memfd_create("plot", MFD_CLOEXEC);
}

/* The descriptor of an output other than the standard one: above all those open here. */
static int name_of(int script, const int outputs[OUTPUTS], int i)
{
	int most = script;

	for (int k = 0; k < OUTPUTS; k++)
		most = outputs[k] > most ? outputs[k] : most;
	return most + i;
}

/* gnuplot with these as its standard streams and name_of(). 0 if it succeeded. */
static int gnuplot_run(int script, const int outputs[OUTPUTS])
{
	static char *const argv[] = {"gnuplot", "-", NULL};
	static char *const environment[] = {"LC_ALL=C", "GNUTERM=svg", "HOME=/nonexistent", NULL};
	posix_spawn_file_actions_t files;
	char path[4096 + 8] = "PATH=/usr/local/bin:/usr/bin:/bin";
	char *const envp[] = {path, environment[0], environment[1], environment[2], NULL};
	int status = 0, rc;
	pid_t pid;

	if (getenv("PATH"))
		snprintf(path, sizeof(path), "PATH=%s", getenv("PATH"));
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, script, 0);
	posix_spawn_file_actions_adddup2(&files, outputs[DRAWN], 1);
	for (int i = TABLE; i < OUTPUTS; i++)
		posix_spawn_file_actions_adddup2(&files, outputs[i], name_of(script, outputs, i));
	if (!getenv("VERBENA_SIM_PLOT_ERRORS"))
		posix_spawn_file_actions_addopen(&files, 2, "/dev/null", 1, 0);
	rc = posix_spawnp(&pid, argv[0], &files, NULL, argv, envp);
	posix_spawn_file_actions_destroy(&files);
	if (rc)
		return -rc;
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -EIO;
}

static void close_all(const int fds[OUTPUTS])
{
	for (int i = 0; i < OUTPUTS; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
}

static bool open_all(int fds[OUTPUTS])
{
	bool good = true;

	for (int i = 0; i < OUTPUTS; i++) {
		fds[i] = memory_file();
		good &= fds[i] >= 0;
	}
	return good;
}

bool plot_possible(void)
{
	static int possible = -1;
	int script, outputs[OUTPUTS];

	if (possible >= 0)
		return possible;
	script = memory_file();
	possible = open_all(outputs) && script >= 0 && !gnuplot_run(script, outputs);
	close_all(outputs);
	close(script);
	return possible;
}

static void set_terminal(const struct plot *p)
{
	fprintf(p->script, "set terminal svg size %u,%u dynamic noenhanced font 'sans-serif,12' linewidth 1\n",
		p->width, p->height);
}

struct plot *plot_begin(unsigned width, unsigned height, FILE **script)
{
	struct plot *p = calloc(1, sizeof(*p));
	int fd = memory_file();

	if (!p || fd < 0 || !(p->script = fdopen(fd, "w+"))) {
		if (fd >= 0)
			close(fd);
		free(p);
		*script = fopen("/dev/null", "we");
		if (!*script)
			abort(); /* no descriptor and no memory are left for a message */
		return NULL;
	}
	p->width = width;
	p->height = height;
	set_terminal(p);
	fputs(preamble, p->script);
	*script = p->script;
	return p;
}

void plot_logarithmic(struct plot *p)
{
	if (p)
		p->logarithmic = true;
}

/* The <svg> element, with the placeholders for ink replaced. */
static char *drawing_adopt(const char *text)
{
	const char *p = strstr(text, "<svg");
	char *out = NULL;
	size_t bytes = 0;
	FILE *f = p ? open_memstream(&out, &bytes) : NULL;

	if (!f)
		return NULL;
	while (*p) {
		size_t i, n = 0;

		for (i = 0; i < sizeof(inks) / sizeof(inks[0]); i++) {
			n = strlen(inks[i].drawn);
			if (!strncmp(p, inks[i].drawn, n))
				break;
		}
		if (i < sizeof(inks) / sizeof(inks[0])) {
			fputs(inks[i].page, f);
			p += n;
		} else {
			fputc(*p++, f);
		}
	}
	if (fclose(f)) {
		free(out);
		return NULL;
	}
	return out;
}

/* Plots the same again, as numbers and with a logarithmic axis. */
static void add_forms(const struct plot *p, const int outputs[OUTPUTS])
{
	int script = fileno(p->script);

	fprintf(p->script, "set format '%%.7g'\nset table '/dev/fd/%d'\nreplot\nunset table\n",
		name_of(script, outputs, TABLE));
	if (!p->logarithmic)
		return;
	set_terminal(p);
	fprintf(p->script,
		"set output '/dev/fd/%d'\nset logscale y\nset yrange [*:*]\nset format y "
		"'%%g'\nreplot\n",
		name_of(script, outputs, DRAWN_LOG));
}

/* The content of a memory file; NULL: it is empty. *Caller frees.* */
static char *text_of(int fd)
{
	struct stat st;
	char *text;

	if (fstat(fd, &st) || !st.st_size)
		return NULL;
	text = malloc((size_t)st.st_size + 1);
	if (!text || pread(fd, text, (size_t)st.st_size, 0) != st.st_size) {
		free(text);
		return NULL;
	}
	text[st.st_size] = 0;
	return text;
}

static char *drawing_of(int fd)
{
	char *text = text_of(fd), *out = text && strstr(text, "</svg>") ? drawing_adopt(text) : NULL;

	free(text);
	return out;
}

/* The script's name of an axis. *Caller frees.* */
static char *label_of(const char *script, const char *command)
{
	const char *begin = strstr(script, command), *end;

	begin = begin ? begin + strlen(command) : NULL;
	end = begin ? strchr(begin, '\'') : NULL;
	return end ? strndup(begin, (size_t)(end - begin)) : NULL;
}

static void name_axes(const struct plot *p, struct plotted *out)
{
	char *script = text_of(fileno(p->script));

	if (!script)
		return;
	out->x = label_of(script, "set xlabel '");
	out->y = label_of(script, "set ylabel '");
	free(script);
}

struct plotted plot_end(struct plot *p)
{
	struct plotted out = {0};
	int outputs[OUTPUTS];

	if (!p)
		return out;
	if (plot_possible() && open_all(outputs)) {
		bool whole;

		add_forms(p, outputs);
		whole = !fflush(p->script) && !lseek(fileno(p->script), 0, SEEK_SET) &&
			!gnuplot_run(fileno(p->script), outputs);
		/* If no value is above 0, gnuplot fails at the logarithm, after it has written the
		 * other outputs. */
		out.table = text_of(outputs[TABLE]);
		if (whole || out.table)
			out.svg = drawing_of(outputs[DRAWN]);
		name_axes(p, &out);
		if (whole && p->logarithmic)
			out.svg_log = drawing_of(outputs[DRAWN_LOG]);
		close_all(outputs);
	}
	fclose(p->script);
	free(p);
	return out;
}

void plotted_free(struct plotted *d)
{
	free(d->svg);
	free(d->svg_log);
	free(d->table);
	free(d->x);
	free(d->y);
	*d = (struct plotted){0};
}
