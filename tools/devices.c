/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `verbena devices`: shows the device that a program will see, without joining the group of
 * programs that share the port.
 */
#include "tool.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>

#include "engine/config.h"
#include "engine/gids.h"
#include "export.h"
#include "nic/nic.h"
#include "verbs/hostid.h"

static const char usage[] =
	"usage: verbena devices [--json | --sysfs DIR]\n"
	"\n"
	"Shows the devices that programs see, their port's addresses (the GID table) and their limits.\n"
	"\n"
	"  -j, --json       as JSON\n"
	"  -s, --sysfs DIR  as files in DIR, as the kernel has them in /sys, and true until it is interrupted\n"
	"  -h, --help       this text\n";

static const struct {
	const char *name;
	int limit; /* enum profile_limit; -1: as large as value */
	uint64_t value;
} limits[] = {
	{"max_qp", PROFILE_QP, 0},
	{"max_qp_wr", PROFILE_QP_WR, 0},
	{"max_sge", PROFILE_SGE, 0},
	{"max_inline_data", PROFILE_INLINE, 0},
	{"max_cq", PROFILE_CQ, 0},
	{"max_cqe", PROFILE_CQE, 0},
	{"max_mr", PROFILE_MR, 0},
	{"max_pd", PROFILE_PD, 0},
	{"max_srq", PROFILE_SRQ, 0},
	{"max_srq_wr", PROFILE_SRQ_WR, 0},
	{"max_qp_rd_atom", PROFILE_RD_ATOM, 0},
	{"max_msg_sz", -1, NIC_MSG_BYTES_MAX},
};

enum { LIMITS_SHOWN = sizeof(limits) / sizeof(limits[0]) };

static uint64_t limit(const struct config *c, int i)
{
	return limits[i].limit < 0 ? limits[i].value : c->profile.max[limits[i].limit];
}

static bool is_rocev1(const struct config *c)
{
	return c->transport.protocol == PROTOCOL_ROCEV1;
}

static void print_device(const struct config *c, unsigned d)
{
	char name[DEVICE_NAME_BYTES];

	device_name(name, c->devices.iwarp, c->device, d);
	printf("%s: node GUID %016" PRIx64 ", one Ethernet port, ", name, device_guid(hostid_guid(), c->device, d));
	if (c->devices.iwarp >> d & 1)
		printf("iWARP over TCP");
	else if (is_rocev1(c))
		printf("RoCEv1");
	else
		printf("RoCEv2 on UDP port %u, veRoCE on %u", c->transport.rocev2.port, c->transport.veroce.port);
	printf(c->devices.has_rails ? ", bound to %s\n" : "\n", c->devices.rails[d]);
}

static void print_gids(const struct gid_table *t)
{
	char address[ADDRESS_BYTES];

	printf("\n%5s  %-39s  %-15s  %6s  %8s\n", "GID", "ADDRESS", "INTERFACE", "MTU", "PATH MTU");
	for (uint32_t i = 0; i < t->count; i++)
		if (t->gids[i].ifindex)
			printf("%5u  %-39s  %-15s  %6u  %8u\n", i, gid_text(t->gids[i].raw, address),
			       t->interfaces[i].name, t->gids[i].ip_mtu, nic_path_mtu(t->gids[i].ip_mtu));
}

/* What all programs of a device together may have, and what those that run have. */
static void print_quotas(const struct config *c, unsigned device)
{
	const struct limits_config *l = &c->limits;
	char name[DEVICE_NAME_BYTES], text[LIMITS_TEXT_BYTES];
	struct limits_report r = {0};

	if (!limits_are_given(l))
		return;
	device_name(name, c->devices.iwarp, c->device, device);
	limits_text(l, text);
	limits_look(name, &r);
	printf("all programs of %s together: %s; %u run", name, text, r.processes);
	if (r.rate_bps)
		printf(", and may send %.3f Gbit/s now", (double)r.rate_bps / 1e9);
	putchar('\n');
	for (int k = 0; k < LIMITS; k++)
		if (l->quota[k])
			printf("  %-12s %12" PRIu64 " of %" PRIu64 " in use\n", limit_name((enum limit)k), r.used[k],
			       l->quota[k]);
}

static void print_quotas_json(const struct config *c, const char *name)
{
	const struct limits_config *l = &c->limits;
	struct limits_report r = {0};

	limits_look(name, &r);
	printf(", \"limits\": {\"rate_bps\": %" PRIu64 ", \"burst_bytes\": %u, \"weight\": %u, \"programs\": %u, "
	       "\"rate_bps_now\": %" PRIu64 ", \"sent_bytes\": %" PRIu64 ", \"quotas\": {",
	       l->rate_bps, l->burst_bytes, l->weight, r.processes, r.rate_bps, r.sent_bytes);
	for (int k = 0, n = 0; k < LIMITS; k++)
		if (l->quota[k])
			printf("%s\"%s\": {\"allowed\": %" PRIu64 ", \"used\": %" PRIu64 "}", n++ ? ", " : "",
			       limit_name((enum limit)k), l->quota[k], r.used[k]);
	printf("}}");
}

/* Devices without rails have one table. */
static void print_table(const struct config *c, const struct gid_table *t)
{
	for (unsigned d = 0; d < c->devices.count; d++) {
		print_device(c, d);
		print_quotas(c, d);
		if (c->devices.has_rails) {
			print_gids(&t[d]);
			printf("\n");
		}
	}
	printf("packets to programs of yours on this host go through %s\n", config_has_shm(c) ? "memory" : "sockets");
	if (!c->devices.has_rails)
		print_gids(t);
	printf("\n%-16s  %10s\n", "LIMIT", "VALUE");
	for (int i = 0; i < LIMITS_SHOWN; i++)
		printf("%-16s  %10" PRIu64 "\n", limits[i].name, limit(c, i));
}

static void print_json_device(const struct config *c, const struct gid_table *t, unsigned device)
{
	char address[ADDRESS_BYTES], name[DEVICE_NAME_BYTES];

	device_name(name, c->devices.iwarp, c->device, device);
	printf("{\"name\": \"%s\", \"node_guid\": \"%016" PRIx64 "\", \"transport\": \"%s\", \"ports\": [{"
	       "\"port\": 1, \"link_layer\": \"Ethernet\", ",
	       name, device_guid(hostid_guid(), c->device, device),
	       c->devices.iwarp >> device & 1 ? "iWARP" : "InfiniBand");
	if (!(c->devices.iwarp >> device & 1))
		printf("\"udp_port\": %u, \"veroce_port\": %u, ", c->transport.rocev2.port, c->transport.veroce.port);
	printf("\"gids\": [");
	for (uint32_t i = 0, n = 0; i < t->count; i++) {
		if (!t->gids[i].ifindex)
			continue;
		printf("%s\n  {\"index\": %u, \"address\": \"%s\", \"type\": \"%s\", \"interface\": ", n++ ? "," : "",
		       i, gid_text(t->gids[i].raw, address), is_rocev1(c) ? "IB/RoCE v1" : "RoCE v2");
		json_string(stdout, t->interfaces[i].name);
		printf(", \"mtu\": %u, \"path_mtu\": %u}", t->gids[i].ip_mtu, nic_path_mtu(t->gids[i].ip_mtu));
	}
	printf("]}]");
	if (limits_are_given(&c->limits))
		print_quotas_json(c, name);
	printf("}");
}

static void print_json(const struct config *c, const struct gid_table *t)
{
	printf("{\"devices\": [");
	for (unsigned d = 0; d < c->devices.count; d++) {
		printf("%s", d ? ",\n " : "");
		print_json_device(c, &t[d], d);
	}
	printf("],\n \"shm\": %s,\n \"limits\": {", config_has_shm(c) ? "true" : "false");
	for (int i = 0; i < LIMITS_SHOWN; i++)
		printf("%s\"%s\": %" PRIu64, i ? ", " : "", limits[i].name, limit(c, i));
	printf("}}\n");
}

int cmd_devices(int argc, char **argv)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'},
		{"sysfs", required_argument, NULL, 's'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct gid_table *t = calloc(ENGINE_DEVICES_MAX, sizeof(*t));
	struct config c;
	const char *dir = NULL;
	char why[1024];
	int json = 0, opt;

	while ((opt = getopt_long(argc, argv, "js:h", options, NULL)) != -1) {
		switch (opt) {
		case 'j': json = 1; break;
		case 's': dir = optarg; break;
		case 'h': fputs(usage, stdout); return EXIT_SUCCESS;
		default: return usage_error("devices");
		}
	}
	if (optind < argc)
		return complain("devices: '%s': no argument is allowed", argv[optind]);
	if (!t)
		return complain("out of memory");
	if (config_load(&c, why, sizeof(why)) || gids_load_all(t, &c, why, sizeof(why))) {
		free(t);
		return complain("%s", why);
	}
	if (dir) {
		free(t);
		return export_run(&(struct export_wanted){.sysfs = dir}, &c);
	}
	if (json)
		print_json(&c, t);
	else
		print_table(&c, t);
	free(t);
	return EXIT_SUCCESS;
}
