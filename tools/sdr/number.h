/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers of the command line. */
#ifndef TOOLS_SDR_NUMBER_H
#define TOOLS_SDR_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* The numbers that an option allows; `power`: powers of two alone, and 0 if low is 0. */
struct number_range {
	uint64_t low, high;
	bool power;
};

bool number_allowed(struct number_range, uint64_t);
/* The value of option --name, decimal, octal or hexadecimal. Ends the program if it is not allowed. */
uint64_t number_read(const char *name, const char *text, struct number_range);

#endif
