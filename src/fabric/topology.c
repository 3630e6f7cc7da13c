/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Topologies as text: the format of ibsim, which is a part of what ibnetdiscover prints. A record for each node, a line for each
 * link at either end. What follows on a line is ignored.
 *
 *     Switch 4 "leaf1"            Hca 1 "host1"
 *     [1] "host1"[1]              [1] "leaf1"[1]
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/fabric.h"

enum {
	LINE_BYTES = 256,
	GUID_STEP = 0x100,
	MKEY_NONE = 0,
	TIMEOUT_DEFAULT = 18,
	ERRORS_DEFAULT = 8,
	SPEEDS = 7,
	SPEED_QDR = 4,
	WIDTHS_1X_4X = 3,
	WIDTH_4X = 2,
	VLS_0_TO_7 = 4,
	MTU_CODE_4096 = 5,
	MTU_CODE_2048 = 4,
	ARBITRATION_ENTRIES = 8,
	CAPABILITIES = 1 << 6 | 1 << 11 | 1 << 25 /* SL mapping, system image GUID, client reregistration */
};

#define GUID_FIRST UINT64_C(0x0256420000000100)
#define GID_PREFIX UINT64_C(0xfe80000000000000)

/* A link's line, until all nodes are known. */
struct link_line {
	uint16_t node;
	uint8_t port, peer_port;
	char peer[FABRIC_NAME_BYTES];
	unsigned line;
};

struct reader {
	struct fabric *f;
	struct link_line *links;
	size_t link_count, link_room;
	unsigned line;
	char *why;
	size_t why_bytes;
};

static int fail(const struct reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static int fail(const struct reader *r, const char *fmt, ...)
{
	int n = snprintf(r->why, r->why_bytes, "line %u: ", r->line);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->why + n, r->why_bytes - (size_t)n, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static int no_memory(const struct reader *r)
{
	snprintf(r->why, r->why_bytes, "out of memory");
	return -ENOMEM;
}

static void port_begin(struct fabric_port *p, bool has_link)
{
	p->info = (struct port_info){
		.mkey = MKEY_NONE,
		.gid_prefix = GID_PREFIX,
		.capabilities = CAPABILITIES,
		.width_enabled = WIDTHS_1X_4X,
		.width_supported = WIDTHS_1X_4X,
		.width_active = WIDTH_4X,
		.speed_supported = SPEEDS,
		.speed_enabled = SPEEDS,
		.speed_active = SPEED_QDR,
		.state = has_link ? PORT_INIT : PORT_DOWN,
		.phys_state = has_link ? PORT_PHYS_LINK_UP : PORT_PHYS_POLLING,
		.down_default = PORT_PHYS_POLLING,
		.neighbor_mtu = MTU_CODE_2048,
		.mtu_cap = MTU_CODE_4096,
		.vl_cap = VLS_0_TO_7,
		.operational_vls = VLS_0_TO_7,
		.vl_arb_high_cap = ARBITRATION_ENTRIES,
		.vl_arb_low_cap = ARBITRATION_ENTRIES,
		.guid_cap = 8,
		.phy_errors = ERRORS_DEFAULT,
		.overrun_errors = ERRORS_DEFAULT,
		.response_time = TIMEOUT_DEFAULT,
		.subnet_timeout = TIMEOUT_DEFAULT,
	};
	p->pkeys[0] = 0xffff;
}

static void switch_begin(struct fabric_node *n)
{
	n->info = (struct switch_info){
		.linear_cap = FABRIC_LIDS,
		.multicast_cap = FABRIC_GROUPS,
		.default_port = FABRIC_NONE,
		.default_primary = FABRIC_NONE,
		.default_not_primary = FABRIC_NONE,
		.state_change = true,
		.partition_cap = FABRIC_PKEYS,
	};
	memset(n->forwarding, FABRIC_NONE, FABRIC_LIDS);
	n->ports[0].info.state = PORT_ACTIVE;
	n->ports[0].info.phys_state = PORT_PHYS_LINK_UP;
}

/* Two SLs a byte; what a node has before a manager sets it. */
static const uint8_t sl_modulo_8[8] = {0x01, 0x23, 0x45, 0x67, 0x01, 0x23, 0x45, 0x67};

static int node_add(struct reader *r, uint8_t type, unsigned ports, const char *name)
{
	struct fabric *f = r->f;
	struct fabric_node *n = &f->nodes[f->count];
	size_t all = ports + 1u;

	if (f->count == FABRIC_NODES_MAX)
		return fail(r, "more than %d nodes", FABRIC_NODES_MAX);
	if (!ports || ports >= FABRIC_PORTS_MAX)
		return fail(r, "%u ports: allowed are 1 to %d", ports, FABRIC_PORTS_MAX - 1);
	if (fabric_find(f, name))
		return fail(r, "a second node \"%s\"", name);
	f->count++; /* so that fabric_free() finds what is allocated now */
	snprintf(n->name, sizeof(n->name), "%s", name);
	n->type = type;
	n->port_count = (uint8_t)ports;
	n->guid = GUID_FIRST + (uint64_t)(f->count - 1u) * GUID_STEP;
	n->ports = calloc(all, sizeof(*n->ports));
	n->sl_to_vl = calloc(all * all, sizeof(*n->sl_to_vl));
	if (type == NODE_SWITCH) {
		n->forwarding = malloc(FABRIC_LIDS);
		n->groups = calloc(FABRIC_GROUPS, sizeof(*n->groups));
	}
	for (size_t i = 0; n->sl_to_vl && i < all * all; i++)
		memcpy(n->sl_to_vl[i], sl_modulo_8, sizeof(sl_modulo_8));
	if (!n->ports || !n->sl_to_vl || (type == NODE_SWITCH && (!n->forwarding || !n->groups)))
		return no_memory(r);
	for (size_t i = 0; i < all; i++)
		port_begin(&n->ports[i], false);
	if (type == NODE_SWITCH)
		switch_begin(n);
	return 0;
}

static int link_keep(struct reader *r, unsigned port, const char *peer, unsigned peer_port)
{
	struct link_line *l;

	if (!r->f->count)
		return fail(r, "a port before the first node");
	if (!port || port > r->f->nodes[r->f->count - 1].port_count)
		return fail(r, "the node has no port %u", port);
	if (peer_port >= FABRIC_PORTS_MAX)
		return fail(r, "no node has a port %u", peer_port);
	if (r->link_count == r->link_room) {
		size_t room = r->link_room ? 2 * r->link_room : 64;
		struct link_line *more = realloc(r->links, room * sizeof(*more));

		if (!more)
			return no_memory(r);
		r->links = more;
		r->link_room = room;
	}
	l = &r->links[r->link_count++];
	*l = (struct link_line){.node = (uint16_t)(r->f->count - 1u),
				.port = (uint8_t)port,
				.peer_port = (uint8_t)peer_port,
				.line = r->line};
	snprintf(l->peer, sizeof(l->peer), "%s", peer);
	return 0;
}

static bool is_comment(const char *line)
{
	static const char *const heads[] = {"#", "vendid=", "devid=", "sysimgguid=", "switchguid=", "caguid="};
	size_t blank = strspn(line, " \t\r");

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		if (!strncmp(line + blank, heads[i], strlen(heads[i])))
			return true;
	}
	return !line[blank];
}

static int line_read(struct reader *r, const char *line)
{
	char kind[8], name[FABRIC_NAME_BYTES];
	unsigned n, peer_port;

	if (is_comment(line))
		return 0;
	if (sscanf(line, " [%3u]%*[ \t]\"%63[^\"]\"[%3u]", &n, name, &peer_port) == 3 ||
	    sscanf(line, " [%3u](%*[0-9a-fx])%*[ \t]\"%63[^\"]\"[%3u]", &n, name, &peer_port) == 3)
		return link_keep(r, n, name, peer_port);
	if (sscanf(line, " %7s %3u \"%63[^\"]\"", kind, &n, name) == 3) {
		if (!strcmp(kind, "Switch"))
			return node_add(r, NODE_SWITCH, n, name);
		if (!strcmp(kind, "Hca") || !strcmp(kind, "Ca"))
			return node_add(r, NODE_CA, n, name);
	}
	return fail(r, "neither Switch N \"name\", nor Hca N \"name\", nor [port] \"name\"[port]: %.60s", line);
}

/* Either end may name the link, or both. */
static int link_join(struct reader *r, const struct link_line *l)
{
	struct fabric_node *peer = fabric_find(r->f, l->peer), *n = &r->f->nodes[l->node];
	struct fabric_port *a = &n->ports[l->port], *b;
	uint16_t at;

	r->line = l->line;
	if (!peer || !l->peer_port || l->peer_port > peer->port_count)
		return fail(r, "there is no port %u of \"%s\"", l->peer_port, l->peer);
	at = (uint16_t)(peer - r->f->nodes);
	b = &peer->ports[l->peer_port];
	if (a == b)
		return fail(r, "a link from a port to itself");
	if ((a->linked && (a->peer != at || a->peer_port != l->peer_port)) ||
	    (b->linked && (b->peer != l->node || b->peer_port != l->port)))
		return fail(r, "another link has one of its ports");
	port_begin(a, true);
	port_begin(b, true);
	a->linked = b->linked = true;
	a->peer = at;
	a->peer_port = l->peer_port;
	b->peer = l->node;
	b->peer_port = l->port;
	return 0;
}

static int lines_read(struct reader *r, const char *text, size_t len)
{
	const char *end = text + len;
	int err = 0;

	while (text < end && !err) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		size_t n = (size_t)((newline ? newline : end) - text);
		char line[LINE_BYTES];

		r->line++;
		if (n >= sizeof(line) || memchr(text, 0, n))
			return fail(r, "longer than %d characters, or no text", LINE_BYTES - 1);
		memcpy(line, text, n);
		line[n] = 0;
		err = line_read(r, line);
		text += n + 1;
	}
	return err;
}

int fabric_read(struct fabric *f, const char *text, size_t len, char *why, size_t why_bytes)
{
	struct reader r = {.f = f, .why = why, .why_bytes = why_bytes};
	int err;

	*f = (struct fabric){.nodes = calloc(FABRIC_NODES_MAX, sizeof(*f->nodes))};
	if (!f->nodes)
		return no_memory(&r);
	err = lines_read(&r, text, len);
	for (size_t i = 0; i < r.link_count && !err; i++)
		err = link_join(&r, &r.links[i]);
	if (!err && !f->count)
		err = fail(&r, "there are no nodes");
	free(r.links);
	if (err)
		fabric_free(f);
	return err;
}

void fabric_free(struct fabric *f)
{
	for (uint16_t i = 0; i < f->count; i++) {
		free(f->nodes[i].ports);
		free(f->nodes[i].sl_to_vl);
		free(f->nodes[i].forwarding);
		free(f->nodes[i].groups);
	}
	free(f->nodes);
	*f = (struct fabric){0};
}

struct fabric_node *fabric_find(const struct fabric *f, const char *name)
{
	for (uint16_t i = 0; i < f->count; i++) {
		if (!strcmp(f->nodes[i].name, name))
			return &f->nodes[i];
	}
	return NULL;
}

uint8_t fabric_first_port(const struct fabric_node *n)
{
	for (uint8_t i = 1; i <= n->port_count; i++) {
		if (n->ports[i].linked)
			return i;
	}
	return 0;
}
