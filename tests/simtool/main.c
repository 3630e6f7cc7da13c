/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbena sim` alone. */
#include <string.h>

#include "tool.h"

int main(int argc, char **argv)
{
	/* As a command printed by --print-commands calls it. */
	if (argc > 1 && !strcmp(argv[1], "sim")) {
		argc--;
		argv++;
	}
	argv[0] = (char[]){"verbena sim"};
	return cmd_sim(argc, argv);
}
