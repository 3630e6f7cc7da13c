/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbena sim`: the command line, and one run. */
#include "sim.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cc/params.h"
#include "tool.h"

enum { SETS_MAX = 256, SEEDS_MAX = 4096, JOBS_MAX = 1024, CORES_MAX = 64, KEYS_WIDTH = 100 };

static const char usage[] =
	"usage: verbena sim [OPTION...] SCENARIO\n"
	"       verbena sim --compare [--report DIR] FOLDER...\n"
	"       verbena sim --describe FILE | --convert FILE TO\n"
	"       verbena sim --keys | --list\n"
	"\n"
	"Simulates a network of hosts that run Verbena's transport. SCENARIO is a file, or the "
	"name of a\n"
	"scenario that came with verbena.\n"
	"\n"
	"      --set KEY=VALUE      overrides a key, for example switch.kmin=100KB\n"
	"      --seed N             overrides run.seed\n"
	"      --seeds A..B         one run for each seed, and the mean of each figure; also "
	"A,B,C\n"
	"      --sweep KEY=V1,V2... one run for each value; several --sweep: for each combination\n"
	"      --alone              also runs each job alone, and reports by how much the others slow it down\n"
	"      --report DIR         writes CSV, JSON and a page with drawings, report.html\n"
	"      --print-commands     prints a command for each run instead of running it\n"
	"      --run 'host N: COMMAND'\n"
	"                           runs a program on that host, in simulated time; several --run; also\n"
	"                           'hosts 0-3,8: COMMAND'. Workloads of the scenario do not run then,\n"
	"                           and programs of its own, [program.NAME], do besides\n"
	"      --patience SECONDS   that a program may run without waiting; default: 60\n"
	"      --describe FILE      what is in a graph: GOAL or AICB text, or Chakra traces, a file for each\n"
	"                           rank, whose number a * stands for\n"
	"      --convert FILE TO    writes such a graph as GOAL text\n"
	"      --compare            compares finished runs: the folders that --report made\n"
	"  -j, --jobs N             runs of a sweep at a time; default: as many as there are processors for\n"
	"      --cores N            processor cores that a run may use; default: 1. The results are the same\n"
	"  -q, --quiet              print no progress and no summary\n"
	"      --keys               list every key of a scenario, with its default\n"
	"      --list               list the scenarios that came with verbena\n"
	"  -h, --help               this text\n"
	"\n"
	"Ctrl-C ends a run early: it reports the results so far, marked partial, and exits with status "
	"130.\n";

bool sim_own_path(char *path, size_t bytes)
{
	ssize_t n = readlink("/proc/self/exe", path, bytes - 1);

	if (n < 0)
		return false;
	path[n] = 0;
	return true;
}

/* Text in lines of KEYS_WIDTH, all but the first indented. */
static void print_wrapped(const char *text, size_t indent)
{
	size_t column = indent;

	while (*text) {
		size_t n = strcspn(text, " ");

		if (column > indent && column + 1 + n > KEYS_WIDTH) {
			printf("\n%*s", (int)indent, "");
			column = indent;
		} else if (column > indent) {
			putchar(' ');
			column++;
		}
		printf("%.*s", (int)n, text);
		column += n;
		text += n + (text[n] == ' ');
	}
	putchar('\n');
}

/* "hpcc, dcqcn": the algorithms that have the parameter. */
static void algorithms_text(uint32_t algorithms, char *buf, size_t bytes)
{
	size_t n = 0;

	buf[0] = 0;
	for (unsigned i = 0; i < CC_ALGORITHMS && n < bytes; i++) {
		if (algorithms >> i & 1)
			n += (size_t)snprintf(buf + n, bytes - n, "%s%s", n ? ", " : "", cc_name((enum cc_algorithm)i));
	}
}

static void params_print(void)
{
	size_t count;
	const struct cc_param_info *p = cc_params_table(&count);
	const struct cc_preset_info *q;
	char of[256];

	printf("\nparameters of congestion control, as keys of [cc]\n");
	for (size_t i = 0; i < count; i++) {
		printf("  %-18s", p[i].name);
		print_wrapped(p[i].help, 20);
		algorithms_text(p[i].algorithms, of, sizeof(of));
		printf("%20s%s%s%s; of %s\n", "", p[i].unit, p[i].value_default[0] ? "; default " : "",
		       p[i].value_default, of);
	}
	printf("\npresets of congestion control\n");
	q = cc_presets_table(&count);
	for (size_t i = 0; i < count; i++) {
		printf("  %-18s", q[i].name);
		snprintf(of, sizeof(of), "of %s: %s", cc_name(q[i].algorithm), q[i].help);
		print_wrapped(of, 20);
	}
}

/* Whether the key's section has names. */
static bool is_many(const struct scenario_key *k)
{
	return !strcmp(k->section, "workload") || !strcmp(k->section, "job") || !strcmp(k->section, "failure") ||
	       !strcmp(k->section, "program");
}

static int keys_print(void)
{
	size_t count;
	const struct scenario_key *k = scenario_keys(&count);

	for (size_t i = 0; i < count; i++) {
		bool many = is_many(&k[i]);

		if (!i || strcmp(k[i].section, k[i - 1].section))
			printf("%s[%s%s]\n", i ? "\n" : "", k[i].section, many ? ".NAME" : "");
		printf("  %-18s", k[i].name);
		print_wrapped(k[i].help, 20);
		printf("%20s%s%s%s\n", "", k[i].type, k[i].standard[0] ? "; default " : "", k[i].standard);
	}
	params_print();
	return EXIT_SUCCESS;
}

/* Text for mdoc(7): characters that would begin a request or an escape are protected. */
static void print_mdoc(const char *text)
{
	if (*text == '.' || *text == '\'')
		fputs("\\&", stdout);
	for (; *text; text++) {
		if (*text == '\\')
			fputs("\\e", stdout);
		else
			putchar(*text == '`' ? '\'' : *text);
	}
}

/* The list of keys in the form of the manual. */
static int keys_print_mdoc(void)
{
	size_t count;
	const struct scenario_key *k = scenario_keys(&count);

	for (size_t i = 0; i < count; i++) {
		bool many = is_many(&k[i]);

		if (!i || strcmp(k[i].section, k[i - 1].section))
			printf(".Ss [%s%s]\n.Bl -tag -width indent\n", k[i].section, many ? ".NAME" : "");
		printf(".It Sy %s No = Ar ", k[i].name);
		for (const char *t = k[i].type; *t; t++)
			fputs(*t == '|' ? " | " : *t == ',' ? "\\&," : (char[]){*t, 0}, stdout);
		if (k[i].standard[0])
			printf(" Pq Li %s", k[i].standard);
		putchar('\n');
		print_mdoc(k[i].help);
		puts(".");
		if (i + 1 == count || strcmp(k[i].section, k[i + 1].section))
			puts(".El");
	}
	return EXIT_SUCCESS;
}

static bool whole_number(const char *text, uint64_t max, uint64_t *out)
{
	char *end;
	unsigned long long v;

	errno = 0;
	v = strtoull(text, &end, 10);
	if (errno || end == text || *end || text[0] == '-' || text[0] == '+' || text[0] == ' ' || v > max)
		return false;
	*out = v;
	return true;
}

int sim_one(const struct sim_task *task, struct figures *g)
{
	struct sim_input in;
	struct results *r;
	enum sim_outcome outcome;
	int rc = sim_input_load(&in, task->name, task->sets, task->set_count);

	if (rc)
		return rc;
	in.scenario->cores = task->cores;
	r = malloc(sizeof(*r));
	if (!r) {
		sim_input_free(&in);
		return complain("out of memory");
	}
	results_init(r);
	sim_signals_catch();
	outcome = sim_run(&in, r, task->report, !task->quiet && isatty(STDERR_FILENO));
	if (outcome == SIM_REFUSED)
		rc = EXIT_OURS;
	else if (task->alone && outcome == SIM_ENDED)
		rc = sim_alone(task, &in, r);
	if (rc) {
		/* It was said. */
	} else if (figures_make(g, in.scenario, r)) {
		rc = complain("out of memory");
	} else {
		if (!task->quiet)
			sim_summary(stdout, &in, r, g);
		if (task->report)
			rc = sim_report(task->report, &in, r, g);
		if (task->report && !rc && !task->quiet)
			printf("report     %s/report.html\n", task->report);
		if (fflush(stdout) || ferror(stdout))
			rc = complain("cannot write: %s", strerror(errno));
		if (outcome == SIM_FAILED)
			rc = complain("%s", r->partial_why);
		else if (!rc && (outcome == SIM_INTERRUPTED || outcome == SIM_STUCK))
			rc = outcome == SIM_STUCK ? EXIT_STUCK : EXIT_INTERRUPTED;
	}
	results_free(r);
	free(r);
	sim_input_free(&in);
	return rc;
}

/* Reads "3" or "1..10"; both ends must be below 2^64 - 1. */
static bool seed_range(char *text, uint64_t *first, uint64_t *last)
{
	char *dots = strstr(text, "..");

	if (dots)
		*dots = 0;
	return whole_number(text, UINT64_MAX - 1, first) &&
	       whole_number(dots ? dots + 2 : text, UINT64_MAX - 1, last) && *first <= *last;
}

/* "1..3,7" as "run.seed=1,2,3,7". NULL after an error message. *Caller frees.* */
static char *seeds_sweep(const char *text)
{
	char *copy = strdup(text), *rest = copy, *word, *out = NULL;
	size_t bytes = 0, count = 0;
	FILE *f = open_memstream(&out, &bytes);
	bool good = copy && f;

	if (good)
		fputs("run.seed=", f);
	while (good && (word = strsep(&rest, ","))) {
		uint64_t first, last;

		good = seed_range(word, &first, &last) && last - first < SEEDS_MAX - count;
		for (uint64_t i = 0; good && i <= last - first; i++)
			fprintf(f, "%s%" PRIu64, count++ ? "," : "", first + i);
	}
	if (f)
		fclose(f);
	free(copy);
	if (good)
		return out;
	free(out);
	complain("--seeds %s: allowed are at most %d whole numbers, as 1..10 or 1,2,5..8", text, SEEDS_MAX);
	return NULL;
}

/* What the command line says. */
struct sim_options {
	struct sweep_options w;
	const char *sets[SETS_MAX], *sweeps[SETS_MAX];
	char *seeds; /* a sweep; it lives to the end */
	char seed[48];
	bool compare;
	const char *describe, *convert; /* files */
	struct sim_runs programs;
};

static int add_setting(struct sim_options *o, const char *text, bool sweeps)
{
	if (o->w.set_count + o->w.sweep_count + 2 >= SETS_MAX)
		return complain("sim: at most %d --set and --sweep are allowed in all", SETS_MAX - 2);
	if (sweeps)
		o->sweeps[o->w.sweep_count++] = text;
	else
		o->sets[o->w.set_count++] = text;
	return EXIT_SUCCESS;
}

static int set_seed(struct sim_options *o, const char *text)
{
	uint64_t n;

	if (!whole_number(text, UINT64_MAX - 1, &n))
		return complain("--seed %s: allowed is a whole number below 2^64 - 1", text);
	snprintf(o->seed, sizeof(o->seed), "run.seed=%" PRIu64, n);
	o->w.seed_pinned = true;
	return EXIT_SUCCESS;
}

static int set_seeds(struct sim_options *o, const char *text)
{
	free(o->seeds);
	o->seeds = seeds_sweep(text);
	return o->seeds ? EXIT_SUCCESS : EXIT_OURS;
}

static int add_program(struct sim_options *o, const char *text)
{
	if (o->programs.count == SIM_RUNS_MAX)
		return complain("sim: at most %d --run are allowed", SIM_RUNS_MAX);
	o->programs.runs[o->programs.count++] = text;
	return EXIT_SUCCESS;
}

static int set_patience(struct sim_options *o, const char *text)
{
	if (!whole_number(text, 1000000, &o->programs.patience_s) || !o->programs.patience_s)
		return complain("--patience %s: allowed is a whole number of seconds from 1 to 1000000", text);
	return EXIT_SUCCESS;
}

static int set_report(struct sim_options *o, const char *folder)
{
	if (!folder[0])
		return complain("--report: needs the name of a folder");
	o->w.report = folder;
	return EXIT_SUCCESS;
}

static int set_jobs(struct sim_options *o, const char *text)
{
	uint64_t n;

	if (!whole_number(text, JOBS_MAX, &n) || !n)
		return complain("--jobs %s: allowed is a whole number from 1 to %d", text, JOBS_MAX);
	o->w.jobs = (unsigned)n;
	return EXIT_SUCCESS;
}

static int set_cores(struct sim_options *o, const char *text)
{
	uint64_t n;

	if (!whole_number(text, CORES_MAX, &n) || !n)
		return complain("--cores %s: allowed is a whole number from 1 to %d", text, CORES_MAX);
	o->w.cores = (unsigned)n;
	return EXIT_SUCCESS;
}

static int print_keys(const char *form)
{
	if (form && strcmp(form, "mdoc"))
		return complain("--keys=%s: allowed is mdoc, or nothing", form);
	return form ? keys_print_mdoc() : keys_print();
}

/* Reads the options into *o. Returns false, with the exit status in *status, when there is nothing left to do. */
static bool parse(int argc, char **argv, struct sim_options *o, int *status)
{
	enum {
		OPT_SET = 256,
		OPT_SEED,
		OPT_SEEDS,
		OPT_SWEEP,
		OPT_ALONE,
		OPT_PRINT,
		OPT_COMPARE,
		OPT_RUN,
		OPT_PATIENCE,
		OPT_DESCRIBE,
		OPT_CONVERT,
		OPT_REPORT,
		OPT_CORES,
		OPT_KEYS,
		OPT_LIST
	};
	static const struct option options[] = {
		{"set", required_argument, NULL, OPT_SET},
		{"seed", required_argument, NULL, OPT_SEED},
		{"seeds", required_argument, NULL, OPT_SEEDS},
		{"sweep", required_argument, NULL, OPT_SWEEP},
		{"alone", no_argument, NULL, OPT_ALONE},
		{"print-commands", no_argument, NULL, OPT_PRINT},
		{"compare", no_argument, NULL, OPT_COMPARE},
		{"run", required_argument, NULL, OPT_RUN},
		{"patience", required_argument, NULL, OPT_PATIENCE},
		{"describe", required_argument, NULL, OPT_DESCRIBE},
		{"convert", required_argument, NULL, OPT_CONVERT},
		{"report", required_argument, NULL, OPT_REPORT},
		{"jobs", required_argument, NULL, 'j'},
		{"cores", required_argument, NULL, OPT_CORES},
		{"quiet", no_argument, NULL, 'q'},
		{"keys", optional_argument, NULL, OPT_KEYS},
		{"list", no_argument, NULL, OPT_LIST},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int opt;

	*status = EXIT_SUCCESS;
	while (*status == EXIT_SUCCESS && (opt = getopt_long(argc, argv, "j:qh", options, NULL)) != -1) {
		switch (opt) {
		case OPT_SET: *status = add_setting(o, optarg, false); break;
		case OPT_SWEEP: *status = add_setting(o, optarg, true); break;
		case OPT_SEED: *status = set_seed(o, optarg); break;
		case OPT_SEEDS: *status = set_seeds(o, optarg); break;
		case OPT_ALONE: o->w.alone = true; break;
		case OPT_PRINT: o->w.print_commands = true; break;
		case OPT_COMPARE: o->compare = true; break;
		case OPT_RUN: *status = add_program(o, optarg); break;
		case OPT_PATIENCE: *status = set_patience(o, optarg); break;
		case OPT_DESCRIBE: o->describe = optarg; break;
		case OPT_CONVERT: o->convert = optarg; break;
		case OPT_REPORT: *status = set_report(o, optarg); break;
		case 'j': *status = set_jobs(o, optarg); break;
		case OPT_CORES: *status = set_cores(o, optarg); break;
		case 'q': o->w.quiet = true; break;
		case OPT_KEYS: *status = print_keys(optarg); return false;
		case OPT_LIST: sim_scenarios_list(stdout); return false;
		case 'h': fputs(usage, stdout); return false;
		default: *status = usage_error("sim"); return false;
		}
	}
	return *status == EXIT_SUCCESS;
}

static int compare(const struct sim_options *o, char **folders, int count)
{
	if (o->w.set_count || o->w.sweep_count || o->seed[0] || o->w.print_commands)
		return complain("sim: --compare: only folders of finished runs and --report are allowed");
	if (!count)
		return complain("sim: --compare: the folders of finished runs are needed");
	return sim_collect(folders, (size_t)count, o->w.report, o->w.quiet);
}

static int graph_only(const struct sim_options *o, char **names, int count)
{
	if (o->describe && (o->convert || count))
		return complain("sim: --describe: one file is allowed");
	if (o->describe)
		return sim_describe(o->describe);
	if (count != 1)
		return complain(
			"sim: --convert: two files are needed, the graph's and the one to write; - is the screen");
	return sim_convert(o->convert, names[0]);
}

static int simulate_programs(struct sim_options *o)
{
	if (o->w.sweep_count || o->w.print_commands)
		return complain("sim: programs run without --sweep, --seeds and --print-commands");
	if (o->w.cores > 1)
		return complain("sim: --cores: programs run on one core only");
	o->programs.name = o->w.name;
	o->programs.sets = o->sets;
	o->programs.set_count = o->w.set_count;
	o->programs.report = o->w.report;
	o->programs.quiet = o->w.quiet;
	return sim_programs(&o->programs);
}

static int simulate(struct sim_options *o, char **names, int count)
{
	struct figures g;
	bool programs;
	int rc;

	if (!count) {
		complain("sim: a scenario is needed: a file, or one of");
		sim_scenarios_list(stderr);
		return EXIT_OURS;
	}
	if (count > 1)
		return complain("sim: only one scenario is allowed; '%s' is one too many", names[1]);
	if (o->w.print_commands && !o->w.report)
		return complain("--print-commands: needs --report DIR: results would be nowhere else");
	if (o->seed[0])
		o->sets[o->w.set_count++] = o->seed;
	o->w.name = names[0];
	rc = sim_has_programs(o->w.name, o->sets, o->w.set_count, &programs);
	if (rc)
		return rc;
	if (programs || o->programs.count)
		return simulate_programs(o);
	if (o->w.sweep_count || o->w.print_commands)
		return sim_sweep(&o->w);
	return sim_one(
		&(struct sim_task){o->w.name, o->sets, o->w.set_count, o->w.report, o->w.cores, o->w.quiet, o->w.alone},
		&g);
}

int cmd_sim(int argc, char **argv)
{
	static struct sim_options o;
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	int status;

	o.programs.patience_s = SIM_PATIENCE_S;
	o.w = (struct sweep_options){.sets = o.sets, .sweeps = o.sweeps, .cores = 1};
	if (!parse(argc, argv, &o, &status))
		return status;
	if (!o.w.jobs)
		o.w.jobs = processors > (long)o.w.cores ? (unsigned)processors / o.w.cores : 1;
	if (o.seeds && o.seed[0])
		return complain("sim: --seed and --seeds: only one of the two is allowed");
	/* The last sweep varies fastest, so runs that differ in their seed alone are neighbours. */
	if (o.seeds)
		o.sweeps[o.w.sweep_count++] = o.seeds;
	if (o.describe || o.convert)
		return graph_only(&o, argv + optind, argc - optind);
	if (o.compare)
		return compare(&o, argv + optind, argc - optind);
	return simulate(&o, argv + optind, argc - optind);
}
