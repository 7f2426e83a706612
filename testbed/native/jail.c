// SPDX-License-Identifier: MIT
/*
 * jail - run the kernel of a guest so that whatever takes it over can do nothing but its trial.
 *
 *   jail filter=FD harness=FD stage=FD [kernel=FD run=FD,... read=FD,... write=FD,... lent=FD,...]
 *        [cpu=N] [user=ID] [limit=NUMBER:VALUE ...] [landlock=MOST] -- [NAME ARG ...]
 *
 * Everything that it is given is an open descriptor, and whoever starts it says what each is for:
 *
 *   filter     the system call filter, a struct sock_filter[]
 *   harness    a pipe whose other end the harness holds: once that is closed nothing begins
 *   stage      the folder that the kernel is started in
 *   kernel     the program; without one this says what holds here, on standard output
 *   run        files and folders that may be executed and read
 *   read       folders that may be read
 *   write      folders in which files may be made, written, renamed and removed
 *   lent       open files that the kernel finds under the same numbers
 *
 * What is in none of these can be neither opened nor executed (Landlock, from Linux 5.13 on;
 * landlock= holds it to an older version, or 0 to none), no
 * privilege can be had, few system calls are left.  Where it may, the kernel gets namespaces of
 * its own: of processes, network and System V objects.  No mount is made.  With user= (root only)
 * the kernel runs as that user; the process that waits for it stays root, with CAP_KILL alone.
 *
 * This process ends when the kernel does, on SIGTERM, or with the process that started it, and in
 * each case only after all that was started inside: by the table of processes, or as their
 * subreaper.  Exit status: the kernel's, 128 and the number of its signal, or 125.
 *
 * Sources: landlock(7), seccomp(2), namespaces(7), user_namespaces(7), capabilities(7), prctl(2),
 * close_range(2), execveat(2), pid_namespaces(7).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "descendants.h"
#include "given.h"
#include "landlock.h"

#define MOST_INSTRUCTIONS 4096
#define NAMESPACES (CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC)

static int above[2]; /* a pipe whose other end this process holds, for those inside */

/* What came of it. */
static bool own_processes; /* a table of processes of its own */
static bool own_user;      /* bounds of processes count none of the user's others */

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || close(fd))
		die("write %s", path);
}

/*
 * Namespaces for the next child, if this machine lets us have them: by a capability, or else in a
 * user namespace in which this user is nobody else.  Root has no use for the latter: it may not be
 * root there without a capability, nor give another id.
 */
static void make_namespaces(void)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	char line[64];

	if (!unshare(NAMESPACES)) {
		own_processes = true;
		return;
	}
	if (uid == 0 || unshare(CLONE_NEWUSER | NAMESPACES))
		return;
	own_processes = own_user = true;
	write_file("/proc/self/setgroups", "deny");
	snprintf(line, sizeof line, "%u %u 1", uid, uid);
	write_file("/proc/self/uid_map", line);
	snprintf(line, sizeof line, "%u %u 1", gid, gid);
	write_file("/proc/self/gid_map", line);
}

/* A bound that may not be lowered is of no use to those who have no capability. */
static void lower_bound(uint32_t kept)
{
	for (int i = 0; prctl(PR_CAPBSET_READ, i) >= 0; i++)
		if (i >= 32 || !(kept >> i & 1))
			prctl(PR_CAPBSET_DROP, i);
}

/* No other capability than these is left, nor to be had. */
static void keep_capabilities(uint32_t kept)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { { kept, kept, 0 }, { 0, 0, 0 } };

	lower_bound(kept);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_capset, &header, data))
		die("give up capabilities");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		die("no new privileges");
}

static void become_user(void)
{
	if (user < 0)
		return;
	if (setgroups(0, NULL) || setresgid(user, user, user) || setresuid(user, user, user))
		die("become user %ld", user);
}

/* A bound of processes is for all of a user's: for those that share an id it is for some more. */
static void set_limits(void)
{
	struct sysinfo now;

	if (sysinfo(&now))
		die("count processes");
	for (int i = 0; i < count_limits; i++) {
		struct rlimit both, before;

		if (getrlimit(limits[i].resource, &before))
			die("limit %d", limits[i].resource);
		both.rlim_max = limits[i].value;
		if (limits[i].resource == RLIMIT_NPROC && user < 0 && !own_user)
			both.rlim_max += now.procs;
		if (both.rlim_max > before.rlim_max)
			both.rlim_max = before.rlim_max;
		both.rlim_cur = both.rlim_max;
		if (setrlimit(limits[i].resource, &both))
			die("limit %d", limits[i].resource);
	}
}

static void choose_processor(void)
{
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set))
		die("run on processor %d", cpu);
}

static void allow(int ruleset, const struct descriptors *some, uint64_t rights)
{
	for (int i = 0; i < some->count; i++)
		allow_landlock(ruleset, some->number[i], rights);
}

/* Hold back all that this kernel can, but for what is given.  Returns the version, 0: without. */
static int restrict_files(void)
{
	int version = find_landlock(most_landlock), ruleset;
	struct landlock_ruleset all;

	if (!version)
		return 0;
	ruleset = make_landlock(version, &all);
	allow(ruleset, &runs, LANDLOCK_RUN & all.files);
	allow(ruleset, &reads, LANDLOCK_READ & all.files);
	allow(ruleset, &writes, LANDLOCK_WRITE & all.files);
	if (syscall(SYS_landlock_restrict_self, ruleset, 0))
		die("Landlock %d", version);
	close(ruleset);
	return version;
}

/*
 * Leaves what is given and the standard streams.  Kernel, filter and stage are no files of the
 * trial's, and are closed as the kernel begins.
 */
static void close_others(void)
{
	const int once[] = { kernel, filter, stage };
	unsigned int from = STDERR_FILENO + 1;

	for (int fd = from; fd <= last_given; fd++) {
		if (!is_given(fd))
			continue;
		if ((unsigned int)fd > from && syscall(SYS_close_range, from, fd - 1, 0))
			die("close descriptors");
		from = fd + 1;
	}
	if (syscall(SYS_close_range, from, ~0U, 0))
		die("close descriptors");
	for (size_t i = 0; i < sizeof once / sizeof *once; i++)
		if (once[i] >= 0 && fcntl(once[i], F_SETFD, FD_CLOEXEC))
			die("descriptor %d", once[i]);
}

static void filter_calls(void)
{
	static struct sock_filter instructions[MOST_INSTRUCTIONS];
	ssize_t size = pread(filter, instructions, sizeof instructions, 0);
	struct sock_fprog program = { 0, instructions };

	if (size <= 0 || size == sizeof instructions || size % sizeof *instructions) {
		errno = EINVAL;
		die("read the filter");
	}
	program.len = size / sizeof *instructions;
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		die("filter system calls");
}

/* The guest's kernel. */
static void be_kernel(char **words)
{
	int version;

	if (setsid() < 0)
		die("a session of its own");
	choose_processor();
	set_limits();
	lower_bound(0); /* which takes a capability that the user does not have */
	become_user();
	keep_capabilities(0);
	end_with_parent(SIGKILL, above[0]);
	if (fchdir(stage))
		die("enter the stage");
	version = restrict_files();
	if (kernel < 0) {
		close_others();
		filter_calls();
		printf("landlock %d, %s\n", version, own_processes ? "namespaces" : "no namespaces");
		fflush(stdout);
		_exit(0);
	}
	/* Else it would start itself anew to say so.  Containers refuse it to both of us. */
	personality(PER_LINUX | ADDR_NO_RANDOMIZE);
	close_others();
	filter_calls();
	syscall(SYS_execveat, kernel, "", words, environ, AT_EMPTY_PATH);
	die("start %s", words[0]);
}

/* Process 1 of the new table: all others end with it.  A kernel that is process 1 cannot abort. */
static void be_first(char **words)
{
	pid_t child, ended;
	int status;

	end_with_parent(SIGKILL, above[0]);
	child = fork();
	if (child < 0)
		die("fork");
	if (child == 0)
		be_kernel(words);
	keep_capabilities(0);
	do
		ended = wait(&status);
	while (ended != child && (ended > 0 || errno == EINTR));
	_exit(ended == child ? status_of(status) : FAILED);
}

int main(int count, char **arguments)
{
	char **words = read_arguments(arguments);
	sigset_t awaited, before;
	pid_t first;

	(void)count;
	end_with_parent(SIGTERM, harness);
	sigemptyset(&awaited);
	sigaddset(&awaited, SIGTERM);
	sigaddset(&awaited, SIGINT);
	sigaddset(&awaited, SIGHUP);
	sigaddset(&awaited, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &awaited, &before) || prctl(PR_SET_CHILD_SUBREAPER, 1))
		die("wait for others");
	if (pipe2(above, O_CLOEXEC))
		die("pipe");
	make_namespaces();
	first = fork();
	if (first < 0)
		die("fork");
	if (first == 0) {
		close(above[1]);
		sigprocmask(SIG_SETMASK, &before, NULL);
		if (own_processes)
			be_first(words);
		be_kernel(words);
	}
	keep_capabilities(user >= 0 ? 1U << CAP_KILL : 0);
	return await_all(first, &awaited);
}
