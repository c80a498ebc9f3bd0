//! Bursty loss: a channel with a good and a bad state.

use uncork_units::{Probability, Rng};

/// The two-state channel of Gilbert ("Capacity of a burst-noise channel", Bell System Technical
/// Journal 39, 1960) and Elliott ("Estimates of error rates for codes on burst-noise channels",
/// BSTJ 42, 1963). Each packet is lost with the current state's probability; then the state may
/// change.
///
/// `tc-netem` calls it `loss gemodel p r 1-h 1-k`: `enter_bad`, `leave_bad`, `loss_bad` and
/// `loss_good`. The initial state is drawn from the stationary distribution, whereas `tc-netem`
/// starts in the good state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GilbertElliott {
    /// Transition probability from good to bad, per packet (p).
    pub enter_bad: Probability,
    /// Transition probability from bad to good, per packet (r).
    pub leave_bad: Probability,
    /// Loss probability in the bad state (1−h).
    pub loss_bad: Probability,
    /// Loss probability in the good state (1−k).
    pub loss_good: Probability,
}

impl GilbertElliott {
    /// Gilbert's simple channel, which loses everything in the bad state and nothing in the good
    /// one, from its mean loss and mean loss burst in thousandths of a packet. `None` if no such
    /// channel exists: the bursts are shorter than one packet, or the gaps between them, burst · (1
    /// − mean) / mean, would be.
    pub fn simple(mean: Probability, burst_thousandths: u64) -> Option<Self> {
        let (lost, passed) = (mean.steps(), Probability::ALWAYS.steps() - mean.steps());
        let pause = u128::from(passed) * u128::from(burst_thousandths);
        if burst_thousandths < 1000 || u128::from(lost) * 1000 > pause {
            return None;
        }
        // Scales both by the same power of two until they fit: 10^11 steps times any burst.
        let shift = (u128::BITS - pause.leading_zeros()).saturating_sub(u64::BITS);
        let lost = u128::from(lost) * 1000;
        Some(Self {
            enter_bad: Probability::of((lost >> shift) as u64, (pause >> shift) as u64),
            leave_bad: Probability::of(1000, burst_thousandths),
            loss_bad: Probability::ALWAYS,
            loss_good: Probability::NEVER,
        })
    }

    /// Whether the first packet finds the bad state.
    pub(crate) fn begin(self, rng: &mut Rng) -> bool {
        let (enter, leave) = (self.enter_bad.steps(), self.leave_bad.steps());
        Probability::of(enter, enter + leave).happens(rng)
    }

    /// Whether the next packet is lost. `bad` is the current state, updated for the following
    /// packet. Takes two numbers from `rng`.
    pub(crate) fn strikes(self, bad: &mut bool, rng: &mut Rng) -> bool {
        let (loss, change) =
            if *bad { (self.loss_bad, self.leave_bad) } else { (self.loss_good, self.enter_bad) };
        let lost = loss.happens(rng);
        *bad ^= change.happens(rng);
        lost
    }

    /// Share of packets in the bad state: p / (p + r).
    pub fn bad_share(self) -> f64 {
        let (p, r) = (self.enter_bad.as_f64(), self.leave_bad.as_f64());
        if p > 0.0 { p / (p + r) } else { 0.0 }
    }

    /// Share of packets that are lost.
    pub fn mean_loss(self) -> f64 {
        let bad = self.bad_share();
        bad * self.loss_bad.as_f64() + (1.0 - bad) * self.loss_good.as_f64()
    }

    /// Correlation of the losses of consecutive packets; 0 if all or none are lost.
    pub fn correlation(self) -> f64 {
        let (bad, mean) = (self.bad_share(), self.mean_loss());
        let differ = self.loss_bad.as_f64() - self.loss_good.as_f64();
        let stay = 1.0 - self.enter_bad.as_f64() - self.leave_bad.as_f64();
        let variance = mean * (1.0 - mean);
        if variance > 0.0 { bad * (1.0 - bad) * differ * differ * stay / variance } else { 0.0 }
    }

    /// Mean number of packets lost in a row: 1 / ((1 − mean) (1 − correlation)), which is 1 / r for
    /// the simple channel. Infinite when all are lost.
    pub fn mean_burst(self) -> f64 {
        1.0 / ((1.0 - self.mean_loss()) * (1.0 - self.correlation()))
    }
}
