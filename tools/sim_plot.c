/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Drawings by gnuplot, as SVG text that stands in a page. Script and drawing pass through memory
 * files, so that no pipe can fill up. Ink follows the page's text colour; series have colours that
 * can be told apart on white and on black.
 */
#include "sim.h"

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
};

/* Stand for the page's text colour and for its faint version: nothing else is drawn in them. */
#define INK   "#010203"
#define FAINT "#040506"

static const struct {
	const char *drawn, *page;
} inks[] = {
	{"rgb(  1,   2,   3)", "currentColor"}, {"rgb(1,2,3)", "currentColor"},
	{"rgb(  4,   5,   6)", "var(--faint)"}, {"rgb(4,5,6)", "var(--faint)"},
	{"'black'", "'currentColor'"},          {"\"black\"", "\"currentColor\""},
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
		"#2f7ed8", "#e8743b", "#19a979", "#c2489f",
		"#8a63d2", "#c9a227", "#3aa7c9", "#8d6e63",
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

uint64_t plot_series(FILE *f, const struct results_series *s, unsigned points, double scale)
{
	uint32_t per = 1;
	double factor;

	while (s->count / per > points)
		per *= 2;
	/* Sums become means of the windows joined. */
	factor = s->join == RESULTS_SUM ? scale / per : scale;
	for (uint32_t i = 0; i * per < s->count; i++) {
		uint64_t w = s->window_ps * per;

		fprintf(f, "%.9g %.9g\n", (double)(i * w) / 1e9,
			(double)results_series_value(s, w, i) * factor);
	}
	return s->window_ps * per;
}

/* gnuplot with these as its standard streams. 0 if it succeeded. */
static int gnuplot_run(int script, int drawing)
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
	posix_spawn_file_actions_adddup2(&files, drawing, 1);
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

bool plot_possible(void)
{
	static int possible = -1;
	int script, drawing;

	if (possible >= 0)
		return possible;
	script = memfd_create("script", MFD_CLOEXEC);
	drawing = memfd_create("drawing", MFD_CLOEXEC);
	possible = script >= 0 && drawing >= 0 && !gnuplot_run(script, drawing);
	close(script);
	close(drawing);
	return possible;
}

struct plot *plot_begin(unsigned width, unsigned height, FILE **script)
{
	struct plot *p = calloc(1, sizeof(*p));
	int fd = memfd_create("script", MFD_CLOEXEC);

	if (!p || fd < 0 || !(p->script = fdopen(fd, "w+"))) {
		if (fd >= 0)
			close(fd);
		free(p);
		*script = fopen("/dev/null", "we");
		if (!*script)
			abort(); /* no descriptor and no memory are left to say anything with */
		return NULL;
	}
	fprintf(p->script,
		"set terminal svg size %u,%u dynamic noenhanced font 'sans-serif,12' linewidth "
		"1\n%s",
		width, height, preamble);
	*script = p->script;
	return p;
}

/* The <svg> element, with the stand-ins for ink replaced. */
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

char *plot_end(struct plot *p)
{
	char *text = NULL, *out = NULL;
	int drawing;
	struct stat st;

	if (!p)
		return NULL;
	drawing = memfd_create("drawing", MFD_CLOEXEC);
	if (plot_possible() && drawing >= 0 && !fflush(p->script) &&
	    !lseek(fileno(p->script), 0, SEEK_SET) && !gnuplot_run(fileno(p->script), drawing) &&
	    !fstat(drawing, &st) && st.st_size) {
		text = malloc((size_t)st.st_size + 1);
		if (text && pread(drawing, text, (size_t)st.st_size, 0) == st.st_size) {
			text[st.st_size] = 0;
			out = drawing_adopt(text);
		}
	}
	free(text);
	if (drawing >= 0)
		close(drawing);
	fclose(p->script);
	free(p);
	return out;
}
