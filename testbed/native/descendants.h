/* SPDX-License-Identifier: MIT */
/*
 * Processes inside a jail: they end with whoever started them, and none is left behind.
 * Sources: prctl(2), proc_pid_stat(5), wait(2).
 */
#pragma once
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define FAILED 125 /* of this program itself, as env(1) and setpriv(1) have it */
#define ORPHANED 137

static void die(const char *format, ...)
{
	int error = errno;
	va_list args;

	fprintf(stderr, "jail: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, ": %s\n", strerror(error));
	_exit(FAILED);
}

/* End with the parent, which holds the other end of a pipe: it may have ended before this is asked. */
static void end_with_parent(int signal, int pipe)
{
	struct pollfd end = { .fd = pipe };

	if (prctl(PR_SET_PDEATHSIG, signal))
		die("end with the parent");
	if (poll(&end, 1, 0) < 0 || end.revents & (POLLHUP | POLLERR | POLLNVAL))
		_exit(ORPHANED);
}

static int status_of(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* By their stat files (proc_pid_stat(5)): a list of children not every kernel has. */
static void kill_children(void)
{
	char path[300], text[512], *rest;
	struct dirent *entry;
	DIR *all = opendir("/proc");
	ssize_t size;
	int fd, parent;

	while (all && (entry = readdir(all))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		size = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
		close(fd);
		if (size <= 0)
			continue;
		text[size] = 0;
		rest = strrchr(text, ')'); /* the name may hold anything */
		if (rest && sscanf(rest + 1, " %*c %d", &parent) == 1 && parent == getpid())
			kill(atoi(entry->d_name), SIGKILL);
	}
	if (all)
		closedir(all);
}

/* Until the first child has ended or a signal asks for the end; then until none is left. */
static int await_all(pid_t first, const sigset_t *awaited)
{
	int status = 0, result = FAILED, number;
	bool over = false;
	pid_t ended;

	while (!over) {
		number = sigwaitinfo(awaited, NULL);
		over = number > 0 && number != SIGCHLD;
		if (over)
			kill(first, SIGKILL);
		while ((ended = waitpid(-1, &status, WNOHANG)) > 0)
			if (ended == first) {
				result = status_of(status);
				over = true;
			}
	}
	/* As one ends, those that it started become ours. */
	while ((ended = waitpid(-1, &status, WNOHANG)) >= 0 || errno == EINTR)
		if (ended == 0) {
			kill_children();
			waitpid(-1, &status, 0);
		}
	return result;
}
