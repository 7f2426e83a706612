// SPDX-License-Identifier: MIT
/*
 * event-server - a small event-driven HTTP server whose costs are known: what a request costs, how
 * long its queues are and how it closes is given on the command line.
 *
 * A request can cost work: so many steps of computing, timed at the start, that interrupts which
 * come in between make it no cheaper.  Where computing takes no time, as in virtual time, each
 * accept, request and close, and each segment that the kernel handles, can have a price instead:
 * the server sleeps until all of it is paid for before it goes on (ledger.h).
 *
 * Workers are processes, each with a listening socket of its own (SO_REUSEPORT), a share of the
 * clients (share.h) and, if wanted, a processor.  SIGTERM, SIGINT or the end of its lifetime end the server; it then reports its counts
 * in JSON on standard output.  A server that lacked descriptors or memory ends with status 3.
 *
 * Sources: tcp(7), listen(2), socket(7) SO_REUSEPORT and SO_LINGER, epoll(7); RFC 7413; RFC 9112.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "http.h"
#include "ledger.h"
#include "options.h"
#include "process.h"
#include "share.h"

#define MILLI 1000000LL
#define WORKERS 64
#define EVENTS_AT_ONCE 256
#define TIMED_STEPS 200000
#define TIMINGS 25

struct connection {
	int fd;
	struct head head;
	int64_t body;     /* bytes of the request that are still to come */
	bool answering;   /* a response has been begun */
	bool last;        /* and the server closes after it */
	size_t sent;
};

struct response {
	char *text;
	size_t size;
};

/* Of one worker; it shares them with the first process, which reports. */
struct counts {
	uint64_t accepted, requests, responses, closed, client_closed, resets, invalid;
	uint64_t lacked, bytes_received, bytes_sent, queue_most;
	uint64_t syns, segments, unseen;
	int64_t processor_us, owed_ns;
	struct busy busy;
};

static int64_t backlog = 128, response_bytes = 900, work_ns, price_accept_ns, price_request_ns;
static int64_t price_close_ns, price_syn_ns, price_segment_ns, fast_open, workers = 1;
static int64_t accepts_at_once, lifetime_ms = 3600000;
static const char *listen_text, *processors_text, *close_text = "fin";

static const struct option options[] = {
	{ "listen", .text = &listen_text, .meaning = "ADDRESS:PORT" },
	{ "backlog", &backlog, 1, 65535, .meaning = "of listen(2): net.core.somaxconn bounds it" },
	{ "response-bytes", &response_bytes, 0, 1 << 24, .meaning = "of each body" },
	{ "work-ns", &work_ns, 0, 1000000000, .meaning = "of computing for each request" },
	{ "price-accept-ns", &price_accept_ns, 0, 1000000000, .meaning = "of sleep for each connection" },
	{ "price-request-ns", &price_request_ns, 0, 1000000000, .meaning = "of sleep for each request" },
	{ "price-close-ns", &price_close_ns, 0, 1000000000, .meaning = "of sleep for each close" },
	{ "price-syn-ns", &price_syn_ns, 0, 1000000000, .meaning = "of sleep for each SYN" },
	{ "price-segment-ns", &price_segment_ns, 0, 1000000000,
	  .meaning = "of sleep for each other segment of this namespace, in or out" },
	{ "close", .text = &close_text, .meaning = "how it closes: fin or rst (SO_LINGER of 0)" },
	{ "fast-open", &fast_open, 0, 65535, .meaning = "length of its queue; 0: no Fast Open" },
	{ "accepts-at-once", &accepts_at_once, 0, 65535, .meaning = "in a turn; 0: all that wait" },
	{ "workers", &workers, 1, WORKERS, .meaning = "processes with a listening socket each" },
	{ "processors", .text = &processors_text, .meaning = "one for each worker: 0,1" },
	{ "lifetime-ms", &lifetime_ms, 1, 86400000, .meaning = "at most" },
	{ NULL },
};

static struct sockaddr_in address;
static struct response kept_open, closing; /* to requests after which it stays open, and closes */
static bool abortive;
static uint64_t work_steps;
static int processors[WORKERS];
static struct counts *counts; /* of this worker */

/* Costs. */

static void compute(uint64_t steps)
{
	uint64_t number = 1;

	while (steps--) {
		number = number * 6364136223846793005u + 1;
		__asm__ volatile("" : "+r"(number)); /* so that no step is left out */
	}
}

/* How many steps take that long by the processor's clock, when nothing gets in between. */
static uint64_t time_steps(ns_t wanted)
{
	ns_t least = INT64_MAX;

	if (!wanted)
		return 0;
	for (int i = 0; i < TIMINGS; i++) {
		ns_t before = nanoseconds(CLOCK_THREAD_CPUTIME_ID), took;

		compute(TIMED_STEPS);
		took = nanoseconds(CLOCK_THREAD_CPUTIME_ID) - before;
		if (took < least)
			least = took;
	}
	if (least <= 0)
		refuse("work-ns", "computing takes no time on this clock; set prices instead");
	return (uint64_t)((unsigned __int128)wanted * TIMED_STEPS / least);
}

/* Connections. */

static void close_connection(struct connection *connection, uint64_t *why)
{
	static const struct linger at_once = { 1, 0 };

	++*why;
	pay(price_close_ns);
	if (abortive)
		setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	close(connection->fd);
	free(connection);
}

/* Send the rest of the response; returns whether the connection goes on. */
static bool send_response(struct connection *connection)
{
	const struct response *response = connection->last ? &closing : &kept_open;
	ssize_t sent = send(connection->fd, response->text + connection->sent,
			    response->size - connection->sent, MSG_NOSIGNAL);

	if (sent < 0 && errno == EAGAIN)
		return true;
	if (sent < 0) {
		close_connection(connection, &counts->resets);
		return false;
	}
	counts->bytes_sent += (uint64_t)sent;
	connection->sent += (size_t)sent;
	if (connection->sent < response->size)
		return true;
	counts->responses++;
	connection->answering = false;
	begin_head(&connection->head);
	if (connection->last) {
		close_connection(connection, &counts->closed);
		return false;
	}
	return true;
}

static bool answer(struct connection *connection)
{
	counts->requests++;
	compute(work_steps);
	pay(price_request_ns);
	connection->answering = true;
	connection->last = connection->head.last;
	connection->sent = 0;
	return send_response(connection);
}

/* Take a request's bytes; another request may come only when its response is there. */
static bool take_bytes(struct connection *connection, const char *data, size_t length)
{
	size_t taken = read_head(&connection->head, data, length);

	if (connection->head.invalid || connection->head.length > 0 || taken < length) {
		close_connection(connection, &counts->invalid);
		return false;
	}
	return !connection->head.complete || answer(connection);
}

static void handle(struct connection *connection, bool has_ended)
{
	static char buffer[65536];

	while (!connection->answering || send_response(connection)) {
		ssize_t length;

		if (connection->answering)
			return; /* until there is room for more */
		length = recv(connection->fd, buffer, sizeof(buffer), 0);
		if (length < 0 && errno == EAGAIN)
			return;
		if (length <= 0) {
			close_connection(connection, length ? &counts->resets : &counts->client_closed);
			return;
		}
		counts->bytes_received += (uint64_t)length;
		if (!take_bytes(connection, buffer, (size_t)length))
			return;
		/* Less than fits was all there is; what comes later is another edge (epoll(7)). */
		if ((size_t)length < sizeof(buffer) && !has_ended)
			return;
	}
}

static void watch_queue(int listener)
{
	struct tcp_info info;
	socklen_t size = sizeof(info);

	/* Of a listening socket this is how many wait for accept(). */
	if (!getsockopt(listener, IPPROTO_TCP, TCP_INFO, &info, &size) &&
	    info.tcpi_unacked > counts->queue_most)
		counts->queue_most = info.tcpi_unacked;
}

/* Returns whether there may be more to accept. */
static bool accept_connection(int listener, int poll_set)
{
	struct epoll_event event = { EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, { NULL } };
	struct connection *connection;
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0) {
		counts->lacked += errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
		return errno == ECONNABORTED;
	}
	counts->accepted++;
	pay(price_accept_ns);
	connection = event.data.ptr = calloc(1, sizeof(*connection));
	if (!connection || epoll_ctl(poll_set, EPOLL_CTL_ADD, fd, &event))
		die("no memory for connections");
	connection->fd = fd;
	begin_head(&connection->head);
	return true;
}

static void accept_connections(int listener, int poll_set)
{
	int64_t left = accepts_at_once ? accepts_at_once : INT64_MAX;

	watch_queue(listener);
	while (left-- && accept_connection(listener, poll_set))
		;
}

/* One worker's loop, until a signal. */
static void serve(int listener)
{
	struct epoll_event events[EVENTS_AT_ONCE];
	struct epoll_event connecting = { EPOLLIN, { NULL } }, ending = { EPOLLIN, { &ending } };
	int poll_set = epoll_create1(EPOLL_CLOEXEC);

	if (poll_set < 0 || epoll_ctl(poll_set, EPOLL_CTL_ADD, listener, &connecting) ||
	    epoll_ctl(poll_set, EPOLL_CTL_ADD, open_signals(), &ending))
		die("cannot watch sockets");
	for (;;) {
		int ready = epoll_wait(poll_set, events, EVENTS_AT_ONCE, ledger.kept ? 0 : -1);

		if (!ready) {
			note_idleness();
			ready = epoll_wait(poll_set, events, EVENTS_AT_ONCE, -1);
		}
		for (int i = 0; i < ready; i++) {
			if (events[i].data.ptr == &ending)
				return;
			if (events[i].data.ptr)
				handle(events[i].data.ptr,
				       events[i].events & (EPOLLRDHUP | EPOLLERR | EPOLLHUP));
			else
				accept_connections(listener, poll_set);
		}
	}
}

/* Preparation. */

static int open_listener(void)
{
	int on = 1, queue = (int)fast_open;
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    (workers > 1 && setsockopt(listener, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on))) ||
	    bind(listener, (struct sockaddr *)&address, sizeof(address)) ||
	    (fast_open && setsockopt(listener, IPPROTO_TCP, TCP_FASTOPEN, &queue, sizeof(queue))) ||
	    listen(listener, (int)backlog) ||
	    (workers > 1 && divide_connections(listener, (uint32_t)workers)))
		die(listen_text);
	return listener;
}

static struct response make_response(const char *connection)
{
	struct response response;
	FILE *text = open_memstream(&response.text, &response.size);

	if (!text)
		die("no memory for the response");
	fprintf(text, "HTTP/1.1 200 OK\r\nContent-Length: %" PRId64 "\r\nConnection: %s\r\n\r\n",
		response_bytes, connection);
	for (int64_t i = 0; i < response_bytes; i++)
		fputc('x', text);
	fclose(text);
	return response;
}

static void read_processors(void)
{
	const char *from = processors_text;

	for (int i = 0; i < workers; i++) {
		char *end = NULL;

		processors[i] = from ? (int)strtol(from, &end, 10) : -1;
		if (!from)
			continue;
		if (end == from || processors[i] < 0 || processors[i] >= CPU_SETSIZE ||
		    *end != (i + 1 < workers ? ',' : '\0'))
			refuse("processors", "\"%s\" is not one number for each of %" PRId64 " workers",
			       processors_text, workers);
		from = end + 1;
	}
}

static bool has_prices(void)
{
	return price_syn_ns || price_segment_ns || price_accept_ns || price_request_ns ||
	       price_close_ns;
}

/* For the workers and the first process. */
static void *share_memory(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		die("no memory");
	return memory;
}

static void prepare(void)
{
	sigset_t ends;

	raise_descriptor_limit();
	make_timers_exact();
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGCHLD);
	sigprocmask(SIG_BLOCK, &ends, NULL); /* for sigtimedwait */
	counts = share_memory(sizeof(*counts) * (size_t)workers);
	if (has_prices())
		for (int i = 0; i < workers; i++) {
			struct busy *busy = &counts[i].busy;

			busy->from = nanoseconds(CLOCK_REALTIME);
			busy->count = lifetime_ms * MILLI / SLICE + 1;
			busy->slices = share_memory(sizeof(*busy->slices) * (size_t)busy->count);
		}
	kept_open = make_response("keep-alive");
	closing = make_response("close");
}

/* A process of its own, which ends with the first one. */
static pid_t start_worker(int number, const int *listeners)
{
	pid_t parent = getpid(), child = fork();

	if (child < 0)
		die("fork");
	if (child)
		return child;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(1);
	if (processors[number] >= 0)
		choose_processor(processors[number]);
	for (int i = 0; i < workers; i++)
		if (i != number)
			close(listeners[i]);
	counts += number;
	open_ledger(price_syn_ns, price_segment_ns,
		    price_accept_ns || price_request_ns || price_close_ns, &counts->busy,
		    (uint32_t)number, (uint32_t)workers);
	serve(listeners[number]);
	close_ledger();
	counts->processor_us = read_processor_us();
	counts->owed_ns = ledger.owed_ns;
	counts->syns = ledger.syns;
	counts->segments = ledger.segments;
	counts->unseen = ledger.unseen;
	_exit(0);
}

/* Returns whether all workers have ended well. */
static bool await_end(const pid_t *children)
{
	struct timespec lifetime = { lifetime_ms / 1000, lifetime_ms % 1000 * MILLI };
	bool well = true;
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGCHLD);
	sigtimedwait(&ends, NULL, &lifetime);
	for (int i = 0; i < workers; i++)
		kill(children[i], SIGTERM);
	for (int i = 0; i < workers; i++) {
		int status;

		well = waitpid(children[i], &status, 0) == children[i] && !status && well;
	}
	return well;
}

/* From the first slice in which there was work to the last. */
static void report_busy(const struct busy *busy)
{
	int64_t first = 0, from;

	while (first < busy->last && !busy->slices[first])
		first++;
	from = busy->from + first * SLICE;
	printf(", \"busy_from_ns\": %" PRId64 ", \"busy_ns\": [", from);
	for (int64_t i = first; i <= busy->last; i++)
		printf("%s%" PRId64, i > first ? ", " : "", busy->slices[i]);
	printf("]");
}

static void report_counts(const struct counts *c)
{
	printf("{\"accepted\": %" PRIu64 ", \"requests\": %" PRIu64 ", \"responses\": %" PRIu64
	       ", \"closed\": %" PRIu64 ", \"client_closed\": %" PRIu64 ", \"resets\": %" PRIu64
	       ", \"invalid\": %" PRIu64 ", \"lacked\": %" PRIu64 ", \"bytes_received\": %" PRIu64
	       ", \"bytes_sent\": %" PRIu64 ", \"queue_most\": %" PRIu64
	       ", \"processor_us\": %" PRId64 ", \"owed_ns\": %" PRId64 ", \"syns\": %" PRIu64
	       ", \"segments\": %" PRIu64 ", \"unseen\": %" PRIu64,
	       c->accepted, c->requests, c->responses, c->closed, c->client_closed, c->resets,
	       c->invalid, c->lacked, c->bytes_received, c->bytes_sent, c->queue_most, c->processor_us,
	       c->owed_ns, c->syns, c->segments, c->unseen);
	if (c->busy.slices)
		report_busy(&c->busy);
	printf("}");
}

int main(int count, char **arguments)
{
	int listeners[WORKERS];
	pid_t children[WORKERS];
	bool well, lacked = false;

	(void)count;
	read_options(arguments, options, "an HTTP server whose costs and queues are known");
	address = read_end("listen", listen_text);
	abortive = choose("close", close_text, "fin", "rst");
	read_processors();
	prepare();
	work_steps = time_steps(work_ns);
	for (int i = 0; i < workers; i++)
		listeners[i] = open_listener();
	for (int i = 0; i < workers; i++)
		children[i] = start_worker(i, listeners);
	printf("{\"listening\": \"%s\", \"work_steps\": %" PRIu64 "}\n", listen_text, work_steps);
	fflush(stdout);
	well = await_end(children);
	printf("{\"workers\": [");
	for (int i = 0; i < workers; i++) {
		printf(i ? ", " : "");
		report_counts(&counts[i]);
		lacked = lacked || counts[i].lacked;
	}
	printf("]}\n");
	return !well ? 1 : lacked ? ITS_OWN_LIMIT : 0;
}
