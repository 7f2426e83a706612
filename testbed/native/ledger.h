/* SPDX-License-Identifier: MIT */
/*
 * Ledger of a server's processor where computing takes no time: what the work of its kernel and its
 * own would have taken, and when the processor would have been done with it.
 *
 * The kernel's work comes first, as with interrupts: before the server goes on it sleeps until all
 * segments that arrived or left meanwhile are paid for.  Where they cost all of the time it never
 * goes on (J. Mogul, K. Ramakrishnan: Eliminating receive livelock in an interrupt-driven kernel,
 * 1996).  Segments are seen with their times by a packet socket, also those that came while the
 * server waited for something to do; what the processor could do then is not owed later.
 *
 * While the server is busy one piece of work follows the other, whatever the clock says: a sleep that
 * ends late is no loss, so that the capacity of a busy server is that of its prices.
 *
 * Sources: packet(7), socket(7) SO_TIMESTAMPNS, Documentation/networking/filter.rst.
 */
#pragma once
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "clock.h"
#include "process.h"

#define SYN 0x02
#define ACK 0x10
#define SEGMENTS_AT_ONCE 64
#define HEADERS 80          /* IPv4 with all options, and TCP as far as its flags */
#define TAP_BYTES (1 << 28) /* of segments that wait to be paid for */

static struct ledger {
	bool kept;
	int tap;     /* -1: segments have no price */
	ns_t until;  /* CLOCK_REALTIME: when all that is known will have been done */
	bool waited; /* the server had nothing to do */
	int64_t syn_ns, segment_ns;
	uint64_t syns, segments, unseen; /* unseen: there was no room for them */
	int64_t owed_ns;
} ledger = { .tap = -1, .waited = true };

/* A piece of work that came up at that time; a busy processor begins it when it is through. */
static void owe(ns_t at, int64_t price_ns)
{
	if (ledger.waited && ledger.until < at)
		ledger.until = at;
	ledger.until += price_ns;
	ledger.owed_ns += price_ns;
}

static void open_tap(void)
{
	static struct sock_filter is_tcp[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 9), /* of IPv4: the protocol */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, HEADERS),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog filter = { sizeof(is_tcp) / sizeof(*is_tcp), is_tcp };
	struct sockaddr_ll all = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	int on = 1, room = TAP_BYTES;

	ledger.tap = socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (ledger.tap < 0 ||
	    setsockopt(ledger.tap, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) ||
	    setsockopt(ledger.tap, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) ||
	    setsockopt(ledger.tap, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)) ||
	    bind(ledger.tap, (struct sockaddr *)&all, sizeof(all)))
		die("cannot see segments");
}

/* Keep a ledger, if anything has a price. */
static void open_ledger(int64_t syn_ns, int64_t segment_ns, bool work_has_price)
{
	ledger.syn_ns = syn_ns;
	ledger.segment_ns = segment_ns;
	ledger.kept = work_has_price || syn_ns || segment_ns;
	if (syn_ns || segment_ns)
		open_tap();
}

static ns_t time_of(struct msghdr *message)
{
	struct cmsghdr *header = CMSG_FIRSTHDR(message);
	struct timespec time = { 0 };

	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_TIMESTAMPNS)
		memcpy(&time, CMSG_DATA(header), sizeof(time));
	return time.tv_sec * SECOND + time.tv_nsec;
}

static bool is_syn(const struct sockaddr_ll *way, const uint8_t *headers, size_t length)
{
	size_t flags = (size_t)(*headers & 0xf) * 4 + 13;

	return way->sll_pkttype != PACKET_OUTGOING && flags < length &&
	       (headers[flags] & (SYN | ACK)) == SYN;
}

/* Owe what the kernel did since the last time. */
static void owe_segments(void)
{
	static uint8_t headers[SEGMENTS_AT_ONCE][HEADERS];
	static char times[SEGMENTS_AT_ONCE][CMSG_SPACE(sizeof(struct timespec))];
	struct sockaddr_ll ways[SEGMENTS_AT_ONCE];
	struct iovec vectors[SEGMENTS_AT_ONCE];
	struct mmsghdr messages[SEGMENTS_AT_ONCE];
	int count = SEGMENTS_AT_ONCE;

	while (ledger.tap >= 0 && count == SEGMENTS_AT_ONCE) {
		for (int i = 0; i < SEGMENTS_AT_ONCE; i++) {
			vectors[i] = (struct iovec){ headers[i], HEADERS };
			messages[i].msg_hdr = (struct msghdr){
				.msg_name = &ways[i], .msg_namelen = sizeof(ways[i]),
				.msg_iov = &vectors[i], .msg_iovlen = 1,
				.msg_control = times[i], .msg_controllen = sizeof(times[i]),
			};
		}
		count = recvmmsg(ledger.tap, messages, SEGMENTS_AT_ONCE, 0, NULL);
		for (int i = 0; i < count; i++) {
			bool syn = is_syn(&ways[i], headers[i], messages[i].msg_len);

			ledger.syns += syn;
			ledger.segments += !syn;
			owe(time_of(&messages[i].msg_hdr), syn ? ledger.syn_ns : ledger.segment_ns);
		}
	}
}

/* Sleep until everything is paid for; meanwhile more may come. */
static void settle(void)
{
	for (;;) {
		struct timespec until;

		owe_segments();
		if (ledger.until <= nanoseconds(CLOCK_REALTIME))
			return;
		until = (struct timespec){ ledger.until / SECOND, ledger.until % SECOND };
		clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL);
	}
}

/* A piece of the server's own work. */
static void pay(int64_t price_ns)
{
	if (!ledger.kept)
		return;
	owe_segments();
	owe(nanoseconds(CLOCK_REALTIME), price_ns);
	ledger.waited = false;
	settle();
}

/* The server has nothing to do until something happens. */
static void note_idleness(void)
{
	owe_segments();
	ledger.waited = true;
}

/* What is left, and segments that were never seen. */
static void close_ledger(void)
{
	struct tpacket_stats statistics;
	socklen_t size = sizeof(statistics);

	owe_segments();
	if (ledger.tap >= 0 &&
	    !getsockopt(ledger.tap, SOL_PACKET, PACKET_STATISTICS, &statistics, &size))
		ledger.unseen = statistics.tp_drops;
}
