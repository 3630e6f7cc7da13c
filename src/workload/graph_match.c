/* SPDX-License-Identifier: BSD-2-Clause */
/* An entry exists while a message or a receive waits, so the table is as large as what waits at a time. */
#include "workload/graph_match.h"

#include <stdlib.h>

#include "net/grown.h"

void match_free(struct match *m)
{
	free(m->buckets);
	free(m->entries);
	free(m->recvs);
	*m = (struct match){0};
}

static uint32_t bucket_of(const struct match_key *k, uint32_t count)
{
	uint64_t h = k->context * 0x9e3779b97f4a7c15u;

	h = (h ^ ((uint64_t)k->src << 32 | k->dst)) * 0xbf58476d1ce4e5b9u;
	h = (h ^ h >> 29 ^ k->tag) * 0x94d049bb133111ebu;
	return (uint32_t)(h >> 32) & (count - 1);
}

static bool is_key(const struct match_key *a, const struct match_key *b)
{
	return a->context == b->context && a->src == b->src && a->dst == b->dst && a->tag == b->tag;
}

static bool widen(struct match *m)
{
	uint32_t count = m->bucket_count ? 2 * m->bucket_count : 256;
	uint32_t *more = calloc(count, sizeof(*more));

	if (!more)
		return false;
	for (uint32_t i = 0; i < m->bucket_count; i++) {
		for (uint32_t e = m->buckets[i], next; e; e = next) {
			uint32_t b = bucket_of(&m->entries[e - 1].key, count);

			next = m->entries[e - 1].next;
			m->entries[e - 1].next = more[b];
			more[b] = e;
		}
	}
	free(m->buckets);
	m->buckets = more;
	m->bucket_count = count;
	return true;
}

/* The place that has the key's entry + 1; NULL: it has none. */
static uint32_t *find(struct match *m, const struct match_key *k)
{
	uint32_t *at;

	if (!m->bucket_count)
		return NULL;
	for (at = &m->buckets[bucket_of(k, m->bucket_count)]; *at; at = &m->entries[*at - 1].next) {
		if (is_key(&m->entries[*at - 1].key, k))
			return at;
	}
	return NULL;
}

static void drop(struct match *m, uint32_t *at)
{
	uint32_t e = *at;

	*at = m->entries[e - 1].next;
	m->entries[e - 1].next = m->entry_free;
	m->entry_free = e;
	m->used--;
}

/* An empty entry for a key that has none; NULL: no memory. */
static struct match_entry *insert(struct match *m, const struct match_key *k)
{
	struct match_entry *e;
	uint32_t number, b;

	if (m->used >= m->bucket_count && !widen(m))
		return NULL;
	if (!m->entry_free) {
		struct match_entry *more = grown(m->entries, m->entry_count, &m->entry_room, sizeof(*more));

		if (!more)
			return NULL;
		m->entries = more;
	}
	number = m->entry_free ? m->entry_free : ++m->entry_count;
	e = &m->entries[number - 1];
	if (number == m->entry_free)
		m->entry_free = e->next;
	b = bucket_of(k, m->bucket_count);
	*e = (struct match_entry){.key = *k, .next = m->buckets[b]};
	m->buckets[b] = number;
	m->used++;
	return e;
}

/* 0: no memory. */
static uint32_t take_recv(struct match *m)
{
	uint32_t number = m->recv_free;
	struct match_recv *more;

	if (number) {
		m->recv_free = m->recvs[number - 1].next;
		return number;
	}
	more = grown(m->recvs, m->recv_count, &m->recv_room, sizeof(*more));
	if (!more)
		return 0;
	m->recvs = more;
	return ++m->recv_count;
}

bool match_arrive(struct match *m, const struct match_key *k, bool *found, uint64_t *recv)
{
	uint32_t *at = find(m, k), r;
	struct match_entry *e = at ? &m->entries[*at - 1] : NULL;

	*found = e && e->first;
	if (!*found) {
		if (!e)
			e = insert(m, k);
		if (e)
			e->arrived++;
		return e;
	}
	r = e->first;
	*recv = m->recvs[r - 1].recv;
	e->first = m->recvs[r - 1].next;
	m->recvs[r - 1].next = m->recv_free;
	m->recv_free = r;
	if (!e->first)
		drop(m, at);
	return true;
}

bool match_receive(struct match *m, const struct match_key *k, uint64_t recv, bool *found)
{
	uint32_t *at = find(m, k), r;
	struct match_entry *e = at ? &m->entries[*at - 1] : NULL;

	*found = e && e->arrived;
	if (*found) {
		if (!--e->arrived)
			drop(m, at);
		return true;
	}
	r = take_recv(m);
	if (!r)
		return false;
	m->recvs[r - 1] = (struct match_recv){.recv = recv};
	if (!e)
		e = insert(m, k);
	if (!e) {
		m->recvs[r - 1].next = m->recv_free;
		m->recv_free = r;
		return false;
	}
	if (e->first)
		m->recvs[e->last - 1].next = r;
	else
		e->first = r;
	e->last = r;
	return true;
}
