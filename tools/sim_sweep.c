/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sweep: every combination of values is a run in a process of its own, a few at a time. All of
 * them are read and checked before the first begins. A child returns its figures in a memory file.
 */
#include "sim.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool.h"

enum { RUNS_MAX = 4096, FOLDER_BYTES = 120 };

struct job {
	pid_t pid; /* 0: free */
	size_t run;
	int fd; /* its figures */
};

/* Value i of "key=v0,v1,..."; its length, or -1 where there is none. */
static int value_at(const char *sweep, size_t i, const char **value)
{
	const char *p = strchr(sweep, '=') + 1;

	for (; i; i--) {
		p = strchr(p, ',');
		if (!p)
			return -1;
		p++;
	}
	*value = p;
	return (int)strcspn(p, ",");
}

static size_t value_count(const char *sweep)
{
	const char *v;
	size_t n = 0;

	while (value_at(sweep, n, &v) >= 0)
		n++;
	return n;
}

/* The last word of a dotted key. */
static const char *key_short(const char *sweep, int *n)
{
	const char *end = strchr(sweep, '='), *p = end;

	while (p > sweep && p[-1] != '.')
		p--;
	*n = (int)(end - p);
	return p;
}

/* The number of runs; 0 after an error message. */
static size_t combinations(const struct sweep_options *w)
{
	size_t runs = 1;

	for (size_t i = 0; i < w->sweep_count; i++) {
		const char *equals = strchr(w->sweeps[i], '=');
		size_t n;

		if (!equals || equals == w->sweeps[i]) {
			complain("--sweep %s: allowed is section.key=value,value,...", w->sweeps[i]);
			return 0;
		}
		n = value_count(w->sweeps[i]);
		for (size_t k = 0; k < n; k++) {
			const char *v;

			if (value_at(w->sweeps[i], k, &v) == 0) {
				complain("--sweep %s: value %zu is empty; allowed is section.key=value,value,...",
					 w->sweeps[i], k + 1);
				return 0;
			}
		}
		if (n > RUNS_MAX / runs) {
			complain("--sweep: too many combinations: at most %d runs are allowed", RUNS_MAX);
			return 0;
		}
		runs *= n;
	}
	return runs;
}

static bool is_seed(const char *set)
{
	return !strncmp(set, "run.seed=", 9);
}

/* Run number i: its overrides, label and folder. 0 or -ENOMEM. */
static int run_make(const struct sweep_options *w, size_t i, size_t runs, bool own_seed, uint64_t seed,
		    struct sweep_run *run)
{
	char label[512] = "", group[512] = "", folder[FOLDER_BYTES + 32], number[24];
	size_t rest = i, width = (size_t)snprintf(number, sizeof(number), "%zu", runs);

	*run = (struct sweep_run){.status = -1, .seed = own_seed ? seed : seed - i};
	run->own = calloc(w->sweep_count + 1, sizeof(*run->own));
	run->sets = calloc(w->set_count + w->sweep_count + 1, sizeof(*run->sets));
	if (!run->own || !run->sets)
		return -ENOMEM;
	memcpy(run->sets, w->sets, w->set_count * sizeof(*run->sets));
	run->set_count = w->set_count;
	snprintf(folder, sizeof(folder), "run-%0*zu", (int)width, i + 1);
	/* The last sweep varies fastest. */
	for (size_t k = w->sweep_count; k-- > 0;) {
		const char *sweep = w->sweeps[k], *value = "";
		size_t n = value_count(sweep);
		int len = value_at(sweep, rest % n, &value);

		rest /= n;
		if (asprintf(&run->own[k], "%.*s=%.*s", (int)(strchr(sweep, '=') - sweep), sweep, len, value) < 0) {
			run->own[k] = NULL;
			return -ENOMEM;
		}
	}
	for (size_t k = 0; k < w->sweep_count; k++) {
		int n;
		const char *key = key_short(run->own[k], &n), *value = strchr(run->own[k], '=') + 1;
		size_t used = strlen(label);

		snprintf(label + used, sizeof(label) - used, "%s%.*s=%s", used ? " " : "", n, key, value);
		used = strlen(group);
		if (!is_seed(run->own[k]))
			snprintf(group + used, sizeof(group) - used, "%s%.*s=%s", used ? " " : "", n, key, value);
		else
			run->seed = strtoull(value, NULL, 10);
		used = strlen(folder);
		snprintf(folder + used, sizeof(folder) - used, "-%.*s=%s", n, key, value);
		run->sets[run->set_count++] = run->own[run->own_count++];
	}
	for (char *p = folder; *p; p++) {
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.=_%+-", *p))
			*p = '_';
	}
	if (own_seed) {
		if (asprintf(&run->own[run->own_count], "run.seed=%" PRIu64, seed) < 0) {
			run->own[run->own_count] = NULL;
			return -ENOMEM;
		}
		run->sets[run->set_count++] = run->own[run->own_count++];
	}
	run->group = strdup(group);
	run->label = strdup(label);
	run->folder = strdup(folder);
	return run->group && run->label && run->folder ? 0 : -ENOMEM;
}

static void run_free(struct sweep_run *run)
{
	for (size_t k = 0; run->own && k < run->own_count; k++)
		free(run->own[k]);
	free(run->own);
	free(run->sets);
	free(run->label);
	free(run->group);
	free(run->folder);
}

/* The folder of a run's report, NULL if there is none: a single run needs no folder of its own. 0
 * or -ENOMEM. */
static int run_path(const struct sweep_options *w, const struct sweep_run *run, char **path)
{
	*path = NULL;
	if (!w->report)
		return 0;
	return asprintf(path, w->sweep_count ? "%s/%s" : "%s", w->report, run->folder) < 0 ? -ENOMEM : 0;
}

/* Each command stands alone: any shell can run it in this folder, here or on another machine. */
static int commands_print(const struct sweep_options *w, const struct sweep_run *runs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char *path;

		if (run_path(w, &runs[i], &path))
			return complain("out of memory");
		shell_word(stdout, program_invocation_name);
		fputs(" sim ", stdout);
		shell_word(stdout, w->name);
		for (size_t k = 0; k < runs[i].set_count; k++) {
			fputs(" --set ", stdout);
			shell_word(stdout, runs[i].sets[k]);
		}
		if (w->cores > 1)
			printf(" --cores %u", w->cores);
		fputs(w->alone ? " --alone --quiet --report " : " --quiet --report ", stdout);
		shell_word(stdout, path);
		putchar('\n');
		free(path);
	}
	return fflush(stdout) || ferror(stdout) ? complain("cannot write: %s", strerror(errno)) : 0;
}

/* In the child: never returns. */
static void run_child(const struct sweep_options *w, const struct sweep_run *run, int fd)
{
	static struct figures g;
	char *path = NULL;
	int rc;

	if (run_path(w, run, &path))
		_exit(complain("out of memory"));
	rc = sim_one(&(struct sim_task){w->name, run->sets, run->set_count, path, w->cores, true, w->alone}, &g);
	/* Names and labels are constants of this program, so their pointers are valid in the
	 * parent. */
	if ((!rc || rc == EXIT_STUCK || rc == EXIT_INTERRUPTED) && pwrite(fd, &g, sizeof(g), 0) != (ssize_t)sizeof(g))
		rc = complain("cannot pass on the figures: %s", strerror(errno));
	fflush(NULL);
	_exit(rc);
}

static bool job_start(const struct sweep_options *w, struct sweep_run *runs, size_t run, struct job *j)
{
	j->fd = memfd_create("figures", MFD_CLOEXEC);
	fflush(NULL);
	j->pid = j->fd < 0 ? -1 : fork();
	if (!j->pid)
		run_child(w, &runs[run], j->fd);
	if (j->pid < 0) {
		complain("cannot start a run: %s", strerror(errno));
		if (j->fd >= 0)
			close(j->fd);
		j->pid = 0;
		return false;
	}
	j->run = run;
	return true;
}

static void job_end(struct sweep_run *runs, struct job *j, int status)
{
	struct sweep_run *run = &runs[j->run];

	run->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	if (pread(j->fd, &run->figures, sizeof(run->figures), 0) != (ssize_t)sizeof(run->figures))
		run->figures.count = 0;
	close(j->fd);
	j->pid = 0;
	if (run->status && run->status != EXIT_STUCK && run->status != EXIT_INTERRUPTED)
		complain("run %s failed with status %d", run->label, run->status);
}

static void runs_do(const struct sweep_options *w, struct sweep_run *runs, size_t count)
{
	bool progress = !w->quiet && isatty(STDERR_FILENO), stopped = false, forwarded = false;
	struct job *jobs = calloc(w->jobs, sizeof(*jobs));
	size_t next = 0, busy = 0, done = 0;

	while (jobs && (busy || (next < count && !stopped))) {
		int status;
		pid_t pid;

		stopped |= sim_interrupted();
		for (unsigned i = 0; i < w->jobs && next < count && !stopped; i++) {
			if (jobs[i].pid)
				continue;
			if (!job_start(w, runs, next, &jobs[i])) {
				stopped = true;
				break;
			}
			next++;
			busy++;
		}
		if (progress)
			fprintf(stderr, "\r\033[K%zu of %zu runs done, %zu running", done, count, busy);
		pid = busy ? waitpid(-1, &status, 0) : 0;
		if (pid > 0) {
			for (unsigned i = 0; i < w->jobs; i++) {
				if (jobs[i].pid == pid) {
					if (progress)
						fprintf(stderr, "\r\033[K");
					job_end(runs, &jobs[i], status);
					busy--;
					done++;
				}
			}
		} else if (pid < 0 && errno != EINTR) {
			break;
		}
		if (sim_interrupted() && !forwarded) {
			forwarded = true;
			for (unsigned i = 0; i < w->jobs; i++) {
				if (jobs[i].pid)
					kill(jobs[i].pid, SIGTERM);
			}
		}
	}
	if (progress)
		fprintf(stderr, "\r\033[K");
	free(jobs);
}

/* Whether each scenario can be read; prints an error for the first that cannot. */
static int runs_check(const struct sweep_options *w, const struct sweep_run *runs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct sim_input in;

		if (sim_input_load(&in, w->name, runs[i].sets, runs[i].set_count))
			return EXIT_OURS;
		sim_input_free(&in);
	}
	return 0;
}

int sim_sweep(const struct sweep_options *w)
{
	size_t count = combinations(w);
	bool own_seed = !w->seed_pinned;
	struct sweep_run *runs;
	struct sim_input in;
	uint64_t seed;
	int rc;

	if (!count)
		return EXIT_OURS;
	rc = sim_input_load(&in, w->name, w->sets, w->set_count);
	if (rc)
		return rc;
	seed = in.scenario->run.seed;
	for (size_t i = 0; i < w->sweep_count; i++)
		own_seed &= !is_seed(w->sweeps[i]);
	runs = calloc(count, sizeof(*runs));
	for (size_t i = 0; runs && i < count && !rc; i++)
		rc = run_make(w, i, count, own_seed, seed + i, &runs[i]);
	if (!runs || rc)
		rc = complain("out of memory");
	else
		rc = runs_check(w, runs, count);
	if (!rc && w->print_commands) {
		rc = commands_print(w, runs, count);
	} else if (!rc) {
		sim_signals_catch();
		runs_do(w, runs, count);
		if (!w->quiet)
			sim_compare_print(stdout, runs, count);
		if (w->report)
			rc = sim_compare_report(w->report, in.scenario->name, runs, count);
		if (w->report && !rc && !w->quiet)
			printf("report  %s/report.html\n", w->report);
		if (fflush(stdout) || ferror(stdout))
			rc = complain("cannot write: %s", strerror(errno));
		for (size_t i = 0; i < count; i++) {
			if (runs[i].status == EXIT_STUCK)
				rc = rc ? rc : EXIT_STUCK;
			else if (runs[i].status && runs[i].status != EXIT_INTERRUPTED && runs[i].status != -1)
				rc = EXIT_OURS;
		}
		if (sim_interrupted() && !rc)
			rc = EXIT_INTERRUPTED;
	}
	for (size_t i = 0; runs && i < count; i++)
		run_free(&runs[i]);
	free(runs);
	sim_input_free(&in);
	return rc;
}
