/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as a frame: what passes comes out as it went in, flow and tag included, and the packet lies within the
 * frame. What the seal makes of that packet, the check accepts.
 */
#include <stdlib.h>
#include <string.h>

#include "support/fuzz_input.h"
#include "wire/bth.h"
#include "wire/icrc.h"
#include "wire/rocev1.h"

static void seal_and_check(const struct flow *f, const uint8_t *data, uint32_t len)
{
	static struct icrc_ctx ctx;
	uint8_t *copy = malloc(len);
	struct pkt p = {.data = copy, .flow = f, .len = len, .ip_id = 9, .train = 1};
	uint16_t id;

	must(copy != NULL);
	memcpy(copy, data, len);
	icrc_seal(&ctx, &p, 0);
	must(icrc_check(&ctx, &p, 0, &id) && id == 0);
	copy[len - 1] ^= 1;
	must(!icrc_check(&ctx, &p, 0, &id));
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t head[ROCEV1_HEAD_LEN_MAX], mac[ROCEV1_MAC_LEN];
	struct rocev1_link link;
	struct flow f;
	uint32_t len;
	size_t at = rocev1_decode(&link, &f, &len, data, size);

	if (!at)
		return 0;
	must(at <= sizeof(head) && len <= size - at && !flow_has_udp(&f));
	must(rocev1_encode(head, &link, &f, len) == at);
	must(!memcmp(head, data, at));
	if (rocev1_mac_of_gid(mac, f.src))
		must((mac[0] ^ f.src[8]) == 2 && !memcmp(mac + 3, f.src + 13, 3));
	if (len >= BTH_LEN + ICRC_LEN && len <= 4096)
		seal_and_check(&f, data + at, len);
	return 0;
}
