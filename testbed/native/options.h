/* SPDX-License-Identifier: MIT */
/*
 * Command line of the load generator and its server: --name VALUE or --name=VALUE, in a table that
 * is the help as well.  A value is a whole number within bounds, or a text.
 */
#pragma once
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process.h"

#define MISUSED 2 /* exit status */

struct option {
	const char *name;
	int64_t *number, least, most;
	const char **text;
	const char *meaning;
};

__attribute__((format(printf, 2, 3), noreturn)) static void refuse(const char *option,
								  const char *format, ...)
{
	va_list words;

	fprintf(stderr, "%s: --%s: ", program, option);
	va_start(words, format);
	vfprintf(stderr, format, words);
	va_end(words);
	fprintf(stderr, " (--help lists all options)\n");
	exit(MISUSED);
}

static void print_help(const struct option *options, const char *purpose)
{
	printf("%s: %s\n\n", program, purpose);
	for (; options->name; options++) {
		printf("  --%-20s %s", options->name, options->meaning);
		if (options->number)
			printf(" (%" PRId64 " to %" PRId64 "; default %" PRId64 ")", options->least,
			       options->most, *options->number);
		else if (*options->text)
			printf(" (default %s)", *options->text);
		putchar('\n');
	}
}

static void set_option(const struct option *option, const char *value)
{
	char *end;

	if (option->text) {
		*option->text = value;
		return;
	}
	errno = 0;
	*option->number = strtoll(value, &end, 10);
	if (errno || end == value || *end || *option->number < option->least ||
	    *option->number > option->most)
		refuse(option->name, "\"%s\" is not a whole number from %" PRId64 " to %" PRId64,
		       value, option->least, option->most);
}

/* Set what the arguments name; the table ends with an option without a name. */
static void read_options(char **argument, const struct option *options, const char *purpose)
{
	program = strrchr(*argument, '/') ? strrchr(*argument, '/') + 1 : *argument;
	while (*++argument) {
		const struct option *option = options;
		const char *name = *argument + 2, *value;
		size_t length = strcspn(name, "=");

		if (!strcmp(*argument, "--help")) {
			print_help(options, purpose);
			exit(0);
		}
		if (strncmp(*argument, "--", 2)) {
			fprintf(stderr, "%s: %s: options begin with -- (--help lists them)\n", program,
				*argument);
			exit(MISUSED);
		}
		while (option->name && (strlen(option->name) != length ||
					strncmp(option->name, name, length)))
			option++;
		if (!option->name)
			refuse(name, "there is no such option");
		value = name[length] ? name + length + 1 : *++argument;
		if (!value)
			refuse(name, "needs a value");
		set_option(option, value);
	}
}

/* Which of two words a value is: 0 or 1. */
static bool choose(const char *option, const char *value, const char *first, const char *second)
{
	if (strcmp(value, first) && strcmp(value, second))
		refuse(option, "\"%s\" is neither %s nor %s", value, first, second);
	return !strcmp(value, second);
}

/* ADDRESS:PORT of IPv4, no name. */
static struct sockaddr_in read_end(const char *option, const char *value)
{
	struct sockaddr_in end = { .sin_family = AF_INET };
	const char *colon = value ? strchr(value, ':') : NULL;
	char address[INET_ADDRSTRLEN] = "";
	int port = colon ? atoi(colon + 1) : 0;

	if (colon && (size_t)(colon - value) < sizeof(address))
		memcpy(address, value, (size_t)(colon - value));
	if (!inet_aton(address, &end.sin_addr) || port < 1 || port > 65535)
		refuse(option, "\"%s\" is not ADDRESS:PORT of IPv4", value ? value : "");
	end.sin_port = htons((uint16_t)port);
	return end;
}
