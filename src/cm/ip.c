/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses in private data and services as port numbers (IBTA A11). */
#include <string.h>

#include "cm/state.h"

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

bool ip_is_ipv4(const uint8_t *ip)
{
	return !memcmp(ip, mapped, sizeof(mapped));
}

bool ip_is_loopback(const uint8_t *ip)
{
	static const uint8_t one[16] = {[15] = 1};

	return ip_is_ipv4(ip) ? ip[12] == 127 : !memcmp(ip, one, sizeof(one));
}

/* On the wire an IPv4 address has zeros before it. */
static void to_wire(uint8_t *to, const uint8_t *ip)
{
	memcpy(to, ip, 16);
	if (ip_is_ipv4(ip))
		memset(to, 0, sizeof(mapped));
}

static bool from_wire(uint8_t *to, const uint8_t *from, uint8_t ip_version)
{
	static const uint8_t zeros[12];

	memcpy(to, from, 16);
	if (ip_version == 6)
		return true;
	memcpy(to, mapped, sizeof(mapped));
	return ip_version == 4 && !memcmp(from, zeros, sizeof(zeros));
}

void ip_encode(uint8_t *private_data, const struct cm_id *id)
{
	struct cm_ip ip = {.ip_version = ip_is_ipv4(id->remote.ip) ? 4 : 6, .sport = id->local.port};

	to_wire(ip.src, id->local.ip);
	to_wire(ip.dst, id->remote.ip);
	cm_ip_encode(private_data, &ip);
}

static bool is_the_packets(const struct flow *in, const uint8_t *ip, const uint8_t gid[16])
{
	return !memcmp(ip, gid, 16) || (ip_is_loopback(ip) && !memcmp(in->src, in->dst, sizeof(in->src)));
}

bool ip_decode(const uint8_t *private_data, const struct flow *in, uint64_t service_id, struct cm_addr *local,
	       struct cm_addr *remote)
{
	struct cm_addr from = {.ifindex = in->ifindex}, to = {.ifindex = in->ifindex};
	struct cm_ip ip;

	cm_ip_decode(&ip, private_data);
	if (ip.version || !from_wire(from.ip, ip.src, ip.ip_version) || !from_wire(to.ip, ip.dst, ip.ip_version) ||
	    !is_the_packets(in, from.ip, in->src) || !is_the_packets(in, to.ip, in->dst))
		return false;
	from.family = to.family = ip.ip_version;
	from.port = ip.sport;
	to.port = (uint16_t)service_id;
	*local = to;
	*remote = from;
	return true;
}

void ip_asked(uint8_t ip[16], const uint8_t *private_data, const struct flow *in)
{
	struct cm_addr local, remote;
	bool says = ip_decode(private_data, in, 0, &local, &remote);

	memcpy(ip, says ? local.ip : in->dst, sizeof(local.ip));
}

uint64_t service_id_of(enum cm_space space, uint16_t port)
{
	return (uint64_t)space << 16 | port;
}

bool service_space(uint64_t service_id, enum cm_space *space)
{
	uint64_t s = service_id >> 16;

	if (s != CM_SPACE_TCP && s != CM_SPACE_UDP && s != CM_SPACE_IB)
		return false;
	*space = (enum cm_space)s;
	return true;
}
