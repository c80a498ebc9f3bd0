//! How often the first sentence of `uncork compare` is true, over random paths.
//!
//! Each case draws a path, a workload and two controllers, and compares them with ten seeds, as a user
//! does. The truth is what many other seeds say. CI runs a few cases; the whole table is made by
//! `UNCORK_SENTENCES=1000 cargo test -p uncork-lab --test sentence_truth -- --nocapture`.
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use uncork_lab::{CompareSpec, Engine, SweepResults, Workload, items, run_items};
use uncork_path::HostJitter;
use uncork_report::lab::{Answer, AnswerKind};
use uncork_units::Rng;

/// Cases in CI.
const CASES: u64 = 40;
/// Seeds of the truth, other than those of the sentences.
const REFERENCE: (u32, u64) = (60, 1_001);
const KINDS: [&str; 4] =
    ["one transfer", "one bulk flow", "flows of one controller", "unequal numbers share a link"];
const CCS: [&str; 5] = ["reno", "cubic", "bbr1", "bbr2", "bbr3"];

/// What became of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// The reference says the same.
    True,
    /// It reports no difference yet, but one exists.
    Silent,
    /// The reference contradicts it.
    Wrong,
    /// The reference has no answer, either.
    Unsettled,
}

/// A random comparison of a kind.
fn drawn(case: u64) -> (usize, CompareSpec) {
    let mut rng = Rng::new(2_038, case);
    let kind = rng.below(4) as usize;
    let mut uniform = || rng.below(1 << 32) as f64 / 2f64.powi(32);
    let mut log = |low: f64, high: f64| low * (high / low).powf(uniform());
    let (rate, rtt) = (log(1.0, if kind == 0 { 40.0 } else { 8.0 }), log(5.0, 150.0));
    let (loss, buffer) = (log(0.05, 3.0), log(0.3, 4.0));
    let (size, seconds) = (log(30e3, 500e3), log(1.5, 3.0));
    let is_lossless = rng.below(2) == 0;
    let one = rng.below(5) as usize;
    let other = (one + 1 + rng.below(4) as usize) % 5;
    let several = 2 + rng.below(3) as usize;
    let mix = [vec![CCS[one]], vec![CCS[other]; several]].concat().join("+");
    let columns = if kind == 3 { vec![mix] } else { vec![CCS[one].into(), CCS[other].into()] };
    // At least two packets of queue.
    let bytes = (buffer * rate * rtt * 125.0).max(3_000.0) as u64;
    let spec = CompareSpec {
        preset: None,
        rates: vec![format!("{rate:.3}mbit").parse().unwrap()],
        rtts: vec![format!("{}us", (rtt * 1e3) as u64).parse().unwrap()],
        losses: vec![
            if is_lossless { "0%".into() } else { format!("{loss:.3}%") }.parse().unwrap(),
        ],
        loss_position: None,
        buffers: vec![format!("{bytes}B").parse().unwrap()],
        queue: None,
        jitter: None,
        host_jitter: HostJitter::Usual,
        start: None,
        workload: match kind {
            0 => Workload::Transfer(format!("{}B", size as u64).parse().unwrap()),
            _ => Workload::Duration(format!("{}ms", (seconds * 1e3) as u64).parse().unwrap()),
        },
        columns: columns.iter().map(|column: &String| column.parse().unwrap()).collect(),
        flows: if kind == 2 { several as u32 } else { 1 },
        seeds: 10,
        first_seed: 1,
    };
    (kind, spec)
}

fn first_answer(spec: &CompareSpec) -> Answer {
    let scenario = spec.scenario(None).unwrap();
    let stop = AtomicBool::new(false);
    let runs =
        run_items((&scenario, Engine::Sim), &items(&scenario), 2, &stop, &|_, _| {}).unwrap();
    let mut document = SweepResults::new(runs).document(&scenario, "uncork".into(), false);
    document.answers.swap_remove(0)
}

/// What the reference says of a sentence.
fn fate(said: &Answer, truth: &Answer) -> Fate {
    use AnswerKind::{Alike, Better, Open, Worse};
    let limits = truth.ratio.and_then(|ratio| ratio.low.zip(ratio.high));
    // "1.0 % more (0.2 to 1.8 %)" is true if it is 0.7 %, though that counts as alike.
    let own = said.ratio.and_then(|ratio| ratio.low.zip(ratio.high)).zip(truth.ratio);
    let covers = own.is_some_and(|((low, high), ratio)| (low..=high).contains(&ratio.value));
    let is_beyond_alike = limits.is_some_and(|(low, high)| low > 1.01 || high < 0.99);
    match (said.kind, truth.kind) {
        (Better | Worse, Alike) if covers => Fate::True,
        (Better, Worse | Alike) | (Worse, Better | Alike) => Fate::Wrong,
        (Alike, _) if is_beyond_alike => Fate::Wrong,
        (Better, Better) | (Worse, Worse) | (Open, Open | Alike) | (Alike, _) => Fate::True,
        (Open, Better | Worse) => Fate::Silent,
        _ => Fate::Unsettled,
    }
}

#[derive(Default)]
struct Counts {
    fates: Vec<Fate>,
    /// Whether the sentence's interval has the reference's ratio.
    covers: Vec<bool>,
}

fn percent(part: usize, whole: usize) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}

impl Counts {
    fn of(&self, fate: Fate) -> usize {
        self.fates.iter().filter(|one| **one == fate).count()
    }

    fn row(&self, name: &str) -> String {
        let fates = [Fate::True, Fate::Silent, Fate::Wrong, Fate::Unsettled];
        let all = self.fates.len();
        let cells = fates.map(|fate| percent(self.of(fate), all)).join(" | ");
        let covers = self.covers.iter().filter(|covers| **covers).count();
        format!("| {name} | {all} | {cells} | {} |", percent(covers, self.covers.len()))
    }
}

#[test]
fn first_sentence_is_hardly_ever_wrong() {
    let asked = std::env::var("UNCORK_SENTENCES").ok().and_then(|text| text.parse().ok());
    let cases = asked.unwrap_or(CASES);
    let (mut all, mut kinds) = (Counts::default(), BTreeMap::<usize, Counts>::new());
    for case in 0..cases {
        let (kind, spec) = drawn(case);
        let said = first_answer(&spec);
        let (seeds, first_seed) = REFERENCE;
        let truth = first_answer(&CompareSpec { seeds, first_seed, ..spec.clone() });
        let fate = fate(&said, &truth);
        let limits = said.ratio.and_then(|ratio| ratio.low.zip(ratio.high));
        let covers = limits
            .zip(truth.ratio)
            .map(|((low, high), ratio)| low <= ratio.value && ratio.value <= high);
        for counts in [&mut all, kinds.entry(kind).or_default()] {
            counts.fates.push(fate);
            counts.covers.extend(covers);
        }
        if fate == Fate::Wrong {
            println!("wrong: case {case}, {said:?}, but {:?} {:?}", truth.kind, truth.ratio);
        }
    }
    println!(
        "| first sentence about | cases | true | silent | wrong | unsettled | ratio in the interval |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|");
    for (kind, counts) in &kinds {
        println!("{}", counts.row(KINDS[*kind]));
    }
    println!("{}", all.row("all"));
    // 1 % of wrong sentences; of few cases a single one may be.
    let allowed = (cases / 50).max(1) as usize;
    assert!(all.of(Fate::Wrong) <= allowed, "{}", all.row("all"));
    assert!(all.of(Fate::True) * 10 >= all.fates.len() * 6, "{}", all.row("all"));
}
