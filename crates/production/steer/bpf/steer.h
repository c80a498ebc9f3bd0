/* What both programs of `uncork steer` know: what was decided for each connection. */
#pragma once

#include "../../../transport/kernel/bpf/bpf.h"

enum {
	MAP_HASH = 1,
	MAP_ARRAY = 2,
	SOL_SOCKET = 1,
	SO_MAX_PACING_RATE = 47,
	/* BPF_SOCK_OPS_STATE_CB_FLAG. Listening sockets pass it on with their controller: it marks sockets with a controller of the policy. */
	REPORT_STATES = 4,
};

#define NAME 16

/* Of a decision. The connection was moved here when it was open (move.bpf.c). */
#define MOVED 1
/* Its initial rate lasts until the first acknowledgement. */
#define RATED 2
/* A listening socket that got the policy's controller of listeners. */
#define LISTENER 4

static void *(*lookup)(void *map, const void *key) = (void *)1;
static u64 (*bpf_get_socket_cookie)(void *of) = (void *)46;

/* What was decided for a connection. Mirrored in src/layout.rs. */
struct decision {
	u64 policy;
	u64 unit; /* the hash; 0 without an experiment */
	u32 outcome;
	u16 flags; /* MOVED, RATED, LISTENER */
	u16 window; /* packets that it began with, as the kernel has them */
};

/* How a connection started, while a recorder reads (steer.bpf.c). Mirrored in src/start.rs. */
struct start {
	/* Sequence numbers: where the data began, and what the first two round trips, the start and the latest round trip end before. */
	u32 first, early_end, exit_end, round_end;
	u32 lost; /* packets of the start that were sent again */
	u16 early_resent; /* packets of the first two round trips that were sent again */
	u16 exit_window, exit_in_flight; /* packets */
	u16 mss;
	u8 rounds, rounds_to_100kb; /* 0: not yet */
	u8 exit, flags;
};

/* A place in the table of connections. */
struct kept {
	struct decision decision;
	struct start start;
	u64 cookie; /* the socket's, with ENDED after its end; 0 if nothing was here. The last: user space writes from the front. */
};

/* The connection has ended: the place is free, and readers find its start until another one takes it. */
#define ENDED (1ULL << 63)

#define PLACES (1 << 20)
/* Where a connection may be. */
#define TRIES 8

/* What was decided for each connection. Sockets get their cookies in order, so connections that come together lie together here, and nothing
 * is allocated. With a hash table of the kernel a connection costs more than twice as much, with its storage in sockets as much as
 * that, and without a bound. The table stays when another policy is activated: connections end later than policies.
 */
struct {
	NUMBER(type, MAP_ARRAY);
	TYPE(key, u32);
	TYPE(value, struct kept);
	NUMBER(max_entries, PLACES);
} sockets SECTION(".maps");

/* The places for a cookie, as `places` in src/layout.rs. The step is PLACES by the golden ratio, so that they are far apart: old
 * connections that lie together do not take all places of a new one.
 */
static always_inline struct kept *place(u64 cookie, u32 number)
{
	u32 index = (cookie + number * 0x9e377) & (PLACES - 1);

	return lookup(&sockets, &index);
}

/* The place that the connection has. */
static always_inline struct kept *kept_of(u64 cookie)
{
	struct kept *kept;

	for (u32 i = 0; i < TRIES; i++) {
		kept = place(cookie, i);
		if (kept && kept->cookie == cookie)
			return kept;
	}
	return 0;
}

/* The connection's new place; 0 without room. */
static always_inline struct kept *keep(u64 cookie, const struct decision *decision)
{
	struct kept *kept;
	u64 had;

	for (u32 i = 0; i < TRIES; i++) {
		kept = place(cookie, i);
		if (!kept)
			continue;
		had = kept->cookie;
		if ((!had || had & ENDED) && __sync_val_compare_and_swap(&kept->cookie, had, cookie) == had) {
			kept->decision = *decision;
			kept->start = (struct start){};
			return kept;
		}
	}
	return 0;
}
