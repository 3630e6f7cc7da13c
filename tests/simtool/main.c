/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbena sim` alone. */
#include "tool.h"

int main(int argc, char **argv)
{
	argv[0] = (char[]){"verbena sim"};
	return cmd_sim(argc, argv);
}
