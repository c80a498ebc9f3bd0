/* What both programs of `uncork steer` know: what was decided for each connection. */
#pragma once

#include "../../kernel/bpf/bpf.h"

enum {
	MAP_HASH = 1,
	MAP_ARRAY = 2,
	SOL_SOCKET = 1,
	SO_MAX_PACING_RATE = 47,
};

#define NAME 16

static void *(*lookup)(void *map, const void *key) = (void *)1;
static long (*delete)(void *map, const void *key) = (void *)3;
static u64 (*bpf_get_socket_cookie)(void *of) = (void *)46;

/* What was decided for a connection. Mirrored in src/layout.rs. */
struct decision {
	u64 policy;
	u64 unit; /* the hash; 0 without an experiment */
	u32 outcome;
	u32 flags; /* 1: moved here when it was open (move.bpf.c) */
};

/* By the socket's cookie. The kernel's storage in sockets costs as much, and has no bound. It stays when another policy is
 * put in force: connections end later than policies. */
struct {
	NUMBER(type, MAP_HASH);
	NUMBER(map_flags, BPF_F_NO_PREALLOC);
	TYPE(key, u64);
	TYPE(value, struct decision);
	NUMBER(max_entries, 1 << 20);
} sockets SECTION(".maps");
