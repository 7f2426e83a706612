/* tfo.so: an LD_PRELOAD shim that makes an unmodified program open TCP connections by Fast Open.
 *
 * Sources: RFC 7413; tcp(7) TCP_FASTOPEN_CONNECT; net/ipv4/tcp.c tcp_sendmsg_fastopen().
 *
 * connect() on a TCP socket to a non-loopback address sets TCP_FASTOPEN_CONNECT first.  Then the
 * kernel does one of three things:
 *   - it has a cookie (or needs none): connect() returns 0 at once, and the SYN leaves with the
 *     data of the first write.  Until then poll and epoll report the socket as writable.
 *   - it has no cookie: an ordinary connect(), whose SYN asks for a cookie.
 *   - net.ipv4.tcp_fastopen has no client bit: the option is refused, an ordinary connect().
 * So the same shim serves the arm with Fast Open and the arm without it.
 *
 * In the first case two calls answer differently from a connected socket, and are put right here:
 *   - the cookie may vanish between connect() and the first write.  The SYN then leaves without
 *     data and the write says EINPROGRESS; a caller that thinks it is connected knows EAGAIN.
 *   - getpeername() says ENOTCONN until the SYN-ACK is in; SO_PEERNAME knows the address.
 *
 * Limits: the client must speak first, as it does in HTTP.  A duplicated descriptor is not known
 * to be a deferred one.  Programs that make system calls without the C library are not reached.
 *
 * TFO_SHIM_LOG=FILE appends one line for each connect().
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "real.h"

#ifndef TCP_FASTOPEN_CONNECT
#define TCP_FASTOPEN_CONNECT 30
#endif
#define MAX_FD 65536 /* descriptors beyond it open plainly */

/* 1 = the last connect() on this descriptor returned 0 with the option set.  It is never cleared by
 * close(): connect() writes it anew, and on any other kind of socket the two answers that it
 * changes do not occur.  So no lock is needed, and close(), dup2() and close_range() stay as they
 * are. */
static atomic_uchar opened_fast[MAX_FD];

/* A copy: Chromium overwrites the environment block when it renames its processes. */
static char *log_path;

__attribute__((constructor)) static void start(void)
{
	const char *path = getenv("TFO_SHIM_LOG");

	if (path && *path)
		log_path = strdup(path);
}

static int in_table(int fd)
{
	return fd >= 0 && fd < MAX_FD;
}

static int is_loopback(const struct sockaddr *address, socklen_t length)
{
	if (address->sa_family == AF_INET && length >= sizeof(struct sockaddr_in)) {
		const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)address;

		return ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	}
	if (address->sa_family == AF_INET6 && length >= sizeof(struct sockaddr_in6)) {
		const struct in6_addr *v6 =
			&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;

		return IN6_IS_ADDR_LOOPBACK(v6) ||
		       (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == IN_LOOPBACKNET);
	}
	return 1; /* another family or a short address: not ours, left alone as well */
}

static int is_eligible(int fd, const struct sockaddr *address, socklen_t length)
{
	int protocol = 0;
	socklen_t size = sizeof protocol;

	if (!in_table(fd) || !address || length < sizeof(sa_family_t) ||
	    is_loopback(address, length))
		return 0;
	return getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) == 0 &&
	       protocol == IPPROTO_TCP;
}

static void log_connect(int fd, const struct sockaddr *address, int option_error, int result)
{
	char host[INET6_ADDRSTRLEN] = "?", line[160];
	int port, length, file;

	if (address->sa_family == AF_INET) {
		const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)address;

		inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
		port = ntohs(v4->sin_port);
	} else {
		const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)address;

		inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
		port = ntohs(v6->sin6_port);
	}
	file = open(log_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
	if (file < 0)
		return;
	length = snprintf(line, sizeof line, "fd=%d peer=%s:%d option=%d connect=%d\n", fd, host,
			  port, option_error, result);
	if (REAL(write)(file, line, (size_t)length) < 0) {
		/* The log is a convenience; the program under the shim must not notice. */
	}
	close(file);
}

int connect(int fd, const struct sockaddr *address, socklen_t length)
{
	int before = errno, one = 1, option_error = 0, result;

	if (!is_eligible(fd, address, length)) {
		if (in_table(fd))
			atomic_store(&opened_fast[fd], 0);
		errno = before;
		return REAL(connect)(fd, address, length);
	}
	if (setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &one, sizeof one) != 0)
		option_error = errno;
	/* EINVAL: the socket is beyond its first connect(), whose mark still holds.  Marked before
	 * the call, so that another thread that writes at once sees the mark. */
	if (option_error != EINVAL)
		atomic_store(&opened_fast[fd], option_error == 0);
	errno = before;
	result = REAL(connect)(fd, address, length);
	if (result != 0 && option_error != EINVAL)
		atomic_store(&opened_fast[fd], 0);
	if (log_path) {
		before = errno;
		log_connect(fd, address, option_error, result ? before : 0);
		errno = before;
	}
	return result;
}

int getpeername(int fd, struct sockaddr *restrict address, socklen_t *restrict length)
{
	struct sockaddr_storage peer;
	struct tcp_info info;
	socklen_t room, size = sizeof info;

	if (REAL(getpeername)(fd, address, length) == 0)
		return 0;
	if (errno != ENOTCONN || !in_table(fd) || !atomic_load(&opened_fast[fd]))
		return -1;
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
	    info.tcpi_state != TCP_SYN_SENT) {
		errno = ENOTCONN;
		return -1;
	}
	/* SO_PEERNAME wants a length that is not longer than the address. */
	memset(&peer, 0, sizeof peer);
	size = sizeof(struct sockaddr_in6);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERNAME, &peer, &size) != 0) {
		size = sizeof(struct sockaddr_in);
		if (getsockopt(fd, SOL_SOCKET, SO_PEERNAME, &peer, &size) != 0) {
			errno = ENOTCONN;
			return -1;
		}
	}
	room = *length < size ? *length : size;
	memcpy(address, &peer, room);
	*length = size;
	return 0;
}

/* What a caller that believes itself connected expects of a first write that found no cookie. */
static ssize_t as_connected(int fd, ssize_t result)
{
	if (result < 0 && errno == EINPROGRESS && in_table(fd) && atomic_load(&opened_fast[fd]))
		errno = EAGAIN;
	return result;
}

ssize_t write(int fd, const void *data, size_t count)
{
	return as_connected(fd, REAL(write)(fd, data, count));
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
	return as_connected(fd, REAL(writev)(fd, parts, count));
}

ssize_t send(int fd, const void *data, size_t count, int flags)
{
	return as_connected(fd, REAL(send)(fd, data, count, flags));
}

ssize_t sendto(int fd, const void *data, size_t count, int flags, const struct sockaddr *address,
	       socklen_t length)
{
	return as_connected(fd, REAL(sendto)(fd, data, count, flags, address, length));
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	return as_connected(fd, REAL(sendmsg)(fd, message, flags));
}

int sendmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags)
{
	return (int)as_connected(fd, REAL(sendmmsg)(fd, messages, count, flags));
}

ssize_t sendfile(int fd, int source, off_t *offset, size_t count)
{
	return as_connected(fd, REAL(sendfile)(fd, source, offset, count));
}

ssize_t sendfile64(int fd, int source, off64_t *offset, size_t count)
{
	return as_connected(fd, REAL(sendfile64)(fd, source, offset, count));
}

ssize_t splice(int source, off64_t *source_offset, int fd, off64_t *offset, size_t count,
	       unsigned int flags)
{
	return as_connected(fd, REAL(splice)(source, source_offset, fd, offset, count, flags));
}
