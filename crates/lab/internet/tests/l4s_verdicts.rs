//! Verdicts on simulated client networks, and what wrong ones cost. `cargo test` plays a few networks. All of them are in
//! the tables of `docs/evidence/l4s-verdicts.md`:
//!
//! ```text
//! UPDATE_DOCS=1 cargo test -p uncork-internet --test l4s_verdicts -- --include-ignored
//! ```

use std::sync::atomic::AtomicBool;
use std::thread::available_parallelism;

use uncork_ecn::{Bottleneck, FlowEvidence, NetworkEvidence, Vote, verdict};
use uncork_internet::l4s::{
    AccessNetwork, FLOWS, Played, RangeSet, Truth, classic_cost, l4s_cost, play,
};
use uncork_sim::parallel::map_until;
use uncork_units::TimeDelta;

#[path = "../../sim/tests/common/page.rs"]
mod page;

const PAGE: &str = "docs/evidence/l4s-verdicts.md";
/// The worlds: ranges, seed, name.
const WORLDS: [(RangeSet, u64, &str); 2] =
    [(RangeSet::Design, 1, "at hand"), (RangeSet::HeldBack, 2, "held back")];
const KINDS: [Bottleneck; 4] =
    [Bottleneck::L4s, Bottleneck::FlowQueued, Bottleneck::Classic, Bottleneck::Unknown];
/// Ranges of rates in Mbit/s.
const RATES: [(u64, u64); 5] = [(1, 6), (6, 12), (12, 30), (30, 100), (100, 501)];

fn in_parallel<T: Send + Sync>(count: u32, work: impl Fn(u32) -> T + Sync) -> Vec<T> {
    let jobs = available_parallelism().map_or(1, usize::from);
    map_until(&AtomicBool::new(false), count as usize, jobs, |index| work(index as u32))
}

/// Networks of one kind or, if `only` is `None`, of all kinds in turn.
fn networks(set: RangeSet, only: Option<Truth>, seed: u64, index: u32) -> AccessNetwork {
    let in_turn = Truth::ALL[index as usize % Truth::ALL.len()];
    AccessNetwork::draw(set, only.unwrap_or(in_turn), seed, index)
}

/// Makes a table's row for the networks of a world with one kind of bottleneck.
type Row = fn(&str, &[Case], Truth) -> Vec<String>;

struct Case {
    network: AccessNetwork,
    played: Played,
}

impl Case {
    fn is(&self, truth: Truth) -> bool {
        self.network.truth == truth
    }

    /// The verdict after the first flows.
    fn after(&self, flows: usize) -> Bottleneck {
        let mut evidence = NetworkEvidence::default();
        for flow in self.played.flows.iter().take(flows) {
            evidence.add(flow);
        }
        verdict(&evidence, TimeDelta::ZERO).bottleneck
    }

    /// The verdict of a host that polls totals.
    fn polled(&self) -> Bottleneck {
        let mut evidence = NetworkEvidence::default();
        for flow in &self.played.polled {
            evidence.add(flow);
        }
        verdict(&evidence, TimeDelta::ZERO).bottleneck
    }

    fn was_ever_called(&self, called: Bottleneck) -> bool {
        (1..=FLOWS).any(|flows| self.after(flows) == called)
    }
}

fn cases(set: RangeSet, only: Option<Truth>, seed: u64, count: u32) -> Vec<Case> {
    in_parallel(count, |index| {
        let network = networks(set, only, seed, index);
        let played = play(&network);
        Case { network, played }
    })
}

fn count(cases: &[Case], holds: impl Fn(&Case) -> bool) -> usize {
    cases.iter().filter(|case| holds(case)).count()
}

fn called(cases: &[Case], truth: Truth, as_this: Bottleneck) -> usize {
    count(cases, |case| case.is(truth) && case.played.bottleneck == as_this)
}

fn flows(cases: &[Case], truth: Truth) -> impl Iterator<Item = &FlowEvidence> {
    cases.iter().filter(move |case| case.is(truth)).flat_map(|case| &case.played.flows)
}

fn name(truth: Truth) -> &'static str {
    match truth {
        Truth::L4s => "L4S",
        Truth::FlowQueued => "queue for each flow",
        Truth::Classic => "one classic queue",
    }
}

fn percent(part: usize, of: usize) -> String {
    if of == 0 { "–".to_owned() } else { format!("{:.1}", 100.0 * part as f64 / of as f64) }
}

fn has_rate(network: &AccessNetwork, (low, high): (u64, u64)) -> bool {
    (low * 1_000_000..high * 1_000_000).contains(&network.rate.bits_per_sec())
}

#[test]
fn networks_are_called_what_they_are_or_unknown() {
    for (set, seed, world) in WORLDS {
        let cases = cases(set, None, seed + 100, 30);
        let wrong = count(&cases, |case| {
            case.network.truth != Truth::L4s && case.was_ever_called(Bottleneck::L4s)
        });
        assert_eq!(wrong, 0, "{world}: called L4S");
        let lost = called(&cases, Truth::L4s, Bottleneck::Classic);
        assert!(lost <= 1, "{world}: {lost} networks for L4S are called classic");
        let is_fast = |case: &Case| case.is(Truth::L4s) && has_rate(&case.network, (12, 501));
        let fast = count(&cases, is_fast);
        let found =
            count(&cases, |case| is_fast(case) && case.played.bottleneck == Bottleneck::L4s);
        println!("{world}: {found} of {fast} fast networks for L4S are recognised");
        assert!(found * 2 >= fast, "{world}: {found} of {fast}");
        let classic = called(&cases, Truth::Classic, Bottleneck::Classic);
        assert!(classic >= 4, "{world}: {classic} of 10 classic queues are recognised");
    }
}

/// The per-flow test limits the harm of a wrong verdict, and the right one keeps the queue short.
#[test]
fn wrong_verdicts_cost_what_the_page_says() {
    let costs = |truth| {
        let networks = (0..24).map(|index| networks(RangeSet::Design, Some(truth), 21, index));
        networks.filter(|it| has_rate(it, (12, 60))).collect::<Vec<_>>()
    };
    let shares: Vec<f64> = costs(Truth::Classic)
        .iter()
        .map(|network| classic_cost(network).cubic_next_to_l4s)
        .collect();
    println!("CUBIC has {shares:.2?} of classic networks that are called L4S");
    assert!(shares.len() >= 4 && mean(&shares) >= 0.35, "{shares:.2?}");
    for network in costs(Truth::L4s) {
        let cost = l4s_cost(&network);
        assert!(3.0 * cost.l4s_ms.1 <= cost.classic_ms.1, "{cost:?}: {network:?}");
    }
}

#[test]
fn equal_seeds_give_equal_evidence() {
    let network = || networks(RangeSet::HeldBack, Some(Truth::Classic), 3, 1);
    assert_eq!(play(&network()).flows, play(&network()).flows);
}

/// The tables about 1,000 networks.
#[test]
#[ignore = "minutes: it plays 1,000 networks"]
fn tables_of_verdicts() {
    let worlds = WORLDS.map(|(set, seed, world)| (world, cases(set, None, seed, 500)));
    let each = |row: Row| {
        let rows = worlds.iter().flat_map(|(world, cases)| {
            Truth::ALL.into_iter().map(move |truth| row(world, cases, truth))
        });
        rows.collect::<Vec<_>>()
    };
    let agree = |table: &str, header: &[&str], rows: Vec<Vec<String>>| {
        page::agree(&page::page(PAGE), table, &page::table(header, rows));
    };
    let header = ["networks", "bottleneck", "number", "L4S", "flow-queued", "classic", "unknown"];
    agree("verdicts", &header, each(confusion_row));
    let header = ["networks", "bottleneck", "number", "L4S", "classic", "unknown"];
    agree("polled", &header, each(polled_row));
    let header = ["networks", "bottleneck", "flows", "L4S, %", "classic, %", "fell back, %"];
    agree("votes", &header, each(votes_row));
    let header = ["networks", "bottleneck", "right after 5", "10", "20", "ever wrong"];
    agree("flows", &header, each(flows_row));
    let header = ["networks", "L4S networks", "number", "called L4S, %", "classic, %"];
    let rows = worlds.iter().flat_map(|(world, cases)| l4s_rows(world, cases)).collect();
    agree("conditions", &header, rows);
}

fn confusion_row(world: &str, cases: &[Case], truth: Truth) -> Vec<String> {
    let all = count(cases, |case| case.is(truth));
    let cells = KINDS.map(|kind| called(cases, truth, kind).to_string());
    [world.to_owned(), name(truth).to_owned(), all.to_string()].into_iter().chain(cells).collect()
}

/// A host that polls compares no flows with each other.
fn polled_row(world: &str, cases: &[Case], truth: Truth) -> Vec<String> {
    let all = count(cases, |case| case.is(truth));
    let called = |kind| count(cases, |case| case.is(truth) && case.polled() == kind).to_string();
    let cells = [Bottleneck::L4s, Bottleneck::Classic, Bottleneck::Unknown].map(called);
    [world.to_owned(), name(truth).to_owned(), all.to_string()].into_iter().chain(cells).collect()
}

fn votes_row(world: &str, cases: &[Case], truth: Truth) -> Vec<String> {
    let all = flows(cases, truth).count();
    let votes = |vote| flows(cases, truth).filter(|flow| flow.vote() == vote).count();
    let fell_back = flows(cases, truth).filter(|flow| flow.fell_back).count();
    let shares = [votes(Vote::L4s), votes(Vote::Classic), fell_back]
        .map(|part| format!("{:.2}", 100.0 * part as f64 / all as f64));
    [world.to_owned(), name(truth).to_owned(), all.to_string()].into_iter().chain(shares).collect()
}

/// A queue for each flow may be called classic: connections begin in the same way.
fn flows_row(world: &str, cases: &[Case], truth: Truth) -> Vec<String> {
    let is_right = |called| match truth {
        Truth::L4s => called == Bottleneck::L4s,
        Truth::FlowQueued | Truth::Classic => called == Bottleneck::Classic,
    };
    let wrong = if truth == Truth::L4s { Bottleneck::Classic } else { Bottleneck::L4s };
    let all = count(cases, |case| case.is(truth));
    let right = |flows| count(cases, |case| case.is(truth) && is_right(case.after(flows)));
    let ever = count(cases, |case| case.is(truth) && case.was_ever_called(wrong));
    let [five, ten, twenty] = [5, 10, FLOWS].map(|flows| percent(right(flows), all) + " %");
    vec![world.to_owned(), name(truth).to_owned(), five, ten, twenty, ever.to_string()]
}

fn l4s_rows(world: &str, cases: &[Case]) -> Vec<Vec<String>> {
    let row = |label: String, holds: &dyn Fn(&AccessNetwork) -> bool| {
        let is_one = |case: &Case| case.is(Truth::L4s) && holds(&case.network);
        let all = count(cases, is_one);
        let of = |kind| {
            let called = count(cases, |case| is_one(case) && case.played.bottleneck == kind);
            percent(called, all)
        };
        let shares = [of(Bottleneck::L4s), of(Bottleneck::Classic)];
        [world.to_owned(), label, all.to_string()].into_iter().chain(shares).collect()
    };
    let rates = RATES.map(|range| {
        row(format!("{} to {} Mbit/s", range.0, range.1.min(500)), &|it| has_rate(it, range))
    });
    let fast = |it: &AccessNetwork| has_rate(it, (12, 501));
    let others = [
        row("from 12 Mbit/s, no jitter".into(), &|it| fast(it) && !it.has_jitter()),
        row("from 12 Mbit/s, random delays".into(), &|it| fast(it) && it.path.jitter.is_some()),
        row("from 12 Mbit/s, slots".into(), &|it| fast(it) && it.path.aggregation.is_some()),
        row("from 12 Mbit/s, alone".into(), &|it| fast(it) && !it.has_others()),
        row("from 12 Mbit/s, with others".into(), &|it| fast(it) && it.has_others()),
    ];
    rates.into_iter().chain(others).collect()
}

/// Classic networks alone, for a lower limit of errors than 1,000 networks of all kinds can show.
#[test]
#[ignore = "minutes: it plays 1,750 networks"]
fn table_of_classic_networks() {
    let crowded = (RangeSet::Crowded, 3, "crowded", 250);
    let worlds = WORLDS.map(|(set, seed, world)| (set, seed, world, 750));
    let rows = worlds.into_iter().chain([crowded]).map(|(set, seed, world, networks)| {
        let cases = cases(set, Some(Truth::Classic), seed + 10, networks);
        let wrong = count(&cases, |case| case.was_ever_called(Bottleneck::L4s));
        let last = called(&cases, Truth::Classic, Bottleneck::L4s);
        let voted = flows(&cases, Truth::Classic).filter(|flow| flow.vote() == Vote::L4s).count();
        let numbers = [cases.len(), last, wrong, voted].map(|number| number.to_string());
        [world.to_owned()].into_iter().chain(numbers).collect()
    });
    let header =
        ["networks", "number", "called L4S after 20 flows", "ever", "flows that voted L4S"];
    page::agree(&page::page(PAGE), "classic networks", &page::table(&header, rows));
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn quantile(values: &[f64], part: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * part) as usize]
}

/// What a wrong verdict costs, by rate.
#[test]
#[ignore = "minutes: it plays 480 networks"]
fn tables_of_costs() {
    let (mut shares, mut waits) = (Vec::new(), Vec::new());
    for (set, seed, world) in WORLDS {
        let draw = |truth, index| networks(set, Some(truth), seed + 20, index);
        let classic = in_parallel(120, |index| {
            let network = draw(Truth::Classic, index);
            (network.rate, classic_cost(&network))
        });
        let l4s = in_parallel(120, |index| {
            let network = draw(Truth::L4s, index);
            (network.rate, l4s_cost(&network))
        });
        for (low, high) in RATES {
            let is_in = |rate: uncork_units::Rate| {
                (low * 1_000_000..high * 1_000_000).contains(&rate.bits_per_sec())
            };
            let label = format!("{low} to {} Mbit/s", high.min(500));
            let of: Vec<_> = classic.iter().filter(|it| is_in(it.0)).map(|it| it.1).collect();
            let wrong: Vec<f64> = of.iter().map(|it| it.cubic_next_to_l4s).collect();
            let right: Vec<f64> = of.iter().map(|it| it.cubic_next_to_classic).collect();
            let cells = [mean(&wrong), quantile(&wrong, 0.1), mean(&right), quantile(&right, 0.1)];
            let cells = cells.map(|share| format!("{share:.2}"));
            let begin = [world.to_owned(), label.clone(), of.len().to_string()];
            shares.push(begin.into_iter().chain(cells).collect());
            let of: Vec<_> = l4s.iter().filter(|it| is_in(it.0)).map(|it| it.1).collect();
            let median = |get: &dyn Fn(&uncork_internet::l4s::L4sCost) -> f64| {
                format!("{:.1}", quantile(&of.iter().map(get).collect::<Vec<_>>(), 0.5))
            };
            let cells = [
                median(&|it| it.l4s_ms.0),
                median(&|it| it.l4s_ms.1),
                median(&|it| it.classic_ms.0),
                median(&|it| it.classic_ms.1),
            ];
            let begin = [world.to_owned(), label, of.len().to_string()];
            waits.push(begin.into_iter().chain(cells).collect());
        }
    }
    let header =
        ["networks", "rate", "number", "called L4S: mean", "p10", "called classic: mean", "p10"];
    page::agree(&page::page(PAGE), "cost of L4S", &page::table(&header, shares));
    let header =
        ["networks", "rate", "number", "called L4S: p50", "p95", "called classic: p50", "p95"];
    page::agree(&page::page(PAGE), "cost of classic", &page::table(&header, waits));
}
