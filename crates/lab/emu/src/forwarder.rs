//! The thread that forwards packets at their due times.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use uncork_path::{Body, Cause, Direction, Ecn, Fate, Packet};
use uncork_units::{Time, TimeDelta};

use crate::address::{Addresses, client_host};
use crate::clock::{Clock, cpu_time};
use crate::flows::FlowKey;
use crate::network::{Arrival, Network};
use crate::packet::{self, PacketFields};
use crate::pool::{Pool, Slot};
use crate::record::Record;
use crate::tally::{Queueing, Tallies};
use crate::tun::Tun;
use crate::{EmulationSpec, sys};

/// Maximum packets read from a device before the others are checked.
const BATCH: usize = 64;

/// Setting a timer takes about 10 us in a virtual machine. Packets due within this time of each
/// other leave together, at most this much late, instead of keeping a core busy with timers.
const MIN_SLEEP: TimeDelta = TimeDelta::from_micros(30);

/// Metadata of a packet in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ForwardedPacket {
    slot: Slot,
    /// Index of the host on the client side.
    host: u32,
    came: Time,
    /// The ECN field of its header.
    ecn: Ecn,
    /// Its number in the record, if recording.
    number: u64,
    has_data: bool,
    /// Its queueing delay so far, once it has crossed a queue.
    queued_for: Option<TimeDelta>,
}

impl Body for ForwardedPacket {
    fn crossed(&mut self, waited: TimeDelta) {
        self.queued_for = Some(self.queued_for.unwrap_or(TimeDelta::ZERO) + waited);
    }
}

/// The devices of all hosts: the server side's and the client side's.
#[derive(Debug)]
pub(crate) struct Devices {
    pub(crate) server: Tun,
    pub(crate) clients: Vec<Tun>,
}

/// The results of the thread.
#[derive(Debug)]
pub(crate) struct Forwarded {
    pub(crate) tallies: Tallies,
    pub(crate) queueing: Queueing,
    pub(crate) network: Network<ForwardedPacket>,
    pub(crate) record: Record,
    pub(crate) stopped: Time,
    /// CPU time used.
    pub(crate) cpu: TimeDelta,
    /// Whether it ran with real-time priority.
    pub(crate) ran_first: bool,
}

/// Forwards packets until `stop` is readable.
pub(crate) fn forward(
    spec: &EmulationSpec,
    devices: &Devices,
    clock: Clock,
    stop: &OwnedFd,
) -> io::Result<Forwarded> {
    let ran_first = spec.first && sys::run_first().is_ok();
    // If this fails, timers are late by the default slack of 50 us.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let mut network = Network::new(spec);
    let mut exit = Exit {
        devices,
        pool: Pool::new(spec.mtu as usize),
        tallies: Tallies::of_hosts(devices.clients.len()),
        queueing: Queueing::new(spec.report_queueing),
        record: Record::new(spec.record),
        clock,
    };
    let mut waiting = PacketWaiter::new(devices, stop, spec.busy_wait);
    while waiting.wait(clock, network.paths.next_arrival())? {
        let now = clock.now();
        network
            .paths
            .advance(now, &mut |direction, packet, fate| exit.settle(direction, &packet, fate));
        for index in 0..=devices.clients.len() {
            if waiting.is_readable(index) {
                take_in(index, &mut network, &mut exit)?;
            }
        }
    }
    let Exit { tallies, queueing, record, .. } = exit;
    let (stopped, cpu) = (clock.now(), cpu_time());
    Ok(Forwarded { tallies, queueing, network, record, stopped, cpu, ran_first })
}

/// Reads the packets waiting at a device; index 0 is the server side.
fn take_in(
    index: usize,
    network: &mut Network<ForwardedPacket>,
    exit: &mut Exit<'_>,
) -> io::Result<()> {
    let devices = exit.devices;
    let (device, direction) = match index.checked_sub(1) {
        None => (&devices.server, Direction::Down),
        Some(host) => (&devices.clients[host], Direction::Up),
    };
    for _ in 0..BATCH {
        let slot = exit.pool.take();
        let mut length = None;
        exit.pool.fill(slot, |buffer| {
            length = device.receive(buffer)?;
            Ok::<_, io::Error>(length.unwrap_or(0))
        })?;
        if length.is_none() {
            exit.pool.give_back(slot);
            return Ok(());
        }
        // First process everything that happens before the packet arrives.
        let now = exit.clock.now();
        network
            .paths
            .advance(now, &mut |direction, packet, fate| exit.settle(direction, &packet, fate));
        match exit.read(slot, now, direction, index) {
            Some(arrival) => network.offer(now, arrival, &mut |direction, packet, fate| {
                exit.settle(direction, &packet, fate);
            }),
            None => exit.pool.give_back(slot),
        }
    }
    Ok(())
}

/// The exit of the path, and its counters.
struct Exit<'a> {
    devices: &'a Devices,
    pool: Pool,
    tallies: Tallies,
    queueing: Queueing,
    record: Record,
    clock: Clock,
}

impl Exit<'_> {
    /// The path's view of a packet from the device with index `from`; `None` if the packet is not
    /// for the path.
    fn read(
        &mut self,
        slot: Slot,
        now: Time,
        direction: Direction,
        from: usize,
    ) -> Option<Arrival<ForwardedPacket>> {
        let tally = self.tallies.of_mut(direction);
        let bytes = self.pool.packet(slot);
        let Some(header) = packet::parse(bytes) else {
            tally.malformed += 1;
            return None;
        };
        let Some(flow) = flow(&header, direction, from, self.devices.clients.len()) else {
            tally.stray += 1;
            return None;
        };
        let bytes = bytes.len() as u32;
        tally.offer(now, bytes);
        let ecn = header.ecn;
        let number = self.record.begin(now, Arrival { direction, flow, bytes, ecn, body: () });
        let (host, has_data) = (flow.host, header.has_data);
        let body =
            ForwardedPacket { slot, host, came: now, ecn, number, has_data, queued_for: None };
        Some(Arrival { direction, flow, bytes, ecn, body })
    }

    /// A packet arrives or has been dropped.
    fn settle(&mut self, direction: Direction, packet: &Packet<ForwardedPacket>, fate: Fate) {
        let ForwardedPacket { slot, host, came, ecn, number, has_data, queued_for } = packet.body;
        self.record.end(number, fate, packet.ecn);
        // Packets lost behind the links count too, because random loss is independent of the wait.
        let crossed = matches!(fate, Fate::Arrives(_) | Fate::Dropped(Cause::Loss));
        if let Some(waited) = queued_for.filter(|_| crossed && has_data) {
            self.queueing.record(packet.flow, waited);
        }
        match fate {
            Fate::Dropped(cause) => self.tallies.of_mut(direction).drop(cause, host),
            Fate::Arrives(due) => {
                let bytes = self.pool.packet(slot);
                let marked = packet.ecn == Ecn::Ce && ecn != Ecn::Ce;
                if packet.ecn != ecn {
                    packet::set_ecn(bytes, packet.ecn);
                }
                let device = match direction {
                    Direction::Up => &self.devices.server,
                    Direction::Down => &self.devices.clients[host as usize],
                };
                let delivered = device.deliver(bytes).is_ok();
                let tally = self.tallies.of_mut(direction);
                if delivered {
                    tally.deliver(self.clock.now(), came, due, packet.bytes);
                    tally.marked += u64::from(marked);
                } else {
                    tally.refused += 1;
                }
            }
        }
        self.pool.give_back(slot);
    }
}

/// The flow of a packet from the device with index `from`; `None` unless it is addressed from that
/// host to a host of the other side.
fn flow(header: &PacketFields, direction: Direction, from: usize, hosts: usize) -> Option<FlowKey> {
    let (client, server, [client_port, server_port]) = match direction {
        Direction::Down => {
            let [source, destination] = header.ports;
            (header.destination, header.source, [destination, source])
        }
        Direction::Up => (header.source, header.destination, header.ports),
    };
    let host = client_host(client).filter(|host| (*host as usize) < hosts)?;
    let is_of_device = direction == Direction::Down || host as usize + 1 == from;
    let is_ours = is_of_device && Addresses::SERVER.have(server);
    is_ours.then(|| FlowKey {
        host,
        v6: client.is_ipv6(),
        protocol: header.protocol,
        client_port,
        server_port,
    })
}

/// Waits for packets, the path's next event, or the end.
struct PacketWaiter<'a> {
    /// The devices, followed by the stop event.
    fds: Vec<PollFd<'a>>,
    busy: TimeDelta,
}

impl<'a> PacketWaiter<'a> {
    fn new(devices: &'a Devices, stop: &'a OwnedFd, busy: TimeDelta) -> Self {
        let tuns = std::iter::once(&devices.server).chain(&devices.clients);
        let fds = tuns.map(AsFd::as_fd).chain([stop.as_fd()]);
        Self { fds: fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect(), busy }
    }

    /// Waits until `next` at most. Returns false at the end.
    fn wait(&mut self, clock: Clock, next: Time) -> io::Result<bool> {
        let timeout = (next < Time::NEVER).then(|| timespec(self.nap(next.since(clock.now()))));
        match poll(&mut self.fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(!self.fds.last().is_some_and(|stop| stop.revents().contains(PollFlags::IN)))
    }

    /// How long to sleep if something is due in `left`.
    fn nap(&self, left: TimeDelta) -> TimeDelta {
        match self.busy {
            TimeDelta::ZERO if left.is_zero() => TimeDelta::ZERO,
            TimeDelta::ZERO => left.max(MIN_SLEEP),
            busy => TimeDelta::from_nanos(left.as_nanos().saturating_sub(busy.as_nanos())),
        }
    }

    /// Whether the device is readable or gone.
    fn is_readable(&self, index: usize) -> bool {
        self.fds.get(index).is_some_and(|fd| !fd.revents().is_empty())
    }
}

fn timespec(span: TimeDelta) -> Timespec {
    let nanos = span.as_nanos();
    Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as i64 }
}
