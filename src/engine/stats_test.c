/* SPDX-License-Identifier: BSD-2-Clause */
/* The counters page of a hostile lender, and with a hostile reader. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "engine/stats.h"
#include "support/test.h"

TEST(a_page_is_read_as_it_was_written)
{
	int fd;
	struct stats_page *p = stats_create(&fd, 1);
	const struct stats_page *seen;

	assert_non_null(p);
	seen = stats_map(fd);
	assert_non_null(seen);
	p->nic.rx_packets = 4711;
	assert_int_equal(seen->nic.rx_packets, 4711);
	assert_int_equal(seen->pid, getpid());
	stats_unmap(seen);
	stats_destroy(p, fd);
}

/* As where a container's seccomp profile refuses memory files. */
TEST(a_page_without_a_file_is_the_process_s_own)
{
	struct rlimit before, none;
	struct stats_page *p;
	int fd;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	p = stats_create(&fd, 1);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_non_null(p);
	assert_int_equal(fd, -1);
	assert_int_equal(p->pid, getpid());
	p->nic.rx_packets = 4711;
	stats_destroy(p, fd);
}

TEST(who_is_lent_a_page_cannot_write_it)
{
	int fd, again;
	struct stats_page *p = stats_create(&fd, 1);
	char path[64];

	assert_non_null(p);
	if (!(fcntl(fd, F_GET_SEALS) & F_SEAL_FUTURE_WRITE))
		skip(); /* Linux before 5.1 */
	assert_ptr_equal(mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
	assert_int_equal(pwrite(fd, "x", 1, 0), -1);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDWR | O_CLOEXEC);
	if (again >= 0) {
		assert_int_equal(pwrite(again, "x", 1, 0), -1);
		close(again);
	}
	assert_int_equal(ftruncate(fd, 0), -1);
	p->nic.tx_packets = 1; /* its owner can */
	stats_destroy(p, fd);
}

/* Everything but the seals is right. */
TEST(a_page_that_can_shrink_is_refused)
{
	int good, bad = memfd_create("bad", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct stats_page *p = stats_create(&good, 1);

	assert_non_null(p);
	assert_int_equal(write(bad, p, sizeof(*p)), sizeof(*p));
	assert_null(stats_map(bad));
	assert_int_equal(fcntl(bad, F_ADD_SEALS, F_SEAL_SHRINK), 0);

	const struct stats_page *seen = stats_map(bad);

	assert_non_null(seen);
	stats_unmap(seen);
	stats_destroy(p, good);
	close(bad);
}

TEST(rows_of_queue_pairs_are_whole_or_not_read)
{
	int fd;
	struct stats_page *p = stats_create(&fd, 1);
	struct nic_qp_report rows[STATS_QPS_MAX];

	assert_non_null(p);
	assert_int_equal(stats_read_qps(p, rows), 0);
	for (uint32_t i = 0; i < STATS_QPS_MAX; i++)
		p->qps[i] = (struct nic_qp_report){.qpn = i, .type = QPT_RC};
	p->qp_count = STATS_QPS_MAX;
	assert_int_equal(stats_read_qps(p, rows), STATS_QPS_MAX);
	assert_int_equal(rows[5].qpn, 5);
	/* None of these values is used as an index. */
	p->qps[1].type = QPT_COUNT;
	p->qps[2].state = 255;
	p->qps[3].way = NIC_WAYS;
	assert_int_equal(stats_read_qps(p, rows), STATS_QPS_MAX - 3);
	p->qp_count = STATS_QPS_MAX + 1;
	assert_int_equal(stats_read_qps(p, rows), -EAGAIN);
	p->qp_count = UINT32_MAX;
	assert_int_equal(stats_read_qps(p, rows), -EAGAIN);
	/* Their process was stopped in the middle. */
	p->qp_count = 1;
	p->qps_turn = 1;
	assert_int_equal(stats_read_qps(p, rows), -EAGAIN);
	stats_destroy(p, fd);
}

static uint64_t value_of(const struct stats_page *p, const char *name)
{
	size_t count;
	const struct stats_field *f = stats_fields(&count);

	for (size_t i = 0; i < count; i++) {
		if (!strcmp(f[i].name, name))
			return stats_value(p, &f[i]);
	}
	fail_msg("no counter %s", name);
	return 0;
}

TEST(refusals_have_number_and_name_of_their_reason)
{
	int fd;
	struct stats_page *p = stats_create(&fd, 1);

	assert_non_null(p);
	p->cm.rejects_sent.no_listener = 1;
	p->cm.rejects_sent.vendor_option = 2;
	p->cm.rejects_received.gid = 3;
	p->cm.rejects_received.other = 4;
	assert_int_equal(value_of(p, "cm_rejects_sent_8_no_listener"), 1);
	assert_int_equal(value_of(p, "cm_rejects_sent_35_vendor_option"), 2);
	assert_int_equal(value_of(p, "cm_rejects_received_12_gid"), 3);
	assert_int_equal(value_of(p, "cm_rejects_received_other"), 4);
	stats_destroy(p, fd);
}
