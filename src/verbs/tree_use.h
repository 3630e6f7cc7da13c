/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who uses a rendered tree (tree.h): a shared lock on its directory, of a descriptor that programs inherit. So
 * the kernel knows when the last of them has ended, however it did, and the tree can be removed then, and
 * neither sooner nor twice. A process that closes every descriptor is not counted.
 */
#ifndef VERBS_TREE_USE_H
#define VERBS_TREE_USE_H

/*
 * A descriptor that says that the tree in dir is used: it stays open across exec, and its number is out of
 * the way of programs. Waits for one who is removing the tree. -ENOENT where the tree is gone by then, or
 * another negative errno.
 */
int tree_use(const char *dir);

/* The same for a descriptor that may have been inherited: fd, if it is one of dir's; else a new one. */
int tree_use_inherited(const char *dir, int fd);

/* Removes the tree in dir, unless it is used. 0 or a negative errno: -EWOULDBLOCK if it is. */
int tree_remove_unused(const char *dir);

/* Removes it in any case. */
void tree_remove(const char *dir);

#endif
