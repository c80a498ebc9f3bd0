//! The controllers in this machine's kernel: their verification, and the same decisions as the native
//! controllers.

mod change;
mod ect1;
mod episodes;
#[expect(unsafe_code, reason = "the kernel's records are read as what they are")]
#[allow(
    clippy::inline_always,
    unreachable_pub,
    dead_code,
    reason = "a crate for BPF: see the file"
)]
#[path = "../../bpf/src/glue.rs"]
mod glue;
mod record;
mod replay;
mod resume;
mod traffic;
mod truth;
mod verify;

use std::sync::{Mutex, MutexGuard, PoisonError};

use uncork_kernel::{Algorithm, Error, Loaded};
use uncork_testkit::{Capability, not_run};

/// The kernel has one name for each controller: one test of it at a time.
fn alone(algorithm: Algorithm) -> MutexGuard<'static, ()> {
    static NAMES: [Mutex<()>; Algorithm::ALL.len()] = [const { Mutex::new(()) }; _];
    let index = Algorithm::ALL.iter().position(|one| *one == algorithm).expect("it is one of all");
    NAMES[index].lock().unwrap_or_else(PoisonError::into_inner)
}

/// What `load` returns; `None`, with a message, if this machine cannot load BPF programs. A refusal by the
/// verifier is a failure: the programs must suit every kernel that can load any.
fn loaded(load: fn(Algorithm) -> Result<Loaded, Error>, algorithm: Algorithm) -> Option<Loaded> {
    match load(algorithm) {
        Ok(loaded) => Some(loaded),
        Err(error @ Error::Missing(_)) => {
            not_run(Capability::Bpf, &error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}
