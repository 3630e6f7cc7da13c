/* SPDX-License-Identifier: BSD-2-Clause */
/* The `verbena` command: finds the subcommand. */
#include "tool.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "engine/config.h"

static const char usage[] = "verbena - RDMA for every Linux machine: a network card in user space\n"
			    "\n"
			    "usage: verbena run [OPTION...] COMMAND [ARGUMENT...]\n"
			    "       verbena devices [--json | --sysfs DIR]\n"
			    "       verbena stat [OPTION...] [PID...]\n"
			    "       verbena qps [OPTION...] [PID...]\n"
			    "       verbena top [OPTION...]\n"
			    "       verbena export OPTION...\n"
			    "       verbena fault PID|all COMMAND...\n"
			    "       verbena freeze PID [--hold TIME]\n"
			    "       verbena thaw PID\n"
			    "       verbena move PID --to NETNS [--with-addresses] [--restore]\n"
			    "       verbena sim [OPTION...] SCENARIO\n"
			    "       verbena sdr model|plan|ring|figures [OPTION...]\n"
			    "       verbena fabric [OPTION...] TOPOLOGY [-- COMMAND [ARGUMENT...]]\n"
			    "       verbena help [COMMAND]\n"
			    "       verbena --version\n"
			    "\n"
			    "  run      runs a program that uses libibverbs on Verbena's device\n"
			    "  devices  shows the device, its port, addresses (GIDs) and limits\n"
			    "  stat     shows live counters of running programs\n"
			    "  qps      shows the queue pairs of running programs\n"
			    "  top      shows what queue pairs and paths do, and again each second\n"
			    "  export   gives counters to Prometheus, and to programs that read sysfs\n"
			    "  fault    makes the device of running programs fail on command\n"
			    "  freeze   lets time stand still for the device of a running program\n"
			    "  thaw     lets it go on\n"
			    "  move     moves a running program, or its device, to another network namespace\n"
			    "  sim      simulates a network of hosts that run Verbena's transport\n"
			    "  sdr      computes what reliability costs over a long link, and recommends one\n"
			    "  fabric   models an InfiniBand fabric for subnet managers and their tools\n"
			    "\n"
			    "settings: in the environment, or in the file that VERBENA_CONFIG names\n"
			    "\n"
			    "  variable              default meaning\n";

/* Not a setting: it works even if the settings cannot be read. */
static const char quiet_help[] =
	"  VERBENA_QUIET           -       any value: calls that fail print nothing on standard error\n";

static const struct command {
	const char *name;
	char *title; /* the prefix of getopt's messages */
	int (*run)(int argc, char **argv);
} commands[] = {
	{"run", (char[]){"verbena run"}, cmd_run},          {"devices", (char[]){"verbena devices"}, cmd_devices},
	{"stat", (char[]){"verbena stat"}, cmd_stat},       {"qps", (char[]){"verbena qps"}, cmd_qps},
	{"top", (char[]){"verbena top"}, cmd_top},          {"export", (char[]){"verbena export"}, cmd_export},
	{"fault", (char[]){"verbena fault"}, cmd_fault},    {"freeze", (char[]){"verbena freeze"}, cmd_freeze},
	{"thaw", (char[]){"verbena thaw"}, cmd_thaw},       {"move", (char[]){"verbena move"}, cmd_move},
	{"sim", (char[]){"verbena sim"}, cmd_sim},          {"sdr", (char[]){"verbena sdr"}, cmd_sdr},
	{"fabric", (char[]){"verbena fabric"}, cmd_fabric},
};

const char *gid_text(const uint8_t raw[16], char text[ADDRESS_BYTES])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (!memcmp(raw, mapped, sizeof(mapped)))
		return inet_ntop(AF_INET, raw + 12, text, ADDRESS_BYTES);
	return inet_ntop(AF_INET6, raw, text, ADDRESS_BYTES);
}

static const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	}
	return NULL;
}

static int help(const char *name)
{
	const struct command *c = name ? command_find(name) : NULL;
	char *argv[] = {(char *)name, "--help", NULL};

	if (name && !c)
		return complain(
			"there is no command '%s'; there are: run, devices, stat, qps, top, export, fault, freeze, thaw, move, sim, sdr, fabric, "
			"help",
			name);
	if (c)
		return c->run(2, argv);
	printf("%s%s%s", usage, config_help(), quiet_help);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	const struct command *c;

	if (argc < 2) {
		fprintf(stderr, "%s%s%s", usage, config_help(), quiet_help);
		return EXIT_OURS;
	}
	if (!strcmp(argv[1], "help") || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return help(argc > 2 ? argv[2] : NULL);
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		printf("verbena %s\n", VERBENA_VERSION);
		return EXIT_SUCCESS;
	}
	c = command_find(argv[1]);
	if (!c && argv[1][0] == '-')
		return complain("there is no option '%s'; see 'verbena --help'", argv[1]);
	if (!c)
		return complain(
			"there is no command '%s'; there are: run, devices, stat, qps, top, export, fault, freeze, thaw, move, sim, sdr, fabric, "
			"help; did you "
			"mean 'verbena run %s'?",
			argv[1], argv[1]);
	argv[1] = c->title;
	return c->run(argc - 1, argv + 1);
}
