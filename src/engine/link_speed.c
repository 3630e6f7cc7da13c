/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Uses an ioctl, not sysfs: a /sys that was mounted in another network namespace shows the
 * interfaces of that one.
 */
#include "engine/link_speed.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/net.h"

enum { MASK_WORDS_MAX = 3 * 127 }; /* of link modes, the most that the kernel's count can express */

static uint64_t ask(int fd, const char *interface)
{
	/* Masks follow the settings. */
	_Alignas(struct ethtool_link_settings)
		uint8_t room[sizeof(struct ethtool_link_settings) + MASK_WORDS_MAX * sizeof(uint32_t)] = {0};
	struct ethtool_link_settings *settings = (void *)room;
	struct ifreq request = {.ifr_data = (void *)room};
	int words;

	if (strlen(interface) >= sizeof(request.ifr_name))
		return 0;
	strcpy(request.ifr_name, interface);
	settings->cmd = ETHTOOL_GLINKSETTINGS;
	/*
	 * The first answer is a negative number: the words of masks for which the request must have
	 * room.
	 */
	if (ioctl(fd, SIOCETHTOOL, &request) < 0)
		return 0;
	words = -settings->link_mode_masks_nwords;
	if (words <= 0)
		return 0;
	memset(room, 0, sizeof(room));
	settings->cmd = ETHTOOL_GLINKSETTINGS;
	settings->link_mode_masks_nwords = (int8_t)words;
	if (ioctl(fd, SIOCETHTOOL, &request) < 0 || settings->speed == (uint32_t)SPEED_UNKNOWN)
		return 0;
	return (uint64_t)settings->speed * 1000000;
}

uint64_t link_speed_bps(const char *interface)
{
	int fd = net_socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint64_t bps;

	if (fd < 0)
		return 0;
	bps = ask(fd, interface);
	close(fd);
	return bps;
}

bool link_speed_is_made_up(const char *interface)
{
	struct ethtool_drvinfo driver = {.cmd = ETHTOOL_GDRVINFO};
	struct ifreq request = {.ifr_data = (void *)&driver};
	int fd = net_socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool known;

	if (fd < 0 || strlen(interface) >= sizeof(request.ifr_name)) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	strcpy(request.ifr_name, interface);
	known = !ioctl(fd, SIOCETHTOOL, &request);
	close(fd);
	return known && (!strcmp(driver.driver, "veth") || !strcmp(driver.driver, "tun"));
}
