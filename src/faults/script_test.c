/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>

#include "faults/script.h"
#include "support/test.h"
#include "wire/opcode.h"

static const struct fault_host one = {.devices = 1}, two = {.devices = 2, .iwarp = 2},
			       stream = {.devices = 1, .iwarp = 1};

static int read_text(struct fault_script *s, const char *text, const struct fault_host *host, char why[FAULT_WHY_BYTES])
{
	fault_script_init(s);
	return fault_script_read(s, "dir/file", text, strlen(text), false, host, why, FAULT_WHY_BYTES);
}

/* The rule of a text that has one. */
static struct fault_rule rule_of(const char *text)
{
	static struct fault_script s;
	char why[FAULT_WHY_BYTES];

	if (read_text(&s, text, &two, why))
		fail_msg("%s: %s", text, why);
	assert_int_equal(s.count, 1);
	return s.rules[0];
}

TEST(the_examples_of_the_manual_are_read)
{
	static const char text[] = "seed 7\n"
				   "at 2s        link down for 3s     # device: all\n"
				   "at 5s        gid ::ffff:10.0.0.1 move\n"
				   "after 1000 wr  qp any complete IBV_WC_RETRY_EXC_ERR\n"
				   "every 10s    peer 10.0.0.2 silent for 500ms\n"
				   "packet 3 of each qp out  drop\n"
				   "when opcode READ_REQUEST chance 0.1% in  drop\n"
				   "call ibv_create_qp 1000  fail ENOMEM\n"
				   "call ibv_post_send every 500  fail ENOMEM\n"
				   "at 8s        device fatal\n"
				   "at 9s        qp 3 hang\n"
				   "\n"
				   "after 1GB    rate 1Gbps";
	static struct fault_script s;
	char why[FAULT_WHY_BYTES] = "";

	assert_int_equal(read_text(&s, text, &one, why), 0);
	assert_int_equal(s.count, 11);
	assert_int_equal(s.seed, 7);
	assert_string_equal(s.rules[0].where, "file:2");
	assert_string_equal(s.rules[0].text, "at 2s link down for 3s");
	assert_string_equal(s.rules[10].where, "file:13");
}

TEST(words_become_rules)
{
	struct fault_rule r = rule_of("at 2s verbena0 link down for 3s");

	assert_int_equal(r.gate, GATE_AT);
	assert_int_equal(r.gate_at, 2000000000);
	assert_int_equal(r.event, ON_GATE);
	assert_int_equal(r.device, 0);
	assert_int_equal(r.for_ns, 3000000000);
	assert_int_equal(r.action, FAULT_LINK_DOWN);

	r = rule_of("after 1GB rate 1Gbps");
	assert_int_equal(r.gate, GATE_AFTER);
	assert_int_equal(r.unit, UNIT_BYTES);
	assert_int_equal(r.gate_at, 1000000000);
	assert_int_equal(r.rate_bps, 1000000000);

	r = rule_of("packet 3 of each qp out drop");
	assert_int_equal(r.event, ON_PACKET);
	assert_int_equal(r.nth, 3);
	assert_true(r.nth_per_qp);
	assert_int_equal(r.ways, FAULT_OUT);

	r = rule_of("when opcode READ_REQUEST and first and size above 100 chance 25% in drop");
	assert_int_equal(r.opcode, OP_RC_READ_REQUEST & 31);
	assert_true(r.first && r.has_chance);
	assert_int_equal(r.size_above, 100);
	assert_true(r.chance == 0.25);
	assert_int_equal(rule_of("when opcode UD_SEND_ONLY drop").opcode, OP_UD_SEND_ONLY | OPCODE_WHOLE);
	assert_int_equal(rule_of("when cm REJ drop").cm, 0x12);

	r = rule_of("qp 0x012345 when retransmitted swap");
	assert_int_equal(r.qps, FAULT_QP_NUMBER);
	assert_int_equal(r.qp, 0x12345);
	assert_true(r.again);

	r = rule_of("call ibv_post_send every 500 fail ENOMEM");
	assert_int_equal(r.event, ON_CALL);
	assert_int_equal(r.call, FAULT_CALL_post_send);
	assert_true(r.nth_again);
	assert_int_equal(r.nth, 500);
	assert_int_equal(r.value, ENOMEM);

	r = rule_of("wr 5 of qp 2 complete IBV_WC_REM_ACCESS_ERR");
	assert_int_equal(r.event, ON_WR);
	assert_int_equal(r.qps, FAULT_QP_NTH);
	assert_int_equal(r.value, 10);
	assert_int_equal(rule_of("after 7 wr fail EAGAIN").event, ON_WR);
	assert_int_equal(rule_of("at 1s qp any complete IBV_WC_GENERAL_ERR").event, ON_GATE);

	r = rule_of("gid 10.0.0.1 remove for 1s");
	assert_int_equal(r.gid[11], 0xff);
	assert_int_equal(r.gid[12], 10);
	assert_int_equal(rule_of("every 10 packets in delay 2ms jitter 1ms").jitter_ns, 1000000);
}

TEST(what_is_wrong_is_said_with_its_line)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{"dropp", "dir/file:1: 'dropp': no such word; allowed are at, every, after"},
		{"seed 1\n\nat 2 drop", "dir/file:3: '2': allowed is a time up to a day with its unit"},
		{"at 2s", "the action is missing: allowed are drop"},
		{"at", "the line ends where a time, as 500ms, is needed"},
		{"at 1s every 1s link up", "one of at, every and after"},
		{"after 5 cows drop", "allowed are wr, packets and bytes"},
		{"verbena2 link down", "'verbena2': no such device"},
		{"verbena_iw0 link down", "no such device"},
		{"qp 0 hang", "'0': allowed are any, each, a number from 1 on"},
		{"qp 99999999 hang", "allowed are any"},
		{"hang", "'hang' needs a queue pair: qp any, qp each, qp N or qp 0xNUMBER; or 'device hang'"},
		{"complete IBV_WC_RETRY_EXC_ERR", "'complete' needs a queue pair"},
		{"qp 1 complete IBV_WC_SUCCESS", "no such status of an error; allowed are IBV_WC_LOC_LEN_ERR"},
		{"silent", "'silent' needs a peer: peer ADDRESS"},
		{"peer 10.0.0.300 silent", "'10.0.0.300': allowed are IPv4 and IPv6 addresses"},
		{"call ibv_fly fail ENOMEM", "'ibv_fly': no such call; allowed are ibv_alloc_pd"},
		{"call ibv_reg_mr drop", "not for two of them"},
		{"call ibv_reg_mr fail EWHAT", "'EWHAT': no such errno; allowed are ENOMEM"},
		{"when opcode FLY drop", "'FLY': no such opcode"},
		{"when raining drop", "behind 'when': allowed are opcode NAME"},
		{"when size 5 drop", "allowed are 'above N' and 'below N'"},
		{"packet 0 drop", "a whole number from 1 on"},
		{"packet 3 of verbena0 drop", "behind 'of': allowed are"},
		{"chance 2 drop", "allowed is a probability"},
		{"at 1s each link down", "need packets, work requests or calls"},
		{"drop corrupt", "a rule has one action"},
		{"qp 1 error for 1s", "'error' has no end"},
		{"link sideways", "behind 'link': allowed are down and up"},
		{"gid 10.0.0.1 paint", "allowed are move, remove and add"},
		{"in link down", "'in' and 'out' are for packets"},
		{"peer 10.0.0.1 link down", "'peer' is for packets and for 'silent'"},
		{"qp 1 rate 1Gbps", "'rate' is the device's"},
		{"link down for 0s", "longer than that"},
		{"seed x", "an unsigned 64-bit integer"},
		{"seed 1 2", "nothing is allowed behind the seed"},
	};
	static struct fault_script s;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char why[FAULT_WHY_BYTES] = "";

		assert_int_equal(read_text(&s, rows[i].text, &one, why), -EINVAL);
		if (!strstr(why, rows[i].says))
			fail_msg("%s: \"%s\" does not say \"%s\"", rows[i].text, why, rows[i].says);
		assert_int_equal(s.count, 0);
	}
}

TEST(streams_have_no_packets_to_spoil)
{
	static const char *const good[] = {"link down for 1s", "qp 1 error", "wr 3 qp 1 complete IBV_WC_GENERAL_ERR",
					   "call ibv_reg_mr fail ENOMEM", "device fatal"};
	static const char *const bad[] = {"packet 3 drop", "rate 1Gbps", "peer 10.0.0.1 silent", "qp 1 hang",
					  "after 1GB link down"};
	static struct fault_script s;
	char why[FAULT_WHY_BYTES];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_int_equal(read_text(&s, good[i], &stream, why), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(read_text(&s, bad[i], &stream, why), -EINVAL);
		assert_non_null(strstr(why, "packets of iWARP are the kernel's"));
		assert_int_equal(read_text(&s, bad[i], &two, why), 0);
	}
}

TEST(there_is_a_bound_of_rules_and_of_line_lengths)
{
	static struct fault_script s;
	static char text[FAULT_SCRIPT_BYTES_MAX];
	char why[FAULT_WHY_BYTES];

	for (int i = 0; i < FAULT_RULES_MAX; i++)
		strcat(text, "link up\n");
	assert_int_equal(read_text(&s, text, &one, why), 0);
	strcat(text, "link up\n");
	assert_int_equal(read_text(&s, text, &one, why), -EINVAL);
	assert_non_null(strstr(why, "file:65: more than 64 rules"));
	memset(text, 'x', 200);
	text[200] = 0;
	assert_int_equal(read_text(&s, text, &one, why), -EINVAL);
	assert_non_null(strstr(why, "200 bytes; at most 119"));
}
