/* SPDX-License-Identifier: BSD-2-Clause */
/* The codecs of connection management messages. */

#include "base/prng.h"
#include "support/test.h"
#include "wire/cm_dreq.h"
#include "wire/cm_golden.h"
#include "wire/cm_msg.h"
#include "wire/cm_rej.h"
#include "wire/cm_rep.h"
#include "wire/cm_req.h"
#include "wire/cm_sidr.h"
#include "wire/mad.h"

static const uint8_t client[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 99, [15] = 2};
static const uint8_t server[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 99, [15] = 3};

/* Every message that has golden bytes comes out of its codec as it went in. */
#define ENCODES_BACK(type, mad)                                                \
	do {                                                                   \
		uint8_t out[MAD_DATA_LEN];                                     \
		struct type again;                                             \
                                                                               \
		memset(out, 0xa5, sizeof(out));                                \
		type##_decode(&again, (mad) + MAD_HEADER_LEN);                 \
		type##_encode(out, &again);                                    \
		assert_memory_equal(out, (mad) + MAD_HEADER_LEN, sizeof(out)); \
	} while (0)

TEST(the_header_is_that_of_linux)
{
	uint8_t out[MAD_HEADER_LEN];
	struct mad h;

	mad_decode(&h, linux_req);
	assert_int_equal(h.base_version, MAD_BASE_VERSION);
	assert_int_equal(h.mgmt_class, CM_CLASS);
	assert_int_equal(h.class_version, CM_CLASS_VERSION);
	assert_int_equal(h.method, MAD_METHOD_SEND);
	assert_int_equal(h.status, 0);
	assert_int_equal(h.class_specific, 0);
	assert_true(h.tid == 0x00000002c5440b60);
	assert_int_equal(h.attribute, CM_REQ);
	assert_int_equal(h.modifier, 0);
	memset(out, 0xa5, sizeof(out));
	mad_encode(out, &h);
	assert_memory_equal(out, linux_req, sizeof(out));
}

TEST(the_header_has_every_field_in_its_place)
{
	static const uint8_t expect[MAD_HEADER_LEN] = {1,   2,   3,   4,    5,    6,    7, 8, 9,    0xa,  0xb,  0xc,
						       0xd, 0xe, 0xf, 0x10, 0x11, 0x12, 0, 0, 0x13, 0x14, 0x15, 0x16};
	struct mad h = {.base_version = 1,
			.mgmt_class = 2,
			.class_version = 3,
			.method = 4,
			.status = 0x0506,
			.class_specific = 0x0708,
			.tid = 0x090a0b0c0d0e0f10,
			.attribute = 0x1112,
			.modifier = 0x13141516};
	uint8_t out[MAD_HEADER_LEN];

	memset(out, 0xa5, sizeof(out));
	mad_encode(out, &h);
	assert_memory_equal(out, expect, sizeof(out));
}

TEST(req_is_that_of_linux)
{
	struct cm_req h;
	struct cm_ip ip;

	cm_req_decode(&h, linux_req + MAD_HEADER_LEN);
	assert_int_equal(h.local_comm_id, 0x600b44c5);
	assert_int_equal(h.vendor_id, 0);
	assert_true(h.service_id == 0x01061c06);
	assert_true(h.ca_guid == 0x009900fffe000002);
	assert_int_equal(h.qkey, 0);
	assert_int_equal(h.qpn, 0x11);
	assert_int_equal(h.responder_resources, 1);
	assert_int_equal(h.initiator_depth, 1);
	assert_int_equal(h.remote_cm_timeout, 20);
	assert_int_equal(h.transport, CM_TRANSPORT_RC);
	assert_false(h.flow_control);
	assert_int_equal(h.psn, 0x390497);
	assert_int_equal(h.local_cm_timeout, 20);
	assert_int_equal(h.retry_count, 7);
	assert_int_equal(h.pkey, 0xffff);
	assert_int_equal(h.mtu, 3);
	assert_int_equal(h.rnr_retry_count, 7);
	assert_int_equal(h.max_cm_retries, 15);
	assert_false(h.srq);
	assert_int_equal(h.primary.local_lid, 0xffff);
	assert_int_equal(h.primary.remote_lid, 0xffff);
	assert_memory_equal(h.primary.local_gid, client, 16);
	assert_memory_equal(h.primary.remote_gid, server, 16);
	assert_int_equal(h.primary.flow_label, 0x0b534);
	assert_int_equal(h.primary.rate, 0);
	assert_int_equal(h.primary.hop_limit, 64);
	assert_int_equal(h.primary.ack_timeout, 17);
	assert_false(h.primary.subnet_local);
	cm_ip_decode(&ip, h.private_data);
	assert_int_equal(ip.version, 0);
	assert_int_equal(ip.ip_version, 4);
	assert_int_equal(ip.sport, 0x8912);
	assert_memory_equal(ip.src, "\0\0\0\0\0\0\0\0\0\0\0\0\12\143\0\2", 16);
	assert_memory_equal(ip.dst, "\0\0\0\0\0\0\0\0\0\0\0\0\12\143\0\3", 16);
	ENCODES_BACK(cm_req, linux_req);
}

/* What Linux leaves zero: each field in turn all ones, and the bytes that this makes (IBTA 12.6.5). */
TEST(req_has_every_bit_field_in_its_place)
{
	static const struct {
		struct cm_req h;
		size_t at;
		uint8_t value;
	} row[] = {
		{{.vendor_id = 0xff0000}, 5, 0xff},
		{{.qkey = 0xff000000}, 28, 0xff},
		{{.local_eecn = 0xff0000}, 36, 0xff},
		{{.remote_eecn = 0xff0000}, 40, 0xff},
		{{.remote_cm_timeout = 0xff}, 43, 0xf8},
		{{.transport = 0xff}, 43, 0x06},
		{{.flow_control = true}, 43, 0x01},
		{{.local_cm_timeout = 0xff}, 47, 0xf8},
		{{.retry_count = 0xff}, 47, 0x07},
		{{.mtu = 0xff}, 50, 0xf0},
		{{.rdc_exists = true}, 50, 0x08},
		{{.rnr_retry_count = 0xff}, 50, 0x07},
		{{.max_cm_retries = 0xff}, 51, 0xf0},
		{{.srq = true}, 51, 0x08},
		{{.extended_transport = 0xff}, 51, 0x07},
		{{.primary.rate = 0xff}, 91, 0x3f},
		{{.primary.traffic_class = 0xff}, 92, 0xff},
		{{.primary.sl = 0xff}, 94, 0xf0},
		{{.primary.subnet_local = true}, 94, 0x08},
		{{.primary.ack_timeout = 0xff}, 95, 0xf8},
		{{.alternate.ack_timeout = 0xff}, 139, 0xf8},
		{{.private_data[0] = 0xff}, 140, 0xff},
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		uint8_t expect[MAD_DATA_LEN] = {0}, out[MAD_DATA_LEN];

		expect[row[i].at] = row[i].value;
		cm_req_encode(out, &row[i].h);
		assert_memory_equal(out, expect, sizeof(out));
	}
}

TEST(rep_is_that_of_linux)
{
	struct cm_rep h;

	cm_rep_decode(&h, linux_rep + MAD_HEADER_LEN);
	assert_int_equal(h.local_comm_id, 0xad4cd1c6);
	assert_int_equal(h.remote_comm_id, 0x600b44c5);
	assert_int_equal(h.qkey, 0);
	assert_int_equal(h.qpn, 0x11);
	assert_int_equal(h.vendor_id, 0);
	assert_int_equal(h.psn, 0x21eaa5);
	assert_int_equal(h.responder_resources, 1);
	assert_int_equal(h.initiator_depth, 1);
	assert_int_equal(h.target_ack_delay, 15);
	assert_int_equal(h.failover, 0);
	assert_false(h.flow_control);
	assert_int_equal(h.rnr_retry_count, 7);
	assert_false(h.srq);
	assert_true(h.ca_guid == 0x009900fffe000003);
	ENCODES_BACK(cm_rep, linux_rep);
}

TEST(rep_has_every_bit_field_in_its_place)
{
	static const struct {
		struct cm_rep h;
		size_t at;
		uint8_t value;
	} row[] = {
		{{.vendor_id = 0xff0000}, 15, 0xff},
		{{.vendor_id = 0xff00}, 19, 0xff},
		{{.vendor_id = 0xff}, 23, 0xff},
		{{.eecn = 0xff0000}, 16, 0xff},
		{{.failover = 0xff}, 26, 0x06},
		{{.flow_control = true}, 26, 0x01},
		{{.srq = true}, 27, 0x10},
		{{.target_ack_delay = 0xff}, 26, 0xf8},
		{{.rnr_retry_count = 0xff}, 27, 0xe0},
		{{.private_data[0] = 0xff}, 36, 0xff},
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		uint8_t expect[MAD_DATA_LEN] = {0}, out[MAD_DATA_LEN];

		expect[row[i].at] = row[i].value;
		cm_rep_encode(out, &row[i].h);
		assert_memory_equal(out, expect, sizeof(out));
	}
}

TEST(the_short_messages_are_those_of_linux)
{
	struct cm_rtu rtu;
	struct cm_rej rej;
	struct cm_dreq dreq;
	struct cm_drep drep;

	cm_rtu_decode(&rtu, linux_rtu + MAD_HEADER_LEN);
	assert_int_equal(rtu.local_comm_id, 0x600b44c5);
	assert_int_equal(rtu.remote_comm_id, 0xad4cd1c6);
	ENCODES_BACK(cm_rtu, linux_rtu);
	cm_rej_decode(&rej, linux_rej + MAD_HEADER_LEN);
	assert_int_equal(rej.local_comm_id, 0);
	assert_int_equal(rej.remote_comm_id, 0x610b44c5);
	assert_int_equal(rej.answered, CM_ANSWERED_REQ);
	assert_int_equal(rej.reason, CM_REJ_SERVICE_ID);
	ENCODES_BACK(cm_rej, linux_rej);
	cm_dreq_decode(&dreq, linux_dreq + MAD_HEADER_LEN);
	assert_int_equal(dreq.local_comm_id, 0x600b44c5);
	assert_int_equal(dreq.remote_comm_id, 0xad4cd1c6);
	assert_int_equal(dreq.remote_qpn, 0x11);
	ENCODES_BACK(cm_dreq, linux_dreq);
	cm_drep_decode(&drep, linux_drep + MAD_HEADER_LEN);
	assert_int_equal(drep.local_comm_id, 0xad4cd1c6);
	assert_int_equal(drep.remote_comm_id, 0x600b44c5);
	ENCODES_BACK(cm_drep, linux_drep);
}

/* Linux sends MRA only to a peer that repeats itself; worked out by hand from IBTA 12.6.6 and 12.6.7. */
TEST(mra_and_rej_have_every_field_in_its_place)
{
	uint8_t out[MAD_DATA_LEN], expect[MAD_DATA_LEN] = {1, 2, 3, 4, 5, 6, 7, 8, 0x40, 24 << 3, [10] = 9};
	struct cm_mra mra = {.local_comm_id = 0x01020304,
			     .remote_comm_id = 0x05060708,
			     .answered = CM_ANSWERED_REP,
			     .service_timeout = 24,
			     .private_data[0] = 9};
	struct cm_rej rej = {
		.answered = CM_ANSWERED_OTHER, .info_len = 72, .reason = 0x0102, .info[0] = 3, .private_data[0] = 4};

	cm_mra_encode(out, &mra);
	assert_memory_equal(out, expect, sizeof(out));
	memset(expect, 0, sizeof(expect));
	expect[8] = 0x80;
	expect[9] = 72 << 1;
	expect[10] = 1;
	expect[11] = 2;
	expect[12] = 3;
	expect[84] = 4;
	cm_rej_encode(out, &rej);
	assert_memory_equal(out, expect, sizeof(out));
}

TEST(sidr_is_that_of_linux)
{
	struct cm_sidr_req req;
	struct cm_sidr_rep rep;
	struct cm_ip ip;

	cm_sidr_req_decode(&req, linux_sidr_req + MAD_HEADER_LEN);
	assert_int_equal(req.request_id, 0x620b44c5);
	assert_int_equal(req.pkey, 0xffff);
	assert_true(req.service_id == 0x01111c06);
	cm_ip_decode(&ip, req.private_data);
	assert_int_equal(ip.ip_version, 4);
	assert_int_equal(ip.sport, 0xb9de);
	ENCODES_BACK(cm_sidr_req, linux_sidr_req);
	cm_sidr_rep_decode(&rep, linux_sidr_rep + MAD_HEADER_LEN);
	assert_int_equal(rep.request_id, 0x620b44c5);
	assert_int_equal(rep.status, CM_SIDR_SUCCESS);
	assert_int_equal(rep.qpn, 0x12);
	assert_true(rep.service_id == 0x01111c06);
	assert_int_equal(rep.qkey, 0x01234567);
	ENCODES_BACK(cm_sidr_rep, linux_sidr_rep);
	cm_sidr_rep_decode(&rep, linux_sidr_refusal + MAD_HEADER_LEN);
	assert_int_equal(rep.status, CM_SIDR_UNSUPPORTED);
	ENCODES_BACK(cm_sidr_rep, linux_sidr_refusal);
}

TEST(sidr_rep_has_its_vendor_id_in_two_pieces)
{
	struct cm_sidr_rep h = {.vendor_id = 0x010203, .info_len = 4, .info[0] = 5, .private_data[0] = 6};
	uint8_t out[MAD_DATA_LEN], expect[MAD_DATA_LEN] = {[5] = 4, [6] = 1, [7] = 2, [11] = 3, [24] = 5, [96] = 6};

	cm_sidr_rep_encode(out, &h);
	assert_memory_equal(out, expect, sizeof(out));
	cm_sidr_rep_decode(&h, out);
	assert_int_equal(h.vendor_id, 0x010203);
}

TEST(the_ip_header_comes_back)
{
	struct prng rng;

	prng_init(&rng, 1);
	for (int i = 0; i < 100; i++) {
		uint8_t in[CM_IP_LEN], out[CM_IP_LEN];
		struct cm_ip h;

		for (size_t k = 0; k < sizeof(in); k++)
			in[k] = (uint8_t)prng_next(&rng);
		in[1] &= 0xf0;
		cm_ip_decode(&h, in);
		memset(out, 0xa5, sizeof(out));
		cm_ip_encode(out, &h);
		assert_memory_equal(out, in, sizeof(in));
	}
}
