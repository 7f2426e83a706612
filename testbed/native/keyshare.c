// SPDX-License-Identifier: MIT
/* keyshare.so: an LD_PRELOAD shim after which Chromium sends no post-quantum key share.
 *
 * Sources: SSLNamedGroupInfo and the list of supported groups in net/ssl of Chromium's source;
 * IANA, TLS Supported Groups; dl_iterate_phdr(3), mprotect(2).
 *
 * The browser has a constant list of pairs, a group's number and whether hellos carry a share of
 * it.  It is found by its content in what is mapped of the program, and the word of X25519MLKEM768
 * is cleared there, in this process's own copy of one page: no file changes.  The group stays among
 * the supported ones, as X25519 has it, so a server could still ask for it.
 *
 * A program that does not have the list exactly once ends with a sentence and 125.  Processes that
 * the browser starts for itself speak no TLS, and are left alone.
 */
#define _GNU_SOURCE
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FAILED 125

/* Little-endian pairs of 16 bits and a bool: X25519MLKEM768 and X25519 with shares, P-256 and
 * P-384 without. */
static const unsigned char groups[] = {
	0xec, 0x11, 1, 0, 0x1d, 0, 1, 0, 0x17, 0, 0, 0, 0x18, 0, 0, 0,
};
#define SHARE 2 /* the place of X25519MLKEM768's bool */

struct found {
	unsigned char *at;
	int times;
};

/* For dl_iterate_phdr(): looks through the constants of the first object, which is the program. */
static int look(struct dl_phdr_info *object, size_t size, void *result)
{
	struct found *found = result;

	(void)size;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];
		unsigned char *from = (unsigned char *)(object->dlpi_addr + part->p_vaddr), *at;
		const unsigned char *end = from + part->p_memsz;

		if (part->p_type != PT_LOAD || part->p_flags != PF_R)
			continue;
		while ((at = memmem(from, (size_t)(end - from), groups, sizeof groups))) {
			found->at = at;
			found->times++;
			from = at + 1;
		}
	}
	return 1; /* no further object */
}

__attribute__((constructor)) static void start(int count, char **arguments)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct found found = {0};
	unsigned char *first;

	for (int i = 1; i < count; i++)
		if (!strncmp(arguments[i], "--type=", 7))
			return;
	dl_iterate_phdr(look, &found);
	if (found.times != 1) {
		fprintf(stderr,
			"keyshare: %s has Chromium 156's list of TLS groups %d times, not once: "
			"it cannot be modified for key_share = \"x25519\"\n",
			arguments[0], found.times);
		_exit(FAILED);
	}
	first = found.at - (size_t)found.at % page;
	if (mprotect(first, 2 * page, PROT_READ | PROT_WRITE)) {
		perror("keyshare: mprotect");
		_exit(FAILED);
	}
	found.at[SHARE] = 0;
	mprotect(first, 2 * page, PROT_READ);
}
