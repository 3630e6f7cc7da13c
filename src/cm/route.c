/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which process of the host a message is for that names no communication id of its receiver's. A conversation that goes
 * on has it before a listener: who has closed its listener still answers to the requests that it took in.
 */
#include <string.h>

#include "base/byteorder.h"
#include "base/siphash.h"
#include "cm/state.h"

uint64_t request_note(const struct flow *in, uint64_t guid, uint32_t comm_id)
{
	/* No secret: all processes need the same number, and a forged one only leads a message astray. */
	static const uint8_t key[16] = "a request's note";
	uint64_t h = siphash_u64(key, guid);

	h = siphash_u64(key, h ^ comm_id);
	h = siphash_u64(key, h ^ get_be64(in->src));
	h = siphash_u64(key, h ^ get_be64(in->src + 8));
	h = siphash_u64(key, h ^ get_be64(in->dst));
	return siphash_u64(key, h ^ get_be64(in->dst + 8));
}

static struct route_key key_of(const struct cm *cm, const struct flow *in, const struct mad *h, const uint8_t *msg)
{
	switch (h->class_version == CM_CLASS_VERSION ? h->attribute : 0) {
	case CM_REQ: return passive_route(cm, in, msg);
	case CM_REJ: return hangup_route(cm, in, msg);
	case CM_SIDR_REQ: return sidr_route(cm, in, msg);
	default: return (struct route_key){.known = true}; /* nothing that others should be asked about */
	}
}

/* Where nobody listens, somebody who has the address refuses. */
static int to_refuser(struct cm *cm, const struct flow *in, bool ours)
{
	int slot = ours ? REGISTRY_NOBODY : registry_owner(&cm->registry, in->dst);

	return slot == REGISTRY_NOBODY ? CM_NOWHERE : slot;
}

/* The listener that fits best, here or there. */
static int to_listener(struct cm *cm, const struct flow *in, const struct route_key *key)
{
	bool ours = !cm->bound || gid_index_of(cm, in->dst, 0) >= 0;
	struct cm_addr to = {.port = (uint16_t)key->service_id};
	int fit_here, fit_there, slot;
	enum cm_space space;

	if (!service_space(key->service_id, &space))
		return CM_HERE; /* refused by whoever looks at it */
	memcpy(to.ip, key->to, sizeof(to.ip));
	port_listener(cm, space, &to, &fit_here);
	if (!ours)
		fit_here = 0;
	slot = registry_listener(&cm->registry, space, in->dst, to.ip, to.port, &fit_there);
	if (fit_there > fit_here)
		return slot;
	return fit_here ? CM_HERE : to_refuser(cm, in, ours);
}

int cm_route(struct cm *cm, const struct flow *in, const uint8_t *mad, bool notes)
{
	struct route_key key;
	struct mad h;
	int slot;

	mad_decode(&h, mad);
	key = key_of(cm, in, &h, mad + MAD_HEADER_LEN);
	if (key.known)
		return CM_HERE;
	slot = notes ? registry_noted(&cm->registry, key.note) : REGISTRY_NOBODY;
	if (slot != REGISTRY_NOBODY && slot != (int)cm->slot)
		return slot;
	return key.service_id ? to_listener(cm, in, &key) : CM_HERE;
}

bool cm_is_gone(struct cm *cm, int slot)
{
	return registry_is_gone(&cm->registry, (uint32_t)slot);
}
