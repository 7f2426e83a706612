/* SPDX-License-Identifier: MIT */
/*
 * When a frame came to a TAP, however late this program reads it.
 *
 * A TAP does not tell.  So a packet socket watches the device: it gets a copy of each outgoing frame
 * just before the TAP does, with the kernel's time stamp.  The copies are in the same order, and are
 * compared; for a frame whose copy is missing (the socket overflowed) the time of reading must do.
 *
 * Sources: packet(7), socket(7) SO_TIMESTAMPNS, bpf(4) as Linux has it (linux/filter.h).
 */
#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>

#include "clock.h"

#define WATCHED_BYTES 64 /* of each frame: IP and TCP headers make it unique enough */
#define WATCH_BUFFER (16 << 20)

static int open_watch(const char *device)
{
	struct sock_filter outgoing[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, SKF_AD_OFF + SKF_AD_PKTTYPE),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_OUTGOING, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, WATCHED_BYTES),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog program = { sizeof(outgoing) / sizeof(*outgoing), outgoing };
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	int on = 1, size = WATCH_BUFFER;
	/* Protocol 0: nothing comes before the filter is there. */
	int watch = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	address.sll_ifindex = if_nametoindex(device);
	if (watch < 0 || !address.sll_ifindex ||
	    setsockopt(watch, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) ||
	    setsockopt(watch, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)) ||
	    setsockopt(watch, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) ||
	    bind(watch, (struct sockaddr *)&address, sizeof(address)))
		return -1;
	return watch;
}

/* The next copy's start and its time by CLOCK_REALTIME; returns its length or -1: there is none. */
static ssize_t read_copy(int watch, uint8_t *start, struct timespec *time)
{
	char control[CMSG_SPACE(sizeof(*time))];
	struct iovec piece = { start, WATCHED_BYTES };
	struct msghdr message = {
		.msg_iov = &piece,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	ssize_t length = recvmsg(watch, &message, 0);
	struct cmsghdr *header = length < 0 ? NULL : CMSG_FIRSTHDR(&message);

	if (!header || header->cmsg_type != SO_TIMESTAMPNS)
		return -1;
	memcpy(time, CMSG_DATA(header), sizeof(*time));
	return length;
}

/* What CLOCK_MONOTONIC is ahead of CLOCK_REALTIME; again if this was stopped between the two. */
static int64_t read_offset(void)
{
	int64_t before, real, after;
	int tries = 5;

	do {
		before = nanoseconds(CLOCK_MONOTONIC);
		real = nanoseconds(CLOCK_REALTIME);
		after = nanoseconds(CLOCK_MONOTONIC);
	} while (after - before > 5000 && --tries);
	return (before + after) / 2 - real;
}

/* When the frame that begins with these bytes came, by CLOCK_MONOTONIC; -1: not known. */
static int64_t find_arrival(int watch, const uint8_t *start, size_t length)
{
	uint8_t copy[WATCHED_BYTES];
	struct timespec came;
	ssize_t copied;

	while ((copied = read_copy(watch, copy, &came)) >= 0) {
		if ((size_t)copied > length || memcmp(copy, start, copied))
			continue;
		return came.tv_sec * 1000000000LL + came.tv_nsec + read_offset();
	}
	return -1;
}
