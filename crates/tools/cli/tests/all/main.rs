//! The tests that need no process or kernel of their own. One program, because each links the whole crate.
#[cfg(target_os = "linux")]
mod bad_input;
#[path = "../common/mod.rs"]
mod common;
mod compare;
#[cfg(target_os = "linux")]
mod deploy;
#[cfg(target_os = "linux")]
mod deploy_prometheus;
#[cfg(target_os = "linux")]
mod emu;
mod experiment;
#[cfg(target_os = "linux")]
mod fleet;
#[cfg(target_os = "linux")]
mod full_disk;
#[cfg(target_os = "linux")]
mod host_change;
#[cfg(target_os = "linux")]
mod host_course;
#[cfg(target_os = "linux")]
mod host_doctor;
#[cfg(target_os = "linux")]
mod host_policy;
#[cfg(target_os = "linux")]
mod host_prove;
#[cfg(target_os = "linux")]
mod host_watch;
mod lab;
mod lab_directory;
#[cfg(target_os = "linux")]
mod netns;
#[cfg(target_os = "linux")]
mod netns_commands;
#[cfg(target_os = "linux")]
mod open_files;
mod output;
#[cfg(target_os = "linux")]
mod play;
mod policy;
mod presets;
mod quic_sim;
mod readme;
mod schemas;
#[cfg(target_os = "linux")]
mod serve;
#[cfg(target_os = "linux")]
mod serve_config;
#[cfg(target_os = "linux")]
mod serve_faults;
#[cfg(target_os = "linux")]
mod serve_handover;
#[cfg(target_os = "linux")]
mod serve_policy;
#[cfg(target_os = "linux")]
mod ship;
mod sweeps;
