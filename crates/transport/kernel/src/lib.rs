//! The controllers of `uncork-cc` in the Linux kernel: the same source, compiled to BPF, as a TCP
//! congestion control that sockets choose by name (`uncork_bbr3`).
//!
//! The objects in `bpf/` are committed, so that neither users nor `cargo build` need a BPF toolchain;
//! `build-bpf.sh` builds them again and compares them with the sources.
//!
//! [`Object`], [`Map`], [`Program`] and [`CgroupLink`] load other objects, too.
#![cfg(target_os = "linux")]

mod algorithm;
mod btf;
mod directory;
mod earlier_default;
mod egress;
mod error;
mod host;
mod layout;
mod load;
mod map;
mod object;
mod pin;
mod program;
mod registered;
mod registration;
mod resume;
mod ring;
mod status;
mod sys;
mod trace;

pub use algorithm::Algorithm;
pub use directory::{has_pin_directory, make_pin_directory};
pub use egress::Ect1Devices;
pub use error::{Error, Missing};
pub use host::{available, default, set_default};
pub use layout::{Layout, MemberLayout, check_object, member_size};
pub use load::{LoadOptions, Loaded, VerifiedProgram, probe};
pub use map::Map;
pub use object::{Maps, Object, ProgramKind};
pub use pin::{DIRECTORY, Pins, Removed, is_registered};
pub use program::{CgroupLink, Program, programs_at};
pub use registration::Registration;
pub use resume::{ResumeNetworks, ResumeStatus};
pub use ring::Ring;
pub use status::{ControllerStatus, KernelStatus};
pub use sys::{processors, tai_offset};
pub use trace::Trace;
