/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Settings: VERBENA_<KEY> in the environment, or `key = value` in the file that VERBENA_CONFIG
 * names. The environment wins. The file may have sections, one for each virtual device, by its name: the lines of the
 * device's own section win over those above all sections, and other sections are not this program's. An unknown key or
 * bad value is an error that names the key, the value and what is allowed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/cc_setting.h"
#include "engine/devices.h"
#include "engine/profile.h"
#include "faults/script.h"
#include "limits/limits.h"
#include "nic/nic.h"

struct config {
	char profile_name[4096]; /* of a shipped profile, or with a / of a file; empty: none */
	char pcap[4096];         /* capture file, %p is the PID; empty: none */
	char impair[512];        /* spec of impair_parse() (faults/script.h); empty: none */
	char faults[4096];       /* file with a script of faults; empty: none */
	bool spoils;             /* it has rules that need packets as a network has them */
	char interfaces[512];    /* comma list; empty: every one that is up */
	char map[4096];          /* file with the virtual GIDs of addresses (engine/map_file.h); empty: none */
	char address[512];       /* comma list of this host's addresses; empty: every one of those interfaces */
	bool shm;                /* packets to processes of this host go through memory, */
	uint32_t shm_bytes;      /* as far as so much of it goes; 0: SHM_BYTES_AUTO */
	struct cc_setting cc;
	bool iwarp_crc;                 /* false: only where the peer asks for CRCs */
	bool iwarp_markers;             /* asked of peers */
	char device[DEVICE_NAME_BYTES]; /* the name of a virtual device, the only one; empty: it is none */
	uint16_t pkeys[NIC_PKEYS_MAX];  /* its P_Key table; zeros behind the last: NIC_PKEY_DEFAULT alone, if all are */
	struct limits_config limits;    /* of all processes of each device */
	struct devices devices; /* that a program sees; one that speaks iWARP does so whatever transport.protocol is */
	uint32_t spin_us;       /* how long the engine thread spins after traffic before it blocks */
	/*
	 * The nic's settings, except for those that the engine finds out: source ports, cc, and the shortest timeouts.
	 * paths is the most there may be. 0: window_bytes follows from the receive buffers, cc.line_rate_bps from the
	 * interfaces' speed. veroce.port is never rocev2.port.
	 */
	struct transport_config transport;
	struct profile profile; /* of the device that it is like */
};

/*
 * RoCEv1 has no port. Its processes find each other as those of RoCEv2 do, by a UDP port of their own (group/group.h),
 * which nobody sends to: the one above RoCEv2's, or below at the upper end.
 */
uint16_t config_rocev1_port(const struct config *);

/*
 * Whether messages to processes of this host may be cut into longer packets than any path MTU (veroce_config.large).
 * Not where the user looks at packets or spoils them: what he sees and spoils are those that a network has.
 */
bool config_has_large(const struct config *);
/* Whether packets to processes of this host may go through memory: under the same conditions, and if the settings allow
 * it. */
bool config_has_shm(const struct config *);

/*
 * Reads the script that the settings name. 0 with *script set, empty if they name none; or -EINVAL with a sentence in err
 * that names the file and the line.
 */
int config_script(const struct config *, struct fault_script *script, char *err, size_t err_bytes);

/* 0, or -EINVAL with a sentence in err. Reads the environment and perhaps one file. */
int config_load(struct config *, char *err, size_t err_bytes);

/* One line a key: name, default, meaning; for `verbena` help and the man page. */
const char *config_help(void);
