/* Gives each TCP connection of a cgroup the settings of a policy, and reports at its end what it had.
 *
 * The policy comes as tables (crates/core/policy/src/flat): the client's address finds a row, the row has the rules
 * that hold for the address, in order. A policy's maps are written before its program is activated, and
 * never after.
 */

#include "steer.h"

char _license[] SECTION("license") = "Dual MIT/GPL";

enum {
	MAP_PERCPU_ARRAY = 6,
	MAP_RINGBUF = 27,
	NO_WAKEUP = 1,
};

enum {
	AF_INET = 2,
	AF_INET6 = 10,
	TCP_CLOSE = 7,
	TCP_INFINITE_SSTHRESH = 0x7fffffff,
	SK_PACING_NONE = 0,
	TIMEOUT = 8, /* BPF_SOCK_OPS_RTO_CB */
	RESENT = 9, /* BPF_SOCK_OPS_RETRANS_CB */
	OPENED = 4, /* BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB */
	ACCEPTED = 5, /* BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB */
	STATE = 10, /* BPF_SOCK_OPS_STATE_CB */
	LISTENS = 11, /* BPF_SOCK_OPS_TCP_LISTEN_CB */
	RTT = 12, /* BPF_SOCK_OPS_RTT_CB */
	REPORT_RTT = 8, /* BPF_SOCK_OPS_RTT_CB_FLAG */
	REPORT_START = 8 | 2 | 1, /* and those of RETRANS and RTO */
	TCP_BPF_IW = 1001,
	XDP_PASS = 2,
};

#define CANDIDATES 64
#define LINE 16
/* Each level of the table has at least two bits of an address, but the last. */
#define LEVELS 64
/* Kinds of entries of the table. */
#define VALUE (1U << 31)
#define SHARED (1U << 30)
#define LIST (1U << 29)
#define LISTED_BITS 15
#define FIELDS 0x0001000100010001ULL
#define WORDS 16
#define ARMS 32
#define DAY 86400
#define ALWAYS 0x7f
/* Of SO_MAX_PACING_RATE: no limit. The number below it turns the kernel's pacing on, and limits nothing. */
#define NO_CAP 0xffffffffU
#define PACED 0xfffffffeU
/* Of the ring of ends. */
#define RING_BYTES (1 << 21)
#define SMALL_RESPONSE 100000
/* Round trips for which a start is followed. */
#define MAX_ROUNDS 64
/* The round trips that the initial window decides. */
#define EARLY_ROUNDS 2
#define MAX_U16 0xffffU
/* Of a start: it is observed; its first flight was paced, or was not; a retransmission timeout has passed. */
#define OBSERVED 1
#define WAS_PACED 2
#define WAS_NOT_PACED 4
#define TIMED_OUT 8
/* 100 kB had left before the latest round trip. */
#define HAD_SENT_ENOUGH 16
/* A round trip was counted before the kernel reported it. */
#define COUNTED_EARLY 32
/* What ended it. */
#define BY_LOSS 1
#define BY_MARK 2
#define BY_TIMEOUT 3
#define BY_DELAY 4

static long (*bpf_getsockopt)(void *ctx, int level, int name, void *value, int length) = (void *)57;
static long (*bpf_sock_ops_cb_flags_set)(void *ctx, int flags) = (void *)59;
static long (*bpf_ringbuf_output)(void *ring, void *data, u64 size, u64 flags) = (void *)130;
static u64 (*bpf_ringbuf_query)(void *ring, u64 flags) = (void *)134;
static struct tcp_sock *(*bpf_skc_to_tcp_sock)(void *sk) = (void *)137;
static u64 (*bpf_ktime_get_tai_ns)(void) = (void *)208;

/* What the running kernel has where it says (CO-RE). */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct sock {
	u32 sk_pacing_status;
};

struct tcp_congestion_ops {
	char name[NAME];
};

struct inet_connection_sock {
	const struct tcp_congestion_ops *icsk_ca_ops;
};

struct tcp_rack {
	u32 end_seq; /* of the packet that was sent last of all that arrived */
};

struct tcp_sock {
	struct tcp_rack rack;
	u32 delivered_ce;
	u32 prior_cwnd;
	u32 prior_ssthresh;
};
#pragma clang attribute pop

/* Whether the kernel describes its types; set by the loader. */
const volatile u32 has_types = 0;

/* As in linux/bpf.h, which keeps it for programs. */
struct bpf_sock_ops {
	u32 op;
	u32 args[4];
	u32 family;
	u32 remote_ip4;
	u32 local_ip4;
	u32 remote_ip6[4];
	u32 local_ip6[4];
	u32 remote_port;
	u32 local_port;
	u32 is_fullsock;
	u32 snd_cwnd;
	u32 srtt_us;
	u32 bpf_sock_ops_cb_flags;
	u32 state, rtt_min, snd_ssthresh, rcv_nxt, snd_nxt, snd_una, mss_cache;
	u32 ecn_flags, rate_delivered, rate_interval_us, packets_out;
	u32 fields[7];
	u32 sacked_out, sk_txhash;
	u64 bytes[2];
	void *sk;
};

struct xdp_md {
	u32 data;
	u32 data_end;
};

/* What follows is mirrored in src/layout.rs. */

struct head {
	u64 policy; /* its fingerprint */
	u64 opened, others; /* which rules' listener is right, as bits by rule */
	s64 tai_offset; /* seconds that TAI is ahead of Unix time */
	u32 roots[2]; /* the first entries of the table of networks: IPv4, IPv6 */
	u32 has_ports, has_windows; /* whether a rule's listener is a port, and whether the time decides in a rule */
	char listener[NAME]; /* the controller of listening sockets that have `inherited`; empty: they keep it */
	char inherited[NAME]; /* the host's default */
};

/* Words of the table of networks, as many as a cache line has; or a list of segments. */
union line {
	u32 words[LINE];
	struct {
		u64 begins[LINE / 4]; /* of 16 bits each */
		u16 values[LINE];
	} list;
};

struct client {
	u64 high, low; /* halves of the address; IPv4 mapped */
	u32 family; /* without the mapping */
};

struct row {
	u32 count;
	struct {
		u16 rule, outcome;
	} candidates[CANDIDATES];
};

struct rule {
	s64 since, until;
	u32 from, to;
	s32 ahead;
	u8 days, has_window;
	u16 experiment; /* its index and 1; 0 is none */
};

/* One for each family, as hash and length of what is hashed differ. The network is put at the place where it
 * belongs in the words. */
struct unit {
	u64 words[WORDS];
	u32 count; /* of words */
	u32 first, shift; /* the word in which the network begins, and its first bit */
	u32 unused;
};

struct experiment {
	u64 key[2];
	struct unit units[2]; /* IPv4, IPv6 */
	u32 arms, unused;
	struct {
		u16 first, slots;
	} arm[ARMS];
};

struct outcome {
	char controller[NAME]; /* empty: the connection keeps that of the service or the route */
	u32 pacing_cap; /* bytes per second; 0 is none */
	u32 initial_window; /* packets; 0 is the kernel's */
	u32 initial_rate; /* bytes per second until the first acknowledgement; PACED; 0 is that of the cap */
};

struct counts {
	u64 connections; /* that got the outcome */
	u64 refused; /* of them, with a controller or cap that the kernel refused */
	u64 windows_refused; /* of them, with an initial window that the kernel refused: data have left */
	u64 unkept; /* of them, without a record */
};

/* The end of a connection. */
struct end {
	u64 cookie;
	struct decision decision;
	struct start start;
	char active[NAME];
};

struct question {
	u64 halves[2]; /* of the address, in network byte order; IPv4 mapped */
	u32 port, is_opened;
	u64 unix_s;
	struct decision answer;
};

struct {
	NUMBER(type, MAP_ARRAY);
	TYPE(key, u32);
	TYPE(value, struct head);
	NUMBER(max_entries, 1);
} heads SECTION(".maps");

/* The loader sets the number of entries. */
struct {
	NUMBER(type, MAP_ARRAY);
	TYPE(key, u32);
	TYPE(value, union line);
	NUMBER(max_entries, 1);
} lines SECTION(".maps");

struct {
	NUMBER(type, MAP_ARRAY);
	TYPE(key, u32);
	TYPE(value, struct row);
	NUMBER(max_entries, 1);
} rows SECTION(".maps");

struct {
	NUMBER(type, MAP_HASH);
	TYPE(key, u32);
	TYPE(value, u64);
	NUMBER(max_entries, 1);
} ports SECTION(".maps");

struct {
	NUMBER(type, MAP_ARRAY);
	TYPE(key, u32);
	TYPE(value, struct rule);
	NUMBER(max_entries, 1);
} rules SECTION(".maps");

struct {
	NUMBER(type, MAP_ARRAY);
	TYPE(key, u32);
	TYPE(value, struct experiment);
	NUMBER(max_entries, 1);
} experiments SECTION(".maps");

struct {
	NUMBER(type, MAP_ARRAY);
	TYPE(key, u32);
	TYPE(value, struct outcome);
	NUMBER(max_entries, 1);
} outcomes SECTION(".maps");

struct {
	NUMBER(type, MAP_PERCPU_ARRAY);
	TYPE(key, u32);
	TYPE(value, struct counts);
	NUMBER(max_entries, 1);
} counters SECTION(".maps");

/* This one and the next stay when another policy is activated, as `sockets` does. */
struct {
	NUMBER(type, MAP_RINGBUF);
	NUMBER(max_entries, RING_BYTES);
} ends SECTION(".maps");

/* How many ends found no room in the ring. */
struct {
	NUMBER(type, MAP_ARRAY);
	TYPE(key, u32);
	TYPE(value, u64);
	NUMBER(max_entries, 1);
} lost SECTION(".maps");

static always_inline u64 rotated(u64 x, u32 bits)
{
	return x << bits | x >> (64 - bits);
}

static always_inline void sip_round(u64 v[4])
{
	v[0] += v[1];
	v[1] = rotated(v[1], 13) ^ v[0];
	v[0] = rotated(v[0], 32);
	v[2] += v[3];
	v[3] = rotated(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotated(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotated(v[1], 17) ^ v[2];
	v[2] = rotated(v[2], 32);
}

/* SipHash-2-4 of the unit. A function of its own for the verifier; so are the next ones. */
noinline u64 hash(const struct experiment *experiment, u32 family, u64 network)
{
	const struct unit *unit;
	u64 v[4], word;
	u32 shift;

	if (!experiment)
		return 0;
	unit = &experiment->units[family == AF_INET ? 0 : 1];
	shift = unit->shift & 63;
	v[0] = experiment->key[0] ^ 0x736f6d6570736575ULL;
	v[1] = experiment->key[1] ^ 0x646f72616e646f6dULL;
	v[2] = experiment->key[0] ^ 0x6c7967656e657261ULL;
	v[3] = experiment->key[1] ^ 0x7465646279746573ULL;
	for (u32 i = 0; i < WORDS; i++) {
		if (i >= unit->count)
			break;
		word = unit->words[i];
		if (i == unit->first)
			word |= network << shift;
		else if (i == unit->first + 1 && shift)
			word |= network >> (64 - shift);
		v[3] ^= word;
		sip_round(v);
		sip_round(v);
		v[0] ^= word;
	}
	v[2] ^= 0xff;
	for (u32 i = 0; i < 4; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* Which arm has the hash's slot; negative if none. */
noinline int arm_of(const struct experiment *experiment, u64 hash)
{
	u32 slot = (hash >> 32) * 10000 >> 32, first;

	if (!experiment)
		return -1;
	for (u32 i = 0; i < ARMS; i++) {
		if (i >= experiment->arms)
			break;
		first = experiment->arm[i].first;
		if (slot >= first && slot < first + experiment->arm[i].slots)
			return i;
	}
	return -1;
}

static always_inline int is_on(const struct rule *rule, u64 day)
{
	/* 1970 began on a Thursday, the days of the rule begin on Monday. */
	return rule->days >> (day + 3) % 7 & 1;
}

/* As Window::contains in crates/core/policy/src/window.rs. */
noinline int holds(const struct rule *rule, u64 now)
{
	u64 local, day;
	u32 second;

	if (!rule)
		return 0;
	if (!rule->has_window)
		return 1;
	if ((s64)now < rule->since || (s64)now >= rule->until)
		return 0;
	local = now + rule->ahead;
	day = local / DAY;
	second = local % DAY;
	if (rule->from < rule->to)
		return second >= rule->from && second < rule->to && is_on(rule, day);
	if (second >= rule->from)
		return is_on(rule, day);
	return second < rule->to && is_on(rule, day - 1);
}

/* The bytes of the client's network (/24 or /48) as a number, the first one lowest. */
static always_inline u64 unit_of(const struct client *client)
{
	if (client->family == AF_INET)
		return __builtin_bswap32(client->low) & 0xffffff;
	return __builtin_bswap64(client->high) & 0xffffffffffffULL;
}

/* The value of the segment that has `key`. Four segments at a time, without a branch: a field's highest bit stays where
 * the key is at its segment's begin or after it.
 */
static always_inline u32 listed(const union line *line, u64 key)
{
	u64 keys = key * FIELDS | FIELDS << LISTED_BITS, begun = 0;

	for (u32 i = 0; i < LINE / 4; i++)
		begun += (keys - line->list.begins[i]) >> LISTED_BITS & FIELDS;
	/* The sum of the four fields. The first segment begins at 0. */
	return line->list.values[((begun * FIELDS >> 48) - 1) & (LINE - 1)];
}

/* The row of an address, as PrefixMap::walk in crates/core/policy/src/prefix_map.rs. */
noinline u32 row_of(u32 entry, u64 high, u64 low)
{
	const union line *line;
	u32 at, bits, first, index;

	for (u32 i = 0; i < LEVELS && !(entry & VALUE); i++) {
		bits = (entry >> 24 & 31) + 1;
		first = high >> (64 - bits);
		at = (entry & ((1 << 24) - 1)) * 4;
		if (!(entry & (SHARED | LIST)))
			at += first;
		index = at / LINE;
		line = lookup(&lines, &index);
		if (!line)
			return 0;
		if (entry & LIST)
			return listed(line, first);
		if (!(entry & SHARED))
			entry = line->words[at % LINE];
		else if (line->words[at % LINE] == first)
			entry = line->words[at % LINE / 4 * 4 + 2];
		else
			entry = line->words[at % LINE / 4 * 4 + 1];
		high = high << bits | low >> (64 - bits);
		low <<= bits;
	}
	return entry & ~VALUE;
}

/* The decision of the policy. `listener` has a bit for each rule with a matching listener. */
static always_inline void decide(const struct head *head, const struct client *client, u64 listener, u64 now,
				 struct decision *decision)
{
	int is_v4 = client->family == AF_INET;
	u32 index = row_of(head->roots[is_v4 ? 0 : 1], is_v4 ? client->low << 32 : client->high, client->low);
	u32 number;
	const struct row *row = lookup(&rows, &index);
	const struct experiment *experiment;
	const struct rule *rule;
	u64 unit;
	int arm;

	decision->policy = head->policy;
	decision->unit = 0;
	decision->outcome = 0;
	if (!row)
		return;
	for (u32 i = 0; i < CANDIDATES; i++) {
		if (i >= row->count)
			break;
		number = row->candidates[i].rule;
		if (!(listener >> (number & 63) & 1))
			continue;
		rule = lookup(&rules, &number);
		if (!rule || !holds(rule, now))
			continue;
		if (!rule->experiment) {
			decision->outcome = row->candidates[i].outcome;
			return;
		}
		number = rule->experiment - 1;
		experiment = lookup(&experiments, &number);
		if (!experiment)
			continue;
		unit = hash(experiment, client->family, unit_of(client));
		arm = arm_of(experiment, unit);
		if (arm < 0)
			continue;
		decision->unit = unit;
		decision->outcome = row->candidates[i].outcome + arm;
		return;
	}
}

/* Which rules' listener is right. */
static always_inline u64 listener_of(const struct head *head, u32 port, int is_opened)
{
	u64 *known;

	if (is_opened)
		return head->opened;
	if (!head->has_ports)
		return head->others;
	known = lookup(&ports, &port);
	return known ? *known : head->others;
}

/* Unix time in seconds, if a rule asks. To read the clock waits for all reads of memory before it. */
static always_inline u64 now_of(const struct head *head)
{
	return head->has_windows ? bpf_ktime_get_tai_ns() / 1000000000 - head->tai_offset : 0;
}

/* From halves of the address, IPv4 mapped. */
static always_inline struct client client_at(u64 high, u64 low)
{
	return (struct client){ high, low, !high && low >> 32 == 0xffff ? AF_INET : AF_INET6 };
}

/* Words of an address in network byte order as half of one. */
static always_inline u64 half_of(u32 first, u32 second)
{
	return (u64)__builtin_bswap32(first) << 32 | __builtin_bswap32(second);
}

/* The other side's address. */
static always_inline struct client client_of(struct bpf_sock_ops *ops)
{
	u32 family = ops->family, v4 = ops->remote_ip4, v6[4];

	ALONE(v4);
	v6[0] = ops->remote_ip6[0];
	ALONE(v6[0]);
	v6[1] = ops->remote_ip6[1];
	ALONE(v6[1]);
	v6[2] = ops->remote_ip6[2];
	ALONE(v6[2]);
	v6[3] = ops->remote_ip6[3];
	ALONE(v6[3]);
	if (family == AF_INET)
		return client_at(0, 0xffff00000000ULL | __builtin_bswap32(v4));
	return client_at(half_of(v6[0], v6[1]), half_of(v6[2], v6[3]));
}

static always_inline int has_controller(struct bpf_sock_ops *ops, const char *name)
{
	char has[NAME] = {};

	if (bpf_getsockopt(ops, IPPROTO_TCP, TCP_CONGESTION, has, NAME))
		return 0;
	for (u32 i = 0; i < NAME; i++)
		if (has[i] != name[i])
			return 0;
	return 1;
}

/* Whether the connection has its controller only because the policy gave it to the listening socket. One that the service or the route
 * has chosen stays.
 */
static always_inline int has_listeners(struct bpf_sock_ops *ops, const struct head *head, int is_opened)
{
	if (is_opened || !head->listener[0] || !(ops->bpf_sock_ops_cb_flags & REPORT_STATES))
		return 0;
	return has_controller(ops, head->listener);
}

/* Gives the connection the settings of the outcome, and counts what the kernel refuses. The window is first: controllers compute their
 * first pacing rate from it. Where packets of the handshake were lost, the kernel has begun with one packet (RFC 5681 section 3.1),
 * and so it stays.
 */
static always_inline void apply(struct bpf_sock_ops *ops, const struct head *head, const struct outcome *outcome,
				int is_opened, struct counts *counts)
{
	char controller[NAME];
	u32 window = outcome->initial_window, rate = outcome->pacing_cap;
	int refused = 0;

	if (window && (ops->snd_cwnd <= 1 || bpf_setsockopt(ops, IPPROTO_TCP, TCP_BPF_IW, &window, sizeof(window))))
		counts->windows_refused++;
	else if (window && outcome->initial_rate)
		rate = outcome->initial_rate;
	if (rate && bpf_setsockopt(ops, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof(rate)))
		refused = 1;
	__builtin_memcpy(controller, outcome->controller, NAME);
	if (!controller[0] && has_listeners(ops, head, is_opened))
		__builtin_memcpy(controller, head->inherited, NAME);
	if (controller[0] && bpf_setsockopt(ops, IPPROTO_TCP, TCP_CONGESTION, controller, NAME))
		refused = 1;
	counts->refused += refused;
}

static always_inline void end_rate(struct bpf_sock_ops *ops, u32 cap)
{
	cap = cap ? cap : NO_CAP;
	bpf_setsockopt(ops, SOL_SOCKET, SO_MAX_PACING_RATE, &cap, sizeof(cap));
}

/* Whether a recorder reads the ring: without one it fills up, and starts are not observed. */
static always_inline int is_read(void)
{
	return bpf_ringbuf_query(&ends, 0) < RING_BYTES / 2;
}

static always_inline int is_before(u32 sequence, u32 other)
{
	return (s32)(sequence - other) < 0;
}

static always_inline u16 narrow(u32 count)
{
	return count > MAX_U16 ? MAX_U16 : count;
}

/* The kernel's socket; 0 if the kernel does not describe it. */
static always_inline struct tcp_sock *tcp_sock_of(struct bpf_sock_ops *ops)
{
	void *sk;

	if (!has_types)
		return 0;
	sk = ops->sk;
	return sk ? bpf_skc_to_tcp_sock(sk) : 0;
}

/* Whether the first flight was paced: pacing goes on for the connection's life. */
static always_inline void note_pacing(struct start *start, struct tcp_sock *tcp)
{
	if (!tcp || start->flags & (WAS_PACED | WAS_NOT_PACED))
		return;
	start->flags |= ((struct sock *)tcp)->sk_pacing_status != SK_PACING_NONE ? WAS_PACED : WAS_NOT_PACED;
}

/* Slow start has ended if its threshold is known. A reduction of the window keeps what the window and the threshold were before; the threshold
 * was known then if the controller had ended slow start itself (HyStart), which also sets it to the window.
 */
static always_inline void note_exit(struct bpf_sock_ops *ops, struct start *start, struct tcp_sock *tcp)
{
	u32 threshold = ops->snd_ssthresh, before, window;

	if (start->exit || threshold >= TCP_INFINITE_SSTHRESH || !tcp)
		return;
	window = tcp->prior_cwnd;
	before = tcp->prior_ssthresh;
	start->exit_end = ops->snd_nxt;
	if (!window || (before && before < TCP_INFINITE_SSTHRESH)) {
		start->exit = BY_DELAY;
		window = window ? before : threshold;
	} else if (start->flags & TIMED_OUT) {
		start->exit = BY_TIMEOUT;
	} else {
		start->exit = !start->lost && tcp->delivered_ce ? BY_MARK : BY_LOSS;
	}
	start->exit_window = narrow(window);
}

/* Whether new data has arrived that was sent since the latest round trip began. */
static always_inline int has_round_ended(struct bpf_sock_ops *ops, const struct start *start, struct tcp_sock *tcp)
{
	u32 acknowledged = ops->snd_una;

	if (!start->rounds)
		return acknowledged != start->first || ops->sacked_out;
	return tcp && is_before(start->round_end, tcp->rack.end_seq);
}

static always_inline void count_round(struct bpf_sock_ops *ops, struct start *start)
{
	u32 next = ops->snd_nxt, acknowledged = ops->snd_una;

	start->rounds++;
	/* Without losses, what had left before the latest round trip was acknowledged in it. */
	if (!start->rounds_to_100kb && acknowledged - start->first >= SMALL_RESPONSE)
		start->rounds_to_100kb = start->rounds - (start->flags & HAD_SENT_ENOUGH && !start->lost);
	if (next - start->first >= SMALL_RESPONSE)
		start->flags |= HAD_SENT_ENOUGH;
	if (start->rounds == EARLY_ROUNDS)
		start->early_end = next;
	start->round_end = next;
}

/* Whether nothing remains to be seen: packets of the start and of the first round trips may still be lost. */
static always_inline int is_over(const struct start *start, u32 acknowledged)
{
	if (start->rounds >= MAX_ROUNDS)
		return 1;
	return start->rounds > EARLY_ROUNDS && start->rounds_to_100kb && start->exit &&
	       !is_before(acknowledged, start->early_end) && !is_before(acknowledged, start->exit_end);
}

/* Whether the kernel's socket has more to say: mostly in the first round trip, and when slow start has ended. */
static always_inline int needs_socket(struct bpf_sock_ops *ops, const struct start *start)
{
	return !(start->flags & (WAS_PACED | WAS_NOT_PACED)) || start->flags & COUNTED_EARLY ||
	       (!start->exit && ops->snd_ssthresh < TCP_INFINITE_SSTHRESH);
}

/* The kernel reports the round-trip time once for each, when the first of its packets is acknowledged. No answer has left yet. */
static always_inline void end_round(struct bpf_sock_ops *ops, struct start *start)
{
	struct tcp_sock *tcp = needs_socket(ops, start) ? tcp_sock_of(ops) : 0;

	note_pacing(start, tcp);
	if (!(start->flags & COUNTED_EARLY) || !tcp || has_round_ended(ops, start, tcp))
		count_round(ops, start);
	note_exit(ops, start, tcp);
	if (is_over(start, ops->snd_una))
		bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags & ~REPORT_START);
}

/* Packets were sent again, from `sequence` on. */
static always_inline void resent(struct bpf_sock_ops *ops)
{
	struct kept *kept = kept_of(bpf_get_socket_cookie(ops));
	u32 sequence = ops->args[0], packets = ops->args[1], failed = ops->args[2];
	u32 outstanding = ops->packets_out, reported = ops->sacked_out;
	struct tcp_sock *tcp;
	struct start *start;

	if (!kept || !(kept->start.flags & OBSERVED) || failed)
		return;
	start = &kept->start;
	tcp = tcp_sock_of(ops);
	if (start->rounds < MAX_ROUNDS && has_round_ended(ops, start, tcp)) {
		count_round(ops, start);
		start->flags |= COUNTED_EARLY;
	}
	if (start->rounds < EARLY_ROUNDS || is_before(sequence, start->early_end))
		start->early_resent = narrow(start->early_resent + packets);
	if (!start->exit || is_before(sequence, start->exit_end))
		start->lost += packets;
	if (start->exit)
		return;
	note_exit(ops, start, tcp);
	if (start->exit == BY_LOSS || start->exit == BY_TIMEOUT)
		start->exit_in_flight = narrow(outstanding - reported);
}

static always_inline void timed_out(struct bpf_sock_ops *ops)
{
	struct kept *kept = kept_of(bpf_get_socket_cookie(ops));

	if (kept)
		kept->start.flags |= TIMED_OUT;
}

static always_inline void begin(struct bpf_sock_ops *ops, int is_opened)
{
	u32 zero = 0;
	const struct head *head = lookup(&heads, &zero);
	const struct outcome *outcome;
	struct decision decision = {};
	struct counts *counts;
	struct client client;
	struct kept *kept;
	int callbacks = REPORT_STATES;

	if (!head)
		return;
	client = client_of(ops);
	decide(head, &client, listener_of(head, ops->local_port, is_opened), now_of(head), &decision);
	outcome = lookup(&outcomes, &decision.outcome);
	counts = lookup(&counters, &decision.outcome);
	if (!outcome || !counts)
		return;
	apply(ops, head, outcome, is_opened, counts);
	counts->connections++;
	decision.window = ops->snd_cwnd;
	if (outcome->initial_rate && outcome->initial_rate != PACED) {
		decision.flags = RATED;
		callbacks |= REPORT_RTT;
	}
	kept = keep(bpf_get_socket_cookie(ops), &decision);
	if (kept) {
		if (is_read()) {
			kept->start.first = ops->snd_nxt;
			kept->start.flags = OBSERVED;
			callbacks |= REPORT_START;
		}
		bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags | callbacks);
		return;
	}
	/* Without room for it the connection has its settings, but no initial rate, and leaves no record. */
	counts->unkept++;
	if (decision.flags)
		end_rate(ops, outcome->pacing_cap);
}

/* The first acknowledgement ends the initial rate. A policy that was applied meanwhile does not know the connection's cap. */
static always_inline void end_initial_rate(struct bpf_sock_ops *ops, struct kept *kept)
{
	const struct outcome *outcome;
	const struct head *head;
	u32 number = 0, cap = 0;

	kept->decision.flags &= ~RATED;
	head = lookup(&heads, &number);
	if (head && kept->decision.policy == head->policy) {
		number = kept->decision.outcome;
		outcome = lookup(&outcomes, &number);
		if (outcome)
			cap = outcome->pacing_cap;
	}
	end_rate(ops, cap);
	if (!(kept->start.flags & OBSERVED))
		bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags & ~REPORT_RTT);
}

/* Other programs ask for these callbacks, too. */
static always_inline void acknowledged(struct bpf_sock_ops *ops)
{
	struct kept *kept = kept_of(bpf_get_socket_cookie(ops));

	if (!kept)
		return;
	if (kept->decision.flags & RATED)
		end_initial_rate(ops, kept);
	if (kept->start.flags & OBSERVED)
		end_round(ops, &kept->start);
}

/* What a connection can negotiate depends on its listener's controller. A server that has set one itself keeps it. */
static always_inline void listens(struct bpf_sock_ops *ops)
{
	struct decision decision = { .flags = LISTENER };
	const struct head *head;
	char gets[NAME];
	u32 zero = 0;

	head = lookup(&heads, &zero);
	if (!head || !head->listener[0] || !has_controller(ops, head->inherited))
		return;
	__builtin_memcpy(gets, head->listener, NAME);
	if (keep(bpf_get_socket_cookie(ops), &decision)) {
		bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags | REPORT_STATES);
		bpf_setsockopt(ops, IPPROTO_TCP, TCP_CONGESTION, gets, NAME);
	}
}

/* The connection ends, its start perhaps with it. */
static always_inline void end_start(struct bpf_sock_ops *ops, struct start *start, struct tcp_sock *tcp)
{
	if (!(start->flags & OBSERVED))
		return;
	start->mss = ops->mss_cache;
	if (start->rounds >= MAX_ROUNDS)
		return;
	note_pacing(start, tcp);
	note_exit(ops, start, tcp);
	if (!start->rounds_to_100kb && ops->snd_una - start->first >= SMALL_RESPONSE)
		start->rounds_to_100kb = start->rounds ? start->rounds : 1;
}

/* The name of the connection's controller. To ask for it costs more than to read it. */
static always_inline void name_controller(struct bpf_sock_ops *ops, struct tcp_sock *tcp, char *name)
{
	const struct tcp_congestion_ops *controller = tcp ? ((struct inet_connection_sock *)tcp)->icsk_ca_ops : 0;

	if (controller) {
		((u64 *)name)[0] = ((const u64 *)controller->name)[0];
		((u64 *)name)[1] = ((const u64 *)controller->name)[1];
	} else {
		bpf_getsockopt(ops, IPPROTO_TCP, TCP_CONGESTION, name, NAME);
	}
}

static always_inline void end(struct bpf_sock_ops *ops)
{
	struct end end = {};
	struct tcp_sock *tcp;
	struct kept *kept;
	u32 zero = 0;
	u64 *count;

	if (ops->args[1] != TCP_CLOSE)
		return;
	end.cookie = bpf_get_socket_cookie(ops);
	kept = kept_of(end.cookie);
	if (!kept)
		return;
	tcp = tcp_sock_of(ops);
	end_start(ops, &kept->start, tcp);
	end.decision = kept->decision;
	end.start = kept->start;
	/* After it was read: an exchange is a barrier. */
	__sync_lock_test_and_set(&kept->cookie, end.cookie | ENDED);
	if (end.decision.flags & LISTENER)
		return;
	name_controller(ops, tcp, end.active);
	/* Without a reader the ring is full. Readers look by themselves: waking them costs more. */
	if (bpf_ringbuf_output(&ends, &end, sizeof(end), NO_WAKEUP)) {
		count = lookup(&lost, &zero);
		if (count)
			__sync_fetch_and_add(count, 1);
	}
}

SECTION("sockops") int steer(struct bpf_sock_ops *ops)
{
	switch (ops->op) {
	case OPENED:
		begin(ops, 1);
		break;
	case ACCEPTED:
		begin(ops, 0);
		break;
	case LISTENS:
		listens(ops);
		break;
	case RTT:
		acknowledged(ops);
		break;
	case RESENT:
		resent(ops);
		break;
	case TIMEOUT:
		timed_out(ops);
		break;
	case STATE:
		end(ops);
		break;
	}
	return 1;
}

/* The same decision for a client in question: the program runs on demand only, with the question as packet. */
SECTION("xdp") int ask(struct xdp_md *packet)
{
	u8 *from = (u8 *)(long)packet->data, *to = (u8 *)(long)packet->data_end;
	struct question *question = (struct question *)from;
	struct decision decision = {};
	struct client client;
	const struct head *head;
	u32 zero = 0;

	if (from + sizeof(*question) > to)
		return XDP_PASS;
	head = lookup(&heads, &zero);
	if (!head)
		return XDP_PASS;
	client = client_at(__builtin_bswap64(question->halves[0]), __builtin_bswap64(question->halves[1]));
	decide(head, &client, listener_of(head, question->port, question->is_opened), question->unix_s, &decision);
	question->answer = decision;
	return XDP_PASS;
}
