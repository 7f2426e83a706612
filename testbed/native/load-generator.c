// SPDX-License-Identifier: MIT
/*
 * load-generator - new TCP connections at a rate that does not depend on the replies (open loop),
 * or by clients with one outstanding request each (closed loop).
 *
 * In the open loop a schedule says when each connection is to start.  Its time-out, its response
 * time and the lateness of its start count from that moment, however late the generator or the
 * server is, so nothing is left out where the server is slow (no coordinated omission).  A
 * connection carries one request or several, each sent when the response before is complete.
 *
 * A report in JSON comes at the end, on standard output.  Where the generator was itself the limit
 * (its starts were late, or it lacked ports, descriptors, memory or, in the closed loop, the
 * processor) it says so there and on standard error and ends with status 3: such numbers are not
 * the server's.  After SIGTERM or SIGINT it reports what it knows and ends with status 4.
 *
 * It sends to loopback and private addresses only; the testbed runs it in namespaces of its own.
 *
 * Sources: A. Shukla, T. Brecht: TCP Connection Management Mechanisms for Improving Internet Server
 * Performance (2006), sections III to V; D. Mosberger, T. Jin: httperf (1998); ip(7), tcp(7),
 * epoll(7); RFC 7413; RFC 9112.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "clock.h"
#include "connection.h"
#include "options.h"
#include "process.h"
#include "schedule.h"
#include "tally.h"

#define MILLI 1000000LL
#define INTERRUPTED 4 /* exit status */
#define LONG_WAIT (50 * MILLI)
#define STARTS_AT_ONCE 64 /* then it is the replies' turn */
#define EVENTS_AT_ONCE 256
#define PATIENCE SECOND /* after the last intended start, with those that are still due */
#define LOG_BUFFER (1 << 24)
#define BUSY_PERCENT 95 /* of one processor */
#define NEVER INT64_MAX

static int64_t rate, seed = 1, duration_ms = 10000, warm_up_ms, connections_most = 1000000000;
static int64_t cool_down_ms, burst_ms, every_ms, base_rate;
static int64_t timeout_ms = 10000, request_bytes, lateness_limit_us = 1000, processor = -1;
static const char *target_text, *source_text, *arrivals_text = "fixed", *path = "/", *host;
static const char *version_text = "1.1", *end_text = "client", *close_text = "fin", *log_path;
static const char *syn_timeouts_text = "";

static const struct option options[] = {
	{ "target", .text = &target_text, .meaning = "ADDRESS:PORT of the server" },
	{ "source", .text = &source_text, .meaning = "ADDRESS or FIRST-LAST, used in turn" },
	{ "rate", &rate, 1, 1000000, .meaning = "open loop: connections a second" },
	{ "clients", &load.clients, 1, 100000, .meaning = "closed loop: clients with one request each" },
	{ "arrivals", .text = &arrivals_text, .meaning = "open loop: fixed or poisson" },
	{ "burst-ms", &burst_ms, 0, 3600000, .meaning = "open loop: how long the rate holds; 0: always" },
	{ "every-ms", &every_ms, 0, 3600000, .meaning = "from the beginning of a burst to the next" },
	{ "base-rate", &base_rate, 0, 1000000, .meaning = "connections a second between bursts" },
	{ "seed", &seed, 0, INT64_MAX, .meaning = "of Poisson arrivals" },
	{ "warm-up-ms", &warm_up_ms, 0, 600000, .meaning = "before what is measured" },
	{ "duration-ms", &duration_ms, 1, 3600000, .meaning = "of what is measured" },
	{ "cool-down-ms", &cool_down_ms, 0, 600000, .meaning = "of load after what is measured" },
	{ "syn-timeouts-ms", .text = &syn_timeouts_text, .meaning = "3000,3200,...; empty: the kernel's" },
	{ "connections", &connections_most, 1, 1000000000, .meaning = "at most, the warm-up's too" },
	{ "timeout-ms", &timeout_ms, 1, 600000, .meaning = "of a connection, from its intended start" },
	{ "requests", &load.requests, 1, 1000000, .meaning = "on each connection" },
	{ "request-bytes", &request_bytes, 0, 65536, .meaning = "of each request; 0: as few as it takes" },
	{ "path", .text = &path, .meaning = "that is asked for" },
	{ "host", .text = &host, .meaning = "in the Host header; without it the target" },
	{ "http", .text = &version_text, .meaning = "1.0 or 1.1" },
	{ "end", .text = &end_text, .meaning = "who closes first: client or server" },
	{ "close", .text = &close_text, .meaning = "how the client closes: fin or rst (SO_LINGER of 0)" },
	{ "fast-open", &load.fast_open, 0, 1, .meaning = "1: the request is in the SYN" },
	{ "retry-refused", &load.retries, 0, 10, .meaning = "times, at once (Windows: 2)" },
	{ "lateness-limit-us", &lateness_limit_us, 1, 3600000000, .meaning = "99th percentile" },
	{ "histograms", .text = &log_path, .meaning = "file for the log of HdrHistogram" },
	{ "processor", &processor, -1, 1023, .meaning = "to run on; -1: any" },
	{ NULL },
};

static struct schedule schedule;
static ns_t began, warm_up, measured_end, starts_end, timeout; /* all but the first since it */
static bool fell_behind, interrupted;

static ns_t elapsed(void)
{
	return nanoseconds(CLOCK_MONOTONIC) - began;
}

static void start(ns_t intended, ns_t at)
{
	struct connection *connection = take_connection();

	connection->intended = intended;
	connection->measured = intended >= warm_up && intended < measured_end;
	add(connection, &tally.started, 1);
	if (connection->measured && rate)
		record_value(&tally.lateness, at - intended);
	tally.all_started++;
	second_of(at)->started++;
	open_connection(connection, at);
}

/* When the next connection is to start; NEVER: none is, or none until another has ended. */
static ns_t next_start(ns_t at)
{
	ns_t next = rate ? next_arrival(&schedule) : at;

	if (next >= starts_end || tally.all_started >= (uint64_t)connections_most)
		return NEVER;
	if (rate && at > starts_end + PATIENCE) {
		fell_behind = true;
		return NEVER;
	}
	return rate || idle_clients ? next : NEVER;
}

static void start_due(void)
{
	for (int i = 0; i < STARTS_AT_ONCE; i++) {
		ns_t at = elapsed(), next = next_start(at);

		if (next > at)
			return;
		if (rate)
			advance_schedule(&schedule);
		else
			idle_clients--;
		start(next, at);
	}
}

/* Give up what has timed out; returns when the next connection will. */
static ns_t expire(ns_t at)
{
	while (list.newer != &list) {
		struct connection *oldest = list.newer;

		if (oldest->intended + timeout > at)
			return oldest->intended + timeout;
		if (oldest->phase == ENDING)
			drop(oldest);
		else
			give_up(oldest, TIMED_OUT, at);
	}
	return NEVER;
}

static void handle_events(ns_t wait)
{
	struct epoll_event events[EVENTS_AT_ONCE];
	struct timespec time;
	int count;

	/* It may wait a thousandth longer (fs/select.c): the end of a long wait is one of its own. */
	if (wait > LONG_WAIT)
		wait -= wait / 100;
	time = (struct timespec){ wait / SECOND, wait % SECOND };
	count = epoll_pwait2(poll_set, events, EVENTS_AT_ONCE, &time, NULL);
	if (count < 0 && errno != EINTR)
		die("epoll_pwait2");
	for (int i = 0; i < count; i++) {
		if (events[i].data.ptr)
			handle(events[i].data.ptr, events[i].events, elapsed());
		else
			interrupted = true; /* the descriptor of the signals */
	}
}

/* Start and handle connections until the last one has ended; returns how long it took. */
static ns_t run(void)
{
	began = nanoseconds(CLOCK_MONOTONIC);
	while (!interrupted) {
		ns_t at, next, expiry;

		start_due();
		at = elapsed();
		expiry = set_timers(at, expire(at));
		next = next_start(at);
		if (next > expiry)
			next = expiry;
		if (next == NEVER)
			break;
		handle_events(next > at ? next - at : 0);
	}
	while (list.newer != &list) {
		if (list.newer->phase == ENDING)
			drop(list.newer);
		else
			give_up(list.newer, UNFINISHED, elapsed());
	}
	return elapsed();
}

/* Preparation. */

static void read_target(void)
{
	static const struct {
		uint32_t network, mask;
	} allowed[] = {
		{ 0x7f000000, 0xff000000 }, /* loopback */
		{ 0x0a000000, 0xff000000 }, /* private: RFC 1918 */
		{ 0xac100000, 0xfff00000 },
		{ 0xc0a80000, 0xffff0000 },
		{ 0xc6120000, 0xfffe0000 }, /* benchmarks: RFC 2544 */
	};
	uint32_t address;

	load.target = read_end("target", target_text);
	address = ntohl(load.target.sin_addr.s_addr);
	for (size_t i = 0; i < sizeof(allowed) / sizeof(*allowed); i++)
		if ((address & allowed[i].mask) == allowed[i].network)
			return;
	refuse("target", "\"%s\" is neither a loopback nor a private address", target_text);
}

static void read_sources(void)
{
	const char *dash = source_text ? strchr(source_text, '-') : NULL;
	char text[INET_ADDRSTRLEN] = "";
	struct in_addr from, to;

	if (!source_text)
		return;
	if (strcspn(source_text, "-") < sizeof(text))
		memcpy(text, source_text, strcspn(source_text, "-"));
	if (!inet_aton(text, &from) || !inet_aton(dash ? dash + 1 : text, &to) ||
	    ntohl(to.s_addr) < ntohl(from.s_addr) || ntohl(to.s_addr) - ntohl(from.s_addr) > 65535)
		refuse("source", "\"%s\" is neither ADDRESS nor FIRST-LAST of IPv4", source_text);
	load.first_source = ntohl(from.s_addr);
	load.source_count = ntohl(to.s_addr) - load.first_source + 1;
}

/* A request of the size that was asked for; `connection` is the value of that header, or NULL. */
static struct request make_request(const char *connection)
{
	struct request request = { NULL, 0 };
	FILE *text = open_memstream(&request.text, &request.size);
	const char *filler = "X-Filler: ";
	int64_t missing;

	if (!text)
		die("no memory for the request");
	fprintf(text, "GET %s HTTP/%s\r\nHost: %s\r\n", path, version_text, host ? host : target_text);
	if (connection)
		fprintf(text, "Connection: %s\r\n", connection);
	missing = request_bytes - ftell(text) - 2;
	if (missing >= (int64_t)strlen(filler) + 2)
		fprintf(text, "%s%0*d\r\n", filler, (int)(missing - (int64_t)strlen(filler) - 2), 0);
	else if (request_bytes && missing)
		refuse("request-bytes", "%" PRId64 " is too few: it takes %ld, or %zu and more",
		       request_bytes, ftell(text) + 2, (size_t)ftell(text) + strlen(filler) + 5);
	fputs("\r\n", text);
	fclose(text);
	return request;
}

/* The kernel can follow no list whose times shrink or more than double. */
static void read_syn_timeouts(void)
{
	ns_t last = 0;

	for (const char *text = syn_timeouts_text; *text; text += *text == ',') {
		char *end;
		ns_t timeout_ns = strtoll(text, &end, 10) * MILLI;

		if (end == text || (*end && *end != ',') || load.syn_timeouts == SYN_TIMEOUTS_MOST ||
		    timeout_ns < SECOND || timeout_ns < last || (last && timeout_ns > 2 * last))
			refuse("syn-timeouts-ms", "\"%s\" are not up to %d times of 1000 and more, none "
			       "shorter than the one before it or more than twice as long",
			       syn_timeouts_text, SYN_TIMEOUTS_MOST);
		load.syn_timeout[load.syn_timeouts++] = last = timeout_ns;
		text = end;
	}
	for (int i = 0; i < SYN_TIMEOUTS_MOST; i++)
		timed[i].before = timed[i].behind = &timed[i];
}

static void check_options(void)
{
	bool is_1_0;

	if (!rate == !load.clients)
		refuse(rate ? "clients" : "rate", "either --rate (open loop) or --clients (closed loop)");
	read_target();
	read_sources();
	schedule = make_schedule(rate, choose("arrivals", arrivals_text, "fixed", "poisson"),
				 (uint64_t)seed);
	if (burst_ms && (burst_ms >= every_ms || base_rate > rate))
		refuse("burst-ms", "bursts are shorter than --every-ms, and above --base-rate");
	schedule.burst = burst_ms * MILLI;
	schedule.every = every_ms * MILLI;
	schedule.base_rate = base_rate;
	read_syn_timeouts();
	load.server_ends = choose("end", end_text, "client", "server");
	load.abortive = choose("close", close_text, "fin", "rst");
	is_1_0 = !choose("http", version_text, "1.0", "1.1");
	load.kept = make_request(is_1_0 ? "keep-alive" : NULL);
	load.last = load.server_ends ? make_request(is_1_0 ? NULL : "close") : load.kept;
}

static void prepare(void)
{
	struct epoll_event event = { EPOLLIN, { NULL } };

	raise_descriptor_limit();
	make_timers_exact();
	if (processor >= 0)
		choose_processor(processor);
	poll_set = epoll_create1(EPOLL_CLOEXEC);
	if (poll_set < 0 || epoll_ctl(poll_set, EPOLL_CTL_ADD, open_signals(), &event))
		die("cannot watch sockets");
	warm_up = warm_up_ms * MILLI;
	measured_end = warm_up + duration_ms * MILLI;
	starts_end = measured_end + cool_down_ms * MILLI;
	load.half = warm_up + duration_ms * MILLI / 2;
	timeout = timeout_ms * MILLI;
	idle_clients = load.clients;
	tally.second_count = (starts_end + PATIENCE + timeout) / SECOND + 2;
	tally.seconds = calloc((size_t)tally.second_count, sizeof(*tally.seconds));
	if (!tally.seconds)
		die("no memory for the seconds");
}

/* The report. */

static void report_limit(bool limited, const char *name, const char **comma)
{
	if (!limited)
		return;
	printf("%s\"%s\"", *comma, name);
	fprintf(stderr, "load-generator: its own limit, not the server's: %s\n", name);
	*comma = ", ";
}

/* Returns whether the generator was itself the limit. */
static bool report_limits(double processor_percent)
{
	const char *comma = "";
	bool late = fell_behind || find_quantile(&tally.lateness, 990) > lateness_limit_us * 1000;

	printf("  \"own_limits\": [");
	report_limit(late, "lateness", &comma);
	report_limit(lacked_ports, "ports", &comma);
	report_limit(lacked_descriptors, "descriptors", &comma);
	report_limit(lacked_memory, "memory", &comma);
	report_limit(load.clients && processor_percent >= BUSY_PERCENT, "processor", &comma);
	printf("]\n}\n");
	return *comma;
}

static bool report(ns_t ran)
{
	double seconds = (double)duration_ms / 1e3;
	ns_t began_at = nanoseconds(CLOCK_REALTIME) - (nanoseconds(CLOCK_MONOTONIC) - began);

	printf("{\n  \"loop\": \"%s\", \"asked_per_s\": %" PRId64 ", \"clients\": %" PRId64
	       ", \"seed\": %" PRId64 ", \"warm_up_ms\": %" PRId64
	       ", \"duration_ms\": %" PRId64 ", \"began_ns\": %" PRId64 ",\n",
	       rate ? arrivals_text : "closed", rate, load.clients, seed, warm_up_ms, duration_ms,
	       began_at);
	printf("  \"started_per_s\": %.3f, \"completed_per_s\": %.3f,\n",
	       (double)tally.started / seconds, (double)tally.outcomes[COMPLETED] / seconds);
	report_counts();
	report_times("lateness", &tally.lateness);
	report_times("establishment", &tally.establishment.whole);
	report_times("response", &tally.response.whole);
	report_halves();
	report_seconds();
	return report_limits(report_processor(ran));
}

int main(int count, char **arguments)
{
	bool limited;
	ns_t ran;

	(void)count;
	read_options(arguments, options, "new TCP connections at a rate, whatever becomes of them");
	check_options();
	prepare();
	if (log_path) {
		tally.log = fopen(log_path, "w");
		if (!tally.log)
			die(log_path);
		setvbuf(tally.log, NULL, _IOFBF, LOG_BUFFER); /* what is written meanwhile costs time */
		write_log_head(tally.log, nanoseconds(CLOCK_REALTIME));
	}
	ran = run();
	if (tally.log) {
		close_interval(&tally.establishment);
		close_interval(&tally.response);
		if (fclose(tally.log))
			die(log_path);
	}
	limited = report(ran);
	return interrupted ? INTERRUPTED : limited ? ITS_OWN_LIMIT : 0;
}
