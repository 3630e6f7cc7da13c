/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbena sim --run` and [program.NAME]: which programs run on which hosts, and what is shown of them. */
#include "sim.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <wordexp.h>

#include "io/clock.h"
#include "program.h"
#include "sim_turns.h"
#include "tool.h"

enum { PROGRAMS_MAX = 1024, EXIT_PROGRAM = 1 };

struct sim_programs {
	struct turns_program programs[PROGRAMS_MAX];
	size_t count;
	wordexp_t words[SIM_RUNS_MAX + SCENARIO_PROGRAMS_MAX]; /* of each --run and [program.NAME] */
	size_t words_count;
};

/* ---- what runs where ---- */

/* Where a program is named, for messages: "--run 'host 0: COMMAND'" or "[program.NAME]". */
enum { ORIGIN_BYTES = 320 };

static int wrong(const char *origin, const char *why)
{
	return complain("%s: %s; allowed is 'host 0: COMMAND' or 'hosts 0-3,8: COMMAND'", origin, why);
}

static const char *skip_spaces(const char *p)
{
	while (isspace((unsigned char)*p))
		p++;
	return p;
}

static bool number(const char **at, uint32_t *out)
{
	char *end;
	unsigned long n;

	if (!isdigit((unsigned char)**at))
		return false;
	n = strtoul(*at, &end, 10);
	if (n > 0xffffff)
		return false;
	*at = skip_spaces(end);
	*out = (uint32_t)n;
	return true;
}

static int add_host(struct sim_programs *s, uint32_t host, const struct turns_program *like, const char *origin)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->programs[i].host == host)
			return complain("%s: host %" PRIu32 " has a program already, and one is allowed", origin, host);
	if (s->count == PROGRAMS_MAX)
		return complain("%s: at most %d programs are allowed", origin, PROGRAMS_MAX);
	s->programs[s->count] = *like;
	s->programs[s->count++].host = host;
	return 0;
}

static int add_range(struct sim_programs *s, uint32_t first, uint32_t last, const struct turns_program *like,
		     const char *origin)
{
	int rc = 0;

	for (uint32_t h = first; !rc && h <= last; h++)
		rc = add_host(s, h, like, origin);
	return rc;
}

static int add_hosts(struct sim_programs *s, const char *at, const struct turns_program *like, const char *origin)
{
	for (;;) {
		uint32_t first, last;
		int rc;

		if (!number(&at, &first))
			return wrong(origin, "the number of a host is missing");
		last = first;
		if (*at == '-' && (at = skip_spaces(at + 1), !number(&at, &last) || last < first))
			return wrong(origin, "a range of hosts is two numbers, the lower one first");
		rc = add_range(s, first, last, like, origin);
		if (rc || *at == ':')
			return rc;
		if (*at != ',')
			return wrong(origin, "behind hosts comes ':'");
		at = skip_spaces(at + 1);
	}
}

/* Programs that the loader cannot give our libraries would wait for a device for ever. */
static int look_at(const char *origin, const char *command)
{
	static const char *const why[] = {
		[PROGRAM_STATIC] = "is linked statically",
		[PROGRAM_FOREIGN] = "is for another kind of machine",
		[PROGRAM_SET_ID] = "changes its user or group (set-user-ID)",
		[PROGRAM_CAPABILITIES] = "has file capabilities",
	};
	struct program p;

	if (!program_look(command, &p))
		return complain("%s: there is no program '%s'", origin, command);
	if (p.obstacle == PROGRAM_OPEN)
		return 0;
	return complain("%s: %s %s, so the loader cannot give it Verbena's libraries", origin, p.file, why[p.obstacle]);
}

/* The command's words, which live as long as *s. */
static int take_words(struct sim_programs *s, const char *command, struct turns_program *out, const char *origin)
{
	wordexp_t *w = &s->words[s->words_count];

	if (wordexp(command, w, WRDE_NOCMD))
		return complain("%s: the command cannot be read: it is words, perhaps quoted; for more, run sh -c",
				origin);
	s->words_count++;
	if (!w->we_wordc)
		return complain("%s: there is no command", origin);
	*out = (struct turns_program){.words = w->we_wordv, .text = command, .out_fd = -1};
	return look_at(origin, w->we_wordv[0]);
}

static int add_run(struct sim_programs *s, const char *text)
{
	const char *at = skip_spaces(text), *command = strchr(text, ':');
	struct turns_program like;
	char origin[ORIGIN_BYTES];
	int rc;

	snprintf(origin, sizeof(origin), "--run '%.256s'", text);
	if (strncmp(at, "host", 4) != 0 || !command)
		return wrong(origin, "it does not say which host");
	rc = take_words(s, skip_spaces(command + 1), &like, origin);
	return rc ? rc : add_hosts(s, skip_spaces(at + 4 + (at[4] == 's')), &like, origin);
}

static int add_section(struct sim_programs *s, const struct scenario_program *p)
{
	struct turns_program like;
	char origin[ORIGIN_BYTES];
	int rc;

	snprintf(origin, sizeof(origin), "[program.%s]", p->name);
	rc = take_words(s, p->command, &like, origin);
	like.name = p->name;
	like.start_ps = p->start_ps;
	for (uint32_t i = 0; !rc && i < p->hosts.count; i++)
		rc = add_range(s, p->hosts.range[i].first, p->hosts.range[i].last, &like, origin);
	return rc;
}

static int by_host(const void *a, const void *b)
{
	const struct turns_program *x = a, *y = b;

	return x->host < y->host ? -1 : x->host > y->host;
}

/* ---- output ---- */

/* In the report's folder NAME.HOST.out, else in memory. */
static int open_output(struct turns_program *p, const char *report)
{
	char word[NAME_MAX], path[PATH_MAX];

	snprintf(word, sizeof(word), "%s", p->words[0]);
	snprintf(path, sizeof(path), "%s/%s.%" PRIu32 ".out", report ? report : "", p->name ? p->name : basename(word),
		 p->host);
	p->out_fd = report ? open(path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666)
			   : memfd_create("verbena-out", MFD_CLOEXEC);
	return p->out_fd < 0 ? complain("%s: %s", report ? path : "output", strerror(errno)) : 0;
}

static void copy_output(const struct turns_program *p)
{
	char bytes[16384];
	off_t at = 0;
	ssize_t n;

	printf("==> host %" PRIu32 ": %s\n", p->host, p->text);
	while ((n = pread(p->out_fd, bytes, sizeof(bytes), at)) > 0) {
		fwrite(bytes, 1, (size_t)n, stdout);
		at += n;
	}
}

static void status_line(const struct turns_program *p)
{
	printf("host %-6" PRIu32 " ", p->host);
	if (!p->ended)
		printf("did not end");
	else if (WIFEXITED(p->status))
		printf("exit status %d after %.9f s", WEXITSTATUS(p->status), (double)p->ended_ps / 1e12);
	else
		printf("signal %d after %.9f s", WTERMSIG(p->status), (double)p->ended_ps / 1e12);
	printf("  %s\n", p->text);
}

static void show(const struct sim_programs *s, const struct turns_result *r)
{
	for (size_t i = 0; i < s->count; i++)
		copy_output(&s->programs[i]);
	puts("");
	for (size_t i = 0; i < s->count; i++)
		status_line(&s->programs[i]);
	printf("simulated  %.9f s, %" PRIu64 " packets, %" PRIu64 " dropped\n", (double)r->ended_ps / 1e12, r->packets,
	       r->dropped + r->refused);
}

static int status_of(const struct sim_programs *s, const struct sim_input *in, enum turns_end end, const char *why)
{
	switch (end) {
	case TURNS_REFUSED: return sim_input_refused(in, why);
	case TURNS_INTERRUPTED: return EXIT_INTERRUPTED;
	case TURNS_STUCK: complain("%s", why); return EXIT_STUCK;
	case TURNS_FAILED: return complain("%s", why);
	case TURNS_ENDED: break;
	}
	for (size_t i = 0; i < s->count; i++)
		if (WEXITSTATUS(s->programs[i].status))
			return EXIT_PROGRAM;
	return EXIT_SUCCESS;
}

static int run(struct sim_programs *s, const struct sim_input *in, const struct sim_runs *runs)
{
	uint64_t begun_ns = clock_now_ns();
	struct turns_result r = {0};
	char why[TURNS_WHY_BYTES] = "";
	enum turns_end end;
	int rc = 0;

	if (runs->report && mkdir(runs->report, 0777) && errno != EEXIST)
		return complain("--report %s: %s", runs->report, strerror(errno));
	for (size_t i = 0; !rc && i < s->count; i++)
		rc = open_output(&s->programs[i], runs->report);
	if (rc)
		return rc;
	sim_signals_catch();
	end = turns_run(in->scenario, s->programs, s->count, runs->patience_s, &r, why);
	if (end != TURNS_REFUSED && !runs->quiet)
		show(s, &r);
	if (end != TURNS_REFUSED && !runs->quiet && isatty(STDERR_FILENO))
		fprintf(stderr, "took       %.3f s, %" PRIu64 " turns\n", (double)(clock_now_ns() - begun_ns) / 1e9,
			r.turns);
	if (fflush(stdout) || ferror(stdout))
		rc = complain("cannot write: %s", strerror(errno));
	return rc ? rc : status_of(s, in, end, why);
}

int sim_programs(const struct sim_runs *runs)
{
	struct sim_programs *s = calloc(1, sizeof(*s));
	const char **sets = calloc(runs->set_count + 1, sizeof(*sets));
	struct sim_input in;
	int rc = s && sets ? 0 : complain("out of memory");

	for (size_t i = 0; !rc && i < runs->count; i++)
		rc = add_run(s, runs->runs[i]);
	if (!rc) {
		memcpy(sets, runs->sets, runs->set_count * sizeof(*sets));
		sets[runs->set_count] = "run.only=" SCENARIO_NO_WORKLOAD;
		rc = sim_input_load(&in, runs->name, sets, runs->set_count + 1);
		for (uint32_t i = 0; !rc && i < in.scenario->program_count; i++)
			rc = add_section(s, &in.scenario->program[i]);
		if (!rc) {
			qsort(s->programs, s->count, sizeof(s->programs[0]), by_host);
			rc = run(s, &in, runs);
		}
		sim_input_free(&in);
	}
	for (size_t i = 0; s && i < s->count; i++)
		if (s->programs[i].out_fd >= 0)
			close(s->programs[i].out_fd);
	for (size_t i = 0; s && i < s->words_count; i++)
		wordfree(&s->words[i]);
	free(sets);
	free(s);
	return rc;
}
