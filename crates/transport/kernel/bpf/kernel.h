/* What the shim reads of the kernel. The names count, not the places: the loader finds each field where
 * the running kernel has it (CO-RE). */
#pragma once

#include "bpf.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct net {
	u64 net_cookie;
};

struct in6_addr {
	union {
		u32 u6_addr32[4];
	} in6_u;
};

struct sock_common {
	u32 skc_daddr;
	u32 skc_rcv_saddr;
	u16 skc_family;
	volatile unsigned char skc_state;
	struct {
		struct net *net;
	} skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct sock {
	struct sock_common __sk_common;
	int sk_rx_dst_ifindex;
	u32 sk_pacing_status;
	unsigned long sk_pacing_rate;
	unsigned long sk_tsq_flags;
	unsigned long sk_max_pacing_rate;
};

struct minmax_sample {
	u32 t;
	u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_rack {
	u8 reo_wnd_steps;
};

struct tcp_sock {
	u64 tcp_clock_cache;
	u64 tcp_wstamp_ns;
	u64 tcp_mstamp;
	u64 first_tx_mstamp;
	u32 delivered;
	u32 delivered_ce;
	u32 lost;
	u32 snd_nxt;
	u32 snd_una;
	u32 snd_wnd;
	u32 write_seq;
	u32 packets_out;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 data_segs_out;
	u32 snd_cwnd;
	u32 snd_cwnd_clamp;
	u32 snd_ssthresh;
	u32 mss_cache;
	u32 srtt_us;
	u32 reord_seen;
	struct tcp_rack rack;
	u8 ecn_flags;
#ifdef WITH_ECT1
	u32 delivered_ecn_bytes[3];
#endif
	struct minmax rtt_min;
};

struct rate_sample {
	u64 prior_mstamp;
	u32 prior_delivered;
	s32 delivered;
	long interval_us;
	u32 snd_interval_us;
	long rtt_us;
	u32 prior_in_flight;
	u32 last_end_seq;
	_Bool is_app_limited;
};

#pragma clang attribute pop

enum {
	SK_PACING_NONE = 0,
	SK_PACING_NEEDED = 1,
	/* sk_pacing_shift: the rate of a second becomes that of a millisecond. */
	PACING_SHIFT = 10,
	TSQF_THROTTLED = 1,
	TCP_CLOSE = 7,
	TCP_CA_CWR = 2,
	TCP_CA_RECOVERY = 3,
	TCP_CA_LOSS = 4,
	CA_EVENT_TX_START = 0,
	TCP_INFINITE_SSTHRESH = 0x7fffffff,
	/* RFC 9768 was negotiated: TCP_ECN_MODE_ACCECN of include/net/tcp.h. Kernels without it leave the bit unset. */
	ECN_MODE_ACCECN = 16,
};

enum {
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_QUEUE = 22,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_SK_STORAGE_GET_F_CREATE = 1,
};

static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static u32 (*bpf_get_prandom_u32)(void) = (void *)7;
static void *(*bpf_sk_storage_get)(void *map, void *sk, void *value, u64 flags) = (void *)107;
static long (*bpf_map_push_elem)(void *map, const void *value, u64 flags) = (void *)87;
