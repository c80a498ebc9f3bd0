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
	OPENED = 4, /* BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB */
	ACCEPTED = 5, /* BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB */
	STATE = 10, /* BPF_SOCK_OPS_STATE_CB */
	LISTENS = 11, /* BPF_SOCK_OPS_TCP_LISTEN_CB */
	RTT = 12, /* BPF_SOCK_OPS_RTT_CB */
	REPORT_RTT = 8, /* BPF_SOCK_OPS_RTT_CB_FLAG */
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

static long (*bpf_getsockopt)(void *ctx, int level, int name, void *value, int length) = (void *)57;
static long (*bpf_sock_ops_cb_flags_set)(void *ctx, int flags) = (void *)59;
static long (*bpf_ringbuf_output)(void *ring, void *data, u64 size, u64 flags) = (void *)130;
static u64 (*bpf_ktime_get_tai_ns)(void) = (void *)208;

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
	u32 fields[20];
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
	NUMBER(max_entries, 1 << 20);
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

static always_inline void begin(struct bpf_sock_ops *ops, int is_opened)
{
	u32 zero = 0;
	const struct head *head = lookup(&heads, &zero);
	const struct outcome *outcome;
	struct decision decision = {};
	struct counts *counts;
	struct client client;
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
	if (keep(bpf_get_socket_cookie(ops), &decision)) {
		bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags | callbacks);
		return;
	}
	/* Without room for it the connection has its settings, but no initial rate, and leaves no record. */
	counts->unkept++;
	if (decision.flags)
		end_rate(ops, outcome->pacing_cap);
}

/* The first acknowledgement ends the initial rate. A policy that was applied meanwhile does not know the connection's cap. Other
 * programs ask for these callbacks, too.
 */
static always_inline void acknowledged(struct bpf_sock_ops *ops)
{
	struct kept *kept = kept_of(bpf_get_socket_cookie(ops));
	const struct outcome *outcome;
	const struct head *head;
	u32 number = 0, cap = 0;

	if (!kept || !(kept->decision.flags & RATED))
		return;
	kept->decision.flags &= ~RATED;
	head = lookup(&heads, &number);
	if (head && kept->decision.policy == head->policy) {
		number = kept->decision.outcome;
		outcome = lookup(&outcomes, &number);
		if (outcome)
			cap = outcome->pacing_cap;
	}
	end_rate(ops, cap);
	bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags & ~REPORT_RTT);
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

static always_inline void end(struct bpf_sock_ops *ops)
{
	struct end end = {};
	struct kept *kept;
	u32 zero = 0;
	u64 *count;

	if (ops->args[1] != TCP_CLOSE)
		return;
	end.cookie = bpf_get_socket_cookie(ops);
	kept = kept_of(end.cookie);
	if (!kept)
		return;
	end.decision = kept->decision;
	/* After it was read: an exchange is a barrier. */
	__sync_lock_test_and_set(&kept->cookie, 0);
	if (end.decision.flags & LISTENER)
		return;
	bpf_getsockopt(ops, IPPROTO_TCP, TCP_CONGESTION, end.active, NAME);
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
