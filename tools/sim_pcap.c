/* SPDX-License-Identifier: BSD-2-Clause */
/* The capture file of a run, in pcap format with nanosecond time stamps: Ethernet frames, or InfiniBand's packets as
 * ERF records. */
#include "sim.h"

#include <errno.h>
#include <pcap/pcap.h>
#include <stdlib.h>
#include <string.h>

#include "sim/frame.h"
#include "sim/frame_ib.h"
#include "tool.h"

enum { SNAP_BYTES = 65535 };

#define PS_A_S  UINT64_C(1000000000000)
#define PS_A_NS UINT64_C(1000)

struct sim_pcap {
	char path[8192];
	pcap_t *pcap;
	pcap_dumper_t *dumper;
	bool fill, infiniband;
	uint8_t whole[SNAP_BYTES];
};

struct sim_pcap *sim_pcap_open(const char *folder, const char *name, bool fill, bool infiniband)
{
	struct sim_pcap *c = calloc(1, sizeof(*c));
	FILE *file;

	if (!c) {
		complain("out of memory");
		return NULL;
	}
	c->fill = fill;
	c->infiniband = infiniband;
	snprintf(c->path, sizeof(c->path), "%s%s%s", name[0] == '/' ? "" : folder, name[0] == '/' ? "" : "/", name);
	file = fopen(c->path, "we");
	if (!file)
		goto cannot;
	c->pcap = pcap_open_dead_with_tstamp_precision(infiniband ? DLT_ERF : DLT_EN10MB, SNAP_BYTES,
						       PCAP_TSTAMP_PRECISION_NANO);
	if (c->pcap)
		c->dumper = pcap_dump_fopen(c->pcap, file);
	if (c->dumper)
		return c;
	fclose(file);
	errno = ENOMEM;
cannot:
	complain("output.pcap: cannot write %.512s: %s", c->path, strerror(errno));
	if (c->pcap)
		pcap_close(c->pcap);
	free(c);
	return NULL;
}

void sim_pcap_frame(void *context, const uint8_t *frame, size_t bytes, uint32_t length, uint64_t time_ps)
{
	struct sim_pcap *c = context;
	struct pcap_pkthdr h = {0};

	h.ts.tv_sec = (time_t)(time_ps / PS_A_S);
	h.ts.tv_usec = (suseconds_t)(time_ps % PS_A_S / PS_A_NS); /* nanoseconds: the file's precision */
	h.caplen = (bpf_u_int32)bytes;
	h.len = length;
	if (c->fill && bytes < length && length <= SNAP_BYTES) {
		memcpy(c->whole, frame, bytes);
		if (c->infiniband)
			frame_ib_fill(c->whole, bytes, length);
		else
			frame_fill(c->whole, bytes, length);
		h.caplen = length;
		frame = c->whole;
	}
	pcap_dump((u_char *)c->dumper, &h, frame);
}

int sim_pcap_close(struct sim_pcap *c)
{
	bool good;

	if (!c)
		return 0;
	errno = 0;
	good = !pcap_dump_flush(c->dumper) && !ferror(pcap_dump_file(c->dumper));
	if (!good)
		complain("output.pcap: cannot write %.512s: %s", c->path, strerror(errno ? errno : EIO));
	pcap_dump_close(c->dumper);
	pcap_close(c->pcap);
	free(c);
	return good ? 0 : EXIT_OURS;
}
