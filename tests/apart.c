/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * apart COMMAND...: runs a test apart from everything else on the machine. Its network is a loopback interface that is
 * up, which `ip netns` calls "own"; it may make more networks. Its processes see no others, and none of them outlives
 * it, however it ends. /run and /dev/shm are its own and empty; HOME and TMPDIR are /run.
 *
 * Root stays root. Any other user becomes root of a user namespace, in which there is no second user; with APART_AS=UID
 * root is that user first. The test finds APART=yes in its environment. Where the kernel refuses, it finds APART=no,
 * and such tests run one after another, since programs of one user share ports.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OWN_FAULT = 125 };

static int *refused; /* the errno of what the kernel refused, which the process in the namespaces leaves here */

static void need(int rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "apart: %s: %s\n", what, strerror(errno));
	exit(OWN_FAULT);
}

/* So that what we have started ends with us, even when we are killed. */
static void end_with_parent(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0444);
	ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));

	if (fd >= 0)
		close(fd);
	return n < 0 ? -1 : 0;
}

/* The user and the group that we are become root's. */
static int map_to_root(uid_t uid, gid_t gid)
{
	char users[32], groups[32];

	snprintf(users, sizeof(users), "0 %u 1", uid);
	snprintf(groups, sizeof(groups), "0 %u 1", gid);
	if (write_file("/proc/self/setgroups", "deny") || write_file("/proc/self/uid_map", users))
		return -1;
	return write_file("/proc/self/gid_map", groups);
}

static int loopback_up(void)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int rc = ioctl(fd, SIOCSIFFLAGS, &lo);

	close(fd);
	return rc;
}

static int mounts_are_ours(void)
{
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

/* An empty folder in place of that one. If our own tree is below it, that stays where it is. */
static int cover(const char *folder)
{
	int tree = open_tree(AT_FDCWD, TREE, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	int rc = tree < 0 ? -1 : mount("tests", folder, "tmpfs", 0, "mode=1777");
	char path[] = TREE "/";

	if (!rc && access(TREE, F_OK)) {
		for (char *p = path; (p = strchr(p + 1, '/')); *p = '/') {
			*p = '\0';
			mkdir(path, 0755);
		}
		rc = move_mount(tree, "", AT_FDCWD, TREE, MOVE_MOUNT_F_EMPTY_PATH);
	}
	close(tree);
	return rc;
}

static int furnish(void)
{
	return mounts_are_ours() || mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) ||
	       cover("/dev/shm") || cover("/run") || mkdir("/run/netns", 0755) || write_file("/run/netns/own", "") ||
	       mount("/proc/self/ns/net", "/run/netns/own", NULL, MS_BIND, NULL) || loopback_up();
}

/* Waits until that one has ended; reaps whatever else ends. */
static int status_of(pid_t child)
{
	int status;
	pid_t pid;

	do
		need(pid = wait(&status), "wait");
	while (pid != child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run(char **command, const char *apart)
{
	pid_t child = fork();

	need(child, "fork");
	if (child)
		return status_of(child);
	end_with_parent();
	setenv("APART", apart, 1);
	/* An ordinary user's has no sbin, where opensm and nft are. */
	setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
	execvp(command[0], command);
	need(-1, command[0]);
	return OWN_FAULT;
}

/* The first process of the namespaces: with it all others there end. */
static int first(uid_t uid, gid_t gid, char **command)
{
	if ((uid && map_to_root(uid, gid)) || furnish()) {
		*refused = errno;
		return OWN_FAULT;
	}
	end_with_parent();
	setenv("TMPDIR", "/run", 1);
	setenv("HOME", "/run", 1);
	return run(command, "yes");
}

static int one_at_a_time(char **command)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	fprintf(stderr, "apart: no namespaces for tests here (%s), so they run one after another\n",
		strerror(*refused));
	need(fd, "/proc/self/exe");
	need(flock(fd, LOCK_EX), "flock");
	return run(command, "no");
}

/* What keeps others from our tree, as /root does, is covered. */
static int open_way(void)
{
	char path[] = TREE;
	struct stat st;
	int rc = unshare(CLONE_NEWNS) || mounts_are_ours();

	for (char *p = path; !rc && (p = strchr(p + 1, '/')); *p = '/') {
		*p = '\0';
		rc = stat(path, &st) || (!(st.st_mode & S_IXOTH) && cover(path));
	}
	return rc ? -1 : 0;
}

static void become(uid_t uid)
{
	unsetenv("APART_AS");
	need(open_way(), "the way to " TREE);
	need(setgroups(0, NULL), "setgroups");
	need(setgid(uid), "setgid");
	need(setuid(uid), "setuid");
	need(prctl(PR_SET_DUMPABLE, 1), "prctl"); /* else its own entry of /proc is root's */
}

int main(int argc, char **argv)
{
	const char *as = getenv("APART_AS");
	int flags = CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID;
	int status = OWN_FAULT;
	uid_t uid;
	gid_t gid;
	pid_t child;

	if (argc < 2) {
		fprintf(stderr, "usage: apart COMMAND...\n");
		return OWN_FAULT;
	}
	if (as && !getuid())
		become((uid_t)atoi(as));
	uid = getuid();
	gid = getgid();
	refused = mmap(NULL, sizeof(*refused), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	need(refused == MAP_FAILED ? -1 : 0, "mmap");
	child = (pid_t)syscall(SYS_clone, flags | (uid ? CLONE_NEWUSER : 0) | SIGCHLD, NULL, NULL, NULL, NULL);
	if (!child)
		return first(uid, gid, argv + 1);
	if (child < 0)
		*refused = errno;
	else
		status = status_of(child);
	return *refused ? one_at_a_time(argv + 1) : status;
}
