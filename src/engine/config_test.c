/* SPDX-License-Identifier: BSD-2-Clause */
/* Settings: what is taken, who wins, and that every mistake is named. */
#include "engine/config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

extern char **environ;

static char file[] = "/tmp/verbena-config-XXXXXX";

static int load(struct config *c, char *variable, const char *text, char err[1024])
{
	char config[sizeof(file) + 32];
	char *env[3] = {variable, NULL, NULL}, **saved = environ;
	FILE *f;
	int rc;

	if (text) {
		f = fopen(file, "w");
		assert_non_null(f);
		fputs(text, f);
		fclose(f);
		snprintf(config, sizeof(config), "VERBENA_CONFIG=%s", file);
		env[variable ? 1 : 0] = config;
	}
	environ = env;
	err[0] = 0;
	rc = config_load(c, err, 1024);
	environ = saved;
	return rc;
}

static void without_settings_there_are_defaults(void **state)
{
	struct config c;
	char err[1024];

	assert_int_equal(load(&c, NULL, NULL, err), 0);
	assert_int_equal(c.port, 4791);
	assert_int_equal(c.spin_us, 50);
	assert_int_equal(c.window_bytes, 0);
	assert_string_equal(c.pcap, "");
	assert_string_equal(c.impair, "");
	assert_string_equal(c.interfaces, "");
}

static void the_environment_wins_over_the_file(void **state)
{
	struct config c;
	char err[1024];

	assert_int_equal(load(&c, "VERBENA_PORT=5000",
			      "; a comment\n# another\n\nport = 6000\nwindow_bytes = 2M\n"
			      "pcap = /tmp/%p.pcap ; why not\nimpair = drop=0.01,seed=7\n",
			      err),
			 0);
	assert_int_equal(c.port, 5000);
	assert_int_equal(c.window_bytes, 2 << 20);
	assert_string_equal(c.pcap, "/tmp/%p.pcap");
	assert_string_equal(c.impair, "drop=0.01,seed=7");
}

static void good_values_are_taken(void **state)
{
	static char *const good[] = {
		"VERBENA_PORT=1",
		"VERBENA_PORT=65535",
		"VERBENA_WINDOW_BYTES=4096",
		"VERBENA_WINDOW_BYTES=4k",
		"VERBENA_WINDOW_BYTES=1G",
		"VERBENA_WINDOW_BYTES=auto",
		"VERBENA_ACK_DELAY_US=0",
		"VERBENA_IMPAIR=",
		"VERBENA_SYSFS=/whatever",
		"VERBENA_PATHS=1",
		"VERBENACLE=no prefix of ours",
		"OTHER=1",
	};
	struct config c;
	char err[1024];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		if (load(&c, good[i], NULL, err))
			fail_msg("%s: %s", good[i], err);
	}
}

static void bad_variables_are_named(void **state)
{
	static const struct {
		char *variable;
		const char *told;
	} bad[] = {
		{"VERBENA_PROT=4791", "VERBENA_PROT=4791: no such setting; there are: VERBENA_PCAP, "},
		{"VERBENA_port=4791", "VERBENA_port=4791: no such setting"},
		{"VERBENA_=1", "VERBENA_=1: no such setting"},
		{"VERBENA_PORT=", "VERBENA_PORT=: allowed is a whole number from 1 to 65535"},
		{"VERBENA_PORT=0", "VERBENA_PORT=0: allowed is"},
		{"VERBENA_PORT=65536", "VERBENA_PORT=65536: allowed is"},
		{"VERBENA_PORT=-1", "VERBENA_PORT=-1: allowed is"},
		{"VERBENA_PORT= 1", "VERBENA_PORT= 1: allowed is"},
		{"VERBENA_PORT=1 ", "VERBENA_PORT=1 : allowed is"},
		{"VERBENA_PORT=1K", "VERBENA_PORT=1K: allowed is"},
		{"VERBENA_PORT=0x10", "VERBENA_PORT=0x10: allowed is"},
		{"VERBENA_PORT=99999999999999999999", "allowed is"},
		{"VERBENA_WINDOW_BYTES=4095", "K, M or G may follow it; or auto"},
		{"VERBENA_WINDOW_BYTES=2G", "allowed is"},
		{"VERBENA_WINDOW_BYTES=0", "allowed is"},
		{"VERBENA_PORT=auto", "allowed is"},
		{"VERBENA_WINDOW_BYTES=1KB", "allowed is"},
		{"VERBENA_WINDOW_BYTES=4294967295G", "allowed is"},
		{"VERBENA_IMPAIR=drop=2", "VERBENA_IMPAIR=drop=2: "},
		{"VERBENA_IMPAIR=dorp=0.1", "dorp"},
	};
	struct config c;
	char err[1024], saved;

	memset(&c, 0x5a, sizeof(c));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(load(&c, bad[i].variable, NULL, err), -EINVAL);
		if (!strstr(err, bad[i].told))
			fail_msg("%s: told '%s', not '%s'", bad[i].variable, err, bad[i].told);
	}
	memcpy(&saved, &c, 1);
	assert_int_equal(saved, 0x5a); /* untouched on failure */
}

static void bad_files_are_named_with_the_line(void **state)
{
	char longer[400] = "port = 1\npcap = ";
	const struct {
		const char *text;
		const char *told;
	} bad[] = {
		{"port = 70000\n", ":1: port = 70000: allowed is a whole number from 1 to 65535"},
		{"\nprot = 1\n", ":2: prot = 1: no such setting; there are: pcap, "},
		{"PORT = 1\n", ":1: PORT = 1: no such setting"},
		{"port = 1\nspin_us = 1\nport = 2\n", ":3: port: given twice"},
		{"port = 1\nnonsense\n", ":2: not of the form key = value"},
		{"nonsense\nport = 0\n", ":1: not of the form key = value"},
		{"[nic]\nport = 1\n", ":2: section [nic]: there are no sections"},
		{"port = 1\nimpair = drop=x\n", ":2: impair = drop=x: "},
		{longer, ":2: longer than"},
	};
	struct config c;
	char err[1024];

	memset(longer + strlen(longer), 'x', sizeof(longer) - strlen(longer) - 1);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(load(&c, NULL, bad[i].text, err), -EINVAL);
		if (!strstr(err, bad[i].told) || strncmp(err, file, strlen(file)))
			fail_msg("%s: told '%s', not '%s'", bad[i].text, err, bad[i].told);
	}
}

static void a_file_that_is_not_there_is_an_error(void **state)
{
	struct config c;
	char err[1024];

	assert_int_equal(load(&c, "VERBENA_CONFIG=/does/not/exist", NULL, err), -EINVAL);
	assert_non_null(strstr(err, "VERBENA_CONFIG=/does/not/exist: cannot open it"));
}

static void help_has_every_key(void **state)
{
	static const char *const keys[] = {"PCAP", "IMPAIR", "INTERFACES", "PORT", "WINDOW_BYTES",
					   "ACK_DELAY_US", "SPIN_US"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		assert_non_null(strstr(config_help(), keys[i]));
}

static int make_file(void **state)
{
	int fd = mkstemp(file);

	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	return unlink(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_settings_there_are_defaults),
		cmocka_unit_test(the_environment_wins_over_the_file),
		cmocka_unit_test(good_values_are_taken),
		cmocka_unit_test(bad_variables_are_named),
		cmocka_unit_test(bad_files_are_named_with_the_line),
		cmocka_unit_test(a_file_that_is_not_there_is_an_error),
		cmocka_unit_test(help_has_every_key),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
