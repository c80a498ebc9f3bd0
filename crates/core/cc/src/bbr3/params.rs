//! The constants of BBRv3: draft-ietf-ccwg-bbr-06 §2.

use uncork_units::{Ratio, TimeDelta};

/// BBR.StartupPacingGain: 4 ln 2, the smallest gain that doubles the sending rate every round.
//= bbr-06 2.5-1
pub(super) const STARTUP_PACING_GAIN: Ratio = Ratio::new(277, 100);
/// BBR.DrainPacingGain.
//= bbr-06 2.5-2
pub(super) const DRAIN_PACING_GAIN: Ratio = Ratio::new(1, 2);
/// Pacing gain of ProbeBW_DOWN (§5.3.3.1).
//= bbr-06 5.3.3.1-1
pub(super) const DOWN_PACING_GAIN: Ratio = Ratio::new(9, 10);
/// Pacing gain of ProbeBW_UP (§5.3.3.5).
//= bbr-06 5.3.3.5-1
pub(super) const UP_PACING_GAIN: Ratio = Ratio::new(5, 4);

/// BBR.DefaultCwndGain.
//= bbr-06 2.6-1
pub(super) const DEFAULT_CWND_GAIN: Ratio = Ratio::new(2, 1);
/// Window gain of ProbeBW_UP (§5.3.3.5).
//= bbr-06 5.3.3.5-1
pub(super) const UP_CWND_GAIN: Ratio = Ratio::new(9, 4);
/// BBR.ProbeRTTCwndGain.
//= bbr-06 2.16-2
pub(super) const PROBE_RTT_CWND_GAIN: Ratio = Ratio::new(1, 2);

/// The rate minus BBR.PacingMarginPercent (1 %).
//= bbr-06 2.5-3
pub(super) const PACING_MARGIN: Ratio = Ratio::new(99, 100);

/// BBR.LossThresh as a percentage.
//= bbr-06 2.8-1
pub(super) const LOSS_THRESH_PERCENT: u64 = 2;
/// BBRStartupFullLossCnt: lost ranges in a round that end Startup.
//= bbr-06 5.3.1.3-3
pub(super) const STARTUP_FULL_LOSS_COUNT: u8 = 6;
/// BBR.Beta: the minimum factor by which one round with loss multiplies a bound.
//= bbr-06 2.8-2
pub(super) const BETA: Ratio = Ratio::new(7, 10);
/// BBR.Headroom.
//= bbr-06 2.8-3
pub(super) const HEADROOM: Ratio = Ratio::new(15, 100);
/// BBR.MinPipeCwnd in packets.
//= bbr-06 2.8-4
pub(super) const MIN_PIPE_PACKETS: u64 = 4;

/// Rounds after which Drain ends regardless of inflight (§5.3.2).
pub(super) const DRAIN_ROUNDS: u8 = 3;

/// Minimum of T_bbr; the maximum is [`PROBE_WAIT_RANGE`] higher (§5.3.3.8.2).
//= bbr-06 5.3.3.8.2-1
pub(super) const PROBE_WAIT_MIN: TimeDelta = TimeDelta::from_secs(2);
/// Width of the range of T_bbr.
//= bbr-06 5.3.3.8.2-1
pub(super) const PROBE_WAIT_RANGE: TimeDelta = TimeDelta::from_secs(1);
/// T_reno_bound: maximum rounds between two bandwidth probes.
//= bbr-06 5.3.3.8.2-2
pub(super) const RENO_ROUNDS: u64 = 63;
/// Limit of BBR.bw_probe_up_rounds.
//= bbr-06 5.3.3.9-13
pub(super) const PROBE_UP_ROUNDS_MAX: u8 = 30;

/// BBR.MinRTTFilterLen.
//= bbr-06 2.16-1
pub(super) const MIN_RTT_FILTER_LEN: TimeDelta = TimeDelta::from_secs(10);
/// BBR.ProbeRTTInterval.
//= bbr-06 2.16-4 5.3.4.2-1
pub(super) const PROBE_RTT_INTERVAL: TimeDelta = TimeDelta::from_secs(5);
/// BBR.ProbeRTTDuration.
//= bbr-06 2.16-3
pub(super) const PROBE_RTT_DURATION: TimeDelta = TimeDelta::from_millis(200);

/// BBR.ExtraAckedFilterLen in rounds.
//= bbr-06 2.12-1
pub(super) const EXTRA_ACKED_FILTER_LEN: u32 = 10;
/// The same until the pipe is full.
//= bbr-06 5.5.9-4
pub(super) const EXTRA_ACKED_STARTUP_LEN: u32 = 1;
/// BBR.extra_acked is at most what BBR.bw delivers in this time.
pub(super) const EXTRA_ACKED_MAX: TimeDelta = TimeDelta::from_millis(100);

/// RTT used for the first pacing rate until one is measured (§5.6.2).
pub(super) const NOMINAL_RTT: TimeDelta = TimeDelta::from_millis(1);
/// Duration of one send quantum at the pacing rate (§5.6.3).
//= bbr-06 5.6.3-1
pub(super) const SEND_QUANTUM_TIME: TimeDelta = TimeDelta::from_millis(1);
/// Maximum send quantum in bytes, unless two packets are larger.
//= bbr-06 5.6.3-1
pub(super) const SEND_QUANTUM_MAX: u64 = 64 * 1024;
/// Send quanta of TCP's offload budget.
//= bbr-06 5.5.8.1-1
pub(super) const TCP_QUANTA: u64 = 3;
