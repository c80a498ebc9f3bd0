//! Equal specifications give equal results; different seeds do not.

use crate::common::case;

#[test]
fn equal_seeds_give_equal_runs() {
    let mix = ["bbr3", "cubic", "bbr1", "reno"];
    let case = case(50, 30, 1000).loss("0.2%");
    let [first, again, other] = [7, 7, 8].map(|seed| case.flows(&mix, 20, seed).result);
    assert_eq!(first, again);
    assert_ne!(first, other);
}

/// Recording the series must not change the results.
#[test]
fn series_does_not_change_the_run() {
    let mut often = case(50, 30, 1000).loss("0.2%");
    let rarely = often.clone();
    often.sample_every = uncork_units::TimeDelta::from_micros(500);
    let [watched, alone] = [often, rarely].map(|case| case.flow("bbr3", 10, 3).result.flows);
    assert_eq!(watched, alone);
}
