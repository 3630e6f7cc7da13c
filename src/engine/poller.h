/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether a thread of the program that has stopped polling does something else, or waits for a processor. In the latter
 * case the engine's thread would only be one more that wants one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The calling thread, as gettid(2) says; it is asked once. */
pid_t poller_self(void);
/* In a child of fork, whose thread has another number. */
void poller_forget_self(void);

/* Nanoseconds that a thread of this process has run; 0: there is none, or that is not known. */
uint64_t poller_ran_ns(pid_t tid);
/*
 * Whether that thread waits for a processor: it ran for less than three quarters of the last `for_ns` nanoseconds, in
 * which it began with `ran_ns`, and is neither asleep nor stopped. False where that cannot be known.
 */
bool poller_waits(pid_t tid, uint64_t ran_ns, uint64_t for_ns);
