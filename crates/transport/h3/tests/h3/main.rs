//! Servers and clients of HTTP/3: exchanges, violations, priorities, arbitrary bytes.
//! One program, because each links the whole stack.
#![cfg(target_os = "linux")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../../../quic-io/tests/common/emulation.rs"]
mod emulation;

mod exchange;
mod malformed;
mod priority;
mod scripts;
mod wire;
