/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks a topology before any other code walks over it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/topology/topology.h"
#include "net/topology/topology_adjacent.h"

void topology_free(struct topology *t)
{
	free(t->nodes);
	free(t->links);
	*t = (struct topology){0};
}

bool topology_host(const struct topology *t, uint32_t number, uint32_t *host)
{
	uint32_t low = 0, high = t->host_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (t->nodes[middle].number < number)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == t->host_count || t->nodes[low].number != number)
		return false;
	*host = low;
	return true;
}

int topology_adjacent_init(struct topology_adjacent *a, const struct topology *t)
{
	a->first = calloc((size_t)t->node_count + 2, sizeof(*a->first));
	a->links = malloc(((size_t)t->link_count * 2 + 1) * sizeof(*a->links));
	if (!a->first || !a->links) {
		topology_adjacent_free(a);
		return -ENOMEM;
	}
	/* first[n + 2] counts, first[n + 1] then moves from the start of n's links to their end. */
	for (uint32_t i = 0; i < t->link_count; i++) {
		a->first[t->links[i].a + 2]++;
		a->first[t->links[i].b + 2]++;
	}
	for (uint32_t n = 0; n < t->node_count; n++)
		a->first[n + 2] += a->first[n + 1];
	for (uint32_t i = 0; i < t->link_count; i++) {
		a->links[a->first[t->links[i].a + 1]++] = i;
		a->links[a->first[t->links[i].b + 1]++] = i;
	}
	return 0;
}

void topology_adjacent_free(struct topology_adjacent *a)
{
	free(a->first);
	free(a->links);
	*a = (struct topology_adjacent){0};
}

static int check_links(const struct topology *t, struct text_error *err)
{
	for (uint32_t i = 0; i < t->link_count; i++) {
		const struct topology_link *l = &t->links[i];
		uint64_t n = i;

		if (l->a >= t->node_count || l->b >= t->node_count)
			return text_fail(err, 0, "link %u joins a node that does not exist", n);
		if (l->a == l->b)
			return text_fail(err, 0, "link %u joins node %u to itself", n, (uint64_t)t->nodes[l->a].number);
		if (l->rate_bps < TOPOLOGY_RATE_BPS_MIN || l->rate_bps > TOPOLOGY_RATE_BPS_MAX)
			return text_fail(err, 0, "link %u: rate %u bit/s; allowed are %u to %u", n, l->rate_bps,
					 (uint64_t)TOPOLOGY_RATE_BPS_MIN, (uint64_t)TOPOLOGY_RATE_BPS_MAX);
		if (l->delay_ps > TOPOLOGY_DELAY_PS_MAX)
			return text_fail(err, 0, "link %u: delay %u ps; allowed are 0 to %u", n, l->delay_ps,
					 (uint64_t)TOPOLOGY_DELAY_PS_MAX);
		if (l->loss_ppb > TOPOLOGY_LOSS_PPB_MAX)
			return text_fail(err, 0, "link %u: loss %u of 10^9; allowed are 0 to %u", n,
					 (uint64_t)l->loss_ppb, (uint64_t)TOPOLOGY_LOSS_PPB_MAX);
	}
	return 0;
}

static int compare_numbers(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static int check_numbers(const struct topology *t, struct text_error *err)
{
	uint32_t *numbers = malloc(t->node_count * sizeof(*numbers));
	int rc = 0;

	if (!numbers)
		return -ENOMEM;
	for (uint32_t i = 1; i < t->host_count && !rc; i++)
		if (t->nodes[i].number <= t->nodes[i - 1].number)
			rc = text_fail(err, 0, "host %u follows host %u; numbers must rise",
				       (uint64_t)t->nodes[i].number, (uint64_t)t->nodes[i - 1].number);
	for (uint32_t i = 0; i < t->node_count; i++)
		numbers[i] = t->nodes[i].number;
	qsort(numbers, t->node_count, sizeof(*numbers), compare_numbers);
	for (uint32_t i = 1; i < t->node_count && !rc; i++)
		if (numbers[i] == numbers[i - 1])
			rc = text_fail(err, 0, "two nodes have the number %u", (uint64_t)numbers[i]);
	free(numbers);
	return rc;
}

static bool is_host(const struct topology *t, uint32_t node)
{
	return node < t->host_count;
}

/*
 * Marks the switches reachable from `from`, a switch, by the value `mark`, and counts the hosts
 * that have a link to them: host_mark keeps a host from being counted twice.
 */
static uint32_t flood(const struct topology *t, const struct topology_adjacent *adj, uint32_t from, uint32_t mark,
		      uint32_t *marks, uint32_t *queue)
{
	uint32_t head = 0, tail = 0, hosts = 0;

	marks[from] = mark;
	queue[tail++] = from;
	while (head < tail) {
		uint32_t n = queue[head++];

		for (uint32_t i = adj->first[n]; i < adj->first[n + 1]; i++) {
			uint32_t other = topology_link_other(&t->links[adj->links[i]], n);

			if (marks[other] == mark)
				continue;
			marks[other] = mark;
			if (is_host(t, other))
				hosts++;
			else
				queue[tail++] = other;
		}
	}
	return hosts;
}

static int check_connected(const struct topology *t, struct text_error *err)
{
	struct topology_adjacent adj;
	uint32_t *marks, *queue, mark = 0;
	bool whole = false;
	int rc = topology_adjacent_init(&adj, t);

	if (rc)
		return rc;
	marks = calloc(t->node_count, sizeof(*marks));
	queue = malloc(t->node_count * sizeof(*queue));
	if (!marks || !queue) {
		rc = -ENOMEM;
		goto out;
	}
	for (uint32_t n = 0; n < t->node_count; n++)
		if (adj.first[n] == adj.first[n + 1]) {
			rc = text_fail(err, 0, "%s %u has no link", is_host(t, n) ? "host" : "switch",
				       (uint64_t)t->nodes[n].number);
			goto out;
		}
	for (uint32_t n = t->host_count; n < t->node_count && !whole; n++)
		if (!marks[n])
			whole = flood(t, &adj, n, ++mark, marks, queue) == t->host_count;
	if (t->node_count == 2 && t->host_count == 2)
		whole = true;
	if (!whole)
		rc = text_fail(err, 0,
			       "not connected: no set of linked switches reaches all hosts "
			       "(hosts do not forward)");
out:
	free(marks);
	free(queue);
	topology_adjacent_free(&adj);
	return rc;
}

int topology_check(const struct topology *t, struct text_error *err)
{
	int rc;

	if (t->node_count > TOPOLOGY_NODES_MAX)
		return text_fail(err, 0, "%u nodes; allowed are 2 to %u", (uint64_t)t->node_count,
				 (uint64_t)TOPOLOGY_NODES_MAX);
	if (t->host_count < 2 || t->host_count > t->node_count)
		return text_fail(err, 0, "%u hosts among %u nodes; at least 2 are needed", (uint64_t)t->host_count,
				 (uint64_t)t->node_count);
	if (t->link_count < 1 || t->link_count > TOPOLOGY_LINKS_MAX)
		return text_fail(err, 0, "%u links; allowed are 1 to %u", (uint64_t)t->link_count,
				 (uint64_t)TOPOLOGY_LINKS_MAX);
	rc = check_links(t, err);
	if (!rc)
		rc = check_numbers(t, err);
	if (!rc)
		rc = check_connected(t, err);
	return rc;
}

int topology_set_tiers(struct topology *t)
{
	struct topology_adjacent adj;
	uint32_t *queue, head = 0, tail = 0;
	int rc = topology_adjacent_init(&adj, t);

	if (rc)
		return rc;
	queue = malloc(((size_t)t->node_count + 1) * sizeof(*queue));
	if (!queue) {
		topology_adjacent_free(&adj);
		return -ENOMEM;
	}
	for (uint32_t n = 0; n < t->node_count; n++) {
		t->nodes[n].tier = is_host(t, n) ? 0 : UINT8_MAX;
		if (is_host(t, n))
			queue[tail++] = n;
	}
	while (head < tail) {
		uint32_t n = queue[head++];

		for (uint32_t i = adj.first[n]; i < adj.first[n + 1]; i++) {
			uint32_t other = topology_link_other(&t->links[adj.links[i]], n);

			/*
			 * In a row of more than 254 switches without hosts the others keep the last
			 * number.
			 */
			if (t->nodes[other].tier == UINT8_MAX && t->nodes[n].tier < UINT8_MAX - 1) {
				t->nodes[other].tier = (uint8_t)(t->nodes[n].tier + 1);
				queue[tail++] = other;
			}
		}
	}
	free(queue);
	topology_adjacent_free(&adj);
	return 0;
}
