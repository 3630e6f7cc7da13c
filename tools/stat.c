/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `verbena stat`: the counters of the user's running programs, read from the pages that they lend.
 * The programs only pass a descriptor; a busy or stopped one costs a short wait.
 */
#include "tool.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/config.h"
#include "engine/engine.h"
#include "engine/stats.h"
#include "events.h"
#include "group/group.h"
#include "io/clock.h"
#include "looks.h"
#include "verbs/hostid.h"

enum { WAIT_MS = 300, GROUPS_MAX = 64 };

static const char usage[] =
	"usage: verbena stat [OPTION...] [PID...]\n"
	"\n"
	"Shows counters of your running programs: one line each, or every counter with --all or when\n"
	"PIDs are given.\n"
	"\n"
	"  -a, --all            every counter that is not zero, queue pairs and listeners\n"
	"  -j, --json           all of that, as one line of JSON\n"
	"  -e, --events         what faults on command have done (VERBENA_FAULTS, verbena fault); with --json\n"
	"                       an object a line\n"
	"  -w, --watch SECONDS  again each time so many seconds have passed\n"
	"  -h, --help           this text\n";

struct request {
	const pid_t *pids;
	int pid_count;
	bool all;
	bool json;
	bool events;
	bool matched[LOOKS_PIDS_MAX]; /* the PID was found */
	unsigned shown;               /* processes */
};

enum { COLUMN_FIELDS = 9 };

static const struct column {
	const char *title;
	int width;
	const char *fields[COLUMN_FIELDS]; /* summed */
} columns[] = {
	{"QPS", 6, {"qps"}},
	{"RX-PACKETS", 12, {"rx_packets"}},
	{"RX-BYTES", 15, {"rx_bytes"}},
	{"TX-PACKETS", 12, {"tx_packets"}},
	{"TX-BYTES", 15, {"tx_bytes"}},
	{"RETRANSMITS", 11, {"retransmits"}},
	{"TIMEOUTS", 8, {"timeouts"}},
	{"DROPS",
	 10,
	 {"rx_malformed", "rx_icrc_errors", "rx_no_qp", "rx_wrong_source", "rx_too_long", "rx_dropped", "io_rx_drops",
	  "io_rx_overflow", "io_tx_drops"}},
	{"WC-ERRORS", 9, {"completion_errors"}},
};

enum { COLUMNS = sizeof(columns) / sizeof(columns[0]) };

static uint64_t field_value(const struct stats_page *p, const char *name)
{
	size_t count;
	const struct stats_field *f = stats_fields(&count);

	for (size_t i = 0; i < count; i++) {
		if (!strcmp(f[i].name, name))
			return stats_value(p, &f[i]);
	}
	return 0;
}

static double age_s(const struct stats_page *p)
{
	return (double)clock_wall_ns() / 1e9 - (double)p->started_ns / 1e9;
}

static void print_header(void)
{
	printf("%8s  %-15s %-12s %8s", "PID", "COMMAND", "DEVICE", "SECONDS");
	for (int i = 0; i < COLUMNS; i++)
		printf(" %*s", columns[i].width, columns[i].title);
	putchar('\n');
}

static void print_line(const struct stats_page *p)
{
	char device[DEVICE_NAME_BYTES];

	page_device(device, p);
	printf("%8d  %-15.15s %-12s %8.0f", p->pid, p->comm, device, age_s(p));
	for (int i = 0; i < COLUMNS; i++) {
		uint64_t sum = 0;

		for (int k = 0; k < COLUMN_FIELDS && columns[i].fields[k]; k++)
			sum += field_value(p, columns[i].fields[k]);
		printf(" %*" PRIu64, columns[i].width, sum);
	}
	putchar('\n');
}

static const char *space_name(enum cm_space space)
{
	return space == CM_SPACE_TCP ? "tcp" : space == CM_SPACE_UDP ? "udp" : "ib";
}

static void address_text(const struct cm_listener *l, char *address)
{
	bool ipv4 = l->addr.family == CM_IPV4;

	inet_ntop(ipv4 ? AF_INET : AF_INET6, l->addr.ip + (ipv4 ? 12 : 0), address, INET6_ADDRSTRLEN);
}

static uint32_t listener_count(const struct stats_page *p)
{
	return p->listener_count < STATS_LISTENERS_MAX ? p->listener_count : STATS_LISTENERS_MAX;
}

static void print_listeners(const struct stats_page *p)
{
	char address[INET6_ADDRSTRLEN];

	for (uint32_t i = 0; i < listener_count(p); i++) {
		address_text(&p->listeners[i], address);
		printf("  listens: %s %s port %u\n", space_name(p->listeners[i].space), address,
		       p->listeners[i].addr.port);
	}
}

static void print_listeners_json(const struct stats_page *p)
{
	char address[INET6_ADDRSTRLEN];

	printf(", \"listeners\": [");
	for (uint32_t i = 0; i < listener_count(p); i++) {
		address_text(&p->listeners[i], address);
		printf("%s{\"space\": \"%s\", \"address\": \"%s\", \"port\": %u}", i ? ", " : "",
		       space_name(p->listeners[i].space), address, p->listeners[i].addr.port);
	}
	printf("]");
}

static uint32_t interface_count(const struct stats_page *p)
{
	return p->interfaces.count < IO_INTERFACES_MAX ? p->interfaces.count : IO_INTERFACES_MAX;
}

static void print_interfaces(const struct stats_page *p)
{
	for (uint32_t i = 0; i < interface_count(p); i++) {
		const struct io_interface *f = &p->interfaces.rows[i];

		printf("  interface %.15s: %" PRIu64 " packets sent, %" PRIu64 " bytes\n", f->name, f->tx_packets,
		       f->tx_bytes);
	}
}

static void print_interfaces_json(const struct stats_page *p)
{
	char name[sizeof(p->interfaces.rows[0].name)];

	printf(", \"interfaces\": [");
	for (uint32_t i = 0; i < interface_count(p); i++) {
		const struct io_interface *f = &p->interfaces.rows[i];

		snprintf(name, sizeof(name), "%.15s", f->name);
		printf("%s{\"name\": ", i ? ", " : "");
		json_string(stdout, name);
		printf(", \"tx_packets\": %" PRIu64 ", \"tx_bytes\": %" PRIu64 "}", f->tx_packets, f->tx_bytes);
	}
	printf("]");
}

/* The limits of its device, and what all of its programs use of them. */
static void print_limits(const struct stats_page *p)
{
	const struct limits_report *r = &p->limits;
	char text[LIMITS_TEXT_BYTES];

	if (!r->processes)
		return;
	limits_text(&r->config, text);
	printf("  limits of the device: %s; %u programs", text, r->processes);
	if (r->rate_bps)
		printf(", %.3f Gbit/s now", (double)r->rate_bps / 1e9);
	putchar('\n');
	for (int k = 0; k < LIMITS; k++)
		if (r->config.quota[k])
			printf("  quota %-22s %10" PRIu64 " of %" PRIu64 "\n", limit_name((enum limit)k), r->used[k],
			       r->config.quota[k]);
}

static void print_limits_json(const struct stats_page *p)
{
	const struct limits_report *r = &p->limits;

	printf(", \"limits\": {\"rate_bps\": %" PRIu64 ", \"weight\": %u, \"programs\": %u, \"rate_bps_now\": %" PRIu64
	       ", \"sent_bytes\": %" PRIu64 ", \"quotas\": {",
	       r->config.rate_bps, r->config.weight, r->processes, r->rate_bps, r->sent_bytes);
	for (int k = 0, n = 0; k < LIMITS; k++)
		if (r->config.quota[k])
			printf("%s\"%s\": {\"allowed\": %" PRIu64 ", \"used\": %" PRIu64 "}", n++ ? ", " : "",
			       limit_name((enum limit)k), r->config.quota[k], r->used[k]);
	printf("}}");
}

static const char *type_name(const struct nic_qp_report *r)
{
	static const char *const names[QPT_COUNT] = {[QPT_RC] = "RC",
						     [QPT_UC] = "UC",
						     [QPT_UD] = "UD",
						     [QPT_XRC_SEND] = "XRC_SEND",
						     [QPT_XRC_RECV] = "XRC_RECV"};

	return names[r->type] ? names[r->type] : "?";
}

static void print_qps(const struct stats_page *p, const struct nic_qp_report *rows, int count)
{
	uint64_t all = field_value(p, "qps");
	char address[ADDRESS_BYTES];

	for (int i = 0; i < count; i++) {
		const struct nic_qp_report *r = &rows[i];

		printf("  queue pair 0x%06x: %s %s %s", r->qpn, type_name(r), qp_state_word(r),
		       qp_way_word(r, !p->port));
		if (qp_has_peer(r))
			printf(" to %s", gid_text(r->peer, address));
		if (r->dest_qpn)
			printf(" 0x%06x", r->dest_qpn);
		putchar('\n');
	}
	if (count < 0)
		printf("  queue pairs: they change while they are read\n");
	else if (all > (uint64_t)count && count == STATS_QPS_MAX)
		printf("  queue pairs: %" PRIu64 " more\n", all - (uint64_t)count);
}

static void print_qps_json(const struct stats_page *p, const struct nic_qp_report *rows, int count)
{
	char address[ADDRESS_BYTES];

	printf(", \"queue_pairs\": [");
	for (int i = 0; i < count; i++) {
		const struct nic_qp_report *r = &rows[i];

		printf("%s{\"qpn\": %u, \"type\": \"%s\", \"state\": \"%s\", \"path\": \"%s\"", i ? ", " : "", r->qpn,
		       type_name(r), qp_state_word(r), qp_way_word(r, !p->port));
		if (qp_has_peer(r))
			printf(", \"peer\": \"%s\"", gid_text(r->peer, address));
		if (r->dest_qpn)
			printf(", \"peer_qpn\": %u", r->dest_qpn);
		printf("}");
	}
	printf("]");
}

/* The page is another process's, and may say anything. */
static void print_all(const struct stats_page *p, const struct nic_qp_report *rows, int qps)
{
	char device[DEVICE_NAME_BYTES];
	size_t count;
	const struct stats_field *f = stats_fields(&count);

	page_device(device, p);
	printf("%d %.15s: %s, slot %u, ", p->pid, p->comm, device, p->slot);
	if (p->port)
		printf("UDP ports %u and %u, ", p->port, p->veroce_port);
	printf("running for %.0f s\n", age_s(p));
	for (size_t i = 0; i < count; i++) {
		uint64_t v = stats_value(p, &f[i]);

		if (v)
			printf("  %-30s %10" PRIu64 "\n", f[i].name, v);
	}
	print_limits(p);
	print_interfaces(p);
	print_qps(p, rows, qps);
	print_listeners(p);
}

static void print_json(const struct stats_page *p, const struct nic_qp_report *rows, int qps, bool first)
{
	size_t count;
	const struct stats_field *f = stats_fields(&count);
	char comm[STATS_COMM_BYTES], device[DEVICE_NAME_BYTES];

	page_device(device, p);
	snprintf(comm, sizeof(comm), "%.15s", p->comm);
	printf("%s{\"pid\": %d, \"command\": ", first ? "" : ", ", p->pid);
	json_string(stdout, comm);
	printf(", \"device\": \"%s\", \"slot\": %u, \"udp_port\": %u, \"veroce_port\": %u, \"seconds\": %.3f, "
	       "\"counters\": {",
	       device, p->slot, p->port, p->veroce_port, age_s(p));
	for (size_t i = 0; i < count; i++)
		printf("%s\"%s\": %" PRIu64, i ? ", " : "", f[i].name, stats_value(p, &f[i]));
	printf("}");
	if (p->limits.processes)
		print_limits_json(p);
	print_interfaces_json(p);
	print_qps_json(p, rows, qps);
	print_listeners_json(p);
	printf("}");
}

/* The PID in our own PID namespace; the page has the PID in its owner's namespace. */
static bool is_wanted(struct request *r, pid_t pid)
{
	bool wanted = r->pid_count == 0;

	for (int i = 0; i < r->pid_count; i++) {
		if (r->pids[i] == pid)
			wanted = r->matched[i] = true;
	}
	return wanted;
}

/* Other users with programs here, by the names of their sockets. */
static void tell_others(const struct group_id *ids, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		bool told = ids[i].uid == geteuid();

		for (size_t k = 0; k < i && !told; k++)
			told = ids[k].uid == ids[i].uid;
		if (!told)
			fprintf(stderr,
				"verbena: user %u has programs here too; only that user may read their "
				"counters\n",
				(unsigned)ids[i].uid);
	}
}

/* Unmaps the page. */
static void show_events(const struct request *r, const struct stats_page *p)
{
	char device[DEVICE_NAME_BYTES];

	page_device(device, p);
	if (r->json)
		events_print_json(p, device);
	else
		events_print(p, device);
	stats_unmap(p);
}

static void show_process(struct request *r, const struct group_member *m)
{
	const struct stats_page *p = m->stat_fd < 0 ? NULL : stats_map(m->stat_fd);
	struct nic_qp_report rows[STATS_QPS_MAX];
	struct stats_page page;
	int qps;

	if (!is_wanted(r, m->pid)) {
		if (p)
			stats_unmap(p);
		return;
	}
	if (!p) {
		fprintf(stderr, "verbena: process %d %s\n", m->pid,
			m->answered ? "has counters of another version of verbena" : "does not answer");
		return;
	}
	if (r->events) {
		show_events(r, p);
		r->shown++;
		return;
	}
	page = *p;
	printable(page.comm, sizeof(page.comm), p->comm, sizeof(p->comm));
	qps = stats_read_qps(p, rows);
	stats_unmap(p);
	if (m->pid)
		page.pid = m->pid;
	if (!r->json && !r->all && !r->shown)
		print_header();
	if (r->json)
		print_json(&page, rows, qps, !r->shown);
	else if (r->all)
		print_all(&page, rows, qps);
	else
		print_line(&page);
	r->shown++;
}

/* 0 or a negative errno. */
static int show_group(struct request *r, const struct group_id *id)
{
	struct group_member m[GROUP_SLOTS];
	ssize_t n = group_query(id, GROUP_ALL_SLOTS, WAIT_MS, m, GROUP_SLOTS);

	for (ssize_t i = 0; i < n; i++) {
		show_process(r, &m[i]);
		if (m[i].stat_fd >= 0)
			close(m[i].stat_fd);
	}
	return n < 0 ? (int)n : 0;
}

static int show(struct request *r, uint16_t port)
{
	struct group_id ids[2 * GROUPS_MAX];
	size_t groups = group_list(geteuid(), port, ids, GROUPS_MAX);
	int err = 0;

	/* Those that speak iWARP. */
	groups += group_list(geteuid(), GROUP_PORT_NONE, ids + groups, GROUPS_MAX);

	r->shown = 0;
	memset(r->matched, 0, sizeof(r->matched));
	if (r->json && !r->events)
		printf("{\"processes\": [");
	for (size_t i = 0; i < groups && !err; i++)
		if (ids[i].uid == geteuid())
			err = show_group(r, &ids[i]);
	if (r->json && !r->events)
		printf("]}\n");
	fflush(stdout);
	if (err)
		return complain("cannot ask running programs: %s", strerror(-err));
	if (!r->shown && !r->json && !r->pid_count)
		fprintf(stderr, "verbena: no program of yours is running on it (UDP port %u)\n", port);
	tell_others(ids, groups);
	for (int i = 0; i < r->pid_count; i++) {
		if (!r->matched[i])
			complain("process %d does not run on Verbena, or is another user's", r->pids[i]);
	}
	for (int i = 0; i < r->pid_count; i++) {
		if (!r->matched[i])
			return EXIT_OURS;
	}
	return EXIT_SUCCESS;
}

int cmd_stat(int argc, char **argv)
{
	static const struct option options[] = {
		{"all", no_argument, NULL, 'a'},    {"json", no_argument, NULL, 'j'},
		{"events", no_argument, NULL, 'e'}, {"watch", required_argument, NULL, 'w'},
		{"help", no_argument, NULL, 'h'},   {NULL, 0, NULL, 0},
	};
	struct request r = {0};
	pid_t pids[LOOKS_PIDS_MAX];
	struct config c;
	char why[1024], *end;
	double watch_s = 0;
	int opt, rc;

	while ((opt = getopt_long(argc, argv, "ajew:h", options, NULL)) != -1) {
		switch (opt) {
		case 'a': r.all = true; break;
		case 'j': r.json = true; break;
		case 'e': r.events = true; break;
		case 'w':
			watch_s = strtod(optarg, &end);
			if (end == optarg || *end || !(watch_s >= 0.01 && watch_s <= 86400))
				return complain("--watch %s: allowed are seconds from 0.01 to 86400", optarg);
			break;
		case 'h': fputs(usage, stdout); return EXIT_SUCCESS;
		default: return usage_error("stat");
		}
	}
	if (!looks_pids("stat", argc - optind, argv + optind, pids, &r.pid_count))
		return EXIT_OURS;
	r.all |= r.pid_count > 0;
	r.pids = pids;
	if (config_load(&c, why, sizeof(why)))
		return complain("%s", why);
	for (;;) {
		rc = show(&r,
			  c.transport.protocol == PROTOCOL_ROCEV1 ? config_rocev1_port(&c) : c.transport.rocev2.port);
		if (!watch_s || rc || ferror(stdout))
			return rc;
		clock_sleep_ns((uint64_t)(watch_s * 1e9));
	}
}
