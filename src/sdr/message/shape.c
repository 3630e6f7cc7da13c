/* SPDX-License-Identifier: BSD-2-Clause */
/* The limits of an SDR connection. */
#include "sdr/message/shape.h"

static bool power_of_two(uint64_t v)
{
	return v && !(v & (v - 1));
}

static bool sizes_valid(const struct shape *s)
{
	return power_of_two(s->mtu) && s->mtu >= SHAPE_MTU_MIN && s->mtu <= SHAPE_MTU_MAX &&
	       power_of_two(s->chunk_bytes) && s->chunk_bytes >= s->mtu &&
	       s->chunk_bytes <= s->mtu * SHAPE_CHUNK_PACKETS_MAX && power_of_two(s->message_bytes) &&
	       s->message_bytes >= s->chunk_bytes;
}

bool shape_valid(const struct shape *s)
{
	return imm_split_valid(s->split) && sizes_valid(s) && power_of_two(s->slots) &&
	       s->slots <= UINT32_C(1) << s->split.id_bits &&
	       s->message_bytes / s->mtu <= UINT64_C(1) << s->split.offset_bits && s->generations >= 1 &&
	       s->generations <= SHAPE_GENERATIONS_MAX && s->channels >= 1 && s->channels <= SHAPE_CHANNELS_MAX;
}
