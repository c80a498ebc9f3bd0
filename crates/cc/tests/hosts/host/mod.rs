//! Two hosts that act out a script of bytes: one keeps honest books, the other lies.
//!
//! The property tests make up such scripts, the corpus replays some that were worth keeping, and the
//! fuzzer (`crates/cc/fuzz`, which compiles this very module) searches for more. Whoever drives a
//! host, [`Watched`] looks at the controller after every call.

pub(crate) mod adversary;
mod script;
mod transitions;
pub(crate) mod truthful;
mod watched;

use uncork_cc::{Algorithm, CcSpec};

pub(crate) use script::Script;
pub(crate) use watched::{Digest, Watched};

/// Every algorithm, without options and with each of them.
pub(crate) fn specs() -> Vec<CcSpec> {
    let options = Algorithm::ALL.into_iter().flat_map(|algorithm| {
        algorithm.options().iter().map(move |option| {
            let text = format!("{}:{option}", algorithm.name());
            text.parse().expect("an option that the algorithm names")
        })
    });
    Algorithm::ALL.map(CcSpec::new).into_iter().chain(options).collect()
}
