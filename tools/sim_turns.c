/* SPDX-License-Identifier: BSD-2-Clause */
/* Rounds: programs run until all wait, what they have sent enters the network, and time passes until one is due. */
#include "sim_turns.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/siphash.h"
#include "io/clock.h"
#include "lockstep/lockstep.h"
#include "sim.h"
#include "sim/outside.h"
#include "sim_process.h"
#include "sim_relay.h"

#define PS_A_NS UINT64_C(1000)

enum {
	LOOK_MS = 1000,  /* at interrupts and at programs that do not wait */
	GRACE_MS = 2000, /* for what wakes a program from outside of simulated time */
	TCP_DELAY_NS = 50000
};

enum state { TO_COME, RUNS, WAITS, ENDED };

struct turn {
	struct turns_program *program;
	enum state state;
	bool joined;       /* its engine has */
	bool due;          /* gets a turn */
	bool timer_stale;  /* the network's has to be set again */
	int fd, pid_fd;    /* -1: closed */
	uint64_t until_ns; /* what it waits for; of one to come, when it starts */
	uint64_t timer_ns; /* of the network, as programs see time */
	uint64_t begun_ns; /* when it last began to run, by the host's clock */
	/* What it has sent in this round: messages, one behind the other. */
	uint8_t *sent;
	size_t sent_bytes, sent_room;
};

struct turns {
	struct turn *turns;
	size_t count;
	uint32_t hosts;
	struct turn **of_host; /* NULL: no program */
	struct lockstep_page *page;
	int page_fd;
	struct outside *network;
	struct relay *relay;
	struct pollfd *polls;
	uint64_t seed, patience_s, given;
	char *why; /* TURNS_WHY_BYTES */
	enum turns_end end;
	bool over; /* end is known */
};

__attribute__((format(printf, 3, 4))) static void end(struct turns *t, enum turns_end how, const char *format, ...)
{
	va_list ap;

	if (t->over)
		return;
	t->over = true;
	t->end = how;
	va_start(ap, format);
	vsnprintf(t->why, TURNS_WHY_BYTES, format, ap);
	va_end(ap);
}

static void end_of(struct turns *t, const struct turn *p, const char *what)
{
	end(t, TURNS_FAILED, "host %" PRIu32 ": '%s' (pid %d) %s", p->program->host, p->program->text,
	    (int)p->program->pid, what);
}

/* What programs see. */
static uint64_t time_ns(const struct turns *t)
{
	return LOCKSTEP_START_NS + outside_now_ps(t->network) / PS_A_NS;
}

/* ---- the network tells ---- */

static void arrived(void *turns, uint32_t host, const struct pkt *pkt)
{
	struct lockstep_head head = {
		.kind = LOCKSTEP_PACKET, .bytes = pkt->len, .flow = *pkt->flow, .ip_id = pkt->ip_id};
	struct turns *t = turns;
	struct turn *p = t->of_host[host];

	/* A program that has ended, or whose engine is not there yet, hears nothing. */
	if (!p || !p->joined || p->state != WAITS)
		return;
	p->due = true;
	head.flow.neighbour = 0;
	lockstep_send(p->fd, &head, pkt->data); /* if it is gone, its end is seen soon */
}

static void woken(void *turns, uint32_t host)
{
	struct turns *t = turns;
	struct turn *p = host < t->hosts ? t->of_host[host] : NULL;

	if (p && p->state == WAITS)
		p->due = true;
}

/* By the network alone: bytes of TCP wake whom they are for. */
static void timed(void *turns, uint32_t host)
{
	struct turns *t = turns;
	struct turn *p = t->of_host[host];

	if (!p)
		return;
	p->timer_stale = true;
	if (p->until_ns > time_ns(t))
		return;
	if (p->state == TO_COME)
		p->due = true;
	else
		woken(t, host);
}

static bool host_of(void *turns, const uint8_t gid[16], uint32_t *host)
{
	return lockstep_host(gid, host);
}

/* ---- programs tell ---- */

static uint64_t seed_of(const struct turns *t, const struct turn *p)
{
	uint8_t key[16] = {0};

	memcpy(key, &t->seed, sizeof(t->seed));
	return siphash_u64(key, p->program->host);
}

static void welcome(struct turns *t, struct turn *p)
{
	struct lockstep_head head = {.kind = LOCKSTEP_WELCOME, .value = seed_of(t, p)};

	if (p->joined) {
		end_of(t, p, "has two processes that open the device, and one may");
		return;
	}
	p->joined = true;
	lockstep_send(p->fd, &head, NULL);
}

static void keep(struct turns *t, struct turn *p, const struct lockstep_message *m)
{
	size_t bytes = sizeof(m->head) + m->head.bytes;

	if (p->sent_bytes + bytes > p->sent_room) {
		size_t room = 2 * (p->sent_bytes + bytes);
		uint8_t *more = realloc(p->sent, room);

		if (!more) {
			end(t, TURNS_FAILED, "out of memory");
			return;
		}
		p->sent = more;
		p->sent_room = room;
	}
	memcpy(p->sent + p->sent_bytes, m, bytes);
	p->sent_bytes += bytes;
}

static void hear(struct turns *t, struct turn *p, const struct lockstep_message *m)
{
	if (!p->joined && m->head.kind != LOCKSTEP_JOIN) {
		end_of(t, p, "has broken the rules of simulated time");
		return;
	}
	switch (m->head.kind) {
	case LOCKSTEP_JOIN: welcome(t, p); break;
	case LOCKSTEP_PACKET:
		keep(t, p, m);
		p->due |= p->state == WAITS;
		break;
	case LOCKSTEP_WAIT:
		p->state = WAITS;
		p->due = false;
		p->until_ns = m->head.value;
		p->timer_stale = true;
		break;
	case LOCKSTEP_BACK: p->due |= p->state == WAITS; break;
	default: end_of(t, p, "has broken the rules of simulated time");
	}
}

/* Takes all that there is. */
static void hear_all(struct turns *t, struct turn *p)
{
	struct lockstep_message m;
	int rc;

	while (p->fd >= 0 && (rc = lockstep_receive(p->fd, &m, false)) != -EAGAIN && !t->over) {
		if (rc == 1) {
			hear(t, p, &m);
		} else if (rc == -EBADMSG) {
			end_of(t, p, "has broken the rules of simulated time");
		} else {
			close(p->fd);
			p->fd = -1;
		}
	}
}

static void note_end(struct turns *t, struct turn *p)
{
	char text[96];

	hear_all(t, p);
	/* Processes that it leaves behind have no part in the run. */
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
	waitpid(p->program->pid, &p->program->status, 0);
	p->state = ENDED;
	p->program->ended = true;
	p->program->ended_ps = outside_now_ps(t->network);
	close(p->pid_fd);
	p->pid_fd = -1;
	p->timer_stale = true;
	p->until_ns = UINT64_MAX;
	if (!WIFSIGNALED(p->program->status))
		return;
	snprintf(text, sizeof(text), "was ended by signal %d (%s)", WTERMSIG(p->program->status),
		 strsignal(WTERMSIG(p->program->status)));
	end_of(t, p, text);
}

static void judge_runner(struct turns *t, const struct turn *p, uint64_t now_ns)
{
	char text[TURNS_WHY_BYTES / 2], waits[TURNS_WHY_BYTES / 4];

	if (p->state != RUNS || now_ns - p->begun_ns < t->patience_s * 1000000000)
		return;
	process_waits_text(p->program->pid, waits, sizeof(waits));
	snprintf(text, sizeof(text),
		 "%s for %" PRIu64 " s (--patience) without waiting for anything that simulated time brings: %s",
		 p->joined ? "has run" : "has not opened the RDMA device", t->patience_s, waits);
	end_of(t, p, text);
}

/* Waits for news of programs, so long at most. False: there were none. */
static bool listen_to_all(struct turns *t, int ms)
{
	uint64_t now_ns;
	int n;

	for (size_t i = 0; i < t->count; i++) {
		t->polls[2 * i] = (struct pollfd){.fd = t->turns[i].fd, .events = POLLIN};
		t->polls[2 * i + 1] = (struct pollfd){.fd = t->turns[i].pid_fd, .events = POLLIN};
	}
	n = poll(t->polls, 2 * t->count, ms);
	if (sim_interrupted())
		end(t, TURNS_INTERRUPTED, "interrupted");
	for (size_t i = 0; i < t->count && n > 0 && !t->over; i++) {
		if (t->polls[2 * i].revents)
			hear_all(t, &t->turns[i]);
		if (t->polls[2 * i + 1].revents)
			note_end(t, &t->turns[i]);
	}
	now_ns = clock_now_ns();
	for (size_t i = 0; i < t->count; i++)
		judge_runner(t, &t->turns[i], now_ns);
	return n > 0;
}

/* ---- rounds ---- */

static bool is_any(const struct turns *t, enum state state)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->turns[i].state == state)
			return true;
	return false;
}

static bool is_any_due(const struct turns *t)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->turns[i].due)
			return true;
	return false;
}

static void send_from(struct turns *t, struct turn *p)
{
	struct lockstep_message m;

	for (size_t at = 0; at < p->sent_bytes; at += sizeof(m.head) + m.head.bytes) {
		struct pkt pkt;

		memcpy(&m.head, p->sent + at, sizeof(m.head));
		pkt = (struct pkt){.data = p->sent + at + sizeof(m.head),
				   .flow = &m.head.flow,
				   .len = m.head.bytes,
				   .ip_id = m.head.ip_id,
				   .train = 1};
		outside_send(t->network, p->program->host, &pkt);
	}
	p->sent_bytes = 0;
}

/* A time of programs as the network's; UINT64_MAX stays. */
static uint64_t as_ps(uint64_t ns)
{
	if (ns < LOCKSTEP_START_NS)
		return 0;
	return ns - LOCKSTEP_START_NS > UINT64_MAX / 2 / PS_A_NS ? UINT64_MAX : (ns - LOCKSTEP_START_NS) * PS_A_NS;
}

/* The next event of TCP has its time by the timer of its host. */
static void set_timers(struct turns *t)
{
	uint32_t tcp_host = UINT32_MAX;
	uint64_t tcp_ns = relay_next_ns(t->relay, &tcp_host);

	for (size_t i = 0; i < t->count; i++) {
		struct turn *p = &t->turns[i];
		uint64_t at_ns = p->program->host == tcp_host && tcp_ns < p->until_ns ? tcp_ns : p->until_ns;

		if (!p->timer_stale && at_ns == p->timer_ns)
			continue;
		p->timer_stale = false;
		p->timer_ns = at_ns;
		outside_set_timer(t->network, p->program->host, as_ps(at_ns));
	}
}

static void start(struct turns *t, struct turn *p)
{
	pid_t pid = process_start(p->program, (size_t)(p - t->turns), t->count, t->page_fd, &p->fd);

	p->state = RUNS;
	p->until_ns = UINT64_MAX;
	p->timer_stale = true;
	if (pid > 0) {
		p->program->pid = pid;
		p->begun_ns = clock_now_ns();
		p->pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	}
	if (pid < 0 || p->pid_fd < 0)
		end(t, TURNS_FAILED, "cannot start '%s': %s", p->program->text, strerror(pid < 0 ? -pid : errno));
}

static void give_turns(struct turns *t)
{
	struct lockstep_head head = {.kind = LOCKSTEP_RUN};

	for (size_t i = 0; i < t->count; i++) {
		struct turn *p = &t->turns[i];

		if (!p->due)
			continue;
		p->due = false;
		if (p->state == TO_COME)
			start(t, p);
		if (p->state != WAITS)
			continue;
		p->state = RUNS;
		p->begun_ns = clock_now_ns();
		t->given++;
		lockstep_send(p->fd, &head, NULL);
	}
}

static void say_stuck(struct turns *t)
{
	char text[TURNS_WHY_BYTES], waits[1024];
	size_t n = 0;

	for (size_t i = 0; i < t->count && n < sizeof(text); i++) {
		const struct turns_program *p = t->turns[i].program;

		if (t->turns[i].state != WAITS)
			continue;
		process_waits_text(p->pid, waits, sizeof(waits));
		n += (size_t)snprintf(text + n, sizeof(text) - n, "\n  host %" PRIu32 ": '%s' (pid %d): %s", p->host,
				      p->text, (int)p->pid, waits);
	}
	end(t, TURNS_STUCK, "every program waits, and nothing will happen any more after %.9f s%s",
	    (double)outside_now_ps(t->network) / 1e12, text);
}

static void let_time_pass(struct turns *t)
{
	char why[512];

	switch (outside_run(t->network, why, sizeof(why))) {
	case OUTSIDE_TOLD:
		atomic_store_explicit(&t->page->now_ns, time_ns(t), memory_order_release);
		if (!relay_deliver(t->relay, time_ns(t)))
			end(t, TURNS_FAILED, "out of memory");
		break;
	case OUTSIDE_IDLE:
		if (!listen_to_all(t, GRACE_MS))
			say_stuck(t);
		break;
	case OUTSIDE_FAILED: end(t, TURNS_FAILED, "%s", why);
	}
}

static void run(struct turns *t)
{
	while (!t->over) {
		while (is_any(t, RUNS) && !t->over)
			listen_to_all(t, LOOK_MS);
		if (t->over)
			break;
		if (!is_any(t, WAITS) && !is_any(t, TO_COME))
			return;
		for (size_t i = 0; i < t->count; i++)
			send_from(t, &t->turns[i]);
		if (!relay_collect(t->relay, time_ns(t)))
			end(t, TURNS_FAILED, "out of memory");
		set_timers(t);
		if (!is_any_due(t))
			let_time_pass(t);
		give_turns(t);
	}
}

/* ---- life ---- */

static bool make_page(struct turns *t)
{
	t->page_fd = (int)syscall(SYS_memfd_create, "verbena-time", 1u);
	if (t->page_fd < 0 || ftruncate(t->page_fd, sizeof(*t->page)))
		return false;
	t->page = mmap(NULL, sizeof(*t->page), PROT_READ | PROT_WRITE, MAP_SHARED, t->page_fd, 0);
	if (t->page == MAP_FAILED) {
		t->page = NULL;
		return false;
	}
	t->page->magic = LOCKSTEP_MAGIC;
	t->page->now_ns = LOCKSTEP_START_NS;
	return getrandom(&t->page->run, sizeof(t->page->run), 0) == sizeof(t->page->run);
}

static bool make_turns(struct turns *t, struct turns_program *programs)
{
	t->hosts = outside_hosts(t->network);
	t->turns = calloc(t->count, sizeof(*t->turns));
	t->of_host = calloc(t->hosts, sizeof(*t->of_host));
	t->polls = calloc(2 * t->count, sizeof(*t->polls));
	if (!t->turns || !t->of_host || !t->polls || !make_page(t)) {
		end(t, TURNS_REFUSED, "out of memory");
		return false;
	}
	for (size_t i = 0; i < t->count; i++) {
		struct turns_program *p = &programs[i];

		t->turns[i] = (struct turn){.program = p,
					    .fd = -1,
					    .pid_fd = -1,
					    .due = !p->start_ps,
					    .timer_stale = true,
					    .until_ns = LOCKSTEP_START_NS + (p->start_ps + PS_A_NS - 1) / PS_A_NS};
		if (p->host >= t->hosts) {
			end(t, TURNS_REFUSED, "%s%s%s: there is no host %" PRIu32 ", only 0 to %" PRIu32,
			    p->name ? "program." : "--run", p->name ? p->name : "", p->name ? ".hosts" : "", p->host,
			    t->hosts - 1);
			return false;
		}
		t->of_host[p->host] = &t->turns[i];
	}
	return true;
}

static bool make_relay(struct turns *t, const struct relay_sink *sink)
{
	t->relay = relay_open(t->page->run, TCP_DELAY_NS, sink);
	if (!t->relay)
		end(t, TURNS_REFUSED, "cannot make sockets: %s", strerror(errno));
	return t->relay;
}

static void clean_up(struct turns *t)
{
	for (size_t i = 0; t->turns && i < t->count; i++) {
		if (t->turns[i].fd >= 0)
			close(t->turns[i].fd);
		if (t->turns[i].pid_fd >= 0)
			close(t->turns[i].pid_fd);
		free(t->turns[i].sent);
	}
	if (t->page)
		munmap(t->page, sizeof(*t->page));
	if (t->page_fd >= 0)
		close(t->page_fd);
	relay_close(t->relay);
	free(t->turns);
	free(t->of_host);
	free(t->polls);
	outside_destroy(t->network);
}

enum turns_end turns_run(const struct scenario *s, struct turns_program *programs, size_t count, uint64_t patience_s,
			 struct turns_result *r, char why[TURNS_WHY_BYTES])
{
	struct turns t = {.count = count, .page_fd = -1, .seed = s->run.seed, .patience_s = patience_s, .why = why};
	struct outside_sink sink = {arrived, timed, host_of, &t};
	struct relay_sink relay_sink = {woken, &t};
	struct outside_counts n;

	t.network = outside_create(s, &sink, why, TURNS_WHY_BYTES);
	if (!t.network)
		return TURNS_REFUSED;
	if (make_turns(&t, programs) && make_relay(&t, &relay_sink)) {
		process_adopt();
		give_turns(&t);
		run(&t);
		process_end_all(programs, count);
	}
	outside_count(t.network, &n);
	*r = (struct turns_result){outside_now_ps(t.network), n.packets, n.dropped, n.refused, t.given};
	clean_up(&t);
	return t.over ? t.end : TURNS_ENDED;
}
