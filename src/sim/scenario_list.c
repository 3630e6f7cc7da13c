/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists in the values of a scenario. A list that cannot be read leaves its field as it was. */
#include "sim/scenario_list.h"

#include "base/quantity.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SLOW_PS_MAX (UINT64_C(86400) * 1000000000000) /* a day */

bool scenario_refuse(char *why, size_t bytes, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, bytes, fmt, ap);
	va_end(ap);
	return false;
}

/* A whole number below 2^32; *text moves behind it. */
static bool u32_parse(const char **text, uint32_t *out)
{
	uint64_t v = 0;
	const char *p = *text;

	if (!isdigit((unsigned char)*p))
		return false;
	for (; isdigit((unsigned char)*p); p++) {
		v = v * 10 + (uint64_t)(*p - '0');
		if (v >= UINT32_MAX)
			return false;
	}
	*out = (uint32_t)v;
	*text = p;
	return true;
}

static void blanks_skip(const char **p)
{
	while (**p == ' ' || **p == '\t')
		(*p)++;
}

/* Behind an element of a list: the comma, or the end. */
static bool list_goes_on(const char **p, bool *more)
{
	blanks_skip(p);
	*more = **p == ',';
	if (*more)
		(*p)++;
	blanks_skip(p);
	return *more || !**p;
}

bool scenario_ranges_set(struct scenario_ranges *field, const char *text, char *why, size_t why_bytes)
{
	struct scenario_ranges r = {0};
	const char *p = text;
	bool more = *text;

	while (more) {
		if (r.count == SCENARIO_RANGES_MAX)
			return scenario_refuse(why, why_bytes, "'%.64s': more than %d ranges", text,
					       SCENARIO_RANGES_MAX);
		if (!u32_parse(&p, &r.range[r.count].first))
			goto bad;
		r.range[r.count].last = r.range[r.count].first;
		if (*p == '-') {
			p++;
			if (!u32_parse(&p, &r.range[r.count].last))
				goto bad;
		}
		if (r.range[r.count].last < r.range[r.count].first)
			return scenario_refuse(why, why_bytes,
					       "'%.64s': the range %" PRIu32 "-%" PRIu32 " runs backwards", text,
					       r.range[r.count].first, r.range[r.count].last);
		r.count++;
		if (!list_goes_on(&p, &more))
			goto bad;
	}
	*field = r;
	return true;
bad:
	return scenario_refuse(why, why_bytes, "'%.64s': allowed are numbers from 0 and ranges, as 0-7,12; or all",
			       text);
}

bool scenario_lost_set(struct scenario_link *link, const char *text, char *why, size_t why_bytes)
{
	struct scenario_lost_packet lost[SCENARIO_RANGES_MAX];
	uint32_t count = 0;
	const char *p = text;
	bool more = *text;

	while (more) {
		if (count == SCENARIO_RANGES_MAX)
			return scenario_refuse(why, why_bytes, "'%.64s': more than %d packets", text,
					       SCENARIO_RANGES_MAX);
		if (!u32_parse(&p, &lost[count].flow) || *p++ != ':' || !u32_parse(&p, &lost[count].nth) ||
		    !lost[count].nth || !list_goes_on(&p, &more))
			return scenario_refuse(why, why_bytes,
					       "'%.64s': allowed is FLOW:N, with commas between: the "
					       "N-th data packet of a flow, N from 1, FLOW from 0",
					       text);
		count++;
	}
	memcpy(link->lost, lost, count * sizeof(lost[0]));
	link->lost_count = count;
	return true;
}

/* "3:1.2" or "3:1.2@10ms-20ms"; *text moves behind it. */
static bool slow_parse(const char **text, struct scenario_slow *s)
{
	static const struct quantity_form factor = {.exponent = 9};
	static const struct quantity_form time = {quantity_times, NULL, 12, 0, QUANTITY_UNIT};
	const char *p = *text;
	size_t n;

	*s = (struct scenario_slow){.to_ps = SCENARIO_NEVER};
	if (!u32_parse(&p, &s->host) || *p++ != ':')
		return false;
	n = strspn(p, "0123456789.");
	if (quantity_parse(p, n, &factor, &s->factor_ppb) || s->factor_ppb > 1000 * SCENARIO_PPB)
		return false;
	p += n;
	if (*p == '@') {
		n = strcspn(++p, "-, \t");
		if (p[n] != '-' || quantity_parse(p, n, &time, &s->from_ps))
			return false;
		p += n + 1;
		n = strcspn(p, ", \t");
		if (quantity_parse(p, n, &time, &s->to_ps) || s->to_ps <= s->from_ps || s->to_ps > SLOW_PS_MAX)
			return false;
		p += n;
	}
	*text = p;
	return true;
}

/* In order of starts; false: it overlaps another one of its host. */
static bool slow_insert(struct scenario_slow *all, uint32_t count, struct scenario_slow s)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (all[i].host == s.host && all[i].from_ps < s.to_ps && s.from_ps < all[i].to_ps)
			return false;
	}
	for (i = count; i && all[i - 1].from_ps > s.from_ps; i--)
		all[i] = all[i - 1];
	all[i] = s;
	return true;
}

bool scenario_slow_set(struct scenario_host *host, const char *text, char *why, size_t why_bytes)
{
	struct scenario_slow slow[SCENARIO_RANGES_MAX], one;
	uint32_t count = 0;
	const char *p = text;
	bool more = *text;

	while (more) {
		if (count == SCENARIO_RANGES_MAX)
			return scenario_refuse(why, why_bytes, "'%.64s': more than %d hosts or times", text,
					       SCENARIO_RANGES_MAX);
		if (!slow_parse(&p, &one) || !list_goes_on(&p, &more))
			return scenario_refuse(
				why, why_bytes,
				"'%.64s': allowed is HOST:FACTOR or HOST:FACTOR@FROM-TO, with commas "
				"between: the number of a host, 0 to 1000, and two times up to 1 day, as "
				"3:1.2@10ms-20ms",
				text);
		if (!slow_insert(slow, count++, one))
			return scenario_refuse(why, why_bytes, "'%.64s': host %" PRIu32 " has two factors at one time",
					       text, one.host);
	}
	memcpy(host->slow, slow, count * sizeof(slow[0]));
	host->slow_count = count;
	return true;
}

bool scenario_weights_set(uint32_t field[SCENARIO_CLASSES], const char *text, char *why, size_t why_bytes)
{
	uint32_t w[SCENARIO_CLASSES];
	const char *p = text;
	bool more = true;

	for (int i = 0; i < SCENARIO_CLASSES; i++) {
		if (!more || !u32_parse(&p, &w[i]) || w[i] > 1000 || (i && !w[i]) || !list_goes_on(&p, &more))
			goto bad;
	}
	if (more)
		goto bad;
	memcpy(field, w, sizeof(w));
	return true;
bad:
	return scenario_refuse(why, why_bytes,
			       "'%.64s': allowed are the weights of classes 0 to 7, 1 to 1000, with commas "
			       "between; 0 for class 0, which is control: strict priority",
			       text);
}

bool scenario_link_set(uint32_t ends[2], const char *text, char *why, size_t why_bytes)
{
	const char *p = text;
	uint32_t a, b;

	if (!u32_parse(&p, &a) || *p++ != '-' || !u32_parse(&p, &b) || *p || a == b)
		return scenario_refuse(why, why_bytes, "'%.64s': allowed is A-B, the numbers of two nodes", text);
	ends[0] = a;
	ends[1] = b;
	return true;
}

bool scenario_arrive_set(uint64_t *gap_ps, const char *text, char *why, size_t why_bytes)
{
	static const struct quantity_form form = {quantity_counts, NULL, 3, 0, QUANTITY_BLANK};
	const uint64_t ps_by_milli = UINT64_C(1000) * 1000000000000;
	const char *number = text + strlen("poisson ");
	uint64_t milli;

	if (strncmp(text, "poisson ", strlen("poisson ")) != 0 ||
	    quantity_parse(number, strlen(number), &form, &milli) || milli < 10 || milli > UINT64_C(1000000000000))
		return scenario_refuse(why, why_bytes,
				       "'%.64s': allowed is poisson N, where N arrive in a second in the mean, 0.01 to "
				       "1000000000, as poisson 200",
				       text);
	*gap_ps = ps_by_milli / milli;
	return true;
}
