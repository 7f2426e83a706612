/* SPDX-License-Identifier: MIT */
/*
 * HTTP/1 message heads, as they come in pieces: what it takes to know where a message ends, and
 * whether the connection ends with it (RFC 9112 sections 2, 6 and 9).
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct head {
	char line[96];  /* the line that is being read; what is beyond does not matter here */
	uint8_t used;   /* bytes of it */
	bool begun;     /* the first line has been read */
	bool complete;  /* so has the last */
	bool invalid;   /* not HTTP/1, or in chunks, which nothing here asks for */
	bool last;      /* the connection ends with this message */
	int status;     /* of a response */
	int64_t length; /* of the body; -1: not said */
};

static inline const char *header_value(const char *line, const char *name)
{
	size_t length = strlen(name);

	if (strncasecmp(line, name, length) || line[length] != ':')
		return NULL;
	return line + length + 1;
}

static inline void read_first_line(struct head *head)
{
	const char *version = strstr(head->line, "HTTP/1.");

	head->begun = true;
	if (!version) {
		head->invalid = true;
		return;
	}
	head->last = version[7] == '0';
	if (version == head->line)
		head->status = atoi(version + 8);
}

static inline void read_header_line(struct head *head)
{
	const char *value;

	if ((value = header_value(head->line, "Content-Length")))
		head->length = strtoll(value, NULL, 10);
	else if ((value = header_value(head->line, "Connection")))
		head->last = strcasestr(value, "close") ||
			     (head->last && !strcasestr(value, "keep-alive"));
	else if (header_value(head->line, "Transfer-Encoding"))
		head->invalid = true;
}

static inline void begin_head(struct head *head)
{
	*head = (struct head){ .length = -1 };
}

/* Take bytes up to the end of the head; returns how many were taken. */
static inline size_t read_head(struct head *head, const char *data, size_t length)
{
	size_t taken = 0;

	while (taken < length && !head->complete) {
		const char *line = data + taken, *end = memchr(line, '\n', length - taken);
		size_t part = end ? (size_t)(end - line) : length - taken;
		size_t room = sizeof(head->line) - 1 - head->used, kept = part < room ? part : room;

		memcpy(head->line + head->used, line, kept);
		head->used += (uint8_t)kept;
		taken += part + (end != NULL);
		if (!end)
			break;
		if (head->used && head->line[head->used - 1] == '\r')
			head->used--;
		head->line[head->used] = '\0';
		if (!head->begun)
			read_first_line(head);
		else if (head->used)
			read_header_line(head);
		else
			head->complete = true;
		head->used = 0;
	}
	return taken;
}
