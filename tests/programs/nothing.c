/* SPDX-License-Identifier: BSD-2-Clause */
/* A program that is linked statically. */
#include <stdio.h>

int main(void)
{
	puts("ran");
	return 0;
}
