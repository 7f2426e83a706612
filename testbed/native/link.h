/* SPDX-License-Identifier: MIT */
/*
 * One direction of the link: when each frame leaves the buffer, and when it is due at the far end.
 *
 * The buffer is a token bucket filter's (net/sched/sch_tbf.c: drop-tail, counted in bytes); line
 * and delay are netem's (net/sched/sch_netem.c).  Both follow from arrival times alone, so a
 * frame's times are known when it is read, and nothing has to happen in between.  With a trace
 * frames leave at its opportunities instead, and line takes no time (trace.h).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "arrival.h"
#include "clock.h"
#include "random.h"
#include "trace.h"

#define ETHERNET_HEADER 14
#define SMALLEST_FRAME (ETHERNET_HEADER + 20)
#define FRAMES_AT_ONCE 32 /* then it is the other direction's turn */

/* Upper ends of the lateness histogram. */
static const ns_t late_until[] = { 50000, 100000, 200000, 500000, 1000000, 2000000, 5000000 };
#define CLASSES (sizeof(late_until) / sizeof(*late_until) + 1)

/* What was asked of both directions; a packet counts as its IP bytes and the framing. */
struct terms {
	int64_t delay_ns, buffer_bytes, burst_bytes, mtu_bytes, framing_bytes, loss_ppb, seed;
};

struct counts {
	uint64_t packets, bytes; /* delivered; bytes are those of IP */
	uint64_t admitted, dropped, lost, overrun, failed, untimed;
	ns_t late_worst, late_sum;
	uint64_t late[CLASSES];
};

struct frame {
	ns_t leave, due; /* leave: the buffer */
	int64_t bytes;   /* as they count on the link */
	size_t length;   /* of the whole frame */
	bool lost;
};

/* Frames on their way, oldest first: descriptions and bytes in two rings.  Positions only grow. */
struct direction {
	const char *name;
	const struct terms *terms;
	int in, out, watch;
	int64_t kbit;
	bool lossy;
	struct frame *frames;
	uint64_t first, waiting, next, frame_mask; /* waiting: the first that is in the buffer */
	uint8_t *bytes;
	uint64_t head, tail, byte_mask;
	int64_t buffered;  /* bytes in the buffer */
	ns_t tokens, told; /* of the bucket, as time at the rate, and when that was */
	ns_t came;         /* when the last frame did */
	ns_t left, busy;   /* when it leaves the buffer, and the line */
	struct trace trace;
	uint64_t random;
	struct counts counts;
};

static void die(const char *what)
{
	fprintf(stderr, "link: %s: %s\n", what, strerror(errno));
	exit(1);
}

static ns_t now(void)
{
	return nanoseconds(CLOCK_MONOTONIC);
}

static ns_t later(ns_t a, ns_t b)
{
	return a > b ? a : b;
}

static ns_t serialisation(const struct direction *way, int64_t bytes)
{
	return bytes * 8 * 1000000 / way->kbit;
}

/* Let the oldest frame out of the buffer. */
static void release_frame(struct direction *way)
{
	way->buffered -= way->frames[way->waiting++ & way->frame_mask].bytes;
}

/* When a frame of that many bytes leaves the buffer: as soon as the bucket has tokens for it. */
static ns_t take_tokens(struct direction *way, int64_t bytes, ns_t at)
{
	ns_t full = serialisation(way, way->terms->burst_bytes);
	ns_t need = serialisation(way, bytes);
	ns_t start = later(at, way->left), tokens = way->tokens + (start - way->told);

	if (tokens > full)
		tokens = full;
	if (tokens < need) {
		start += need - tokens;
		tokens = need;
	}
	way->tokens = tokens - need;
	way->told = start;
	return way->left = start;
}

/* The frame of that length, which has just been read to the head of the ring of bytes. */
static void accept_frame(struct direction *way, size_t length, ns_t at)
{
	const struct terms *terms = way->terms;
	struct frame *frame = &way->frames[way->next & way->frame_mask];
	ns_t start;

	*frame = (struct frame){ .length = length };
	frame->bytes = (int64_t)length - ETHERNET_HEADER + terms->framing_bytes;
	while (way->waiting != way->next &&
	       way->frames[way->waiting & way->frame_mask].leave <= at)
		release_frame(way);
	if (frame->bytes > terms->burst_bytes ||
	    way->buffered + frame->bytes > terms->buffer_bytes) {
		way->counts.dropped++;
		return;
	}
	if (way->trace.times)
		way->left = take_opportunities(&way->trace, frame->bytes, at, way->left,
					       &frame->leave);
	else
		frame->leave = take_tokens(way, frame->bytes, at);
	/* A lost frame has been in the buffer, but not on the line. */
	frame->lost = way->lossy && (int64_t)(draw(&way->random) % SECOND) < terms->loss_ppb;
	start = way->trace.times ? way->left : later(frame->leave, way->busy);
	if (!frame->lost && !way->trace.times)
		way->busy = start += serialisation(way, frame->bytes);
	frame->due = start + terms->delay_ns;
	way->buffered += frame->bytes;
	way->counts.admitted++;
	way->head += length;
	way->next++;
}

/* A part of the ring of bytes as at most two pieces; returns how many. */
static int pieces(struct direction *way, uint64_t from, size_t length, struct iovec *piece)
{
	size_t size = way->byte_mask + 1, start = from & way->byte_mask;
	size_t whole = length < size - start ? length : size - start;

	piece[0] = (struct iovec){ way->bytes + start, whole };
	piece[1] = (struct iovec){ way->bytes, length - whole };
	return piece[1].iov_len ? 2 : 1;
}

/* When the frame at the head of the ring came; a copy's start may be in two pieces there. */
static ns_t arrival(struct direction *way, size_t length)
{
	struct iovec piece[2];
	uint8_t start[WATCHED_BYTES];
	size_t known = length < sizeof(start) ? length : sizeof(start);
	ns_t came;

	pieces(way, way->head, known, piece);
	memcpy(start, piece[0].iov_base, piece[0].iov_len);
	memcpy(start + piece[0].iov_len, piece[1].iov_base, piece[1].iov_len);
	came = find_arrival(way->watch, start, known);
	way->counts.untimed += came < 0;
	/* Not before the last one: the times of the queues only go on. */
	return way->came = later(came < 0 ? now() : came, way->came);
}

static void read_frames(struct direction *way)
{
	size_t room = ETHERNET_HEADER + way->terms->mtu_bytes;
	uint8_t nowhere;

	for (int i = 0; i < FRAMES_AT_ONCE; i++) {
		struct iovec piece[2] = { { &nowhere, 1 } };
		bool full = way->head - way->tail + room > way->byte_mask ||
			    way->next - way->first > way->frame_mask;
		int count = full ? 1 : pieces(way, way->head, room, piece);
		ssize_t length = readv(way->in, piece, count);

		if (length < 0 && errno == EAGAIN)
			return;
		if (length <= 0)
			die("cannot read from the TAP");
		if (full)
			way->counts.overrun++;
		else if (length >= SMALLEST_FRAME)
			accept_frame(way, length, arrival(way, length));
	}
}

static void count_delivery(struct counts *counts, const struct frame *frame, ns_t late)
{
	size_t class = 0;

	while (class < CLASSES - 1 && late >= late_until[class])
		class++;
	counts->late[class]++;
	counts->late_sum += late;
	counts->late_worst = later(counts->late_worst, late);
	counts->packets++;
	counts->bytes += frame->length - ETHERNET_HEADER;
}

/* Write what is due; returns when the next one is due, or -1. */
static ns_t write_frames(struct direction *way)
{
	for (int i = 0; way->first != way->next; i++) {
		struct frame *frame = &way->frames[way->first & way->frame_mask];
		struct iovec piece[2];
		int count = pieces(way, way->tail, frame->length, piece);
		ns_t late = now() - frame->due;

		if (late < 0 || i == FRAMES_AT_ONCE)
			return frame->due;
		if (frame->lost)
			way->counts.lost++;
		else if (writev(way->out, piece, count) != (ssize_t)frame->length)
			way->counts.failed++;
		else
			count_delivery(&way->counts, frame, late);
		if (way->waiting == way->first)
			release_frame(way);
		way->tail += frame->length;
		way->first++;
	}
	return -1;
}

/* As if nothing had ever been sent. */
static void forget_frames(struct direction *way)
{
	uint8_t nowhere;

	while (read(way->in, &nowhere, 1) > 0)
		;
	way->first = way->waiting = way->next;
	way->tail = way->head;
	way->buffered = 0;
	way->came = way->left = way->busy = way->told = now();
	way->tokens = serialisation(way, way->terms->burst_bytes);
	way->trace.unused = 0;
	way->counts = (struct counts){ 0 };
}

static uint64_t power_of_two(uint64_t least)
{
	uint64_t power = 1;

	while (power < least)
		power <<= 1;
	return power;
}

static void open_direction(struct direction *way, const struct terms *terms)
{
	/* What buffer and delay can hold; the smallest packets have nearly as much Ethernet header. */
	int64_t held = terms->buffer_bytes + terms->burst_bytes + terms->mtu_bytes +
		       way->kbit * terms->delay_ns / 8000000;
	uint64_t size = power_of_two(2 * held + 65536);

	way->terms = terms;
	way->trace.room = PACKET_BYTES + terms->framing_bytes;
	begin_trace(&way->trace, -real_offset(), false);
	way->random = terms->seed * 2 + (*way->name == 'u');
	way->byte_mask = size - 1;
	way->frame_mask = power_of_two(size / SMALLEST_FRAME) - 1;
	way->bytes = malloc(size);
	way->frames = calloc(way->frame_mask + 1, sizeof(*way->frames));
	if (!way->bytes || !way->frames)
		die("no memory for the frames");
	forget_frames(way);
}
