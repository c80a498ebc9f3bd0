//! Two hosts driven by a script of bytes: one reports truthfully, the other does not.
//!
//! The property tests generate scripts, the corpus replays interesting ones, and the fuzzer
//! (`crates/core/cc/fuzz`, which compiles this module) searches for more. In all cases [`Watched`]
//! checks the controller after every call.

pub(crate) mod adversary;
mod script;
mod transitions;
pub(crate) mod truthful;
mod watched;

use uncork_cc::{Algorithm, CcSpec};

pub(crate) use script::Script;
pub(crate) use watched::{Digest, Watched};

/// Every algorithm, without options and with each option.
pub(crate) fn specs() -> Vec<CcSpec> {
    let options = Algorithm::ALL.into_iter().flat_map(|algorithm| {
        algorithm.options().iter().map(move |option| {
            let text = format!("{}:{option}", algorithm.name());
            text.parse().expect("an option that the algorithm names")
        })
    });
    Algorithm::ALL.map(CcSpec::new).into_iter().chain(options).collect()
}
