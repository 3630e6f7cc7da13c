/* SPDX-License-Identifier: BSD-2-Clause */
/* The log of a program's faults on command, as text and as JSON. */
#include "events.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "limits/limits.h"
#include "tool.h"

static const char *object_of(const struct fault_record *r, char text[24])
{
	if (r->qp)
		snprintf(text, 24, "qp %u", r->qp);
	else
		snprintf(text, 24, "device");
	return text;
}

/* What made the event: the place of the rule, or which quota. */
static const char *cause_of(const struct fault_log *log, const struct fault_record *r)
{
	if (r->rule != FAULT_NO_RULE)
		return log->rules[r->rule].where;
	return r->action == FAULT_QUOTA && r->value < LIMITS ? limit_name(r->value) : "?";
}

static void print_record(const struct fault_log *log, const struct fault_record *r)
{
	char object[24], shown[FAULT_SHOWN_BYTES];

	fault_shown(r, shown);
	printf("  %12.6f  %-24s %-10s %s%s%s%s\n", (double)r->time_ns / 1e9, cause_of(log, r), object_of(r, object),
	       fault_action_name(r->action), r->outcome == FAULT_UNDONE ? " ends" : "", shown[0] ? ": " : "", shown);
}

static void print_record_json(FILE *to, const struct fault_log *log, const struct fault_record *r)
{
	char object[24], shown[FAULT_SHOWN_BYTES];

	fault_shown(r, shown);
	fprintf(to, "\"seconds\": %.9f, \"rule\": ", (double)r->time_ns / 1e9);
	json_string(to, cause_of(log, r));
	fprintf(to, ", \"object\": \"%s\", \"action\": \"%s\", \"ends\": %s, \"shown\": \"%s\"", object_of(r, object),
		fault_action_name(r->action), r->outcome == FAULT_UNDONE ? "true" : "false", shown);
}

/* Calls f for the records that are left, oldest first. */
static uint64_t first_record(const struct fault_log *log)
{
	return log->record_count > FAULT_RECORDS_MAX ? log->record_count - FAULT_RECORDS_MAX : 0;
}

static struct fault_log *copy_of(const struct stats_page *p)
{
	struct fault_log *log = malloc(sizeof(*log));

	if (!log || fault_log_read(&p->faults, log))
		return log;
	complain("process %d does not finish writing its events", p->pid);
	free(log);
	return NULL;
}

void events_print(const struct stats_page *p, const char *device)
{
	struct fault_log *log = copy_of(p);
	char comm[STATS_COMM_BYTES];

	if (!log)
		return;
	printable(comm, sizeof(comm), p->comm, sizeof(p->comm));
	printf("%d %s, %s: %" PRIu64 " events\n", p->pid, comm, device, log->record_count);
	if (first_record(log))
		printf("  the first %" PRIu64 " are not kept\n", first_record(log));
	for (uint64_t i = first_record(log); i < log->record_count; i++)
		print_record(log, &log->records[i % FAULT_RECORDS_MAX]);
	free(log);
}

void events_print_json(const struct stats_page *p, const char *device)
{
	struct fault_log *log = copy_of(p);

	if (!log)
		return;
	for (uint64_t i = first_record(log); i < log->record_count; i++) {
		printf("{\"pid\": %d, \"device\": \"%s\", ", p->pid, device);
		print_record_json(stdout, log, &log->records[i % FAULT_RECORDS_MAX]);
		puts("}");
	}
	free(log);
}

void rules_print(const struct stats_page *p, const char *device)
{
	struct fault_log *log = copy_of(p);
	char comm[STATS_COMM_BYTES];

	if (!log)
		return;
	printable(comm, sizeof(comm), p->comm, sizeof(p->comm));
	printf("%d %s, %s: %u rules\n", p->pid, comm, device, log->rule_count);
	for (uint32_t i = 0; i < log->rule_count; i++)
		printf("  %8" PRIu64 " times  %-24s %s\n", log->rules[i].fired, log->rules[i].where,
		       log->rules[i].text);
	free(log);
}
