/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any text as names and values: a refusal changes nothing, and accepted values make a block that
 * works. The first byte chooses the algorithm, then words up to a space or NUL each: "name=value"
 * is set, any other is taken for a preset.
 */
#include <string.h>

#include "cc/params.h"
#include "support/fuzz_input.h"

static void word(struct cc_params *p, char *text)
{
	struct cc_params before = *p;
	char *value = strchr(text, '=');
	int r;

	if (value) {
		*value++ = 0;
		r = cc_params_set(p, text, value);
		must(r || cc_param_find(p->algorithm, text));
	} else {
		r = cc_params_preset(p, text);
	}
	must(r <= 0 && p->algorithm == before.algorithm);
	if (r)
		must(!memcmp(p, &before, sizeof(before)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cc_config config;
	struct cc_params p;
	size_t at = 1;
	struct cc c;

	if (!size)
		return 0;
	cc_params_default(&p, (enum cc_algorithm)(data[0] % CC_ALGORITHMS));
	while (at < size) {
		char text[80];
		size_t len = 0;

		while (at < size && data[at] && data[at] != ' ' && len < sizeof(text) - 1)
			text[len++] = (char)data[at++];
		text[len] = 0;
		at++;
		word(&p, text);
	}
	memset(&config, 0, sizeof(config));
	config.line_rate_bps = UINT64_C(100000000000);
	config.base_rtt_ns = 12000;
	config.params = &p;
	cc_init(&c, p.algorithm, &config, 0);
	for (uint64_t now_ns = 0; now_ns < 1000000; now_ns += 10000) {
		cc_on_sent(&c, now_ns, now_ns, 1024);
		cc_on_ack(&c, now_ns,
			  &(struct cc_ack){.acked_bytes = 1024,
					   .acked_packets = 1,
					   .ack_seq = now_ns,
					   .snd_nxt = now_ns + 1024,
					   .ecn_packets = 1,
					   .rtt_ns = 20000});
		cc_on_cnp(&c, now_ns);
		cc_on_rtt(&c, now_ns, 20000);
		cc_on_timer(&c, now_ns);
		must(c.rate_bps > 0 && c.cwnd_bytes > 0 && c.cwnd_bytes <= CC_CWND_BYTES_LIMIT);
	}
	return 0;
}
