/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A wrapper that writes what passes through an io to a capture file: pcap with nanosecond time
 * stamps and LINKTYPE_RAW, IP and UDP headers made from the flow, with good checksums; or LINKTYPE_ETHERNET, with the
 * headers that a function knows; or TCP's as pcap_stream.h makes them.
 *
 * Wrapped around impair, it shows what the core received; inside it, what the network delivered.
 * Writing blocks as files do. When it fails, that is reported once, capture stops and traffic goes
 * on.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/io.h"

enum { PCAP_HEAD_MAX = 64 };

struct pcap_config {
	const char *file;             /* "%p" becomes the process id, "%%" a percent sign */
	struct io_counters *counters; /* *borrowed* */
	/*
	 * A UDP socket does not show a received packet's IPv4 identification. This function stores
	 * it and returns true if it can find it (from the ICRC); otherwise, or if it is NULL, 0 is
	 * written.
	 */
	bool (*ip_id)(void *ctx, const struct pkt *, uint16_t *id);
	/*
	 * What stands before that packet in its Ethernet frame: its length, at most PCAP_HEAD_MAX. NULL: packets are
	 * those of UDP.
	 */
	size_t (*head)(void *ctx, uint8_t *out, const struct pkt *);
	bool streams; /* packets are those of TCP streams; ip_id and head are not used */
	/* Called once, with a sentence that says why capture stopped. May be NULL. */
	void (*report)(void *ctx, const char *sentence);
	uint64_t (*wall_ns)(void *ctx); /* the time stamps, since 1970; NULL: the host's */
	void *ctx;
};

/*
 * Opens the file and *takes* lower on success. 0, or a negative errno with the reason in why: no
 * such folder, no permission, an unknown %-escape.
 */
int pcap_io_open(struct io **, struct io *lower, const struct pcap_config *, char *why, size_t why_bytes);
