/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The trace wraps a host from when its first traced flow begins; without a flow under way that costs a
 * call. A nic acts only within arrive, pull and timer, so the trace misses nothing, and the time is the
 * same when the call returns.
 */
#include "sim/cc_trace.h"

#include <stdlib.h>

struct traced {
	struct traced *next;
	const struct channel *channel;
	uint32_t flow;
	struct results_trace last[PATHS_MAX]; /* last record; cwnd_bytes 0: none yet */
};

struct watcher {
	struct cc_trace *trace;
	struct nic *nic;
	struct endpoint_ops ops; /* of the host */
	void *object;
	struct traced *flows; /* under way, newest first */
};

struct cc_trace {
	struct network *network;
	struct results *results;
	struct host **hosts;
	uint32_t host_count;
	struct watcher **watchers; /* by host; NULL: not wrapped */
};

static void look_at_path(struct cc_trace *t, struct traced *f, uint32_t path, const struct nic_congestion *c)
{
	struct results_trace *last = &f->last[path];

	if (last->cwnd_bytes == c->cwnd_bytes && last->rate_bps == c->rate_bps && last->signal == c->signal &&
	    last->target == c->target)
		return;
	*last = (struct results_trace){
		.time_ps = network_now_ps(t->network),
		.flow = f->flow,
		.path = path,
		.rate_bps = c->rate_bps,
		.cwnd_bytes = c->cwnd_bytes,
		.signal = c->signal,
		.target = c->target,
	};
	t->results->trace_signal = c->signal_name;
	t->results->trace_target = c->target_name;
	if (results_trace_add(t->results, last))
		t->results->trace_lost++;
}

static void look_at(const struct watcher *w, struct traced *f)
{
	struct nic_congestion c;

	for (uint32_t path = 0; path < PATHS_MAX && nic_qp_congestion(w->nic, channel_sender(f->channel), path, &c);
	     path++)
		look_at_path(w->trace, f, path, &c);
}

static void look(const struct watcher *w)
{
	for (struct traced *f = w->flows; f; f = f->next)
		look_at(w, f);
}

static struct packet *pull(void *watcher, uint32_t allowed_classes, uint64_t now_ps)
{
	struct watcher *w = watcher;
	struct packet *p = w->ops.pull(w->object, allowed_classes, now_ps);

	look(w);
	return p;
}

static void arrive(void *watcher, struct packet *p, uint64_t now_ps)
{
	struct watcher *w = watcher;

	w->ops.arrive(w->object, p, now_ps);
	look(w);
}

static void timer(void *watcher, uint64_t now_ps)
{
	struct watcher *w = watcher;

	w->ops.timer(w->object, now_ps);
	look(w);
}

static struct watcher *stand_before(struct cc_trace *t, uint32_t host)
{
	static const struct endpoint_ops ops = {.pull = pull, .arrive = arrive, .timer = timer};
	struct watcher *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->trace = t;
	w->nic = host_nic(t->hosts[host]);
	w->ops = network_endpoint(t->network, host, &w->object);
	network_attach(t->network, host, &ops, w);
	t->watchers[host] = w;
	return w;
}

struct cc_trace *cc_trace_create(struct network *network, struct host **hosts, uint32_t host_count,
				 struct results *results)
{
	struct cc_trace *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	*t = (struct cc_trace){.network = network, .results = results, .hosts = hosts, .host_count = host_count};
	t->watchers = calloc(host_count, sizeof(struct watcher *));
	if (t->watchers)
		return t;
	free(t);
	return NULL;
}

void cc_trace_destroy(struct cc_trace *t)
{
	if (!t)
		return;
	for (uint32_t i = 0; i < t->host_count; i++) {
		struct watcher *w = t->watchers[i];

		if (!w)
			continue;
		network_attach(t->network, i, &w->ops, w->object);
		while (w->flows) {
			struct traced *f = w->flows;

			w->flows = f->next;
			free(f);
		}
		free(w);
	}
	free(t->watchers);
	free(t);
}

void cc_trace_begin(struct cc_trace *t, uint32_t flow, uint32_t src, const struct channel *c)
{
	struct watcher *w = t->watchers[src] ? t->watchers[src] : stand_before(t, src);
	struct traced *f = w ? calloc(1, sizeof(*f)) : NULL;

	if (!f)
		return;
	f->flow = flow;
	f->channel = c;
	f->next = w->flows;
	w->flows = f;
	look_at(w, f);
}

void cc_trace_end(struct cc_trace *t, uint32_t flow, uint32_t src)
{
	struct watcher *w = t->watchers[src];

	for (struct traced **at = w ? &w->flows : NULL; at && *at; at = &(*at)->next) {
		struct traced *f = *at;

		if (f->flow != flow)
			continue;
		look_at(w, f);
		*at = f->next;
		free(f);
		return;
	}
}
