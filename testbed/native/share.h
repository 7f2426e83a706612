/* SPDX-License-Identifier: MIT */
/*
 * Share of the clients that one of several workers serves, by the client's port: the same for the
 * listening socket that takes a connection (SO_REUSEPORT) and for the processor that handles its
 * segments, as where a network card's queues and the workers are paired.
 *
 * A client's ports have one parity (connect(2) leaves the other to bind(2)) and follow each other,
 * so they are spread by a multiplication (D. Knuth: The Art of Computer Programming, 6.4).
 *
 * Sources: socket(7) SO_ATTACH_REUSEPORT_CBPF; Documentation/networking/{filter,scaling}.rst.
 */
#pragma once
#include <linux/filter.h>
#include <stdint.h>
#include <sys/socket.h>

#define PORT_OF_CLIENT 20 /* in a packet without IP options: the first field of TCP */

/* Classic BPF: from a port in the accumulator to its share. */
#define SHARE_OF_PORT(shares)                                \
	BPF_STMT(BPF_ALU | BPF_MUL | BPF_K, 0x9e3779b1),     \
	BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 16),             \
	BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, shares)

/* Give each socket of a group its share, in the order in which they were opened; returns 0 or -1. */
static int divide_connections(int listener, uint32_t shares)
{
	struct sock_filter share_of_segment[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, SKF_NET_OFF + PORT_OF_CLIENT),
		SHARE_OF_PORT(shares),
		BPF_STMT(BPF_RET | BPF_A, 0),
	};
	struct sock_fprog program = { sizeof(share_of_segment) / sizeof(*share_of_segment),
				      share_of_segment };

	return setsockopt(listener, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof(program));
}
