/* SPDX-License-Identifier: MIT */
/*
 * What the load generator counts and times, and its report.
 *
 * Counts and times are those of connections whose intended start is after the warm-up; the series
 * of seconds has all.  Every connection ends in one of the outcomes, so these add up to `started`.
 */
#pragma once
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "histogram.h"
#include "process.h"

#define ERRORS 134 /* errno(3) */

enum outcome {
	COMPLETED,  /* every response came in full */
	REFUSED,    /* RST instead of a SYN-ACK, also after the retries */
	RESET,      /* RST once established */
	TIMED_OUT,  /* by the time-out of --timeout-ms */
	CUT_SHORT,  /* the server ended it before the last response was complete */
	INVALID,    /* a response that is not HTTP/1 with status 200 */
	FAILED,     /* any other error of a socket */
	UNOPENED,   /* no port, descriptor or memory was left here: never the server's failure */
	UNFINISHED, /* a signal ended the run */
	OUTCOMES
};

static const char *const outcome_names[] = { "completed", "refused", "reset",
					     "timed_out", "cut_short", "invalid",
					     "failed",	  "unopened",  "unfinished" };

/* A kind of times: all of them, and those of the second that is being written to the log. */
struct times {
	const char *name;
	struct histogram whole, interval;
	int64_t second;
};

struct second {
	uint32_t started, completed, failed;
};

static struct tally {
	uint64_t started, outcomes[OUTCOMES], errors[ERRORS];
	uint64_t established, timed_out_connecting, retries, syn_retransmissions, syns_with_data;
	uint64_t requests, responses, bytes_sent, bytes_received;
	uint64_t outstanding, outstanding_most; /* also in the warm-up */
	uint64_t all_started;
	struct times response, establishment;
	uint64_t answered_in_half[2]; /* by the half of the measured time that they were to start in */
	ns_t response_in_half[2];
	struct histogram lateness;
	struct second *seconds;
	int64_t second_count;
	FILE *log; /* of intervals; NULL: none is wanted */
} tally = { .response.name = "response", .establishment.name = "establishment" };

static struct second *second_of(ns_t at)
{
	int64_t second = at / SECOND;

	return &tally.seconds[second < tally.second_count ? second : tally.second_count - 1];
}

static void close_interval(struct times *times)
{
	if (tally.log && times->interval.total)
		write_interval(tally.log, times->name, &times->interval, times->second * SECOND, SECOND);
	memset(&times->interval, 0, sizeof(times->interval));
}

static void record_time(struct times *times, ns_t at, ns_t time)
{
	if (at / SECOND != times->second) {
		close_interval(times);
		times->second = at / SECOND;
	}
	record_value(&times->interval, time);
	record_value(&times->whole, time);
}

static void report_times(const char *name, const struct histogram *times)
{
	if (!times->total) {
		printf("  \"%s_us\": null,\n", name);
		return;
	}
	printf("  \"%s_us\": {\"count\": %" PRIu64 ", \"mean\": %.3f, \"p50\": %.3f, \"p99\": %.3f"
	       ", \"max\": %.3f},\n",
	       name, times->total, (double)times->sum / (double)times->total / 1e3,
	       (double)find_quantile(times, 500) / 1e3, (double)find_quantile(times, 990) / 1e3,
	       (double)times->largest / 1e3);
}

/* The mean response of each half of the measured time. */
static void report_halves(void)
{
	printf("  \"response_halves_us\": [");
	for (int half = 0; half < 2; half++) {
		uint64_t count = tally.answered_in_half[half];

		if (half)
			printf(", ");
		if (count)
			printf("%.3f", (double)tally.response_in_half[half] / (double)count / 1e3);
		else
			printf("null");
	}
	printf("],\n");
}

static void report_counts(void)
{
	const char *comma = "";

	printf("  \"connections\": {\"started\": %" PRIu64, tally.started);
	for (int i = 0; i < OUTCOMES; i++)
		printf(", \"%s\": %" PRIu64, outcome_names[i], tally.outcomes[i]);
	printf("},\n  \"established\": %" PRIu64 ", \"timed_out_connecting\": %" PRIu64
	       ", \"retries\": %" PRIu64 ",\n  \"syn_retransmissions\": %" PRIu64
	       ", \"syns_with_data\": %" PRIu64 ",\n  \"requests\": %" PRIu64
	       ", \"responses\": %" PRIu64 ", \"bytes_sent\": %" PRIu64
	       ", \"bytes_received\": %" PRIu64 ",\n  \"outstanding_most\": %" PRIu64
	       ",\n  \"errors\": {",
	       tally.established, tally.timed_out_connecting, tally.retries,
	       tally.syn_retransmissions, tally.syns_with_data, tally.requests, tally.responses,
	       tally.bytes_sent, tally.bytes_received, tally.outstanding_most);
	for (int error = 0; error < ERRORS; error++) {
		if (!tally.errors[error])
			continue;
		printf("%s\"%s\": %" PRIu64, comma, strerrorname_np(error), tally.errors[error]);
		comma = ", ";
	}
	printf("},\n");
}

static void report_seconds(void)
{
	int64_t last = tally.second_count;

	while (last && !memcmp(&tally.seconds[last - 1], &(struct second){ 0 }, sizeof(struct second)))
		last--;
	printf("  \"seconds\": [");
	for (int64_t i = 0; i < last; i++)
		printf("%s\n    {\"started\": %u, \"completed\": %u, \"failed\": %u}", i ? "," : "",
		       tally.seconds[i].started, tally.seconds[i].completed, tally.seconds[i].failed);
	printf("],\n");
}

/* Of the whole run, warm-up and the wait at its end too; returns the share in percent. */
static double report_processor(ns_t ran)
{
	double used = (double)read_processor_us();
	double share = used * 1e3 / (double)(ran ? ran : 1);

	printf("  \"processor_us\": %.0f, \"processor_us_per_connection\": %.3f"
	       ", \"processor_share\": %.4f,\n",
	       used, tally.all_started ? used / (double)tally.all_started : 0.0, share);
	return share * 100;
}
