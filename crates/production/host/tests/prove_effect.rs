//! Intervals of a switchback contain the true effect as often as they say: windows are simulated, with a load that drifts and is
//! autocorrelated.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::collections::BTreeMap;

use uncork_host::change::Prefix;
use uncork_host::prove::{
    Arm, Comparison, Effect, Metric, Traffic, Window, WindowFigures, effects, interval, schedule,
};
use uncork_testkit::assert_message;
use uncork_units::Rng;

/// Standard normal, from 12 uniform numbers.
fn normal(rng: &mut Rng) -> f64 {
    (0..12).map(|_| rng.below(1 << 32) as f64 / (1_u64 << 32) as f64).sum::<f64>() - 6.0
}

/// A host that loses two thirds of its speed over the test, with an autocorrelated load and different transfers.
struct World {
    pairs: u32,
    /// Effect on the logarithm of throughput.
    effect: f64,
    /// Connections of each class and window.
    connections: u64,
}

impl World {
    fn run(&self, seed: u64) -> Vec<Effect> {
        let schedule = schedule(self.pairs, seed);
        let mut rng = Rng::new(seed, 99);
        let mut load = 0.0;
        let last = schedule.len() as f64;
        let figures: Vec<Option<WindowFigures>> = schedule
            .iter()
            .enumerate()
            .map(|(index, window)| {
                load = 0.8 * load + 0.15 * normal(&mut rng);
                let drift = -1.1 * index as f64 / last;
                Some(self.window(*window, drift + load, &mut rng))
            })
            .collect();
        effects(&schedule, &figures, seed)
    }

    fn window(&self, window: Window, level: f64, rng: &mut Rng) -> WindowFigures {
        let effect = if window.arm == Arm::B { self.effect } else { 0.0 };
        let connections = self.connections + rng.below(self.connections);
        let speeds: Vec<f64> =
            (0..connections).map(|_| (level + effect + 0.5 * normal(rng)).exp()).collect();
        let traffic = Traffic {
            completions_s: speeds.iter().map(|speed| 0.1 / speed).collect(),
            throughputs_bps: speeds.iter().map(|speed| 1e7 * speed).collect(),
            bytes_sent: 1_000_000_000,
            bytes_retransmitted: (1e7 * (1.0 + 0.1 * normal(rng)) * (-level).exp()) as u64,
        };
        WindowFigures { networks: [(Some(network(0)), traffic)].into(), unseen: 0 }
    }
}

fn network(index: u64) -> Prefix {
    format!("10.0.{index}.0/24").parse().unwrap()
}

/// Clients that download one object after the other: the faster, the more. A third of the networks is slow.
struct ClosedLoop {
    pairs: u32,
    networks: u64,
    /// Downloads of a slow and of a fast network in a window, at their usual speed.
    downloads: [f64; 2],
    /// What B makes of the speed of slow and of fast networks.
    gains: [f64; 2],
    /// How much the load moves from window to window, as a share of the speed.
    load: f64,
    are_networks_known: bool,
}

impl ClosedLoop {
    fn run(&self, seed: u64) -> Vec<Effect> {
        let schedule = schedule(self.pairs, seed);
        let mut rng = Rng::new(seed, 77);
        let mut load = 0.0;
        let window = |window: &Window| {
            load = 0.7 * load + self.load * normal(&mut rng);
            Some(self.window(window.arm, load, &mut rng))
        };
        let figures: Vec<Option<WindowFigures>> = schedule.iter().map(window).collect();
        effects(&schedule, &figures, seed)
    }

    fn window(&self, arm: Arm, load: f64, rng: &mut Rng) -> WindowFigures {
        let mut networks: BTreeMap<Option<Prefix>, Traffic> = BTreeMap::new();
        for index in 0..self.networks {
            let class = usize::from(!index.is_multiple_of(3));
            let gain = if arm == Arm::B { self.gains[class] } else { 1.0 };
            let speed = [5e6, 20e6][class] * gain * load.exp();
            let expected = self.downloads[class] * gain * load.exp();
            let downloads = (expected + expected.sqrt() * normal(rng)).round().max(0.0) as u64;
            let key = self.are_networks_known.then(|| network(index));
            let traffic = networks.entry(key).or_default();
            for _ in 0..downloads {
                traffic.throughputs_bps.push(speed * (0.2 * normal(rng)).exp());
                traffic.bytes_sent += 1_000_000;
                traffic.bytes_retransmitted += [50_000, 5_000][class] + rng.below(2_000);
            }
        }
        WindowFigures { networks, unseen: 0 }
    }
}

/// Simpson's paradox: B is faster for every client, and slow clients come more often because of it.
#[test]
fn more_transfers_of_slow_clients_are_no_loss() {
    let world = ClosedLoop {
        pairs: 12,
        networks: 60,
        downloads: [9.0, 8.0],
        gains: [1.6, 1.05],
        load: 0.02,
        are_networks_known: true,
    };
    let unknown = ClosedLoop { are_networks_known: false, ..world };
    for seed in 0..8 {
        let within = world.run(seed);
        let p50 = of(&within, Metric::ThroughputP50);
        assert_eq!(p50.comparison, Comparison::WithinNetworks);
        let [low, high] = p50.interval.unwrap();
        assert!(low > 0.0 && high < 0.1, "{low} {high}");
        let retransmitted = of(&within, Metric::Retransmitted).change.unwrap();
        assert!(retransmitted.abs() < 0.001, "{retransmitted}");
        let over_all = unknown.run(seed);
        let p50 = of(&over_all, Metric::ThroughputP50);
        assert_eq!((p50.comparison, p50.common), (Comparison::AllTransfers, Some(0.0)));
        let high = p50.interval.unwrap()[1];
        assert!(high < 0.0, "the mix alone: {high}");
        assert!(of(&over_all, Metric::Retransmitted).change.unwrap() > 0.003);
    }
}

/// Of equal controllers 5 % of the intervals exclude zero: at most 9.4 % of 400 tests, by four standard deviations.
#[test]
fn equal_controllers_differ_as_seldom_as_promised() {
    for (downloads, networks) in [([6.0, 8.0], 20), ([0.4, 1.2], 60)] {
        let world = ClosedLoop {
            pairs: 8,
            networks,
            downloads,
            gains: [1.0, 1.0],
            load: 0.1,
            are_networks_known: true,
        };
        let mut excluded = [0; 2];
        for seed in 5000..5400 {
            let effects = world.run(seed);
            let one = of(&effects, Metric::ThroughputP50);
            assert_eq!(one.comparison, Comparison::WithinNetworks, "{:?}", one.common);
            for (count, metric) in
                excluded.iter_mut().zip([Metric::ThroughputP50, Metric::Retransmitted])
            {
                let effect = of(&effects, metric);
                let [low, high] = effect.interval.unwrap();
                let is_excluded = low > 0.0 || high < 0.0;
                assert_eq!(is_excluded, effect.p.unwrap() < 0.05, "{effect:?}");
                *count += u64::from(is_excluded);
            }
        }
        eprintln!("{networks} networks: {excluded:?} of 400 exclude zero");
        assert!(excluded.iter().all(|count| (3..=37).contains(count)), "{excluded:?}");
    }
}

fn of(effects: &[Effect], metric: Metric) -> &Effect {
    effects.iter().find(|effect| effect.metric == metric).unwrap()
}

const TRIALS: u64 = 1000;

/// Of 1000 trials 950 or more contain the truth: at least 922, by four standard deviations. The intervals of six pairs are 96.9 %
/// ones, all others 95.0 to 95.4 %: at most 991 or 979.
#[test]
fn intervals_contain_the_true_effect() {
    for (pairs, effect) in [(6, 0.3), (8, 0.3), (12, 0.3), (20, 0.3), (6, 0.0), (12, 0.0)] {
        let world = World { pairs, effect, connections: 15 };
        let first_seed = if effect == 0.0 { TRIALS } else { 0 };
        let mut covered = [0; 6];
        for seed in first_seed..first_seed + TRIALS {
            for (count, one) in covered.iter_mut().zip(world.run(seed)) {
                let truth = match one.metric {
                    Metric::Retransmitted => 0.0,
                    Metric::CompletionP50 | Metric::CompletionP90 => (-effect).exp_m1(),
                    _ => effect.exp_m1(),
                };
                let [low, high] = one.interval.unwrap();
                *count += u64::from(low <= truth && truth <= high);
            }
        }
        eprintln!("{pairs} pairs, effect {effect}: {covered:?} of {TRIALS}");
        let most = if pairs == 6 { 991 } else { 979 };
        assert!(covered.iter().all(|count| (922..=most).contains(count)), "{covered:?}");
    }
}

/// A comparison of the first half with the second would see the drift as an effect, and one that treats connections as
/// independent would be too sure. The pairs find an effect that is there.
#[test]
fn an_effect_is_found() {
    let world = World { pairs: 12, effect: 0.2, connections: 20 };
    let found = (0..100).filter(|seed| {
        let effects = world.run(*seed);
        of(&effects, Metric::ThroughputP50).interval.unwrap()[0] > 0.0
    });
    let found = found.count();
    assert!(found >= 80, "{found} of 100");
}

#[test]
fn too_little_has_no_interval_and_says_what_is_missing() {
    let few_pairs = World { pairs: 5, effect: 0.3, connections: 15 }.run(1);
    let effect = of(&few_pairs, Metric::ThroughputP10);
    assert_eq!((effect.pairs, effect.interval), (5, None));
    assert!(effect.change.is_some());
    assert_message!("5 pairs", effect.missing.as_ref().unwrap());
    let few = World { pairs: 8, effect: 0.3, connections: 4 }.run(1);
    let effect = of(&few, Metric::CompletionP50);
    assert_eq!((effect.pairs, effect.change, effect.levels), (0, None, None));
    assert_message!("4 connections", effect.missing.as_ref().unwrap());
    assert!(of(&few, Metric::Retransmitted).interval.is_some(), "its sums need no ten connections");
    let schedule = schedule(8, 1);
    let mut figures: Vec<_> = vec![None; 16];
    let traffic = Traffic { bytes_sent: 5, ..Traffic::default() };
    figures[3] = Some(WindowFigures { networks: [(None, traffic)].into(), unseen: 0 });
    let half = effects(&schedule, &figures, 1);
    assert!(half.iter().all(|effect| effect.pairs == 0), "a pair needs both windows");
}

/// The interval of six differences is that of the smallest and largest mean of a subset: the extremes themselves.
#[test]
fn intervals_are_those_of_typical_values() {
    let differences = [0.3, -0.1, 0.2, 0.5, 0.4, 0.1];
    assert_eq!(interval(&differences, 1), Some([-0.1, 0.5]));
    assert_eq!(interval(&differences[1..], 1), None);
    let shifted: Vec<f64> = (0..30).map(|index| f64::from(index % 7) + 10.0).collect();
    let [low, high] = interval(&shifted, 1).unwrap();
    let mean = shifted.iter().sum::<f64>() / 30.0;
    assert!(low < mean && mean < high && high - low < 2.0, "{low} {mean} {high}");
    assert_eq!(interval(&shifted, 1), Some([low, high]), "of a seed");
}
