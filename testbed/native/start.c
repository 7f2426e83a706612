// SPDX-License-Identifier: MIT
/*
 * start - start a client: in its network, with a process table of its own, without privileges.
 *
 *   start namespace=NAME user=ID [at-ns=N] [begin-ns=N] [began=FILE] -- PROGRAM [ARG ...]
 *
 * namespace is one of `ip netns`: as `ip netns exec` does, /sys is that of the network inside, and
 * the files in /etc/netns/NAME lie over those in /etc.  The program is process 2 of the new table;
 * process 1 waits for it, and all that is left then ends with it.  The exit status is the
 * program's, or 128 and the number of the signal that ended it.
 *
 * at-ns is for virtual time: a moment of CLOCK_REALTIME, not yet passed.  The program then starts
 * a second later, to the nanosecond, with the guest's random numbers started anew from the seed
 * (RNDCLEARPOOL does both, by our patch of the kernel).  So nothing that ran before it can be seen
 * in the load: how long it took, how many processes it had, how many random numbers it drew.
 *
 * begin-ns is a later moment, at which the program starts instead: neighbours who began before it
 * would be moved by the first.
 *
 * began is a file, which is written when the program starts: the CLOCK_REALTIME of that moment in ns.
 *
 * Sources: ip-netns(8), setns(2), pid_namespaces(7), random(4), clock_nanosleep(2), prctl(2).
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/random.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FAILED 125 /* of this program itself, as env(1) and setpriv(1) have it */
#define NANO 1000000000LL

static const char *name, *began;
static long user = -1;
static long long at_ns = -1, begin_ns = -1;

static void die(const char *format, ...)
{
	int error = errno;
	va_list args;

	fprintf(stderr, "start: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, ": %s\n", strerror(error));
	_exit(FAILED);
}

static long long number(const char *text)
{
	char *end;
	long long value;

	errno = 0;
	value = strtoll(text, &end, 10);
	if (errno || *end || end == text || value < 0) {
		errno = EINVAL;
		die("not a number: %s", text);
	}
	return value;
}

/* The options; returns the program and its arguments. */
static char **read_arguments(char **argument)
{
	while (*++argument && strcmp(*argument, "--")) {
		if (!strncmp(*argument, "namespace=", 10))
			name = *argument + 10;
		else if (!strncmp(*argument, "user=", 5))
			user = number(*argument + 5);
		else if (!strncmp(*argument, "at-ns=", 6))
			at_ns = number(*argument + 6);
		else if (!strncmp(*argument, "begin-ns=", 9))
			begin_ns = number(*argument + 9);
		else if (!strncmp(*argument, "began=", 6))
			began = *argument + 6;
		else {
			errno = EINVAL;
			die("what is %s", *argument);
		}
	}
	if (!name || user < 0 || !*argument || !argument[1]) {
		errno = EINVAL;
		die("namespace=NAME user=ID [at-ns=N] [begin-ns=N] [began=FILE] -- PROGRAM [ARG ...]");
	}
	return argument + 1;
}

static void enter_network(void)
{
	char path[256];
	int network;

	snprintf(path, sizeof path, "/run/netns/%s", name);
	network = open(path, O_RDONLY | O_CLOEXEC);
	if (network < 0 || setns(network, CLONE_NEWNET))
		die("enter %s", path);
	close(network);
}

/* What the namespace has of its own in /etc lies over the common files. */
static void bind_etc(void)
{
	char folder[256], source[600], target[300];
	struct dirent *entry;
	DIR *directory;

	snprintf(folder, sizeof folder, "/etc/netns/%s", name);
	directory = opendir(folder);
	if (!directory)
		return;
	while ((entry = readdir(directory))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(source, sizeof source, "%s/%s", folder, entry->d_name);
		snprintf(target, sizeof target, "/etc/%s", entry->d_name);
		if (mount(source, target, NULL, MS_BIND, NULL))
			die("bind %s", target);
	}
	closedir(directory);
}

static void enter_mounts(void)
{
	if (unshare(CLONE_NEWNS | CLONE_NEWPID))
		die("unshare");
	if (mount("", "/", NULL, MS_SLAVE | MS_REC, NULL))
		die("keep mounts to ourselves");
	if (umount2("/sys", MNT_DETACH) && errno != EINVAL)
		die("umount /sys");
	if (mount(name, "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL))
		die("mount /sys");
	bind_etc();
}

static void await_moment(const char *which, long long at)
{
	struct timespec moment = { at / NANO, at % NANO }, now;
	int error;

	if (clock_gettime(CLOCK_REALTIME, &now) || (long long) now.tv_sec * NANO + now.tv_nsec > at) {
		errno = ETIME;
		die("%s=%lld", which, at);
	}
	while ((error = clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &moment, NULL)) == EINTR)
		;
	if (error) {
		errno = error;
		die("sleep");
	}
}

/* Also by how much the sleep ended late, and what the scheduler still has on its books. */
static void forget_what_was(void)
{
	int device = open("/dev/urandom", O_RDONLY | O_CLOEXEC);

	if (device < 0 || ioctl(device, RNDCLEARPOOL))
		die("restart the random numbers");
	close(device);
}

static void note_start(void)
{
	struct timespec now;
	int file = open(began, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (file < 0 || clock_gettime(CLOCK_REALTIME, &now) ||
	    dprintf(file, "%lld\n", (long long) now.tv_sec * NANO + now.tv_nsec) < 0)
		die("write %s", began);
	close(file);
}

static void drop_privileges(void)
{
	if (setgroups(0, NULL) || setresgid(user, user, user) || setresuid(user, user, user))
		die("become user %ld", user);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		die("no new privileges");
}

static int status_of(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int await(pid_t child)
{
	pid_t ended;
	int status = 0;

	do
		ended = wait(&status);
	while (ended != child && (ended > 0 || errno == EINTR));
	return ended == child ? status_of(status) : FAILED;
}

/* Process 1 of the new table: it must outlive nobody, and collect who has no parent any more. */
static int be_first(char **program)
{
	pid_t child;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL))
		die("end with the parent");
	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL))
		die("mount /proc");
	if (at_ns >= 0) {
		await_moment("at-ns", at_ns);
		forget_what_was();
	}
	if (begin_ns >= 0)
		await_moment("begin-ns", begin_ns);
	child = fork();
	if (child < 0)
		die("fork");
	if (child == 0) {
		if (began)
			note_start();
		drop_privileges();
		execvp(program[0], program);
		die("exec %s", program[0]);
	}
	return await(child);
}

int main(int count, char **arguments)
{
	char **program = read_arguments(arguments);
	pid_t first;

	(void) count;
	enter_network();
	enter_mounts();
	first = fork();
	if (first < 0)
		die("fork");
	if (first == 0)
		_exit(be_first(program));
	return await(first);
}
