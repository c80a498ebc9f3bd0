//! Start, configuration, policy, reload, and what operators see.
#![cfg(target_os = "linux")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../../../../lab/report/tests/browser/driver.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "pages here come from a server, not from files")]
mod driver;
#[path = "../common/frames.rs"]
mod frames;
#[path = "../../../../core/policy/tests/policy/mmdb.rs"]
mod mmdb;
#[path = "../common/talker.rs"]
mod talker;
#[path = "../common/versions.rs"]
mod versions;

mod admin;
mod admin_page;
mod check;
mod hosts;
mod networks;
mod policy;
mod reload;
mod shutdown;
