/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/flow_golden.h"
#include "support/test.h"
#include "wire/encap.h"
#include "wire/grh.h"

TEST(a_flow_has_the_row_of_its_addresses)
{
	assert_ptr_equal(encap_of(&flow4), &encaps[ENCAP_ROCEV2_IPV4]);
	assert_ptr_equal(encap_of(&flow6), &encaps[ENCAP_ROCEV2_IPV6]);
}

static struct flow without_udp(const struct flow *f)
{
	struct flow v1 = *f;

	v1.sport = v1.dport = 0;
	return v1;
}

TEST(a_flow_without_ports_is_rocev1s)
{
	struct flow v4 = without_udp(&flow4), v6 = without_udp(&flow6);

	assert_ptr_equal(encap_of(&v4), &encaps[ENCAP_ROCEV1]);
	assert_ptr_equal(encap_of(&v6), &encaps[ENCAP_ROCEV1]);
}

/* IBTA 7.8.1: TClass, flow label and hop limit are masked, next header and payload length are not. */
TEST(the_grh_is_covered_but_for_what_routers_change)
{
	const struct encap *e = &encaps[ENCAP_ROCEV1];
	struct flow f = without_udp(&flow6);
	uint8_t grh[GRH_LEN], masked[ENCAP_HEAD_MAX];
	size_t n = e->masked_head(masked, &f, 1040), ones = 0;

	grh_from_flow(grh, &f, 1040);
	assert_int_equal(n, GRH_LEN);
	assert_int_equal(e->header_bytes, GRH_LEN);
	for (size_t at = 0; at < n; at++) {
		assert_int_equal(masked[at] & grh[at], grh[at]);
		ones += masked[at] != grh[at];
	}
	assert_int_equal(ones, 5);
	assert_int_equal(masked[6], 0x1b);
}

/* The masked bytes are those on the wire, or ones (IBTA A17.3.3). */
TEST(a_masked_head_is_the_head_on_the_wire_but_for_ones)
{
	for (int i = 0; i < ENCAP_ROCEV1; i++) {
		const struct encap *e = &encaps[i];
		const struct flow *f = e->hides_id ? &flow4 : &flow6;
		uint8_t head[ENCAP_HEAD_MAX], masked[ENCAP_HEAD_MAX];
		size_t n = ipudp_encode(head, f, 0, 1040), ones = 0;

		assert_int_equal(e->masked_head(masked, f, 1040), n);
		assert_int_equal(e->header_bytes, n);
		for (size_t at = 0; at < n; at++) {
			assert_int_equal(masked[at] & head[at], head[at]);
			ones += masked[at] != head[at];
		}
		/* TOS, TTL, two checksums; or all of the first word but the version, hop limit, checksum. */
		assert_int_equal(ones, e->hides_id ? 6 : 7);
	}
}

TEST(engines_have_ports_of_their_own)
{
	assert_int_equal(encaps[ENCAP_ROCEV2_IPV4].udp_port, 4791);
	assert_int_equal(encaps[ENCAP_ROCEV2_IPV6].udp_port, 4791);
	assert_int_equal(encaps[ENCAP_VEROCE_IPV4].udp_port, 4794);
	assert_int_equal(encaps[ENCAP_VEROCE_IPV6].udp_port, 4794);
}
