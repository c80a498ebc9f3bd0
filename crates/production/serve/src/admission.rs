//! What clients hold, by their networks, and who has to go when it is too much.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::Notify;

use crate::guarded::guarded;
use crate::limits::Limits;

/// Memory that counts for a connection without bodies: TLS, HTTP and buffers.
const CONNECTION: u64 = 32 * 1024;
/// Memory that counts for a response without its body.
const RESPONSE: u64 = 4 * 1024;
/// Who has made progress since is not idle, and only ended to save memory.
const IDLE: Duration = Duration::from_secs(1);

/// Bounds the connections and memory of each client network, and of all together. Beyond a bound, the connection without
/// progress for longest is closed: of the same network, or of the network with the most.
#[derive(Debug)]
pub(crate) struct Admission {
    /// Maximum number of connections of a listener over TCP: each needs a descriptor. Over QUIC the maximum is
    /// [`Limits::connections`]: they share a socket.
    tcp_connections: usize,
    epoch: Instant,
    state: Mutex<AdmissionState>,
}

/// What a connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Tcp,
    Quic,
}

#[derive(Debug, Default)]
struct AdmissionState {
    limits: Limits,
    /// Bytes.
    held: u64,
    networks: HashMap<IpAddr, NetworkLoad>,
    next: u64,
}

#[derive(Debug, Default)]
struct NetworkLoad {
    held: u64,
    /// Connections over TCP.
    tcp: usize,
    connections: HashMap<u64, Holder>,
}

#[derive(Debug)]
struct Holder {
    held: u64,
    transport: Transport,
    signals: Arc<ConnectionSignals>,
}

/// Signals from and to a connection.
#[derive(Debug)]
struct ConnectionSignals {
    /// When it made progress last, in nanoseconds of the epoch.
    progress: AtomicU64,
    end: Notify,
}

/// A connection's place.
#[derive(Debug)]
pub(crate) struct Claim {
    admission: Arc<Admission>,
    network: IpAddr,
    number: u64,
    signals: Arc<ConnectionSignals>,
}

/// Memory that a connection holds until this is dropped.
#[derive(Debug)]
pub(crate) struct MemoryGuard {
    claim: Arc<Claim>,
    bytes: u64,
}

impl Admission {
    pub(crate) fn new(limits: &Limits, tcp_connections: usize, epoch: Instant) -> Self {
        let state = AdmissionState { limits: *limits, ..AdmissionState::default() };
        Self { tcp_connections, epoch, state: Mutex::new(state) }
    }

    /// Holds to other limits from now on.
    pub(crate) fn limit(&self, limits: &Limits) {
        self.state().limits = *limits;
    }

    /// Admits a client's connection. Beyond the network's share, an idle one of the same network is closed for it;
    /// if none is idle, the result is `None`.
    pub(crate) fn admit(
        self: &Arc<Self>,
        client: IpAddr,
        transport: Transport,
        now: Instant,
    ) -> Option<Arc<Claim>> {
        let signals =
            Arc::new(ConnectionSignals { progress: self.nanos(now).into(), end: Notify::new() });
        let mut state = self.state();
        let limits = state.limits;
        let address = network(client, limits.network_bits);
        let network = state.networks.entry(address).or_default();
        let connections = match transport {
            Transport::Tcp => self.tcp_connections,
            Transport::Quic => limits.connections,
        };
        if network.count(transport) as u64 >= limits.connections_of(connections) {
            let idlest = network.idlest(self.idle_before(now), Some(transport))?;
            state.end(address, idlest);
        }
        let number = state.next;
        state.next += 1;
        let holder = Holder { held: 0, transport, signals: Arc::clone(&signals) };
        let network = state.networks.entry(address).or_default();
        network.tcp += usize::from(transport == Transport::Tcp);
        network.connections.insert(number, holder);
        state.add((address, number), CONNECTION);
        drop(state);
        let admission = Arc::clone(self);
        Some(Arc::new(Claim { admission, network: address, number, signals }))
    }

    /// Ends an idle connection of the network with the most connections, to make room for one.
    pub(crate) fn make_room(&self, transport: Transport, now: Instant) {
        let mut state = self.state();
        let most = state.networks.iter().max_by_key(|(_, network)| network.count(transport));
        let Some((&address, network)) = most else { return };
        if let Some(idlest) = network.idlest(self.idle_before(now), Some(transport)) {
            state.end(address, idlest);
        }
    }

    fn idle_before(&self, now: Instant) -> u64 {
        self.nanos(now).saturating_sub(IDLE.as_nanos() as u64)
    }

    fn nanos(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.epoch).as_nanos() as u64
    }

    fn state(&self) -> MutexGuard<'_, AdmissionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AdmissionState {
    /// Adds what a connection holds, and has others end if that is too much.
    fn add(&mut self, (address, number): (IpAddr, u64), bytes: u64) {
        let Some(network) = self.networks.get_mut(&address) else { return };
        let Some(holder) = network.connections.get_mut(&number) else { return };
        holder.held += bytes;
        network.held += bytes;
        self.held += bytes;
        let over = if network.held > self.limits.share_of(self.limits.memory) {
            Some(address)
        } else if self.held > self.limits.memory {
            let most = self.networks.iter().max_by_key(|(_, network)| network.held);
            most.map(|(address, _)| *address)
        } else {
            None
        };
        let idlest =
            over.and_then(|it| Some((it, self.networks.get(&it)?.idlest(u64::MAX, None)?)));
        if let Some((address, idlest)) = idlest {
            self.end(address, idlest);
        }
    }

    /// Signals a connection to end. Its memory does not count any more.
    fn end(&mut self, address: IpAddr, number: u64) {
        if let Some(holder) = self.remove(address, number) {
            holder.signals.end.notify_one();
        }
    }

    fn remove(&mut self, address: IpAddr, number: u64) -> Option<Holder> {
        let network = self.networks.get_mut(&address)?;
        let holder = network.connections.remove(&number)?;
        network.held -= holder.held;
        network.tcp -= usize::from(holder.transport == Transport::Tcp);
        self.held -= holder.held;
        if network.connections.is_empty() {
            self.networks.remove(&address);
        }
        Some(holder)
    }

    fn release(&mut self, address: IpAddr, number: u64, bytes: u64) {
        let Some(network) = self.networks.get_mut(&address) else { return };
        let Some(holder) = network.connections.get_mut(&number) else { return };
        holder.held -= bytes;
        network.held -= bytes;
        self.held -= bytes;
    }
}

impl NetworkLoad {
    fn count(&self, transport: Transport) -> usize {
        match transport {
            Transport::Tcp => self.tcp,
            Transport::Quic => self.connections.len() - self.tcp,
        }
    }

    /// The connection that has made no progress for longest, if that was before this time; of one transport, or of
    /// both.
    fn idlest(&self, before: u64, of: Option<Transport>) -> Option<u64> {
        let progress = |holder: &Holder| holder.signals.progress.load(Ordering::Relaxed);
        let all = self.connections.iter();
        let all = all.filter(|(_, holder)| of.is_none_or(|of| of == holder.transport));
        let all = all.map(|(number, holder)| (progress(holder), *number));
        all.min().filter(|(progress, _)| *progress <= before).map(|(_, number)| number)
    }
}

impl Claim {
    /// The client's network.
    pub(crate) fn network(&self) -> IpAddr {
        self.network
    }

    /// The connection has made progress at this time.
    pub(crate) fn progressed(&self, now: Instant) {
        self.signals.progress.store(self.admission.nanos(now), Ordering::Relaxed);
    }

    /// Returns when the connection has to end.
    pub(crate) async fn ended(&self) {
        self.signals.end.notified().await;
    }

    /// A response is under way.
    pub(crate) fn response(self: &Arc<Self>) -> MemoryGuard {
        self.hold(RESPONSE)
    }

    /// `chunk`, which counts while it is in memory.
    pub(crate) fn holding(self: &Arc<Self>, chunk: Bytes) -> Bytes {
        let held = self.hold(chunk.len() as u64);
        guarded(chunk, held)
    }

    fn hold(self: &Arc<Self>, bytes: u64) -> MemoryGuard {
        let mut state = self.admission.state();
        state.add((self.network, self.number), bytes);
        MemoryGuard { claim: Arc::clone(self), bytes }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.admission.state().remove(self.network, self.number);
    }
}

impl Drop for MemoryGuard {
    fn drop(&mut self) {
        let Claim { admission, network, number, .. } = &*self.claim;
        admission.state().release(*network, *number, self.bytes);
    }
}

/// The network of a client: the first bits of its address, of IPv4 and of IPv6.
fn network(client: IpAddr, (v4_bits, v6_bits): (u8, u8)) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32_u32.saturating_sub(v4_bits.into())).unwrap_or(0);
            Ipv4Addr::from_bits(v4.to_bits() & mask).into()
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128_u32.saturating_sub(v6_bits.into())).unwrap_or(0);
            Ipv6Addr::from_bits(v6.to_bits() & mask).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::Transport::{Quic, Tcp};
    use super::*;
    use crate::clock;

    fn admission(connections: usize, memory: u64) -> (Arc<Admission>, Instant) {
        let epoch = clock::now();
        let limits = Limits { connections, memory, ..Limits::default() };
        (Arc::new(Admission::new(&limits, connections, epoch)), epoch + 10 * IDLE)
    }

    fn has_ended(claim: &Claim) -> bool {
        claim.ended().now_or_never().is_some()
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn networks_are_the_first_bits() {
        for (client, of) in [
            ("203.0.113.7", "203.0.113.7"),
            ("::ffff:203.0.113.7", "203.0.113.7"),
            ("2001:db8:1:2ff::1", "2001:db8:1:200::"),
        ] {
            assert_eq!(network(address(client), (32, 56)), address(of));
        }
        assert_eq!(network(address("203.0.113.7"), (24, 0)), address("203.0.113.0"));
        assert_eq!(network(address("2001:db8::1"), (24, 0)), address("::"));
    }

    /// A quarter of 40 connections.
    #[test]
    fn beyond_its_share_a_networks_idlest_connection_ends() {
        let (admission, start) = admission(40, u64::MAX);
        let [greedy, other] = ["10.0.0.1", "10.0.0.2"].map(address);
        let bystander = admission.admit(other, Tcp, start).unwrap();
        let claims: Vec<_> =
            (0..10).map(|_| admission.admit(greedy, Tcp, start).unwrap()).collect();
        assert!(admission.admit(greedy, Tcp, start).is_none(), "none is idle");
        let later = start + 2 * IDLE;
        for claim in claims.iter().filter(|claim| claim.number != claims[3].number) {
            claim.progressed(start + IDLE / 2);
        }
        let new = admission.admit(greedy, Tcp, later).unwrap();
        let ended: Vec<_> = claims.iter().map(|claim| has_ended(claim)).collect();
        assert_eq!(ended.iter().position(|it| *it), Some(3));
        assert_eq!(ended.iter().filter(|it| **it).count(), 1);
        assert!(!has_ended(&bystander) && !has_ended(&new));
        admission.make_room(Tcp, later);
        assert!(claims.iter().any(|claim| has_ended(claim)), "of the network that has most");
        assert!(!has_ended(&bystander));
    }

    /// Few descriptors leave room for 8 connections over TCP. A network may have 2 of them.
    #[test]
    fn connections_over_quic_need_no_descriptor() {
        let epoch = clock::now();
        let limits = Limits { connections: 40, ..Limits::default() };
        let admission = Arc::new(Admission::new(&limits, 8, epoch));
        let (client, start) = (address("10.0.0.1"), epoch + 10 * IDLE);
        let admit = |transport, count, now| -> Vec<_> {
            (0..count).map_while(|_| admission.admit(client, transport, now)).collect()
        };
        let tcp = admit(Tcp, 3, start);
        let quic = admit(Quic, 11, start);
        assert_eq!((tcp.len(), quic.len()), (2, 10));
        let later = start + 2 * IDLE;
        assert_eq!(admit(Quic, 1, later).len(), 1);
        assert!(tcp.iter().all(|claim| !has_ended(claim)), "one over QUIC ends for it");
        assert_eq!(quic.iter().filter(|claim| has_ended(claim)).count(), 1);
    }

    #[test]
    fn beyond_its_share_of_memory_a_networks_idlest_connection_ends() {
        let (admission, start) = admission(1000, 4 << 20);
        let [greedy, other] = ["10.0.0.1", "10.0.0.2"].map(address);
        let bystander = admission.admit(other, Tcp, start).unwrap();
        let [idle, busy] = [(); 2].map(|()| admission.admit(greedy, Tcp, start).unwrap());
        busy.progressed(start + IDLE);
        let chunk = || busy.holding(Bytes::from(vec![0; 128 * 1024]));
        let mut chunks: Vec<_> = (0..7).map(|_| chunk()).collect();
        assert!(!has_ended(&idle));
        chunks.push(chunk());
        assert!(has_ended(&idle) && !has_ended(&busy) && !has_ended(&bystander));
        drop(chunks);
        drop((idle, busy));
        let state = admission.state();
        assert_eq!((state.held, state.networks.len()), (CONNECTION, 1));
    }

    #[test]
    fn beyond_the_memory_of_all_the_network_that_holds_most_gives() {
        let (admission, start) = admission(1000, 4 << 20);
        let clients =
            (1..=6).map(|last| admission.admit(Ipv4Addr::new(10, 0, 0, last).into(), Tcp, start));
        let clients: Vec<_> = clients.map(|claim| claim.unwrap()).collect();
        let mut chunks = Vec::new();
        for (number, claim) in clients.iter().enumerate() {
            chunks.push(claim.holding(Bytes::from(vec![0; 600_000 + number])));
            chunks.push(claim.holding(Bytes::from(vec![0; 100_000])));
        }
        let ended: Vec<_> = clients.iter().map(|claim| has_ended(claim)).collect();
        assert!(ended.iter().filter(|it| **it).count() == 1 && !ended[0], "{ended:?}");
    }
}
