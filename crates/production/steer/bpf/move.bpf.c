/* Gives the listed sockets other settings, by their cookies: open connections, and listening sockets another controller. The program
 * runs once for each TCP socket of a network namespace when it is read.
 */

#include "steer.h"

char _license[] SECTION("license") = "Dual MIT/GPL";

static long (*delete)(void *map, const void *key) = (void *)3;
static long (*bpf_getsockopt)(void *sk, int level, int name, void *value, int length) = (void *)57;
static void *(*bpf_skc_to_tcp_sock)(void *sk) = (void *)137;

enum {
	TCP_BPF_SOCK_OPS_CB_FLAGS = 1008, /* from Linux 6.12: what AccECN asks for is newer */
};

/* As in the kernel (net/ipv4/tcp_ipv4.c). */
struct bpf_iter__tcp {
	void *meta;
	void *sk_common;
	u32 uid;
};

/* Mirrored in src/layout.rs. */
struct target {
	struct decision decision;
	char controller[NAME]; /* empty: unchanged */
	u32 cap; /* bytes per second; 0: unchanged */
	u32 unused;
};

struct {
	NUMBER(type, MAP_HASH);
	NUMBER(map_flags, BPF_F_NO_PREALLOC);
	TYPE(key, u64);
	TYPE(value, struct target);
	NUMBER(max_entries, 1);
} targets SECTION(".maps");

/* How many were moved, and how many the kernel refused to move. */
struct {
	NUMBER(type, MAP_ARRAY);
	TYPE(key, u32);
	TYPE(value, u64);
	NUMBER(max_entries, 2);
} done SECTION(".maps");

static void count(u32 what)
{
	u64 *counted = lookup(&done, &what);

	if (counted)
		__sync_fetch_and_add(counted, 1);
}

/* Whether the listening socket's connections and its end can be known from now on. The flags of other programs stay. */
static always_inline int mark(void *sk)
{
	int flags = 0;

	if (bpf_getsockopt(sk, IPPROTO_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &flags, sizeof(flags)))
		return 0;
	flags |= REPORT_STATES;
	return !bpf_setsockopt(sk, IPPROTO_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &flags, sizeof(flags));
}

SECTION("iter/tcp") int move(struct bpf_iter__tcp *context)
{
	void *common = context->sk_common, *sk;
	struct target *found, target;
	struct kept *kept;
	u64 cookie;

	if (!common)
		return 0;
	sk = bpf_skc_to_tcp_sock(common);
	if (!sk)
		return 0;
	cookie = bpf_get_socket_cookie(sk);
	found = lookup(&targets, &cookie);
	if (!found)
		return 0;
	target = *found;
	delete(&targets, &cookie);
	/* First what finds the listener again: without it, nothing gives it back its controller. */
	if (target.decision.flags & LISTENER && !kept_of(cookie) && !keep(cookie, &target.decision)) {
		count(1);
		return 0;
	}
	if (target.decision.flags & LISTENER && !mark(sk)) {
		count(1);
		return 0;
	}
	if (target.controller[0] && bpf_setsockopt(sk, IPPROTO_TCP, TCP_CONGESTION, target.controller, NAME)) {
		count(1);
		return 0;
	}
	if (target.cap && bpf_setsockopt(sk, SOL_SOCKET, SO_MAX_PACING_RATE, &target.cap, sizeof(target.cap))) {
		count(1);
		return 0;
	}
	count(0);
	if (target.decision.flags & LISTENER)
		return 0;
	/* The reader holds the socket's lock, so its end is reported before this, or after. */
	kept = kept_of(cookie);
	if (kept) {
		target.decision.window = kept->decision.window;
		target.decision.flags |= kept->decision.flags & RATED;
		kept->decision = target.decision;
	}
	return 0;
}
