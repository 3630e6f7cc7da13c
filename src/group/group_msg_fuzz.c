/* SPDX-License-Identifier: BSD-2-Clause */
/* A message that decodes is within bounds, and is the same when encoded and decoded again. */
#include <assert.h>
#include <string.h>

#include "group/group_msg.h"
#include "support/fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct group_msg m, again;
	uint8_t buf[GROUP_MSG_HEADER_LEN + GROUP_MSG_FLOW_LEN];

	if (group_msg_decode(&m, data, size) != GROUP_MSG_OK)
		return 0;
	assert(m.slot < GROUP_SLOTS && m.first + m.count <= GROUP_SOCKETS_MAX && m.held <= GROUP_SOCKETS_MAX);
	assert(m.lane_count <= GROUP_LANES_MAX && group_msg_fds(&m) <= GROUP_MSG_FDS_MAX);
	assert(m.data_len <= GROUP_FORWARD_BYTES_MAX);
	for (uint32_t i = 0; i < m.data_len; i++)
		(void)*(const volatile uint8_t *)&m.data[i];

	size_t len = group_msg_encode(buf, &m);

	assert(group_msg_decode(&again, buf, len) == GROUP_MSG_OK);
	again.data = m.data;
	again.data_len = m.data_len;
	assert(again.type == m.type && again.slot == m.slot && again.first == m.first && again.count == m.count &&
	       again.held == m.held && again.lane == m.lane && again.digest == m.digest &&
	       again.lane_count == m.lane_count);
	assert(memcmp(&again.flow, &m.flow, sizeof(m.flow)) == 0);
	return 0;
}
