//! A flow: two endpoints and their applications.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use noq_proto::{
    AckFrequencyConfig, ClientConfig, ConnectionError, EcnCodepoint, Event, ServerConfig, VarInt,
};
use uncork_cc::{CcSpec, EcnMode, RttSample};
use uncork_flow::Distribution;
use uncork_path::Ecn;
use uncork_quic::{Choice, Epoch, Handle, Observation};
use uncork_sim::{AckPolicy, FlowSpec, RunSpec};
use uncork_units::{Rng, Time, TimeDelta};

use crate::address::{ClientAddress, SERVER};
use crate::client::ClientApp;
use crate::identity::{NAME, TestIdentity};
use crate::peer::{OutgoingDatagram, Peer, ReceiveWindows, transport};
use crate::run::DatagramInFlight;
use crate::server::ServerApp;

/// Seed streams of the endpoints, separate for each flow.
const ENDPOINT_STREAM: u64 = 7 << 32;
/// How long to wait for the last ACK once all data has arrived.
const LINGER: TimeDelta = TimeDelta::from_secs(1);
/// Most consecutive wake-ups without sending or receiving within [`STALLED_FOR`]; the run fails
/// after that.
const STALLED_TURNS: u32 = 10_000;
const STALLED_FOR: TimeDelta = TimeDelta::from_millis(1);
/// The client's controller.
const CLIENT_CC: &str = "cubic";

/// A flow that has begun.
pub(crate) struct QuicFlow<'a> {
    pub(crate) spec: &'a FlowSpec,
    pub(crate) client: ClientApp,
    address: ClientAddress<'a>,
    server: ServerApp,
    /// The client and the server.
    peers: [Peer; 2],
    /// The congestion control of the server.
    handle: Handle,
    pub(crate) counts: PacketCounts,
    pub(crate) rtts: Distribution,
    pub(crate) queueing: Distribution,
    pub(crate) busy: TimeDelta,
    last_rtt: Option<RttSample>,
    /// Start of the current busy period, if data is in flight.
    busy_since: Option<Time>,
    /// Why the connection was lost.
    pub(crate) failure: Option<ConnectionError>,
    /// Payload acknowledged to the server.
    acked: u64,
    /// The next deadline of each end.
    wakes: [Time; 2],
    /// When the server's card will have sent all that it has.
    card_idle_from: Time,
    progress: FlowProgress,
    /// Its next wake-up in the schedule.
    pub(crate) scheduled: Time,
}

/// When a flow last sent or received a datagram, and the number of wake-ups since.
#[derive(Clone, Copy, Debug, Default)]
struct FlowProgress {
    at: Time,
    turns: u32,
}

/// Packet counters of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PacketCounts {
    pub(crate) sent: u64,
    pub(crate) marked: u64,
    pub(crate) dropped_queue: u64,
    pub(crate) dropped_policer: u64,
    pub(crate) dropped_random: u64,
    pub(crate) acks_dropped: u64,
}

/// One end of a flow: client or server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlowEnd {
    Client,
    Server,
}

impl<'a> QuicFlow<'a> {
    /// Starts a flow: the client connects now.
    pub(crate) fn begin(
        run: &'a RunSpec,
        index: u32,
        identity: &TestIdentity,
        epoch: Epoch,
    ) -> Option<Self> {
        let spec = run.flows.get(index as usize)?;
        let mut rng = Rng::new(run.seed, ENDPOINT_STREAM + u64::from(index));
        let (initial_window, ecn) = (spec.initial_window, ecn_mode(spec.ecn));
        let resume = spec.resume;
        let choice = Choice { initial_window, ecn, resume, ..spec.cc.into() };
        let handle = Handle::new(choice, rng.next_u64(), epoch.instant(Time::ZERO));
        let server = identity.server.clone();
        let mut server = ServerConfig::with_crypto(handle.server(server, |_| None));
        let mut settings = transport(&handle, ReceiveWindows::WIDE_OPEN);
        settings.ack_frequency_config(ack_frequency(spec.acks));
        server.transport_config(Arc::new(settings));
        let client_cc: CcSpec = CLIENT_CC.parse().ok()?;
        // A flow's `ecn` is that of its data.
        let own = Choice { ecn: EcnMode::None, ..client_cc.into() };
        let own = Handle::new(own, rng.next_u64(), epoch.instant(Time::ZERO));
        let mut client = ClientConfig::new(own.client(identity.client.clone()));
        let windows = ReceiveWindows::of(run, spec);
        client.transport_config(Arc::new(transport(&own, windows)));
        let server = Peer::server(&mut rng, server);
        let client = Peer::client(&mut rng, epoch.instant(spec.start), client, NAME);
        Some(Self {
            spec,
            client: ClientApp::new(spec, run.client_of(index), run.receive_window_steps(spec)),
            address: ClientAddress::new(run.migrations(spec)),
            server: ServerApp::new(spec),
            peers: [client, server],
            handle,
            counts: PacketCounts::default(),
            rtts: Distribution::default(),
            queueing: Distribution::default(),
            busy: TimeDelta::ZERO,
            last_rtt: None,
            busy_since: None,
            failure: None,
            acked: 0,
            wakes: [Time::ZERO; 2],
            card_idle_from: Time::ZERO,
            progress: FlowProgress::default(),
            scheduled: Time::NEVER,
        })
    }

    /// Payload acknowledged.
    pub(crate) fn acked(&self) -> u64 {
        self.acked
    }

    pub(crate) fn observe(&self) -> Option<Observation> {
        self.handle.observe()
    }

    /// The only host that the client has now. A NAT delivers what comes to an earlier port.
    pub(crate) fn client_host(&self) -> IpAddr {
        self.address.now().ip()
    }

    /// A datagram arrives.
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        to: FlowEnd,
        datagram: &DatagramInFlight,
        ecn: Ecn,
    ) {
        self.progress.turns = 0;
        let source = match to {
            FlowEnd::Client => SERVER,
            FlowEnd::Server => datagram.client,
        };
        if to == FlowEnd::Server {
            self.acked = self.acked.max(datagram.read);
        }
        self.peers[to as usize].receive(now, source, &datagram.data, codepoint(ecn));
    }

    /// The client's address at the other end of a datagram that `end` sends.
    pub(crate) fn client_address_of(
        &self,
        end: FlowEnd,
        datagram: &OutgoingDatagram,
    ) -> SocketAddr {
        match end {
            FlowEnd::Client => self.address.now(),
            FlowEnd::Server => datagram.destination,
        }
    }

    /// Whether the flow keeps waking up without progress.
    pub(crate) fn is_stalled(&self, now: Time) -> bool {
        self.progress.turns >= STALLED_TURNS && now.since(self.progress.at) < STALLED_FOR
    }

    /// Whether the flow has ended.
    pub(crate) fn is_over(&self, now: Time) -> bool {
        let is_acknowledged = || self.observe().is_none_or(|seen| seen.in_flight == 0);
        let complete = self.client.seen.complete;
        self.failure.is_some()
            || complete.is_some_and(|complete| now >= complete + LINGER || is_acknowledged())
    }

    /// Its next deadline.
    pub(crate) fn wake(&self) -> Time {
        self.wakes[0].min(self.wakes[1])
    }

    /// The ends with an expired deadline.
    pub(crate) fn due(&self, now: Time) -> impl Iterator<Item = FlowEnd> + use<> {
        let wakes = self.wakes;
        [FlowEnd::Client, FlowEnd::Server]
            .into_iter()
            .filter(move |end| wakes[*end as usize] <= now)
    }

    /// Runs one end: timers, application, transmission of at most `batches`.
    pub(crate) fn act(
        &mut self,
        end: FlowEnd,
        (epoch, now, warmup): (Epoch, Time, Time),
        batches: usize,
        mut leave: impl FnMut(OutgoingDatagram),
    ) {
        let (instant, mut wake) = (epoch.instant(now), Time::NEVER);
        if self.progress.turns == 0 || now.since(self.progress.at) >= STALLED_FOR {
            self.progress = FlowProgress { at: now, turns: 0 };
        }
        self.progress.turns += 1;
        let peer = &mut self.peers[end as usize];
        peer.expire(instant);
        if let Some(connection) = peer.connection() {
            if end == FlowEnd::Client && self.address.migrate(now) {
                connection.handle_network_change(None, instant);
            }
            while let Some(event) = connection.poll() {
                if let Event::ConnectionLost { reason } = event {
                    self.failure.get_or_insert(reason);
                }
            }
            wake = match end {
                FlowEnd::Client => {
                    self.client.act(connection, now, warmup).min(self.address.next_change())
                }
                FlowEnd::Server => self.server.act(connection, now),
            };
        }
        let turns = &mut self.progress.turns;
        if end == FlowEnd::Client || self.card_idle_from <= now {
            peer.send(instant, batches, |datagram| {
                *turns = 0;
                leave(datagram);
            });
        }
        let timeout = peer.timeout().map_or(Time::NEVER, |timeout| epoch.time(timeout));
        // Everything due now is done. The stack's pacer rounds a wait below 5 ns down to zero and
        // earns no tokens while time stands still, so the next turn must be in the future.
        self.wakes[end as usize] = wake.min(timeout).max(now + TimeDelta::from_nanos(1));
        if end == FlowEnd::Server {
            self.update_metrics(now);
        }
    }

    /// The server sends no more until `idle_from`, but its timers run.
    pub(crate) fn wait_for_card(&mut self, idle_from: Time) {
        self.card_idle_from = idle_from;
        let wake = &mut self.wakes[FlowEnd::Server as usize];
        *wake = (*wake).min(idle_from);
    }

    /// Ends the flow and clears its deadlines.
    pub(crate) fn rest(&mut self) {
        self.wakes = [Time::NEVER; 2];
    }

    /// Updates the metrics of the server's connection.
    fn update_metrics(&mut self, now: Time) {
        let Some(seen) = self.observe() else { return };
        if seen.rtt != self.last_rtt {
            self.last_rtt = seen.rtt;
            self.rtts.record(seen.rtt.map_or(0, |rtt| rtt.latest.as_nanos()));
        }
        if let Some(since) = self.busy_since {
            self.busy += now.since(since);
        }
        self.busy_since = (seen.in_flight > 0).then_some(now);
    }
}

fn ecn_mode(codepoint: Ecn) -> EcnMode {
    match codepoint {
        Ecn::NotEct | Ecn::Ce => EcnMode::None,
        Ecn::Ect0 => EcnMode::Classic,
        Ecn::Ect1 => EcnMode::L4s,
    }
}

/// The ACK_FREQUENCY frame by which the server asks for these acknowledgements
/// (draft-ietf-quic-ack-frequency); `None` for a client's own policy (RFC 9000 §13.2.2).
fn ack_frequency(policy: AckPolicy) -> Option<AckFrequencyConfig> {
    if policy == AckPolicy::USUAL {
        return None;
    }
    let mut config = AckFrequencyConfig::default();
    config
        .ack_eliciting_threshold(VarInt::from_u32(policy.every - 1))
        .max_ack_delay(policy.delay.map(|delay| Duration::from_nanos(delay.as_nanos())))
        // Without the frame, packets out of order are acknowledged at once.
        .reordering_threshold(VarInt::from_u32(1));
    Some(config)
}

/// The ECN field on the wire.
pub(crate) fn on_wire(codepoint: Option<EcnCodepoint>) -> Ecn {
    match codepoint {
        None => Ecn::NotEct,
        Some(EcnCodepoint::Ect0) => Ecn::Ect0,
        Some(EcnCodepoint::Ect1) => Ecn::Ect1,
        Some(EcnCodepoint::Ce) => Ecn::Ce,
    }
}

fn codepoint(ecn: Ecn) -> Option<EcnCodepoint> {
    match ecn {
        Ecn::NotEct => None,
        Ecn::Ect0 => Some(EcnCodepoint::Ect0),
        Ecn::Ect1 => Some(EcnCodepoint::Ect1),
        Ecn::Ce => Some(EcnCodepoint::Ce),
    }
}
