/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/flow_golden.h"
#include "wire/encap.h"

static void a_flow_has_the_row_of_its_addresses(void **state)
{
	assert_ptr_equal(encap_of(&flow4), &encaps[ENCAP_ROCEV2_IPV4]);
	assert_ptr_equal(encap_of(&flow6), &encaps[ENCAP_ROCEV2_IPV6]);
}

/* The masked bytes are those on the wire, or ones (IBTA A17.3.3). */
static void a_masked_head_is_the_head_on_the_wire_but_for_ones(void **state)
{
	for (int i = 0; i < ENCAP_KINDS; i++) {
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

static void engines_have_ports_of_their_own(void **state)
{
	assert_int_equal(encaps[ENCAP_ROCEV2_IPV4].udp_port, 4791);
	assert_int_equal(encaps[ENCAP_ROCEV2_IPV6].udp_port, 4791);
	assert_int_equal(encaps[ENCAP_VEROCE_IPV4].udp_port, 4794);
	assert_int_equal(encaps[ENCAP_VEROCE_IPV6].udp_port, 4794);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_flow_has_the_row_of_its_addresses),
		cmocka_unit_test(a_masked_head_is_the_head_on_the_wire_but_for_ones),
		cmocka_unit_test(engines_have_ports_of_their_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
