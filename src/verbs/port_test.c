/* SPDX-License-Identifier: BSD-2-Clause */
/* How a port's state and speed are told, against Linux's ib_get_eth_speed(), rate_show() and rxe_query_port(). */
#include "support/test.h"
#include "verbs/port.h"

TEST(the_state_is_that_of_carrier_and_switch)
{
	struct engine_port p = {.active = true, .enabled = true};

	assert_int_equal(port_state(&p)->state, 4);
	assert_int_equal(port_state(&p)->phys_state, 5);
	assert_string_equal(port_state(&p)->state_text, "4: ACTIVE");
	p.active = false;
	assert_int_equal(port_state(&p)->state, 1);
	assert_int_equal(port_state(&p)->phys_state, 2);
	assert_string_equal(port_state(&p)->phys_state_text, "2: Polling");
	p.enabled = false;
	assert_int_equal(port_state(&p)->phys_state, 3);
	assert_string_equal(port_state(&p)->phys_state_text, "3: Disabled");
}

TEST(speeds_are_the_next_that_verbs_can_say)
{
	static const struct {
		uint64_t mbps;
		uint8_t speed, width;
		const char *text;
	} rows[] = {
		{0, 32, 2, "100 Gb/sec (4X EDR)"},       {10, 1, 1, "2.5 Gb/sec (1X SDR)"},
		{1000, 1, 1, "2.5 Gb/sec (1X SDR)"},     {2500, 8, 1, "10 Gb/sec (1X FDR10)"},
		{10000, 8, 1, "10 Gb/sec (1X FDR10)"},   {25000, 32, 1, "25 Gb/sec (1X EDR)"},
		{40000, 8, 2, "40 Gb/sec (4X FDR10)"},   {50000, 32, 16, "50 Gb/sec (2X EDR)"},
		{100000, 32, 2, "100 Gb/sec (4X EDR)"},  {200000, 64, 2, "200 Gb/sec (4X HDR)"},
		{400000, 128, 2, "400 Gb/sec (4X NDR)"}, {800000, 128, 2, "400 Gb/sec (4X NDR)"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct port_rate *r = port_rate(rows[i].mbps * 1000000);

		assert_int_equal(r->speed, rows[i].speed);
		assert_int_equal(r->width, rows[i].width);
		assert_string_equal(r->text, rows[i].text);
	}
}
