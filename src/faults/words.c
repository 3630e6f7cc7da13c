/* SPDX-License-Identifier: BSD-2-Clause */
/* The words of a script: each has a row with a reader, which takes the words that belong to it. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/quantity.h"
#include "faults/line.h"
#include "wire/opcode.h"

#define TIME_NS_MAX UINT64_C(86400000000000)

bool line_say(struct line *l, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(l->why, l->why_bytes, fmt, ap);
	va_end(ap);
	return false;
}

static bool is(const struct word *w, const char *text)
{
	return strlen(text) == w->len && !strncmp(w->text, text, w->len);
}

bool line_take(struct line *l, const char *text)
{
	if (l->next == l->count || !is(&l->words[l->next], text))
		return false;
	l->next++;
	return true;
}

/* The next word, or NULL, and said what was missing. */
static const struct word *need(struct line *l, const char *what)
{
	if (l->next < l->count)
		return &l->words[l->next++];
	line_say(l, "the line ends where %s is needed", what);
	return NULL;
}

/* ---- numbers ---- */

static bool quantity(const struct word *w, const struct quantity_form *form, uint64_t max, uint64_t *out)
{
	return !quantity_parse(w->text, w->len, form, out) && *out <= max;
}

static bool read_time(struct line *l, uint64_t *out)
{
	static const struct quantity_form form = {
		.units = quantity_times, .exponent = 9, .flags = QUANTITY_UNIT | QUANTITY_NEAREST};
	const struct word *w = need(l, "a time, as 500ms,");

	if (!w)
		return false;
	if (!quantity(w, &form, TIME_NS_MAX, out))
		return line_say(l, "'%.*s': allowed is a time up to a day with its unit: ns, us, ms or s", (int)w->len,
				w->text);
	return true;
}

static bool read_whole(struct line *l, const char *what, uint64_t min, uint64_t *out)
{
	static const struct quantity_form counts = {.units = quantity_counts};
	const struct word *w = need(l, what);

	if (!w)
		return false;
	if (!quantity(w, &counts, UINT64_MAX / 2, out) || *out < min)
		return line_say(l, "'%.*s': allowed is %s, a whole number from %u on", (int)w->len, w->text, what,
				(unsigned)min);
	return true;
}

/* ---- triggers ---- */

static bool open_gate(struct line *l, enum fault_gate gate, enum fault_unit unit, uint64_t at)
{
	if (l->has_gate)
		return line_say(l, "a rule has one of at, every and after");
	l->has_gate = true;
	l->rule.gate = gate;
	l->rule.unit = unit;
	l->rule.gate_at = at;
	return true;
}

static bool read_at(struct line *l)
{
	uint64_t ns;

	return read_time(l, &ns) && open_gate(l, GATE_AT, 0, ns);
}

/* "1000 wr" or "1GB". */
static bool read_amount(struct line *l, enum fault_gate gate)
{
	static const struct quantity_form bytes = {.units = quantity_bytes, .flags = QUANTITY_UNIT};
	const struct word *w = &l->words[l->next];
	uint64_t n;

	if (l->next < l->count && quantity(w, &bytes, UINT64_MAX / 2, &n) && n && (w->text[w->len - 1] | 32) == 'b') {
		l->next++;
		return open_gate(l, gate, UNIT_BYTES, n);
	}
	if (!read_whole(l, "a number", 1, &n))
		return false;
	if (line_take(l, "wr"))
		return open_gate(l, gate, UNIT_WR, n);
	if (line_take(l, "packets"))
		return open_gate(l, gate, UNIT_PACKETS, n);
	if (line_take(l, "bytes"))
		return open_gate(l, gate, UNIT_BYTES, n);
	return line_say(l, "a number behind 'after' or 'every' is of something: allowed are wr, packets and bytes");
}

static bool read_after(struct line *l)
{
	return read_amount(l, GATE_AFTER);
}

static bool read_every(struct line *l)
{
	static const struct quantity_form time = {.units = quantity_times, .exponent = 9, .flags = QUANTITY_UNIT};
	uint64_t ns;

	if (l->next < l->count && quantity(&l->words[l->next], &time, TIME_NS_MAX, &ns) && ns) {
		l->next++;
		return open_gate(l, GATE_EVERY, 0, ns);
	}
	return read_amount(l, GATE_EACH);
}

bool line_set_event(struct line *l, enum fault_event event)
{
	if (l->rule.event != ON_GATE && l->rule.event != event)
		return line_say(l, "a rule waits for packets, for work requests or for calls, not for two of them");
	l->rule.event = event;
	return true;
}

static bool read_qp(struct line *l);

/* "packet 3 of each qp". */
static bool read_nth(struct line *l, enum fault_event event)
{
	if (!line_set_event(l, event) || !read_whole(l, "a number", 1, &l->rule.nth))
		return false;
	if (!line_take(l, "of"))
		return true;
	if (line_take(l, "each")) {
		if (!line_take(l, "qp"))
			return line_say(l, "'of each': allowed is 'of each qp'");
		l->rule.qps = FAULT_QP_EACH;
		l->rule.nth_per_qp = true;
		return true;
	}
	if (line_take(l, "qp"))
		return read_qp(l);
	return line_say(l, "behind 'of': allowed are 'each qp', 'qp N' and 'qp any'");
}

static bool read_packet(struct line *l)
{
	return read_nth(l, ON_PACKET);
}

static bool read_wr(struct line *l)
{
	return read_nth(l, ON_WR);
}

static const char *const call_names[FAULT_CALLS] = {
#define CALL_NAME(name) [FAULT_CALL_##name] = "ibv_" #name,
	FAULT_CALLS_X(CALL_NAME)
#undef CALL_NAME
};

const char *fault_call_name(enum fault_call call)
{
	return call_names[call];
}

static bool read_call(struct line *l)
{
	const struct word *w = need(l, "the name of a verb");
	char names[FAULT_WHY_BYTES] = "";
	size_t n = 0;
	uint64_t nth;

	if (!w || !line_set_event(l, ON_CALL))
		return false;
	for (unsigned i = 0; i < FAULT_CALLS; i++) {
		if (!is(w, call_names[i]))
			continue;
		l->rule.call = (uint8_t)i;
		l->rule.nth_again = line_take(l, "every");
		if (l->rule.nth_again)
			return read_whole(l, "a number", 1, &l->rule.nth);
		if (l->next < l->count && quantity(&l->words[l->next], &quantity_whole, UINT32_MAX, &nth) && nth) {
			l->rule.nth = nth;
			l->next++;
		}
		return true;
	}
	for (unsigned i = 0; i < FAULT_CALLS; i++)
		n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", i ? ", " : "", call_names[i]);
	return line_say(l, "'%.*s': no such call; allowed are %s", (int)w->len, w->text, names);
}

/* By its whole name, or by that of the operation, whatever the service. -1: there is none. */
static int opcode_of(const struct word *w)
{
	for (int op = 0; op < 256; op++) {
		const struct opcode_info *info = opcode_info((uint8_t)op);
		const char *operation = info ? strchr(info->name, '_') : NULL;

		if (info && is(w, info->name))
			return op | OPCODE_WHOLE;
		if (operation && is(w, operation + 1))
			return op & 31;
	}
	return -1;
}

static bool read_opcode(struct line *l)
{
	const struct word *w = need(l, "an opcode");

	if (!w)
		return false;
	l->rule.opcode = (int16_t)opcode_of(w);
	return l->rule.opcode >= 0 ||
	       line_say(
		       l,
		       "'%.*s': no such opcode; allowed are those of the standard, as READ_REQUEST, SEND_ONLY, WRITE_LAST, "
		       "ACK and, of one service, RC_SEND_FIRST or UD_SEND_ONLY, and CNP",
		       (int)w->len, w->text);
}

static bool read_size(struct line *l)
{
	static const struct quantity_form form = {.units = quantity_bytes};
	bool above = line_take(l, "above");
	const struct word *w;
	uint64_t n;

	if (!above && !line_take(l, "below"))
		return line_say(l, "behind 'size': allowed are 'above N' and 'below N'");
	w = need(l, "a number of bytes");
	if (!w)
		return false;
	if (!quantity(w, &form, UINT32_MAX - 1, &n))
		return line_say(l, "'%.*s': allowed is a number of bytes", (int)w->len, w->text);
	if (above)
		l->rule.size_above = (uint32_t)n;
	else
		l->rule.size_below = (uint32_t)n;
	return true;
}

static bool read_cm(struct line *l)
{
	static const struct {
		const char *name;
		uint16_t attribute;
	} kinds[] = {{"REQ", 0x10},  {"MRA", 0x11},  {"REJ", 0x12},      {"REP", 0x13},     {"RTU", 0x14},
		     {"DREQ", 0x15}, {"DREP", 0x16}, {"SIDR_REQ", 0x17}, {"SIDR_REP", 0x18}};
	const struct word *w = need(l, "a kind of CM message");

	if (!w)
		return false;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (is(w, kinds[i].name))
			l->rule.cm = kinds[i].attribute;
	return l->rule.cm || line_say(l,
				      "'%.*s': no such CM message; allowed are REQ, MRA, REJ, REP, RTU, DREQ, DREP, "
				      "SIDR_REQ and SIDR_REP",
				      (int)w->len, w->text);
}

static bool read_condition(struct line *l)
{
	if (line_take(l, "opcode"))
		return read_opcode(l);
	if (line_take(l, "size"))
		return read_size(l);
	if (line_take(l, "cm"))
		return read_cm(l);
	if (line_take(l, "first"))
		return l->rule.first = true;
	if (line_take(l, "last"))
		return l->rule.last = true;
	if (line_take(l, "retransmitted"))
		return l->rule.again = true;
	return line_say(
		l, "behind 'when': allowed are opcode NAME, size above N, size below N, first, last, retransmitted "
		   "and cm KIND, with 'and' between them");
}

static bool read_when(struct line *l)
{
	l->has_when = true;
	do {
		if (!line_set_event(l, ON_PACKET) || !read_condition(l))
			return false;
	} while (line_take(l, "and"));
	return true;
}

static bool read_chance(struct line *l)
{
	static const struct quantity_form form = {.units = quantity_shares, .exponent = 18, .flags = QUANTITY_NEAREST};
	const struct word *w = need(l, "a share, as 0.1%,");
	uint64_t v;

	if (!w)
		return false;
	if (!quantity(w, &form, UINT64_C(1000000000000000000), &v))
		return line_say(l, "'%.*s': allowed is a probability: 0 to 1, or 0%% to 100%%", (int)w->len, w->text);
	l->rule.has_chance = true;
	l->rule.chance = (double)v / 1e18;
	return true;
}

/* "each qp" is each of them; in "each qp 2" and "each qp any" the word is about packets and requests. */
static bool read_each(struct line *l)
{
	const struct word *behind = l->next + 1 < l->count ? &l->words[l->next + 1] : NULL;
	bool names_one = behind && (is(behind, "any") || (behind->text[0] >= '0' && behind->text[0] <= '9'));

	if (!names_one && line_take(l, "qp"))
		l->rule.qps = FAULT_QP_EACH;
	else
		l->rule.each = true;
	return true;
}

/* ---- objects ---- */

static bool read_qp(struct line *l)
{
	const struct word *w = need(l, "the number of a queue pair");
	char text[20], *end;
	unsigned long v;

	if (!w)
		return false;
	if (is(w, "any"))
		l->rule.qps = FAULT_QP_ANY;
	else if (is(w, "each"))
		l->rule.qps = FAULT_QP_EACH;
	else
		l->rule.qps = FAULT_QP_NTH;
	if (l->rule.qps != FAULT_QP_NTH)
		return true;
	snprintf(text, sizeof(text), "%.*s", (int)w->len, w->text);
	errno = 0;
	v = w->text[0] >= '0' && w->text[0] <= '9' ? strtoul(text, &end, 0) : 0;
	if (!v || errno || *end || w->len >= sizeof(text) || v > 0xffffff)
		return line_say(
			l,
			"'%.*s': allowed are any, each, a number from 1 on (in the order in which they are created) "
			"and 0x with a QPN",
			(int)w->len, w->text);
	l->rule.qp = (uint32_t)v;
	if (w->len > 2 && (w->text[1] | 32) == 'x')
		l->rule.qps = FAULT_QP_NUMBER;
	return true;
}

static bool read_address(struct line *l, uint8_t raw[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	const struct word *w = need(l, "an address");
	char text[INET6_ADDRSTRLEN];

	if (!w)
		return false;
	snprintf(text, sizeof(text), "%.*s", (int)w->len, w->text);
	memcpy(raw, mapped, sizeof(mapped));
	if (w->len < sizeof(text) && (inet_pton(AF_INET, text, raw + 12) == 1 || inet_pton(AF_INET6, text, raw) == 1))
		return true;
	return line_say(l, "'%.*s': allowed are IPv4 and IPv6 addresses", (int)w->len, w->text);
}

static bool read_peer(struct line *l)
{
	l->rule.has_peer = true;
	return read_address(l, l->rule.peer);
}

static bool read_in(struct line *l)
{
	l->rule.ways = l->names_way ? FAULT_IN | FAULT_OUT : FAULT_IN;
	return l->names_way = true;
}

static bool read_out(struct line *l)
{
	l->rule.ways = l->names_way ? FAULT_IN | FAULT_OUT : FAULT_OUT;
	return l->names_way = true;
}

/* "verbena1", "verbena_iw0": the n-th of its kind. */
static bool read_device(struct line *l, const struct word *w)
{
	bool iwarp = w->len > 10 && !strncmp(w->text, "verbena_iw", 10);
	size_t prefix = iwarp ? 10 : 7;
	struct word digits = {w->text + prefix, w->len - prefix};
	uint64_t n;

	if (quantity(&digits, &quantity_whole, 64, &n)) {
		for (uint32_t d = 0; d < l->host->devices; d++) {
			if ((l->host->iwarp >> d & 1) != iwarp || n--)
				continue;
			l->rule.device = (int)d;
			return true;
		}
	}
	return line_say(l, "'%.*s': no such device; allowed are those that 'verbena devices' shows (there %s %u)",
			(int)w->len, w->text, l->host->devices == 1 ? "is" : "are", l->host->devices);
}

/* ---- actions ---- */

static bool act(struct line *l, enum fault_action action)
{
	if (l->has_action)
		return line_say(l, "a rule has one action; this one has two");
	l->has_action = true;
	l->rule.action = (uint8_t)action;
	return true;
}

static bool read_delay(struct line *l)
{
	return read_time(l, &l->rule.delay_ns) && (!line_take(l, "jitter") || read_time(l, &l->rule.jitter_ns)) &&
	       act(l, FAULT_DELAY);
}

static bool read_rate(struct line *l)
{
	static const struct quantity_form form = {.units = quantity_rates, .flags = QUANTITY_UNIT | QUANTITY_NEAREST};
	const struct word *w = need(l, "a rate, as 1Gbps,");

	if (!w)
		return false;
	if (!quantity(w, &form, UINT64_C(10000000000000), &l->rule.rate_bps) || l->rule.rate_bps < 1000)
		return line_say(l, "'%.*s': allowed is a rate from 1kbps to 10Tbps with its unit", (int)w->len,
				w->text);
	return act(l, FAULT_RATE);
}

static bool read_complete(struct line *l)
{
	const struct word *w = need(l, "a status, as IBV_WC_RETRY_EXC_ERR,");
	char names[FAULT_WHY_BYTES];
	int v;

	if (!w)
		return false;
	v = fault_status_of(w->text, w->len);
	if (v < 0) {
		fault_status_names(names, sizeof(names));
		return line_say(l, "'%.*s': no such status of an error; allowed are %s", (int)w->len, w->text, names);
	}
	l->rule.value = (uint32_t)v;
	return act(l, FAULT_COMPLETE);
}

static bool read_fail(struct line *l)
{
	const struct word *w = need(l, "an errno, as ENOMEM,");
	char names[FAULT_WHY_BYTES];
	int v;

	if (!w)
		return false;
	v = fault_errno_of(w->text, w->len);
	if (v < 0) {
		fault_errno_names(names, sizeof(names));
		return line_say(l, "'%.*s': no such errno; allowed are %s", (int)w->len, w->text, names);
	}
	l->rule.value = (uint32_t)v;
	return act(l, FAULT_FAIL);
}

static bool read_link(struct line *l)
{
	if (line_take(l, "down"))
		return act(l, FAULT_LINK_DOWN);
	if (line_take(l, "up"))
		return act(l, FAULT_LINK_UP);
	return line_say(l, "behind 'link': allowed are down and up");
}

static bool read_gid(struct line *l)
{
	if (!read_address(l, l->rule.gid))
		return false;
	if (line_take(l, "move"))
		return act(l, FAULT_GID_MOVE);
	if (line_take(l, "remove"))
		return act(l, FAULT_GID_REMOVE);
	if (line_take(l, "add"))
		return act(l, FAULT_GID_ADD);
	return line_say(l, "behind 'gid ADDRESS': allowed are move, remove and add");
}

static bool read_whole_device(struct line *l)
{
	if (line_take(l, "fatal"))
		return act(l, FAULT_DEVICE_FATAL);
	if (line_take(l, "hang"))
		return act(l, FAULT_DEVICE_HANG);
	return line_say(l, "behind 'device': allowed are fatal and hang");
}

static bool read_for(struct line *l)
{
	l->names_for = true;
	return read_time(l, &l->rule.for_ns) &&
	       (l->rule.for_ns || line_say(l, "'for 0s': allowed is a time longer than that"));
}

static bool read_drop(struct line *l)
{
	return act(l, FAULT_DROP);
}

static bool read_corrupt(struct line *l)
{
	return act(l, FAULT_CORRUPT);
}

static bool read_mark(struct line *l)
{
	return act(l, FAULT_MARK);
}

static bool read_double(struct line *l)
{
	return act(l, FAULT_DOUBLE);
}

static bool read_swap(struct line *l)
{
	l->rule.late_max = 1;
	return act(l, FAULT_SWAP);
}

static bool read_silent(struct line *l)
{
	return act(l, FAULT_SILENT);
}

static bool read_error(struct line *l)
{
	return act(l, FAULT_QP_ERROR);
}

static bool read_hang(struct line *l)
{
	return act(l, FAULT_QP_HANG);
}

static bool read_overflow(struct line *l)
{
	return act(l, FAULT_QP_OVERFLOW);
}

static const struct {
	const char *word;
	bool (*read)(struct line *);
} rows[] = {
	{"at", read_at},
	{"every", read_every},
	{"after", read_after},
	{"packet", read_packet},
	{"wr", read_wr},
	{"call", read_call},
	{"when", read_when},
	{"each", read_each},
	{"chance", read_chance},
	{"qp", read_qp},
	{"peer", read_peer},
	{"in", read_in},
	{"out", read_out},
	{"drop", read_drop},
	{"corrupt", read_corrupt},
	{"mark", read_mark},
	{"double", read_double},
	{"swap", read_swap},
	{"delay", read_delay},
	{"rate", read_rate},
	{"silent", read_silent},
	{"fail", read_fail},
	{"complete", read_complete},
	{"error", read_error},
	{"hang", read_hang},
	{"overflow", read_overflow},
	{"link", read_link},
	{"gid", read_gid},
	{"device", read_whole_device},
	{"for", read_for},
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

bool line_read_word(struct line *l)
{
	const struct word *w = &l->words[l->next++];
	char names[FAULT_WHY_BYTES] = "";
	size_t n = 0;

	for (unsigned i = 0; i < ROWS; i++)
		if (is(w, rows[i].word))
			return rows[i].read(l);
	if (w->len > 7 && !strncmp(w->text, "verbena", 7))
		return read_device(l, w);
	for (unsigned i = 0; i < ROWS; i++)
		n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", i ? ", " : "", rows[i].word);
	return line_say(l, "'%.*s': no such word; allowed are %s, and the name of a device", (int)w->len, w->text,
			names);
}

bool line_read_seed(struct line *l)
{
	const struct word *w = need(l, "a number");
	uint64_t v;

	if (!w)
		return false;
	if (!quantity(w, &quantity_whole, UINT64_MAX, &v))
		return line_say(l, "'%.*s': allowed is an unsigned 64-bit integer", (int)w->len, w->text);
	if (l->next < l->count)
		return line_say(l, "'%.*s': nothing is allowed behind the seed", (int)l->words[l->next].len,
				l->words[l->next].text);
	l->script->seed = v;
	return true;
}
