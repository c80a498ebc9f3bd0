//! What the figures say, in sentences whose confidence comes from the seeds.

use uncork_flow::{MedianRatio, mean, quantile};
use uncork_units::Rng;

use crate::aggregate::{ColumnFigures, median};
use crate::compare::{CompareSpec, Workload};
use crate::figures::RunFigures;

/// Seed of the resampling: the verdict on equal figures is the same.
const RESAMPLING_SEED: u64 = 1;
/// Ratios this close to 1 make no difference to anybody.
const ALIKE: f64 = 0.01;
/// A price is worth a word from these differences on, if it is also this many times the other's.
const PRICE_RATIO: f64 = 1.2;
const PRICE_RESENT: f64 = 0.001;
const PRICE_QUEUE_MS: f64 = 2.0;

/// One line for each column but the first, and one for each mix.
pub(crate) fn verdict(spec: &CompareSpec, columns: &[ColumnFigures]) -> String {
    let measure = match spec.workload {
        Workload::Transfer(_) => Measure::Completion,
        Workload::Duration(_) => Measure::Goodput,
    };
    let is_mix = |column: &&ColumnFigures| column.column.distinct().len() > 1;
    let mut plain =
        columns.iter().filter(|column| !is_mix(column)).map(|c| Contender::of(c, measure, spec));
    let mut lines = Vec::new();
    if let Some(first) = plain.next() {
        let others: Vec<Contender> = plain.collect();
        if others.is_empty() {
            lines.push(alone(&first, measure));
        }
        lines.extend(others.iter().map(|other| compared(other, &first, measure)));
    }
    lines.extend(columns.iter().filter(is_mix).flat_map(|column| shares(column, spec)));
    lines.join("\n")
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measure {
    /// Seconds; less is better.
    Completion,
    /// Bits per second; more is better.
    Goodput,
}

/// A column in a comparison.
#[derive(Clone, Debug)]
struct Contender {
    name: String,
    /// One figure for each seed; infinite seconds where most transfers did not finish.
    per_seed: Vec<f64>,
    transfers: u64,
    unfinished: u64,
    /// Unfinished transfers were cut off after so many seconds.
    bound_s: f64,
    resent: f64,
    queue_p95_ms: f64,
}

impl Contender {
    fn of(column: &ColumnFigures, measure: Measure, spec: &CompareSpec) -> Self {
        let result = &column.result;
        let figure = |run: &RunFigures| match measure {
            Measure::Completion => {
                median(run.flows.iter().map(|flow| flow.completion_s.unwrap_or(f64::INFINITY)))
                    .unwrap_or(f64::INFINITY)
            }
            Measure::Goodput => run.goodput_bps,
        };
        Self {
            name: result.cc.clone(),
            per_seed: column.runs.iter().map(figure).collect(),
            transfers: u64::from(result.flows).saturating_mul(column.runs.len() as u64),
            unfinished: result.unfinished,
            bound_s: spec.bound(u64::from(result.flows)).as_secs_f64(),
            resent: result.retransmit_fraction,
            queue_p95_ms: result.queue_ms.map_or(0.0, |queue| queue.p95),
        }
    }

    /// How many transfers finished, in words.
    fn finished(&self) -> String {
        format!("{} of {}", self.transfers - self.unfinished.min(self.transfers), self.transfers)
    }
}

/// The ratio of two samples' medians, and how sure it is.
#[derive(Clone, Copy, Debug)]
struct Ratio {
    value: f64,
    interval: Option<(f64, f64)>,
    seeds: usize,
    /// Every seed gave the same figures.
    constant: bool,
}

impl Ratio {
    /// How many times `denominator` the figures of `numerator` are; `None` when that is nothing to
    /// speak of.
    fn of(numerator: &[f64], denominator: &[f64]) -> Option<Self> {
        let pairs: Vec<(f64, f64)> =
            numerator.iter().copied().zip(denominator.iter().copied()).collect();
        let found = MedianRatio::of(&pairs, &mut Rng::new(RESAMPLING_SEED, 0))?;
        let constant = pairs.windows(2).all(|pair| pair[0] == pair[1]);
        (found.ratio > 0.0 && found.ratio.is_finite()).then_some(Self {
            value: found.ratio,
            interval: found.interval.filter(|(low, high)| *low > 0.0 && high.is_finite()),
            seeds: pairs.len(),
            constant,
        })
    }

    fn inverse(self) -> Self {
        let interval = self.interval.map(|(low, high)| (1.0 / high, 1.0 / low));
        Self { value: 1.0 / self.value, interval, ..self }
    }

    /// Whether the seeds leave open which of the two is larger.
    fn is_open(self) -> bool {
        !self.constant && self.interval.is_some_and(|(low, high)| low <= 1.0 && 1.0 <= high)
    }

    fn is_alike(self) -> bool {
        (self.value - 1.0).abs() < ALIKE
    }

    /// `(95 % CI 6.1 to 7.8, 10 seeds)`; of what is alike the interval says no more.
    fn evidence(self) -> String {
        let Self { seeds, .. } = self;
        match self.interval {
            _ if seeds == 1 => "(1 seed: no interval)".to_owned(),
            _ if self.constant => format!("(all {seeds} seeds agree)"),
            Some(_) if self.is_alike() && !self.is_open() => format!("({seeds} seeds)"),
            Some((low, high)) => {
                let decimals = decimals(self.value);
                format!("(95 % CI {low:.decimals$} to {high:.decimals$}, {seeds} seeds)")
            }
            None => format!("({seeds} seeds: too few for an interval)"),
        }
    }
}

/// The line of a column that has nothing to be compared with.
fn alone(column: &Contender, measure: Measure) -> String {
    let Contender { name, per_seed, .. } = column;
    let seeds = match per_seed.len() {
        1 => "1 seed".to_owned(),
        n => format!("median of {n} seeds"),
    };
    match (measure, quantile(per_seed, 0.5)) {
        (Measure::Completion, Some(seconds)) if seconds.is_finite() => {
            format!("{name} finishes in {} ({seeds}).", span(seconds))
        }
        (Measure::Goodput, Some(bps)) => {
            format!("{name} delivers {:.2} Mbit/s ({seeds}).", bps / 1e6)
        }
        _ => format!(
            "{name} finishes {} transfers; runs stop after {} s of virtual time.",
            column.finished(),
            column.bound_s.ceil()
        ),
    }
}

/// The line of `other`, seen from the column that all are compared with.
fn compared(other: &Contender, base: &Contender, measure: Measure) -> String {
    if base.unfinished + other.unfinished > 0 {
        return format!(
            "{} finishes {} transfers, {} {}; runs stop after {} s of virtual time.",
            other.name,
            other.finished(),
            base.name,
            base.finished(),
            base.bound_s.max(other.bound_s).ceil()
        );
    }
    match Ratio::of(&other.per_seed, &base.per_seed) {
        None => format!("{} and {} cannot be compared: nothing arrives.", other.name, base.name),
        Some(ratio) => sentence(other, base, measure, ratio),
    }
}

fn sentence(other: &Contender, base: &Contender, measure: Measure, ratio: Ratio) -> String {
    let (o, b, evidence) = (&other.name, &base.name, ratio.evidence());
    let what = match measure {
        Measure::Completion => "completion times",
        Measure::Goodput => "goodputs",
    };
    if ratio.is_open() {
        let value = times(ratio.value);
        let tie =
            format!("{o} and {b} are not distinguishable: ratio of {what} {value} {evidence}");
        return tie + &either_price(other, base) + ".";
    }
    let statement = match measure {
        Measure::Completion if ratio.is_alike() => {
            format!("{o} finishes within 1 % of {b}'s time {evidence}")
        }
        Measure::Goodput if ratio.is_alike() => {
            format!("{o} delivers within 1 % of {b} {evidence}")
        }
        Measure::Completion if ratio.value < 1.0 => {
            let sooner = ratio.inverse();
            format!("{o} finishes {}x sooner than {b} {}", times(sooner.value), sooner.evidence())
        }
        Measure::Completion => {
            format!("{o} takes {}x as long as {b} {evidence}", times(ratio.value))
        }
        Measure::Goodput => {
            format!("{o} delivers {}x as much as {b} {evidence}", times(ratio.value))
        }
    };
    let other_wins = (ratio.value < 1.0) == (measure == Measure::Completion);
    let price = match other_wins {
        _ if ratio.is_alike() => either_price(other, base),
        true => prices(other, base).map_or_else(String::new, |price| format!(", but {price}")),
        false => prices(base, other).map_or_else(String::new, |price| format!(", but {b} {price}")),
    };
    statement + &price + "."
}

/// What one of two that are alike pays more than the other.
fn either_price(one: &Contender, other: &Contender) -> String {
    let clause = |payer: &Contender, other: &Contender| {
        prices(payer, other).map_or_else(String::new, |price| format!("; {} {price}", payer.name))
    };
    clause(one, other) + &clause(other, one)
}

/// What `payer` pays more than `other`, in words.
fn prices(payer: &Contender, other: &Contender) -> Option<String> {
    let is_more =
        |price: f64, than: f64, least: f64| price - than > least && price > than * PRICE_RATIO;
    let resent = is_more(payer.resent, other.resent, PRICE_RESENT).then(|| {
        format!("retransmits {} against {}", percent(payer.resent), percent(other.resent))
    });
    let queue = is_more(payer.queue_p95_ms, other.queue_p95_ms, PRICE_QUEUE_MS).then(|| {
        let (ms, than) = (payer.queue_p95_ms, other.queue_p95_ms);
        format!("queues {} ms at p95 against {} ms", short(ms), short(than))
    });
    let prices: Vec<String> = resent.into_iter().chain(queue).collect();
    (!prices.is_empty()).then(|| prices.join(", and "))
}

/// The lines of a mix: the first controller's goodput beside each other one's.
fn shares(column: &ColumnFigures, spec: &CompareSpec) -> Vec<String> {
    let members = column.column.distinct();
    let Some((first, others)) = members.split_first() else { return Vec::new() };
    let goodputs = |cc: &uncork_cc::CcSpec| -> Vec<f64> {
        let controllers = || column.column.members().iter();
        let of_run = |run: &RunFigures| {
            let flows =
                controllers().flat_map(|cc| (0..spec.flows).map(move |_| cc)).zip(&run.flows);
            let own = flows.filter(|(member, _)| *member == cc).map(|(_, flow)| flow.goodput_bps);
            mean(&own.collect::<Vec<_>>()).unwrap_or(0.0)
        };
        column.runs.iter().map(of_run).collect()
    };
    let line = |other| {
        let ratio = Ratio::of(&goodputs(first), &goodputs(other));
        share(&column.result.cc, (&first.to_string(), &other.to_string()), ratio)
    };
    others.iter().map(line).collect()
}

fn share(mix: &str, (first, other): (&str, &str), ratio: Option<Ratio>) -> String {
    let Some(ratio) = ratio else {
        return format!("In {mix}, {first} and {other} cannot be compared: nothing arrives.");
    };
    let (value, evidence) = (times(ratio.value), ratio.evidence());
    if ratio.is_open() {
        format!(
            "In {mix}, {first} and {other} are not distinguishable: ratio of goodputs {value} \
             {evidence}."
        )
    } else if ratio.is_alike() {
        format!("In {mix}, a {first} flow gets within 1 % of a {other} flow {evidence}.")
    } else {
        format!("In {mix}, a {first} flow gets {value}x the goodput of a {other} flow {evidence}.")
    }
}

/// A ratio to two or three digits.
fn times(ratio: f64) -> String {
    format!("{ratio:.*}", decimals(ratio))
}

/// Decimals for a ratio and for the interval around it.
fn decimals(ratio: f64) -> usize {
    match ratio {
        _ if ratio < 2.0 => 2,
        _ if ratio < 100.0 => 1,
        _ => 0,
    }
}

/// A span of time to three digits or so, however short.
fn span(seconds: f64) -> String {
    match seconds {
        _ if seconds < 1e-3 => format!("{:.1} µs", seconds * 1e6),
        _ if seconds < 1.0 => format!("{:.1} ms", seconds * 1e3),
        _ => format!("{seconds:.2} s"),
    }
}

fn percent(fraction: f64) -> String {
    format!("{} %", short(fraction * 100.0))
}

fn short(value: f64) -> String {
    match value {
        _ if value < 0.005 => "0".to_owned(),
        _ if value < 1.0 => format!("{value:.2}"),
        _ if value < 10.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests;
