/* SPDX-License-Identifier: BSD-2-Clause */
/* What a manager has set, as a file. Nodes are numbered as in a simulation: adapters from 0, then switches. */
#include "fabric_save.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"
#include "wire/path_record.h"

enum { SL_UNKNOWN = 0xff, QUERIES_A_TURN = 32, TURNS_TO_ANSWER = 50 };

struct fabric_save {
	struct fabric *fabric;
	const char *path;
	uint16_t *number; /* of each node */
	uint16_t *hosts;  /* nodes */
	uint16_t host_count, switch_count;
	uint8_t *sl; /* [source][destination] */
	size_t known, next;
	unsigned quiet; /* turns without an answer */
	unsigned asked; /* and not answered */
};

static struct fabric_port *port_of(const struct fabric *f, uint16_t node)
{
	return &f->nodes[node].ports[fabric_first_port(&f->nodes[node])];
}

static bool nodes_count(struct fabric_save *s)
{
	for (uint16_t i = 0; i < s->fabric->count; i++) {
		const struct fabric_node *n = &s->fabric->nodes[i];
		unsigned links = 0;

		for (uint8_t p = 1; p <= n->port_count; p++)
			links += n->ports[p].linked;
		if (n->type != NODE_SWITCH && links != 1) {
			complain("fabric: --save: adapter \"%s\" has %u links; a simulation's have 1", n->name, links);
			return false;
		}
		if (n->type != NODE_SWITCH) {
			s->hosts[s->host_count] = i;
			s->number[i] = s->host_count++;
		}
	}
	for (uint16_t i = 0; i < s->fabric->count; i++) {
		if (s->fabric->nodes[i].type == NODE_SWITCH)
			s->number[i] = (uint16_t)(s->host_count + s->switch_count++);
	}
	return true;
}

struct fabric_save *fabric_save_new(struct fabric *f, const char *path)
{
	struct fabric_save *s = calloc(1, sizeof(*s));

	if (!s)
		goto no_memory;
	s->fabric = f;
	s->path = path;
	s->number = calloc(f->count, sizeof(*s->number));
	s->hosts = calloc(f->count, sizeof(*s->hosts));
	if (!s->number || !s->hosts)
		goto no_memory;
	if (!nodes_count(s)) {
		fabric_save_free(s);
		return NULL;
	}
	s->sl = malloc((size_t)s->host_count * s->host_count + 1);
	if (!s->sl)
		goto no_memory;
	memset(s->sl, SL_UNKNOWN, (size_t)s->host_count * s->host_count);
	for (size_t i = 0; i < s->host_count; i++)
		s->sl[i * s->host_count + i] = 0;
	s->known = s->host_count;
	return s;
no_memory:
	complain("fabric: --save: out of memory");
	fabric_save_free(s);
	return NULL;
}

void fabric_save_free(struct fabric_save *s)
{
	if (!s)
		return;
	free(s->number);
	free(s->hosts);
	free(s->sl);
	free(s);
}

bool fabric_save_is_whole(const struct fabric_save *s)
{
	return s->known == (size_t)s->host_count * s->host_count;
}

static const struct fabric_node *manager_of(const struct fabric *f)
{
	for (uint16_t i = 0; i < f->count; i++) {
		if (f->nodes[i].is_sm)
			return &f->nodes[i];
	}
	return NULL;
}

static bool is_up(const struct fabric *f)
{
	for (uint16_t i = 0; i < f->count; i++) {
		for (uint8_t p = 1; p <= f->nodes[i].port_count; p++) {
			if (f->nodes[i].ports[p].linked && f->nodes[i].ports[p].info.state != PORT_ACTIVE)
				return false;
		}
	}
	return true;
}

/* What nobody has answered for a second is asked again: a manager answers once it has finished. */
static size_t next_pair(struct fabric_save *s)
{
	size_t pairs = (size_t)s->host_count * s->host_count;

	while (s->next < pairs && s->sl[s->next] != SL_UNKNOWN)
		s->next++;
	return s->next;
}

bool fabric_save_turn(struct fabric_save *s, struct fabric_mad *q)
{
	const struct fabric_node *sm = manager_of(s->fabric);
	size_t pairs = (size_t)s->host_count * s->host_count, at;

	if (!sm || !is_up(s->fabric) || fabric_save_is_whole(s))
		return false;
	if (s->asked >= QUERIES_A_TURN || next_pair(s) == pairs) {
		if (s->asked && ++s->quiet < TURNS_TO_ANSWER)
			return false;
		s->quiet = s->asked = 0;
		s->next = 0;
	}
	at = next_pair(s);
	if (at == pairs)
		return false;
	s->next++;
	s->asked++;
	*q = (struct fabric_mad){.node = (uint16_t)(sm - s->fabric->nodes), .dqp = GSI_QPN};
	q->slid = q->dlid = port_of(s->fabric, q->node)->info.lid;
	path_query_encode(q->bytes, (uint64_t)FABRIC_SAVE_TID << 48 | at,
			  port_of(s->fabric, s->hosts[at / s->host_count])->info.lid,
			  port_of(s->fabric, s->hosts[at % s->host_count])->info.lid);
	return true;
}

void fabric_save_answer(struct fabric_save *s, const uint8_t mad[MAD_LEN])
{
	uint64_t at = get_be64(mad + 8) & UINT64_C(0xffffffff);
	struct path_record r;

	s->asked -= s->asked > 0;
	if (at >= (uint64_t)s->host_count * s->host_count || s->sl[at] != SL_UNKNOWN || !path_record_decode(&r, mad))
		return;
	s->quiet = 0;
	s->sl[at] = r.sl;
	s->known++;
}

/* ---- the file ---- */

static void write_links(const struct fabric_save *s, FILE *f)
{
	for (uint16_t i = 0; i < s->fabric->count; i++) {
		for (uint8_t p = 1; p <= s->fabric->nodes[i].port_count; p++) {
			const struct fabric_port *port = &s->fabric->nodes[i].ports[p];

			if (port->linked && (port->peer > i || (port->peer == i && port->peer_port > p)))
				fprintf(f, "link %u %u %u %u\n", s->number[i], p, s->number[port->peer],
					port->peer_port);
		}
	}
}

static void write_forwarding(const struct fabric_save *s, FILE *f)
{
	for (uint16_t i = 0; i < s->fabric->count; i++) {
		const struct fabric_node *n = &s->fabric->nodes[i];

		if (n->type != NODE_SWITCH)
			continue;
		fprintf(f, "forward %u", s->number[i]);
		for (uint16_t h = 0; h < s->host_count; h++) {
			uint16_t lid = port_of(s->fabric, s->hosts[h])->info.lid;
			uint8_t port = lid <= n->info.linear_top ? n->forwarding[lid] : FABRIC_NONE;

			fprintf(f, port == FABRIC_NONE ? " -" : " %u", port);
		}
		fputc('\n', f);
	}
}

static bool is_identity(const uint8_t map[8])
{
	for (unsigned sl = 0; sl < 16; sl++) {
		if ((map[sl / 2] >> (sl % 2 ? 0 : 4) & 15) != sl % 8)
			return false;
	}
	return true;
}

/* Maps that are SL modulo 8 are left out. */
static void write_lanes(const struct fabric_save *s, FILE *f)
{
	for (uint16_t i = 0; i < s->fabric->count; i++) {
		const struct fabric_node *n = &s->fabric->nodes[i];
		unsigned ports = n->port_count + 1u;

		for (unsigned at = 0; at < ports * ports; at++) {
			unsigned in = at / ports, out = at % ports;
			const uint8_t *map = n->sl_to_vl[at];

			if (n->type == NODE_SWITCH && (!in || !out || !n->ports[in].linked || !n->ports[out].linked))
				continue;
			if ((n->type != NODE_SWITCH && at) || is_identity(map))
				continue;
			fprintf(f, "lanes %u %u %u", s->number[i], in, out);
			for (unsigned sl = 0; sl < 16; sl++)
				fprintf(f, " %u", map[sl / 2] >> (sl % 2 ? 0 : 4) & 15);
			fputc('\n', f);
		}
	}
}

/* Lanes above 7 carry nothing in a simulation, and an entry of weight 0 is skipped (IBTA 7.6.9.2). */
static unsigned entries(const uint8_t (*blocks)[SMP_DATA_LEN], FILE *f)
{
	unsigned n = 0;

	for (unsigned i = 0; i < 2 * SMP_DATA_LEN; i += 2) {
		const uint8_t *e = &blocks[i / SMP_DATA_LEN][i % SMP_DATA_LEN];

		if ((e[0] & 15) > 7 || !e[1])
			continue;
		if (f)
			fprintf(f, " %u %u", e[0] & 15, e[1]);
		n++;
	}
	return n;
}

static void write_arbitration_of(FILE *f, unsigned number, unsigned port, const struct fabric_port *p)
{
	const uint8_t(*low)[SMP_DATA_LEN] = &p->vl_arbitration[0], (*high)[SMP_DATA_LEN] = &p->vl_arbitration[2];

	if (!entries(low, NULL) && !entries(high, NULL))
		return;
	fprintf(f, "arbitrate %u %u %u %u", number, port, p->info.vl_high_limit, entries(high, NULL));
	entries(high, f);
	fprintf(f, " %u", entries(low, NULL));
	entries(low, f);
	fputc('\n', f);
}

/* opensm sets the tables with -Q alone. */
static void write_arbitration(const struct fabric_save *s, FILE *f)
{
	for (uint16_t i = 0; i < s->fabric->count; i++) {
		const struct fabric_node *n = &s->fabric->nodes[i];

		for (unsigned p = 1; p <= n->port_count; p++) {
			if (n->ports[p].linked)
				write_arbitration_of(f, s->number[i], n->type == NODE_SWITCH ? p : 0, &n->ports[p]);
		}
	}
}

static void write_levels(const struct fabric_save *s, FILE *f)
{
	for (uint16_t src = 0; src < s->host_count; src++) {
		fprintf(f, "levels %u", src);
		for (uint16_t dst = 0; dst < s->host_count; dst++)
			fprintf(f, " %u", s->sl[(size_t)src * s->host_count + dst]);
		fputc('\n', f);
	}
}

int fabric_save_write(const struct fabric_save *s)
{
	FILE *f = fopen(s->path, "we");

	if (!f)
		return complain("fabric: %s: %s", s->path, strerror(errno));
	fprintf(f,
		"# Forwarding tables, service levels and lanes of a subnet, by verbena fabric --save. Adapters and their LIDs:\n");
	for (uint16_t h = 0; h < s->host_count; h++)
		fprintf(f, "# %u \"%s\" LID %u\n", h, s->fabric->nodes[s->hosts[h]].name,
			port_of(s->fabric, s->hosts[h])->info.lid);
	fprintf(f, "subnet %u %u\n", s->host_count, s->switch_count);
	write_links(s, f);
	write_forwarding(s, f);
	write_lanes(s, f);
	write_levels(s, f);
	write_arbitration(s, f);
	if (ferror(f) | fclose(f))
		return complain("fabric: %s: cannot be written", s->path);
	return 0;
}
