//! An emulation, from its start to its end.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use rustix::event::{EventfdFlags, eventfd};

use crate::address::Addresses;
use crate::clock::Clock;
use crate::error::CARRY;
use crate::forwarder::{self, Devices, Forwarded};
use crate::{EmuError, EmulationSpec, Namespace, PacketRecord, Report, leftovers};

/// Namespaces, and a running path between them once it has begun. Stops when dropped.
#[derive(Debug)]
pub struct Emulation {
    spec: EmulationSpec,
    server: Namespace,
    clients: Vec<Namespace>,
    stop: Arc<OwnedFd>,
    /// Until it begins.
    devices: Option<Devices>,
    thread: Option<JoinHandle<io::Result<Forwarded>>>,
}

impl Emulation {
    /// Creates the namespaces of `spec` and starts carrying packets between them.
    ///
    /// # Errors
    ///
    /// If `spec` cannot be emulated, in general or on this machine.
    pub fn start(spec: &EmulationSpec) -> Result<Self, EmuError> {
        let mut emulation = Self::prepare(spec)?;
        emulation.begin(Clock::start())?;
        Ok(emulation)
    }

    /// Creates the namespaces of `spec`. Packets wait, and the path's time is stopped, until
    /// [`Self::begin`].
    ///
    /// # Errors
    ///
    /// As for [`Self::start`].
    pub fn prepare(spec: &EmulationSpec) -> Result<Self, EmuError> {
        spec.check()?;
        let (server, server_device) = Namespace::create(Addresses::SERVER, spec.mtu)?;
        let (mut clients, mut devices) =
            (Vec::new(), Devices { server: server_device, clients: Vec::new() });
        for host in 0..spec.hosts.len() as u32 {
            let (namespace, device) = Namespace::create(Addresses::client(host), spec.mtu)?;
            clients.push(namespace);
            devices.clients.push(device);
        }
        let stop = eventfd(0, EventfdFlags::CLOEXEC)
            .map_err(|error| EmuError::system("make an eventfd", error.into()))?;
        let (stop, devices) = (Arc::new(stop), Some(devices));
        Ok(Self { spec: spec.clone(), server, clients, stop, devices, thread: None })
    }

    /// Starts carrying packets, if it has not started yet. `clock` is the path's: what changes on it
    /// changes at these times.
    ///
    /// # Errors
    ///
    /// If no thread can be started.
    pub fn begin(&mut self, clock: Clock) -> Result<(), EmuError> {
        let Some(devices) = self.devices.take() else { return Ok(()) };
        let (spec, stopped) = (self.spec.clone(), Arc::clone(&self.stop));
        let thread = thread::Builder::new()
            .name("uncork-path".to_owned())
            .spawn(move || forwarder::forward(&spec, &devices, clock, &stopped))
            .map_err(|error| EmuError::system("start a thread", error))?;
        self.thread = Some(thread);
        Ok(())
    }

    /// The first client.
    pub fn client(&self) -> &Namespace {
        &self.clients[0]
    }

    /// All hosts on the client side.
    pub fn hosts(&self) -> &[Namespace] {
        &self.clients
    }

    /// The servers' host.
    pub fn server(&self) -> &Namespace {
        &self.server
    }

    /// The specification.
    pub fn spec(&self) -> &EmulationSpec {
        &self.spec
    }

    /// Whether packets are being forwarded. Forwarding stops if a device is removed.
    pub fn is_at_work(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Stops. Packets in flight are lost, and processes started by commands are killed.
    ///
    /// # Errors
    ///
    /// If forwarding failed, or the devices' drop counters cannot be read.
    pub fn stop(self) -> Result<Report, EmuError> {
        self.stop_with_packets().map(|(report, _)| report)
    }

    /// [`Self::stop`], plus the fate of each packet in order of arrival, if recorded. Replaying
    /// them on a [`crate::Network`] gives the same fates.
    ///
    /// # Errors
    ///
    /// As for [`Self::stop`].
    pub fn stop_with_packets(mut self) -> Result<(Report, Vec<PacketRecord>), EmuError> {
        let failed = |error| EmuError::system(CARRY, error);
        // The devices disappear with the thread, so read their counters first.
        let up = self.clients.iter().map(Namespace::overruns).sum::<io::Result<u64>>();
        let overruns = [self.server.overruns().map_err(failed)?, up.map_err(failed)?];
        let carried = self.join().unwrap_or_else(|| Err(io::Error::other("it never began")));
        let carried = carried.map_err(failed)?;
        let report = Report::new(&self.spec, &carried, overruns);
        Ok((report, carried.record.into_packets()))
    }

    fn join(&mut self) -> Option<io::Result<Forwarded>> {
        let thread = self.thread.take();
        if thread.is_none() && self.devices.take().is_none() {
            return None; // It has been stopped already.
        }
        // Writing to an eventfd only fails if it is full.
        let _ = rustix::io::write(&*self.stop, &1_u64.to_ne_bytes());
        // Errors mean that the process has already exited.
        let hosts = self.clients.iter().chain([&self.server]);
        let inodes: Vec<u64> = hosts.filter_map(|host| leftovers::inode(host).ok()).collect();
        let _ = leftovers::kill_within(&inodes);
        thread.map(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }
}

impl Drop for Emulation {
    fn drop(&mut self) {
        let _ = self.join();
    }
}
