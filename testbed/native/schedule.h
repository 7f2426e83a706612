/* SPDX-License-Identifier: MIT */
/*
 * Arrival schedule of an open loop: when each connection is to start, whatever became of others.
 *
 * The times depend on rate and seed alone.  Poisson arrivals have exponential gaps, drawn by
 * comparing whole numbers (J. von Neumann: Various techniques used in connection with random
 * digits, 1951), so that no library's logarithm decides: every machine has the same schedule.
 *
 * With bursts the rate holds for the beginning of each period, and a lower one for the rest of it:
 * arrivals at the one rate, whose gaps are longer there.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "random.h"

#define FRACTION_BITS 16 /* of the sum of the gaps, in nanoseconds: rounding does not add up */

struct schedule {
	int64_t rate; /* a second */
	bool poisson;
	uint64_t random;
	uint64_t number; /* of the next arrival */
	uint64_t at;     /* of a Poisson arrival, since the beginning, in 2^-FRACTION_BITS ns */
	ns_t burst, every; /* how long the rate holds, and of which period; 0: always */
	int64_t base_rate; /* in the rest of a period */
};

/* An exponential number, of mean `mean`. */
static uint64_t draw_exponential(uint64_t *random, uint64_t mean)
{
	for (uint64_t whole = 0;; whole++) {
		uint64_t first = draw(random), last = first, next;
		int falling = 1;

		for (; (next = draw(random)) < last; falling++)
			last = next;
		if (falling % 2)
			return whole * mean + (uint64_t)((unsigned __int128)first * mean >> 64);
	}
}

/* Go to the next arrival; the first one of a fixed schedule is at its beginning. */
static void advance_schedule(struct schedule *schedule)
{
	schedule->number++;
	if (schedule->poisson)
		schedule->at += draw_exponential(&schedule->random,
						 (SECOND << FRACTION_BITS) / schedule->rate);
}

static struct schedule make_schedule(int64_t rate, bool poisson, uint64_t seed)
{
	struct schedule schedule = { .rate = rate, .poisson = poisson, .random = seed };

	if (poisson) {
		advance_schedule(&schedule);
		schedule.number = 0;
	}
	return schedule;
}

/* When what would be due at `at` if the rate always held is. */
static ns_t stretch(const struct schedule *schedule, ns_t at)
{
	int64_t rate = schedule->rate, base = schedule->base_rate;
	ns_t rest = (ns_t)((__int128)(schedule->every - schedule->burst) * base / rate);
	ns_t period = at / (schedule->burst + rest), within = at % (schedule->burst + rest);

	if (within >= schedule->burst)
		within = schedule->burst + (ns_t)((__int128)(within - schedule->burst) * rate / base);
	return period * schedule->every + within;
}

/* When the next connection is to start, since the beginning. */
static ns_t next_arrival(const struct schedule *schedule)
{
	ns_t at = (ns_t)(schedule->at >> FRACTION_BITS);

	if (!schedule->poisson)
		at = (ns_t)((unsigned __int128)schedule->number * SECOND / schedule->rate);
	return schedule->burst ? stretch(schedule, at) : at;
}
