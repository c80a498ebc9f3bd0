//! The controllers of `uncork-cc` in the Linux kernel: the same source, compiled to BPF, as a TCP
//! congestion control that sockets choose by name (`uncork_bbr3`).
//!
//! The objects in `bpf/` are committed, so that neither users nor `cargo build` need a BPF toolchain;
//! `build-bpf.sh` builds them anew and says whether they are what the sources give.
#![cfg(target_os = "linux")]

mod algorithm;
mod btf;
mod error;
mod host;
mod load;
mod pin;
mod sys;
mod trace;

pub use algorithm::Algorithm;
pub use error::{Error, Missing};
pub use host::{available, default, fall_back};
pub use load::{Loaded, VerifiedProgram, probe};
pub use pin::{DIRECTORY, Pins};
pub use trace::Trace;
