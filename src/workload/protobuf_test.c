/* SPDX-License-Identifier: BSD-2-Clause */
/* The wire format, by the examples of its documentation (protobuf.dev, Encoding) and by what is cut off. */
#include "support/test.h"
#include "workload/protobuf.h"

static struct protobuf of(const uint8_t *bytes, size_t size)
{
	return (struct protobuf){bytes, bytes + size};
}

#define OF(...) of((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

TEST(varints_are_base_128)
{
	struct protobuf p = OF(0x96, 0x01);
	uint64_t v;

	assert_true(protobuf_varint(&p, &v));
	assert_int_equal(v, 150);
	p = OF(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01);
	assert_true(protobuf_varint(&p, &v));
	assert_true(v == UINT64_MAX);
	p = OF(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02);
	assert_false(protobuf_varint(&p, &v));
	p = OF(0x80, 0x80);
	assert_false(protobuf_varint(&p, &v));
}

TEST(fields_have_a_number_and_a_wire_type)
{
	/* a = 150; b = "testing"; fixed32 1; fixed64 2 */
	struct protobuf p = OF(0x08, 0x96, 0x01, 0x12, 0x07, 't', 'e', 's', 't', 'i', 'n', 'g', 0x1d, 1, 0, 0, 0, 0x21,
			       2, 0, 0, 0, 0, 0, 0, 0);
	struct protobuf_field f;

	assert_int_equal(protobuf_next(&p, &f), PROTOBUF_FIELD);
	assert_int_equal(f.number, 1);
	assert_int_equal(f.value, 150);
	assert_int_equal(protobuf_next(&p, &f), PROTOBUF_FIELD);
	assert_int_equal(f.number, 2);
	assert_int_equal(f.bytes.end - f.bytes.at, 7);
	assert_memory_equal(f.bytes.at, "testing", 7);
	assert_int_equal(protobuf_next(&p, &f), PROTOBUF_FIELD);
	assert_int_equal(f.wire, PROTOBUF_FIXED32);
	assert_int_equal(f.value, 1);
	assert_int_equal(protobuf_next(&p, &f), PROTOBUF_FIELD);
	assert_int_equal(f.wire, PROTOBUF_FIXED64);
	assert_int_equal(f.value, 2);
	assert_int_equal(protobuf_next(&p, &f), PROTOBUF_END);
}

TEST(what_does_not_end_is_bad)
{
	struct protobuf cases[] = {OF(0x08),
				   OF(0x12, 0x02, 'a'),
				   OF(0x1d, 1, 2, 3),
				   OF(0x21, 1, 2, 3, 4),
				   OF(0x00, 0x01),
				   OF(0x0b),
				   OF(0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01)};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct protobuf_field f;

		assert_int_equal(protobuf_next(&cases[i], &f), PROTOBUF_BAD);
	}
}
