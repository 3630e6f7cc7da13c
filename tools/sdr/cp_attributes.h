/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Owners, modes, times and extended attributes of files.
 *
 * Extended attributes are bytes of an entry: any number of {length of the name 16, of the value 32, name, value},
 * big-endian, in the order of their names. Those of the namespace "user" and access control lists are copied, and for
 * root those of "trusted" and "security" too, but no SELinux labels.
 *
 * Private to tools/sdr.
 */
#pragma once

#include "sdr/cp_list.h"

/* What of an entry is set besides its permissions and its time. */
struct cp_wants {
	bool owners, attributes;
};

/* Reads the extended attributes of an open file or folder to its entry. False and errno: they cannot be read, or are too
 * many. */
bool cp_attributes_read(struct cp_entry *, int fd);
/* Whether those of an open file or folder are the entry's. */
bool cp_attributes_same(const struct cp_entry *, int fd);

/* The mode that a file gets whose owner and group are these: a bit that sets an ID is for the file's own owner alone. */
uint16_t cp_mode(const struct cp_entry *, const struct cp_wants *, uint32_t owner, uint32_t group);
/* Sets all that the entry has to an open file or folder. False and errno: not all of it can be set. */
bool cp_attributes_set(const struct cp_entry *, const struct cp_wants *, int fd);
/* The same of the link `name` in a folder, which has neither a mode nor extended attributes. */
bool cp_attributes_set_link(const struct cp_entry *, const struct cp_wants *, int at, const char *name);
