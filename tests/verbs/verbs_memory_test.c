/* SPDX-License-Identifier: BSD-2-Clause */
/* Regions of memory that is not the program's: device memory, files, and nothing. */
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pair.h"
#include "support/test.h"

enum { PAGE = 4096, DM_BYTES = 3 * PAGE, LONG = 2 * PAGE + 100, ZERO_BASED = ACCESS_ALL | IBV_ACCESS_ZERO_BASED };

static size_t dm_max(struct ibv_context *ctx)
{
	struct ibv_device_attr_ex attr;

	assert_int_equal(ibv_query_device_ex(ctx, NULL, &attr), 0);
	assert_true(attr.max_dm_size > 0);
	return attr.max_dm_size;
}

static struct ibv_dm *dm_alloc(struct ibv_context *ctx, size_t length)
{
	struct ibv_dm *dm = ibv_alloc_dm(ctx, &(struct ibv_alloc_dm_attr){.length = length});

	assert_non_null(dm);
	return dm;
}

/* What becomes of a request of A's, of that length, to B's memory. */
static enum ibv_wc_status outcome(struct pair *p, enum ibv_wr_opcode op, uint64_t at, uint32_t rkey, uint32_t length)
{
	struct ibv_sge sge = sge_at(p, A, 0, length);
	struct ibv_send_wr wr = {.opcode = op, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED}, *bad;

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = at;
		wr.wr.atomic.rkey = rkey;
	} else {
		wr.wr.rdma.remote_addr = at;
		wr.wr.rdma.rkey = rkey;
	}
	assert_int_equal(ibv_post_send(p->side[A].qp, &wr, &bad), 0);
	return wc_await(p->side[A].cq).status;
}

TEST(device_memory_is_allocated_and_counted)
{
	struct ibv_context *ctx = device_open();
	size_t max = dm_max(ctx);
	const struct {
		struct ibv_alloc_dm_attr attr;
		int err;
	} rows[] = {
		{{.length = 0}, EINVAL},
		{{.length = max + 1}, EINVAL},
		{{.length = SIZE_MAX}, EINVAL},
		{{.length = 8, .log_align_req = 63}, EINVAL},
		{{.length = 8, .comp_mask = 1}, EOPNOTSUPP},
		{{.length = max}, ENOMEM},
	};
	struct ibv_dm *few = dm_alloc(ctx, 4), *all;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ibv_alloc_dm_attr attr = rows[i].attr;

		errno = 0;
		assert_null(ibv_alloc_dm(ctx, &attr));
		assert_int_equal(errno, rows[i].err);
	}
	assert_int_equal(ibv_free_dm(few), 0);
	all = dm_alloc(ctx, max);
	assert_int_equal(ibv_free_dm(all), 0);
	all = dm_alloc(ctx, max);
	/* What the program leaves goes with the device. */
	assert_int_equal(ibv_close_device(ctx), 0);
	ctx = device_open();
	all = dm_alloc(ctx, max);
	assert_int_equal(ibv_free_dm(all) + ibv_close_device(ctx), 0);
}

TEST(device_memory_is_copied_in_words_and_bounds)
{
	struct ibv_context *ctx = device_open();
	struct ibv_dm *dm = ibv_alloc_dm(ctx, &(struct ibv_alloc_dm_attr){.length = 100, .log_align_req = 12});
	uint8_t in[100], out[100] = {1};
	const struct {
		uint64_t offset;
		size_t length;
		int err;
	} rows[] = {
		{1, 4, EINVAL},
		{4, 1, EINVAL},
		{104, 4, EFAULT},
		{0, 104, EFAULT},
		{100, 4, EFAULT},
		{UINT64_MAX - 3, 8, EFAULT},
		{4, SIZE_MAX - 3, EFAULT},
		{100, 0, 0},
		{96, 4, 0},
	};

	assert_non_null(dm);
	assert_int_equal(ibv_memcpy_from_dm(out, dm, 0, 100), 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(out[i], 0);
	pattern_fill(in, 100, 3);
	assert_int_equal(ibv_memcpy_to_dm(dm, 0, in, 100), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(ibv_memcpy_to_dm(dm, rows[i].offset, in + 96, rows[i].length), rows[i].err);
		assert_int_equal(ibv_memcpy_from_dm(out, dm, rows[i].offset, rows[i].length), rows[i].err);
	}
	assert_int_equal(ibv_memcpy_from_dm(out, dm, 0, 100), 0);
	assert_memory_equal(in, out, 100);
	assert_int_equal(ibv_free_dm(dm) + ibv_close_device(ctx), 0);
}

TEST(device_memory_is_read_and_written_by_keys)
{
	struct pair p;
	struct ibv_dm *dm;
	struct ibv_mr *mr;
	uint8_t got[DM_BYTES];

	pair_make(&p, (struct wishes){0});
	dm = dm_alloc(p.ctx, DM_BYTES);
	mr = ibv_reg_dm_mr(p.pd, dm, PAGE, 2 * PAGE, ZERO_BASED);
	assert_non_null(mr);
	assert_null(mr->addr);
	assert_int_equal(mr->length, 2 * PAGE);
	assert_int_equal(ibv_free_dm(dm), EBUSY);
	assert_int_not_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ZERO_BASED), 0);
	pattern_fill(p.side[A].buf, 2 * PAGE, 4);
	assert_int_equal(outcome(&p, IBV_WR_RDMA_WRITE, 0, mr->rkey, 2 * PAGE), IBV_WC_SUCCESS);
	assert_int_equal(ibv_memcpy_from_dm(got, dm, 0, DM_BYTES), 0);
	pattern_check(got + PAGE, 2 * PAGE, 4);
	for (int i = 0; i < PAGE; i++)
		assert_int_equal(got[i], 0);
	memset(p.side[A].buf, 0, 2 * PAGE);
	assert_int_equal(outcome(&p, IBV_WR_RDMA_READ, 100, mr->rkey, PAGE), IBV_WC_SUCCESS);
	assert_memory_equal(p.side[A].buf, got + PAGE + 100, PAGE);
	assert_int_equal(outcome(&p, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, mr->rkey, 8), IBV_WC_SUCCESS);
	assert_memory_equal(p.side[A].buf, got + PAGE + 8, 8);
	/* A byte behind the region is not to be had, though it may be the device memory's. */
	assert_int_equal(outcome(&p, IBV_WR_RDMA_WRITE, 1, mr->rkey, 2 * PAGE), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
	pair_destroy(&p);
}

TEST(regions_of_device_memory_lie_in_it)
{
	struct ibv_context *ctx = device_open(), *other = device_open();
	struct ibv_pd *pd = ibv_alloc_pd(ctx), *others = ibv_alloc_pd(other);
	struct ibv_dm *dm = dm_alloc(ctx, 100);
	const struct {
		struct ibv_pd *pd;
		uint64_t offset;
		size_t length;
		unsigned int access;
		int err;
	} rows[] = {
		{pd, 0, 100, ZERO_BASED, 0},
		{pd, 100, 0, IBV_ACCESS_ZERO_BASED, 0},
		{pd, 0, 101, ZERO_BASED, EINVAL},
		{pd, 4, 100, ZERO_BASED, EINVAL},
		{pd, 104, 4, ZERO_BASED, EINVAL},
		{pd, UINT64_MAX, 2, ZERO_BASED, EINVAL},
		{pd, 8, SIZE_MAX, ZERO_BASED, EINVAL},
		{pd, 0, 100, ACCESS_ALL, EINVAL},
		{pd, 0, 100, ZERO_BASED | IBV_ACCESS_ON_DEMAND, EINVAL},
		{pd, 0, 100, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_WRITE, EINVAL},
		{others, 0, 100, ZERO_BASED, EINVAL},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ibv_mr *mr;

		errno = 0;
		mr = ibv_reg_dm_mr(rows[i].pd, dm, rows[i].offset, rows[i].length, rows[i].access);
		assert_int_equal(mr ? 0 : errno, rows[i].err);
		if (mr)
			assert_int_equal(ibv_dereg_mr(mr), 0);
	}
	assert_int_equal(ibv_free_dm(dm) + ibv_dealloc_pd(pd) + ibv_dealloc_pd(others), 0);
	assert_int_equal(ibv_close_device(ctx) + ibv_close_device(other), 0);
}

/* Zeros from nowhere, and data to nowhere, among others in one message. */
TEST(region_of_nothing_gives_zeros_and_takes_all)
{
	for (int read = 0; read < 2; read++) {
		struct pair p;
		struct ibv_mr *nothing;
		struct ibv_sge from[3], to[3];
		struct ibv_send_wr wr = {.opcode = read ? IBV_WR_RDMA_READ : IBV_WR_SEND,
					 .sg_list = from,
					 .num_sge = 3,
					 .send_flags = IBV_SEND_SIGNALED},
				   *bad;
		struct ibv_recv_wr recv = {.sg_list = to, .num_sge = 3}, *bad_recv;

		pair_make(&p, (struct wishes){0});
		nothing = ibv_alloc_null_mr(p.pd);
		assert_non_null(nothing);
		assert_int_equal(nothing->rkey, 0);
		pattern_fill(p.side[A].buf, BUF_BYTES, 1);
		pattern_fill(p.side[B].buf, BUF_BYTES, 2);
		from[0] = sge_at(&p, A, 0, LONG);
		from[1] = (struct ibv_sge){UINT64_MAX - 7, LONG, nothing->lkey};
		from[2] = sge_at(&p, A, LONG, LONG);
		to[0] = sge_at(&p, B, 0, 2 * LONG - 1);
		to[1] = (struct ibv_sge){77, LONG, nothing->lkey};
		to[2] = sge_at(&p, B, 2 * LONG - 1, LONG);
		if (read) {
			wr.wr.rdma.remote_addr = (uintptr_t)p.side[B].buf;
			wr.wr.rdma.rkey = p.side[B].mr->rkey;
		} else {
			assert_int_equal(ibv_post_recv(p.side[B].qp, &recv, &bad_recv), 0);
		}
		assert_int_equal(ibv_post_send(p.side[A].qp, &wr, &bad), 0);
		assert_int_equal(wc_await(p.side[A].cq).status, IBV_WC_SUCCESS);
		if (read) {
			assert_memory_equal(p.side[A].buf, p.side[B].buf, LONG);
			assert_memory_equal(p.side[A].buf + LONG, p.side[B].buf + 2 * LONG, LONG);
		} else {
			assert_int_equal(wc_await(p.side[B].cq).status, IBV_WC_SUCCESS);
			pattern_check(p.side[B].buf, LONG, 1);
			for (int i = LONG; i < 2 * LONG - 1; i++)
				assert_int_equal(p.side[B].buf[i], 0);
			/* One byte of zeros and all but the last of A's second piece went to nowhere. */
			assert_int_equal(p.side[B].buf[2 * LONG - 1], p.side[A].buf[2 * LONG - 1]);
		}
		/* No peer has it. */
		assert_int_equal(outcome(&p, IBV_WR_RDMA_READ, 0, nothing->lkey, 8), IBV_WC_REM_ACCESS_ERR);
		assert_int_not_equal(ibv_rereg_mr(nothing, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ACCESS_ALL), 0);
		assert_int_equal(ibv_dereg_mr(nothing), 0);
		pair_destroy(&p);
	}
}

/* A dma-buf of memory of the host's, or what stands for one where the kernel makes none. */
static int buffer(int memory)
{
	struct udmabuf_create create = {.memfd = (uint32_t)memory, .size = 4 * PAGE};
	int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), fd = -1;

	assert_int_equal(fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	if (device >= 0) {
		fd = ioctl(device, UDMABUF_CREATE, &create);
		close(device);
	}
	return fd >= 0 ? fd : dup(memory);
}

TEST(file_that_can_be_mapped_is_a_region)
{
	int memory = memfd_create("buffer", MFD_CLOEXEC | MFD_ALLOW_SEALING), fd;
	const uint64_t iova = 0x7000000000 + PAGE;
	uint8_t got[2 * PAGE];
	struct ibv_mr *mr;
	struct pair p;

	assert_true(memory >= 0 && !ftruncate(memory, 4 * PAGE));
	fd = buffer(memory);
	pair_make(&p, (struct wishes){0});
	mr = ibv_reg_dmabuf_mr(p.pd, PAGE, 2 * PAGE, iova, fd, ACCESS_ALL);
	assert_non_null(mr);
	close(fd);
	pattern_fill(p.side[A].buf, 2 * PAGE, 6);
	assert_int_equal(outcome(&p, IBV_WR_RDMA_WRITE, iova, mr->rkey, 2 * PAGE), IBV_WC_SUCCESS);
	assert_int_equal(pread(memory, got, sizeof(got), PAGE), sizeof(got));
	pattern_check(got, 2 * PAGE, 6);
	assert_int_equal(outcome(&p, IBV_WR_RDMA_WRITE, iova - 1, mr->rkey, 8), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	pair_destroy(&p);
	close(memory);
}

TEST(file_that_cannot_be_is_refused)
{
	int memory = memfd_create("buffer", MFD_CLOEXEC), none = open("/dev/null", O_RDWR | O_CLOEXEC), ends[2];
	struct ibv_context *ctx = device_open();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(ftruncate(memory, 4 * PAGE), 0);
	const struct {
		uint64_t offset, length, iova;
		int fd, access, err;
	} rows[] = {
		{0, 0, 0, -1, 0, EOPNOTSUPP}, /* by this NCCL asks whether there is such a thing */
		{0, PAGE, 0, 1000, 0, EBADF},
		{0, PAGE, 0, ends[0], ACCESS_ALL, EOPNOTSUPP},
		{0, PAGE, 0, none, ACCESS_ALL, EOPNOTSUPP},
		{0, 5 * PAGE, 0, memory, 0, EINVAL},
		{PAGE, UINT64_MAX, 0, memory, 0, EINVAL},
		{0, 0, 0, memory, 0, EINVAL},
		{8, PAGE, 0, memory, 0, EINVAL},
		{0, PAGE, UINT64_MAX - PAGE + 1 + PAGE, memory, IBV_ACCESS_REMOTE_WRITE, EINVAL},
		{0, 2 * PAGE, UINT64_MAX - PAGE + 1, memory, 0, EINVAL},
		{0, PAGE, 0, memory, IBV_ACCESS_MW_BIND, EINVAL},
		{0, PAGE, 0, memory, 0, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ibv_mr *mr;

		errno = 0;
		mr = ibv_reg_dmabuf_mr(pd, rows[i].offset, rows[i].length, rows[i].iova, rows[i].fd, rows[i].access);
		assert_int_equal(mr ? 0 : errno, rows[i].err);
		if (mr)
			assert_int_equal(ibv_dereg_mr(mr), 0);
	}
	assert_int_equal(ibv_dealloc_pd(pd) + ibv_close_device(ctx), 0);
	close(memory);
	close(none);
	close(ends[0]);
	close(ends[1]);
}

/* Of rdma-core 59 and later; the installed header may not have them. */
struct init_attr {
	size_t length;
	int access;
	uint64_t comp_mask, iova;
	void *addr;
	int fd;
	uint64_t fd_offset;
	void *dmah;
};

/* comp_mask, processor, and the hint's and the memory's type in one word; what the mask leaves out is not looked at. */
TEST(hints_that_make_no_sense_are_refused)
{
	enum { CPU = 1, HINT = 2, MEM_TYPE = 4 };
	void *(*alloc)(struct ibv_context *, void *) =
		(void *(*)(struct ibv_context *, void *))dlsym(RTLD_DEFAULT, "ibv_alloc_dmah");
	int (*dealloc)(void *) = (int (*)(void *))dlsym(RTLD_DEFAULT, "ibv_dealloc_dmah");
	struct ibv_context *ctx = device_open();
	uint32_t here = (uint32_t)sched_getcpu();
	const struct {
		struct {
			uint32_t comp_mask, cpu;
			uint8_t hint, mem_type;
		} attr;
		int err;
	} rows[] = {
		{{CPU | HINT | MEM_TYPE, here, 3, 1}, 0},
		{{0, 0xffff, 4, 2}, 0},
		{{HINT, 0, 4, 0}, EINVAL},
		{{MEM_TYPE, 0, 0, 2}, EINVAL},
		{{CPU, 0xffff, 0, 0}, EPERM},
		{{CPU, UINT32_MAX, 0, 0}, EPERM},
		{{CPU, CPU_SETSIZE - 1, 0, 0}, EPERM},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		void *dmah;

		errno = 0;
		dmah = alloc(ctx, (void *)&rows[i].attr);
		assert_int_equal(dmah ? 0 : errno, rows[i].err);
		if (dmah)
			assert_int_equal(dealloc(dmah), 0);
	}
	assert_int_equal(ibv_close_device(ctx), 0);
}

TEST(later_verb_registers_memory_and_files_with_hints)
{
	enum { IOVA = 1, ADDR = 2, FD = 4, FD_OFFSET = 8, DMAH = 16, BUF = 32 };
	struct ibv_mr *(*reg)(struct ibv_pd *, struct init_attr *) =
		(struct ibv_mr * (*)(struct ibv_pd *, struct init_attr *)) dlsym(RTLD_DEFAULT, "ibv_reg_mr_ex");
	void *(*alloc)(struct ibv_context *, void *) =
		(void *(*)(struct ibv_context *, void *))dlsym(RTLD_DEFAULT, "ibv_alloc_dmah");
	int (*dealloc)(void *) = (int (*)(void *))dlsym(RTLD_DEFAULT, "ibv_dealloc_dmah");
	uint32_t hints[3] = {0};
	static uint8_t mem[PAGE];
	int memory = memfd_create("buffer", MFD_CLOEXEC);
	struct ibv_context *ctx = device_open();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	void *dmah;

	assert_true(reg && alloc && dealloc);
	assert_int_equal(ftruncate(memory, 4 * PAGE), 0);
	dmah = alloc(ctx, hints);
	assert_non_null(dmah);
	const struct {
		struct init_attr attr;
		int err;
	} rows[] = {
		{{.length = PAGE, .comp_mask = ADDR, .addr = mem}, 0},
		{{.length = PAGE, .comp_mask = ADDR | IOVA | DMAH, .addr = mem, .iova = 5, .dmah = dmah}, 0},
		{{.length = PAGE, .comp_mask = FD | FD_OFFSET | IOVA | DMAH, .fd = memory, .dmah = dmah}, 0},
		{{.length = PAGE, .comp_mask = FD | FD_OFFSET | IOVA | ADDR, .fd = memory, .addr = mem}, EINVAL},
		{{.length = PAGE, .comp_mask = FD, .fd = memory}, EINVAL},
		{{.length = PAGE, .comp_mask = ADDR | FD_OFFSET, .addr = mem}, EINVAL},
		{{.length = PAGE, .comp_mask = IOVA}, EINVAL},
		{{.length = PAGE, .comp_mask = ADDR | BUF, .addr = mem}, EOPNOTSUPP},
		{{.length = PAGE, .comp_mask = ADDR, .addr = mem, .access = IBV_ACCESS_REMOTE_WRITE}, EINVAL},
		{{.length = PAGE, .comp_mask = ADDR | DMAH, .addr = mem, .dmah = dmah, .access = IBV_ACCESS_ON_DEMAND},
		 EOPNOTSUPP},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct init_attr attr = rows[i].attr;
		struct ibv_mr *mr;

		errno = 0;
		mr = reg(pd, &attr);
		assert_int_equal(mr ? 0 : errno, rows[i].err);
		if (mr)
			assert_int_equal(ibv_dereg_mr(mr), 0);
	}
	assert_int_equal(dealloc(dmah), 0);
	assert_int_equal(ibv_dealloc_pd(pd) + ibv_close_device(ctx), 0);
	close(memory);
}
