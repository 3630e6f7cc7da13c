/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process's engines, one a device: how they start, what a fork does to them, and when they end (end.c).
 *
 * Fork: the child gets copies of the parent's descriptors but not its thread. Verbs objects do not
 * survive a fork, so the child's copies of the engines are closed (calls into them do nothing) and
 * forgotten, and the child's engine_get() starts its own.
 */
#include "engine/state.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cm/registry.h"
#include "engine/env_simulated.h"
#include "engine/faulting.h"
#include "engine/limiting.h"
#include "engine/map_file.h"
#include "engine/neighbours.h"
#include "engine/port.h"
#include "io/pcap.h"
#include "io/raw/raw.h"
#include "io/shm/shm.h"
#include "io/tcp/tcp.h"
#include "io/udp/udp.h"
#include "io/uncancelled.h"
#include "space/space.h"

static_assert((int)SHM_SLOTS == (int)GROUP_SLOTS && (int)SHM_QPN_SHIFT == (int)GROUP_SLOT_SHIFT &&
		      (int)SHM_ADDRESSES_MAX == (int)NIC_GIDS_MAX,
	      "rings are those of members, and know every address");
static_assert((int)PATHS_MAX == (int)UDP_PATHS_MAX, "a nic knows every path of its back end");
static_assert((int)IO_GIDS_MAX == (int)NIC_GIDS_MAX, "a back end knows every GID");

enum {
	WHY_BYTES = 512,
	LARGE_MTU_MIN = 62 << 10, /* what veroce_config.large offers, with all headers */
	WINDOW_BYTES_MIN = 64 << 10,
	WINDOW_BYTES_MAX = 1 << 20,
	/*
	 * A peer is a process and may wait for a processor for milliseconds, which is neither loss nor
	 * congestion.
	 */
	RTO_NS_MIN = 5000000,
	PTO_NS_MIN = 2000000,
	CC_TARGET_NS = 4000000,
	/*
	 * A window that was cut for such a wait grows again by a packet a round trip, which on a path of 50 ms is
	 * slower than waits come. A router of such a path has room for about a round trip; this is a part of that.
	 */
	CC_TARGET_RTT_PART = 4,
	/*
	 * A wake-up costs some microseconds, and a packet that leaves alone costs several times as much as
	 * in a train. Half of this slack leaves at once: 62 KB at 10 Gbit/s, a train, for which a switch has
	 * room. A thread may wake that late, as threads do, without losing any rate.
	 */
	PACE_SLACK_NS = 100000,
	/* Preamble, Ethernet header, FCS and gap; IPv4 and UDP. IPv6's 20 bytes more do not matter. */
	WIRE_OVERHEAD_BYTES = 8 + 14 + 4 + 12 + 20 + 8,
	RCVBUF_WINDOWS = 4, /* a small packet counts twice its size or more in a receive buffer */
	SPARE_FDS = 12,     /* descriptors that paths leave to the program */
	HALF_OPEN_MAX = 1024,
	HALF_OPEN_PART = 4, /* of the descriptors that there may be */
	EXIT_TRIES = 1000,
	WALL_READINGS = 8
};

static pthread_mutex_t the_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct engine *engines[ENGINE_DEVICES_MAX]; /* by device; NULL: not started */
static engine_env_fn *env_given;                   /* NULL: the host's */

static bool pcap_ip_id(void *ctx, const struct pkt *p, uint16_t *id)
{
	struct engine *e = ctx;

	return nic_ip_id(e->loop.nic, p, id);
}

static void pcap_report(void *ctx, const char *sentence)
{
	fprintf(stderr, "verbena: %s\n", sentence);
}

static uint64_t pcap_wall_ns(void *ctx)
{
	const struct engine *e = ctx;

	return e->env->wall_ns(e->env);
}

static size_t pcap_head(void *ctx, uint8_t *out, const struct pkt *p)
{
	const struct engine *e = ctx;

	return raw_head(e->raw, out, p);
}

static uint64_t now_of(const void *engine)
{
	return engine_now_ns(engine);
}

static struct io_clock clock_of(const struct engine *e)
{
	return (struct io_clock){.now_ns = now_of, .ctx = e};
}

static bool has_streams(const struct engine *e)
{
	return e->config.transport.protocol == PROTOCOL_IWARP;
}

static bool slot_lives(void *group, uint32_t slot)
{
	return group_lives(group, slot);
}

/* Without, packets go through the sockets: it is no reason to fail. */
static struct io *shm_start(struct engine *e, struct io *lower)
{
	struct shm_config c = {.slot = e->loop.slot,
			       .bytes_max = e->config.shm_bytes ? e->config.shm_bytes : SHM_BYTES_AUTO,
			       .counters = &e->loop.page->io,
			       .lives = neighbours_reader_lives,
			       .lives_ctx = e->group};

	c.address_count = port_addresses(e, c.addresses);
	return shm_open_io(&e->loop.shm, lower, &c) < 0 ? lower : e->loop.shm;
}

/* Fault injection and capture, as the settings say, around io, which is *taken*: it is closed if one of them fails. */
static int wrappers_start(struct engine *e, struct io *io, char *why, size_t why_bytes)
{
	struct pcap_config pcap = {
		.counters = &e->loop.page->io,
		.ip_id = pcap_ip_id,
		.head = e->raw ? pcap_head : NULL,
		.streams = has_streams(e),
		.report = pcap_report,
		.wall_ns = pcap_wall_ns,
		.ctx = e,
	};
	int rc = faulting_wrap(e, &io, why, why_bytes);

	if (!rc && e->config.pcap[0]) {
		char reason[256], file[sizeof(e->config.pcap) + 16];
		int n = snprintf(file, sizeof(file), "%s", e->config.pcap);

		/* No two devices write to one file. */
		if (e->device)
			snprintf(file + n, sizeof(file) - (size_t)n, ".%u", e->device);
		pcap.file = file;

		rc = pcap_io_open(&io, io, &pcap, reason, sizeof(reason));
		if (rc)
			snprintf(why, why_bytes, "VERBENA_PCAP: %s", reason);
	}
	e->may_cancel = !e->udp || e->config.pcap[0];
	if (rc)
		io_close(io);
	else
		e->loop.io = io;
	return rc;
}

static int udp_io_start(struct engine *e, struct udp_config *udp, char *why, size_t why_bytes)
{
	struct io *io;
	int rc = udp_open(&io, udp, why, why_bytes);

	if (rc)
		return rc;
	e->udp = io;
	engine_note_paths(e);
	engine_note_gids(e);
	e->rcvbuf_bytes = udp_rcvbuf_bytes(io);
	rc = mcast_open(&io, io, (uint16_t)e->config.transport.rocev2.port, &e->loop.page->io);
	if (rc) {
		snprintf(why, why_bytes, "cannot make a descriptor for multicast groups: %s", strerror(-rc));
		io_close(io);
		return rc;
	}
	e->mcast = io;
	return wrappers_start(e, config_has_shm(&e->config) ? shm_start(e, io) : io, why, why_bytes);
}

/*
 * The window of one queue pair where the user set none: the peer's receive buffer should hold it,
 * and a peer mostly has the same buffer as we. Every overflow is expensive for go-back-N.
 */
static uint32_t window_bytes(const struct engine *e)
{
	size_t share = e->rcvbuf_bytes / RCVBUF_WINDOWS;

	if (e->config.transport.window_bytes)
		return e->config.transport.window_bytes;
	return share < WINDOW_BYTES_MIN   ? WINDOW_BYTES_MIN
	       : share > WINDOW_BYTES_MAX ? WINDOW_BYTES_MAX
					  : (uint32_t)share;
}

/* The rate of the fastest interface; congestion control finds slower ones. 0: unknown. */
uint64_t engine_line_rate_bps(const struct engine *e)
{
	if (e->config.transport.cc.line_rate_bps)
		return e->config.transport.cc.line_rate_bps;
	return e->gids.port.speed_bps;
}

static void cc_start(const struct engine *e, struct transport_config *c)
{
	const struct cc_setting *s = &e->config.cc;

	c->veroce.cc = s->given && s->params.algorithm == CC_NONE ? VEROCE_CC_NONE : VEROCE_CC_SWIFT;
	c->cc.target_ns = cc_setting_has_target(s) ? 0 : CC_TARGET_NS;
	c->cc.target_rtt_part = CC_TARGET_RTT_PART;
	/* Nobody is held to a speed that a driver makes up, unless the user sets congestion control up for it. */
	c->cc.line_rate_bps =
		s->given || !e->gids.port.made_up ? engine_line_rate_bps(e) : e->config.transport.cc.line_rate_bps;
	c->cc.pace_slack_ns = PACE_SLACK_NS;
	c->cc.wire_overhead_bytes = WIRE_OVERHEAD_BYTES;
	if (s->given)
		c->cc.params = &s->params;
}

/* The user's settings, and what only the engine knows. */
static void transport_start(const struct engine *e, struct transport_config *c)
{
	*c = e->config.transport;
	c->train_max = (uint16_t)io_train_max(e->loop.io);
	c->paths = e->paths;
	memcpy(c->sport_ipv4, e->sport_ipv4, sizeof(c->sport_ipv4));
	memcpy(c->sport_ipv6, e->sport_ipv6, sizeof(c->sport_ipv6));
	c->window_bytes = window_bytes(e);
	/* Packets between processes of this host that find no way through memory go by UDP, over the loopback
	 * interface. */
	c->veroce.large = config_has_large(&e->config) && e->gids.loopback_mtu >= LARGE_MTU_MIN;
	c->veroce.rto_ns_min = RTO_NS_MIN;
	c->veroce.pto_ns_min = PTO_NS_MIN;
	cc_start(e, c);
}

static bool draw(struct engine *e, void *to, size_t bytes)
{
	return e->env->draw ? e->env->draw(e->env, to, bytes) : getrandom(to, bytes, 0) == (ssize_t)bytes;
}

static int nic_start(struct engine *e, char *why, size_t why_bytes)
{
	struct nic_config *c = space_get(sizeof(*c));

	if (c) {
		c->alloc = space_alloc;
		c->own = &space_own;
		c->qpn_slot = e->loop.slot;
		transport_start(e, &c->transport);
		memcpy(c->gids, e->gids.gids, sizeof(c->gids));
		c->gid_count = e->gids.count;
		c->gid_map = map_of(e->loop.map);
		memcpy(c->pkeys, e->config.pkeys, sizeof(c->pkeys));
		while (c->pkey_count < NIC_PKEYS_MAX && c->pkeys[c->pkey_count])
			c->pkey_count++;
		if (!draw(e, c->secret, sizeof(c->secret))) {
			snprintf(why, why_bytes, "no random numbers from the kernel: %s", strerror(errno));
			space_put(c, sizeof(*c));
			return -EIO;
		}
		e->loop.nic = nic_create(c);
		explicit_bzero(c, sizeof(*c));
		space_put(c, sizeof(*c));
	}
	if (!e->loop.nic) {
		snprintf(why, why_bytes, "out of memory");
		return -ENOMEM;
	}
	if (e->loop.shm)
		neighbours_begin(&e->loop);
	return 0;
}

/* Where the host lets ports be drawn from. */
static void local_ports(uint16_t *first, uint16_t *last)
{
	FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
	unsigned a, b;

	*first = 32768;
	*last = 60999;
	if (!f)
		return;
	if (fscanf(f, "%u %u", &a, &b) == 2 && a && a <= b && b <= UINT16_MAX) {
		*first = (uint16_t)a;
		*last = (uint16_t)b;
	}
	fclose(f);
}

/* A flood of clients that say nothing leaves the program the most of its descriptors. */
static uint32_t half_open_max(void)
{
	struct rlimit limit = {0};

	getrlimit(RLIMIT_NOFILE, &limit);
	return limit.rlim_cur / HALF_OPEN_PART < HALF_OPEN_MAX ? (uint32_t)limit.rlim_cur / HALF_OPEN_PART + 1
							       : HALF_OPEN_MAX;
}

/*
 * To its peers every process is a channel adapter of its own: what they remember of one that has ended, or of one in
 * another network namespace of this host, is never taken for this one's (docs/rdmacm.md 1.8).
 */
static int cm_start(struct engine *e, char *why, size_t why_bytes)
{
	struct cm_config c = {.alloc = space_alloc,
			      .slot = e->loop.slot,
			      .pkey = e->config.pkeys[0],
			      .bound = e->config.devices.has_rails,
			      .cm_count = e->config.devices.has_rails ? ENGINE_DEVICES_MAX : 0,
			      .cm_index = e->device,
			      .registry = e->group && !has_streams(e) ? group_shared(e->group) : NULL,
			      .lives = slot_lives,
			      .lives_ctx = e->group,
			      .streams_of = has_streams(e) ? e->loop.nic : NULL,
			      .half_open_max = half_open_max(),
			      .no_crc = !e->config.iwarp_crc,
			      .markers = e->config.iwarp_markers,
			      .atomics = e->config.transport.iwarp_rfc7306};
	struct {
		uint8_t secret[sizeof(c.secret)];
		uint64_t guid;
	} drawn;

	if (!draw(e, &drawn, sizeof(drawn))) {
		snprintf(why, why_bytes, "no random numbers from the kernel: %s", strerror(errno));
		return -EIO;
	}
	memcpy(c.secret, drawn.secret, sizeof(c.secret));
	/* EUI-64: assigned by nobody, and no group's. */
	c.ca_guid = (drawn.guid | UINT64_C(1) << 57) & ~(UINT64_C(1) << 56);
	local_ports(&c.port_first, &c.port_last);
	e->loop.cm = cm_create(&c);
	explicit_bzero(&c, sizeof(c));
	explicit_bzero(&drawn, sizeof(drawn));
	if (e->loop.cm) {
		map_tell_cm(e);
		return 0;
	}
	snprintf(why, why_bytes, "out of memory");
	return -ENOMEM;
}

static void engine_free(struct engine *e)
{
	loop_fini(&e->loop);
	cm_destroy(e->loop.cm);
	if (e->loop.nic)
		nic_destroy(e->loop.nic);
	if (e->loop.io)
		io_close(e->loop.io);
	faults_free(e->loop.faults);
	if (e->group)
		group_close(e->group);
	limits_leave(e->limits);
	map_close(e->loop.map);
	if (e->loop.page)
		stats_destroy(e->loop.page, e->stat_fd);
	port_close(e);
	if (e->env)
		e->env->close(e->env);
	space_put(e, sizeof(*e));
}

/* Whichever call found no descriptor left. */
static void explain_limit(char *why, size_t why_bytes)
{
	struct rlimit limit = {0};
	size_t len = strlen(why);

	if (strstr(why, "ulimit"))
		return;
	getrlimit(RLIMIT_NOFILE, &limit);
	snprintf(why + len, why_bytes - len, ": the limit is %llu (ulimit -n), too low for this program with Verbena",
		 (unsigned long long)limit.rlim_cur);
}

/* Joins the processes that share those ports; the first one names the group. */
static int group_start(struct engine *e, struct group_config *group, char *why, size_t why_bytes)
{
	int rc = group_open(&e->group, group, why, why_bytes);

	group->host = NULL;
	if (rc)
		return rc;
	e->loop.group = e->group;
	e->loop.slot = group_slot(e->group);
	e->loop.page->slot = e->loop.slot;
	return 0;
}

/* A place in the group that shares the ports, and the sockets. */
static int udp_start(struct engine *e, char *why, size_t why_bytes)
{
	struct group_address host[NIC_GIDS_MAX];
	struct group_config group;
	struct udp_config udp = {
		.paths = 1, /* most programs never need another: engine_add_paths */
		.spare_fds = SPARE_FDS,
		.bound = e->config.devices.has_rails,
		.timed_port = e->config.transport.veroce.port,
		.clock = clock_of(e),
		.counters = &e->loop.page->io,
		.interfaces = &e->loop.page->interfaces,
	};
	int rc = engine_group_settings(e, &e->gids, &group, host, why, why_bytes);

	if (!rc)
		rc = group_start(e, &group, why, why_bytes);
	if (rc)
		return rc;
	e->loop.page->port = e->config.transport.rocev2.port;
	e->loop.page->veroce_port = e->config.transport.veroce.port;
	udp.no_ipv6 = !group_has_ipv6(e->group);
	udp.rx_count = group_rx_fds(e->group, udp.rx_fds, UDP_RX_SOCKETS_MAX);
	return udp_io_start(e, &udp, why, why_bytes);
}

/* All processes hear all frames. What names nobody is for the one that the group's datagrams would go to. */
static bool is_ours(void *ctx, const struct pkt *p)
{
	const struct engine *e = ctx;

	return group_slot_of(p) != GROUP_ANY_SLOT || engine_requests_slot(group_shared(e->group)) == e->loop.slot;
}

static int raw_io_start(struct engine *e, char *why, size_t why_bytes)
{
	struct io_gid gids[IO_GIDS_MAX];
	struct raw_config raw = {.gids = gids,
				 .slot = e->loop.slot,
				 .is_ours = is_ours,
				 .ctx = e,
				 .counters = &e->loop.page->io,
				 .interfaces = &e->loop.page->interfaces};
	/* Also those of interfaces that are not used: packets to them stay on this host. */
	int rc = port_host_gids(gids, why, why_bytes);

	raw.gid_count = rc < 0 ? 0 : (size_t)rc;
	if (rc >= 0)
		rc = raw_open(&e->raw, &raw, why, why_bytes);
	if (rc)
		return rc;
	e->rcvbuf_bytes = raw_rcvbuf_bytes(e->raw);
	return wrappers_start(e, e->raw, why, why_bytes);
}

/* The group is one of its own: its members hear no UDP, and those that do hear no frames. */
static int raw_start(struct engine *e, char *why, size_t why_bytes)
{
	struct group_config group = {.ports = {config_rocev1_port(&e->config)}, .port_count = 1};
	struct group_address host[NIC_GIDS_MAX];
	int rc = engine_group_members(e, &e->gids, &group, host, why, why_bytes);

	if (!rc)
		rc = group_start(e, &group, why, why_bytes);
	return rc ? rc : raw_io_start(e, why, why_bytes);
}

/* A process that has no place there runs all the same, and draws its ports from a class that others hardly have. */
static void tell_counters(struct engine *e)
{
	if (group_open_portless(&e->group, e->stat_fd, &e->loop.page->io) < 0)
		e->loop.slot = (unsigned)getpid() % (GROUP_SLOTS - 1);
	else
		e->loop.slot = group_slot(e->group);
	e->loop.group = e->group;
	e->loop.page->slot = e->loop.slot;
}

/* TCP repeats what a network loses, below the place where faults are made. */
static int tcp_start(struct engine *e, char *why, size_t why_bytes)
{
	int rc;

	if (e->config.impair[0]) {
		snprintf(why, why_bytes,
			 "VERBENA_IMPAIR: not with VERBENA_PROTOCOL=iwarp, whose packets are the kernel's: tc-netem(8) "
			 "spoils those");
		return -EINVAL;
	}
	e->loop.streams = true;
	tell_counters(e);
	rc = tcp_open(&e->tcp, &e->loop.page->io, why, why_bytes);
	if (!rc)
		engine_note_gids(e);
	e->loop.tcp = e->config.pcap[0] ? NULL : e->tcp; /* a capture has all bytes */
	return rc ? rc : wrappers_start(e, e->tcp, why, why_bytes);
}

static int host_port_start(struct engine *e, char *why, size_t why_bytes)
{
	int rc = port_open(e, why, why_bytes);

	if (rc)
		return rc;
	if (has_streams(e))
		return tcp_start(e, why, why_bytes);
	return engine_is_rocev1(e) ? raw_start(e, why, why_bytes) : udp_start(e, why, why_bytes);
}

static int take_port(struct engine *e, const struct env_port *p, char *why, size_t why_bytes)
{
	e->gids = p->gids;
	e->loop.slot = e->loop.page->slot = p->slot;
	e->paths = p->paths;
	memcpy(e->sport_ipv4, p->sport_ipv4, sizeof(e->sport_ipv4));
	memcpy(e->sport_ipv6, p->sport_ipv6, sizeof(e->sport_ipv6));
	e->rcvbuf_bytes = p->rcvbuf_bytes;
	return wrappers_start(e, p->io, why, why_bytes);
}

/* There is no group: what the environment delivers is for this process. */
static int env_port_start(struct engine *e, char *why, size_t why_bytes)
{
	struct env_port *p;
	int rc = -ENOMEM;

	if (has_streams(e)) {
		snprintf(why, why_bytes,
			 "VERBENA_PROTOCOL=iwarp needs TCP connections of the host, and there are none here");
		return -EOPNOTSUPP;
	}
	p = space_get(sizeof(*p));
	if (!p)
		snprintf(why, why_bytes, "out of memory");
	else
		rc = e->env->open_port(e->env, &e->config, &e->loop.page->io, p, why, why_bytes);
	if (!rc)
		rc = take_port(e, p, why, why_bytes);
	space_put(p, sizeof(*p));
	return rc;
}

void engine_set_env(engine_env_fn *given)
{
	env_given = given;
}

/* The two clocks cannot be read at once, so this takes the quickest of several readings. */
static uint64_t wall_at_0_ns(const struct engine_env *env)
{
	uint64_t least_ns = UINT64_MAX, at_0_ns = 0;

	for (int i = 0; i < WALL_READINGS; i++) {
		uint64_t before_ns = env_now_ns(env), wall_ns = env->wall_ns(env),
			 took_ns = env_now_ns(env) - before_ns;

		if (took_ns >= least_ns)
			continue;
		least_ns = took_ns;
		at_0_ns = wall_ns - (before_ns + took_ns / 2);
	}
	return at_0_ns;
}

static int env_start(struct engine *e, char *why, size_t why_bytes)
{
	struct engine_env *env = env_given ? env_given(e->device) : NULL;
	bool simulated = !env && env_is_simulated();
	int rc = simulated ? env_simulated_open(&env, e->device, why, why_bytes) : env ? 0 : env_host_open(&e->host);

	if (rc && simulated)
		return rc;
	if (rc) {
		snprintf(why, why_bytes, "cannot make descriptors to wait for: %s", strerror(-rc));
		return rc;
	}
	e->env = env ? env : &e->host.env;
	e->wall_at_0_ns = wall_at_0_ns(e->env);
	e->opened_ns = engine_now_ns(e);
	return 0;
}

static struct engine *engine_start(unsigned device, const struct engine_sink *sink, char *why, size_t why_bytes)
{
	struct engine *e = space_get(sizeof(*e));
	int rc = -ENOMEM;

	if (!e) {
		snprintf(why, why_bytes, "out of memory");
		errno = ENOMEM;
		return NULL;
	}
	lock_init(&e->lock);
	e->stat_fd = e->port_fd = -1;
	e->loop.sink = sink;
	e->device = device;

	rc = config_load(&e->config, why, why_bytes);
	if (rc)
		goto fail;
	if (e->config.devices.iwarp >> device & 1)
		e->config.transport.protocol = PROTOCOL_IWARP;
	rc = env_start(e, why, why_bytes);
	if (rc)
		goto fail;
	e->loop.page = stats_create(&e->stat_fd, e->env->wall_ns(e->env));
	if (!e->loop.page) {
		rc = -errno;
		snprintf(why, why_bytes, "cannot make the counters page: %s", strerror(errno));
		goto fail;
	}

	e->loop.page->device = device;
	e->loop.page->iwarp = e->config.devices.iwarp;
	memcpy(e->loop.page->given, e->config.device, sizeof(e->loop.page->given));
	rc = faulting_open(e, why, why_bytes);
	if (!rc)
		rc = e->env->open_port ? env_port_start(e, why, why_bytes) : host_port_start(e, why, why_bytes);
	if (!rc)
		rc = map_open(e, why, why_bytes);
	if (!rc)
		rc = limiting_open(e, why, why_bytes);
	if (rc)
		goto fail;
	rc = nic_start(e, why, why_bytes);
	if (!rc)
		rc = cm_start(e, why, why_bytes);
	if (rc)
		goto fail;
	rc = loop_init(&e->loop);
	if (!rc)
		rc = thread_start(e);
	if (rc) {
		snprintf(why, why_bytes, "cannot start the engine thread: %s", strerror(-rc));
		goto fail;
	}
	return e;

fail:
	if (rc == -EMFILE)
		explain_limit(why, why_bytes);
	engine_free(e);
	errno = -rc;
	return NULL;
}

static void fork_prepare(void)
{
	int state = cancel_off(); /* what is flushed may be a file */

	pthread_mutex_lock(&the_mutex);
	for (unsigned d = 0; d < ENGINE_DEVICES_MAX; d++) {
		struct engine *e = engines[d];

		if (!e)
			continue;
		lock_wait(&e->lock);
		/* Parent and child must not both write the buffered packets. */
		if (!e->closed)
			io_flush(e->loop.io);
	}
	space_fork_begin();
	cancel_restore(state);
}

static void fork_parent(void)
{
	space_fork_end();
	for (unsigned d = 0; d < ENGINE_DEVICES_MAX; d++) {
		if (engines[d])
			engine_leave(engines[d]);
	}
	pthread_mutex_unlock(&the_mutex);
}

static void engine_lose(struct engine *e)
{
	e->closed = true;
	e->forked = true;
	lock_init(&e->lock);
	atomic_store(&e->state, THREAD_RUN);
	if (e->group)
		group_child_after_fork(e->group);
	limits_forget(e->limits);
	e->limits = e->loop.limits = NULL;
	/* What it buffered for a file is written already; no closed engine looks at it again. */
	io_close(e->loop.io);
	e->loop.io = e->loop.shm = NULL;
	e->env->close(e->env);
	port_close(e);
	if (e->stat_fd >= 0)
		close(e->stat_fd);
}

static void fork_child(void)
{
	space_fork_end();
	env_forget_self();
	for (unsigned d = 0; d < ENGINE_DEVICES_MAX; d++) {
		if (engines[d])
			engine_lose(engines[d]);
		engines[d] = NULL;
	}
	pthread_mutex_unlock(&the_mutex);
}

uint32_t engine_device_count(void)
{
	struct config c;
	char why[WHY_BYTES];

	return config_load(&c, why, sizeof(why)) ? 1 : c.devices.count;
}

uint32_t engine_iwarp_devices(void)
{
	struct config c;
	char why[WHY_BYTES];

	return config_load(&c, why, sizeof(why)) ? 0 : c.devices.iwarp;
}

void engine_device_given(char given[DEVICE_NAME_BYTES])
{
	struct config c;
	char why[WHY_BYTES];

	if (config_load(&c, why, sizeof(why)))
		given[0] = 0;
	else
		memcpy(given, c.device, DEVICE_NAME_BYTES);
}

uint32_t engine_cm_devices(void)
{
	struct config c;
	char why[WHY_BYTES];

	return config_load(&c, why, sizeof(why)) || !c.devices.has_rails ? 1 : c.devices.count;
}

struct engine *engine_get(unsigned device, const struct engine_sink *sink, char *err, size_t err_bytes)
{
	static bool registered;
	char why[WHY_BYTES] = "";
	struct engine *e;
	int state = cancel_off(); /* a process that joins a group holds locks of the whole host */

	pthread_mutex_lock(&the_mutex);
	if (!registered)
		registered = !pthread_atfork(fork_prepare, fork_parent, fork_child);
	if (!engines[device]) {
		engines[device] = engine_start(device, sink, why, sizeof(why));
		if (!engines[device])
			snprintf(err, err_bytes, "%s", why);
	}
	e = engines[device];
	pthread_mutex_unlock(&the_mutex);
	cancel_restore(state);
	return e;
}

__attribute__((destructor)) static void engine_at_exit(void)
{
	int saved = errno, tries = EXIT_TRIES;

	for (unsigned d = 0; d < ENGINE_DEVICES_MAX; d++) {
		if (engines[d])
			engine_end(engines[d], &tries);
	}
	errno = saved;
}
