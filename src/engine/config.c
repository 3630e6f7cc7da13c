/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Settings: one table says what exists, its default and what is allowed; the file and the
 * environment are two ways to the same setter. Nothing is guessed: a value that does not parse to
 * its last character is an error.
 */
#include "engine/config.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/quantity.h"
#include "faults/script.h"
#include "space/space.h"

#define PREFIX "VERBENA_"

enum { WHY_BYTES = 1280, VEROCE_PORT_OFFSET = 3 /* 4791 and 4794 */ };

#define RATE_MIN_BPS UINT64_C(1000000)
#define RATE_MAX_BPS UINT64_C(1000000000000)

extern char **environ;

enum kind {
	KIND_TEXT,
	KIND_IMPAIR,
	KIND_U16,
	KIND_U16_AUTO,
	KIND_U32,
	KIND_POWER,  /* of two, 32 bits */
	KIND_BYTES,  /* 32 bits; auto: 0 */
	KIND_RATE,   /* bits a second, 64 bits; the word that is the default: 0 */
	KIND_US,     /* kept in ns, 64 bits */
	KIND_MS,     /* likewise */
	KIND_SWITCH, /* bool: off or on */
	KIND_CHOICE,
	KIND_CC,
	KIND_NAME, /* of a virtual device */
	KIND_QUOTA,
	KIND_PKEYS,
	KIND_DEVICES /* how many, or the kind and the rail of each */
};

struct row {
	const char *key;
	enum kind kind;
	uint32_t min;
	uint32_t max; /* KIND_TEXT: bytes of the field */
	size_t offset;
	const char *standard;
	const char *meaning;
	const char *const *choices; /* KIND_CHOICE: the names of an enum's values from 0 on, then NULL */
};

static const char *const protocols[] = {
	[PROTOCOL_AUTO] = "auto",   [PROTOCOL_VEROCE] = "veroce", [PROTOCOL_ROCEV2] = "rocev2",
	[PROTOCOL_IWARP] = "iwarp", [PROTOCOL_ROCEV1] = "rocev1", NULL,
};
static const char *const losses[] = {
	[LOSS_FAST] = "fast",
	[LOSS_BASE] = "base",
	[LOSS_IRN] = "irn",
	NULL,
};

static const char *const scopes[] = {
	[SCOPE_HOSTS] = "hosts",
	[SCOPE_PATH] = "path",
	[SCOPE_QP] = "qp",
	NULL,
};

static const char *const orders[] = {
	[ORDER_MESSAGE] = "message",
	[ORDER_STRONG] = "strong",
	[ORDER_WEAK] = "weak",
	NULL,
};

static const char *const roams[] = {[ROAM_OFF] = "off", [ROAM_UNSAFE] = "unsafe", NULL};

static const char *const seals[] = {[SEAL_ON] = "on", [SEAL_OFF] = "off", NULL};

static const char *const switches[] = {"off", "on", NULL};

static_assert(sizeof(enum protocol) == sizeof(unsigned) && sizeof(enum veroce_loss) == sizeof(unsigned) &&
		      sizeof(enum rx_order) == sizeof(unsigned) && sizeof(enum veroce_seal) == sizeof(unsigned) &&
		      sizeof(enum veroce_roam) == sizeof(unsigned),
	      "a choice is stored as an unsigned");

/* clang-format off */
#define TEXT(k, f, s, m) { k, KIND_TEXT, 0, sizeof(((struct config *)0)->f), offsetof(struct config, f), s, m, NULL }
#define SPEC(k, f, s, m) { k, KIND_IMPAIR, 0, sizeof(((struct config *)0)->f), offsetof(struct config, f), s, m, NULL }
#define NUMBER(k, kind, f, min, max, s, m) { k, kind, min, max, offsetof(struct config, f), s, m, NULL }
#define CC(k, f, s, m) { k, KIND_CC, 0, 0, offsetof(struct config, f), s, m, NULL }
#define RATE(k, f, s, m) { k, KIND_RATE, 0, 0, offsetof(struct config, f), s, m, NULL }
#define SWITCH(k, f, s, m) { k, KIND_SWITCH, 0, 0, offsetof(struct config, f), s, m, switches }
#define CHOICE(k, f, names, s, m) { k, KIND_CHOICE, 0, 0, offsetof(struct config, f), s, m, names }

static const struct row rows[] = {
	TEXT("pcap", pcap, "", "capture file, opened by Wireshark; %p is the process id"),
	TEXT("faults", faults, "", "file with a script of faults: what fails, when and how; see verbena-fault(7)"),
	SPEC("impair", impair, "", "faults on purpose, for example drop=0.01,seed=7"),
	TEXT("interfaces", interfaces, "", "comma list of the interfaces to use; empty: every one that is up"),
	TEXT("address", address, "", "comma list of the addresses to receive at, so that several users or devices are beside each other; empty: every one"),
	TEXT("map", map, "", "file with a line `vGID underlay` for each address that programs know by another one, its virtual GID; empty: none"),
	SWITCH("shm", shm, "on", "packets to processes of the same user on this host go through memory instead of UDP, on or off"),
	NUMBER("shm_bytes", KIND_BYTES, shm_bytes, 128 << 10, 1u << 30, "auto", "memory that a process gives to packets to others of its host, 128K for each; auto: 8M"),
	NUMBER("devices", KIND_DEVICES, devices, 1, ENGINE_DEVICES_MAX, "1", "devices that a program sees, each a NIC of its own: how many, or the kind of each, as in iwarp,roce, or the interface or address that each is bound to, as in verbena0@eth0,verbena1@eth1"),
	NUMBER("device", KIND_NAME, device, 0, 0, "", "name of a virtual device, which the program sees instead of verbena0; the settings of its section of the file hold"),
	RATE("rate", limits.rate_bps, "none", "what all programs of the device together may send, with all headers, for example 2Gbps"),
	NUMBER("burst", KIND_BYTES, limits.burst_bytes, 4096, 1u << 30, "auto", "bytes that may leave at once after a silence, where there is a rate or a weight; auto: what it sends in 4 ms, 64K at least"),
	NUMBER("weight", KIND_U32, limits.weight, 0, 1000, "0", "the device's part of the line, beside the weights of the user's other devices that send; 0: its programs send without regard to shares"),
	NUMBER("quota", KIND_QUOTA, limits.quota, 0, 0, "", "what all programs of the device together may have, as qps=N,cqs=N,mrs=N,mr_bytes=N,hca_object=N; empty: no quotas"),
	NUMBER("pkeys", KIND_PKEYS, pkeys, 0, 0, "0xffff", "comma list of the device's P_Keys, 4 hexadecimal digits each; bit 15 makes it a full member of the partition"),
	CHOICE("protocol", transport.protocol, protocols, "auto", "protocol of RC queue pairs: auto, veroce, rocev2, iwarp or rocev1; auto: veRoCE with peers that answer in it"),
	NUMBER("port", KIND_U16, transport.rocev2.port, 1, 65535, "4791", "UDP port of RoCEv2"),
	NUMBER("only_bytes", KIND_U32, transport.rocev2.only_bytes, 0, 1u << 20, "65536", "RoCEv2 WRITEs of up to so many bytes leave as WRITE Only packets, which share datagrams, and short READs likewise; 0: as First, Middle and Last"),
	NUMBER("veroce_port", KIND_U16_AUTO, transport.veroce.port, 1, 65535, "auto", "UDP port of veRoCE; auto: port + 3, so 4794"),
	NUMBER("veroce_paths", KIND_U32, transport.paths, 1, PATHS_MAX, "16", "UDP source ports over which veRoCE spreads a queue pair"),
	CC("cc", cc, "auto", "congestion control, as algorithm[:preset][,parameter=value]...; auto: Swift for veRoCE, a window that reacts to loss alone for RoCEv2"),
	CHOICE("cc_scope", transport.veroce.scope, scopes, "hosts", "who has a congestion control of its own: hosts, each path between two hosts; path, each path of a veRoCE queue pair; qp, such a queue pair for all its paths"),
	RATE("line_rate", transport.cc.line_rate_bps, "auto", "speed of the link for congestion control, for example 25Gbps; auto: that of the fastest interface"),
	CHOICE("loss", transport.veroce.loss, losses, "fast", "loss detection of veRoCE: fast, base or irn"),
	NUMBER("rx_window", KIND_POWER, transport.veroce.rx_window, RX_WINDOW_MIN, RX_WINDOW_MAX, "65536", "receive window of a veRoCE queue pair, packets"),
	CHOICE("order", transport.veroce.order, orders, "message", "order in which veRoCE writes memory: message, one message after the other; strong, one packet after the other; weak, as packets come"),
	SWITCH("fence_indicator", transport.veroce.fence_indicator, "off", "on: a veRoCE work request whose bytes an older one still reads or writes waits for it"),
	CHOICE("seal", transport.veroce.seal, seals, "on", "off: veRoCE packets have the plain ICRC, for tools that know no other, and do not prove their sender"),
	CHOICE("roam", transport.veroce.roam, roams, "off", "unsafe: peers over veRoCE go on when one of them moves to another address; whoever can see their first packets can divert them"),
	SWITCH("trim", transport.veroce.trim, "off", "on: switches may trim veRoCE's data (DSCP 8, trimmed 9)"),
	SWITCH("iwarp_crc", iwarp_crc, "on", "off: iWARP's FPDUs have CRCs only where the peer asks for them"),
	SWITCH("iwarp_markers", iwarp_markers, "off", "on: iWARP asks its peers for markers in what they send (RFC 5044 4.3)"),
	SWITCH("iwarp_rfc7306", transport.iwarp_rfc7306, "off", "on: iWARP has atomics and WRITEs with immediate data (RFC 7306), which both ends must have"),
	NUMBER("window_bytes", KIND_BYTES, transport.window_bytes, 4096, 1u << 30, "auto", "bytes a queue pair may have unacknowledged"),
	NUMBER("ack_delay_us", KIND_US, transport.ack_delay_ns, 0, 10000, "20", "how long an ACK may wait for a packet to travel with, while the program polls"),
	NUMBER("patience_ms", KIND_MS, transport.patience_ns, 0, 3600000, "5000", "how long, at least, a silent peer is kept that is a living process of this host"),
	NUMBER("spin_us", KIND_U32, spin_us, 0, 1000000, "50", "how long the engine thread looks for more packets after traffic before it sleeps"),
	TEXT("profile", profile_name, "", "the device to be like: rxe, uc-only, write-only, unordered, or a file whose name has a /; empty: Verbena's own"),
};
/* clang-format on */

#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* VERBENA_ variables that are not settings: read by others or before the settings are. */
static const char *const not_settings[] = {
	"CONFIG",    /* names the file */
	"SYSFS",     /* directory of `verbena run`'s device tree */
	"SYSFS_USE", /* the descriptor that shows that the tree is in use */
	"HEIR",      /* where the process waits that `verbena run` has left behind */
	"PATHS",     /* of the path redirection library; those of veRoCE are VEROCE_PATHS */
	"LOCKSTEP",  /* what joins a program in simulated time with its simulator */
	"HOST",      /* where that program runs, */
	"RANK",      /* its number among all such programs, */
	"RANKS",     /* and how many these are */
	"QUIET",     /* works even if the settings cannot be read */
};

struct loading {
	struct config config;
	bool given[ROWS];                /* by a line or a variable: no profile's line changes it */
	bool seen[ROWS];                 /* in the file that is read */
	bool is_profile;                 /* which is a profile */
	const char *wanted;              /* the virtual device that VERBENA_DEVICE names; NULL: the file may */
	bool own[ROWS];                  /* seen in that device's section */
	bool has_own;                    /* there is one */
	char section[DEVICE_NAME_BYTES]; /* the last one */
	char sections[WHY_BYTES / 2];    /* all of them, with commas between them */
	bool profile_seen[PROFILE_KEYS];
	const char *veroce_port;      /* the variable that set it, its prefix taken off */
	const char *veroce_port_file; /* the file whose line did, and the line; 0: none */
	int veroce_port_line;
	char *err;
	size_t err_bytes;

	const char *file;
	FILE *stream;
	int line;            /* being read */
	int bad_line;        /* 0: none yet */
	char why[WHY_BYTES]; /* the error there; empty: the form of the line */
};

static int fail(char *err, size_t bytes, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static int fail(char *err, size_t bytes, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err, bytes, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static bool quantity(const char *text, const struct quantity_form *form, uint64_t min, uint64_t max, uint64_t *out)
{
	return !quantity_parse(text, strlen(text), form, out) && *out >= min && *out <= max;
}

static bool rate_set(const struct row *r, uint64_t *field, const char *text, char *why, size_t why_bytes)
{
	static const struct quantity_form form = {.units = quantity_rates, .flags = QUANTITY_UNIT};
	uint64_t v = 0;

	if (strcmp(text, r->standard) && !quantity(text, &form, RATE_MIN_BPS, RATE_MAX_BPS, &v)) {
		snprintf(why, why_bytes, "allowed is a rate from 1Mbps to 1000Gbps, with its unit, or %s", r->standard);
		return false;
	}
	*field = v;
	return true;
}

static bool choice_set(const struct row *r, void *field, const char *text, char *why, size_t why_bytes)
{
	size_t n = 0;

	for (unsigned i = 0; r->choices[i]; i++) {
		if (!strcmp(text, r->choices[i])) {
			memcpy(field, &i, sizeof(i));
			return true;
		}
	}
	for (size_t i = 0; r->choices[i] && n < why_bytes; i++)
		n += (size_t)snprintf(why + n, why_bytes - n, "%s%s",
				      !i                  ? "allowed is "
				      : r->choices[i + 1] ? ", "
							  : " or ",
				      r->choices[i]);
	return false;
}

/* What may follow a number of this kind, or stand in its place. */
static const char *number_rest(enum kind kind)
{
	if (kind == KIND_BYTES)
		return ", K, M or G may follow it; or auto";
	return kind == KIND_U16_AUTO ? ", or auto" : "";
}

static void number_store(enum kind kind, void *field, uint64_t v)
{
	switch (kind) {
	case KIND_U16:
	case KIND_U16_AUTO: *(uint16_t *)field = (uint16_t)v; break;
	case KIND_US: *(uint64_t *)field = v * 1000; break;
	case KIND_MS: *(uint64_t *)field = v * 1000000; break;
	default: *(uint32_t *)field = (uint32_t)v;
	}
}

static bool number_set(const struct row *r, void *field, const char *text, char *why, size_t why_bytes)
{
	/* Powers of 1024 alone: beside K, nobody would take KB for 1000. */
	static const struct quantity_unit binary[] = {
		{"K", 1, 0, 10},   {"k", 1, 0, 10}, {"KiB", 1, 0, 10}, {"M", 1, 0, 20},   {"m", 1, 0, 20},
		{"MiB", 1, 0, 20}, {"G", 1, 0, 30}, {"g", 1, 0, 30},   {"GiB", 1, 0, 30}, {NULL, 0, 0, 0}};
	static const struct quantity_form bytes = {.units = binary};
	const struct quantity_form *form = r->kind == KIND_BYTES ? &bytes : &quantity_whole;
	bool can_be_auto = r->kind == KIND_BYTES || r->kind == KIND_U16_AUTO;
	uint64_t v = 0;

	if (!(can_be_auto && !strcmp(text, "auto")) &&
	    (!quantity(text, form, r->min, r->max, &v) || (r->kind == KIND_POWER && v & (v - 1)))) {
		snprintf(why, why_bytes, "allowed is a %s from %u to %u%s",
			 r->kind == KIND_POWER ? "power of two" : "whole number", r->min, r->max, number_rest(r->kind));
		return false;
	}
	number_store(r->kind, field, v);
	return true;
}

/* One P_Key of a list; 0: it is none. */
static uint16_t pkey_of(const char *text, size_t len)
{
	char digits[8] = "", *end;
	unsigned long v;

	if (len < 3 || len >= sizeof(digits) || text[0] != '0' || text[1] != 'x')
		return 0;
	memcpy(digits, text + 2, len - 2);
	v = strtoul(digits, &end, 16);
	return *end || !isxdigit((unsigned char)digits[0]) || v > UINT16_MAX || !(v & 0x7fff) ? 0 : (uint16_t)v;
}

static bool pkeys_set(uint16_t *field, const char *text, char *why, size_t why_bytes)
{
	uint16_t keys[NIC_PKEYS_MAX] = {0};
	bool good = true;
	size_t n = 0;

	for (size_t len;; text += len + strspn(text + len, ", ")) {
		len = strcspn(text, ", ");
		if (n < NIC_PKEYS_MAX)
			keys[n] = pkey_of(text, len);
		good &= n < NIC_PKEYS_MAX && keys[n];
		for (size_t i = 0; i < n && good; i++)
			good = (keys[i] ^ keys[n]) & 0x7fff;
		if (!good || !text[len])
			break;
		n++;
	}
	if (good)
		memcpy(field, keys, sizeof(keys));
	else
		snprintf(
			why, why_bytes,
			"allowed are 1 to %d numbers from 0x1 to 0xffff with commas between them, of which no two are equal in "
			"the low 15 bits, and none is 0 in them",
			NIC_PKEYS_MAX);
	return good;
}

/* Sets one row from text; what is wrong with it goes to why. */
static bool row_set(const struct row *r, struct config *c, const char *text, char *why, size_t why_bytes)
{
	void *field = (char *)c + r->offset;
	unsigned choice;

	switch (r->kind) {
	case KIND_IMPAIR: {
		struct impair_config spec;

		if (text[0] && impair_parse(text, &spec, why, why_bytes) < 0)
			return false;
	}
		/* fallthrough */
	case KIND_TEXT:
		if (strlen(text) >= r->max) {
			snprintf(why, why_bytes, "allowed are at most %u characters", r->max - 1);
			return false;
		}
		strcpy(field, text);
		return true;
	case KIND_CHOICE: return choice_set(r, field, text, why, why_bytes);
	case KIND_SWITCH:
		if (!choice_set(r, &choice, text, why, why_bytes))
			return false;
		*(bool *)field = choice;
		return true;
	case KIND_DEVICES: return devices_parse(field, text, why, why_bytes);
	case KIND_PKEYS: return pkeys_set(field, text, why, why_bytes);
	case KIND_QUOTA: return limits_parse_quota(field, text, why, why_bytes);
	case KIND_NAME:
		if (!devices_is_name(text, why, why_bytes))
			return false;
		strcpy(field, text);
		return true;
	case KIND_CC: return !cc_setting_parse(text, field, why, why_bytes);
	case KIND_RATE: return rate_set(r, field, text, why, why_bytes);
	case KIND_U16:
	case KIND_U16_AUTO:
	case KIND_U32:
	case KIND_POWER:
	case KIND_BYTES:
	case KIND_US:
	case KIND_MS: return number_set(r, field, text, why, why_bytes);
	}
	return false;
}

static const struct row *row_find(const char *key, size_t len)
{
	for (size_t i = 0; i < ROWS; i++) {
		if (strlen(rows[i].key) == len && !strncmp(rows[i].key, key, len))
			return &rows[i];
	}
	return NULL;
}

static void known_keys(char *buf, size_t bytes, bool upper)
{
	size_t n = 0;

	buf[0] = 0;
	for (size_t i = 0; i < ROWS && n < bytes; i++) {
		n += (size_t)snprintf(buf + n, bytes - n, "%s%s", i ? ", " : "", upper ? PREFIX : "");
		for (const char *k = rows[i].key; *k && n + 1 < bytes; k++)
			buf[n++] = (char)(upper ? toupper((unsigned char)*k) : *k);
		if (n < bytes)
			buf[n] = 0;
	}
}

/* inih's source of lines: fgets() that counts, and ends the file after an error. */
static char *file_line(char *buf, int bytes, void *arg)
{
	struct loading *l = arg;

	if (l->bad_line || !fgets(buf, bytes, l->stream))
		return NULL;
	l->line++;
	if (!strchr(buf, '\n') && !feof(l->stream)) {
		l->bad_line = l->line;
		fail(l->why, sizeof(l->why), "longer than %d characters", bytes - 2);
	}
	return buf;
}

/*
 * Of a profile: true if that was all, and l->bad_line is set if it was wrong. Otherwise the line is a setting's, *r, that
 * is not given elsewhere.
 */
static bool profile_entry(struct loading *l, const char *key, const char *value, const struct row **r)
{
	char why[WHY_BYTES / 2];
	int n = profile_set(&l->config.profile, key, value, why, sizeof(why));

	if (n == -EINVAL) {
		fail(l->why, sizeof(l->why), "%s = %s: %s", key, value, why);
	} else if (n >= 0 && l->profile_seen[n]) {
		fail(l->why, sizeof(l->why), "%s: given twice", key);
	} else if (n >= 0) {
		l->profile_seen[n] = true;
		return true;
	} else if (!*r || (*r)->offset == offsetof(struct config, profile_name)) {
		profile_keys(why, sizeof(why));
		fail(l->why, sizeof(l->why), "%s = %s: no such key; there are: %s, and settings but profile", key,
		     value, why);
	} else {
		return !l->seen[*r - rows] && l->given[*r - rows];
	}
	l->bad_line = l->line;
	return true;
}

static const char *device_of(const struct loading *l)
{
	return l->wanted ? l->wanted : l->config.device;
}

/* A line of a section: true if its setting is for this program's device. l->why is set if it is wrong. */
static bool section_entry(struct loading *l, const char *section, const char *key, const struct row *r)
{
	size_t n = strlen(l->sections);
	char why[WHY_BYTES / 2];

	if (l->is_profile) {
		fail(l->why, sizeof(l->why), "section [%s]: there are no sections, only key = value", section);
		return false;
	}
	if (!devices_is_name(section, why, sizeof(why))) {
		fail(l->why, sizeof(l->why), "section [%s]: it is a virtual device's, and in its name %s", section,
		     why);
		return false;
	}
	if (strcmp(section, l->section))
		snprintf(l->sections + n, sizeof(l->sections) - n, "%s%s", n ? ", " : "", section);
	strcpy(l->section, section);
	if (r && r->offset == offsetof(struct config, device))
		fail(l->why, sizeof(l->why), "%s: not in a section, which is the device's that it names", key);
	l->has_own |= !strcmp(section, device_of(l));
	return !strcmp(section, device_of(l));
}

/* inih's callback: 1 to go on, 0 for an error. */
static int file_entry(void *arg, const char *section, const char *key, const char *value)
{
	struct loading *l = arg;
	const struct row *r = row_find(key, strlen(key));
	char why[WHY_BYTES / 2];
	bool *seen = section[0] ? l->own : l->seen, is_ours = true;

	if (l->bad_line)
		return 0;
	if (l->is_profile && !section[0] && profile_entry(l, key, value, &r))
		return !l->bad_line;
	l->why[0] = 0;
	if (section[0])
		is_ours = section_entry(l, section, key, r);
	if (l->why[0]) {
		/* The section is wrong. */
	} else if (!r) {
		known_keys(why, sizeof(why), false);
		fail(l->why, sizeof(l->why), "%s = %s: no such setting; there are: %s", key, value, why);
	} else if (!is_ours) {
		return 1;
	} else if (seen[r - rows]) {
		fail(l->why, sizeof(l->why), "%s: given twice", key);
	} else if (!row_set(r, &l->config, value, why, sizeof(why))) {
		fail(l->why, sizeof(l->why), "%s = %s: %s", key, value, why);
	} else {
		seen[r - rows] = l->given[r - rows] = true;
		if (r->offset == offsetof(struct config, transport.veroce.port)) {
			l->veroce_port_file = l->file;
			l->veroce_port_line = l->line;
		}
		return 1;
	}
	l->bad_line = l->line;
	return 0;
}

static int file_read(struct loading *l, const char *text, ini_handler entry)
{
	int line;

	l->line = 0;
	l->stream = text ? fmemopen((char *)(uintptr_t)text, strlen(text), "r") : fopen(l->file, "re");
	if (!l->stream)
		return fail(l->err, l->err_bytes, PREFIX "%s=%s: cannot open it: %s",
			    l->is_profile ? "PROFILE" : "CONFIG", l->file, strerror(errno));
	line = ini_parse_stream(file_line, l, entry, l);
	fclose(l->stream);
	if (line > 0 && (!l->bad_line || line < l->bad_line))
		return fail(l->err, l->err_bytes, "%s:%d: not of the form key = value", l->file, line);
	if (l->bad_line)
		return fail(l->err, l->err_bytes, "%s:%d: %s", l->file, l->bad_line, l->why);
	return line ? fail(l->err, l->err_bytes, "%s: out of memory", l->file) : 0;
}

/* What the user has given stays. */
static int profile_load(struct loading *l)
{
	const char *text = NULL;
	char names[256];

	l->file = l->config.profile_name;
	if (!l->file[0])
		return 0;
	if (!strchr(l->file, '/')) {
		text = profile_shipped(l->file);
		profile_names(names, sizeof(names));
		if (!text)
			return fail(l->err, l->err_bytes,
				    PREFIX "PROFILE=%s: no such profile; there are: %s, and files whose names have a /",
				    l->file, names);
	}
	l->is_profile = true;
	memset(l->seen, 0, sizeof(l->seen));
	return file_read(l, text, file_entry);
}

static bool is_setting(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(not_settings) / sizeof(not_settings[0]); i++) {
		if (strlen(not_settings[i]) == len && !strncmp(not_settings[i], name, len))
			return false;
	}
	return true;
}

/* name=value, the prefix already taken off. */
static int variable_set(struct loading *l, const char *entry)
{
	const char *equals = strchr(entry, '=');
	size_t len = equals ? (size_t)(equals - entry) : strlen(entry);
	const char *value = equals ? equals + 1 : "";
	const struct row *r = NULL;
	char key[32], why[WHY_BYTES];

	if (!is_setting(entry, len))
		return 0;
	if (len < sizeof(key)) {
		for (size_t i = 0; i < len; i++) /* lower case in the environment is no key */
			key[i] = islower((unsigned char)entry[i]) ? '?' : (char)tolower((unsigned char)entry[i]);
		r = row_find(key, len);
	}
	if (!r) {
		known_keys(why, sizeof(why), true);
		return fail(l->err, l->err_bytes, PREFIX "%s: no such setting; there are: %s", entry, why);
	}
	if (!row_set(r, &l->config, value, why, sizeof(why)))
		return fail(l->err, l->err_bytes, PREFIX "%s: %s", entry, why);
	l->given[r - rows] = true;
	if (r->offset == offsetof(struct config, transport.veroce.port))
		l->veroce_port = entry;
	return 0;
}

/* Checks that depend on two settings, once both are known. */
static int ports_settle(struct loading *l)
{
	struct config *c = &l->config;

	if (!c->transport.veroce.port) {
		/* At the upper end there is no port above. */
		c->transport.veroce.port = (uint16_t)(c->transport.rocev2.port <= UINT16_MAX - VEROCE_PORT_OFFSET
							      ? c->transport.rocev2.port + VEROCE_PORT_OFFSET
							      : c->transport.rocev2.port - VEROCE_PORT_OFFSET);
		return 0;
	}
	if (c->transport.veroce.port != c->transport.rocev2.port)
		return 0;
	if (l->veroce_port)
		return fail(l->err, l->err_bytes, PREFIX "%s: allowed is any port but %u, which is RoCEv2's",
			    l->veroce_port, c->transport.rocev2.port);
	return fail(l->err, l->err_bytes, "%s:%d: veroce_port = %u: allowed is any port but %u, which is RoCEv2's",
		    l->veroce_port_file, l->veroce_port_line, c->transport.veroce.port, c->transport.rocev2.port);
}

/* Whether a comma list has the entry. */
static bool list_has(const char *list, const char *entry, size_t len)
{
	for (size_t n; *list; list += n + (list[n] == ',')) {
		n = strcspn(list, ",");
		if (n == len && !strncmp(list, entry, len))
			return true;
	}
	return false;
}

/* inih's callback for a second look: another device's addresses are not this one's. */
static int claim_entry(void *arg, const char *section, const char *key, const char *value)
{
	struct loading *l = arg;
	size_t n;

	if (l->bad_line)
		return 0;
	if (!section[0] || !strcmp(section, l->config.device) || strcmp(key, "address"))
		return 1;
	for (; *value; value += n + (value[n] == ',')) {
		n = strcspn(value, ",");
		if (!n || !list_has(l->config.address, value, n))
			continue;
		fail(l->why, sizeof(l->why), "address = %.*s: it is of both %s and %s; allowed is one device for each",
		     (int)n, value, section, l->config.device);
		l->bad_line = l->line;
		return 0;
	}
	return 1;
}

/* A virtual device has a section where others have, and addresses of its own. */
static int sections_settle(struct loading *l)
{
	if (!l->sections[0] || !l->config.device[0])
		return 0;
	l->file = getenv(PREFIX "CONFIG");
	l->is_profile = false;
	if (!l->has_own)
		return fail(l->err, l->err_bytes, PREFIX "DEVICE=%s: %s has no such section; there are: %s",
			    l->config.device, l->file, l->sections);
	return l->config.address[0] ? file_read(l, NULL, claim_entry) : 0;
}

/* As the protocol says, where the devices' kinds are not given. */
static int devices_settle(struct loading *l)
{
	struct config *c = &l->config;
	uint32_t all = (UINT32_C(1) << c->devices.count) - 1;

	if (c->device[0] && c->devices.count > 1)
		return fail(l->err, l->err_bytes,
			    PREFIX "DEVICE=%s: not with " PREFIX "DEVICES of %u, which are named by their numbers",
			    c->device, c->devices.count);
	if (!c->devices.kinds_given)
		c->devices.iwarp = c->transport.protocol == PROTOCOL_IWARP ? all : 0;
	if (c->transport.protocol != PROTOCOL_IWARP || c->devices.iwarp == all)
		return 0;
	return fail(l->err, l->err_bytes,
		    PREFIX "PROTOCOL=iwarp: not with " PREFIX "DEVICES that names roce, whose protocol it would be");
}

/* A device has no more objects than its quotas allow, and says so. */
static int limits_settle(struct loading *l)
{
	static const enum profile_limit of[LIMITS] = {
		[LIMIT_QPS] = PROFILE_QP, [LIMIT_CQS] = PROFILE_CQ, [LIMIT_MRS] = PROFILE_MR};
	struct config *c = &l->config;

	for (int k = LIMIT_QPS; k <= LIMIT_MRS; k++)
		if (c->limits.quota[k] && c->limits.quota[k] < c->profile.max[of[k]])
			c->profile.max[of[k]] = (uint32_t)c->limits.quota[k];
	if (c->devices.iwarp && (c->pkeys[0] != NIC_PKEY_DEFAULT || c->pkeys[1]))
		return fail(l->err, l->err_bytes,
			    PREFIX "PKEYS: not for a device that speaks iWARP, which has no partitions");
	if (!c->devices.iwarp || !(c->limits.rate_bps || c->limits.weight))
		return 0;
	return fail(l->err, l->err_bytes,
		    PREFIX
		    "%s: not for a device that speaks iWARP, whose bytes the kernel sends: tc-tbf(8) limits those",
		    c->limits.rate_bps ? "RATE" : "WEIGHT");
}

static int script_read(const struct config *c, struct fault_script *script, char *text, char *err, size_t err_bytes)
{
	const struct fault_host host = {.devices = c->devices.count, .iwarp = c->devices.iwarp};
	FILE *f = fopen(c->faults, "re");
	size_t len;

	if (!f)
		return fail(err, err_bytes, PREFIX "FAULTS=%s: cannot open it: %s", c->faults, strerror(errno));
	errno = 0;
	len = fread(text, 1, FAULT_SCRIPT_BYTES_MAX + 1, f);
	fclose(f);
	if (errno)
		return fail(err, err_bytes, PREFIX "FAULTS=%s: cannot read it: %s", c->faults, strerror(errno));
	if (len > FAULT_SCRIPT_BYTES_MAX)
		return fail(err, err_bytes, PREFIX "FAULTS=%s: longer than %d bytes", c->faults,
			    FAULT_SCRIPT_BYTES_MAX);
	return fault_script_read(script, c->faults, text, len, false, &host, err, err_bytes);
}

int config_script(const struct config *c, struct fault_script *script, char *err, size_t err_bytes)
{
	char *text;
	int rc;

	fault_script_init(script);
	if (!c->faults[0])
		return 0;
	text = space_get(FAULT_SCRIPT_BYTES_MAX + 1);
	if (!text)
		return fail(err, err_bytes, "out of memory");
	rc = script_read(c, script, text, err, err_bytes);
	space_put(text, FAULT_SCRIPT_BYTES_MAX + 1);
	return rc;
}

/* Once the devices are known: a script that is wrong is an error of the settings. */
static int script_settle(struct loading *l)
{
	struct fault_script *script;
	int rc;

	if (!l->config.faults[0])
		return 0;
	script = space_get(sizeof(*script));
	if (!script)
		return fail(l->err, l->err_bytes, "out of memory");
	rc = config_script(&l->config, script, l->err, l->err_bytes);
	l->config.spoils = !rc && fault_script_spoils(script);
	space_put(script, sizeof(*script));
	return rc;
}

uint16_t config_rocev1_port(const struct config *c)
{
	uint16_t port = c->transport.rocev2.port;

	return (uint16_t)(port < UINT16_MAX ? port + 1 : port - 1);
}

bool config_has_large(const struct config *c)
{
	bool is_udp = c->transport.protocol != PROTOCOL_IWARP && c->transport.protocol != PROTOCOL_ROCEV1;

	return is_udp && !c->pcap[0] && !c->impair[0] && !c->spoils;
}

bool config_has_shm(const struct config *c)
{
	return c->shm && config_has_large(c);
}

int config_load(struct config *out, char *err, size_t err_bytes)
{
	struct loading l = {
		.err = err, .err_bytes = err_bytes, .file = getenv(PREFIX "CONFIG"), .wanted = getenv(PREFIX "DEVICE")};
	char why[64];

	for (size_t i = 0; i < ROWS; i++)
		row_set(&rows[i], &l.config, rows[i].standard, why, sizeof(why));
	profile_init(&l.config.profile);
	if (l.file && l.file[0] && file_read(&l, NULL, file_entry) < 0)
		return -EINVAL;
	for (char **e = environ; e && *e; e++) {
		if (!strncmp(*e, PREFIX, strlen(PREFIX)) && variable_set(&l, *e + strlen(PREFIX)) < 0)
			return -EINVAL;
	}
	if (profile_load(&l) < 0 || sections_settle(&l) < 0 || ports_settle(&l) < 0 || devices_settle(&l) < 0 ||
	    limits_settle(&l) < 0 || script_settle(&l) < 0)
		return -EINVAL;
	*out = l.config;
	return 0;
}

static char help[12288];

static void help_write(void)
{
	size_t n = 0;

	for (size_t i = 0; i < ROWS; i++) {
		char key[32] = "";

		for (size_t k = 0; rows[i].key[k]; k++)
			key[k] = (char)toupper((unsigned char)rows[i].key[k]);
		if (n < sizeof(help))
			n += (size_t)snprintf(help + n, sizeof(help) - n, "  " PREFIX "%-16s%-8s%s\n", key,
					      rows[i].standard[0] ? rows[i].standard : "-", rows[i].meaning);
	}
}

const char *config_help(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, help_write);
	return help;
}
