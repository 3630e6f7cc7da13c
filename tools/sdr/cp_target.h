/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiving end's files. Folders are opened one after the other from the target on and never through a symbolic
 * link, so what a sender names, and what links are there already, leads nowhere else.
 *
 * A file is written under another name, CP_PART_PREFIX and a hash of its name, and gets its own when its digest is the
 * sender's. Errors end the program and are told to the peer.
 *
 * Private to tools/sdr.
 */
#pragma once

#include "sdr/cp_list.h"

struct cp_target {
	struct cp_list *list;
	const char *path; /* as the user gave it */
	int root;         /* where entry 0 is, or what it is if that is a folder */
	uint32_t folder;  /* whose descriptor is open; UINT32_MAX: none */
	int folder_fd;
	uint32_t file; /* that is being written; UINT32_MAX: none */
	int file_fd;
};

/* Opens the target for that list, which is borrowed, and makes its folders. A file goes into `path` if that is a
 * folder; else, as a folder does, it gets that name itself. */
void cp_target_open(struct cp_target *, struct cp_list *, const char *path);
/* Looks what was there of file i before, and writes how much it is, and the hashes, to the entry. */
void cp_target_compare(struct cp_target *, uint32_t i);
/* It is known which of these blocks are kept: they are, or get, where the others will be written. */
void cp_target_keep(struct cp_target *, uint32_t i);
/* Writes a block of file i. */
void cp_target_write(struct cp_target *, uint32_t i, uint32_t block, const uint8_t *);
/* File i is whole, or link i comes into being. With `wrong` the file is not what was sent, and is removed. */
void cp_target_finish(struct cp_target *, uint32_t i, bool wrong);
/* All files are there: folders get their modes and times. `sync`: everything is on the disk when it returns. */
void cp_target_close(struct cp_target *, bool sync);
