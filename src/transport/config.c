/* SPDX-License-Identifier: BSD-2-Clause */
/* The defaults of settings that a nic's owner leaves at 0. */
#include "transport/config.h"

#include <string.h>

#include "base/pkt.h"
#include "transport/qp.h"
#include "transport/veroce/engine.h"
#include "wire/encap.h"

enum { CNP_INTERVAL_NS = 50000 }; /* the DCQCN paper's */

static void rocev2_settle(struct rocev2_config *c, const struct cc_params *params)
{
	if (!c->port)
		c->port = encaps[ENCAP_ROCEV2_IPV4].udp_port;
	if (!c->ackreq_packets || c->ackreq_packets > QP_ACKREQ_PACKETS)
		c->ackreq_packets = QP_ACKREQ_PACKETS;
	if (!c->cnp_interval_ns)
		c->cnp_interval_ns = params ? cc_params_cnp_gap_ns(params) : CNP_INTERVAL_NS;
}

void transport_config_settle(struct transport_config *c)
{
	if (!c->paths || c->paths > PATHS_MAX)
		c->paths = c->paths ? PATHS_MAX : 1;
	if (!c->train_max || c->train_max > PKT_TRAIN_MAX)
		c->train_max = PKT_TRAIN_MAX;
	rocev2_settle(&c->rocev2, c->cc.params);
	if (c->protocol == PROTOCOL_ROCEV1) {
		c->rocev2.port = 0;
		c->rocev2.only_bytes = 0; /* each packet is a frame of its own, whatever its length */
		memset(c->sport_ipv4, 0, sizeof(c->sport_ipv4));
		memset(c->sport_ipv6, 0, sizeof(c->sport_ipv6));
	}
	veroce_settle(&c->veroce, c->window_bytes);
}
