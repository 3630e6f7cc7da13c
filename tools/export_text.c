/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names are those of the node exporter's InfiniBand collector, but for the prefix: its own would collide where that collector
 * runs beside, in the textfile's case in one answer. A program has metrics of its own in few words, as each program is a set
 * of series more.
 */
#include "export_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "export_rows.h"
#include "verbs/hostid.h"
#include "verbs/port.h"

static const struct {
	const char *metric, *type, *help, *field;
} of_programs[] = {
	{"process_queue_pairs", "gauge", "Queue pairs of a program", "qps"},
	{"process_data_received_bytes_total", "counter", "Bytes of packets that a program's device accepted",
	 "rx_bytes"},
	{"process_data_transmitted_bytes_total", "counter", "Bytes of packets that a program's device sent",
	 "tx_bytes"},
	{"process_retransmitted_packets_total", "counter", "Request packets that a program's device sent again",
	 "retransmits"},
	{"process_completion_errors_total", "counter", "Completions of a program in error", "completion_errors"},
};

static void begin(FILE *f, const char *metric, const char *type, const char *help)
{
	fprintf(f, "# HELP verbena_%s %s.\n# TYPE verbena_%s %s\n", metric, help, metric, type);
}

/* Of the settings, or of programs with others. */
static bool has_device(const struct tally *t, unsigned device)
{
	bool has = device < t->config->devices.count;

	for (size_t i = 0; i < t->program_count && !has; i++)
		has = t->programs[i].device == device;
	return has;
}

static void sample(FILE *f, const struct tally *t, const char *metric, unsigned device, const char *value)
{
	char name[DEVICE_NAME_BYTES];

	device_name(name, t->config->devices.iwarp, t->config->device, device);
	fprintf(f, "verbena_%s{device=\"%s\",port=\"1\"} %s\n", metric, name, value);
}

static void write_rows(FILE *f, const struct tally *t)
{
	char text[24];

	for (size_t i = 0; i < export_row_count; i++) {
		const struct export_row *r = &export_rows[i];

		begin(f, r->metric, "counter", r->help);
		for (unsigned d = 0; d < ENGINE_DEVICES_MAX; d++) {
			if (!has_device(t, d))
				continue;
			snprintf(text, sizeof(text), "%" PRIu64, export_value(t, r, t->sums[d]));
			sample(f, t, r->metric, d, text);
		}
	}
}

/* The state of a device's port, its physical state, and its rate. */
enum gauge { STATE, PHYSICAL_STATE, RATE };

static double gauge_value(const struct engine_port *port, enum gauge gauge)
{
	switch (gauge) {
	case STATE: return port_state(port)->state;
	case PHYSICAL_STATE: return port_state(port)->phys_state;
	/* The same number as in the kernel's file, which begins with Gbit/s. */
	default: return strtod(port_rate(port->speed_bps)->text, NULL) * 1e9 / 8;
	}
}

static void write_gauge(FILE *f, const struct tally *t, const char *metric, const char *help,
			const struct engine_port *ports, enum gauge gauge)
{
	char text[32];

	begin(f, metric, "gauge", help);
	for (unsigned d = 0; d < t->config->devices.count; d++) {
		snprintf(text, sizeof(text), "%.15g", gauge_value(&ports[d], gauge));
		sample(f, t, metric, d, text);
	}
}

static void write_ports(FILE *f, const struct tally *t, const struct engine_port *ports)
{
	char name[DEVICE_NAME_BYTES];

	begin(f, "info", "gauge", "1, with what a device is");
	for (unsigned d = 0; d < t->config->devices.count; d++) {
		device_name(name, t->config->devices.iwarp, t->config->device, d);
		fprintf(f, "verbena_info{device=\"%s\",board_id=\"" DEVICE_BOARD_ID "\",firmware_version=\"%s\"} 1\n",
			name, VERBENA_VERSION);
	}
	write_gauge(f, t, "state_id", "State of the port, by its number in IBTA: 4 is active", ports, STATE);
	write_gauge(f, t, "physical_state_id", "Physical state of the port, by its number in IBTA: 5 is up", ports,
		    PHYSICAL_STATE);
	write_gauge(f, t, "rate_bytes_per_second", "Rate of the port", ports, RATE);
}

/* Names are printable, and need no more escapes than two. */
static void write_label(FILE *f, const char *text)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', f);
		fputc(*text, f);
	}
}

static void write_programs(FILE *f, const struct tally *t)
{
	char name[DEVICE_NAME_BYTES];

	for (size_t m = 0; m < sizeof(of_programs) / sizeof(of_programs[0]); m++) {
		size_t field = tally_field(t, of_programs[m].field);

		begin(f, of_programs[m].metric, of_programs[m].type, of_programs[m].help);
		for (size_t i = 0; i < t->program_count; i++) {
			const struct tally_program *p = &t->programs[i];

			device_name(name, t->config->devices.iwarp, t->config->device, p->device);
			fprintf(f, "verbena_%s{device=\"%s\",port=\"1\",pid=\"%d\",comm=\"", of_programs[m].metric,
				name, p->pid ? p->pid : p->own_pid);
			write_label(f, p->comm);
			fprintf(f, "\"} %" PRIu64 "\n", p->counted[field]);
		}
	}
}

char *export_text(const struct tally *t, const struct engine_port *ports, size_t *bytes)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, bytes);

	if (!f)
		return NULL;
	write_ports(f, t, ports);
	write_rows(f, t);
	write_programs(f, t);
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}
