/* SPDX-License-Identifier: BSD-2-Clause */
/* Contexts made from a copy of another one's descriptor: what they share, and which handle ends what. */
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pair.h"
#include "support/test.h"

static struct ibv_context *imported(struct ibv_context *ctx)
{
	struct ibv_context *copy = ibv_import_device(dup(ctx->cmd_fd));

	assert_non_null(copy);
	assert_ptr_equal(copy->device, ctx->device);
	assert_ptr_not_equal(copy, ctx);
	return copy;
}

static struct ibv_pd *imported_pd(struct ibv_context *copy, struct ibv_pd *pd)
{
	struct ibv_pd *its = ibv_import_pd(copy, pd->handle);

	assert_non_null(its);
	assert_ptr_equal(its->context, copy);
	assert_int_equal(its->handle, pd->handle);
	return its;
}

/* Side B's queue pair becomes one of the other context's. */
static void move_to(struct pair *p, struct ibv_context *copy, struct ibv_pd *pd)
{
	struct side *s = &p->side[B];
	struct ibv_qp_init_attr attr = {.cap = {8, 8, 1, 1, 0}, .qp_type = IBV_QPT_RC};

	assert_int_equal(ibv_destroy_qp(s->qp) + ibv_destroy_cq(s->cq), 0);
	s->cq = ibv_create_cq(copy, 8, NULL, NULL, 0);
	attr.send_cq = attr.recv_cq = s->cq;
	s->qp = ibv_create_qp(pd, &attr);
	assert_non_null(s->qp);
	pair_connect(p);
}

static enum ibv_wc_status write_by_b(struct pair *p, uint32_t lkey)
{
	struct ibv_sge sge = {(uintptr_t)p->side[B].buf, 4000, lkey};
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_RDMA_WRITE,
				       .send_flags = IBV_SEND_SIGNALED,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .wr.rdma = {(uintptr_t)p->side[A].buf, p->side[A].mr->rkey}};

	assert_int_equal(ibv_post_send(p->side[B].qp, &wr, &bad), 0);
	return wc_await(p->side[B].cq).status;
}

PAIR_TEST(a_queue_pair_of_one_context_writes_by_the_regions_of_another, .unconnected = true)
{
	struct ibv_context *copy = imported(p->ctx);
	struct ibv_pd *pd = imported_pd(copy, p->pd);
	struct ibv_mr *mr = ibv_import_mr(pd, p->side[B].mr->handle);

	assert_non_null(mr);
	assert_null(mr->addr);
	assert_ptr_equal(mr->pd, pd);
	assert_int_equal(mr->lkey, p->side[B].mr->lkey);
	assert_int_equal(mr->rkey, p->side[B].mr->rkey);
	assert_int_equal(mr->length, p->side[B].mr->length);
	move_to(p, copy, pd);
	pattern_fill(p->side[B].buf, 4000, 7);
	assert_int_equal(write_by_b(p, mr->lkey), IBV_WC_SUCCESS);
	pattern_check(p->side[A].buf, 4000, 7);
	ibv_unimport_mr(mr);
	assert_int_equal(write_by_b(p, p->side[B].mr->lkey), IBV_WC_SUCCESS); /* only the handle has gone */
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_dealloc_pd(p->pd), EBUSY);
	ibv_unimport_pd(pd);
	assert_int_equal(write_by_b(p, p->side[B].mr->lkey), IBV_WC_SUCCESS);
}

PAIR_TEST(a_region_ends_by_either_handle, .unconnected = true)
{
	struct ibv_context *copy = imported(p->ctx);
	struct ibv_pd *pd = imported_pd(copy, p->pd);
	static uint8_t mem[64];
	struct ibv_mr *mr = ibv_reg_mr(p->pd, mem, sizeof(mem), IBV_ACCESS_LOCAL_WRITE), *its, *third;
	uint32_t lkey = mr->lkey, handle = mr->handle;

	its = ibv_import_mr(pd, handle);
	third = ibv_import_mr(pd, handle);
	assert_true(its && third);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(ibv_dereg_mr(its), 0);
	assert_int_equal(ibv_dereg_mr(mr), ENOENT);
	assert_int_equal(ibv_dereg_mr(third), ENOENT);
	assert_null(ibv_import_mr(pd, handle));
	assert_int_equal(errno, ENOENT);
	move_to(p, copy, pd);
	assert_int_equal(write_by_b(p, lkey), IBV_WC_LOC_PROT_ERR);
	ibv_unimport_mr(mr);
	ibv_unimport_mr(third);
	ibv_unimport_pd(pd);
}

TEST(the_original_may_be_closed_first)
{
	struct ibv_context *ctx = device_open(), *copy = imported(ctx), *again;
	struct ibv_pd *pd = ibv_alloc_pd(ctx), *its = imported_pd(copy, pd);
	static uint8_t mem[64];
	struct ibv_mr *mr = ibv_reg_mr(pd, mem, sizeof(mem), 0), *shared = ibv_import_mr(its, mr->handle), *own;
	uint32_t handle = pd->handle;

	assert_non_null(shared);
	assert_int_equal(ibv_close_device(ctx), 0);
	assert_int_equal(ibv_dereg_mr(shared), ENOENT); /* a region is its maker's */
	ibv_unimport_mr(shared);
	own = ibv_reg_mr(its, mem, sizeof(mem), 0);
	assert_non_null(own);
	again = imported(copy);
	pd = ibv_import_pd(again, handle);
	assert_non_null(pd);
	assert_int_equal(ibv_dereg_mr(own) + ibv_dealloc_pd(its) + ibv_dealloc_pd(pd), 0);
	assert_null(ibv_import_pd(again, handle));
	assert_int_equal(errno, ENOENT);
	assert_int_equal(ibv_close_device(copy) + ibv_close_device(again), 0);
}

TEST(device_memory_goes_with_its_last_handle)
{
	struct ibv_context *ctx = device_open(), *copy = imported(ctx);
	struct ibv_alloc_dm_attr most = {.length = 4 << 20};
	struct ibv_dm *dm = ibv_alloc_dm(ctx, &most), *its;
	struct ibv_pd *pd = ibv_alloc_pd(copy);
	struct ibv_mr *mr;
	uint32_t word = 0x12345678, read = 0;

	assert_non_null(dm);
	its = ibv_import_dm(copy, dm->handle);
	assert_non_null(its);
	assert_ptr_equal(its->context, copy);
	mr = ibv_reg_dm_mr(pd, its, 0, 64, IBV_ACCESS_ZERO_BASED);
	assert_non_null(mr);
	assert_int_equal(ibv_memcpy_to_dm(dm, 8, &word, sizeof(word)) + ibv_free_dm(dm), 0);
	assert_int_equal(ibv_memcpy_from_dm(&read, its, 8, sizeof(read)), 0);
	assert_int_equal(read, word);
	assert_null(ibv_alloc_dm(ctx, &most));
	assert_int_equal(ibv_free_dm(its), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	ibv_unimport_dm(its);
	dm = ibv_alloc_dm(ctx, &most);
	assert_non_null(dm);
	assert_int_equal(ibv_free_dm(dm) + ibv_dealloc_pd(pd) + ibv_close_device(copy) + ibv_close_device(ctx), 0);
}

TEST(what_cannot_be_imported_says_why)
{
	struct ibv_context *ctx = device_open(), *stranger = device_open(), *copy = imported(ctx);
	struct ibv_pd *pd = ibv_alloc_pd(ctx), *second = ibv_alloc_pd(copy);
	static uint8_t mem[64];
	struct ibv_mr *mr = ibv_reg_mr(pd, mem, sizeof(mem), 0);
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0); /* as another process's is here */

#define REFUSED(call, err)                    \
	do {                                  \
		assert_null(call);            \
		assert_int_equal(errno, err); \
	} while (0)
	REFUSED(ibv_import_device(-1), EBADF);
	REFUSED(ibv_import_device(fd), EOPNOTSUPP);
	REFUSED(ibv_import_device(ctx->cmd_fd), EINVAL);
	REFUSED(ibv_import_pd(stranger, pd->handle), ENOENT);
	REFUSED(ibv_import_mr(second, mr->handle), EINVAL);
	REFUSED(ibv_import_mr(second, mr->handle + 1), ENOENT);
	REFUSED(ibv_import_dm(copy, 1), ENOENT);
	assert_true(fcntl(fd, F_GETFD) >= 0);
	close(fd);
	assert_int_equal(ibv_dereg_mr(mr) + ibv_dealloc_pd(pd) + ibv_dealloc_pd(second), 0);
	assert_int_equal(ibv_close_device(ctx) + ibv_close_device(stranger) + ibv_close_device(copy), 0);
}
