//! System calls without a safe wrapper: the only unsafe code of this crate.
#![expect(unsafe_code, reason = "each block says why it is sound")]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::ioctl::{self, Setter, opcode};
use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// Moves the calling thread into a new network namespace.
pub(crate) fn unshare_network() -> io::Result<()> {
    // SAFETY: the call is unsafe because of `UnshareFlags::FILES`, which is not used.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.map_err(io::Error::from)
}

/// `struct ifreq` of netdevice(7), as `TUNSETIFF` reads it.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; libc::IFNAMSIZ],
    flags: libc::c_short,
    rest: [u8; 22],
}

/// `TUNSETIFF` of linux/if_tun.h.
const SET_INTERFACE: ioctl::Opcode = opcode::write::<libc::c_int>(b'T', 202);

/// Turns `file`, a freshly opened `/dev/net/tun`, into the TUN device `name` of the calling
/// thread's network namespace. Packets have no device header (`IFF_NO_PI`) and are at most as large
/// as its MTU: without `IFF_VNET_HDR` the kernel segments and checksums them first.
pub(crate) fn make_tun(file: &File, name: &str) -> io::Result<()> {
    let mut request = InterfaceRequest {
        name: [0; libc::IFNAMSIZ],
        flags: (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short,
        rest: [0; 22],
    };
    // The last byte stays zero.
    for (to, from) in request.name[..libc::IFNAMSIZ - 1].iter_mut().zip(name.bytes()) {
        *to = from;
    }
    // SAFETY: TUNSETIFF reads a `struct ifreq`, and `InterfaceRequest` has its layout (40 bytes).
    let request = unsafe { Setter::<SET_INTERFACE, InterfaceRequest>::new(request) };
    // SAFETY: the file is open during the call, and the kernel checks that it is a TUN device.
    unsafe { ioctl::ioctl(file.as_fd(), request) }.map_err(io::Error::from)
}

/// Gives the calling thread real-time priority (`SCHED_FIFO`).
pub(crate) fn run_first() -> io::Result<()> {
    // SAFETY: a struct of integers. musl's has more of them than Linux reads.
    let mut priority: libc::sched_param = unsafe { std::mem::zeroed() };
    priority.sched_priority = 50;
    // SAFETY: it is the calling thread, and `priority` outlives the call. (musl's `sched_setscheduler` always fails.)
    let result = unsafe {
        libc::pthread_setschedparam(libc::pthread_self(), libc::SCHED_FIFO, &raw const priority)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(result)) }
}

/// Processes started by `command` will be in the network `namespace`; the command is killed when
/// the thread that starts it ends.
pub(crate) fn confine(command: &mut Command, namespace: OwnedFd) {
    let enter_namespace = move || {
        enter(namespace.as_fd())?;
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(io::Error::from)
    };
    // SAFETY: between fork and exec only system calls are made; nothing is allocated or locked.
    unsafe { command.pre_exec(enter_namespace) };
}

/// Moves the calling thread into `namespace`.
pub(crate) fn enter(namespace: BorrowedFd<'_>) -> io::Result<()> {
    move_into_link_name_space(namespace, Some(LinkNameSpaceType::Network)).map_err(io::Error::from)
}
