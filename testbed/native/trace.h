/* SPDX-License-Identifier: MIT */
/*
 * Opportunities of a trace, as testbed/kernel/pins/7.3/patches has them in net/sched/sch_trace.c:
 * moments in ms at which so many bytes may leave.  What a packet leaves of one goes to the next
 * that waits; a packet that comes takes later ones only.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define PACKET_BYTES 1500
#define MS 1000000
#define NEVER (INT64_MAX / 2)

struct trace {
	const uint32_t *times; /* ms, never falling; NULL: there is none */
	uint64_t count, next;
	ns_t begin, lap; /* by CLOCK_MONOTONIC: of the trace, and of this round of it */
	int64_t room, unused; /* of an opportunity, and of the last one */
	bool once;
	uint32_t crc; /* of all times */
};

/* CLOCK_REALTIME less CLOCK_MONOTONIC. */
static ns_t real_offset(void)
{
	return nanoseconds(CLOCK_REALTIME) - nanoseconds(CLOCK_MONOTONIC);
}

static ns_t end_of(const struct trace *trace)
{
	return (ns_t)trace->times[trace->count - 1] * MS;
}

/* CRC-32 of the times (IEEE 802.3), as the kernel has it of its own. */
static uint32_t check_sum(const struct trace *trace)
{
	const uint8_t *bytes = (const uint8_t *)trace->times;
	uint32_t crc = ~0U;

	for (uint64_t i = 0; i < 4 * trace->count; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320U : 0);
	}
	return ~crc;
}

/* Map the file of times, each of 32 bits; returns false if it is none. */
static bool open_trace(struct trace *trace, const char *path)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	struct stat seen;
	void *times;

	if (file < 0 || fstat(file, &seen) || seen.st_size < 4 || seen.st_size % 4)
		return false;
	times = mmap(NULL, seen.st_size, PROT_READ, MAP_PRIVATE, file, 0);
	close(file);
	if (times == MAP_FAILED)
		return false;
	trace->times = times;
	trace->count = seen.st_size / 4;
	for (uint64_t i = 1; i < trace->count; i++)
		if (trace->times[i] < trace->times[i - 1])
			return false;
	trace->crc = check_sum(trace);
	return end_of(trace) > 0;
}

/* Nothing may be on its way that waits for an opportunity. */
static void begin_trace(struct trace *trace, ns_t begin, bool once)
{
	trace->begin = begin;
	trace->once = once;
	trace->unused = 0;
}

/* Forget what is over at this moment, and all that is left of it. */
static void seek_opportunity(struct trace *trace, ns_t at)
{
	ns_t since = at - trace->begin, laps = 0;
	uint64_t low = 0, high = trace->count;

	if (!trace->once) {
		laps = since / end_of(trace);
		laps -= laps * end_of(trace) > since;
	}
	trace->lap = trace->begin + laps * end_of(trace);
	while (low < high) {
		uint64_t middle = (low + high) / 2;

		if (trace->lap + (ns_t)trace->times[middle] * MS <= at)
			low = middle + 1;
		else
			high = middle;
	}
	trace->next = low;
	trace->unused = 0;
}

static ns_t next_opportunity(struct trace *trace)
{
	if (trace->next == trace->count) {
		if (trace->once)
			return NEVER;
		trace->lap += end_of(trace);
		trace->next = 0;
	}
	return trace->lap + (ns_t)trace->times[trace->next++] * MS;
}

/*
 * When a packet of that many bytes has left that comes at this moment, behind one that has at left;
 * begun: when it is no longer in the buffer.
 */
static ns_t take_opportunities(struct trace *trace, int64_t bytes, ns_t at, ns_t left, ns_t *begun)
{
	if (at >= left)
		seek_opportunity(trace, at);
	*begun = trace->unused ? left : NEVER;
	while (trace->unused < bytes) {
		left = next_opportunity(trace);
		if (left == NEVER)
			return NEVER;
		if (*begun == NEVER)
			*begun = left;
		trace->unused += trace->room;
	}
	trace->unused -= bytes;
	return left;
}
