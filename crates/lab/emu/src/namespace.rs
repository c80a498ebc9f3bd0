//! Network namespaces, one per host.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Command;
use std::thread;

use rustix::io::Errno;

use crate::address::{Addresses, NETWORKS};
use crate::error::{EmuError, NEW_NAMESPACE};
use crate::netlink::RouteSocket;
use crate::tun::{NAME, Tun};
use crate::{leftovers, sys};

/// A host: a network namespace with a loopback device and a device to the path. It disappears once
/// this is dropped and no process runs in it.
#[derive(Debug)]
pub struct Namespace {
    fd: OwnedFd,
    addresses: Addresses,
}

/// Maximum packets waiting for the path's thread. Losses here are counted separately, because they
/// are not part of the path. 16 ms of 1500-byte packets at 12 Gbit/s.
const WAITING: u32 = 16_384;

impl Namespace {
    /// A host with these addresses and its device.
    pub(crate) fn create(addresses: Addresses, mtu: u32) -> Result<(Self, Tun), EmuError> {
        // Needs its own thread, because the thread moves into the namespace.
        let (fd, tun, v6) = on_a_thread(|| -> Result<(OwnedFd, Tun, bool), EmuError> {
            sys::unshare_network().map_err(|error| EmuError::system(NEW_NAMESPACE, error))?;
            let fd = File::open("/proc/thread-self/ns/net")
                .map_err(|error| EmuError::system("open a network namespace", error))?;
            let tun = Tun::open()?;
            let v6 = configure(addresses, mtu)
                .map_err(|error| EmuError::system("give a TUN device its address", error))?;
            Ok((fd.into(), tun, v6))
        })?;
        let v6 = addresses.v6.filter(|_| v6);
        Ok((Self { fd, addresses: Addresses { v6, ..addresses } }, tun))
    }

    /// Its addresses.
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// Moves the calling thread into the namespace: sockets it opens from now on belong to it.
    ///
    /// # Errors
    ///
    /// The system's error.
    pub fn enter(&self) -> io::Result<()> {
        sys::enter(self.fd.as_fd())
    }

    /// Runs `work` in the namespace on a separate thread.
    ///
    /// # Errors
    ///
    /// If the namespace cannot be entered.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        on_a_thread(|| self.enter().map(|()| work()))
    }

    /// A command that will run in the namespace. The thread that starts it must outlive it: when
    /// that thread ends, the command is killed.
    ///
    /// # Errors
    ///
    /// If no file descriptor is available.
    pub fn command(&self, program: impl AsRef<OsStr>) -> io::Result<Command> {
        let mut command = Command::new(program);
        command.env(leftovers::VARIABLE, leftovers::mark(&self.fd)?);
        sys::confine(&mut command, self.fd.try_clone()?);
        Ok(command)
    }

    /// Makes kernel TCP use the controller `cc` for all new connections with `peer`, from any
    /// program. `TCP_CONGESTION` set by programs has no effect on them.
    ///
    /// # Errors
    ///
    /// If the kernel has no such controller, or the namespace cannot be entered.
    pub fn control_congestion(&self, peer: Addresses, cc: &str) -> io::Result<()> {
        let v6 = peer.v6.filter(|_| self.addresses.v6.is_some());
        self.run(|| {
            let mut netlink = RouteSocket::open()?;
            let device = netlink.device(NAME)?.index;
            netlink.add_route(device, (peer.v4.into(), 32), Some(cc))?;
            v6.map_or(Ok(()), |v6| netlink.add_route(device, (v6.into(), 128), Some(cc)))
        })?
    }

    /// Packets lost because too many waited for the path's thread.
    pub(crate) fn overruns(&self) -> io::Result<u64> {
        self.run(|| Ok(RouteSocket::open()?.device(NAME)?.overruns))?
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn on_a_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| match scope.spawn(work).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// Configures the calling thread's namespace. Returns whether it has IPv6.
fn configure(addresses: Addresses, mtu: u32) -> io::Result<bool> {
    let mut netlink = RouteSocket::open()?;
    let loopback = netlink.device("lo")?.index;
    netlink.set_up(loopback, None)?;
    let device = netlink.device(NAME)?.index;
    // Fails without IPv6 or on an old kernel; then the kernel sends router solicitations, which are
    // harmless.
    let _ = netlink.no_link_local(device);
    netlink.set_up(device, Some((mtu, WAITING)))?;
    let [v4, v6] = NETWORKS;
    netlink.add_address(device, addresses.v4.into())?;
    netlink.add_route(device, v4, None)?;
    let Some(address) = addresses.v6 else { return Ok(false) };
    match netlink.add_address(device, address.into()) {
        Ok(()) => netlink.add_route(device, v6, None).map(|()| true),
        Err(error) if lacks_v6(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The kernel has no IPv6, or it is disabled.
fn lacks_v6(error: &io::Error) -> bool {
    let without = [Errno::OPNOTSUPP, Errno::AFNOSUPPORT, Errno::ACCESS];
    without.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}
