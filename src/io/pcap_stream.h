/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What passes by TCP streams, as frames for a capture: LINKTYPE_RAW, with headers made up here. They begin and end as
 * on a wire, but are pieces as a program hands them to the kernel: its segments, acknowledgements and repeats are not
 * seen from here.
 *
 * Private to src/io.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pkt.h"

struct pcap_streams;

/* NULL: no memory. */
struct pcap_streams *pcap_streams_new(void);
void pcap_streams_free(struct pcap_streams *);

/*
 * The frames that a packet is, one after the other: each is handed to `frame` as its headers and what follows them.
 * Without memory for a new stream there are none of it.
 */
void pcap_streams_frames(struct pcap_streams *, const struct pkt *, bool received,
			 void (*frame)(void *ctx, const uint8_t *head, size_t head_len, const uint8_t *data,
				       size_t len),
			 void *ctx);
