/* SPDX-License-Identifier: MIT */
/*
 * What of Landlock the jail uses, as numbers: headers are older than the kernels that they meet.
 * Sources: landlock(7), include/uapi/linux/landlock.h.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "descendants.h"

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

#define LANDLOCK_VERSION 1U  /* flag of landlock_create_ruleset: which version is there */
#define LANDLOCK_PATH_BENEATH 1

struct landlock_ruleset {
	uint64_t files;  /* what is refused unless a rule allows it */
	uint64_t ports;  /* of TCP, from version 4 */
	uint64_t scopes; /* what reaches nobody outside, from version 6 */
};

struct landlock_path_beneath {
	uint64_t allowed_access;
	int32_t parent_fd;
} __attribute__((packed));

enum {
	LANDLOCK_EXECUTE = 1 << 0,
	LANDLOCK_WRITE_FILE = 1 << 1,
	LANDLOCK_READ_FILE = 1 << 2,
	LANDLOCK_READ_DIR = 1 << 3,
	LANDLOCK_REMOVE_FILE = 1 << 5,
	LANDLOCK_MAKE_REG = 1 << 8,
	LANDLOCK_TRUNCATE = 1 << 14, /* from version 3 */
};

#define LANDLOCK_READ (LANDLOCK_READ_FILE | LANDLOCK_READ_DIR)
#define LANDLOCK_RUN (LANDLOCK_READ | LANDLOCK_EXECUTE)
#define LANDLOCK_WRITE                                                                    \
	(LANDLOCK_READ | LANDLOCK_WRITE_FILE | LANDLOCK_MAKE_REG | LANDLOCK_REMOVE_FILE | \
	 LANDLOCK_TRUNCATE)
/* What a rule for anything but a folder may have. */
#define LANDLOCK_OF_FILES \
	(LANDLOCK_EXECUTE | LANDLOCK_WRITE_FILE | LANDLOCK_READ_FILE | LANDLOCK_TRUNCATE)

/* Say all that this version can refuse; returns how much of the description it knows. */
static size_t describe_landlock(int version, struct landlock_ruleset *all)
{
	/* By version: 13 rights at first, then one for links elsewhere, truncation, devices. */
	int rights = version >= 5 ? 16 : version >= 3 ? 15 : version == 2 ? 14 : 13;

	all->files = (1U << rights) - 1;
	all->ports = 3;  /* to bind, to connect */
	all->scopes = 3; /* abstract sockets, signals */
	return version >= 6 ? 24 : version >= 4 ? 16 : 8;
}

/* The version that is there, or an older one that is asked for; 0: none is asked for. */
static int find_landlock(int most)
{
	int version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_VERSION);

	if (most && version <= 0)
		die("Landlock, which this kernel does not have or its start has left out (lsm=)");
	return version < most ? version : most;
}

/* Refuse all that this version can but what rules allow; returns the set of rules. */
static int make_landlock(int version, struct landlock_ruleset *all)
{
	size_t size = describe_landlock(version, all);
	int ruleset = syscall(SYS_landlock_create_ruleset, all, size, 0);

	if (ruleset < 0)
		die("Landlock %d", version);
	return ruleset;
}

static void allow_landlock(int ruleset, int fd, uint64_t rights)
{
	struct landlock_path_beneath rule = { rights, fd };
	struct stat found;

	if (fstat(fd, &found))
		die("descriptor %d", fd);
	if (!S_ISDIR(found.st_mode))
		rule.allowed_access &= LANDLOCK_OF_FILES;
	if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_PATH_BENEATH, &rule, 0))
		die("Landlock: descriptor %d", fd);
}
