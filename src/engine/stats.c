/* SPDX-License-Identifier: BSD-2-Clause */
/* The counters page: made, mapped and described. */
#include "engine/stats.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/clock.h"
#include "io/fd_away.h"
#include "space/space.h"

enum { READ_TRIES = 20, READ_PAUSE_NS = 1000000 };

int stats_make_file(const char *name, size_t bytes)
{
	struct rlimit limit;
	int fd;

	/* To pass it would be a signal. */
	if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur < bytes)
		return -1;
	fd = fd_away(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
	if (fd >= 0 && ftruncate(fd, (off_t)bytes) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/*
 * A reader must never fault on a page that shrank, and a process that gets the descriptor must not
 * write: from here on only our own mapping can. Linux before 5.1 has no such seal.
 */
static void seal(int fd)
{
	fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
}

/* The process's name, not that of the thread that happens to be first. */
static void name_process(struct stats_page *p)
{
	FILE *comm = fopen("/proc/self/comm", "re");

	if (!comm)
		return;
	if (fgets(p->comm, sizeof(p->comm), comm))
		p->comm[strcspn(p->comm, "\n")] = 0;
	fclose(comm);
}

struct stats_page *stats_create(int *fd, uint64_t started_ns)
{
	struct stats_page *p;
	int saved;

	*fd = stats_make_file("verbena-stats", sizeof(*p));
	p = *fd < 0 ? space_get(sizeof(*p)) : space_map(*fd, sizeof(*p));
	if (!p) {
		saved = errno;
		if (*fd >= 0)
			close(*fd);
		*fd = -1;
		errno = saved;
		return NULL;
	}
	if (*fd >= 0)
		seal(*fd);
	p->started_ns = started_ns;
	p->pid = getpid();
	name_process(p);
	p->bytes = sizeof(*p);
	p->version = STATS_VERSION;
	p->magic = STATS_MAGIC;
	return p;
}

void stats_destroy(struct stats_page *p, int fd)
{
	if (fd < 0) {
		space_put(p, sizeof(*p));
		return;
	}
	space_unmap(p, sizeof(*p));
	close(fd);
}

const struct stats_page *stats_map(int fd)
{
	const struct stats_page *p;
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	/*
	 * The lender may be hostile: without this seal it could truncate the file, and SIGBUS would
	 * kill us.
	 */
	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st) < 0 || st.st_size != sizeof(*p))
		return NULL;
	p = mmap(NULL, sizeof(*p), PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return NULL;
	if (p->magic != STATS_MAGIC || p->version != STATS_VERSION || p->bytes != sizeof(*p)) {
		stats_unmap(p);
		return NULL;
	}
	return p;
}

void stats_unmap(const struct stats_page *p)
{
	munmap((void *)p, sizeof(*p));
}

void stats_write_qps(struct stats_page *p, const struct nic *nic)
{
	uint32_t turn = atomic_load_explicit(&p->qps_turn, memory_order_relaxed) | 1;

	atomic_store_explicit(&p->qps_turn, turn, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	p->qp_count = (uint32_t)nic_report_qps(nic, p->qps, STATS_QPS_MAX);
	atomic_store_explicit(&p->qps_turn, turn + 1, memory_order_release);
}

/* What another process wrote. */
static bool is_known(const struct nic_qp_report *r)
{
	return r->type < QPT_COUNT && r->state < QPS_COUNT && r->way < NIC_WAYS;
}

int stats_read_qps(const struct stats_page *p, struct nic_qp_report *rows)
{
	for (unsigned i = 0; i < READ_TRIES; i++) {
		uint32_t turn = atomic_load_explicit((_Atomic uint32_t *)&p->qps_turn, memory_order_acquire);
		uint32_t count = *(const volatile uint32_t *)&p->qp_count;
		uint32_t known = 0;

		if (turn & 1 || count > STATS_QPS_MAX) {
			clock_sleep_ns(READ_PAUSE_NS);
			continue;
		}
		memcpy(rows, p->qps, count * sizeof(*rows));
		atomic_thread_fence(memory_order_acquire);
		if (atomic_load_explicit((_Atomic uint32_t *)&p->qps_turn, memory_order_relaxed) != turn)
			continue;
		for (uint32_t k = 0; k < count; k++)
			if (is_known(&rows[k]))
				rows[known++] = rows[k];
		return (int)known;
	}
	return -EAGAIN;
}

/* clang-format off */
#define NIC(f) { #f, offsetof(struct stats_page, nic.f) }
#define SEND_ERROR(name, status) { "send_" #name, offsetof(struct stats_page, nic.send_errors[status]) }
#define RECV_ERROR(name, status) { "recv_" #name, offsetof(struct stats_page, nic.recv_errors[status]) }
/* By wc_error_index(). */
#define WC_ERROR_NAMES(ROW) \
	ROW(local_length, 0), ROW(local_qp_operation, 1), ROW(local_protection, 2), ROW(flushed, 3), ROW(window_bind, 4), \
	ROW(bad_response, 5), ROW(local_access, 6), ROW(remote_invalid_request, 7), ROW(remote_access, 8), \
	ROW(remote_operation, 9), ROW(retries_exceeded, 10), ROW(rnr_retries_exceeded, 11), ROW(other_errors, 12)
#define CM(f) { "cm_" #f, offsetof(struct stats_page, cm.f) }
#define DROPPED(name, limit) { "cm_dropped_" #name, offsetof(struct stats_page, cm.dropped_by[limit]) }
#define REJECTS(way, label, name) { "cm_rejects_" #way "_" label, offsetof(struct stats_page, cm.rejects_##way.name) },
#define SENT(number, name) REJECTS(sent, #number "_" #name, name)
#define RECEIVED(number, name) REJECTS(received, #number "_" #name, name)
#define LIMIT(f) { #f, offsetof(struct stats_page, limit.f) }
#define IO(f) { "io_" #f, offsetof(struct stats_page, io.f) }

static const struct stats_field fields[] = {
	NIC(rx_packets), NIC(rx_bytes), NIC(tx_packets), NIC(tx_bytes), NIC(rx_multicast), NIC(tx_multicast),
	NIC(rx_malformed), NIC(rx_icrc_errors), NIC(rx_no_qp), NIC(rx_wrong_source), NIC(rx_wrong_pkey),
	NIC(rx_duplicates), NIC(rx_out_of_sequence), NIC(rx_too_long), NIC(rx_dropped),
	NIC(retransmits), NIC(timeouts), NIC(naks_sent), NIC(naks_received),
	NIC(sequence_naks_received), NIC(responses_missed),
	NIC(rnrs_sent), NIC(rnrs_received), NIC(acks_sent), NIC(acks_received),
	NIC(sacks_sent), NIC(spurious), NIC(tail_probes), NIC(path_timeouts), NIC(rx_beyond_window),
	NIC(rx_early_kept), NIC(path_probes), NIC(cnps_sent), NIC(cnps_received), NIC(cnps_ignored), NIC(rx_marked),
	NIC(rx_write_requests), NIC(rx_read_requests), NIC(rx_atomic_requests), NIC(rx_access_refused),
	NIC(slow_signals), NIC(slow_signals_sent), NIC(rx_trimmed), NIC(fallbacks), NIC(holds_received), NIC(peers_moved),
	NIC(veroce_unanswered), NIC(rx_rocev2_refused),
	NIC(overlaps_fenced),
	NIC(fpdu_crc_errors), NIC(fpdu_marker_errors), NIC(rx_placed_bytes), NIC(terminates_sent), NIC(terminates_received),
	NIC(completions), NIC(completion_errors), NIC(cq_overruns),
	WC_ERROR_NAMES(SEND_ERROR), WC_ERROR_NAMES(RECV_ERROR),
	NIC(memory_faults),
	NIC(mr_bytes), NIC(qps), NIC(cqs), NIC(mrs), NIC(mws), NIC(pds), NIC(srqs),
	IO(tx_packets), IO(tx_bytes), IO(tx_trains), IO(tx_syscalls), IO(tx_drops), IO(tx_again),
	IO(rx_packets), IO(rx_bytes), IO(rx_trains), IO(rx_syscalls), IO(rx_drops), IO(rx_overflow),
	IO(impair_dropped), IO(impair_duplicated), IO(impair_reordered), IO(impair_corrupted),
	IO(impair_marked), IO(impair_overflow),
	IO(forward_sent), IO(forward_received), IO(forward_dropped),
	IO(shm_tx_packets), IO(shm_tx_bytes), IO(shm_rx_packets), IO(shm_rx_bytes), IO(shm_tx_far), IO(shm_far_failed), IO(shm_helped),
	IO(shm_full), IO(shm_dropped),
	IO(shm_broken), IO(shm_peers),
	IO(pcap_packets), IO(pcap_errors),
	LIMIT(quota_refusals), LIMIT(rate_waits),
	CM(requests_sent), CM(requests_received), CM(repeats), CM(requests_dropped),
	DROPPED(backlog, CM_LIMIT_BACKLOG), DROPPED(events, CM_LIMIT_EVENTS), DROPPED(half_open, CM_LIMIT_HALF_OPEN),
	DROPPED(half_open_of_one, CM_LIMIT_HALF_OPEN_OF_ONE), DROPPED(unanswered_of_one, CM_LIMIT_UNANSWERED_OF_ONE),
	DROPPED(strangers, CM_LIMIT_STRANGERS), DROPPED(ids, CM_LIMIT_IDS),
	CM_REJ_REASONS(SENT) REJECTS(sent, "other", other)
	CM_REJ_REASONS(RECEIVED) REJECTS(received, "other", other)
	CM(rejects_withheld), CM(wills), CM(ids), CM(listeners), CM(connecting), CM(established), CM(disconnecting),
	CM(req_sent), CM(req_rcvd), CM(rep_sent), CM(rep_rcvd), CM(sidr_req_sent), CM(sidr_req_rcvd),
	CM(dreq_sent), CM(dreq_rcvd), CM(timewait),
};
/* clang-format on */

/* A counter that is added to either struct must be added here. */
static_assert(sizeof(fields) / sizeof(fields[0]) == (sizeof(struct nic_counters) + sizeof(struct io_counters) +
						     sizeof(struct cm_counters) + sizeof(struct limit_counters)) /
							    sizeof(uint64_t),
	      "every counter is named once");

const struct stats_field *stats_fields(size_t *count)
{
	*count = sizeof(fields) / sizeof(fields[0]);
	return fields;
}
