//! Chooses the congestion controller of each connection.
//!
//! A [`Policy`] is a TOML file (`docs/reference/policy.md`) of rules in order, and of experiments that assign a
//! deterministic share of the clients to one of several arms. [`Policy::decide`] takes the [`Facts`] known
//! about a connection so far, and reports whether more facts could still change the [`Decision`]: a server
//! calls it when it accepts a connection, and again with the first request. [`Policy::explain`] shows the
//! evaluation of every rule. A generated table of networks ([`Policy::table_file`]) is a file of its own, for
//! which a rule may ask.
//!
//! This crate reads no clock, file or socket; deciding does not allocate.
#![forbid(unsafe_code)]

mod active;
mod condition;
mod country;
mod decision;
mod document;
mod experiment;
mod explain;
mod facts;
mod files;
mod flat;
#[cfg(test)]
mod for_python;
mod glob;
mod headers;
mod origin;
mod policy;
mod prefix;
mod prefix_map;
mod public_key;
mod read;
mod release;
mod settings;
mod shadowed;
mod signed;
mod table;
mod table_use;
mod verdict;
mod warnings;
mod window;

pub use active::{ActivePolicy, OtherProgram};
pub use country::{Country, CountryError};
pub use decision::{Assignment, By, Decision};
pub use document::ExplanationDocument;
pub use experiment::{BUCKETS, SLOTS, bucket, slot};
pub use explain::{Asked, ConditionTrace, Explanation, RuleTrace};
pub use facts::{Fact, Facts};
pub use files::FileError;
pub use flat::{
    Candidate, Flat, FlatArm, FlatError, FlatExperiment, FlatNetwork, FlatRule, FlatWindow,
    Listeners, NetworkDecision, NetworksAsked, Outcome,
};
pub use headers::Headers;
pub use origin::{Origin, OriginError, Origins};
pub use policy::{Policy, When};
pub use prefix::{Prefix, PrefixError, Prefixes};
pub use prefix_map::PrefixMap;
pub use public_key::{PublicKey, sha256};
pub use release::Release;
pub use settings::{InitialRate, MAX_WINDOW, MSS_BYTES, Settings};
pub use signed::{SignatureError, Signed};
pub use table::{TableError, TableText};
pub use uncork_cc::{EcnMode, InitialWindow, InitialWindowError};
pub use uncork_config::ConfigError as PolicyError;
pub use verdict::Verdict;
pub use window::{TimeError, UnixTime};
