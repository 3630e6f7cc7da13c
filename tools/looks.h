/* SPDX-License-Identifier: BSD-2-Clause */
/* What the queue pairs and paths of running programs do, asked of the programs themselves (engine/qps_page.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine/config.h"
#include "engine/stats.h"
#include "nic/nic.h"
#include "verbs/hostid.h"

/* A device of a program. */
struct look {
	pid_t pid; /* here, or in its own PID namespace if that cannot be seen from here */
	char comm[STATS_COMM_BYTES];
	char device[DEVICE_NAME_BYTES];
	bool raw;       /* its packets are RoCEv1's frames */
	uint64_t at_ns; /* by its clock */
	uint64_t took_ns;
	struct nic_counters counters;
	struct nic_path_look *paths;
	size_t path_count;
	bool paths_missing;      /* there are more */
	struct nic_qp_look *qps; /* by QPN */
	size_t qp_count;
};

struct looks {
	struct look *all;
	size_t count;
};

enum { LOOKS_PIDS_MAX = 64 };

struct looks_wanted {
	const pid_t *pids; /* none: every program */
	int pid_count;
	bool matched[LOOKS_PIDS_MAX];
};

/*
 * Looks at the programs of this user, or for root of every user. One that does not answer is left out, after a sentence on
 * standard error if `tells`. A program answers once a second, so a second look within one waits. 0 or a negative errno.
 */
int looks_take(struct looks *, const struct config *, struct looks_wanted *, bool tells);
void looks_free(struct looks *);

/* The same program's device in an earlier look, and the same queue pair or path; NULL: it was not there. */
const struct look *look_before(const struct looks *, const struct look *);
const struct nic_qp_look *look_qp_before(const struct look *, const struct nic_qp_look *);
const struct nic_path_look *look_path_before(const struct look *, const struct nic_path_look *);

/* Bytes a second between the two, of those counted in words that wrap; `before` is NULL: from nothing on. */
double look_words_rate(uint32_t before, uint32_t now, double seconds);

/* The name of the device that a page is of, printable. */
void page_device(char name[DEVICE_NAME_BYTES], const struct stats_page *);

/* Process ids of a command line. False, after a sentence. */
bool looks_pids(const char *command, int argc, char **argv, pid_t pids[LOOKS_PIDS_MAX], int *count);
/* Says which were not found. */
int looks_missing(const struct looks_wanted *);

/* A queue pair in words; those of rdma(8), where it has them. */
const char *qp_type_word(const struct nic_qp_report *);
const char *qp_state_word(const struct nic_qp_report *);
const char *qp_way_word(const struct nic_qp_report *, bool raw); /* raw: packets are RoCEv1's frames */
const char *qp_protocol_word(const struct nic_qp_look *);
bool qp_has_peer(const struct nic_qp_report *);
