/* SPDX-License-Identifier: BSD-2-Clause */
/* paths_test LIBRARY: /sys and /dev as ordinary programs see them with the library preloaded. */
#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEST_OWN_MAIN
#include "support/test.h"
#include "verbs/tree.h"

static char dir[] = "/tmp/verbena-paths-XXXXXX";
static const char *library;

static const struct tree_gid gid = {{[0] = 0xfe, [1] = 0x80, [15] = 9}, "eth7"};

static int tree_make(void **state)
{
	const struct tree_facts facts = {.guid = 1, .device_count = 1, .gids = &gid, .gid_count = 1};

	return !mkdtemp(dir) || tree_render(dir, &facts);
}

static int tree_drop(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

/* Runs a command with the library preloaded and stores its output; returns its exit status. */
static int run(const char *environment, const char *command, char *out, size_t size)
{
	char line[1024];
	FILE *p;
	size_t n;
	int status;

	snprintf(line, sizeof(line), "env LD_PRELOAD=%s VERBENA_SYSFS=%s %s sh -c '%s' 2>&1", library, dir, environment,
		 command);
	p = popen(line, "r");
	assert_non_null(p);
	n = fread(out, 1, size - 1, p);
	out[n] = '\0';
	status = pclose(p);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

struct look {
	const char *command;
	const char *output;
	int status;
};

TEST(programs_see_the_tree)
{
	static const struct look looks[] = {
		{"ls /sys/class/infiniband", "verbena0\n", 0},
		{"ls /sys/class/infiniband/", "verbena0\n", 0},
		{"ls /sys/class/infiniband/verbena0/device/net", "eth7\n", 0},
		{"cat /sys/class/infiniband/verbena0/ports/1/gid_attrs/types/0", "RoCE v2\n", 0},
		{"cat /sys/class/infiniband_verbs/uverbs0/ibdev", "verbena0\n", 0},
		{"basename $(readlink /sys/class/infiniband/verbena0/device/driver)", "verbena\n", 0},
		{"basename $(realpath /sys/class/infiniband/verbena0/device/driver)", "verbena\n", 0},
		{"test -d /sys/class/infiniband/verbena0/device/driver && echo yes", "yes\n", 0},
		{"basename $(realpath /sys/class/infiniband/verbena0/device)", "verbena0:00.0\n", 0},
		{"test -c /dev/infiniband/uverbs0 && test -r /dev/infiniband/uverbs0 && "
		 "test -w /dev/infiniband/rdma_cm && echo yes",
		 "yes\n", 0},
		{"ls /dev/infiniband", "rdma_cm\nuverbs0\n", 0},
		{"cat /sys/class/infiniband_mad/abi_version >/dev/null 2>&1", "", 1},
		{"test -e /sys/class/infiniband/verbena1", "", 1},
		{"test -e /dev/infiniband/uverbs1", "", 1},
		/* A path that only has a similar beginning stays what it is, like all others. */
		{"test -e /dev/infinibandx", "", 1},
		{"test -d /sys/class && test -c /dev/null && echo yes", "yes\n", 0},
		{"python3 -c \"import os; print(os.path.exists(\\\"/sys/class/infiniband/verbena0\\\"), "
		 "os.listdir(\\\"/sys/class/infiniband\\\"), "
		 "open(\\\"/sys/class/infiniband/verbena0/node_type\\\").read())\"",
		 "True ['verbena0'] 1: CA\n\n", 0},
	};
	char out[512];

	for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++) {
		int status = run("", looks[i].command, out, sizeof(out));

		if (status != looks[i].status || strcmp(out, looks[i].output))
			print_error("%s: status %d, printed:\n%s", looks[i].command, status, out);
		assert_int_equal(status, looks[i].status);
		assert_string_equal(out, looks[i].output);
	}
}

TEST(a_switch_turns_it_off)
{
	char out[512];

	assert_int_not_equal(run("VERBENA_PATHS=off", "cat /sys/class/infiniband/verbena0/node_type", out, sizeof(out)),
			     0);
	assert_int_not_equal(run("VERBENA_SYSFS=", "cat /sys/class/infiniband/verbena0/node_type", out, sizeof(out)),
			     0);
}

TEST_PROGRAM(tree_make, tree_drop)

int main(int argc, char **argv)
{
	library = argc == 2 ? argv[1] : "";
	return test_run(argc, argv);
}
