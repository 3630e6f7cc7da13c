/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Combines runs that differ in their seed alone: the mean of each figure, and how far that may be
 * from the mean over all seeds. It is the mean of the runs' figures: a mean of p99s is not the p99
 * of all flows together.
 */
#include "sim.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Two-sided 95 % quantile of Student's t. */
static double t_95(size_t freedom)
{
	static const double t[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
				   2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
				   2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};

	if (freedom <= sizeof(t) / sizeof(t[0]))
		return t[freedom - 1];
	return 1.96 + 2.37 / (double)freedom;
}

static double value_of(const struct figure *f)
{
	return f->kind == FIGURE_RATIO || f->kind == FIGURE_SHARE ? f->ratio : (double)f->value;
}

bool sim_mean(const struct sweep_run *r, size_t count, const char *group, const char *name, struct mean *out)
{
	double sum = 0, squares = 0;

	*out = (struct mean){0};
	for (size_t i = 0; i < count; i++) {
		const struct figure *f =
			strcmp(r[i].group, group) || r[i].status ? NULL : figure_find(&r[i].figures, name);
		double v;

		if (!f)
			continue;
		v = value_of(f);
		if (!out->runs++ || v < out->min)
			out->min = v;
		if (out->runs == 1 || v > out->max)
			out->max = v;
		out->figure = *f;
		sum += v;
	}
	if (!out->runs)
		return false;
	out->mean = sum / (double)out->runs;
	for (size_t i = 0; i < count; i++) {
		const struct figure *f =
			strcmp(r[i].group, group) || r[i].status ? NULL : figure_find(&r[i].figures, name);

		if (f)
			squares += (value_of(f) - out->mean) * (value_of(f) - out->mean);
	}
	if (out->runs > 1) {
		out->deviation = sqrt(squares / (double)(out->runs - 1));
		out->half_95 = t_95(out->runs - 1) * out->deviation / sqrt((double)out->runs);
	}
	return true;
}

bool sim_groups_repeat(const struct sweep_run *r, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!sim_group_begins(r, i))
			return true;
	}
	return false;
}

bool sim_group_begins(const struct sweep_run *r, size_t i)
{
	for (size_t k = 0; k < i; k++) {
		if (!strcmp(r[k].group, r[i].group))
			return false;
	}
	return true;
}

static void set(struct figure *f, double v)
{
	f->value = v > 0 ? (uint64_t)(v + 0.5) : 0;
	f->ratio = v;
}

void mean_text(const struct mean *m, char mean[SIM_TEXT_BYTES], char half[SIM_TEXT_BYTES])
{
	struct figure f = m->figure;

	half[0] = 0;
	set(&f, m->mean);
	figure_text(&f, mean);
	if (f.kind == FIGURE_COUNT && m->mean < 1000)
		snprintf(mean, SIM_TEXT_BYTES, "%.4g", m->mean);
	if (m->runs < 2)
		return;
	set(&f, m->half_95);
	if (m->half_95 == 0)
		snprintf(half, SIM_TEXT_BYTES, "0");
	else if (f.kind == FIGURE_RATIO || (f.kind == FIGURE_COUNT && m->half_95 < 1000))
		snprintf(half, SIM_TEXT_BYTES, "%.2g", m->half_95);
	else
		figure_text(&f, half);
}

void sim_means_csv(FILE *f, const struct sweep_run *r, size_t count)
{
	fprintf(f, "settings,figure,unit,runs,mean,ci95_half,deviation,min,max\n");
	for (size_t i = 0; i < count; i++) {
		if (!sim_group_begins(r, i))
			continue;
		/* If one run of the group lacks the figure, the next one may have it. */
		for (size_t from = i; from < count; from++) {
			const struct figures *g = &r[from].figures;

			for (size_t k = 0; k < g->count && !strcmp(r[from].group, r[i].group); k++) {
				struct mean m;
				bool told = false;

				for (size_t before = i; before < from && !told; before++)
					told = !strcmp(r[before].group, r[i].group) &&
					       figure_find(&r[before].figures, g->f[k].name);
				if (told || !sim_mean(r, count, r[i].group, g->f[k].name, &m))
					continue;
				csv_field(f, r[i].group);
				fprintf(f, ",%s,%s,%zu,%.6f,%.6f,%.6f,%.6f,%.6f\n", g->f[k].name,
					figure_unit(&m.figure), m.runs, m.mean, m.half_95, m.deviation, m.min, m.max);
			}
		}
	}
}
