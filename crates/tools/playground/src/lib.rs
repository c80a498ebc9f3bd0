//! The laboratory in a browser. A page gives the options of `uncork compare` as lines of `name=value` and gets texts.
//!
//! [`setup()`] explains the options, [`race()`] runs the first seed with time series, [`compare()`] runs all seeds. The page
//! calls them as WebAssembly through `exports`, which has no glue code: one input, and outputs by number.

mod compare;
#[cfg(target_family = "wasm")]
pub mod exports;
mod options;
mod race;
mod setup;

pub use compare::{Comparison, compare};
pub use options::Refusal;
pub use race::race;
pub use setup::setup;
