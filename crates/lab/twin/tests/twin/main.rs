//! Twins of records: those of a simulated server, of the kernel, and of random paths.

mod from_logs;
mod of_kernel;
mod twin_truth;

use uncork_lab::{NoFiles, Scenario};

/// Parses a valid scenario with `set`, given as `key=value`.
fn scenario(text: &str, set: &[&str]) -> Scenario {
    let set = set.iter().map(|set| set.split_once('=').expect("key=value"));
    let set: Vec<_> = set.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    Scenario::parse("test", text, &set, &NoFiles)
        .unwrap_or_else(|error| panic!("{}", error.render("test.toml", false)))
}
