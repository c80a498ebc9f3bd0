//! Files and directories that only their owner can change, and locks on them.
//!
//! [`releases`] refuses a signed policy that is older than one that was accepted.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

pub mod lock;
mod private;
pub mod releases;

pub use private::{
    directory, is_trusted, not_private, not_trusted, read, rename_flushed, replace, resolved,
};
