/* Careful Resume (RFC 9959): what ended connections observed of their paths, for later ones. The controller decides what
 * follows from an observation; here is the memory.
 *
 * The clients of one network share an observation, /24 of IPv4 and /48 of IPv6, as in `uncork serve`. A path is also the server's
 * address, its interface and its network namespace: another one of these has observations of its own.
 *
 * An element of the map may get another path while a program has its address. The window then comes from that path, and is
 * checked like any other: by the round-trip time, by the half that is used, and by the Safe Retreat.
 */
#pragma once

#include "kernel.h"

/* Set by the loader before the kernel sees the programs: whether connections begin from earlier ones. */
const volatile u32 resume = 0;

/* Up to this age an observation is used: an hour, in nanoseconds. */
#define LIFETIME (3600ULL * 1000000000)
#define AF_INET6 10

/* Mirrored in uncork-diag: `ResumeMark`. The age in seconds is below. */
enum {
	MARK_UNUSED = 1,
	MARK_USED = 2,
	MARK_RETREATED = 3,
	MARK_USE_SHIFT = 16,
};
#define MARK_RESUMED (1U << 31)

struct path {
	/* The client's network, with the version of IP above. */
	u64 network;
	/* A hash of what the server's end of the path is. */
	u64 place;
};

struct observation {
	/* In nanoseconds of CLOCK_MONOTONIC. */
	u64 observed_at;
	u64 saved_cwnd;
	u32 saved_rtt_us;
	/* One connection at a time uses it (RFC 9959 section 3.2). */
	u32 is_lent;
};

/* Bytes delivered in an interval, and when that was. */
struct delivery_sample {
	u64 bytes, interval_us, at;
};

/* An observation is another connection's again when its use has ended: it is validated, not used, or deleted by a Safe Retreat. */
enum loan_stage { NO_LOAN, LOAN_IN_USE, LOAN_RETURNED, LOAN_DELETED };

/* A connection's path when it began, what became of the observation that it began from, and its own one so far. */
struct loan {
	struct path path;
	u32 stage;
	/* The age of the observation when the connection began. */
	u32 age_s;
	struct delivery_sample sample;
};

/* The loader makes it as large as was asked. Its memory is taken at once; the least recently used leave first. */
struct {
	NUMBER(type, BPF_MAP_TYPE_LRU_HASH);
	TYPE(key, struct path);
	TYPE(value, struct observation);
	NUMBER(max_entries, 1);
} observations SECTION(".maps");

/* Mirrors ResumeCounts of the loader. */
enum resume_count { KEPT, LENT, IN_USE, EXPIRED, RETREATS, RESUME_COUNTS };

struct {
	NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	TYPE(key, u32);
	TYPE(value, u64);
	NUMBER(max_entries, RESUME_COUNTS);
} resume_counts SECTION(".maps");

static always_inline void count(u32 what)
{
	u64 *counted = bpf_map_lookup_elem(&resume_counts, &what);

	if (counted)
		++*counted;
}

static always_inline u64 mix(u64 hash, u64 with)
{
	hash = (hash ^ with) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 32;
}

static always_inline int is_ipv4(const struct sock *sk)
{
	const struct in6_addr *to = &sk->__sk_common.skc_v6_daddr;

	/* Sockets of IPv6 have IPv4 clients as ::ffff:a.b.c.d. */
	return sk->__sk_common.skc_family != AF_INET6 ||
	       (!to->in6_u.u6_addr32[0] && !to->in6_u.u6_addr32[1] && to->in6_u.u6_addr32[2] == 0xffff0000);
}

static always_inline void name_path(const struct sock *sk, struct path *path)
{
	const struct in6_addr *to = &sk->__sk_common.skc_v6_daddr, *from = &sk->__sk_common.skc_v6_rcv_saddr;
	u64 place = mix(sk->__sk_common.skc_net.net->net_cookie, (u32)sk->sk_rx_dst_ifindex);

	/* Addresses are in network byte order. */
	if (is_ipv4(sk)) {
		path->network = 4ULL << 48 | (sk->__sk_common.skc_daddr & 0x00ffffff);
		path->place = mix(place, sk->__sk_common.skc_rcv_saddr);
		return;
	}
	path->network = 6ULL << 48 | (u64)(to->in6_u.u6_addr32[1] & 0xffff) << 32 | to->in6_u.u6_addr32[0];
	place = mix(place, (u64)from->in6_u.u6_addr32[1] << 32 | from->in6_u.u6_addr32[0]);
	path->place = mix(place, (u64)from->in6_u.u6_addr32[3] << 32 | from->in6_u.u6_addr32[2]);
}

/* The observation of a path, unless it is too old or another connection has it. */
static always_inline int lend(struct loan *loan, struct observation *lent)
{
	struct observation *found = bpf_map_lookup_elem(&observations, &loan->path);
	s64 age;

	if (!found)
		return 0;
	/* Its sample may be of a moment after this connection's. */
	age = bpf_ktime_get_ns() - found->observed_at;
	if (age > (s64)LIFETIME) {
		bpf_map_delete_elem(&observations, &loan->path);
		count(EXPIRED);
		return 0;
	}
	if (__sync_lock_test_and_set(&found->is_lent, 1)) {
		count(IN_USE);
		return 0;
	}
	*lent = *found;
	loan->stage = LOAN_IN_USE;
	loan->age_s = age > 0 ? (u64)age / 1000000000 : 0;
	count(LENT);
	return 1;
}

/* Careful Resume is over, and the connection goes on. An observation that met congestion is deleted (RFC 9959 section 3.5). */
static always_inline void return_loan(struct loan *loan, int has_retreated)
{
	struct observation *found;

	loan->stage = has_retreated ? LOAN_DELETED : LOAN_RETURNED;
	if (has_retreated) {
		bpf_map_delete_elem(&observations, &loan->path);
		count(RETREATS);
		return;
	}
	found = bpf_map_lookup_elem(&observations, &loan->path);
	if (found)
		found->is_lent = 0;
}

/* A connection ends, with an observation of its own or without: `own` has no window then. After a Safe Retreat it leaves none. */
static always_inline void repay(const struct sock *sk, struct loan *loan, struct observation *own, int has_retreated)
{
	struct observation *found;
	struct path path;

	if (has_retreated) {
		if (loan->stage == LOAN_IN_USE)
			return_loan(loan, 1);
		return;
	}
	name_path(sk, &path);
	found = bpf_map_lookup_elem(&observations, &loan->path);
	/* After a change of the interface it is not known which path was observed. */
	if (own->saved_cwnd && path.network == loan->path.network && path.place == loan->path.place) {
		own->is_lent = found && found->is_lent && loan->stage != LOAN_IN_USE;
		bpf_map_update_elem(&observations, &loan->path, own, 0);
		count(KEPT);
	} else if (found && loan->stage == LOAN_IN_USE) {
		found->is_lent = 0;
	}
}
