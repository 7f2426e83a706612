// SPDX-License-Identifier: MIT
/*
 * link - the access link in user space, between two TAPs, for kernels without netem.
 *
 * Per direction it does what the lab's qdiscs do (net/sched/sch_tbf.c, sch_netem.c), with clocks
 * in the place of queues: a drop-tail buffer counted in bytes behind a token bucket of one packet,
 * serialisation at the rate, random loss, a fixed delay.  When a frame is read it is known when it
 * will be due; it is written then, and how late it was written is counted.
 *
 *   link near-namespace=PATH near-device=NAME far-namespace=PATH far-device=NAME
 *        down-kbit=N up-kbit=N delay-ns=N buffer-bytes=N burst-bytes=N mtu-bytes=N
 *        framing-bytes=N loss-ppb=N seed=N spin-ns=N [down-trace=PATH] [up-trace=PATH]
 *
 * down is from far to near.  It first tells in a line of JSON whether it has SCHED_FIFO and locked
 * memory, and then answers each byte on standard input by one line: l switches the loss on (ok), q
 * off (ok), f forgets every frame on its way and all counts (ok), b and three numbers of 64 bits
 * have the traces of down and up begin at ns of CLOCK_REALTIME, and end once or not (ok), r reports
 * (JSON).  At the end of standard input, and so with its parent, or on SIGTERM, it reports for the
 * last time and ends.
 *
 * Sources: Documentation/networking/tuntap, timerfd_create(2), sched(7), mlockall(2).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "link.h"

#define PRIORITY 10

static struct terms terms;
static struct direction ways[2] = { { .name = "down" }, { .name = "up" } };
static int64_t spin_ns;
static const char *near_namespace, *near_device, *far_namespace, *far_device;
static const char *traces[2];

static const struct argument {
	const char *name;
	int64_t *number;
	const char **text;
	bool optional;
} known[] = {
	{ "near-namespace", NULL, &near_namespace, false },
	{ "near-device", NULL, &near_device, false },
	{ "far-namespace", NULL, &far_namespace, false },
	{ "far-device", NULL, &far_device, false },
	{ "down-kbit", &ways[0].kbit, NULL, false },
	{ "up-kbit", &ways[1].kbit, NULL, false },
	{ "delay-ns", &terms.delay_ns, NULL, false },
	{ "buffer-bytes", &terms.buffer_bytes, NULL, false },
	{ "burst-bytes", &terms.burst_bytes, NULL, false },
	{ "mtu-bytes", &terms.mtu_bytes, NULL, false },
	{ "framing-bytes", &terms.framing_bytes, NULL, false },
	{ "loss-ppb", &terms.loss_ppb, NULL, false },
	{ "seed", &terms.seed, NULL, false },
	{ "spin-ns", &spin_ns, NULL, false },
	{ "down-trace", NULL, &traces[0], true },
	{ "up-trace", NULL, &traces[1], true },
};
#define ARGUMENTS ((int)(sizeof(known) / sizeof(*known)))

static volatile sig_atomic_t stopping;

static void note_signal(int signal)
{
	(void)signal;
	stopping = 1;
}

static void report_direction(const struct direction *way)
{
	const struct counts *c = &way->counts;

	printf("\"%s\": {\"packets\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"admitted\": %" PRIu64
	       ", \"dropped\": %" PRIu64 ", \"lost\": %" PRIu64 ", \"overrun\": %" PRIu64
	       ", \"failed\": %" PRIu64 ", \"untimed\": %" PRIu64 ", \"waiting\": %" PRIu64 ", \"late_worst_ns\": %" PRId64
	       ", \"late_sum_ns\": %" PRId64 ", \"late\": {",
	       way->name, c->packets, c->bytes, c->admitted, c->dropped, c->lost, c->overrun,
	       c->failed, c->untimed, way->next - way->first, c->late_worst, c->late_sum);
	for (size_t i = 0; i < CLASSES - 1; i++)
		printf("\"%" PRId64 "us\": %" PRIu64 ", ", late_until[i] / 1000, c->late[i]);
	printf("\"beyond\": %" PRIu64 "}", c->late[CLASSES - 1]);
	if (way->trace.times)
		printf(", \"trace\": {\"limit_bytes\": %" PRId64 ", \"room_bytes\": %" PRId64
		       ", \"opportunities\": %" PRIu64 ", \"end_ms\": %" PRId64 ", \"crc\": %" PRIu32
		       "}, \"once\": %s",
		       terms.buffer_bytes, way->trace.room, way->trace.count,
		       end_of(&way->trace) / MS, way->trace.crc,
		       way->trace.once ? "true" : "false");
	printf("}, ");
}

static void report(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	printf("{");
	report_direction(&ways[0]);
	report_direction(&ways[1]);
	printf("\"cpu_us\": %" PRId64 "}\n",
	       (int64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
		       usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
	fflush(stdout);
}

static void begin_traces(void)
{
	int64_t given[3];

	if (read(STDIN_FILENO, given, sizeof(given)) != sizeof(given))
		die("no moment to begin at");
	for (int i = 0; i < 2; i++)
		begin_trace(&ways[i].trace, given[i] - real_offset(), given[2]);
}

static void obey(void)
{
	char command;

	if (read(STDIN_FILENO, &command, 1) != 1) {
		stopping = 1;
		return;
	}
	if (command == 'r') {
		report();
		return;
	}
	if (command == 'b')
		begin_traces();
	for (int i = 0; i < 2; i++) {
		if (command == 'f')
			forget_frames(&ways[i]);
		else if (command == 'l' || command == 'q')
			ways[i].lossy = command == 'l';
	}
	printf("ok\n");
	fflush(stdout);
}

/* Absolute: being stopped between reading the clock and waiting makes nothing late. */
static void arm(int timer, ns_t wake)
{
	static ns_t armed = -1;
	struct itimerspec at = { { 0, 0 }, { wake / SECOND, wake % SECOND } };

	if (wake != armed && timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL))
		die("timerfd_settime");
	armed = wake;
}

static void run(int timer)
{
	struct pollfd ready[] = {
		{ ways[0].in, POLLIN, 0 },
		{ ways[1].in, POLLIN, 0 },
		{ STDIN_FILENO, POLLIN, 0 },
		{ timer, POLLIN, 0 },
	};
	sigset_t none;

	sigemptyset(&none);
	while (!stopping) {
		ns_t a = write_frames(&ways[0]), b = write_frames(&ways[1]);
		ns_t next = a < 0 ? b : b < 0 || a < b ? a : b;

		/* 0 is never; what is past fires at once. */
		arm(timer, next < 0 ? 0 : later(next - spin_ns, 1));
		if (ppoll(ready, 4, NULL, &none) < 0) {
			if (errno != EINTR)
				die("ppoll");
			continue;
		}
		for (int i = 0; i < 2; i++)
			if (ready[i].revents)
				read_frames(&ways[i]);
		if (ready[2].revents)
			obey();
		while (spin_ns && ready[3].revents && now() < next)
			;
	}
}

/* The TAP of that name, and where its arrivals are watched. */
static int open_tap(const char *namespace, const char *device, int *watch)
{
	int inside = open(namespace, O_RDONLY | O_CLOEXEC), tap;
	struct ifreq request = { .ifr_flags = IFF_TAP | IFF_NO_PI };

	if (inside < 0 || setns(inside, CLONE_NEWNET))
		die(namespace);
	close(inside);
	/* The device belongs to the namespace in which this is opened. */
	tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (tap < 0)
		die("/dev/net/tun");
	snprintf(request.ifr_name, IFNAMSIZ, "%s", device);
	/* Without IFF_VNET_HDR the kernel segments and sums before a frame comes here. */
	if (ioctl(tap, TUNSETIFF, &request))
		die(device);
	*watch = open_watch(device);
	if (*watch < 0)
		die("packet socket");
	return tap;
}

/* Returns whether that was one of the arguments, with a value that it may have. */
static bool read_argument(const char *argument, bool *seen)
{
	const char *value = strchr(argument, '=');

	for (int i = 0; value && i < ARGUMENTS; i++) {
		size_t length = strlen(known[i].name);
		char *end = "";

		if ((size_t)(value - argument) != length || memcmp(argument, known[i].name, length))
			continue;
		if (known[i].text)
			*known[i].text = value + 1;
		else
			*known[i].number = strtoll(value + 1, &end, 10);
		seen[i] = value[1] && !*end && (known[i].text || *known[i].number >= 0);
		return seen[i];
	}
	return false;
}

static void read_arguments(int count, char **arguments)
{
	bool seen[ARGUMENTS] = { false }, wrong = false;

	for (int i = 1; i < count; i++) {
		if (!read_argument(arguments[i], seen)) {
			fprintf(stderr, "link: %s: not understood\n", arguments[i]);
			wrong = true;
		}
	}
	for (int i = 0; i < ARGUMENTS; i++) {
		if (!seen[i] && !known[i].optional) {
			fprintf(stderr, "link: %s= is missing\n", known[i].name);
			wrong = true;
		}
	}
	if (!wrong && (!ways[0].kbit || !ways[1].kbit)) {
		fprintf(stderr, "link: a rate is 0\n");
		wrong = true;
	}
	if (wrong)
		exit(2);
}

/* To be woken in time: not everyone may have these two, so what was had is told. */
static void claim_processor(void)
{
	struct sched_param first = { .sched_priority = PRIORITY };
	bool scheduled, locked;

	prctl(PR_SET_TIMERSLACK, 1UL);
	scheduled = !sched_setscheduler(0, SCHED_FIFO, &first);
	locked = !mlockall(MCL_CURRENT | MCL_FUTURE);
	printf("{\"fifo\": %s, \"locked\": %s}\n", scheduled ? "true" : "false",
	       locked ? "true" : "false");
	fflush(stdout);
}

int main(int count, char **arguments)
{
	sigset_t blocked;
	int near, far, timer;

	read_arguments(count, arguments);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTERM);
	sigprocmask(SIG_BLOCK, &blocked, NULL); /* but for ppoll */
	signal(SIGTERM, note_signal);
	signal(SIGPIPE, SIG_IGN); /* nobody may be there for the last report */
	near = open_tap(near_namespace, near_device, &ways[1].watch);
	far = open_tap(far_namespace, far_device, &ways[0].watch);
	ways[0].in = ways[1].out = far;
	ways[0].out = ways[1].in = near;
	timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (timer < 0)
		die("timerfd_create");
	for (int i = 0; i < 2; i++)
		if (traces[i] && !open_trace(&ways[i].trace, traces[i]))
			die(traces[i]);
	open_direction(&ways[0], &terms);
	open_direction(&ways[1], &terms);
	claim_processor();
	run(timer);
	report();
	return 0;
}
