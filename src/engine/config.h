/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Settings: VERBENA_<KEY> in the environment, or `key = value` in the file that VERBENA_CONFIG
 * names. The environment wins. An unknown key or bad value is an error that names the key, the value
 * and what is allowed.
 */
#ifndef ENGINE_CONFIG_H
#define ENGINE_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include "engine/cc_setting.h"
#include "nic/nic.h"

struct config {
	char pcap[4096];     /* capture file, %p is the PID; empty: none */
	char impair[512];    /* spec of io/impair.h; empty: none */
	char interfaces[512]; /* comma list; empty: every one that is up */
	uint32_t window_bytes; /* 0: auto, from the size of the receive buffers */
	uint32_t ack_delay_us;
	uint16_t port;       /* UDP port of RoCEv2, by default 4791 */
	uint16_t veroce_port; /* never `port` */
	uint32_t veroce_paths; /* UDP source ports, 1 .. PATHS_MAX */
	enum protocol protocol;
	struct cc_setting cc;
	uint64_t line_rate_bps; /* 0: auto, what the interfaces say */
	enum veroce_loss loss;
	uint32_t rx_window;  /* packets, a power of two */
	enum rx_order order;
	unsigned fence_indicator; /* 0 or 1 */
	enum veroce_reth_base reth_base;
	unsigned trim;         /* 0 or 1 */
	uint32_t patience_ms; /* how long a silent but living peer process of this host is kept */
	unsigned seal;         /* 0 or 1 */
	uint32_t spin_us;    /* how long the engine thread spins after traffic before it blocks */
};

/* 0, or -EINVAL with a sentence in err. Reads the environment and perhaps one file. */
int config_load(struct config *, char *err, size_t err_bytes);

/* One line a key: name, default, meaning; for `verbena` help and the man page. */
const char *config_help(void);

#endif
