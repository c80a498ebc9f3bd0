//! The tables of `docs/evidence/l4s.md`: `prague` and what it must show. They take minutes:
//! `UPDATE_DOCS=1 cargo test --release -p uncork-sim --test all l4s -- --ignored --nocapture` writes them.

mod acks;
mod counts;
mod formulas;
mod kernel;
mod low_queue;
mod mixes;
mod rtt;
mod steps;
mod world;

use std::sync::atomic::AtomicBool;

use uncork_sim::parallel::map_until;

use crate::common::page::{agree, page};

/// Compares a table with the page, or writes it.
fn publish(name: &str, lines: &str) {
    println!("{name}\n{lines}\n");
    agree(&page("docs/evidence/l4s.md"), name, lines);
}

/// The results of `of_seed` for the seeds 1 to `seeds`, computed on all processors.
fn of_seeds<T: Send + Sync>(seeds: u64, of_seed: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    map_until(&AtomicBool::new(false), seeds as usize, jobs, |index| of_seed(index as u64 + 1))
}

/// The mean over seeds, with the least and the largest value if they differ as shown.
fn spread(values: impl IntoIterator<Item = f64>, digits: usize) -> String {
    let values: Vec<f64> = values.into_iter().collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let show = |value: f64| format!("{value:.digits$}");
    let [low, high] =
        [f64::min, f64::max].map(|pick| show(values.iter().copied().fold(mean, pick)));
    let mean = show(mean);
    if low == high { mean } else { format!("{mean} ({low} to {high})") }
}
