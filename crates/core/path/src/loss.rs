//! Random loss, independent of congestion.

use uncork_units::{Probability, Rng, Time};

use crate::{GilbertElliott, Step};

/// A random loss model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossSpec {
    /// Each packet independently with this probability (Bernoulli).
    Bernoulli(Probability),
    /// Every n-th packet: deterministic loss, as used to derive response functions.
    EveryNth(u64),
    /// Bursty loss.
    GilbertElliott(GilbertElliott),
}

impl LossSpec {
    /// No loss.
    pub const NONE: Self = Self::EveryNth(0);

    /// Long-run loss rate from 0 to 1, for reports.
    pub fn mean(self) -> f64 {
        match self {
            Self::Bernoulli(probability) => probability.as_f64(),
            Self::EveryNth(0) => 0.0,
            Self::EveryNth(n) => 1.0 / n as f64,
            Self::GilbertElliott(channel) => channel.mean_loss(),
        }
    }
}

/// A loss process.
#[derive(Clone, Debug)]
pub struct Loss {
    spec: LossSpec,
    rng: Rng,
    packets: u64,
    /// The channel's state, set once the first packet has passed.
    bad: Option<bool>,
    /// The first step to come; none from the number of steps on.
    next_step: usize,
}

impl Loss {
    /// The process, with its own stream of `seed`.
    pub fn new(spec: LossSpec, seed: u64, stream: u64) -> Self {
        Self { spec, rng: Rng::new(seed, stream), packets: 0, bad: None, next_step: 0 }
    }

    /// The process after this many packets that could not be lost.
    #[must_use]
    pub(crate) fn after(self, packets: u64) -> Self {
        Self { packets, ..self }
    }

    /// Switches to another process for good, with the same stream.
    pub fn change(&mut self, spec: LossSpec) {
        self.next_step = usize::MAX;
        self.switch(spec);
    }

    fn switch(&mut self, spec: LossSpec) {
        self.spec = spec;
        self.bad = None;
    }

    /// Whether the next packet is lost, which comes at `now`, of a process that changes by `steps`. Times must not
    /// decrease.
    #[inline]
    pub fn strikes_at(&mut self, now: Time, steps: &[Step<LossSpec>]) -> bool {
        if let Some(spec) = Step::take_due(steps, &mut self.next_step, now) {
            self.switch(spec);
        }
        self.strikes()
    }

    /// Whether the next packet is lost.
    pub fn strikes(&mut self) -> bool {
        self.packets += 1;
        match self.spec {
            LossSpec::Bernoulli(probability) => probability.happens(&mut self.rng),
            LossSpec::EveryNth(n) => n > 0 && self.packets.is_multiple_of(n),
            LossSpec::GilbertElliott(channel) => {
                let bad = self.bad.get_or_insert_with(|| channel.begin(&mut self.rng));
                channel.strikes(bad, &mut self.rng)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn losses(spec: LossSpec, seed: u64, packets: usize) -> usize {
        let mut loss = Loss::new(spec, seed, 0);
        (0..packets).filter(|_| loss.strikes()).count()
    }

    /// Within four standard deviations of the binomial distribution.
    #[test]
    fn bernoulli_loss_rate() {
        for (text, p) in [("0.01%", 0.0001), ("1%", 0.01), ("50%", 0.5)] {
            let spec = LossSpec::Bernoulli(text.parse().expect("a percentage"));
            let packets = 1_000_000;
            let expected = packets as f64 * p;
            let deviation = 4.0 * (expected * (1.0 - p)).sqrt();
            for seed in 0..5 {
                let lost = losses(spec, seed, packets) as f64;
                assert!((lost - expected).abs() < deviation, "{text}, seed {seed}: {lost}");
            }
        }
    }

    #[test]
    fn zero_and_full_loss() {
        let [never, always] =
            ["0%", "100%"].map(|p| LossSpec::Bernoulli(p.parse().expect("valid")));
        assert_eq!(losses(never, 1, 10_000), 0);
        assert_eq!(losses(always, 1, 10_000), 10_000);
    }

    #[test]
    fn every_nth_packet_is_lost() {
        let mut loss = Loss::new(LossSpec::EveryNth(3), 1, 0);
        let struck: Vec<bool> = (0..6).map(|_| loss.strikes()).collect();
        assert_eq!(struck, [false, false, true, false, false, true]);
    }

    #[test]
    fn process_can_be_changed() {
        let mut loss = Loss::new(LossSpec::EveryNth(1), 1, 0);
        assert!(loss.strikes());
        loss.change(LossSpec::EveryNth(0));
        assert!((0..100).all(|_| !loss.strikes()));
    }

    #[test]
    fn process_changes_at_its_steps() {
        let at = Time::from_nanos;
        let steps = [(10, 1), (20, 0), (40, 1)]
            .map(|(time, nth)| Step { at: at(time), value: LossSpec::EveryNth(nth) });
        let mut loss = Loss::new(LossSpec::NONE, 1, 0);
        let times = [9, 10, 19, 20, 50];
        let struck = times.map(|now| loss.strikes_at(at(now), &steps));
        assert_eq!(struck, [false, true, true, false, true]);
        let mut changed = Loss::new(LossSpec::NONE, 1, 0);
        changed.change(LossSpec::NONE);
        assert!(!changed.strikes_at(at(15), &steps), "a change is for good");
    }

    #[test]
    fn seeds_and_streams_differ_and_repeat() {
        let spec = LossSpec::Bernoulli("10%".parse().expect("a percentage"));
        let pattern = |seed, stream| {
            let mut loss = Loss::new(spec, seed, stream);
            (0..200).map(|_| loss.strikes()).collect::<Vec<bool>>()
        };
        assert_eq!(pattern(1, 0), pattern(1, 0));
        assert_ne!(pattern(1, 0), pattern(2, 0));
        assert_ne!(pattern(1, 0), pattern(1, 1));
    }

    /// Compares loss rate, correlation and mean burst over ten million packets with the closed
    /// forms. The tolerance is four standard errors; blocks of a thousand packets are independent
    /// enough.
    #[test]
    fn bursts_match_the_requested_rate_and_length() {
        for text in [
            "gilbert:mean=1%,burst=5",
            "gilbert:mean=10%,burst=1.2",
            "gilbert:mean=0.5%,burst=20",
            "gemodel:p=2%,r=10%,bad=50%,good=1%",
            "gemodel:p=50%,r=90%,bad=100%,good=0%",
            "gemodel:p=1%,r=1%,bad=0%,good=20%",
        ] {
            let Ok(LossSpec::GilbertElliott(channel)) = text.parse() else { panic!("{text}") };
            let mut loss = Loss::new(LossSpec::GilbertElliott(channel), 3, 5);
            let (mut means, mut pairs, mut starts) = (Vec::new(), 0.0, 0.0);
            let mut before = false;
            for _ in 0..10_000 {
                let mut lost = 0;
                for _ in 0..1000 {
                    let now = loss.strikes();
                    lost += u32::from(now);
                    pairs += f64::from(u8::from(now && before));
                    starts += f64::from(u8::from(now && !before));
                    before = now;
                }
                means.push(f64::from(lost) / 1e3);
            }
            let mean = means.iter().sum::<f64>() / 1e4;
            let spread = means.iter().map(|block| (block - mean).powi(2)).sum::<f64>() / 1e4;
            let error = (spread / 1e4).sqrt();
            let expected = channel.mean_loss();
            assert!((mean - expected).abs() < 4.0 * error, "{text}: {mean}, not {expected}");
            let correlation = (pairs / 1e7 - mean * mean) / (mean * (1.0 - mean));
            let expected = channel.correlation();
            assert!((correlation - expected).abs() < 0.01, "{text}: {correlation}, not {expected}");
            let burst = mean * 1e7 / starts;
            let expected = channel.mean_burst();
            assert!((burst / expected - 1.0).abs() < 0.02, "{text}: {burst}, not {expected}");
        }
    }

    /// The closed forms return the requested values.
    #[test]
    fn simple_channel_has_the_requested_mean_and_burst() {
        for (mean, burst) in [("1%", 5000), ("0.1%", 1000), ("30%", 2500), ("50%", 1000)] {
            let mean: Probability = mean.parse().expect("a percentage");
            let channel = GilbertElliott::simple(mean, burst).expect("it exists");
            assert!((channel.mean_loss() - mean.as_f64()).abs() < 1e-10, "{channel:?}");
            assert!((channel.mean_burst() - burst as f64 / 1e3).abs() < 1e-6, "{channel:?}");
            let (p, r) = (channel.enter_bad.as_f64(), channel.leave_bad.as_f64());
            assert!((channel.correlation() - (1.0 - p - r)).abs() < 1e-9, "{channel:?}");
        }
        let half = "50%".parse().expect("a percentage");
        assert_eq!(GilbertElliott::simple(half, 999), None);
        let more = "50.1%".parse().expect("a percentage");
        assert_eq!(GilbertElliott::simple(more, 1000), None);
    }

    /// With equal loss in both states there are no bursts: a Bernoulli channel.
    #[test]
    fn equal_states_have_no_correlation() {
        let spec: LossSpec = "gemodel:p=5%,r=5%,bad=10%,good=10%".parse().expect("a channel");
        let LossSpec::GilbertElliott(channel) = spec else { panic!("{spec}") };
        assert!(channel.correlation().abs() < 1e-12);
        assert!((channel.mean_burst() - 1.0 / 0.9).abs() < 1e-12);
    }

    /// A state that is never left, or always.
    #[test]
    fn extreme_channels() {
        for (text, expected) in [
            ("gemodel:p=0%,r=0%", [false; 6]),
            ("gemodel:p=100%,r=0%", [true; 6]),
            ("gemodel:p=0%,r=100%,bad=0%,good=100%", [true; 6]),
        ] {
            let mut loss = Loss::new(text.parse().expect("a channel"), 9, 9);
            let struck: Vec<bool> = (0..6).map(|_| loss.strikes()).collect();
            assert_eq!(struck, expected, "{text}");
        }
        let mut loss = Loss::new("gemodel:p=100%,r=100%".parse().expect("a channel"), 1, 1);
        let struck: Vec<bool> = (0..100).map(|_| loss.strikes()).collect();
        assert!(struck.windows(2).all(|pair| pair[0] != pair[1]), "alternating");
    }

    #[test]
    fn mean_of_every_loss_model() {
        for (text, mean) in
            [("2%", 0.02), ("every:50", 0.02), ("gilbert:mean=2%,burst=3", 0.02), ("0%", 0.0)]
        {
            let spec: LossSpec = text.parse().expect("a loss");
            assert!((spec.mean() - mean).abs() < 1e-10, "{text}");
        }
        assert!(LossSpec::EveryNth(0).mean().abs() < f64::EPSILON);
    }
}
