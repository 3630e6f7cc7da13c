/* SPDX-License-Identifier: BSD-2-Clause */
/* The device, its port and tables: what they report, and how they refuse. */
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include "pair.h"
#include "support/test.h"

/* Exported, but declared in no installed header. */
int ibv_query_gid_type(struct ibv_context *, uint8_t port, unsigned int index, int *type);
const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

static struct ibv_context *ctx;

static int open_once(void **state)
{
	ctx = device_open();
	return 0;
}

static int close_once(void **state)
{
	return ibv_close_device(ctx);
}

TEST(the_list_names_one_device_that_outlives_it)
{
	int n = -1;
	struct ibv_device **list = ibv_get_device_list(&n);
	struct ibv_device *d;

	assert_int_equal(n, 1);
	assert_null(list[1]);
	d = list[0];
	ibv_free_device_list(list);
	assert_string_equal(ibv_get_device_name(d), "verbena0");
	assert_string_equal(d->dev_name, "uverbs0");
	assert_int_equal(d->node_type, IBV_NODE_CA);
	assert_int_equal(d->transport_type, IBV_TRANSPORT_IB);
	assert_true(ibv_get_device_guid(d) != 0);
	assert_ptr_equal(ctx->device, d);
	/* The pointer by which providers' libraries recognise their devices. */
	for (int i = 0; i < 128; i++)
		assert_int_equal(((const uint8_t *)(d + 1))[i], 0);
}

TEST(opening_what_is_no_device_fails)
{
	struct ibv_device other = {.name = "verbena0"};

	assert_null(ibv_open_device(&other));
	assert_int_equal(errno, ENODEV);
}

TEST(every_open_is_a_context_with_descriptors)
{
	struct ibv_context *other = device_open();

	assert_ptr_not_equal(other, ctx);
	assert_true(fcntl(other->cmd_fd, F_GETFD) >= 0);
	assert_true(fcntl(other->async_fd, F_GETFD) >= 0);
	assert_int_not_equal(other->async_fd, ctx->async_fd);
	assert_true(other->num_comp_vectors >= 1);
	assert_int_equal(ibv_close_device(other), 0);
}

TEST(the_device_tells_its_limits)
{
	struct ibv_device_attr a;
	struct ibv_device_attr_ex ex;
	struct ibv_query_device_ex_input input = {.comp_mask = 1};

	assert_int_equal(ibv_query_device(ctx, &a), 0);
	assert_true(a.max_qp > 0 && a.max_qp_wr > 0 && a.max_sge > 0 && a.max_cq > 0);
	assert_true(a.max_srq_wr > 0 && a.max_srq_sge > 0 && a.max_qp_rd_atom > 0);
	assert_int_equal(a.phys_port_cnt, 1);
	assert_int_equal(a.max_pkeys, 1);
	assert_int_equal(a.atomic_cap, IBV_ATOMIC_HCA);
	assert_true(a.node_guid == ibv_get_device_guid(ctx->device));
	assert_int_equal(a.device_cap_flags & (IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2A |
					       IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_XRC |
					       IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_SRQ_RESIZE),
			 IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS |
				 IBV_DEVICE_XRC | IBV_DEVICE_SRQ_RESIZE);
	assert_true(a.max_mw > 0);
	assert_int_equal(ibv_query_device_ex(ctx, NULL, &ex), 0);
	assert_memory_equal(&ex.orig_attr, &a, sizeof(a));
	/* IB_UVERBS_DEVICE_FLUSH_GLOBAL, FLUSH_PERSISTENT and ATOMIC_WRITE */
	assert_int_equal(ex.device_cap_flags_ex >> 32, 1 << 6 | 1 << 8);
	assert_int_equal((uint32_t)ex.device_cap_flags_ex, a.device_cap_flags);
	assert_int_equal(ex.hca_core_clock, 1000000);
	assert_int_equal(ibv_query_device_ex(ctx, &input, &ex), EINVAL);
}

TEST(attribute_structs_are_filled_to_the_size_given)
{
	struct verbs_context *v = verbs_get_ctx(ctx);
	uint8_t big[512], small[512];

	memset(big, 0xaa, sizeof(big));
	memset(small, 0xaa, sizeof(small));
	assert_int_equal(v->query_device_ex(ctx, NULL, (struct ibv_device_attr_ex *)big, 480), 0);
	for (int i = 400; i < 480; i++)
		assert_int_equal(big[i], 0);
	assert_int_equal(big[480], 0xaa);
	assert_int_equal(v->query_device_ex(ctx, NULL, (struct ibv_device_attr_ex *)small, 240), 0);
	assert_memory_equal(big, small, 240);
	assert_int_equal(small[240], 0xaa);
	assert_int_equal(v->query_device_ex(ctx, NULL, (struct ibv_device_attr_ex *)small, 100), EINVAL);

	for (size_t size = 48; size <= 56; size += 4) {
		memset(big, 0xaa, sizeof(big));
		assert_int_equal(v->query_port(ctx, PORT, (struct ibv_port_attr *)big, size), 0);
		assert_int_equal(big[size], 0xaa);
	}
	memset(big, 0xaa, sizeof(big));
	/* The symbol, which only knows the short struct. */
	assert_int_equal((ibv_query_port)(ctx, PORT, (struct _compat_ibv_port_attr *)big), 0);
	assert_int_equal(big[48], 0xaa);
}

TEST(the_port_is_an_active_ethernet_port)
{
	struct ibv_port_attr p;

	assert_int_equal(ibv_query_port(ctx, PORT, &p), 0);
	assert_int_equal(p.state, IBV_PORT_ACTIVE);
	assert_int_equal(p.phys_state, 5);
	assert_int_equal(p.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_int_equal(p.max_mtu, IBV_MTU_4096);
	assert_true(p.active_mtu >= IBV_MTU_256 && p.active_mtu <= p.max_mtu);
	assert_true(p.max_msg_sz >= 1u << 30);
	assert_int_equal(p.pkey_tbl_len, 1);
	assert_int_equal(p.lid, 0);
	assert_int_equal(p.port_cap_flags, IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS);
	assert_int_equal(ibv_query_port(ctx, 0, &p), EINVAL);
	assert_int_equal(ibv_query_port(ctx, 2, &p), EINVAL);
}

/* Of rdma-core 62 and later. NCCL looks for it in this way. */
TEST(the_port_has_a_speed)
{
	int (*query_port_speed)(struct ibv_context *, uint32_t port, uint64_t * speed);
	struct ibv_port_attr p;
	uint64_t speed = 0;

	*(void **)&query_port_speed = dlvsym(RTLD_DEFAULT, "ibv_query_port_speed", "IBVERBS_1.16");
	assert_non_null(query_port_speed);
	assert_int_equal(query_port_speed(ctx, PORT, &speed), 0);
	assert_int_equal(ibv_query_port(ctx, PORT, &p), 0);
	assert_int_equal(p.active_speed, 32); /* 25 Gb/s a lane */
	assert_int_equal(p.active_width, 2);  /* four */
	assert_int_equal(speed, 1000);        /* in 100 Mb/s */
	assert_int_equal(query_port_speed(ctx, 0, &speed), EINVAL);
	assert_int_equal(query_port_speed(ctx, 257, &speed), EINVAL);
}

TEST(the_ways_to_read_the_gid_table_agree)
{
	static const union ibv_gid none;
	struct ibv_gid_entry table[256], e;
	struct ibv_port_attr p;
	ssize_t n = ibv_query_gid_table(ctx, table, 256, 0), seen = 0;

	assert_true(n > 0);
	assert_int_equal(ibv_query_port(ctx, PORT, &p), 0);
	for (int i = 0; i < p.gid_tbl_len; i++) {
		union ibv_gid gid;
		int type;

		assert_int_equal(ibv_query_gid(ctx, PORT, i, &gid), 0);
		assert_int_equal(ibv_query_gid_type(ctx, PORT, (unsigned int)i, &type), 0);
		if (!memcmp(&gid, &none, sizeof(gid))) {
			assert_int_equal(type, 0);
			assert_int_equal(ibv_query_gid_ex(ctx, PORT, (uint32_t)i, &e, 0), ENODATA);
			continue;
		}
		assert_int_equal(type, 1);
		assert_int_equal(ibv_query_gid_ex(ctx, PORT, (uint32_t)i, &e, 0), 0);
		assert_int_equal(e.gid_type, IBV_GID_TYPE_ROCE_V2);
		assert_int_equal(e.gid_index, i);
		assert_int_equal(e.port_num, PORT);
		assert_true(e.ndev_ifindex > 0);
		assert_memory_equal(&e.gid, &gid, sizeof(gid));
		assert_memory_equal(&table[seen], &e, sizeof(e));
		seen++;
	}
	assert_int_equal(seen, n);
	assert_int_equal(ibv_query_gid(ctx, PORT, p.gid_tbl_len, &e.gid), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_query_gid(ctx, PORT, -1, &e.gid), -1);
	assert_int_equal(ibv_query_gid(ctx, 2, 0, &e.gid), -1);
	assert_int_equal(ibv_query_gid_ex(ctx, PORT, (uint32_t)p.gid_tbl_len, &e, 0), EINVAL);
	assert_int_equal(ibv_query_gid_ex(ctx, 2, 0, &e, 0), EINVAL);
	assert_int_equal(ibv_query_gid_ex(ctx, PORT, 0, &e, 1), EOPNOTSUPP);
	assert_int_equal(ibv_query_gid_table(ctx, table, (size_t)n - 1, 0), -EINVAL);
	assert_int_equal(ibv_query_gid_table(ctx, table, 256, 1), -EOPNOTSUPP);
}

TEST(there_is_one_pkey)
{
	__be16 pkey = 0;

	assert_int_equal(ibv_query_pkey(ctx, PORT, 0, &pkey), 0);
	assert_int_equal(pkey, 0xffff);
	assert_int_equal(ibv_query_pkey(ctx, PORT, 1, &pkey), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_query_pkey(ctx, 2, 0, &pkey), -1);
	assert_int_equal(ibv_get_pkey_index(ctx, PORT, 0xffff), 0);
	assert_int_equal(ibv_get_pkey_index(ctx, PORT, 0x1234), -1);
}

TEST(the_clock_runs)
{
	struct ibv_values_ex before = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK}, after = before;

	assert_int_equal(ibv_query_rt_values_ex(ctx, &before), 0);
	assert_int_equal(ibv_query_rt_values_ex(ctx, &after), 0);
	assert_int_equal(after.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
	assert_true(after.raw_clock.tv_sec > before.raw_clock.tv_sec ||
		    (after.raw_clock.tv_sec == before.raw_clock.tv_sec &&
		     after.raw_clock.tv_nsec >= before.raw_clock.tv_nsec));
}

TEST(sysfs_files_can_be_read_without_a_tree)
{
	char buf[64];

	assert_int_equal(ibv_get_sysfs_path()[0], '/');
	assert_int_equal(ibv_read_sysfs_file(ctx->device->ibdev_path, "board_id", buf, sizeof(buf)), 7);
	assert_string_equal(buf, "verbena");
	assert_int_equal(ibv_read_sysfs_file(ctx->device->ibdev_path, "nothing", buf, sizeof(buf)), -1);
	assert_int_equal(errno, ENOENT);
	assert_true(ibv_read_sysfs_file("/proc/sys/kernel", "ostype", buf, sizeof(buf)) == 5);
	assert_string_equal(buf, "Linux");
}

TEST(what_we_lack_says_so)
{
	struct ibv_wq_init_attr wq = {0};

#define LACKS_NULL(call)                             \
	do {                                         \
		errno = 0;                           \
		assert_null(call);                   \
		assert_int_equal(errno, EOPNOTSUPP); \
	} while (0)
	LACKS_NULL(ibv_create_wq(ctx, &wq));
}

TEST(fork_needs_no_help)
{
	assert_int_equal(ibv_fork_init(), 0);
	assert_int_equal(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
}

TEST(closing_takes_what_was_left_behind)
{
	static struct pair p; /* the structs remain the program's, and are still there at the end */

	pair_make(&p, (struct wishes){.with_srq = true});
	assert_int_equal(ibv_close_device(p.ctx), 0);
	for (int i = 0; i < SIDES; i++)
		free(p.side[i].buf);
}

TEST_PROGRAM(open_once, close_once)
