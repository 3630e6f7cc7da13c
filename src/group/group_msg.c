/* SPDX-License-Identifier: BSD-2-Clause */
/* Pure codec of the group's messages; group.c and group_join.c act on them. */
#include "group/group_msg.h"

#include <assert.h>
#include <string.h>

#include "base/byteorder.h"
#include "io/udp/udp.h"

enum {
	AT_VERSION = 2,
	AT_TYPE = 4,
	AT_LANE_COUNT = 5,
	AT_SLOT = 6,
	AT_FIRST = 8,
	AT_COUNT = 10,
	AT_HELD = 12,
	AT_LANE = 14,
	AT_LANES = 16,
	LANE_LEN = 4,
	AT_DIGEST = 48,
	DIGEST_LEN = 8
};

static_assert((int)AT_DIGEST == AT_LANES + (int)GROUP_LANES_MAX * LANE_LEN, "lanes, then the digest");
static_assert((int)GROUP_MSG_HEADER_LEN == AT_DIGEST + DIGEST_LEN, "the header ends with the digest");

static void flow_encode(uint8_t *p, const struct flow *f)
{
	memset(p, 0, GROUP_MSG_FLOW_LEN);
	memcpy(p, f->src, 16);
	memcpy(p + 16, f->dst, 16);
	put_be32(p + 32, f->flow_label);
	put_be32(p + 36, f->ifindex);
	put_be16(p + 40, f->sport);
	put_be16(p + 42, f->dport);
	p[44] = f->tos;
	p[45] = f->ttl;
}

static void flow_decode(struct flow *f, const uint8_t *p)
{
	memcpy(f->src, p, 16);
	memcpy(f->dst, p + 16, 16);
	f->flow_label = get_be32(p + 32);
	f->ifindex = get_be32(p + 36);
	f->sport = get_be16(p + 40);
	f->dport = get_be16(p + 42);
	f->tos = p[44];
	f->ttl = p[45];
}

size_t group_msg_encode(uint8_t *buf, const struct group_msg *m)
{
	assert(m->lane_count <= GROUP_LANES_MAX);
	memset(buf, 0, GROUP_MSG_HEADER_LEN);
	buf[0] = 'V';
	buf[1] = 'b';
	put_be16(buf + AT_VERSION, GROUP_MSG_VERSION);
	buf[AT_TYPE] = (uint8_t)m->type;
	buf[AT_LANE_COUNT] = m->lane_count;
	put_be16(buf + AT_SLOT, m->slot);
	put_be16(buf + AT_FIRST, m->first);
	put_be16(buf + AT_COUNT, m->count);
	put_be16(buf + AT_HELD, m->held);
	buf[AT_LANE] = m->lane;
	put_be64(buf + AT_DIGEST, m->digest);
	for (unsigned i = 0; i < m->lane_count; i++) {
		buf[AT_LANES + i * LANE_LEN] = m->lanes[i].family;
		put_be16(buf + AT_LANES + i * LANE_LEN + 2, m->lanes[i].port);
	}
	if (m->type != GROUP_FORWARD)
		return GROUP_MSG_HEADER_LEN;
	flow_encode(buf + GROUP_MSG_HEADER_LEN, &m->flow);
	return GROUP_MSG_HEADER_LEN + GROUP_MSG_FLOW_LEN;
}

size_t group_msg_fds(const struct group_msg *m)
{
	if (m->type == GROUP_FDS || m->type == GROUP_ADOPT)
		return m->count;
	if (m->type == GROUP_RING)
		return GROUP_RING_FDS;
	return m->type == GROUP_STAT_FD || m->type == GROUP_SHARE_FD || m->type == GROUP_QPS_FD ||
	       m->type == GROUP_MOVE;
}

static bool lanes_are_good(const struct group_msg *m)
{
	for (unsigned i = 0; i < m->lane_count; i++)
		if (m->lanes[i].family >= UDP_FAMILIES || m->lanes[i].port == 0)
			return false;
	return true;
}

enum group_msg_verdict group_msg_decode(struct group_msg *m, const uint8_t *buf, size_t len)
{
	if (len < AT_TYPE || buf[0] != 'V' || buf[1] != 'b')
		return GROUP_MSG_BAD;
	/* Those of another version may be shorter. */
	if (get_be16(buf + AT_VERSION) != GROUP_MSG_VERSION)
		return GROUP_MSG_OTHER_VERSION;
	if (len < GROUP_MSG_HEADER_LEN || buf[AT_TYPE] < GROUP_HELLO || buf[AT_TYPE] >= GROUP_MSG_TYPES_END ||
	    buf[AT_LANE_COUNT] > GROUP_LANES_MAX)
		return GROUP_MSG_BAD;

	memset(m, 0, sizeof(*m));
	m->type = buf[AT_TYPE];
	m->lane_count = buf[AT_LANE_COUNT];
	m->slot = get_be16(buf + AT_SLOT);
	m->first = get_be16(buf + AT_FIRST);
	m->count = get_be16(buf + AT_COUNT);
	m->held = get_be16(buf + AT_HELD);
	m->lane = buf[AT_LANE];
	m->digest = get_be64(buf + AT_DIGEST);
	for (unsigned i = 0; i < m->lane_count; i++) {
		m->lanes[i].family = buf[AT_LANES + i * LANE_LEN];
		m->lanes[i].port = get_be16(buf + AT_LANES + i * LANE_LEN + 2);
	}
	if (m->slot >= GROUP_SLOTS || m->first > GROUP_SOCKETS_MAX || m->held > GROUP_SOCKETS_MAX ||
	    m->count > GROUP_SOCKETS_MAX - m->first || group_msg_fds(m) > GROUP_MSG_FDS_MAX || !lanes_are_good(m))
		return GROUP_MSG_BAD;
	switch (m->type) {
	case GROUP_INFO: return m->lane_count ? GROUP_MSG_OK : GROUP_MSG_BAD;
	case GROUP_FDS:
	case GROUP_ADOPT: return m->lane < m->lane_count ? GROUP_MSG_OK : GROUP_MSG_BAD;
	case GROUP_FORWARD:
		if (len < GROUP_MSG_HEADER_LEN + GROUP_MSG_FLOW_LEN || len > GROUP_MSG_BYTES_MAX)
			return GROUP_MSG_BAD;
		flow_decode(&m->flow, buf + GROUP_MSG_HEADER_LEN);
		m->data = buf + GROUP_MSG_HEADER_LEN + GROUP_MSG_FLOW_LEN;
		m->data_len = (uint32_t)(len - GROUP_MSG_HEADER_LEN - GROUP_MSG_FLOW_LEN);
		return GROUP_MSG_OK;
	case GROUP_FAULT:
	case GROUP_FAULTED:
	case GROUP_FREEZE:
	case GROUP_MOVE:
		if (len > GROUP_MSG_HEADER_LEN + GROUP_MSG_TEXT_MAX)
			return GROUP_MSG_BAD;
		m->data = buf + GROUP_MSG_HEADER_LEN;
		m->data_len = (uint32_t)(len - GROUP_MSG_HEADER_LEN);
		return GROUP_MSG_OK;
	default: return GROUP_MSG_OK;
	}
}
