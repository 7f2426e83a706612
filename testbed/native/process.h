/* SPDX-License-Identifier: MIT */
/*
 * What the load generator and its server ask of the kernel for themselves: descriptors, a
 * processor, exact timers, signals among the other events.
 */
#pragma once
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

#define ITS_OWN_LIMIT 3     /* exit status */
#define DESCRIPTORS 1048576 /* fs.nr_open */

static const char *program;

static void die(const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", program, what, strerror(errno));
	exit(1);
}

/* Root may raise the limit; others have what they were given. */
static void raise_descriptor_limit(void)
{
	struct rlimit most = { DESCRIPTORS, DESCRIPTORS };

	if (!setrlimit(RLIMIT_NOFILE, &most) || getrlimit(RLIMIT_NOFILE, &most))
		return;
	most.rlim_cur = most.rlim_max;
	setrlimit(RLIMIT_NOFILE, &most);
}

static void choose_processor(int64_t number)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)number, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("cannot have this processor");
}

static void make_timers_exact(void)
{
	prctl(PR_SET_TIMERSLACK, 1UL);
}

/* Returns a descriptor that is readable once a signal asks for the end: a busy loop sees it too. */
static int open_signals(void)
{
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	return signalfd(-1, &ends, SFD_CLOEXEC);
}

static int64_t read_processor_us(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (int64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
	       usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}
