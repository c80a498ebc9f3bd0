//! The value of a metric in both windows of a pair, within client networks.
//!
//! A faster controller lets slow clients download more often, so their share of the transfers grows: over all transfers a
//! controller that is faster for every client can look slower (Simpson's paradox). Within client networks the mix is the same in
//! both windows. A network has the weight of Mantel and Haenszel (1959), n₁n₂ / (n₁ + n₂), in both; a network without traffic in
//! one of the windows has none.

use serde::Serialize;

use super::effect::{MIN_PAIRS, Metric};
use super::windows::{Traffic, WindowFigures};

/// Transfers that a window needs for a quantile.
pub(super) const MIN_SAMPLES: usize = 10;
/// Share of the traffic in networks with traffic in both windows, from which only these are compared.
const MIN_COMMON: f64 = 0.5;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Comparison {
    /// Networks with traffic in both windows of a pair, each with the same weight in both.
    WithinNetworks,
    /// All transfers: too few networks have traffic in both windows.
    AllTransfers,
}

/// Both windows of a pair, A's first.
pub(super) type Pair<'a> = [&'a WindowFigures; 2];

impl Comparison {
    /// What is compared by `metric`, and the share of its traffic in networks with traffic in both windows.
    pub(super) fn of(metric: Metric, pairs: &[Pair<'_>]) -> (Self, Option<f64>) {
        let (mut common, mut all) = (0.0, 0.0);
        for pair in pairs {
            common += common_networks(metric, pair).map(|(_, [a, b])| a + b).sum::<f64>();
            all += pair.iter().map(|window| amount_of_window(metric, window)).sum::<f64>();
        }
        let share = (all > 0.0).then(|| common / all);
        let known = |comparison: Self| {
            pairs.iter().filter(|pair| comparison.values(metric, pair).is_some()).count()
        };
        let has_enough = || known(Self::WithinNetworks) >= MIN_PAIRS.min(known(Self::AllTransfers));
        let is_within = share.is_some_and(|share| share >= MIN_COMMON) && has_enough();
        (if is_within { Self::WithinNetworks } else { Self::AllTransfers }, share)
    }

    /// The metric in both windows; `None` with too few transfers.
    pub(super) fn values(self, metric: Metric, pair: &Pair<'_>) -> Option<[f64; 2]> {
        match self {
            Self::AllTransfers => {
                let [a, b] = pair.map(|window| of_window(metric, window));
                Some([a?, b?])
            }
            Self::WithinNetworks => {
                let mut windows: [Vec<(&Traffic, f64)>; 2] = Default::default();
                for (traffic, [a, b]) in common_networks(metric, pair) {
                    // The network's weight, spread over what it has in the window.
                    let weight = a * b / (a + b);
                    windows[0].push((traffic[0], weight / a));
                    windows[1].push((traffic[1], weight / b));
                }
                let [a, b] = windows.map(|window| value(metric, &window));
                Some([a?, b?])
            }
        }
    }
}

/// The metric over all transfers of a window; `None` with too few.
pub(super) fn of_window(metric: Metric, window: &WindowFigures) -> Option<f64> {
    let traffic: Vec<(&Traffic, f64)> = window.networks.values().map(|one| (one, 1.0)).collect();
    value(metric, &traffic)
}

/// Networks with traffic in both windows, and how much. Clients of unknown networks have none in common.
fn common_networks<'a>(
    metric: Metric,
    [a, b]: &Pair<'a>,
) -> impl Iterator<Item = ([&'a Traffic; 2], [f64; 2])> {
    let (a, b) = (*a, *b);
    let known = a.networks.iter().filter(|(network, _)| network.is_some());
    let both = known.filter_map(move |(network, first)| {
        let traffic = [first, b.networks.get(network)?];
        Some((traffic, traffic.map(|one| amount(metric, one))))
    });
    both.filter(|(_, amounts)| amounts.iter().all(|amount| *amount > 0.0))
}

fn amount_of_window(metric: Metric, window: &WindowFigures) -> f64 {
    window.networks.values().map(|one| amount(metric, one)).sum()
}

/// Transfers, or payload sent.
fn amount(metric: Metric, traffic: &Traffic) -> f64 {
    match metric.sample() {
        Some((samples, _)) => samples(traffic).len() as f64,
        None => traffic.bytes_sent as f64,
    }
}

/// The metric over this traffic, where each transfer or byte of a network has a weight.
fn value(metric: Metric, traffic: &[(&Traffic, f64)]) -> Option<f64> {
    let Some((samples, q)) = metric.sample() else {
        let sum = |of: fn(&Traffic) -> u64| {
            traffic.iter().map(|(one, weight)| weight * of(one) as f64).sum::<f64>()
        };
        let sent = sum(|one| one.bytes_sent);
        return (sent > 0.0).then(|| sum(|one| one.bytes_retransmitted) / sent);
    };
    let weigh = |(one, weight): &(&Traffic, f64)| {
        let weight = *weight;
        samples(one).iter().map(move |value| (*value, weight)).collect::<Vec<_>>()
    };
    let weighted: Vec<(f64, f64)> = traffic.iter().flat_map(weigh).collect();
    (weighted.len() >= MIN_SAMPLES).then(|| weighted_quantile(weighted, q))
}

/// The `q`-quantile of values with weights: of equal weights that of type 7 (Hyndman and Fan 1996). A value is at the weight
/// before it, as a part of the weight of all others.
fn weighted_quantile(mut values: Vec<(f64, f64)>, q: f64) -> f64 {
    values.sort_unstable_by(|(a, _), (b, _)| a.total_cmp(b));
    let total: f64 = values.iter().map(|(_, weight)| weight).sum();
    let (mut before, mut last) = (0.0, None);
    for (value, weight) in values {
        let place = before / (total - weight);
        match last {
            Some((low, value_low)) if place >= q && place > low => {
                return value_low + (value - value_low) * (q - low) / (place - low);
            }
            _ => last = Some((place, value)),
        }
        before += weight;
    }
    last.map_or(f64::NAN, |(_, value)| value)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use uncork_units::Rng;

    use super::*;

    #[test]
    fn with_equal_weights_a_quantile_is_that_of_type_7() {
        let mut rng = Rng::new(7, 0);
        let values: Vec<f64> = (0..37).map(|_| rng.below(1000) as f64).collect();
        for q in [0.0, 0.1, 0.5, 0.9, 1.0] {
            let weighted = values.iter().map(|value| (*value, 0.3)).collect();
            let expected = uncork_flow::quantile(&values, q).expect("values");
            assert!((weighted_quantile(weighted, q) - expected).abs() < 1e-9, "{q}");
        }
        assert!(
            (weighted_quantile(vec![(1.0, 1.0), (5.0, 100.0), (9.0, 1.0)], 0.5) - 5.0).abs() < 0.1
        );
    }

    /// A window of networks, each with its number of large transfers and their speed.
    fn window(networks: &[(&str, usize, f64)]) -> WindowFigures {
        let of = |(network, transfers, speed): &(&str, usize, f64)| {
            let network = Some(network.parse().expect("a network"));
            let throughputs_bps = vec![*speed; *transfers];
            (network, Traffic { throughputs_bps, bytes_sent: 1000, ..Traffic::default() })
        };
        WindowFigures { networks: networks.iter().map(of).collect::<BTreeMap<_, _>>(), unseen: 0 }
    }

    #[test]
    fn networks_in_one_window_alone_do_not_count() {
        let a = window(&[("10.0.1.0/24", 20, 1e6), ("10.0.2.0/24", 5, 9e6)]);
        let b = window(&[("10.0.1.0/24", 20, 2e6), ("10.0.3.0/24", 6, 1e3)]);
        let pair = [&a, &b];
        let metric = Metric::ThroughputP50;
        let within = Comparison::WithinNetworks.values(metric, &pair);
        assert_eq!(within, Some([1e6, 2e6]));
        let (comparison, common) = Comparison::of(metric, &[pair; 6]);
        assert_eq!((comparison, common), (Comparison::WithinNetworks, Some(40.0 / 51.0)));
    }

    #[test]
    fn with_too_few_networks_in_common_all_transfers_are_compared() {
        let a = window(&[("10.0.1.0/24", 4, 1e6), ("10.0.2.0/24", 20, 9e6)]);
        let b = window(&[("10.0.1.0/24", 4, 2e6), ("10.0.3.0/24", 20, 8e6)]);
        let (comparison, common) = Comparison::of(Metric::ThroughputP50, &[[&a, &b]; 6]);
        assert_eq!((comparison, common), (Comparison::AllTransfers, Some(8.0 / 48.0)));
    }
}
