/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sdr_cp: copies a file, or a folder and all below it, to or from another host, by messages that are coded or repeated
 * until they are whole. A file has its name there only when its hash is the sender's.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "options.h"
#include "sdr/cp.h"
#include "sdr/cp_summary.h"
#include "sdr/cp_wire.h"
#include "sdr/remote.h"
#include "sdr/serve.h"

#define GID_UNSET UINT64_MAX

static struct cp cp = {.port = 18517,
		       .shell = "ssh",
		       .gid_index = GID_UNSET,
		       .base = -1,
		       .plan = {[PLAN_MAGIC] = CP_MAGIC, [PLAN_CHUNK] = 65536, [PLAN_SCHEME] = SCHEME_AUTO}};

/* ---- the command line */

static void pattern_add(bool include, const char *text)
{
	if (!cp_filter_add(&cp.filter, include, text, strlen(text)))
		die("%s: pattern %u has %zu bytes: 1 to %d are allowed, and %d patterns",
		    include ? "--include" : "--exclude", cp.filter.count + 1, strlen(text), CP_PATTERN_MAX,
		    CP_PATTERNS_MAX);
}

static void exclude(const char *text)
{
	pattern_add(false, text);
}

static void include(const char *text)
{
	pattern_add(true, text);
}

/* KiB a second, or MiB or GiB, as rsync has it. */
static void bwlimit(const char *text)
{
	static const char units[] = "KMG";
	char *end;
	double rate = strtod(text, &end);
	const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : units;

	rate *= unit ? (double)(UINT64_C(1024) << 10 * (unit - units)) * 8 / 1e6 : 0;
	if (!unit || end == text || (*end && end[1]) || !(rate > 0 && rate < CP_RATE_MAX))
		die("--bwlimit %s: a number of KiB/s, or one of MiB/s or GiB/s with M or G behind it, is allowed, up to %d Mbit/s",
		    text, CP_RATE_MAX);
	cp.plan[PLAN_RATE] = (uint64_t)ceil(rate);
}

static void rate(const char *text)
{
	unsigned long long mbps;
	char *end;

	if (!strcmp(text, "auto")) {
		cp.plan[PLAN_RATE] = CP_RATE_AUTO;
		return;
	}
	errno = 0;
	mbps = strtoull(text, &end, 10);
	if (!isdigit((unsigned char)text[0]) || *end || errno || mbps > CP_RATE_MAX)
		die("--rate %s: auto, or Mbit/s from 0, for no limit, to %d, are allowed", text, CP_RATE_MAX);
	cp.plan[PLAN_RATE] = mbps;
}

static const struct option_row rows[] = {
	/* clang-format off */
	{'e', "rsh", OPTION_TEXT, &cp.shell, 0, 0, "COMMAND", "starts the other end on HOST (ssh)"},
	{0, "remote-path", OPTION_TEXT, &cp.remote, 0, 0, "COMMAND", "runs sdr_cp there (as it runs here)"},
	{'p', "port", OPTION_U64, &cp.port, 1, 65535, NULL, "TCP port to meet on, without ssh"},
	{'d', "ib-dev", OPTION_TEXT, &cp.device, 0, 0, "NAME", "the device (the first)"},
	{'x', "gid-index", OPTION_U64, &cp.gid_index, 0, 255, NULL, "index in its port's GID table (of the address that the ends meet by)"},
	{'q', "quiet", OPTION_FLAG, &cp.quiet, 0, 0, NULL, "shows no progress"},
	{'s', "stats", OPTION_FLAG, &cp.stats, 0, 0, NULL, "says in the end what was copied, and how"},
	{'j', "json", OPTION_FLAG, &cp.json, 0, 0, NULL, "says that as JSON, and nothing else"},
	{0, "server", OPTION_FLAG, &cp.serves, 0, 0, NULL, "what another sdr_cp starts"},
	{0, NULL, OPTION_HEADING, NULL, 0, 0, NULL, "The receiver's:"},
	{0, "serve", OPTION_FLAG, &cp.waits, 0, 0, NULL, "waits for any number of senders, who may write below FOLDER"},
	{'a', "allow", OPTION_TEXT, &cp.allowed, 0, 0, "LIST", "their addresses: ADDRESS[/BITS], or any"},
	{'y', "sync", OPTION_FLAG, &cp.sync, 0, 0, NULL, "ends when all is on the disk"},
	{0, NULL, OPTION_HEADING, NULL, 0, 0, NULL, "What is copied, said by the end that asks:"},
	{0, "exclude", OPTION_EACH, exclude, 0, 0, "PATTERN", "leaves out what has such a name or path"},
	{0, "include", OPTION_EACH, include, 0, 0, "PATTERN", "does not, if it comes before"},
	{'c', "checksum", OPTION_ONE, &cp.plan[PLAN_CHECKSUM], 0, 0, NULL, "compares files by hashes, not by length and time"},
	{'H', "hard-links", OPTION_ONE, &cp.plan[PLAN_NAMES], 0, 0, NULL, "a file of several names stays one"},
	{'X', "xattrs", OPTION_ONE, &cp.plan[PLAN_ATTRIBUTES], 0, 0, NULL, "extended attributes too"},
	{'o', "owners", OPTION_ONE, &cp.plan[PLAN_OWNERS], 0, 0, NULL, "owners and groups by number, and bits that set IDs"},
	{0, "delete", OPTION_ONE, &cp.plan[PLAN_DELETE], 0, 0, NULL, "deletes there what is not here"},
	{'n', "dry-run", OPTION_ONE, &cp.plan[PLAN_DRY], 0, 0, NULL, "changes nothing"},
	{'i', "itemize-changes", OPTION_ONE, &cp.plan[PLAN_ITEMS], 0, 0, NULL, "a line for all that changes, as rsync has them"},
	{0, NULL, OPTION_HEADING, NULL, 0, 0, NULL, "How it is sent, said by the end that asks:"},
	{'r', "rate", OPTION_EACH, rate, 0, 0, "MBIT", "Mbit/s that are sent at most; auto: what the link carries; 0: no limit (0)"},
	{0, "bwlimit", OPTION_EACH, bwlimit, 0, 0, "RATE", "the same in KiB/s, as rsync has it"},
	{'k', "chunk", OPTION_POWER, &cp.plan[PLAN_CHUNK], 64, 262144, NULL, "bytes that are repeated together, a power of two"},
	{'m', "mtu", OPTION_POWER, &cp.plan[PLAN_MTU], 0, 4096, NULL, "bytes of a packet, a power of two; 0: what both ports carry"},
	{'t', "rtt", OPTION_U64, &cp.plan[PLAN_RTT_US], 0, 100000000, NULL, "microseconds that a round trip takes (measured)"},
	{'S', "scheme", OPTION_WORD, &cp.plan[PLAN_SCHEME], 0, 0, SCHEME_NAMES, "how losses are repaired"},
	{'F', "idle-fill", OPTION_ONE, &cp.plan[PLAN_FILL], 0, 0, NULL, "parities of tail go on while nothing else is to be sent"},
	/* clang-format on */
};

static void path_add(const char **paths, uint32_t *count, const char *path)
{
	if (*count == CP_PATHS_MAX)
		die("more than %d paths", CP_PATHS_MAX);
	paths[(*count)++] = path;
}

/* Slashes behind a folder's name say nothing. */
static void own_add(char *path)
{
	for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
		path[n - 1] = 0;
	path_add(cp.path, &cp.path_count, path);
}

/* From a host, all from the same. */
static void fetched_read(char **from, int count)
{
	char *host, *path;

	cp.plan[PLAN_FETCH] = 1;
	for (int i = 0; i < count; i++) {
		if (remote_split(from[i], &host, &path) != REMOTE_SHELL)
			die("%s: either all that is fetched is on another host, or nothing", from[i]);
		if (cp.host && strcmp(cp.host, host))
			die("%s: all that is fetched must be on one host", from[i]);
		cp.host = host;
		path_add(cp.there, &cp.there_count, path);
	}
}

static void places_read(char **arg, int count)
{
	char *host, *path;
	enum remote_kind fetch = remote_split(arg[0], &host, &path);
	enum remote_kind send = count > 1 ? remote_split(arg[count - 1], &host, &path) : REMOTE_NONE;

	if (fetch == REMOTE_SERVER)
		die("%s: nothing can be fetched from an sdr_cp that waits for senders", arg[0]);
	if (fetch && send)
		die("%s: only one of the two can be on another host", arg[0]);
	if (fetch && count == 1)
		die("%s: where it is copied to is wanted", arg[0]);
	if (fetch) {
		fetched_read(arg, count - 1);
		own_add(arg[count - 1]);
		return;
	}
	cp.sends = count > 1;
	if (cp.sends)
		cp.host = send ? host : arg[--count];
	if (send)
		path_add(cp.there, &cp.there_count, path);
	cp.shell = send == REMOTE_SERVER ? NULL : cp.shell;
	for (int i = 0; i < count - (send != REMOTE_NONE); i++)
		own_add(arg[i]);
}

static void base_open(const char *path)
{
	cp.base = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (cp.base < 0)
		die("%s: %s", path, strerror(errno));
	if (!cp.allowed)
		die("--serve: whoever comes may write below %s, so --allow must say who may: addresses, or any", path);
	cp.quiet = true;
}

static void command_read(int argc, char **argv)
{
	int first = options_read(
		argc, argv, rows, OPTION_COUNT(rows),
		"Usage: sdr_cp [OPTION ...] FROM ... [USER@]HOST:TO   sends files, or folders and all below them\n"
		"       sdr_cp [OPTION ...] [USER@]HOST:FROM ... TO   fetches them\n"
		"       sdr_cp [OPTION ...] TO                        waits for a sender, who comes by TCP\n"
		"       sdr_cp [OPTION ...] FROM ... HOST             sends to one that waits\n\n"
		"What an earlier run has left is compared and not sent again.\n\n");
	int count = argc - first;

	if (cp.waits && count != 1)
		die("--serve: a folder is wanted; --help tells");
	if (cp.serves ? count : count < 1)
		die("a file, and where to send it or fetch it, are wanted; --help tells");
	scheme_fill_check(cp.plan[PLAN_FILL], (enum scheme)cp.plan[PLAN_SCHEME]);
	if (cp.waits)
		base_open(argv[first]);
	else if (!cp.serves)
		places_read(argv + first, count);
	cp.quiet |= cp.serves;
}

/* ---- both ends meet */

/* A sender that comes by TCP may do what the receiver's user has said that it may. */
static void allow(const uint64_t own[PLAN_NUMBERS], enum plan_number n, const char *option)
{
	if (cp.plan[n] && !own[n])
		die("the sender wants %s, which this end was not given", option);
}

static void plan_agree(void)
{
	uint64_t own[PLAN_NUMBERS];

	memcpy(own, cp.plan, sizeof(own));
	meet_agree(cp.tcp, cp.host, cp.plan, PLAN_NUMBERS);
	if (cp.plan[PLAN_MAGIC] != CP_MAGIC ||
	    !options_allow(rows, OPTION_COUNT(rows), cp.plan, cp.plan + PLAN_NUMBERS) || cp.plan[PLAN_FETCH] > 1 ||
	    cp.plan[PLAN_RATE] > CP_RATE_AUTO ||
	    (cp.plan[PLAN_FILL] && !scheme_fills((enum scheme)cp.plan[PLAN_SCHEME])))
		die("the peer is not the sdr_cp of this version");
	if (cp.host || (cp.serves && !cp.waits))
		return;
	if (cp.plan[PLAN_FETCH])
		die("the peer wants to fetch, and this end only receives");
	allow(own, PLAN_DELETE, "--delete");
	allow(own, PLAN_OWNERS, "--owners");
	allow(own, PLAN_ATTRIBUTES, "--xattrs");
}

static void filter_tell(void)
{
	uint8_t frame[1 + CP_PATTERN_MAX];

	for (uint32_t i = 0; i < cp.filter.count; i++) {
		size_t len = strlen(cp.filter.pattern[i].text);

		frame[0] = cp.filter.pattern[i].include;
		memcpy(frame + 1, cp.filter.pattern[i].text, len);
		cp_say(CP_FILTER, frame, 1 + len);
	}
	cp_say(CP_FILTER, "", 0);
}

static void filter_hear(void)
{
	struct cp_frame f;

	cp_filter_clear(&cp.filter);
	while (cp_expect(&f, CP_FILTER), f.length) {
		if (!cp_filter_add(&cp.filter, f.payload[0], (const char *)f.payload + 1, f.length - 1))
			cp_nonsense();
	}
}

static void address_take(const char *address)
{
	snprintf(cp.address, sizeof(cp.address), "%.*s", MEET_ADDRESS - 1, address ? address : "");
}

/* What only the end that was asked knows is how the other one's address looks from here. */
static void paths_tell(void)
{
	struct cp_frame f;

	for (uint32_t i = 0; i < cp.there_count; i++) {
		size_t len = strlen(cp.there[i]);

		if (len >= PATH_MAX)
			die("a path of %zu bytes: %s", len, strerror(ENAMETOOLONG));
		cp_say(CP_PATH, cp.there[i], len);
	}
	cp_say(CP_PATH, "", 0);
	cp_expect(&f, CP_MET);
	f.payload[f.length < MEET_ADDRESS ? f.length : 0] = 0;
	if (f.length)
		address_take((const char *)f.payload);
}

/* A path begins in the user's folder, as with scp. */
static void path_take(const struct cp_frame *f)
{
	char *path = cp_text(f->payload, f->length);

	if (f->length >= PATH_MAX || strlen(path) != f->length)
		cp_nonsense();
	own_add(strncmp(path, "~/", 2) ? path : path[2] ? path + 2 : strcpy(path, "."));
}

static void paths_hear(void)
{
	const char *there;
	struct cp_frame f;

	while (cp_expect(&f, CP_PATH), f.length)
		path_take(&f);
	cp.sends = cp.plan[PLAN_FETCH];
	if (!cp.path_count || (cp.path_count > 1 && !cp.sends))
		cp_nonsense();
	there = cp.waits ? NULL : remote_there();
	cp_say(CP_MET, there ? there : "", there ? strlen(there) : 0);
	if (!cp.waits)
		address_take(remote_here());
}

static void ends_meet(void)
{
	if (cp.waits)
		cp.tcp = serve((uint16_t)cp.port, cp.allowed);
	else if (cp.serves)
		cp.tcp = remote_serve();
	else if (cp.there_count && cp.shell)
		cp.tcp = remote_start(cp.shell, cp.host, cp.remote ? cp.remote : remote_command());
	else
		cp.tcp = meet(cp.host, (uint16_t)cp.port);
	cp_wire_open(cp.tcp, cp.serves);
	cp.serves |= cp.waits;
	plan_agree();
	if (cp.host)
		filter_tell();
	else
		filter_hear();
	meet_address(cp.tcp, cp.address);
	if (cp.there_count)
		paths_tell();
	else if (cp.serves)
		paths_hear();
}

/* ---- and connect */

/* 0: none was given. */
static uint64_t rate_given(void)
{
	return cp.plan[PLAN_RATE] == CP_RATE_AUTO ? 0 : cp.plan[PLAN_RATE];
}

static void qp_open(void)
{
	const struct meet_device device = {
		.name = cp.device,
		.gid_index = cp.gid_index == GID_UNSET ? 0 : cp.gid_index,
		.address = cp.gid_index == GID_UNSET && cp.address[0] ? cp.address : NULL,
		.mtu = cp.plan[PLAN_MTU],
		.chunk = cp.plan[PLAN_CHUNK],
		.messages_log = CP_DEPTH_LOG + 1,
		.message_bytes = CP_MESSAGE,
		.sends = cp.sends,
		.receives = !cp.sends,
		.rate_mbps = rate_given(),
		.rate_auto = cp.plan[PLAN_RATE] == CP_RATE_AUTO && cp.sends,
		.rtt_ns = cp.plan[PLAN_RTT_US] * 1000,
		.idle_fill = cp.plan[PLAN_FILL],
	};

	cp.ctx = meet_context(&device);
	cp.qp = meet_qp(cp.ctx, &device);
}

static void memory_register(void)
{
	enum { HUGE_PAGE = 2 << 20 };
	const size_t bytes = (size_t)CP_DEPTH * CP_MESSAGE;

	/* What a small file does not need is not touched, and the rest in few large pages, where the system has them.
	 */
	cp.memory = aligned_alloc(HUGE_PAGE, bytes);
	if (!cp.memory)
		die("no memory");
	madvise(cp.memory, bytes, MADV_HUGEPAGE);
	cp.mr = verbena_sdr_mr_reg(cp.ctx, cp.memory, bytes, cp.sends ? 0 : VERBENA_SDR_REMOTE_WRITE);
	if (!cp.mr || verbena_sdr_mr_lkey_get(cp.mr, &cp.lkey))
		die("registering %zu bytes: %s", bytes, strerror(errno));
}

/* Where nothing limits the rate though it was to find itself: on a short way, or by an older peer. */
static void rate_look(void)
{
	enum { SHORT_NS = 4000000 };
	struct verbena_sdr_stats st;

	if (!cp.way.rate_auto || !cp.sends || verbena_sdr_qp_stats_get(cp.qp, &st) || st.rate_mbps)
		return;
	cp.way.rate_auto = false;
	if (cp.way.rtt_ns >= SHORT_NS)
		cp_tell(&cp,
			"the other end is an older sdr_cp, by which no rate can be found: nothing limits it without --rate\n");
}

/* Standard output is one JSON object, or nobody's. */
static void ends_connect(void)
{
	char reason[SCHEME_REASON];

	qp_open();
	memory_register();
	meet_connect(cp.tcp, cp.qp);
	cp.way = (struct scheme_way){.scheme = (enum scheme)cp.plan[PLAN_SCHEME],
				     .rtt_ns = cp.plan[PLAN_RTT_US] * 1000,
				     .rate_mbps = rate_given(),
				     .rate_auto = cp.plan[PLAN_RATE] == CP_RATE_AUTO,
				     .chunk = cp.plan[PLAN_CHUNK],
				     .depth_bytes = (uint64_t)CP_DEPTH * CP_MESSAGE};
	scheme_open(&cp.way, cp.ctx, cp.qp, cp.tcp, cp.sends, reason);
	if (reason[0])
		cp_tell(&cp, "%s\n", reason);
	rate_look();
}

static void ends_part(void)
{
	verbena_sdr_qp_destroy(cp.qp);
	verbena_sdr_mr_dereg(cp.mr);
	verbena_sdr_context_destroy(cp.ctx);
	free(cp.memory);
	cp_list_free(&cp.list);
	cp_filter_clear(&cp.filter);
	remote_end(cp.tcp);
}

void cp_tell(const struct cp *c, const char *fmt, ...)
{
	va_list ap;

	if (c->json)
		return;
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
}

void cp_rest(const struct cp *c, bool heard)
{
	meet_rest(c->ctx, heard ? c->tcp : -1, cp_progress_ms(&c->progress));
}

void cp_start(struct cp *c)
{
	char text[16];

	if (c->sends && c->bytes < c->list.bytes && !c->plan[PLAN_DRY])
		cp_tell(c, "%s are there already\n", cp_bytes_text(c->list.bytes - c->bytes, text));
	cp_progress_start(&c->progress, c->quiet, c->bytes);
	c->start_ns = now_ns();
}

static void walk(void)
{
	const struct cp_walk how = {&cp.filter, cp.plan[PLAN_NAMES], cp.plan[PLAN_ATTRIBUTES]};

	cp.left_out = cp_list_walk(&cp.list, &how, (char *const *)cp.path, cp.path_count);
}

int main(int argc, char **argv)
{
	command_read(argc, argv);
	if (cp.sends)
		walk();
	ends_meet();
	if (cp.serves && cp.sends)
		walk();
	ends_connect();
	if (cp.sends)
		cp_send(&cp);
	else
		cp_receive(&cp);
	cp_summary_print(&cp);
	ends_part();
	if (cp.wrong && cp.sends)
		die("%u files have arrived, but not as they were sent", cp.wrong);
	return cp.wrong ? 1 : cp.left_out || cp.failed ? CP_PARTIAL : 0;
}
