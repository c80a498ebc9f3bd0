//! Files and directories that only their owner can change, and locks on them.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

pub mod lock;
mod private;

pub use private::{directory, is_trusted, not_private, not_trusted, read, replace, resolved};
