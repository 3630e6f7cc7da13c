/* SPDX-License-Identifier: BSD-2-Clause */
/* summary.json, the same for the same seed; and simulator.json, the time and memory of the machine. */
#include "sim.h"

#include <inttypes.h>
#include <string.h>

#include "tool.h"

void shell_word(FILE *f, const char *s)
{
	if (*s && !s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,=/_-:%+")]) {
		fputs(s, f);
		return;
	}
	fputc('\'', f);
	for (; *s; s++) {
		if (*s == '\'')
			fputs("'\\''", f);
		else
			fputc(*s, f);
	}
	fputc('\'', f);
}

void sim_command_write(FILE *f, const struct sim_input *in)
{
	const char *slash = strrchr(in->path, '/');

	fputs("verbena sim ", f);
	shell_word(f, slash ? slash + 1 : in->path);
	for (size_t i = 0; i < in->set_count; i++) {
		if (!strncmp(in->sets[i], "run.seed=", 9))
			continue;
		fputs(" --set ", f);
		shell_word(f, in->sets[i]);
	}
	fprintf(f, " --seed %" PRIu64, in->scenario->run.seed);
}

static void write_string(FILE *f, const char *name, const char *value)
{
	fprintf(f, "  \"%s\": ", name);
	json_string(f, value);
	fputs(",\n", f);
}

void sim_json_write(struct folder *d, const struct sim_input *in, const struct results *r, const struct figures *g)
{
	const struct scenario *s = in->scenario;
	FILE *f = folder_file(d, "summary.json");
	char text[SIM_TEXT_BYTES];

	fputs("{\n", f);
	write_string(f, "verbena", VERBENA_VERSION);
	write_string(f, "scenario", s->name);
	write_string(f, "title", s->title);
	fprintf(f, "  \"seed\": %" PRIu64 ",\n  \"set\": [", s->run.seed);
	for (size_t i = 0; i < in->set_count; i++) {
		fputs(i ? ", " : "", f);
		json_string(f, in->sets[i]);
	}
	fputs("],\n", f);
	write_string(f, "transport", transport_text(s, r));
	write_string(f, "cc", cc_text(s, r, text));
	fprintf(f, "  \"partial\": %s,\n", r->partial ? "true" : "false");
	write_string(f, "partial_why", r->partial ? r->partial_why : "");
	fprintf(f, "  \"hosts\": %" PRIu32 ",\n  \"switches\": %" PRIu32 ",\n  \"links\": %" PRIu32 ",\n", r->hosts,
		r->switches, r->links);
	fprintf(f, "  \"host_rate_bps\": %" PRIu64 ",\n  \"base_rtt_ps\": %" PRIu64 ",\n", r->host_rate_bps,
		r->base_rtt_ps);
	fprintf(f, "  \"header_limited_share\": %.9f,\n", (double)r->header_share_ppb / 1e9);
	fprintf(f, "  \"order_hash\": \"%016" PRIx64 "\",\n  \"invariants_checked\": %" PRIu64 ",\n", r->order_hash,
		r->invariants_checked);
	fputs("  \"units\": \"time ps, rates bit/s, sizes bytes, shares of 1\",\n  \"figures\": "
	      "{\n",
	      f);
	for (size_t i = 0; i < g->count; i++) {
		fprintf(f, "    \"%s\": ", g->f[i].name);
		figure_number(f, &g->f[i]);
		fputs(i + 1 < g->count ? ",\n" : "\n", f);
	}
	fputs("  }\n}\n", f);

	f = folder_file(d, "simulator.json");
	fprintf(f, "{\n  \"wall_s\": %.6f,\n  \"cpu_s\": %.6f,\n  \"memory_bytes_peak\": %" PRIu64 ",\n",
		(double)r->simulator.wall_ns / 1e9, (double)r->simulator.cpu_ns / 1e9, r->simulator.memory_bytes_peak);
	fprintf(f, "  \"events_per_s\": %.0f,\n  \"packet_hops_per_s\": %.0f\n}\n",
		r->simulator.wall_ns ? (double)r->events * 1e9 / (double)r->simulator.wall_ns : 0,
		r->simulator.wall_ns ? (double)r->packet_hops * 1e9 / (double)r->simulator.wall_ns : 0);
}
