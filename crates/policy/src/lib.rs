//! Which congestion controller for which connection.
//!
//! A [`Policy`] is read from one TOML file (`docs/policy.md`): rules in order, and experiments that
//! give a deterministic share of the clients one of several arms. [`Policy::decide`] takes what is
//! known of a connection so far, its [`Facts`], and says whether more knowledge could still change
//! the [`Decision`]: a server asks when it accepts a connection, and again with the first request.
//! [`Policy::explain`] tells why.
//!
//! Nothing here reads a clock, a file or a socket; deciding does not allocate.
#![forbid(unsafe_code)]

mod condition;
mod country;
mod decision;
mod experiment;
mod explain;
mod facts;
mod glob;
mod headers;
mod origin;
mod policy;
mod prefix;
mod read;
mod settings;
mod verdict;
mod warnings;
mod window;

pub use country::{Country, NoCountry};
pub use decision::{Assignment, By, Decision};
pub use experiment::{BUCKETS, SLOTS};
pub use explain::{Asked, ConditionTrace, Explanation, RuleTrace};
pub use facts::{Fact, Facts};
pub use headers::Headers;
pub use origin::{Origin, OriginError, Origins};
pub use policy::{Policy, When};
pub use settings::Settings;
pub use uncork_cc::{InitialWindow, InitialWindowError};
pub use uncork_config::ConfigError as PolicyError;
pub use verdict::Verdict;
pub use window::{NoTime, UnixTime};
