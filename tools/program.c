/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads ELF files of our own class and byte order; every offset is checked before it is followed.
 */
#include "program.h"

#include <elf.h>
#include <fcntl.h>
#include <libgen.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#define VERBS_LIBRARY "libibverbs.so.1"

enum { SCRIPTS_MAX = 4 /* the kernel's limit of nesting */, LINE_BYTES = 256 };

/* ---- which file ------------------------------------------------------------------------------ */

static bool is_executable(const char *file)
{
	struct stat st;

	return !stat(file, &st) && S_ISREG(st.st_mode) && !access(file, X_OK);
}

static bool find(const char *command, char file[PATH_MAX])
{
	const char *path = getenv("PATH");
	size_t len;

	if (strchr(command, '/'))
		return (size_t)snprintf(file, PATH_MAX, "%s", command) < PATH_MAX && is_executable(file);
	for (path = path ? path : "/bin:/usr/bin";; path += len + 1) {
		len = strcspn(path, ":");
		if ((size_t)snprintf(file, PATH_MAX, "%.*s%s%s", (int)len, path, len ? "/" : "", command) < PATH_MAX &&
		    is_executable(file))
			return true;
		if (!path[len])
			return false;
	}
}

/* The interpreter that the file's first line names. */
static bool script_interpreter(const char *file, char interpreter[PATH_MAX])
{
	char line[LINE_BYTES + 1];
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, line, LINE_BYTES);
	size_t from;

	if (fd >= 0)
		close(fd);
	if (n < 3 || line[0] != '#' || line[1] != '!')
		return false;
	line[n] = 0;
	line[strcspn(line, "\n")] = 0;
	from = 2 + strspn(line + 2, " \t");
	snprintf(interpreter, PATH_MAX, "%.*s", (int)strcspn(line + from, " \t"), line + from);
	return interpreter[0];
}

/* ---- what the kernel will do ----------------------------------------------------------------- */

static bool changes_user(const char *file)
{
	struct statvfs fs;
	struct stat st;

	if (stat(file, &st) || statvfs(file, &fs) || fs.f_flag & ST_NOSUID ||
	    prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
		return false;
	return (st.st_mode & S_ISUID && st.st_uid != getuid()) ||
	       ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && st.st_gid != getgid());
}

static bool gains_capabilities(const char *file)
{
	struct statvfs fs;

	return getuid() && getxattr(file, "security.capability", NULL, 0) > 0 && !statvfs(file, &fs) &&
	       !(fs.f_flag & ST_NOSUID) && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1;
}

/* ---- what is in it --------------------------------------------------------------------------- */

struct image {
	const uint8_t *at;
	size_t size;
	const ElfW(Ehdr) * header;
	const ElfW(Phdr) * segments;
};

static bool image_open(struct image *m, const char *file)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return false;
	if (fstat(fd, &st) || st.st_size < (off_t)sizeof(ElfW(Ehdr))) {
		close(fd);
		return false;
	}
	m->size = (size_t)st.st_size;
	m->at = mmap(NULL, m->size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (m->at == MAP_FAILED)
		return false;
	m->header = (const void *)m->at;
	return true;
}

static void image_close(struct image *m)
{
	munmap((void *)m->at, m->size);
}

static bool is_elf(const struct image *m)
{
	return !memcmp(m->header->e_ident, ELFMAG, SELFMAG);
}

/* Another ELF file's class, byte order and machine; this tool's are those of the libraries. */
static bool is_of_kind(const struct image *m, const struct image *other)
{
	return !memcmp(m->header->e_ident + EI_CLASS, other->header->e_ident + EI_CLASS, 2) &&
	       m->header->e_machine == other->header->e_machine;
}

static bool segments_find(struct image *m)
{
	uint64_t bytes = (uint64_t)m->header->e_phnum * sizeof(ElfW(Phdr));

	if (m->header->e_phentsize != sizeof(ElfW(Phdr)) || m->header->e_phoff > m->size ||
	    bytes > m->size - m->header->e_phoff || m->header->e_phoff % _Alignof(ElfW(Phdr)))
		return false;
	m->segments = (const void *)(m->at + m->header->e_phoff);
	return true;
}

static const ElfW(Phdr) * segment(const struct image *m, uint32_t type)
{
	for (unsigned i = 0; i < m->header->e_phnum; i++) {
		const ElfW(Phdr) *p = &m->segments[i];

		if (p->p_type == type && p->p_offset <= m->size && p->p_filesz <= m->size - p->p_offset)
			return p;
	}
	return NULL;
}

/* The value of a dynamic entry. */
static bool dynamic(const struct image *m, int64_t tag, uint64_t *value)
{
	const ElfW(Phdr) *p = segment(m, PT_DYNAMIC);
	const ElfW(Dyn) * d;

	if (!p || p->p_offset % _Alignof(ElfW(Dyn)))
		return false;
	d = (const void *)(m->at + p->p_offset);
	for (size_t n = p->p_filesz / sizeof(*d); n && d->d_tag != DT_NULL; n--, d++) {
		if (d->d_tag == tag) {
			*value = d->d_un.d_val;
			return true;
		}
	}
	return false;
}

/* The string at that offset of the dynamic string table, or NULL. */
static const char *string(const struct image *m, uint64_t offset)
{
	uint64_t table, at;

	if (!dynamic(m, DT_STRTAB, &table))
		return NULL;
	for (unsigned i = 0; i < m->header->e_phnum; i++) {
		const ElfW(Phdr) *p = &m->segments[i];

		if (p->p_type != PT_LOAD || table < p->p_vaddr || table - p->p_vaddr >= p->p_filesz)
			continue;
		at = table - p->p_vaddr + p->p_offset;
		if (at >= m->size || offset >= m->size - at || !memchr(m->at + at + offset, 0, m->size - at - offset))
			return NULL;
		return (const char *)m->at + at + offset;
	}
	return NULL;
}

/* A file that names no loader is static, except the loader itself. */
static bool is_static(const struct image *m)
{
	uint64_t flags = 0;

	if (segment(m, PT_INTERP))
		return false;
	dynamic(m, DT_FLAGS_1, &flags);
	return !segment(m, PT_DYNAMIC) || flags & DF_1_PIE;
}

static bool dir_has_verbs(const char *dir, size_t len, const char *origin)
{
	static const char *const names[] = {"$ORIGIN", "${ORIGIN}"};
	char file[2 * PATH_MAX];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t n = strlen(names[i]);

		if (len < n || memcmp(dir, names[i], n))
			continue;
		snprintf(file, sizeof(file), "%s%.*s/" VERBS_LIBRARY, origin, (int)(len - n), dir + n);
		return !access(file, F_OK);
	}
	snprintf(file, sizeof(file), "%.*s/" VERBS_LIBRARY, (int)len, dir);
	return !access(file, F_OK);
}

/* DT_RUNPATH makes the loader forget DT_RPATH, and comes after the environment. */
static bool run_path_has_verbs(const struct image *m, const char *file)
{
	uint64_t runpath, rpath;
	char real[PATH_MAX];
	const char *dirs, *origin;

	if (dynamic(m, DT_RUNPATH, &runpath) || !dynamic(m, DT_RPATH, &rpath) || !realpath(file, real))
		return false;
	dirs = string(m, rpath);
	origin = dirname(real);
	while (dirs && *dirs) {
		size_t len = strcspn(dirs, ":");

		if (dir_has_verbs(dirs, len, origin))
			return true;
		dirs += len + (dirs[len] == ':');
	}
	return false;
}

static void image_look(struct image *m, struct program *p)
{
	struct image own;
	bool foreign;

	if (!image_open(&own, "/proc/self/exe"))
		return;
	foreign = !is_of_kind(m, &own);
	image_close(&own);
	if (foreign)
		p->obstacle = PROGRAM_FOREIGN;
	else if (!segments_find(m))
		return;
	else if (is_static(m))
		p->obstacle = PROGRAM_STATIC;
	else
		p->has_own_verbs = run_path_has_verbs(m, p->file);
}

bool program_look(const char *command, struct program *out)
{
	struct program p = {.obstacle = PROGRAM_OPEN};
	struct image m;

	if (!find(command, p.file))
		return false;
	for (int depth = 0; depth < SCRIPTS_MAX; depth++) {
		char interpreter[PATH_MAX];

		if (!script_interpreter(p.file, interpreter))
			break;
		memcpy(p.file, interpreter, sizeof(p.file));
	}
	if (image_open(&m, p.file)) {
		if (is_elf(&m))
			image_look(&m, &p);
		image_close(&m);
	}
	if (p.obstacle == PROGRAM_OPEN && changes_user(p.file))
		p.obstacle = PROGRAM_SET_ID;
	else if (p.obstacle == PROGRAM_OPEN && gains_capabilities(p.file))
		p.obstacle = PROGRAM_CAPABILITIES;
	*out = p;
	return true;
}
