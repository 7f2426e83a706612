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
#include "share.h"

#define SYN 0x02
#define ACK 0x10
#define SEGMENTS_AT_ONCE 64
#define HEADERS 80          /* IPv4 with all options, and TCP as far as its flags */
#define TAP_BYTES (1 << 28) /* of segments that wait to be paid for */
#define SLICE (SECOND / 100)

/* How long the processor is busy in each slice of time; what is later than the last is in that. */
struct busy {
	ns_t from; /* CLOCK_REALTIME: when the first slice begins */
	int64_t count, last;
	ns_t *slices;
};

static struct ledger {
	bool kept;
	int tap;     /* -1: segments have no price */
	ns_t until;  /* CLOCK_REALTIME: when all that is known will have been done */
	bool waited; /* the server had nothing to do */
	int64_t syn_ns, segment_ns;
	uint64_t syns, segments, unseen; /* unseen: there was no room for them */
	int64_t owed_ns;
	struct busy *busy;
} ledger = { .tap = -1, .waited = true };

static void note_busy(struct busy *busy, ns_t at, ns_t length)
{
	while (length > 0) {
		int64_t slice = at > busy->from ? (at - busy->from) / SLICE : 0;
		ns_t part = length;

		if (slice >= busy->count - 1)
			slice = busy->count - 1;
		else if (part > busy->from + (slice + 1) * SLICE - at)
			part = busy->from + (slice + 1) * SLICE - at;
		busy->slices[slice] += part;
		if (slice > busy->last)
			busy->last = slice;
		at += part;
		length -= part;
	}
}

/* A piece of work that came up at that time; a busy processor begins it when it is through. */
static void owe(ns_t at, int64_t price_ns)
{
	if (ledger.waited && ledger.until < at)
		ledger.until = at;
	note_busy(ledger.busy, ledger.until, price_ns);
	ledger.until += price_ns;
	ledger.owed_ns += price_ns;
}

/* See the segments of the clients whose ports are this share's (share.h), one of so many. */
static void open_tap(uint32_t share, uint32_t shares)
{
	struct sock_filter is_ours[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 9), /* of IPv4: the protocol */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 0, 11),
		BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0), /* where TCP's header begins */
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, SKF_AD_OFF + SKF_AD_PKTTYPE),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_OUTGOING, 2, 0),
		BPF_STMT(BPF_LD | BPF_H | BPF_IND, 0), /* it came from a client */
		BPF_STMT(BPF_JMP | BPF_JA, 1),
		BPF_STMT(BPF_LD | BPF_H | BPF_IND, 2), /* it goes to one */
		SHARE_OF_PORT(shares),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, share, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, HEADERS),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog filter = { sizeof(is_ours) / sizeof(*is_ours), is_ours };
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

/* Keep a ledger, if anything has a price: of one processor of so many, and in `busy` when it works. */
static void open_ledger(int64_t syn_ns, int64_t segment_ns, bool work_has_price, struct busy *busy,
			uint32_t share, uint32_t shares)
{
	ledger.busy = busy;
	ledger.syn_ns = syn_ns;
	ledger.segment_ns = segment_ns;
	ledger.kept = work_has_price || syn_ns || segment_ns;
	if (syn_ns || segment_ns)
		open_tap(share, shares);
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
