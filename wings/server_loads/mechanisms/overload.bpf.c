// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connection management of an overloaded server, on a kernel that has none of it: a program for the
 * clsact ingress of the server's device (tc-bpf(8)).
 *
 * Source: Shukla and Brecht, TCP Connection Management Mechanisms for Improving Internet Server
 * Performance (2006), sections III and IV.  Every segment for the port takes the same way through
 * the program whatever the mode is, so that a baseline pays for it as well.
 *
 * Whoever loads the program writes into it where the kernel that it is for has its fields.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <linux/tcp.h>

#define SECTION(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))

/* As net.ipv4.tcp_overload has them in the virtual kernel. */
enum {
	RST_SYN = 0x01,		/* a refused SYN is answered by a reset */
	RESERVE = 0x02,		/* a SYN needs room that no other handshake will take */
	ADMIT_SYN = 0x04,	/* a SYN needs no room in the accept queue */
	RST_COOKIE = 0x08,	/* a cookie's ACK that finds no room is reset */
	RST_FIN = 0x10,		/* a FIN without data is a reset, for both ends */
	YOUNG = 0x20,		/* Linux 2.4: SYNs are let in while < 2 requests are young */
};

struct config {
	__u32 mode;
	__u32 port;
	__u32 limit;	/* of the accept queue; 0: the kernel's own, the backlog of listen(2) */
	__u32 abort;	/* tcp_abort_on_overflow: for the ACKs that are refused here */
	__u32 cookies;	/* tcp_syncookies: a full SYN queue refuses nothing */
};

enum {
	SYNS,		/* for the listener: of no request or connection that is known */
	SYNS_AGAIN,	/* of a request that is known */
	SYNS_REFUSED,	/* there was no room; the kernel drops those that nothing here answers */
	SYNS_RESET,	/* of these: answered by a reset */
	ACKS,		/* that a request waits for; with each that comes while it still waits */
	ACKS_COOKIE,	/* for the listener */
	ACKS_REFUSED,	/* both kinds, for the limit */
	ACKS_RESET,	/* of these: answered by a reset */
	FINS,		/* without data */
	FINS_RESET,
	LONGEST_ACCEPT_QUEUE,
	LONGEST_SYN_QUEUE,
	WITHHELD,	/* packets of which nothing went up */
	COUNTERS,
};

/* Maps are declared by types of members, as libbpf reads them. */
#define NUMBER(name, value) int (*name)[value]

struct {
	NUMBER(type, BPF_MAP_TYPE_ARRAY);
	NUMBER(max_entries, 1);
	__u32 *key;
	struct config *value;
} configuration SECTION(".maps");

struct {
	NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	NUMBER(max_entries, 1);
	NUMBER(key_size, sizeof(__u32));
	NUMBER(value_size, COUNTERS * sizeof(__u64));
} counters SECTION(".maps");

/* Of fields in bytes; weak, so that the compiler does not take them for zeros. */
const struct {
	__u32 sk_ack_backlog;
	__u32 sk_max_ack_backlog;
	__u32 accept_queue_qlen;
	__u32 accept_queue_young;
	__u32 skc_listener;
} offsets __attribute__((weak));

#define HELPER(name) __attribute__((kernel_helper(BPF_FUNC_##name)))

extern void *map_lookup(void *map, const void *key) HELPER(map_lookup_elem);
extern long load_bytes(const void *skb, __u32 offset, void *to, __u32 size) HELPER(skb_load_bytes);
extern long store_bytes(void *skb, __u32 offset, const void *from, __u32 size, __u64 flags)
	HELPER(skb_store_bytes);
extern long change_tail(void *skb, __u32 size, __u64 flags) HELPER(skb_change_tail);
extern long checksum(const void *from, __u32 from_size, const void *to, __u32 to_size, __u32 seed)
	HELPER(csum_diff);
extern long redirect(__u32 device, __u64 flags) HELPER(redirect);
extern long clone_redirect(void *skb, __u32 device, __u64 flags) HELPER(clone_redirect);
extern struct bpf_sock *lookup_tcp(void *skb, struct bpf_sock_tuple *tuple, __u32 size,
				   __u64 namespace, __u64 flags) HELPER(skc_lookup_tcp);
extern long release(void *sock) HELPER(sk_release);
extern char *as_tcp_sock(void *sock) HELPER(skc_to_tcp_sock);
extern char *as_request(void *sock) HELPER(skc_to_tcp_request_sock);
extern long read_kernel(void *to, __u32 size, const void *from) HELPER(probe_read_kernel);

#define FIELD(type, pointer, name) (*(type *)((pointer) + offsets.name))

#define FLAG_FIN 0x01
#define FLAG_SYN 0x02
#define FLAG_RST 0x04
#define FLAG_ACK 0x10
#define FLAGS(tcp) (((__u8 *)(tcp))[13])

struct state {
	const struct config *configuration;
	__u64 *counters;
};

struct headers {
	struct iphdr ip;
	struct tcphdr tcp;
};

INLINE __u16 swap16(__u16 x)
{
	return x << 8 | x >> 8;
}

INLINE __u32 swap32(__u32 x)
{
	return (__u32)swap16(x) << 16 | swap16(x >> 16);
}

INLINE __u16 fold(__u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

/* Make the packet these headers and nothing else. */
INLINE long write_headers(struct __sk_buff *skb, struct headers *h)
{
	struct {
		__u32 from, to;
		__u8 zero, protocol;
		__u16 length;
	} pseudo = {h->ip.saddr, h->ip.daddr, 0, IPPROTO_TCP, swap16(sizeof(h->tcp))};

	h->ip.tot_len = swap16(sizeof(*h));
	h->ip.check = 0;
	h->ip.check = fold(checksum(0, 0, &h->ip, sizeof(h->ip), 0));
	h->tcp.doff = sizeof(h->tcp) / 4;
	h->tcp.check = 0;
	h->tcp.check = fold(checksum(0, 0, &h->tcp, sizeof(h->tcp),
				     checksum(0, 0, &pseudo, sizeof(pseudo), 0)));
	return store_bytes(skb, ETH_HLEN, h, sizeof(*h), 0);
}

/* Turn the packet into the reset that the kernel would send for it (RFC 9293, 3.10.7.1). */
INLINE long make_reset(struct __sk_buff *skb, const struct headers *h)
{
	struct headers r = {};
	__u8 from[2 * ETH_ALEN], to[2 * ETH_ALEN];

	r.ip.version = 4;
	r.ip.ihl = 5;
	r.ip.ttl = 64;
	r.ip.frag_off = swap16(0x4000); /* do not fragment */
	r.ip.protocol = IPPROTO_TCP;
	r.ip.saddr = h->ip.daddr;
	r.ip.daddr = h->ip.saddr;
	r.tcp.source = h->tcp.dest;
	r.tcp.dest = h->tcp.source;
	if (FLAGS(&h->tcp) & FLAG_ACK) {
		r.tcp.seq = h->tcp.ack_seq;
		FLAGS(&r.tcp) = FLAG_RST;
	} else { /* a SYN, maybe with data (RFC 7413) */
		__u32 data = swap16(h->ip.tot_len) - sizeof(h->ip) - h->tcp.doff * 4;

		r.tcp.ack_seq = swap32(swap32(h->tcp.seq) + 1 + data);
		FLAGS(&r.tcp) = FLAG_RST | FLAG_ACK;
	}
	if (change_tail(skb, ETH_HLEN + sizeof(r), 0) || write_headers(skb, &r) ||
	    load_bytes(skb, 0, from, sizeof(from)))
		return -1;
	__builtin_memcpy(to, from + ETH_ALEN, ETH_ALEN);
	__builtin_memcpy(to + ETH_ALEN, from, ETH_ALEN);
	return store_bytes(skb, 0, to, sizeof(to), 0);
}

/* Answer by a reset, and nothing goes up. */
INLINE int reset_peer(struct __sk_buff *skb, const struct headers *h)
{
	return make_reset(skb, h) ? TC_ACT_SHOT : redirect(skb->ifindex, 0);
}

/* Answer by a reset; what goes up is a reset too, as if the peer had sent it. */
INLINE int reset_both(struct __sk_buff *skb, struct headers *h)
{
	__u8 ethernet[2 * ETH_ALEN];

	if (load_bytes(skb, 0, ethernet, sizeof(ethernet)) || make_reset(skb, h) ||
	    clone_redirect(skb, skb->ifindex, 0))
		return TC_ACT_SHOT;
	FLAGS(&h->tcp) = FLAG_RST | FLAG_ACK;
	if (store_bytes(skb, 0, ethernet, sizeof(ethernet), 0) || write_headers(skb, h))
		return TC_ACT_SHOT;
	return TC_ACT_OK;
}

/* A segment for a listener: a SYN, or the ACK of a cookie. */
INLINE int to_listener(struct __sk_buff *skb, struct headers *h, struct state s,
		       struct bpf_sock *sk, int known)
{
	const struct config *c = s.configuration;
	__u64 *count = s.counters;
	__u32 waiting, backlog, requests, young, limit;
	char *listener = as_tcp_sock(sk);
	int refused, full;

	if (!listener) {
		release(sk);
		return TC_ACT_OK;
	}
	waiting = FIELD(__u32, listener, sk_ack_backlog);
	backlog = FIELD(__u32, listener, sk_max_ack_backlog);
	requests = FIELD(__u32, listener, accept_queue_qlen);
	young = FIELD(__u32, listener, accept_queue_young);
	release(sk);
	limit = c->limit ? c->limit : backlog;
	if (waiting > count[LONGEST_ACCEPT_QUEUE])
		count[LONGEST_ACCEPT_QUEUE] = waiting;
	if (requests > count[LONGEST_SYN_QUEUE])
		count[LONGEST_SYN_QUEUE] = requests;

	if (!(FLAGS(&h->tcp) & FLAG_SYN)) {
		count[ACKS_COOKIE]++;
		if (waiting <= limit)
			return TC_ACT_OK;
		count[ACKS_REFUSED]++;
		if (!(c->mode & RST_COOKIE))
			return c->limit ? TC_ACT_SHOT : TC_ACT_OK;
		count[ACKS_RESET]++;
		return reset_peer(skb, h);
	}
	count[SYNS]++;
	full = !known && !c->cookies && requests > backlog; /* the kernel's own limit */
	if (c->mode & ADMIT_SYN)
		refused = 0;
	else if (c->mode & RESERVE)
		refused = waiting + requests > limit;
	else
		refused = waiting > limit && (!(c->mode & YOUNG) || young > 1);
	if (!refused && !full)
		return TC_ACT_OK;
	count[SYNS_REFUSED]++;
	if (c->mode & RST_SYN) {
		count[SYNS_RESET]++;
		return reset_peer(skb, h);
	}
	/* What the kernel refuses by itself it also counts. */
	return full || waiting > backlog ? TC_ACT_OK : TC_ACT_SHOT;
}

/* A segment for a request that waits for its ACK. */
INLINE int to_request(struct __sk_buff *skb, struct headers *h, struct state s,
		      struct bpf_sock *sk)
{
	const struct config *c = s.configuration;
	__u64 *count = s.counters;
	char *request, *listener;
	__u32 waiting = 0;

	if (FLAGS(&h->tcp) & FLAG_SYN) {
		release(sk);
		count[SYNS_AGAIN]++;
		return TC_ACT_OK;
	}
	request = as_request(sk);
	listener = request ? FIELD(char *, request, skc_listener) : 0;
	if (listener) /* part of a union: the verifier does not know it as a socket */
		read_kernel(&waiting, sizeof(waiting), listener + offsets.sk_ack_backlog);
	release(sk);
	count[ACKS]++;
	if (!c->limit || waiting <= c->limit)
		return TC_ACT_OK;
	count[ACKS_REFUSED]++;
	if (!c->abort)
		return TC_ACT_SHOT;
	count[ACKS_RESET]++;
	return reset_both(skb, h);
}

INLINE int decide(struct __sk_buff *skb, struct state s)
{
	struct bpf_sock_tuple tuple = {};
	struct bpf_sock *sk;
	struct headers h;
	int known = 0;
	__u8 flags;

	if (skb->protocol != swap16(ETH_P_IP) ||
	    load_bytes(skb, ETH_HLEN, &h, sizeof(h)) || h.ip.ihl != 5 ||
	    h.ip.protocol != IPPROTO_TCP || h.tcp.dest != swap16(s.configuration->port))
		return TC_ACT_OK;
	flags = FLAGS(&h.tcp);
	if (flags & FLAG_RST || !(flags & FLAG_SYN) == !(flags & FLAG_ACK))
		return TC_ACT_OK;
	if (flags & FLAG_FIN && flags & FLAG_ACK &&
	    swap16(h.ip.tot_len) == sizeof(h.ip) + h.tcp.doff * 4) {
		s.counters[FINS]++;
		if (s.configuration->mode & RST_FIN) {
			s.counters[FINS_RESET]++;
			return reset_both(skb, &h);
		}
	}
	tuple.ipv4.saddr = h.ip.saddr;
	tuple.ipv4.daddr = h.ip.daddr;
	tuple.ipv4.sport = h.tcp.source;
	tuple.ipv4.dport = h.tcp.dest;
	sk = lookup_tcp(skb, &tuple, sizeof(tuple.ipv4), BPF_F_CURRENT_NETNS, 0);
	if (sk && sk->state == BPF_TCP_TIME_WAIT && flags & FLAG_SYN) {
		/* It is for the listener again, and its queue of requests is open to such a one. */
		release(sk);
		known = 1;
		tuple.ipv4.sport = 0; /* no connection has that */
		sk = lookup_tcp(skb, &tuple, sizeof(tuple.ipv4), BPF_F_CURRENT_NETNS, 0);
	}
	if (!sk)
		return TC_ACT_OK;
	if (sk->state == BPF_TCP_LISTEN)
		return to_listener(skb, &h, s, sk, known);
	if (sk->state == BPF_TCP_NEW_SYN_RECV)
		return to_request(skb, &h, s, sk);
	release(sk);
	return TC_ACT_OK;
}

SECTION("classifier") int manage(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct state s = {map_lookup(&configuration, &zero), map_lookup(&counters, &zero)};
	int verdict;

	if (!s.configuration || !s.counters)
		return TC_ACT_OK;
	verdict = decide(skb, s);
	if (verdict != TC_ACT_OK)
		s.counters[WITHHELD]++;
	return verdict;
}

SECTION("license") char terms[] = "GPL";
