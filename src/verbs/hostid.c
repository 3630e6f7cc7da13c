/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The node GUID is a hash of the machine's id and of its name, so containers made from one image
 * differ. The universal/local bit marks it as locally assigned (EUI-64).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/siphash.h"
#include "verbs/hostid.h"

static uint64_t fold(uint64_t hash, const char *text, size_t len)
{
	static const uint8_t key[16] = "verbena node id";

	for (size_t at = 0; at < len; at += sizeof(uint64_t)) {
		uint64_t word = 0;

		memcpy(&word, text + at, len - at < sizeof(word) ? len - at : sizeof(word));
		hash = siphash_u64(key, hash ^ word);
	}
	return hash;
}

/* EUI-64: assigned by nobody, and no group's. */
static uint64_t local(uint64_t guid)
{
	return (guid & ~(UINT64_C(1) << 56)) | UINT64_C(1) << 57;
}

uint64_t device_guid(uint64_t hostid, const char *given, unsigned device)
{
	if (given[0])
		return local(fold(hostid, given, strlen(given)));
	return (hostid & ~UINT64_C(0xff)) | ((hostid + device) & 0xff);
}

uint64_t hostid_guid(void)
{
	int saved = errno;
	char text[256] = "";
	uint64_t guid = 0;
	int fd = open("/etc/machine-id", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		ssize_t n = read(fd, text, sizeof(text));

		if (n > 0)
			guid = fold(guid, text, (size_t)n);
		close(fd);
	}
	memset(text, 0, sizeof(text));
	if (gethostname(text, sizeof(text) - 1) == 0)
		guid = fold(guid, text, strlen(text));
	errno = saved;
	return local(guid);
}
