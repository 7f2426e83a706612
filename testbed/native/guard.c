/* guard.so: an LD_PRELOAD shim that keeps a recording browser from private addresses.
 *
 * A live page may ask for any address, by a name of its own, too (DNS rebinding).  What counts is
 * the address that a socket is about to be connected or written to, so that is where this looks:
 * whatever asked (a document, a redirect, a WebSocket, a worker, a preconnect) has to pass here.
 *
 * Refused, with EACCES, is what is not on the public Internet: loopback, link-local, private and
 * shared ranges, multicast, in IPv6 also what stands for such an IPv4 address (RFC 6890, 4193, 4291,
 * 6052, 3056), and every address that this machine has itself.  The C library's own calls to name
 * servers are not reached, and neither are programs that make system calls without it.
 *
 * GUARD_ALLOW=ADDRESS:PORT,[ADDRESS]:PORT,...  lets these ends through; port 0 stands for any.
 * GUARD_LOG=FILE  is made when the shim is loaded, and gets one line for each refusal.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "real.h"

#define MOST_ALLOWED 256
#define MOST_LINES 4096 /* a page may try for ever */

struct end {
	unsigned char address[16]; /* IPv4 as ::ffff:a.b.c.d */
	in_port_t port;            /* 0: any; in network order */
};

static struct end allowed[MOST_ALLOWED];
static int count_allowed;
static char *log_path; /* a copy: Chromium overwrites the environment block */
static atomic_int lines;

/* Headers of glibc 2.38 and newer mean a newer function by strtoul(), which programs with an older C
 * library lack. */
__asm__(".symver __isoc23_strtoul, strtoul@GLIBC_2.2.5");

static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };

static void map_v4(struct end *end, const void *address)
{
	memcpy(end->address, mapped, sizeof mapped);
	memcpy(end->address + sizeof mapped, address, 4);
}

/* False: no Internet address, which is none of our business. */
static bool read_end(const struct sockaddr *name, socklen_t size, struct end *end)
{
	if (name && name->sa_family == AF_INET && size >= sizeof(struct sockaddr_in)) {
		const struct sockaddr_in *v4 = (const void *)name;

		map_v4(end, &v4->sin_addr);
		end->port = v4->sin_port;
		return true;
	}
	if (name && name->sa_family == AF_INET6 && size >= sizeof(struct sockaddr_in6)) {
		const struct sockaddr_in6 *v6 = (const void *)name;

		memcpy(end->address, &v6->sin6_addr, sizeof end->address);
		end->port = v6->sin6_port;
		return true;
	}
	return false;
}

static bool is_private_v4(const unsigned char *a)
{
	return a[0] == 0 || a[0] == 10 || a[0] == 127 || a[0] >= 224 ||
	       (a[0] == 100 && (a[1] & 0xc0) == 64) || (a[0] == 169 && a[1] == 254) ||
	       (a[0] == 172 && (a[1] & 0xf0) == 16) || (a[0] == 192 && a[1] == 168) ||
	       (a[0] == 192 && a[1] == 0 && a[2] == 0) || (a[0] == 198 && (a[1] & 0xfe) == 18);
}

static bool is_private(const unsigned char *a)
{
	static const unsigned char zero[12], nat64[12] = { 0x00, 0x64, 0xff, 0x9b };
	static const unsigned char own_nat64[6] = { 0x00, 0x64, 0xff, 0x9b, 0x00, 0x01 };

	if (!memcmp(a, zero, sizeof zero)) /* unspecified, loopback, and IPv4 as it once was written */
		return true;
	if (!memcmp(a, mapped, sizeof mapped) || !memcmp(a, nat64, sizeof nat64))
		return is_private_v4(a + 12);
	if (a[0] == 0x20 && a[1] == 0x02) /* 6to4 */
		return is_private_v4(a + 2);
	return !memcmp(a, own_nat64, sizeof own_nat64) || (a[0] & 0xfe) == 0xfc || a[0] == 0xff ||
	       (a[0] == 0xfe && (a[1] & 0x80)); /* link-local, and what was site-local */
}

static bool is_own(const struct end *end)
{
	struct ifaddrs *all, *one;
	struct end own;
	bool found = false;

	if (getifaddrs(&all))
		return true; /* nobody can say that it is not */
	for (one = all; one && !found; one = one->ifa_next) {
		socklen_t size = one->ifa_addr && one->ifa_addr->sa_family == AF_INET6 ?
			sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);

		found = read_end(one->ifa_addr, size, &own) &&
			!memcmp(own.address, end->address, sizeof own.address);
	}
	freeifaddrs(all);
	return found;
}

static bool is_allowed(const struct end *end)
{
	for (int i = 0; i < count_allowed; i++)
		if (!memcmp(allowed[i].address, end->address, sizeof end->address) &&
		    (!allowed[i].port || allowed[i].port == end->port))
			return true;
	return false;
}

static void note(const struct end *end)
{
	char text[INET6_ADDRSTRLEN], line[INET6_ADDRSTRLEN + 16];
	bool v4 = !memcmp(end->address, mapped, sizeof mapped);
	int log;

	if (!log_path || atomic_fetch_add(&lines, 1) >= MOST_LINES)
		return;
	if (v4)
		inet_ntop(AF_INET, end->address + sizeof mapped, text, sizeof text);
	else
		inet_ntop(AF_INET6, end->address, text, sizeof text);
	snprintf(line, sizeof line, v4 ? "%s:%u\n" : "[%s]:%u\n", text, ntohs(end->port));
	log = open(log_path, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (log < 0)
		return;
	if (write(log, line, strlen(line)) < 0)
		atomic_store(&lines, MOST_LINES); /* no room for any more */
	close(log);
}

static bool refuses(const struct sockaddr *name, socklen_t size)
{
	struct end end;

	if (!read_end(name, size, &end) || is_allowed(&end))
		return false;
	if (!is_private(end.address) && !is_own(&end))
		return false;
	note(&end);
	errno = EACCES;
	return true;
}

int connect(int fd, const struct sockaddr *name, socklen_t size)
{
	return refuses(name, size) ? -1 : REAL(connect)(fd, name, size);
}

ssize_t sendto(int fd, const void *data, size_t length, int flags, const struct sockaddr *name,
	       socklen_t size)
{
	return refuses(name, size) ? -1 : REAL(sendto)(fd, data, length, flags, name, size);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	if (refuses(message->msg_name, message->msg_namelen))
		return -1;
	return REAL(sendmsg)(fd, message, flags);
}

int sendmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags)
{
	for (unsigned int i = 0; i < count; i++)
		if (refuses(messages[i].msg_hdr.msg_name, messages[i].msg_hdr.msg_namelen))
			return -1;
	return REAL(sendmmsg)(fd, messages, count, flags);
}

/* "1.2.3.4:80" or "[::1]:80"; what cannot be read lets nothing through. */
static void allow(char *text)
{
	struct end *end = &allowed[count_allowed];
	char *colon = strrchr(text, ':');
	unsigned char v4[4];

	if (!colon || count_allowed == MOST_ALLOWED)
		return;
	*colon = 0;
	end->port = htons((in_port_t)strtoul(colon + 1, NULL, 10));
	if (*text == '[' && colon[-1] == ']') {
		colon[-1] = 0;
		count_allowed += inet_pton(AF_INET6, text + 1, end->address) == 1;
	} else if (inet_pton(AF_INET, text, v4) == 1) {
		map_v4(end, v4);
		count_allowed++;
	}
}

__attribute__((constructor)) static void start(void)
{
	const char *list = getenv("GUARD_ALLOW"), *path = getenv("GUARD_LOG");
	char *copy = list ? strdup(list) : NULL, *rest = copy, *text;
	int log;

	while (copy && (text = strsep(&rest, ",")))
		allow(text);
	free(copy);
	log_path = path ? strdup(path) : NULL;
	log = log_path ? open(log_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;
	if (log >= 0)
		close(log);
}
