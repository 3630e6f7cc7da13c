/* SPDX-License-Identifier: BSD-2-Clause */
/* Subnet management packets and their attributes: offsets as libibmad reads them, and round trips of any bytes. */

#include "base/prng.h"
#include "support/test.h"
#include "wire/smi.h"
#include "wire/smp.h"

/* Asked over two hops, by ports 1 and 3, and answered: on the way back, where the pointer is at the last hop. */
TEST(a_directed_route_smp_decodes)
{
	uint8_t in[MAD_LEN] = {1,           0x81,        1,         0x81, 0x80, 0x1c, 2,           2,
			       0,           0,           0,         1,    0x89, 0xab, 0xcd,        0xef,
			       0,           0x15,        0,         0,    0,    0,    0,           7,
			       [24] = 0x11, [31] = 0x22, 0xff,      0xff, 0x12, 0x34, [64] = 0xd0, [127] = 0xd1,
			       [129] = 1,   3,           [193] = 2, 4};
	uint8_t out[MAD_LEN];
	struct smp s;

	smp_decode(&s, in);
	assert_int_equal(s.mad.mgmt_class, SMP_CLASS_DIRECTED);
	assert_int_equal(s.mad.method, MAD_METHOD_GET_RESP);
	assert_true(s.d);
	assert_int_equal(s.mad.status, MAD_STATUS_BAD_VALUE);
	assert_int_equal(s.hop_pointer, 2);
	assert_int_equal(s.hop_count, 2);
	assert_true(s.mad.tid == UINT64_C(0x0000000189abcdef));
	assert_int_equal(s.mad.attribute, SMP_PORT_INFO);
	assert_int_equal(s.mad.modifier, 7);
	assert_true(s.mkey == UINT64_C(0x1100000000000022));
	assert_int_equal(s.dr_slid, 0xffff);
	assert_int_equal(s.dr_dlid, 0x1234);
	assert_true(s.data[0] == 0xd0 && s.data[63] == 0xd1);
	assert_true(s.initial[1] == 1 && s.initial[2] == 3 && s.back[1] == 2 && s.back[2] == 4);
	smp_encode(out, &s);
	assert_memory_equal(out, in, sizeof(in));
}

TEST(node_info_decodes)
{
	static const uint8_t in[SMP_DATA_LEN] = {0x01, 0x01, 0x02, 0x04, 0x00, 0x02, 0xc9, 0x03, 0x00, 0x00,
						 0x00, 0x10, 0x00, 0x02, 0xc9, 0x03, 0x00, 0x00, 0x00, 0x11,
						 0x00, 0x02, 0xc9, 0x03, 0x00, 0x00, 0x00, 0x12, 0x00, 0x08,
						 0x12, 0x34, 0x00, 0x00, 0x00, 0x01, 0x03, 0x00, 0x02, 0xc9};
	uint8_t out[SMP_DATA_LEN];
	struct node_info n;

	node_info_decode(&n, in);
	assert_int_equal(n.type, NODE_SWITCH);
	assert_int_equal(n.ports, 4);
	assert_true(n.system_guid == UINT64_C(0x0002c90300000010));
	assert_true(n.node_guid == UINT64_C(0x0002c90300000011));
	assert_true(n.port_guid == UINT64_C(0x0002c90300000012));
	assert_int_equal(n.partition_cap, 8);
	assert_int_equal(n.device_id, 0x1234);
	assert_int_equal(n.revision, 1);
	assert_int_equal(n.local_port, 3);
	assert_int_equal(n.vendor_id, 0x0002c9);
	node_info_encode(out, &n);
	assert_memory_equal(out, in, sizeof(in));
}

TEST(port_info_decodes)
{
	static const uint8_t in[SMP_DATA_LEN] = {
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0xfe, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x05, 0x00, 0x01, 0x02, 0x51, 0x48, 0x68, 0x00, 0x00, 0x00, 0x00, 0x01, 0x03, 0x03, 0x02,
		0x14, 0x52, 0x00, 0x11, 0x40, 0x20, 0x04, 0x08, 0x08, 0x04, 0x13, 0x40, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x20, 0x12, 0x12, 0x88, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};
	uint8_t out[SMP_DATA_LEN];
	struct port_info i;

	port_info_decode(&i, in);
	assert_true(i.mkey == 1 && i.gid_prefix == UINT64_C(0xfe80000000000000));
	assert_true(i.lid == 5 && i.sm_lid == 1 && i.capabilities == 0x02514868 && i.local_port == 1);
	assert_true(i.width_enabled == 3 && i.width_supported == 3 && i.width_active == 2);
	assert_true(i.speed_supported == 1 && i.state == PORT_ACTIVE);
	assert_true(i.phys_state == PORT_PHYS_LINK_UP && i.down_default == PORT_PHYS_POLLING);
	assert_true(i.speed_active == 1 && i.speed_enabled == 1 && i.neighbor_mtu == 4 && i.sm_sl == 0);
	assert_true(i.vl_cap == 2 && i.vl_high_limit == 4 && i.vl_arb_high_cap == 8 && i.vl_arb_low_cap == 8);
	assert_true(i.mtu_cap == 4 && i.stall_count == 0 && i.hoq_life == 0x13 && i.operational_vls == 4);
	assert_true(i.guid_cap == 0x20 && i.subnet_timeout == 0x12 && i.response_time == 0x12);
	assert_true(i.phy_errors == 8 && i.overrun_errors == 8);
	port_info_encode(out, &i);
	assert_memory_equal(out, in, sizeof(in));
}

/* Fields that share a byte do not run into each other: all but reserved bits of any bytes come back. */
TEST(attributes_round_trip)
{
	struct prng r;

	prng_init(&r, 11);
	for (int i = 0; i < 1000; i++) {
		uint8_t in[SMP_DATA_LEN], copy[SMP_DATA_LEN], out[SMP_DATA_LEN];
		struct node_info n;
		struct switch_info s;
		struct port_info p;

		for (size_t k = 0; k < sizeof(in); k++)
			in[k] = (uint8_t)prng_next(&r);
		memcpy(copy, in, sizeof(copy));
		memset(copy + 40, 0, sizeof(copy) - 40);
		node_info_decode(&n, in);
		node_info_encode(out, &n);
		assert_memory_equal(out, copy, sizeof(out));
		memset(copy + 20, 0, sizeof(copy) - 20);
		copy[17] = 0;
		switch_info_decode(&s, in);
		switch_info_encode(out, &s);
		assert_memory_equal(out, copy, sizeof(out));
		memcpy(copy, in, sizeof(copy));
		copy[34] &= 0xc7;
		copy[52] &= 0x1f;
		copy[56] = 0;
		copy[63] &= 0x1f;
		port_info_decode(&p, in);
		port_info_encode(out, &p);
		assert_memory_equal(out, copy, sizeof(out));
	}
}
