//! What an agent does and sees: its action changes the sending rate, and each step is observed and rewarded.

use crate::episode::{Decision, Step};

/// Values of a step in an observation: delivered rate by sending rate, RTT above the minimum by the minimum, its change, the
/// share of lost bytes.
pub(crate) const VALUES: usize = 4;
/// Bounds of these values.
pub(crate) const LOW: [f32; VALUES] = [0.0, 0.0, -10.0, 0.0];
pub(crate) const HIGH: [f32; VALUES] = [10.0, 10.0, 10.0, 1.0];
/// Minimum rate of an agent in bit/s.
const MIN_RATE: f64 = 100e3;
/// Maximum rate of an agent by that of the link. More only costs time.
const MAX_SHARE: f64 = 4.0;
/// Initial window in bytes (RFC 6928), spread over a round trip.
const INITIAL: f64 = 10.0 * 1448.0;
const BITS: f64 = 8.0;

/// A step as the agent learns of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) seen: [f32; VALUES],
    pub(crate) reward: f64,
    pub(crate) rate: f64,
    pub(crate) delivered: f64,
    pub(crate) rtt: f64,
    pub(crate) loss: f64,
}

/// The state of an agent's connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agent {
    /// Rate of the link in bit/s.
    link: f64,
    rate: f64,
    /// In seconds, as all times.
    min_rtt: f64,
    rtt: f64,
}

impl Agent {
    pub(crate) fn new(link: f64, rtt: f64) -> Self {
        Self { link, rate: INITIAL * BITS / rtt, min_rtt: rtt, rtt }
    }

    /// Multiplies the rate by a power of two, for one minimum RTT.
    pub(crate) fn decide(&mut self, action: f32) -> Decision {
        let factor = 2f64.powf(f64::from(action.clamp(-1.0, 1.0)));
        self.rate = (self.rate * factor).min(MAX_SHARE * self.link).max(MIN_RATE);
        let window = 2.0 * self.rate * self.min_rtt / BITS;
        Decision { window: window as u64, rate: self.rate as u64, seconds: self.min_rtt }
    }

    /// The outcome of a step of `seconds`.
    pub(crate) fn observe(&mut self, seconds: f64, step: &Step) -> Outcome {
        self.min_rtt = step.min_rtt.unwrap_or(self.min_rtt);
        let before = self.rtt;
        self.rtt = step.rtt.unwrap_or(before);
        let (acked, lost) = (step.acked_bytes as f64, step.lost_bytes as f64);
        let delivered = acked * BITS / seconds;
        let loss = if acked + lost > 0.0 { lost / (acked + lost) } else { 0.0 };
        let waiting = self.rtt / self.min_rtt - 1.0;
        let change = (self.rtt - before) / self.min_rtt;
        let values = [delivered / self.rate, waiting, change, loss];
        let mut seen = values.map(|value| value as f32);
        for ((value, low), high) in seen.iter_mut().zip(LOW).zip(HIGH) {
            *value = value.clamp(low, high);
        }
        let reward = delivered / self.link - waiting - loss;
        Outcome { seen, reward, rate: self.rate, delivered, rtt: self.rtt, loss }
    }
}
