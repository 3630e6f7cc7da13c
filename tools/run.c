/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `verbena run`: sets up the loader's and our environment and becomes the program. All checks come
 * before that.
 */
#include "tool.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/config.h"
#include "engine/gids.h"
#include "heir.h"
#include "lockstep/lockstep.h"
#include "program.h"
#include "sysfs_dir.h"

#define VERBS_LIBRARY    "libibverbs.so.1"
#define PATHS_LIBRARY    "libverbena-paths.so"
#define LOCKSTEP_LIBRARY "libverbena-lockstep.so"

enum { SETTING = 1 /* an option with the name of a setting */ };

static const char usage[] =
	"usage: verbena run [OPTION...] [--] COMMAND [ARGUMENT...]\n"
	"\n"
	"Runs COMMAND with Verbena's libibverbs and device in place of the system's.\n"
	"\n"
	"      --pcap FILE      capture sent and received packets; %p in FILE is the process id\n"
	"      --impair SPEC    spoil received packets, for example drop=1%,seed=7; keys: drop\n"
	"                       burst dup reorder corrupt ce delay jitter rate limit seed\n"
	"      --faults FILE    a script of faults: what fails, when and how (verbena-fault(7))\n"
	"      --device NAME    the device's name, and the settings of its section in VERBENA_CONFIG's file\n"
	"      --address LIST   receive at these addresses of the host alone, so that several users or\n"
	"                       devices are beside each other; any of 127.0.0.0/8 will do on one host\n"
	"      --rate RATE, --burst BYTES, --weight N, --quota LIST\n"
	"                       limits of all programs of the device together (verbena(7))\n"
	"      --pkeys LIST     the device's P_Keys, 0xffff if not given\n"
	"      --map FILE       the virtual GIDs of addresses, which programs know instead\n"
	"      --set KEY=VALUE  set any setting of 'verbena help', named without VERBENA_\n"
	"      --preload        preload libibverbs too, for libraries with a run path of their own\n"
	"  -h, --help           this text\n"
	"\n"
	"The exit status is COMMAND's; 125: verbena failed; 126: COMMAND cannot be executed; 127: it\n"
	"was not found.\n";

/* Puts text before or behind the value of a list variable. */
static void list_add(const char *variable, const char *text, bool before)
{
	const char *old = getenv(variable);
	char *joined;

	if (!old || !old[0]) {
		setenv(variable, text, 1);
		return;
	}
	if (asprintf(&joined, "%s:%s", before ? text : old, before ? old : text) < 0)
		return;
	setenv(variable, joined, 1);
	free(joined);
}

/* The directory of our libraries, from where this program lies: built or installed. */
static int library_dir(char dir[PATH_MAX])
{
	static const char *const places[] = {"lib/verbena", "../lib/verbena", "../" VERBENA_LIBDIR "/verbena"};
	char exe[PATH_MAX], file[2 * PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	const char *base;

	if (n < 0)
		return complain("cannot find verbena's own path: /proc/self/exe: %s", strerror(errno));
	exe[n] = 0;
	base = dirname(exe);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(file, sizeof(file), "%s/%s/" VERBS_LIBRARY, base, places[i]);
		if (access(file, R_OK))
			continue;
		*strrchr(file, '/') = 0;
		if (realpath(file, dir))
			return 0;
	}
	return complain("there is no " VERBS_LIBRARY " of ours in %s/%s, %s or %s", base, places[0], places[1],
			places[2]);
}

/* The loader splits these lists at such characters and has no way to quote them. */
static bool loader_can_name(const char *dir)
{
	return !strpbrk(dir, ":; \t\n$");
}

/* False: no setting has so long a name. */
static bool set_variable(const char *key, size_t len, const char *value)
{
	char name[64];

	if ((size_t)snprintf(name, sizeof(name), "VERBENA_%.*s", (int)len, key) >= sizeof(name))
		return false;
	for (char *p = name; *p; p++)
		*p = (char)toupper((unsigned char)*p);
	setenv(name, value, 1);
	return true;
}

static int set_setting(const char *assignment)
{
	const char *equals = strchr(assignment, '=');

	if (!equals || equals == assignment)
		return complain("--set %s: allowed is KEY=VALUE", assignment);
	if (!set_variable(assignment, (size_t)(equals - assignment), equals + 1))
		return complain("--set %s: no such setting; 'verbena help' has the list", assignment);
	return 0;
}

/* The program may change its directory before it opens the file. A link may lead elsewhere by then, and is not followed. */
static void set_file(const char *variable, const char *file)
{
	char cwd[PATH_MAX], path[2 * PATH_MAX];

	if (file[0] == '/' || !getcwd(cwd, sizeof(cwd)))
		snprintf(path, sizeof(path), "%s", file);
	else
		snprintf(path, sizeof(path), "%s/%s", cwd, file);
	setenv(variable, path, 1);
}

static int set_pcap(const char *file)
{
	if (!file[0])
		return complain("--pcap: the name of a file is needed");
	set_file("VERBENA_PCAP", file);
	return 0;
}

static bool is_quiet(void)
{
	const char *quiet = getenv("VERBENA_QUIET");

	return quiet && quiet[0];
}

/* It limits nothing then, which may be meant for a faster host. */
static void warn_of_rate(const struct config *c, const struct gid_table *t)
{
	if (t->port.speed_bps && c->limits.rate_bps > t->port.speed_bps && !is_quiet())
		complain("VERBENA_RATE is %.3f Gbit/s, and the fastest interface has %.3f",
			 (double)c->limits.rate_bps / 1e9, (double)t->port.speed_bps / 1e9);
}

/* Sets the environment for our libraries: settings and files. */
static int prepare_ours(void)
{
	struct sysfs_devices devices;
	struct gid_table *t;
	struct config c;
	char why[1024], dir[PATH_MAX], use[16];
	int rc;

	if (config_load(&c, why, sizeof(why)))
		return complain("%s", why);
	/* The program may change its directory before it opens the device. */
	if (c.faults[0] && c.faults[0] != '/' && realpath(c.faults, dir))
		setenv("VERBENA_FAULTS", dir, 1);
	if (c.map[0])
		set_file("VERBENA_MAP", c.map);
	t = calloc(c.devices.count, sizeof(*t));
	if (!t)
		return complain("out of memory");
	rc = gids_load_all(t, &c, why, sizeof(why));
	if (!rc)
		warn_of_rate(&c, t);
	devices = sysfs_devices_of(&c, t);
	if (!rc)
		rc = sysfs_dir_get(&devices, dir, sizeof(dir), why, sizeof(why));
	free(t);
	if (rc < 0)
		return complain("%s", why);
	/*
	 * The descriptor stays open and marks the directory as used by us, the program and its
	 * children.
	 */
	snprintf(use, sizeof(use), "%d", rc);
	setenv("VERBENA_SYSFS", dir, 1);
	setenv("VERBENA_SYSFS_USE", use, 1);
	return 0;
}

static int prepare_loader(bool preload_verbs)
{
	char dir[PATH_MAX], library[PATH_MAX + 32];

	if (library_dir(dir))
		return EXIT_OURS;
	if (!loader_can_name(dir))
		return complain("the loader cannot use the directory '%s': it has one of : ; $ or a space "
				"in its name",
				dir);
	list_add("LD_LIBRARY_PATH", dir, true);
	if (preload_verbs) {
		snprintf(library, sizeof(library), "%s/" VERBS_LIBRARY, dir);
		list_add("LD_PRELOAD", library, false);
	}
	snprintf(library, sizeof(library), "%s/" PATHS_LIBRARY, dir);
	if (!access(library, R_OK))
		list_add("LD_PRELOAD", library, false);
	snprintf(library, sizeof(library), "%s/" LOCKSTEP_LIBRARY, dir);
	if (getenv(LOCKSTEP_VARIABLE))
		list_add("LD_PRELOAD", library, false);
	/* For programs with default options of their own, which take the place of ours (src/verbs/sanitizer.c). */
	list_add("ASAN_OPTIONS", "verify_asan_link_order=0", true);
	return 0;
}

/* The program runs all the same, since a static shell may start programs that are not static. */
static void obstacle_say(const struct program *p)
{
	static const char *const why[] = {
		[PROGRAM_STATIC] = "is linked statically, so the loader cannot give it Verbena's libraries; "
				   "link it dynamically",
		[PROGRAM_FOREIGN] = "is for another kind of machine than Verbena's libraries, so the loader cannot "
				    "give them to it",
		[PROGRAM_SET_ID] = "changes its user or group (set-user-ID), so the loader ignores the environment; "
				   "run it as that user, or a copy without the bit",
		[PROGRAM_CAPABILITIES] = "has file capabilities, so the loader ignores the environment; run it as "
					 "root, or a copy without them",
	};

	if (p->obstacle != PROGRAM_OPEN && !is_quiet())
		complain("%s will not find Verbena's device: it %s", p->file, why[p->obstacle]);
}

int cmd_run(int argc, char **argv)
{
	static const struct option options[] = {
		{"pcap", required_argument, NULL, 'p'},
		{"impair", required_argument, NULL, SETTING},
		{"faults", required_argument, NULL, SETTING},
		{"device", required_argument, NULL, SETTING},
		{"address", required_argument, NULL, SETTING},
		{"rate", required_argument, NULL, SETTING},
		{"burst", required_argument, NULL, SETTING},
		{"weight", required_argument, NULL, SETTING},
		{"quota", required_argument, NULL, SETTING},
		{"pkeys", required_argument, NULL, SETTING},
		{"map", required_argument, NULL, SETTING},
		{"set", required_argument, NULL, 's'},
		{"preload", no_argument, NULL, 'l'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	bool preload_verbs = false;
	struct program program;
	int opt, at, rc = 0;

	while ((opt = getopt_long(argc, argv, "+h", options, &at)) != -1) {
		switch (opt) {
		case 'p': rc = set_pcap(optarg); break;
		case SETTING: set_variable(options[at].name, strlen(options[at].name), optarg); break;
		case 's': rc = set_setting(optarg); break;
		case 'l': preload_verbs = true; break;
		case 'h': fputs(usage, stdout); return EXIT_SUCCESS;
		default: return usage_error("run");
		}
		if (rc)
			return rc;
	}
	if (optind == argc) {
		complain("run: the command to run is missing");
		return usage_error("run");
	}
	if (program_look(argv[optind], &program)) {
		obstacle_say(&program);
		preload_verbs |= program.has_own_verbs;
	}
	/* No process of another time takes part where programs run in simulated time. */
	if (!getenv(LOCKSTEP_VARIABLE))
		heir_leave();
	rc = prepare_ours();
	if (!rc)
		rc = prepare_loader(preload_verbs);
	if (rc)
		return rc;

	execvp(argv[optind], argv + optind);
	rc = errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
	complain("cannot run '%s': %s", argv[optind],
		 errno == ENOENT && !strchr(argv[optind], '/') ? "command not found" : strerror(errno));
	return rc;
}
