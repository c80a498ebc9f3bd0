//! Loss that is nobody's congestion.

use uncork_units::{Probability, Rng};

/// Which packets are lost at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossSpec {
    /// Each packet on its own, with this probability (Bernoulli).
    Bernoulli(Probability),
    /// Every n-th packet: the deterministic loss of response-function arguments.
    EveryNth(u64),
}

/// A loss process at work.
#[derive(Clone, Debug)]
pub struct Loss {
    spec: LossSpec,
    rng: Rng,
    packets: u64,
}

impl Loss {
    /// The process, drawing from its own stream of `seed`.
    pub fn new(spec: LossSpec, seed: u64, stream: u64) -> Self {
        Self { spec, rng: Rng::new(seed, stream), packets: 0 }
    }

    /// Another process from now on, from the same stream.
    pub fn change(&mut self, spec: LossSpec) {
        self.spec = spec;
    }

    /// Whether the packet that passes now is lost.
    pub fn strikes(&mut self) -> bool {
        self.packets += 1;
        match self.spec {
            LossSpec::Bernoulli(probability) => probability.happens(&mut self.rng),
            LossSpec::EveryNth(n) => n > 0 && self.packets.is_multiple_of(n),
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
    fn bernoulli_loses_its_share() {
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
    fn none_and_all() {
        let [never, always] =
            ["0%", "100%"].map(|p| LossSpec::Bernoulli(p.parse().expect("valid")));
        assert_eq!(losses(never, 1, 10_000), 0);
        assert_eq!(losses(always, 1, 10_000), 10_000);
    }

    #[test]
    fn every_nth_counts() {
        let mut loss = Loss::new(LossSpec::EveryNth(3), 1, 0);
        let struck: Vec<bool> = (0..6).map(|_| loss.strikes()).collect();
        assert_eq!(struck, [false, false, true, false, false, true]);
    }

    #[test]
    fn a_process_may_change() {
        let mut loss = Loss::new(LossSpec::EveryNth(1), 1, 0);
        assert!(loss.strikes());
        loss.change(LossSpec::EveryNth(0));
        assert!((0..100).all(|_| !loss.strikes()));
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
}
