/* SPDX-License-Identifier: MIT */
/*
 * What a jail is given: its command line, NAME=VALUE up to "--"; jail.c says what each is for.
 */
#pragma once
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "descendants.h"

#define MOST 64 /* descriptors of a kind, and limits */

struct descriptors {
	int count, number[MOST];
};

static struct descriptors runs, reads, writes, lent;
static int filter = -1, harness = -1, stage = -1, kernel = -1, cpu = -1;
static long user = -1;
static long most_landlock = 99;
static struct { int resource; rlim_t value; } limits[MOST];
static int count_limits;
static int last_given; /* the largest descriptor */

static unsigned long number(const char *text, char **end)
{
	unsigned long value;

	errno = 0;
	value = strtoul(text, end, 10);
	if (errno || *end == text || !isdigit((unsigned char)*text)) {
		errno = EINVAL;
		die("not a number: %s", text);
	}
	return value;
}

static bool takes(const char *argument, const char *name, const char **value)
{
	size_t length = strlen(name);

	if (strncmp(argument, name, length) || argument[length] != '=')
		return false;
	*value = argument + length + 1;
	return true;
}

static long one(const char *text)
{
	char *end;
	unsigned long value = number(text, &end);

	if (*end) {
		errno = EINVAL;
		die("not a number: %s", text);
	}
	return value;
}

/* A descriptor. */
static int noted(int fd)
{
	if (fd > last_given)
		last_given = fd;
	return fd;
}

static void many(const char *text, struct descriptors *all)
{
	char *end;

	do {
		if (all->count == MOST) {
			errno = E2BIG;
			die("%s", text);
		}
		all->number[all->count++] = noted(number(text, &end));
		text = end + 1;
	} while (*end == ',');
}

static void limit(const char *text)
{
	char *end;

	if (count_limits == MOST) {
		errno = E2BIG;
		die("%s", text);
	}
	limits[count_limits].resource = number(text, &end);
	if (*end != ':') {
		errno = EINVAL;
		die("limit=%s", text);
	}
	limits[count_limits++].value = one(end + 1);
}

/* The options; returns the kernel's name and arguments. */
static char **read_arguments(char **argument)
{
	const char *value;

	while (*++argument && strcmp(*argument, "--")) {
		if (takes(*argument, "filter", &value))
			filter = noted(one(value));
		else if (takes(*argument, "harness", &value))
			harness = noted(one(value));
		else if (takes(*argument, "stage", &value))
			stage = noted(one(value));
		else if (takes(*argument, "kernel", &value))
			kernel = noted(one(value));
		else if (takes(*argument, "run", &value))
			many(value, &runs);
		else if (takes(*argument, "read", &value))
			many(value, &reads);
		else if (takes(*argument, "write", &value))
			many(value, &writes);
		else if (takes(*argument, "lent", &value))
			many(value, &lent);
		else if (takes(*argument, "cpu", &value))
			cpu = one(value);
		else if (takes(*argument, "user", &value))
			user = one(value);
		else if (takes(*argument, "limit", &value))
			limit(value);
		else if (takes(*argument, "landlock", &value))
			most_landlock = one(value);
		else {
			errno = EINVAL;
			die("what is %s", *argument);
		}
	}
	if (!*argument || filter < 0 || harness < 0 || stage < 0) {
		errno = EINVAL;
		die("filter=FD harness=FD stage=FD ... -- [NAME ARG ...]");
	}
	return argument + 1;
}

static bool is_given(int fd)
{
	const struct descriptors *const all[] = { &runs, &reads, &writes, &lent };

	if (fd == kernel || fd == filter || fd == stage)
		return true;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		for (int j = 0; j < all[i]->count; j++)
			if (all[i]->number[j] == fd)
				return true;
	return false;
}
