/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiving end's files. Folders are opened one after the other from the target on and never through a symbolic
 * link, so what a sender names, and what links are there already, leads nowhere else.
 *
 * A file is written under another name, CP_PART_PREFIX and a hash of its name, and gets its own when all of it is there.
 * Zeroes that a file begins with or goes on with are not written. What cannot be written ends the program; a mode, a time,
 * an owner, or an extended attribute that cannot be set is said and counted.
 *
 * Private to tools/sdr.
 */
#pragma once

#include "sdr/cp_attributes.h"
#include "sdr/cp_list.h"

struct cp_filter;

struct cp_target {
	struct cp_list *list;
	const char *path; /* as the user gave it */
	int base;         /* the folder that it is below, whatever is in it, as with chroot(2); -1: none */
	struct cp_wants wants;
	bool dry;        /* nothing is changed */
	bool checksum;   /* a file is compared by hashes, whatever its length and time are */
	int root;        /* where entry 0 is, or what it is if that is a folder; -1: it is not there, and will not be */
	uint32_t folder; /* whose descriptor is open; UINT32_MAX: none */
	int folder_fd;
	uint32_t file; /* that is being written; UINT32_MAX: none */
	int file_fd;
	uint64_t file_end; /* there are zeroes, or nothing, from here on */
	uint32_t failed;   /* things that could not be set */
};

/* Opens the target for its list, which is borrowed. A file goes into `path` if that is a folder; else, as a folder does,
 * it gets that name itself. */
void cp_target_open(struct cp_target *);
/* Looks what was there of entry i, in the order of the list: writes what differs to the entry (cp_items.h), and whether
 * the file is the same. A folder is made. */
void cp_target_look(struct cp_target *, uint32_t i);
/* Looks what was there of file i's content, and writes how much it is, and the hashes, to the entry. */
void cp_target_compare(struct cp_target *, uint32_t i);
/* It is known which of these blocks are kept: they are, or get, where the others will be written. */
void cp_target_keep(struct cp_target *, uint32_t i);
/* Writes a block of file i; NULL: zeroes. */
void cp_target_write(struct cp_target *, uint32_t i, uint32_t block, const uint8_t *);
/* File i is whole, or link i or another name comes into being. A bad file is removed. */
void cp_target_finish(struct cp_target *, uint32_t i);
/* All files are there: folders get their modes and times. `sync`: everything is on the disk when it returns. */
void cp_target_close(struct cp_target *, bool sync);

/* The descriptor of folder i, which stays open until another one is wanted; -1: it is not there. */
int cp_target_folder(struct cp_target *, uint32_t i);

/* Deletes what is in the list's folders and not in the list, nor left out by the filter. `deleted` is called for each
 * thing, whose name is below entry 0; with `dry` that is all. */
struct cp;
void cp_delete(struct cp *, struct cp_target *, const struct cp_filter *);
