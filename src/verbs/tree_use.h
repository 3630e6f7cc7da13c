/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The users of a rendered tree (tree.h): each has a shared lock on its directory, by a descriptor that
 * programs inherit. So the kernel knows when the last of them has ended, in whatever way, and the tree is
 * removed exactly then. A process that closes every descriptor is not counted.
 */
#pragma once

/*
 * A descriptor that marks the tree in dir as used: it stays open across exec, and its number does not
 * disturb programs. Waits for a process that is removing the tree. -ENOENT if the tree is then gone, or
 * another negative errno.
 */
int tree_use(const char *dir);

/*
 * The same with a descriptor that may have been inherited: returns fd if it belongs to dir,
 * otherwise a new one.
 */
int tree_use_inherited(const char *dir, int fd);

/* Removes the tree in dir, unless it is used. 0 or a negative errno: -EWOULDBLOCK if it is. */
int tree_remove_unused(const char *dir);

/* Removes it in any case. */
void tree_remove(const char *dir);
