/* SPDX-License-Identifier: MIT */
/*
 * Times of this folder's programs: whole nanoseconds.
 */
#pragma once
#include <stdint.h>
#include <time.h>

#define SECOND 1000000000LL

typedef int64_t ns_t;

static ns_t nanoseconds(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * SECOND + time.tv_nsec;
}
