/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The text of a script becomes rules. What a rule may not combine is judged when all its words are read, so that no rule
 * exists that can never act.
 */
#include "faults/script.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "faults/line.h"

/* ---- what fits together ---- */

enum {
	OF_PACKETS = 1 << 0,  /* done to one packet */
	SPOILS = 1 << 1,      /* needs packets as a network has them */
	OF_QP = 1 << 2,       /* done to a queue pair */
	LASTS = 1 << 3,       /* `for` ends it, or says how long packets are hit */
	OF_NETWORK = 1 << 4,  /* not over a stream of the kernel's */
	MAY_HAVE_WAY = 1 << 5 /* in and out say what it does */
};

static const uint8_t traits[FAULT_ACTIONS] = {
	[FAULT_DROP] = OF_PACKETS | LASTS | OF_NETWORK | MAY_HAVE_WAY,
	[FAULT_CORRUPT] = OF_PACKETS | SPOILS | LASTS | OF_NETWORK | MAY_HAVE_WAY,
	[FAULT_MARK] = OF_PACKETS | SPOILS | LASTS | OF_NETWORK | MAY_HAVE_WAY,
	[FAULT_DOUBLE] = OF_PACKETS | SPOILS | LASTS | OF_NETWORK | MAY_HAVE_WAY,
	[FAULT_SWAP] = OF_PACKETS | SPOILS | LASTS | OF_NETWORK | MAY_HAVE_WAY,
	[FAULT_DELAY] = OF_PACKETS | SPOILS | LASTS | OF_NETWORK | MAY_HAVE_WAY,
	[FAULT_RATE] = SPOILS | LASTS | OF_NETWORK | MAY_HAVE_WAY,
	[FAULT_SILENT] = LASTS | OF_NETWORK | MAY_HAVE_WAY,
	[FAULT_FAIL] = LASTS,
	[FAULT_COMPLETE] = OF_QP,
	[FAULT_QP_ERROR] = OF_QP,
	[FAULT_QP_HANG] = OF_QP | LASTS | OF_NETWORK,
	[FAULT_QP_OVERFLOW] = OF_QP,
	[FAULT_LINK_DOWN] = LASTS,
	[FAULT_GID_REMOVE] = LASTS,
	[FAULT_DEVICE_FATAL] = LASTS,
	[FAULT_DEVICE_HANG] = LASTS,
};

/* Whether all devices that the rule is for speak iWARP. */
static bool is_for_streams(const struct line *l)
{
	uint32_t all = (UINT32_C(1) << l->host->devices) - 1;

	if (l->rule.device >= 0)
		return l->host->iwarp >> l->rule.device & 1;
	return (l->host->iwarp & all) == all;
}

static bool judge_object(struct line *l)
{
	const struct fault_rule *r = &l->rule;
	const char *name = fault_action_name(r->action);

	if (traits[r->action] & OF_QP && r->qps == FAULT_QP_ALL)
		return line_say(l, "'%s' needs a queue pair: qp any, qp each, qp N or qp 0xNUMBER%s", name,
				r->action == FAULT_QP_HANG ? "; or 'device hang'" : "");
	if (r->action == FAULT_SILENT && !r->has_peer)
		return line_say(l, "'silent' needs a peer: peer ADDRESS");
	if (r->action == FAULT_RATE && r->event == ON_GATE && (r->qps || r->has_peer))
		return line_say(l, "'rate' is the device's: allowed are a device, in and out");
	if (r->has_peer && r->event != ON_PACKET && r->action != FAULT_SILENT)
		return line_say(l, "'peer' is for packets and for 'silent'");
	if (l->names_way && r->event != ON_PACKET && !(traits[r->action] & MAY_HAVE_WAY))
		return line_say(l, "'in' and 'out' are for packets, 'rate' and 'silent'");
	if (l->names_for && !(traits[r->action] & LASTS))
		return line_say(l, "'%s' has no end: 'for' is not allowed", name);
	return true;
}

static bool judge_event(struct line *l)
{
	struct fault_rule *r = &l->rule;
	bool by_time = r->gate == GATE_AT || r->gate == GATE_EVERY;

	if (traits[r->action] & OF_PACKETS && !line_set_event(l, ON_PACKET))
		return false;
	if (r->action == FAULT_FAIL && r->event == ON_GATE)
		r->event = ON_WR;
	if (r->action == FAULT_COMPLETE && !by_time && !line_set_event(l, ON_WR))
		return false;
	if (r->action == FAULT_FAIL && r->event == ON_PACKET)
		return line_say(l, "'fail' is for calls and for work requests, not for packets");
	if (r->event == ON_CALL && r->action != FAULT_FAIL && r->qps)
		return line_say(l, "'call' counts the calls of the device, not those of a queue pair");
	if (r->event == ON_GATE && (r->each || r->has_chance))
		return line_say(l, "'each' and 'chance' need packets, work requests or calls to choose from");
	if (r->qps == FAULT_QP_EACH && r->nth)
		r->nth_per_qp = true;
	return true;
}

static bool judge_rule(struct line *l)
{
	struct fault_rule *r = &l->rule;

	if (!l->has_action)
		return line_say(l, "the action is missing: allowed are drop, corrupt, mark, double, swap, delay, rate, "
				   "silent, fail, complete, error, hang, overflow, link, gid and device");
	if (!judge_event(l) || !judge_object(l))
		return false;
	if (is_for_streams(l) && (traits[r->action] & OF_NETWORK || r->event == ON_PACKET || r->unit == UNIT_PACKETS ||
				  r->unit == UNIT_BYTES))
		return line_say(
			l, "packets of iWARP are the kernel's, and tc-netem(8) spoils those: allowed are wr, call, "
			   "link, gid, device, complete, error and overflow");
	return true;
}

/* ---- lines ---- */

static bool split(struct line *l, const char *text, size_t len)
{
	size_t i = 0;

	while (i < len) {
		size_t end;

		if (strchr(" \t\r", text[i]) && text[i]) {
			i++;
			continue;
		}
		for (end = i; end < len && !(text[end] && strchr(" \t\r", text[end])); end++)
			;
		if (l->count == WORDS_MAX)
			return line_say(l, "the line has more than %d words", WORDS_MAX);
		l->words[l->count++] = (struct word){text + i, end - i};
		i = end;
	}
	return true;
}

/* The words with single blanks between them, as the log shows them. */
static void note_text(struct line *l)
{
	size_t n = 0;

	for (unsigned i = 0; i < l->count; i++)
		n += (size_t)snprintf(l->rule.text + n, sizeof(l->rule.text) - n, "%s%.*s", i ? " " : "",
				      (int)l->words[i].len, l->words[i].text);
}

static bool read_line(struct line *l, const char *text, size_t len)
{
	if (len > FAULT_LINE_BYTES_MAX)
		return line_say(l, "the line has %zu bytes; at most %d are allowed", len, FAULT_LINE_BYTES_MAX);
	if (memchr(text, 0, len))
		return line_say(l, "the line has a byte of zero: allowed is text");
	if (!split(l, text, len))
		return false;
	if (!l->count)
		return true;
	if (line_take(l, "seed"))
		return line_read_seed(l);
	if (l->script->count == FAULT_RULES_MAX)
		return line_say(l, "more than %d rules", FAULT_RULES_MAX);
	l->rule.device = l->rule.opcode = -1;
	l->rule.ways = FAULT_IN | FAULT_OUT;
	l->rule.size_below = UINT32_MAX;
	while (l->next < l->count)
		if (!line_read_word(l))
			return false;
	if (!judge_rule(l))
		return false;
	note_text(l);
	l->script->rules[l->script->count++] = l->rule;
	return true;
}

void fault_script_init(struct fault_script *s)
{
	memset(s, 0, sizeof(*s));
	s->seed = 1;
	s->limit = FAULT_LIMIT_DEFAULT;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int fault_script_read(struct fault_script *s, const char *name, const char *text, size_t len, bool is_command,
		      const struct fault_host *host, char *why, size_t why_bytes)
{
	struct fault_script before = *s;
	char reason[FAULT_WHY_BYTES + 64];
	unsigned number = 1;

	for (const char *at = text, *end = text + len; at < end; number++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline ? newline : end;
		const char *comment = memchr(at, '#', (size_t)(stop - at));
		struct line l = {.host = host, .script = s, .why = reason, .why_bytes = sizeof(reason)};

		if (is_command)
			snprintf(l.rule.where, sizeof(l.rule.where), "%s", name);
		else
			snprintf(l.rule.where, sizeof(l.rule.where), "%.28s:%u", base_name(name), number);
		if (!read_line(&l, at, (size_t)((comment ? comment : stop) - at))) {
			if (is_command)
				snprintf(why, why_bytes, "%s: %s", name, reason);
			else
				snprintf(why, why_bytes, "%s:%u: %s", name, number, reason);
			*s = before;
			return -EINVAL;
		}
		at = newline ? newline + 1 : end;
	}
	return 0;
}

bool fault_script_spoils(const struct fault_script *s)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (traits[s->rules[i].action] & SPOILS)
			return true;
	return false;
}

bool fault_script_picks_out(const struct fault_script *s)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (traits[s->rules[i].action] & OF_PACKETS && s->rules[i].ways & FAULT_OUT)
			return true;
	return false;
}
