//! Records, counters and figures of connections over all protocols.
#![cfg(target_os = "linux")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/frames.rs"]
mod frames;
#[path = "../common/late.rs"]
mod late;
#[path = "../common/talker.rs"]
mod talker;

mod arrival;
mod http3;
mod shared;
mod tcp;
