/* SPDX-License-Identifier: MIT */
/*
 * A connection of the load generator, from its SYN to its end: establishment, retries, requests,
 * responses, and what it counts as.
 *
 * Sources: ip(7) IP_BIND_ADDRESS_NO_PORT, tcp(7), epoll(7) on edges; RFC 7413; RFC 9112.
 */
#pragma once
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "http.h"
#include "process.h"
#include "tally.h"

#define CHUNK 1024 /* connections that are allocated together */
#define SHORTEST_SYN_TIMER (SECOND / 5) /* sooner no SYN is sent again (TCP_RTO_MIN) */
#define SYN_TIMEOUTS_MOST 16
#define USUAL_LONGEST (120 * SECOND) /* TCP_RTO_MAX */
#ifndef TCP_RTO_MAX_MS /* since Linux 6.15 */
#define TCP_RTO_MAX_MS 44
#endif

enum phase {
	CONNECTING,
	WAITING, /* for a response */
	ENDING,  /* the last response is complete: for the server's FIN */
};

struct connection {
	struct connection *older, *newer; /* by intended start */
	struct connection *before, *behind; /* in the queue for its next SYN timer; NULL: in none */
	int timer;                          /* which that is */
	ns_t intended, opened;              /* opened: when the last attempt sent its SYN */
	int fd;
	enum phase phase;
	bool measured; /* its intended start is after the warm-up */
	int64_t retries;
	int64_t left;     /* requests that are not answered */
	size_t sent;      /* bytes of the request */
	int64_t expected; /* bytes of the body that are still to come; -1: until the server's FIN */
	struct head head;
};

struct request {
	char *text;
	size_t size;
};

/* What is alike for all connections. */
static struct load {
	struct sockaddr_in target;
	uint32_t first_source, source_count; /* IPv4; no source: the kernel chooses */
	int64_t requests;                    /* on each connection */
	int64_t retries;                     /* after refusals */
	int64_t fast_open;
	bool server_ends, abortive;
	struct request kept, last; /* on all but the last request of a connection, and on that */
	int64_t clients;           /* of a closed loop */
	int64_t syn_timeouts;      /* that are listed; 0: the kernel's own */
	ns_t syn_timeout[SYN_TIMEOUTS_MOST];
	ns_t half; /* of the measured time, since the beginning */
} load = { .requests = 1 };

/* What there is at the moment. */
static struct connection list = { .older = &list, .newer = &list }, *unused;
static int poll_set;
static struct connection timed[SYN_TIMEOUTS_MOST]; /* queues for the next SYN timer */
static int64_t idle_clients;
static uint64_t lacked_ports, lacked_descriptors, lacked_memory;
static uint32_t source_turn;

static void add(const struct connection *connection, uint64_t *count, uint64_t more)
{
	if (connection->measured)
		*count += more;
}

static struct connection *take_connection(void)
{
	struct connection *taken;

	if (!unused) {
		struct connection *chunk = calloc(CHUNK, sizeof(*chunk));

		if (!chunk)
			die("no memory for connections");
		for (int i = 0; i < CHUNK; i++) {
			chunk[i].newer = unused;
			unused = &chunk[i];
		}
	}
	taken = unused;
	unused = taken->newer;
	*taken = (struct connection){ .older = list.older, .newer = &list, .fd = -1 };
	list.older->newer = taken;
	list.older = taken;
	tally.outstanding++;
	if (tally.outstanding > tally.outstanding_most)
		tally.outstanding_most = tally.outstanding;
	return taken;
}

/*
 * SYN timers.  The kernel doubles the time after which it sends a SYN again, up to a longest one,
 * which each socket has for itself: so a list of times that never shrink, nor more than double, is
 * followed by setting the longest before a time begins.  The first is a sysctl's.
 */

static void leave_timers(struct connection *connection)
{
	if (!connection->before)
		return;
	connection->before->behind = connection->behind;
	connection->behind->before = connection->before;
	connection->before = connection->behind = NULL;
}

static bool set_longest(const struct connection *connection, ns_t longest)
{
	int ms = (int)(longest / (SECOND / 1000));

	return !setsockopt(connection->fd, IPPROTO_TCP, TCP_RTO_MAX_MS, &ms, sizeof(ms));
}

/* Half of the time before timer `number` begins; the one before it has gone off then. */
static ns_t moment_of(int number)
{
	ns_t moment = load.syn_timeout[number - 1] / 2;

	for (int i = 0; i < number - 1; i++)
		moment += load.syn_timeout[i];
	return moment;
}

/* Wait until the next timer that is longer than the one before it has to be set. */
static void await_timer(struct connection *connection)
{
	struct connection *queue;

	do {
		if (++connection->timer >= load.syn_timeouts)
			return;
	} while (load.syn_timeout[connection->timer] == load.syn_timeout[connection->timer - 1]);
	queue = &timed[connection->timer];
	connection->before = queue->before;
	connection->behind = queue;
	queue->before = queue->before->behind = connection;
}

static bool begin_timers(struct connection *connection)
{
	if (!load.syn_timeouts)
		return true;
	leave_timers(connection);
	connection->timer = 1;
	if (!set_longest(connection, load.syn_timeout[load.syn_timeouts > 1]))
		return false;
	await_timer(connection);
	return true;
}

static void end_timers(struct connection *connection)
{
	if (!load.syn_timeouts)
		return;
	leave_timers(connection);
	set_longest(connection, USUAL_LONGEST);
}

/* Set the timers that are due; returns when the next one will be, at the latest `next`. */
static ns_t set_timers(ns_t at, ns_t next)
{
	for (int number = 2; number < load.syn_timeouts; number++) {
		struct connection *queue = &timed[number];

		while (queue->behind != queue) {
			struct connection *first = queue->behind;
			ns_t due = first->opened + moment_of(number);

			if (due > at) {
				if (due < next)
					next = due;
				break;
			}
			leave_timers(first);
			set_longest(first, load.syn_timeout[number]);
			await_timer(first);
		}
	}
	return next;
}

static void close_socket(struct connection *connection)
{
	static const struct linger at_once = { 1, 0 };

	if (connection->fd < 0)
		return;
	if (load.abortive)
		setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	close(connection->fd);
	connection->fd = -1;
}

static void drop(struct connection *connection)
{
	leave_timers(connection);
	close_socket(connection);
	connection->older->newer = connection->newer;
	connection->newer->older = connection->older;
	connection->newer = unused;
	unused = connection;
	tally.outstanding--;
}

/* Count how a connection ended; its socket may be needed a little longer. */
static void conclude(struct connection *connection, enum outcome outcome, ns_t at)
{
	struct second *second = second_of(at);

	add(connection, &tally.outcomes[outcome], 1);
	if (outcome == COMPLETED)
		second->completed++;
	else
		second->failed++;
	/* A client for which nothing was left would only ask for it again. */
	if (load.clients && outcome != UNOPENED)
		idle_clients++;
}

static void count_syn_retransmissions(const struct connection *connection, ns_t at)
{
	struct tcp_info info;
	socklen_t size = sizeof(info);

	if (at - connection->opened >= SHORTEST_SYN_TIMER &&
	    !getsockopt(connection->fd, IPPROTO_TCP, TCP_INFO, &info, &size))
		add(connection, &tally.syn_retransmissions, info.tcpi_total_retrans);
}

static int bind_source(int fd)
{
	struct sockaddr_in source = { .sin_family = AF_INET };
	int on = 1;

	/* The port is chosen by connect(), which knows that another target's may be used again. */
	source.sin_addr.s_addr = htonl(load.first_source + source_turn++ % load.source_count);
	return setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on)) ||
	       bind(fd, (struct sockaddr *)&source, sizeof(source));
}

static const struct request *request_of(const struct connection *connection)
{
	return connection->left > 1 ? &load.kept : &load.last;
}

/* Send the SYN; returns 0 or the error. */
static int send_syn(struct connection *connection)
{
	const struct request *request = request_of(connection);
	struct sockaddr *address = (struct sockaddr *)&load.target;
	ssize_t sent;

	if (!load.fast_open)
		return connect(connection->fd, address, sizeof(load.target)) &&
			       errno != EINPROGRESS ? errno : 0;
	sent = sendto(connection->fd, request->text, request->size, MSG_FASTOPEN | MSG_NOSIGNAL,
		      address, sizeof(load.target));
	if (sent < 0)
		return errno == EINPROGRESS ? 0 : errno; /* no cookie yet: the SYN asks for one */
	connection->sent = (size_t)sent;
	add(connection, &tally.syns_with_data, 1);
	add(connection, &tally.bytes_sent, (uint64_t)sent);
	return 0;
}

/* Returns 0 or the error. */
static int open_socket(struct connection *connection, ns_t at)
{
	struct epoll_event event = { EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
				     { .ptr = connection } };
	int error;

	connection->phase = CONNECTING;
	connection->opened = at;
	connection->left = load.requests;
	connection->sent = 0;
	begin_head(&connection->head);
	connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (connection->fd < 0 || (load.source_count && bind_source(connection->fd)))
		return errno;
	if (!begin_timers(connection))
		die("no SYN timers of one's own (TCP_RTO_MAX_MS, since Linux 6.15)");
	error = send_syn(connection);
	if (!error && epoll_ctl(poll_set, EPOLL_CTL_ADD, connection->fd, &event))
		error = errno;
	return error;
}

static void give_up(struct connection *connection, enum outcome outcome, ns_t at)
{
	if (connection->phase == CONNECTING && connection->fd >= 0) {
		count_syn_retransmissions(connection, at);
		if (outcome == TIMED_OUT)
			add(connection, &tally.timed_out_connecting, 1);
	}
	conclude(connection, outcome, at);
	drop(connection);
}

/* Which of the generator's own resources was lacking, if one was. */
static uint64_t *find_lack(int error)
{
	switch (error) {
	case EADDRNOTAVAIL:
	case EADDRINUSE:
		return &lacked_ports;
	case EMFILE:
	case ENFILE:
		return &lacked_descriptors;
	case ENOMEM:
	case ENOBUFS:
	case ENOSPC: /* fs.epoll.max_user_watches */
		return &lacked_memory;
	default:
		return NULL;
	}
}

static void fail(struct connection *connection, int error, ns_t at);

static void open_connection(struct connection *connection, ns_t at)
{
	int error = open_socket(connection, at);
	uint64_t *lack = find_lack(error);

	if (!error)
		return;
	if (error == EOPNOTSUPP && load.fast_open) {
		errno = error;
		die("net.ipv4.tcp_fastopen lets no client open fast here (bit 1)");
	}
	if (!lack) {
		fail(connection, error, at);
		return;
	}
	++*lack;
	add(connection, &tally.errors[error], 1);
	give_up(connection, UNOPENED, at);
}

static enum outcome outcome_of(int error)
{
	switch (error) {
	case ECONNREFUSED:
		return REFUSED;
	case ECONNRESET:
	case EPIPE:
		return RESET;
	case ETIMEDOUT: /* the kernel's, after net.ipv4.tcp_syn_retries */
		return TIMED_OUT;
	default:
		return FAILED;
	}
}

/* An error that the network or the server caused. */
static void fail(struct connection *connection, int error, ns_t at)
{
	bool was_connecting = connection->phase == CONNECTING;

	add(connection, &tally.errors[error], 1);
	if (was_connecting && error == ECONNREFUSED && connection->retries < load.retries) {
		count_syn_retransmissions(connection, at);
		close_socket(connection);
		connection->retries++;
		add(connection, &tally.retries, 1);
		open_connection(connection, at);
		return;
	}
	/* A RST before a SYN-ACK is a refusal; any later one means that it was established. */
	if (was_connecting && error == ECONNRESET)
		add(connection, &tally.established, 1);
	give_up(connection, outcome_of(error), at);
}

/* Send the rest of the request; returns, as the next three do, whether the connection goes on. */
static bool send_request(struct connection *connection, ns_t at)
{
	const struct request *request = request_of(connection);
	ssize_t sent;

	if (connection->sent == request->size)
		return true;
	sent = send(connection->fd, request->text + connection->sent,
		    request->size - connection->sent, MSG_NOSIGNAL);
	if (sent < 0 && errno == EAGAIN)
		return true;
	if (sent < 0) {
		fail(connection, errno, at);
		return false;
	}
	connection->sent += (size_t)sent;
	add(connection, &tally.bytes_sent, (uint64_t)sent);
	if (connection->sent == request->size)
		add(connection, &tally.requests, 1);
	return true;
}

static void complete(struct connection *connection, ns_t at)
{
	if (connection->measured) {
		bool second_half = connection->intended >= load.half;

		record_time(&tally.response, at, at - connection->intended);
		tally.answered_in_half[second_half]++;
		tally.response_in_half[second_half] += at - connection->intended;
	}
	conclude(connection, COMPLETED, at);
	connection->phase = ENDING;
	if (!load.server_ends)
		drop(connection);
}

/* A response is complete: go on to the next, or end. */
static bool finish_response(struct connection *connection, ns_t at)
{
	bool is_last = connection->head.last;

	add(connection, &tally.responses, 1);
	if (!--connection->left) {
		complete(connection, at);
		return load.server_ends;
	}
	if (is_last) {
		give_up(connection, CUT_SHORT, at);
		return false;
	}
	begin_head(&connection->head);
	connection->sent = 0;
	return send_request(connection, at);
}

static bool take_bytes(struct connection *connection, const char *data, size_t length, ns_t at)
{
	while (length && connection->phase == WAITING) {
		struct head *head = &connection->head;
		size_t taken;

		if (!head->complete) {
			taken = read_head(head, data, length);
			connection->expected = head->length;
			if (head->invalid || (head->complete && head->status != 200)) {
				give_up(connection, INVALID, at);
				return false;
			}
		} else {
			taken = connection->expected < 0 || length < (size_t)connection->expected ?
					length : (size_t)connection->expected;
			if (connection->expected > 0)
				connection->expected -= (int64_t)taken;
		}
		data += taken;
		length -= taken;
		if (head->complete && !connection->expected && !finish_response(connection, at))
			return false;
	}
	return true;
}

/* The server has sent its FIN. */
static void take_end(struct connection *connection, ns_t at)
{
	const struct head *head = &connection->head;

	if (connection->phase == ENDING)
		drop(connection);
	else if (head->complete && head->length < 0 && connection->left == 1) {
		add(connection, &tally.responses, 1);
		complete(connection, at);
		if (load.server_ends)
			drop(connection);
	} else
		give_up(connection, CUT_SHORT, at);
}

static void receive(struct connection *connection, bool has_ended, ns_t at)
{
	static char buffer[65536];

	for (;;) {
		ssize_t length = recv(connection->fd, buffer, sizeof(buffer), 0);

		if (length < 0 && errno == EAGAIN)
			return;
		if (length < 0 && connection->phase == ENDING) {
			drop(connection);
			return;
		}
		if (length < 0) {
			fail(connection, errno, at);
			return;
		}
		if (length == 0) {
			take_end(connection, at);
			return;
		}
		add(connection, &tally.bytes_received, (uint64_t)length);
		if (!take_bytes(connection, buffer, (size_t)length, at))
			return;
		/* Less than fits was all there is; what comes later is another edge (epoll(7)). */
		if ((size_t)length < sizeof(buffer) && !has_ended)
			return;
	}
}

/* Returns 0 or the error of a broken connection; what was received before is kept. */
static int find_error(const struct connection *connection)
{
	char byte;

	return recv(connection->fd, &byte, 1, MSG_PEEK) < 0 ? errno : 0;
}

/* What epoll(7) says of it. */
static void handle(struct connection *connection, uint32_t events, ns_t at)
{
	bool is_broken = events & (EPOLLERR | EPOLLHUP);

	if (connection->phase == CONNECTING) {
		int error = is_broken ? find_error(connection) : 0;

		if (error) {
			fail(connection, error, at);
			return;
		}
		if (!is_broken && !(events & EPOLLOUT))
			return;
		count_syn_retransmissions(connection, at);
		end_timers(connection);
		add(connection, &tally.established, 1);
		if (connection->measured)
			record_time(&tally.establishment, at, at - connection->intended);
		connection->phase = WAITING;
		if (connection->sent == request_of(connection)->size)
			add(connection, &tally.requests, 1);
	}
	if (connection->phase == WAITING && !is_broken && !send_request(connection, at))
		return;
	if (events & (EPOLLIN | EPOLLRDHUP | EPOLLERR | EPOLLHUP))
		receive(connection, events & (EPOLLRDHUP | EPOLLERR | EPOLLHUP), at);
}
