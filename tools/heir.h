/* SPDX-License-Identifier: BSD-2-Clause */
/* The process that `verbena run` leaves behind for programs that are killed. */
#pragma once

/*
 * Before this process becomes the program. Programs find it by the environment. Where it cannot be had, peers of a
 * process that is killed and was its host's only one notice that when they send, and nothing is said.
 */
void heir_leave(void);
