/* Linux TCP on one side, a controller of uncork-cc on the other: the struct_ops programs, and the state
 * of each connection in its socket.
 *
 * The kernel counts packets and the controllers count bytes. A packet counts as `mss` bytes here, the
 * current MSS, also if it left before a change.
 */
#include "ect1.h"
#include "kernel.h"
#include "resume.h"

/* All in one section: the library that reads the object has no name for struct_ops, so it has the name
 * of another program type. The loader sets the type. */
#define STRUCT_OPS SECTION("kprobe")

char _license[] SECTION("license") = "Dual MIT/GPL";

/* Set by the loader before the kernel sees the programs: whether each call is reported to user space. */
const volatile u32 tracing = 0;
/* Which argument of cong_control is the rate sample: the third after `ack` and `flag`, which kernels before
 * 6.10 do not have. The verifier knows the value, and looks at one branch only. */
const volatile u32 has_ack_argument = 1;

#define SNAPSHOTS 128
#define NONE (~0ULL)
/* A million times as much fits into 64 bits. */
#define MAX_CARRIED (1ULL << 43)

/* Mirrors Call in glue.rs. Times in nanoseconds. */
struct call {
	u64 now, mss, seed;
	u64 acked, lost, sent, in_flight, unacked;
	u64 rtt, srtt, min_rtt;
	u64 send_time, delivered, delivered_time, send_elapsed, lost_then, tx_in_flight, lost_sent;
	u64 ce_packets, flags, initial_window, ssthresh, inherited_bw, saved_cwnd, saved_rtt;
	u64 cwnd, pacing_rate, send_quantum, is_classic;
};

enum {
	APP_LIMITED = 1, /* the packet that the feedback is about left when the application had no more */
	UNA_ADVANCED = 2,
	DRAINED = 4, /* the application has no more data now */
	REPAIRING = 8, /* what was in flight at the latest loss has not been delivered yet */
	REPAIRED_BY_PROBE = 16,
	DEFERRED = 32, /* the host kept data back that the window had room for */
	ECT1 = 64, /* packets leave as ECT(1) */
	RETREATED = 128, /* out: the window of an earlier connection met congestion */
	JUMPED = 256, /* out: it was taken over */
	RESUMING = 512, /* out: that is not decided yet */
};

/* Mirrors Report in glue.rs. */
struct report {
	u32 words[16];
};

/* Mirrors Connection in glue.rs: what monitors may read, a call, and what only Rust knows. */
struct connection {
	struct report report;
	struct call call;
	u64 rest[REST_WORDS];
};

/* How much was in flight and lost when, which the kernel's rate sample does not report. */
struct snapshot {
	u32 delivered, snd_nxt, in_flight, lost;
};

enum kind { INIT, SENT, ACK, TIMEOUT, SPURIOUS, RESIZED, CLASSIC_ECN, ENDED };

/* A call as reported to user space. */
struct record {
	u32 kind, number;
	u64 key;
	struct connection connection;
};

struct state {
	struct record record;
	/* Bytes since the connection began. */
	u64 total_delivered, total_lost;
	/* The kernel's counts as last reported. */
	u32 delivered, lost, delivered_ce, data_segs_out, snd_una;
	/* Up to where the receiver had room, by the last ACK. */
	u32 window_end;
	/* The recovery episode: `lost` when it began. */
	u32 episode_lost, ca_state;
	/* What was not reported as lost until the last ACK left after this. */
	u64 newest_sent;
	/* Since the last ACK, the kernel entered the state CWR. */
	u32 entered_cwr;
	/* The peer repeats a mark until it has what is sent after this. */
	u32 mark_end, is_mark_repeated;
	u32 snapshots_taken, is_ready;
	/* Packets that leave as one where the controller paces. */
	u32 burst;
	/* Only for a controller with ECT(1): see ect1.h. */
	struct ect1 ect1;
	/* Only with `resume`: see resume.h. */
	struct loan loan;
	struct snapshot snapshots[SNAPSHOTS];
};

struct {
	NUMBER(type, BPF_MAP_TYPE_SK_STORAGE);
	NUMBER(map_flags, BPF_F_NO_PREALLOC);
	TYPE(key, int);
	TYPE(value, struct state);
} states SECTION(".maps");

/* The loader makes it large where it traces. */
struct {
	NUMBER(type, BPF_MAP_TYPE_QUEUE);
	NUMBER(value_size, sizeof(struct record));
	NUMBER(max_entries, 1);
} trace SECTION(".maps");

/* In glue.rs. */
void uncork_init(struct connection *connection);
void uncork_sent(struct connection *connection);
void uncork_ack_losses(struct connection *connection);
void uncork_ack_model(struct connection *connection);
void uncork_timeout(struct connection *connection);
void uncork_spurious(struct connection *connection);
void uncork_resized(struct connection *connection);
void uncork_classic_ecn(struct connection *connection);
void uncork_report(struct connection *connection);
void uncork_ended(struct connection *connection);
void uncork_hand_over(struct connection *connection);
void uncork_resume_phase(struct connection *connection);

/* Global functions: the verifier looks at each one by itself, so that their paths add up and do not
 * multiply. It takes the argument of a global function for a pointer that may be null. */
#define GLOBAL(name)                              \
	noinline int name(struct connection *connection) \
	{                                         \
		if (connection)                   \
			uncork_##name(connection); \
		return 0;                         \
	}
GLOBAL(init)
GLOBAL(sent)
GLOBAL(ack_losses)
GLOBAL(ack_model)
GLOBAL(timeout)
GLOBAL(spurious)
GLOBAL(resized)
GLOBAL(report)
GLOBAL(ended)
GLOBAL(hand_over)
GLOBAL(resume_phase)
#ifdef WITH_ECT1
GLOBAL(classic_ecn)
#endif

static always_inline void emit(struct state *state, enum kind kind)
{
	if (!tracing)
		return;
	state->record.kind = kind;
	bpf_map_push_elem(&trace, &state->record, 0);
	/* A record that found no room leaves a gap. */
	state->record.number++;
}

static always_inline int is_before(u32 a, u32 b)
{
	return (s32)(a - b) < 0;
}

static always_inline u64 nanos(u64 micros)
{
	return micros * 1000;
}

static always_inline u32 packets_in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
}

static always_inline struct state *state_of(struct sock *sk)
{
	struct state *state = bpf_sk_storage_get(&states, sk, 0, 0);

	return state && state->is_ready ? state : 0;
}

/* The window and the rate that the controller wants, and what monitors may read. With cong_control the kernel sets no rate of its
 * own, so a controller without one gets the most: nothing of the handshake's rate may be left.
 *
 * Linux 6.18 was seen to lose what a program returns (docs/evidence/kernel.md). So optional programs that return a value are left out
 * (sndbuf_expand, min_tso_segs), and the same ACK or timeout sets again here what ssthresh and undo_cwnd have set. */
static always_inline void apply(struct sock *sk, struct state *state)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct call *call = &state->record.connection.call;
	u64 mss = call->mss, rate = call->pacing_rate, most = sk->sk_max_pacing_rate, window, packets;

	report(&state->record.connection);
	if (!mss)
		return;
	window = call->cwnd / mss;
	if (window < 1)
		window = 1;
	if (window > tp->snd_cwnd_clamp)
		window = tp->snd_cwnd_clamp;
	tp->snd_cwnd = window;
#ifdef WITH_ECT1
	state->ect1.is_on &= call->is_classic ^ 1;
#endif
	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	sk->sk_pacing_rate = rate && rate < most ? rate : most;
	/* What leaves in a millisecond, at least two (tcp_tso_autosize). What the kernel adds below 3 ms of RTT is left out. */
	packets = (rate >> PACING_SHIFT) / mss;
	state->burst = packets > 2 ? packets : 2;
}

static always_inline struct snapshot *snapshot(struct state *state, u32 n)
{
	return &state->snapshots[n & (SNAPSHOTS - 1)];
}

/* Notes what is in flight now: at each ACK, but at most 64 times in a flight, so that the notes reach
 * back further than the oldest packet. */
static always_inline void take_snapshot(const struct tcp_sock *tp, struct state *state)
{
	struct snapshot *last = snapshot(state, state->snapshots_taken - 1), *next;
	u32 in_flight = packets_in_flight(tp);

	if (state->snapshots_taken && tp->lost == last->lost && in_flight &&
	    tp->delivered - last->delivered < in_flight >> 6)
		return;
	next = snapshot(state, state->snapshots_taken);
	next->delivered = tp->delivered;
	next->snd_nxt = tp->snd_nxt;
	next->in_flight = in_flight;
	next->lost = tp->lost;
	state->snapshots_taken++;
}

/* The newest snapshot with at most `delivered` packets delivered. */
static noinline int find_snapshot(struct state *state, u32 delivered, struct snapshot *found)
{
	u32 known, oldest, low = 0, high;

	if (!state || !found)
		return 0;
	known = state->snapshots_taken < SNAPSHOTS ? state->snapshots_taken : SNAPSHOTS;
	oldest = state->snapshots_taken - known;
	high = known;
	for (int step = 0; step < 8; step++) {
		u32 middle = (low + high) / 2;

		if (low >= high)
			break;
		if (is_before(delivered, snapshot(state, oldest + middle)->delivered))
			high = middle;
		else
			low = middle + 1;
	}
	if (!low)
		return 0;
	*found = *snapshot(state, oldest + low - 1);
	return 1;
}

/* The kernel does not report when lost packets left. It declares a packet lost when one that left later is delivered, so a packet that was
 * not lost by the last ACK left after the newest packet delivered by then. Where the kernel has seen packets overtake each other, it waits
 * (tcp_rack_reo_wnd): they may have left before that, by as much. Losses of one flight then count as one, also if the last of them are
 * found by an ACK for what left after the first was found. */
static always_inline u64 departure_of_lost(const struct tcp_sock *tp, const struct state *state)
{
	u64 wait = (u64)(tp->rtt_min.s[0].v >> 2) * tp->rack.reo_wnd_steps, srtt = tp->srtt_us >> 3;

	if (!tp->reord_seen)
		return state->newest_sent;
	wait = nanos(wait < srtt ? wait : srtt);
	return state->newest_sent > wait ? state->newest_sent - wait : 0;
}

/* What the newest packet delivered was stamped with when it left. */
static always_inline void fill_stamp(const struct tcp_sock *tp, struct state *state,
				     const struct rate_sample *rs)
{
	struct call *call = &state->record.connection.call;
	struct snapshot then = {};
	u32 in_flight = rs->prior_in_flight, since;
	u64 bytes, lost_since = 0;
	s32 sent;

	call->send_time = nanos(tp->first_tx_mstamp);
	call->delivered = state->total_delivered;
	call->delivered_time = call->now;
	call->send_elapsed = 0;
	if (rs->prior_mstamp) {
		bytes = (tp->delivered - rs->prior_delivered) * call->mss;
		call->delivered = bytes < state->total_delivered ? state->total_delivered - bytes : 0;
		call->delivered_time = nanos(rs->prior_mstamp);
		call->send_elapsed = nanos(rs->snd_interval_us);
		if (find_snapshot(state, rs->prior_delivered, &then)) {
			/* What was in flight then, and what left since, up to the packet itself. */
			sent = rs->last_end_seq - then.snd_nxt;
			in_flight = then.in_flight;
			if (sent > 0)
				in_flight += ((u32)sent + (u32)call->mss - 1) / (u32)call->mss;
			since = rs->prior_delivered - then.delivered;
			in_flight = in_flight > since ? in_flight - since : 1;
			lost_since = (tp->lost - then.lost) * call->mss;
		}
	}
	call->tx_in_flight = in_flight * call->mss;
	call->lost_then = lost_since < state->total_lost ? state->total_lost - lost_since : 0;
}

/* What has left since the last ACK, retransmissions too, as one packet: the kernel reports the first of a
 * flight only. */
static always_inline void emit_sent(const struct tcp_sock *tp, struct state *state, u32 in_flight)
{
	struct call *call = &state->record.connection.call;
	u32 packets = tp->data_segs_out - state->data_segs_out;

	if (!packets)
		return;
	/* The first packet of a flight was reported when it left. */
	if (in_flight <= packets)
		in_flight = packets + 1;
	state->data_segs_out = tp->data_segs_out;
	call->sent = packets * call->mss;
	call->in_flight = in_flight * call->mss;
	call->unacked = call->in_flight + tp->lost_out * call->mss;
	call->flags = tp->write_seq == tp->snd_nxt && tp->lost_out <= tp->retrans_out ? DRAINED : 0;
	sent(&state->record.connection);
	emit(state, SENT);
}

/* Whether TCP waits for room for a larger packet (tcp_tso_should_defer): nothing else kept a full packet back, neither
 * the window, with this much in flight before this ACK, nor the receiver, a pacing cap, nor the queue of the device. Where a
 * controller paces, an ACK may also come between the time of a packet and the timer that lets it leave: then there was room for it. */
static always_inline int is_deferring(const struct sock *sk, struct state *state, u32 in_flight)
{
	const struct tcp_sock *tp = (const struct tcp_sock *)sk;
	u32 end = tp->snd_nxt + tp->mss_cache, room = tp->snd_cwnd - in_flight;

	if (state->record.connection.call.pacing_rate && room >= state->burst)
		return 0;
	return in_flight < tp->snd_cwnd && !is_before(tp->write_seq, end) && !is_before(state->window_end, end) &&
	       tp->tcp_wstamp_ns <= tp->tcp_clock_cache && !(sk->sk_tsq_flags & TSQF_THROTTLED);
}

/* Packets newly reported as marked. A peer with AccECN counts them. Any other repeats one mark with every ACK until it has the answer (RFC 3168
 * section 6.1.3), and the kernel counts all that these ACKs deliver. One packet is certain. The answer, CWR, leaves with the first
 * data after what is in flight now, so what is marked until that arrives is the same mark. */
static always_inline u32 new_marks(const struct tcp_sock *tp, struct state *state)
{
	u32 marked = tp->delivered_ce - state->delivered_ce;

	state->delivered_ce = tp->delivered_ce;
	if (is_before(state->mark_end, tp->snd_una))
		state->is_mark_repeated = 0;
	if (!marked || tp->ecn_flags & ECN_MODE_ACCECN)
		return marked;
	if (state->is_mark_repeated)
		return 0;
	state->is_mark_repeated = 1;
	state->mark_end = tp->snd_nxt;
	return 1;
}

/* The path takes packets of another size now. */
static always_inline void emit_size(const struct tcp_sock *tp, struct state *state)
{
	struct call *call = &state->record.connection.call;
	u32 mss = tp->mss_cache;

	if (!mss || mss == call->mss)
		return;
	call->mss = mss;
	resized(&state->record.connection);
	emit(state, RESIZED);
}

/* Marks are classic ones where packets do not leave as ECT(1), or do not arrive so. Last in cong_control: the verifier would look
 * at all that follows once more. */
static always_inline void check_ect1(const struct tcp_sock *tp, struct state *state)
{
#ifdef WITH_ECT1
	if (!state->ect1.is_on || is_ect1_credible(tp, &state->ect1))
		return;
	state->ect1.is_on = 0;
	classic_ecn(&state->record.connection);
	emit(state, CLASSIC_ECN);
#endif
}

/* Notes the newest delivery rate that the application did not limit. One of less than an initial window, such as that of a FIN, says
 * nothing of the path. */
static always_inline void note_sample(struct state *state, const struct rate_sample *rs)
{
	struct call *call = &state->record.connection.call;
	struct delivery_sample *sample = &state->loan.sample;
	u64 bytes;

	if (!resume || rs->is_app_limited || rs->delivered <= 0 || rs->interval_us <= 0)
		return;
	bytes = (u32)rs->delivered * call->mss;
	if (bytes < call->initial_window)
		return;
	sample->bytes = bytes;
	sample->interval_us = rs->interval_us;
	sample->at = call->now;
}

/* Ends the loan where the phases of Careful Resume end, so that a connection that goes on, or waits, keeps no other one from it. */
static always_inline void check_loan(struct state *state)
{
	struct call *call = &state->record.connection.call;

	if (!resume || state->loan.stage != LOAN_IN_USE)
		return;
	resume_phase(&state->record.connection);
	if (!(call->flags & RESUMING))
		return_loan(&state->loan, (call->flags & RETREATED) != 0);
}

/* The body of cong_control: after each ACK, whether it delivers or not. */
static always_inline void feedback(struct sock *sk, const struct rate_sample *rs)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct state *state = state_of(sk);
	struct call *call;
	u32 delivered, lost;

	if (!state)
		return;
	call = &state->record.connection.call;
	call->now = nanos(tp->tcp_mstamp);
	emit_size(tp, state);
	emit_sent(tp, state, rs->prior_in_flight);
	/* Here, not with the other flags: fewer values wait on the stack, which is full. */
	call->flags = is_deferring(sk, state, rs->prior_in_flight) ? DEFERRED : 0;

	delivered = tp->delivered - state->delivered;
	lost = tp->lost - state->lost;
	state->delivered = tp->delivered;
	state->lost = tp->lost;
	call->acked = delivered * call->mss;
	call->lost = lost * call->mss;
	state->total_delivered += call->acked;
	state->total_lost += call->lost;
	call->in_flight = packets_in_flight(tp) * call->mss;
	call->unacked = (tp->packets_out - tp->sacked_out) * call->mss;
	call->rtt = rs->rtt_us >= 0 ? nanos(rs->rtt_us) : NONE;
	call->srtt = nanos(tp->srtt_us >> 3);
	call->min_rtt = nanos(tp->rtt_min.s[0].v);
	call->ce_packets = new_marks(tp, state);
	call->flags |= (rs->is_app_limited ? APP_LIMITED : 0) |
		       (tp->snd_una != state->snd_una ? UNA_ADVANCED : 0) |
		       (state->ca_state >= TCP_CA_RECOVERY ? REPAIRING : 0);
	/* The kernel enters CWR and leaves it with the same ACK only where a tail-loss probe has repaired
	 * a loss (tcp_process_tlp_ack). */
	if (state->entered_cwr && state->ca_state != TCP_CA_CWR)
		call->flags |= REPAIRED_BY_PROBE;
	state->entered_cwr = 0;
	state->snd_una = tp->snd_una;
	state->window_end = tp->snd_una + tp->snd_wnd;
	fill_stamp(tp, state, rs);
	note_sample(state, rs);
	if (lost)
		call->lost_sent = departure_of_lost(tp, state);
	if (call->send_time > state->newest_sent)
		state->newest_sent = call->send_time;

	ack_losses(&state->record.connection);
	ack_model(&state->record.connection);
	apply(sk, state);
	emit(state, ACK);
	take_snapshot(tp, state);
	check_loan(state);
	check_ect1(tp, state);
}

STRUCT_OPS int cong_control(u64 *args)
{
	u64 sample;

	if (has_ack_argument) {
		sample = args[3];
		ALONE(sample);
	} else {
		sample = args[1];
		ALONE(sample);
	}
	feedback((struct sock *)args[0], (const struct rate_sample *)sample);
	return 0;
}

/* No memory for the state: the connection keeps a controller that works. */
static always_inline void fall_back(struct sock *sk)
{
	char cubic[] = "cubic", reno[] = "reno";

	if (bpf_setsockopt(sk, IPPROTO_TCP, TCP_CONGESTION, cubic, sizeof(cubic)))
		bpf_setsockopt(sk, IPPROTO_TCP, TCP_CONGESTION, reno, sizeof(reno));
}

/* Every connection observes its path. One that resumes begins with what an earlier one observed, with its first data only. */
static always_inline void take_loan(const struct sock *sk, struct state *state, int resumes)
{
	const struct tcp_sock *tp = (const struct tcp_sock *)sk;
	struct call *call = &state->record.connection.call;
	struct observation lent = {};

	call->saved_cwnd = call->saved_rtt = state->loan.stage = NO_LOAN;
	if (!resume)
		return;
	__builtin_memset(&state->loan.sample, 0, sizeof(state->loan.sample));
	name_path(sk, &state->loan.path);
	/* Where packets of the handshake were lost, the kernel begins with one packet (RFC 5681 section 3.1). */
	if (!resumes || tp->data_segs_out || tp->snd_cwnd <= 1 || !lend(&state->loan, &lent))
		return;
	call->saved_cwnd = lent.saved_cwnd;
	call->saved_rtt = nanos(lent.saved_rtt_us);
}

/* What the socket knows of its path where it has had another controller: Linux's begin with that, too. A socket that has sent nothing may have
 * a threshold of an earlier connection (tcp_metrics), which says nothing of this one. */
static always_inline void take_over(const struct tcp_sock *tp, struct call *call)
{
	u64 carried;

	call->srtt = nanos(tp->srtt_us >> 3);
	call->min_rtt = nanos(tp->rtt_min.s[0].v);
	call->ssthresh = call->inherited_bw = 0;
	if (!tp->data_segs_out || tp->srtt_us < 8 || tp->snd_ssthresh >= TCP_INFINITE_SSTHRESH)
		return;
	call->ssthresh = tp->snd_ssthresh * call->mss;
	/* After a timeout the window is smaller than what the path carries. */
	carried = call->ssthresh > call->initial_window ? call->ssthresh : call->initial_window;
	call->inherited_bw = carried < MAX_CARRIED ? carried * 1000000 / (tp->srtt_us >> 3) : 0;
}

static always_inline int begin(struct sock *sk, int resumes)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct state *state;
	struct call *call;

	state = bpf_sk_storage_get(&states, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!state) {
		fall_back(sk);
		return 0;
	}
	call = &state->record.connection.call;
	call->now = nanos(tp->tcp_mstamp);
	call->mss = tp->mss_cache ? tp->mss_cache : 536;
	call->seed = ((u64)bpf_get_prandom_u32() << 32) | bpf_get_prandom_u32();
	call->rtt = nanos(tp->srtt_us >> 3);
	call->initial_window = tp->snd_cwnd * call->mss;
	take_over(tp, call);
	take_loan(sk, state, resumes);
	call->flags = 0;
#ifdef WITH_ECT1
	start_ect1(tp, &state->ect1);
	if (state->ect1.is_on)
		call->flags = ECT1;
#endif
	state->record.key = call->seed;
	state->record.number = 0;
	state->total_delivered = state->total_lost = 0;
	state->delivered = tp->delivered;
	state->lost = tp->lost;
	state->delivered_ce = tp->delivered_ce;
	state->data_segs_out = tp->data_segs_out;
	state->snd_una = tp->snd_una;
	state->window_end = tp->snd_una + tp->snd_wnd;
	state->episode_lost = tp->lost;
	state->ca_state = state->entered_cwr = state->is_mark_repeated = 0;
	state->newest_sent = call->now;
	state->mark_end = tp->snd_nxt;
	state->snapshots_taken = 0;
	init(&state->record.connection);
	state->is_ready = 1;
	/* A window that was taken over leaves over a round trip (RFC 9959 §3.3). */
	if ((call->pacing_rate || call->saved_cwnd) && sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
	apply(sk, state);
	emit(state, INIT);
	return 0;
}

STRUCT_OPS int start(u64 *args)
{
	return begin((struct sock *)args[0], 0);
}

/* The same of the controller's second name. All other programs are shared. */
STRUCT_OPS int start_resuming(u64 *args)
{
	return begin((struct sock *)args[0], 1);
}

/* A packet leaves, and nothing is in flight. The kernel counts the packet after this call. */
static always_inline int start_flight(struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct state *state = state_of(sk);
	struct call *call;

	if (!state)
		return 0;
	take_snapshot(tp, state);
	call = &state->record.connection.call;
	call->now = nanos(tp->tcp_mstamp);
	call->sent = (tp->data_segs_out + 1 - state->data_segs_out) * call->mss;
	state->data_segs_out = tp->data_segs_out + 1;
	call->in_flight = call->unacked = call->mss;
	call->flags = 0;
	sent(&state->record.connection);
	apply(sk, state);
	emit(state, SENT);
	return 0;
}

STRUCT_OPS int cwnd_event(u64 *args)
{
	return (u32)args[1] == CA_EVENT_TX_START ? start_flight((struct sock *)args[0]) : 0;
}

/* Takes the place of the event in kernels that have it (7.2 has). */
STRUCT_OPS int cwnd_event_tx_start(u64 *args)
{
	return start_flight((struct sock *)args[0]);
}

STRUCT_OPS int set_state(u64 *args)
{
	struct sock *sk = (struct sock *)args[0];
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u32 ca_state = (u8)args[1];
	struct state *state = state_of(sk);

	if (!state)
		return 0;
	/* Losses that were not reported yet belong to the episode that begins. */
	if (ca_state >= TCP_CA_RECOVERY && state->ca_state < TCP_CA_RECOVERY)
		state->episode_lost = state->lost;
	state->ca_state = ca_state;
	state->entered_cwr |= ca_state == TCP_CA_CWR;
	if (ca_state != TCP_CA_LOSS)
		return 0;
	state->record.connection.call.now = nanos(tp->tcp_mstamp);
	timeout(&state->record.connection);
	/* Its losses, reported with the next ACK, left before it. */
	state->newest_sent = state->record.connection.call.now - 1;
	apply(sk, state);
	emit(state, TIMEOUT);
	return 0;
}

/* The kernel found that all losses of the episode were spurious. Losses that are not reported yet never will be. */
STRUCT_OPS u32 undo_cwnd(u64 *args)
{
	struct sock *sk = (struct sock *)args[0];
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct state *state = state_of(sk);
	struct call *call;

	if (!state)
		return tp->snd_cwnd;
	call = &state->record.connection.call;
	call->now = nanos(tp->tcp_mstamp);
	call->lost = (state->lost - state->episode_lost) * call->mss;
	state->lost = state->episode_lost = tp->lost;
	if (call->lost) {
		spurious(&state->record.connection);
		apply(sk, state);
		emit(state, SPURIOUS);
	}
	return tp->snd_cwnd;
}

/* Required by the kernel, like undo_cwnd. */
STRUCT_OPS u32 ssthresh(u64 *args)
{
	return ((struct tcp_sock *)args[0])->snd_ssthresh;
}

/* What became of an earlier connection's observation, as the threshold of a socket that has ended: its close event has it (struct
 * tcp_info), and nothing else reads it any more. Above TCP_INFINITE_SSTHRESH, which no socket has.
 */
static always_inline u32 resume_mark(const struct call *call, const struct loan *loan)
{
	u32 use = call->flags & RETREATED ? MARK_RETREATED : call->flags & JUMPED ? MARK_USED : MARK_UNUSED;

	return MARK_RESUMED | use << MARK_USE_SHIFT | loan->age_s;
}

/* Keeps what the connection has observed of its path. */
static always_inline void repay_loan(struct sock *sk, struct state *state)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct call *call = &state->record.connection.call;
	struct observation own = {};

	if (!resume || !state->is_ready)
		return;
	call->acked = state->loan.sample.bytes;
	call->send_elapsed = nanos(state->loan.sample.interval_us);
	call->delivered = state->total_delivered;
	call->min_rtt = nanos(tp->rtt_min.s[0].v);
	ended(&state->record.connection);
	own.observed_at = state->loan.sample.at;
	own.saved_cwnd = call->saved_cwnd;
	own.saved_rtt_us = call->saved_rtt / 1000;
	repay(sk, &state->loan, &own, (call->flags & RETREATED) != 0);
	if (state->loan.stage != NO_LOAN && sk->__sk_common.skc_state == TCP_CLOSE)
		tp->snd_ssthresh = resume_mark(call, &state->loan);
	emit(state, ENDED);
}

/* Another controller follows: it gets the window as Linux's leave it, in the socket. The threshold is infinite until slow start, or
 * Startup, is over. */
static always_inline void leave_window(struct sock *sk, struct state *state)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct call *call = &state->record.connection.call;
	u64 mss = call->mss, window;

	if (!state->is_ready || sk->__sk_common.skc_state == TCP_CLOSE || !mss)
		return;
	hand_over(&state->record.connection);
	window = call->ssthresh / mss;
	if (window < 2 || window >= TCP_INFINITE_SSTHRESH)
		return;
	tp->snd_ssthresh = window;
	if (tp->snd_cwnd > window)
		tp->snd_cwnd = window;
}

/* The socket gets another controller, or ends. */
STRUCT_OPS int release(u64 *args)
{
	struct sock *sk = (struct sock *)args[0];
	struct state *state = bpf_sk_storage_get(&states, sk, 0, 0);

	if (!state)
		return 0;
	repay_loan(sk, state);
	leave_window(sk, state);
	state->is_ready = state->ect1.is_on = 0;
	return 0;
}

#ifdef WITH_ECT1
/* A packet leaves through a device that puts `header` bytes before the IP header. */
static always_inline int mark(struct packet *packet, u32 header)
{
	struct bpf_sock *sk = packet->sk;
	struct state *state;

	if (!sk)
		return CONTINUE;
	sk = bpf_sk_fullsock(sk);
	if (!sk)
		return CONTINUE;
	state = bpf_sk_storage_get(&states, sk, 0, 0);
	if (state && state->is_ready && state->ect1.is_on) {
		state->ect1.seen++;
		set_ect1(packet, header);
	}
	return CONTINUE;
}

/* For Ethernet. */
SECTION("classifier") int mark_ethernet(struct packet *packet)
{
	return mark(packet, 14);
}

/* For devices without a header of their own, such as tunnels. */
SECTION("classifier") int mark_ip(struct packet *packet)
{
	return mark(packet, 0);
}
#endif
