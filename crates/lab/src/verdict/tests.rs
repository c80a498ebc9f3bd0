//! Verdicts on hand-made figures.

use super::*;
use crate::compare::example;

fn contender(name: &str, per_seed: &[f64]) -> Contender {
    Contender {
        name: name.to_owned(),
        per_seed: per_seed.to_vec(),
        transfers: per_seed.len() as u64,
        unfinished: 0,
        bound_s: 120.0,
        resent: 0.01,
        queue_p95_ms: 20.0,
    }
}

const CUBIC: [f64; 10] = [28.0, 29.0, 30.0, 31.0, 32.0, 33.0, 34.0, 35.0, 27.0, 36.0];
const BBR1: [f64; 10] = [4.4, 4.5, 4.6, 4.4, 4.5, 4.6, 4.4, 4.5, 4.6, 4.5];

fn completion(other: &Contender, base: &Contender) -> String {
    compared(other, base, Measure::Completion)
}

#[test]
fn faster_with_its_interval_and_without_a_price() {
    let line = completion(&contender("bbr1", &BBR1), &contender("cubic", &CUBIC));
    assert_eq!(line, "bbr1 finishes 7.0x sooner than cubic (95 % CI 6.4 to 7.6, 10 seeds).");
}

#[test]
fn slower_than_the_first() {
    let line = completion(&contender("cubic", &CUBIC), &contender("bbr1", &BBR1));
    assert_eq!(line, "cubic takes 7.0x as long as bbr1 (95 % CI 6.4 to 7.6, 10 seeds).");
}

#[test]
fn the_winner_pays() {
    let mut bbr1 = contender("bbr1", &BBR1);
    (bbr1.resent, bbr1.queue_p95_ms) = (0.0214, 44.4);
    let cubic = contender("cubic", &CUBIC);
    assert!(completion(&bbr1, &cubic).ends_with(
        ", 10 seeds), but retransmits 2.1 % against 1.0 %, and queues 44 ms at p95 against 20 ms."
    ));
    assert!(completion(&cubic, &bbr1).ends_with(
        ", but bbr1 retransmits 2.1 % against 1.0 %, and queues 44 ms at p95 against 20 ms."
    ));
    // What the slower one pays is not the price of being faster.
    (bbr1.resent, bbr1.queue_p95_ms) = (0.0, 0.0);
    assert!(completion(&bbr1, &cubic).ends_with(" seeds)."));
}

#[test]
fn noise_that_hides_the_difference() {
    let a = contender("reno", &[9.0, 11.0, 10.0, 12.0, 8.0, 10.5, 9.5]);
    let mut b = contender("cubic", &[10.1, 9.1, 11.2, 8.2, 12.1, 9.6, 10.4]);
    let line = completion(&a, &b);
    assert!(
        line.starts_with(
            "reno and cubic are not distinguishable: ratio of completion times 0.99 (95 % CI 0."
        ),
        "{line}"
    );
    b.queue_p95_ms = 240.0;
    let line = completion(&a, &b);
    assert!(line.ends_with(", 7 seeds); cubic queues 240 ms at p95 against 20 ms."), "{line}");
}

#[test]
fn one_seed_and_few_seeds_have_no_interval() {
    let line = completion(&contender("bbr1", &[4.5]), &contender("cubic", &[9.0]));
    assert_eq!(line, "bbr1 finishes 2.0x sooner than cubic (1 seed: no interval).");
    let line = completion(&contender("bbr1", &[4.5, 4.6]), &contender("cubic", &[9.0, 9.2]));
    assert_eq!(line, "bbr1 finishes 2.0x sooner than cubic (2 seeds: too few for an interval).");
}

#[test]
fn seeds_that_cannot_differ_agree() {
    let line = completion(&contender("bbr1", &[4.4; 10]), &contender("cubic", &[6.6; 10]));
    assert_eq!(line, "bbr1 finishes 1.50x sooner than cubic (all 10 seeds agree).");
    let line = completion(&contender("bbr1", &[4.41; 10]), &contender("cubic", &[4.4; 10]));
    assert_eq!(line, "bbr1 finishes within 1 % of cubic's time (all 10 seeds agree).");
    let line = completion(&contender("bbr1", &[4.4; 3]), &contender("cubic", &[4.4; 3]));
    assert_eq!(line, "bbr1 finishes within 1 % of cubic's time (all 3 seeds agree).");
}

#[test]
fn a_difference_that_is_certain_may_still_be_none() {
    let bbr1 = contender("bbr1", &[4.43, 4.44, 4.43, 4.44, 4.43, 4.44, 4.43]);
    let line = completion(&bbr1, &contender("cubic", &[4.4; 7]));
    assert_eq!(line, "bbr1 finishes within 1 % of cubic's time (7 seeds).");
}

#[test]
fn transfers_that_did_not_finish_are_no_number() {
    let mut cubic = contender("cubic", &[f64::INFINITY; 10]);
    cubic.unfinished = 8;
    let bbr1 = contender("bbr1", &BBR1);
    let expected =
        "bbr1 finishes 10 of 10 transfers, cubic 2 of 10; runs stop after 120 s of virtual time.";
    assert_eq!(completion(&bbr1, &cubic), expected);
    assert_eq!(
        alone(&cubic, Measure::Completion),
        "cubic finishes 2 of 10 transfers; runs stop after 120 s of virtual time."
    );
}

#[test]
fn goodput_of_flows_of_a_duration() {
    let (a, b) = (contender("bbr3", &[18e6; 6]), contender("cubic", &[6e6; 6]));
    let line = compared(&a, &b, Measure::Goodput);
    assert_eq!(line, "bbr3 delivers 3.0x as much as cubic (all 6 seeds agree).");
    let line = compared(&b, &a, Measure::Goodput);
    assert_eq!(line, "cubic delivers 0.33x as much as bbr3 (all 6 seeds agree).");
    let nothing = contender("reno", &[0.0; 6]);
    for line in [compared(&a, &nothing, Measure::Goodput), compared(&nothing, &a, Measure::Goodput)]
    {
        assert!(line.ends_with(" cannot be compared: nothing arrives."), "{line}");
    }
}

#[test]
fn alone_a_column_states_its_own_figure() {
    assert_eq!(
        alone(&contender("bbr3", &[4.625]), Measure::Completion),
        "bbr3 finishes in 4.62 s (1 seed)."
    );
    for (seconds, text) in [(0.2254, "225.4 ms"), (0.000_045, "45.0 µs")] {
        let line = alone(&contender("bbr3", &[seconds]), Measure::Completion);
        assert_eq!(line, format!("bbr3 finishes in {text} (1 seed)."));
    }
    assert_eq!(
        alone(&contender("bbr3", &[18e6, 19e6]), Measure::Goodput),
        "bbr3 delivers 18.50 Mbit/s (median of 2 seeds)."
    );
}

#[test]
fn shares_of_a_mix() {
    let names = ("bbr3", "cubic");
    let line = share("bbr3+cubic", names, Ratio::of(&[12.0; 6], &[6.0; 6]));
    assert_eq!(
        line,
        "In bbr3+cubic, a bbr3 flow gets 2.0x the goodput of a cubic flow (all 6 seeds agree)."
    );
    let line = share("bbr3+cubic", names, Ratio::of(&[6.0; 6], &[6.0; 6]));
    assert_eq!(
        line,
        "In bbr3+cubic, a bbr3 flow gets within 1 % of a cubic flow (all 6 seeds agree)."
    );
    let line = share(
        "bbr3+cubic",
        names,
        Ratio::of(&[5.0, 7.0, 6.0, 5.5, 6.5, 6.0], &[6.0, 5.0, 7.0, 6.5, 5.5, 6.0]),
    );
    assert!(
        line.starts_with(
            "In bbr3+cubic, bbr3 and cubic are not distinguishable: ratio of goodputs 1.00 (95 % CI"
        ),
        "{line}"
    );
}

#[test]
fn a_whole_comparison_has_a_line_for_each_column_but_the_first_and_for_each_mix() {
    let spec = example(&["bbr3+cubic", "cubic", "reno", "bbr1", "cubic+cubic"]);
    let outcome = crate::run(&spec, 2, &|_| {}).unwrap();
    let columns: Vec<_> = outcome.columns.iter().map(|c| ColumnFigures::of(c, &spec)).collect();
    let verdict = verdict(&spec, &columns);
    let starts: Vec<&str> = verdict.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(starts, ["reno", "bbr1", "cubic+cubic", "In"], "{verdict}");
}
