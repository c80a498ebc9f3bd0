//! The limits, and where each comes from. Where two values were possible, the choice was made with the networks "at hand" of
//! `docs/evidence/l4s-verdicts.md` in view, and without the others: it says so.

use uncork_units::TimeDelta;

/// Marks at a queue of at most this come from a queue for L4S: halfway between 1 ms, where that marks (RFC 9332
/// appendix A.1), and the 5 ms of the shallowest classic one in use (CoDel, RFC 8289 §5.3). Prague's own test has the same.
/// Chosen: with 2 ms, queues of one or two packets on links of 10 to 30 Mbit/s are not recognised.
pub const L4S_QUEUE: TimeDelta = TimeDelta::from_millis(3);

/// A queue that stands at this or above while few packets are marked is a classic one: CoDel's 5 ms (PIE: 15 ms, RFC 8033
/// appendix A), less 1 ms of resolution.
pub const CLASSIC_QUEUE: TimeDelta = TimeDelta::from_millis(4);

/// Flows that get a packet through in at most this can recognise L4S: the two packets that its queue may hold then take less
/// than CoDel's 5 ms. Slower ones (below 6 Mbit/s) give no evidence of it, because a flow that shares a link overestimates
/// the time.
pub const MAX_PACKET_TIME: TimeDelta = TimeDelta::from_millis(2);

/// A queue for L4S may hold two packets, however long they take (Th_len, RFC 9332 appendix A.1).
pub(crate) const MAX_L4S_PACKETS: u64 = 2;

/// A new minimum of the RTT that is lower by more than this shows that earlier rounds were measured against a path that
/// was not empty: they do not count.
pub(crate) const RESOLUTION: TimeDelta = TimeDelta::from_millis(1);

/// A round lasts at least this, as Prague's virtual round trip does (draft-briscoe-iccrg-prague-congestion-control-04
/// §2.4.4): rounds of shorter paths say the same thing repeatedly.
pub(crate) const MIN_ROUND: TimeDelta = TimeDelta::from_millis(25);

/// A flow votes after this number of marked rounds that show something. Eight last 200 ms: longer than CoDel's interval
/// (100 ms) and PIE's burst allowance (150 ms), within which a classic queue does not mark.
pub const MIN_ROUNDS: u32 = 8;

/// At most one of this number of a flow's rounds contradicts its vote. Rounds that show nothing are fewer than those of the
/// vote (chosen: the first rounds behind a queue for L4S mark most packets of a deep queue).
pub(crate) const ROUNDS_PER_CONTRADICTION: u32 = 8;

/// Votes for L4S without a contradiction that prove it. If a flow behind a classic queue votes for L4S at most a tenth
/// as often as one behind a queue for L4S, each vote multiplies the odds by ten, and three are never reached by more than
/// one classic network of a thousand, whenever one looks (Ville's inequality).
pub const MIN_L4S_VOTES: u32 = 3;

/// Votes for L4S that each vote for a classic queue costs in addition: a network where more than a tenth of the flows
/// meet a classic queue is not called L4S.
pub const VOTES_PER_CONTRADICTION: u32 = 10;

/// Votes for a classic queue, less votes for L4S, that prove it: likewise one of a hundred networks by mistake.
pub const MIN_CLASSIC_LEAD: u32 = 2;

/// Days of [`MAX_AGE`].
pub(crate) const MAX_AGE_DAYS: u64 = 7;

/// A verdict expires when its newest evidence is older than this. Access equipment changes seldom; users and lines behind
/// a network's addresses change within weeks.
pub const MAX_AGE: TimeDelta = TimeDelta::from_secs(MAX_AGE_DAYS * 86_400);

/// Flows without working ECN, less all others, that prove it: failures are seen directly, and never happen on clean paths.
pub(crate) const MIN_NO_ECN_LEAD: u32 = 3;

/// Comparisons in which another flow passed a standing queue, which one queue for all does not allow.
pub(crate) const MIN_ISOLATED: u32 = 3;

/// Chosen: at least one of this number of comparisons. Fewer also occur in one queue, where it changes within a round.
pub(crate) const COMPARISONS_PER_ISOLATED: u32 = 5;
