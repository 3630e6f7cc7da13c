/* SPDX-License-Identifier: BSD-2-Clause */
/* VERBENA_IMPAIR: a short notation for rules of chance about every packet that is received. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/quantity.h"
#include "faults/script.h"

enum { LATE_PACKETS_MAX = 8, BURST_DROPPED_MAX = 1000000 };

static bool parse_quantity(const char *text, const struct quantity_form *form, uint64_t max, uint64_t *out)
{
	uint64_t v;

	if (quantity_parse(text, strlen(text), form, &v) || v > max)
		return false;
	*out = v;
	return true;
}

static bool parse_probability(const char *text, void *out)
{
	static const struct quantity_form form = {.units = quantity_shares, .exponent = 18, .flags = QUANTITY_NEAREST};
	uint64_t v;

	if (!parse_quantity(text, &form, UINT64_C(1000000000000000000), &v))
		return false;
	*(double *)out = (double)v / 1e18;
	return true;
}

static bool parse_time(const char *text, void *out)
{
	static const struct quantity_form form = {
		.units = quantity_times, .exponent = 9, .flags = QUANTITY_UNIT | QUANTITY_NEAREST};

	return parse_quantity(text, &form, UINT64_C(60000000000), out);
}

static bool parse_rate(const char *text, void *out)
{
	static const struct quantity_form form = {.units = quantity_rates, .flags = QUANTITY_NEAREST};
	uint64_t v;

	if (!parse_quantity(text, &form, UINT64_C(10000000000000), &v) || v < 1000)
		return false;
	*(uint64_t *)out = v;
	return true;
}

/* Seeds are mostly written in hexadecimal. */
static bool parse_integer(const char *text, uint64_t max, uint64_t *out)
{
	char *end;
	uint64_t v;

	if (text[0] != '0' || (text[1] != 'x' && text[1] != 'X'))
		return parse_quantity(text, &quantity_whole, max, out);
	errno = 0;
	v = strtoull(text, &end, 16);
	if (*end || end == text + 1 || errno || v > max)
		return false;
	*out = v;
	return true;
}

static bool parse_limit(const char *text, void *out)
{
	uint64_t v;

	if (!parse_integer(text, FAULT_LIMIT_MAX, &v) || v == 0)
		return false;
	*(uint32_t *)out = (uint32_t)v;
	return true;
}

static bool parse_burst(const char *text, void *out)
{
	uint64_t v;

	if (!parse_integer(text, BURST_DROPPED_MAX, &v) || v == 0)
		return false;
	*(uint32_t *)out = (uint32_t)v;
	return true;
}

static bool parse_seed(const char *text, void *out)
{
	return parse_integer(text, UINT64_MAX, out);
}

static const struct key {
	const char *name;
	bool (*parse)(const char *text, void *out);
	size_t offset;
	const char *allowed;
} keys[] = {
#define KEY(name, field, parser, allowed)                                     \
	{                                                                     \
#name, parser, offsetof(struct impair_config, field), allowed \
	}
	KEY(drop, drop, parse_probability, "a probability: 0 to 1, or 0% to 100%"),
	KEY(burst, burst, parse_burst, "packets, 1 to 1000000"),
	KEY(dup, dup, parse_probability, "a probability: 0 to 1, or 0% to 100%"),
	KEY(reorder, reorder, parse_probability, "a probability: 0 to 1, or 0% to 100%"),
	KEY(corrupt, corrupt, parse_probability, "a probability: 0 to 1, or 0% to 100%"),
	KEY(ce, ce, parse_probability, "a probability: 0 to 1, or 0% to 100%"),
	KEY(delay, delay_ns, parse_time, "a time up to 60s with its unit: ns, us, ms or s"),
	KEY(jitter, jitter_ns, parse_time, "a time up to 60s with its unit: ns, us, ms or s"),
	KEY(rate, rate_bps, parse_rate, "bits a second, 1k to 10T, with k, M, G or T"),
	KEY(limit, limit, parse_limit, "packets, 1 to 65536"),
	KEY(seed, seed, parse_seed, "an unsigned 64-bit integer"),
#undef KEY
};

enum { KEYS = sizeof(keys) / sizeof(keys[0]), TEXT_BYTES_MAX = 511 };

static int parse_item(char *item, struct impair_config *cfg, unsigned *seen, char *why, size_t why_bytes)
{
	char *value = strchr(item, '=');

	if (!value) {
		snprintf(why, why_bytes, "\"%.40s\" is not key=value", item);
		return -EINVAL;
	}
	*value++ = '\0';
	for (unsigned k = 0; k < KEYS; k++) {
		if (strcmp(item, keys[k].name) != 0)
			continue;
		if (*seen & 1u << k) {
			snprintf(why, why_bytes, "%s is given twice", item);
			return -EINVAL;
		}
		*seen |= 1u << k;
		if (keys[k].parse(value, (uint8_t *)cfg + keys[k].offset))
			return 0;
		snprintf(why, why_bytes, "%s=%.40s: must be %s", item, value, keys[k].allowed);
		return -EINVAL;
	}

	int n = snprintf(why, why_bytes, "\"%.40s\" is not a key; the keys are", item);

	for (unsigned k = 0; k < KEYS && n >= 0 && (size_t)n < why_bytes; k++)
		n += snprintf(why + n, why_bytes - (size_t)n, "%s %s", k ? "," : "", keys[k].name);
	return -EINVAL;
}

int impair_parse(const char *text, struct impair_config *cfg, char *why, size_t why_bytes)
{
	struct impair_config c = {.limit = FAULT_LIMIT_DEFAULT, .seed = 1};
	char copy[TEXT_BYTES_MAX + 1];
	unsigned seen = 0;
	size_t len = strlen(text);

	if (len > TEXT_BYTES_MAX) {
		snprintf(why, why_bytes, "the text has %zu bytes; at most %d are allowed", len, TEXT_BYTES_MAX);
		return -EINVAL;
	}
	memcpy(copy, text, len + 1);

	char *rest = len ? copy : NULL;

	while (rest) {
		char *item = strsep(&rest, ",");
		int err = parse_item(item, &c, &seen, why, why_bytes);

		if (err < 0)
			return err;
	}
	*cfg = c;
	return 0;
}

/* The next rule, for every packet that is received. */
static struct fault_rule *add(struct fault_script *s, enum fault_action action, const char *key)
{
	struct fault_rule *r = &s->rules[s->count++];

	*r = (struct fault_rule){.where = "VERBENA_IMPAIR",
				 .device = -1,
				 .event = ON_PACKET,
				 .ways = FAULT_IN,
				 .opcode = -1,
				 .size_below = UINT32_MAX,
				 .each = true,
				 .action = (uint8_t)action,
				 .quiet = true};
	snprintf(r->text, sizeof(r->text), "%s", key);
	return r;
}

static void add_chance(struct fault_script *s, enum fault_action action, const char *key, double chance)
{
	struct fault_rule *r;

	if (chance <= 0)
		return;
	r = add(s, action, key);
	r->has_chance = true;
	r->chance = chance;
	if (action == FAULT_SWAP)
		r->late_max = LATE_PACKETS_MAX;
}

void fault_script_impair(struct fault_script *s, const struct impair_config *c)
{
	struct fault_rule *r;

	s->seed = c->seed;
	s->limit = c->limit;
	add_chance(s, FAULT_DROP, "drop", c->drop);
	if (c->drop > 0)
		s->rules[s->count - 1].burst = c->burst;
	add_chance(s, FAULT_DOUBLE, "dup", c->dup);
	add_chance(s, FAULT_SWAP, "reorder", c->reorder);
	add_chance(s, FAULT_CORRUPT, "corrupt", c->corrupt);
	add_chance(s, FAULT_MARK, "ce", c->ce);
	if (c->delay_ns || c->jitter_ns) {
		r = add(s, FAULT_DELAY, "delay");
		r->delay_ns = c->delay_ns;
		r->jitter_ns = c->jitter_ns;
	}
	if (c->rate_bps) {
		r = add(s, FAULT_RATE, "rate");
		r->event = ON_GATE;
		r->each = false;
		r->rate_bps = c->rate_bps;
	}
}
