//! Constants of BBRv1, with Linux's values. "CACM" is Cardwell et al., "BBR: Congestion-Based
//! Congestion Control", Communications of the ACM 60(2), 2017; "draft-00" is
//! draft-cardwell-iccrg-bbr-congestion-control-00.

use uncork_units::{Ratio, TimeDelta};

/// 2/ln 2: the smallest gain at which sending at the last measured rate doubles it every round
/// (draft-00 §4.3.2.1).
pub(super) const HIGH_GAIN: Ratio = Ratio::new(2885, 1000);
/// Drains in one round the queue that one round of [`HIGH_GAIN`] builds (draft-00 §4.3.3).
pub(super) const DRAIN_GAIN: Ratio = Ratio::new(1000, 2885);
/// Room for delayed and aggregated ACKs in ProbeBW (draft-00 §4.2.3.2).
pub(super) const CWND_GAIN: Ratio = Ratio::new(2, 1);

/// Pacing gain while probing for more bandwidth (draft-00 §4.3.4.1).
pub(super) const PROBE_UP_GAIN: Ratio = Ratio::new(5, 4);
/// Pacing gain while draining the probe's queue.
pub(super) const PROBE_DOWN_GAIN: Ratio = Ratio::new(3, 4);
/// Phases of a ProbeBW cycle: up, down, six times cruise.
pub(super) const CYCLE_PHASES: u64 = 8;

/// Pace slightly below the estimate, so that queues tend to drain (Linux tcp_bbr.c).
pub(super) const PACING_MARGIN: Ratio = Ratio::new(99, 100);
/// Length of the max_bw filter in rounds: one cycle plus two.
pub(super) const MAX_BW_WINDOW_ROUNDS: u32 = CYCLE_PHASES as u32 + 2;

/// Lifetime of a min_rtt estimate (draft-00 §4.3.5).
pub(super) const MIN_RTT_WINDOW: TimeDelta = TimeDelta::from_secs(10);
/// Minimum duration of ProbeRTT; it also lasts at least one round.
pub(super) const PROBE_RTT_DURATION: TimeDelta = TimeDelta::from_millis(200);
/// Minimum window outside of loss recovery and the window in ProbeRTT, in packets: enough to keep
/// delayed ACKs flowing.
pub(super) const MIN_PIPE_PACKETS: u64 = 4;

/// Rounds per slot of the ACK-aggregation filter. Its two slots cover 5 to 10 rounds.
pub(super) const EXTRA_ACKED_SLOT_ROUNDS: u32 = 5;
/// The aggregation allowance is at most what this time delivers.
pub(super) const EXTRA_ACKED_MAX: TimeDelta = TimeDelta::from_millis(100);
/// An aggregation epoch ends after this many packets.
pub(super) const EXTRA_ACKED_EPOCH_PACKETS: u64 = 1 << 20;

/// Minimum length of a policer sampling interval in rounds; the maximum is four times that.
pub(super) const POLICER_MIN_ROUNDS: u32 = 4;
/// See [`POLICER_MIN_ROUNDS`].
pub(super) const POLICER_MAX_ROUNDS: u32 = 4 * POLICER_MIN_ROUNDS;
/// Ratio of lost to delivered bytes above which an interval looks policed.
pub(super) const POLICER_LOSS: Ratio = Ratio::new(50, 256);
/// Relative difference between two intervals' rates that still counts as equal.
pub(super) const POLICER_TOLERANCE: Ratio = Ratio::new(1, 8);
/// Absolute difference that still counts as equal, in bytes per second: 4 kbit/s.
pub(super) const POLICER_TOLERANCE_BYTES: u64 = 500;
/// Rounds of ProbeBW after which the policer's rate is tested again.
pub(super) const POLICER_LIMIT_ROUNDS: u32 = 48;

/// Below this rate in bits per second, packets are paced one at a time.
pub(super) const ONE_SEGMENT_BITS_PER_SEC: u64 = 1_200_000;
/// Largest burst in bytes, the size of a Linux GSO packet.
pub(super) const MAX_QUANTUM_BYTES: u64 = 65_535;
