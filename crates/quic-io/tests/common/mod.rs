//! A server that sends as many bytes as it is asked for, and clients that look at each of them.
#![allow(dead_code, unused_imports, reason = "no test file uses all of it")]
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

#[path = "../../../quic/tests/pair/identity.rs"]
pub(crate) mod identity;
mod real;

use real::{fits, piece};
pub(crate) use uncork_testkit::now;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use bytes::Bytes;
use noq_proto::{
    Connection, ConnectionError, Dir, IdleTimeout, ServerConfig, StreamId, TransportConfig, VarInt,
};
use uncork_cc::CcSpec;
use uncork_quic_io::{
    App, Arrival, Client, Config, ConnectionKey, Host, Identity, Server, Turn, Verdict,
};

/// A certificate, and how connections are made with them.
#[derive(Clone)]
pub(crate) struct Ends {
    pub(crate) server: Server,
    pub(crate) client: Client,
}

pub(crate) fn transport(idle: Duration) -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(Some(IdleTimeout::try_from(idle).unwrap()));
    transport.stream_receive_window(VarInt::from_u32(2 << 20));
    transport.receive_window(VarInt::from_u32(2 << 20));
    transport.send_window(8 << 20);
    transport.mtu_discovery_config(Some(noq_proto::MtuDiscoveryConfig::default()));
    transport
}

impl Ends {
    pub(crate) fn new(transport: &TransportConfig) -> Self {
        let (certificate, key) = identity::certificate();
        Self::with(&certificate, &key, transport)
    }

    /// With a certificate that [`identity::certificate`] made.
    pub(crate) fn with(certificate: &[u8], key: &[u8], transport: &TransportConfig) -> Self {
        let epoch = now();
        let (tls, trusting) = identity::cryptography(certificate, key);
        let base = ServerConfig::with_crypto(tls);
        Self {
            server: Server::new(base, transport.clone(), epoch),
            client: Client::new(trusting, transport.clone(), epoch),
        }
    }

    pub(crate) fn server_config(&self) -> Config {
        let mut config = Config::new(Identity::random().unwrap());
        config.server = Some(self.server.base());
        config
    }

    pub(crate) fn client_config() -> Config {
        Config::new(Identity::random().unwrap())
    }
}

/// Sends what it is asked for.
#[derive(Clone)]
pub(crate) struct Serving {
    pub(crate) server: Server,
    pub(crate) cc: CcSpec,
    /// In place of what goes with `cc`.
    pub(crate) other: Option<Arc<ServerConfig>>,
    /// Clients have to show their addresses first.
    pub(crate) retries: bool,
    /// Bytes that all connections together declared lost.
    pub(crate) lost: Arc<AtomicU64>,
    pub(crate) seed: u64,
}

impl Serving {
    pub(crate) fn new(ends: &Ends, cc: &str) -> Self {
        let (cc, server) = (cc.parse().unwrap(), ends.server.clone());
        Self { server, cc, other: None, retries: false, lost: Arc::default(), seed: 0 }
    }
}

/// What is left to be sent on a stream.
#[derive(Default)]
pub(crate) struct Unsent {
    request: Vec<u8>,
    offset: u64,
}

/// The streams of a connection of a server.
pub(crate) type Streams = BTreeMap<StreamId, Unsent>;

impl App for Serving {
    type State = Streams;
    type Command = ();

    fn incoming(&mut self, arrival: &Arrival<'_>) -> Verdict<Streams> {
        if self.retries && !arrival.is_validated() {
            return Verdict::Retry;
        }
        self.seed += 1;
        let (cc, config) = self.server.accept(self.cc.into(), self.seed, |_| None);
        let config = self.other.clone().unwrap_or(config);
        Verdict::Accept { config, cc, state: Streams::new() }
    }

    fn opened(&mut self, turn: &mut Turn<'_, Streams>, dir: Dir) {
        while let Some(stream) = turn.connection.streams().accept(dir) {
            turn.state.insert(stream, Unsent::default());
            self.readable(turn, stream);
        }
    }

    fn readable(&mut self, turn: &mut Turn<'_, Streams>, stream: StreamId) {
        let Some(unsent) = turn.state.get_mut(&stream) else { return };
        let is_over = read(turn.connection, stream, |bytes| unsent.request.extend(bytes));
        if is_over {
            self.writable(turn, stream);
        }
    }

    fn writable(&mut self, turn: &mut Turn<'_, Streams>, stream: StreamId) {
        let Some(unsent) = turn.state.get_mut(&stream) else { return };
        let Ok(wanted) = <[u8; 8]>::try_from(&unsent.request[..]).map(u64::from_be_bytes) else {
            return;
        };
        let mut output = turn.connection.send_stream(stream);
        while unsent.offset < wanted {
            let mut chunks = [piece(unsent.offset, wanted - unsent.offset)];
            match output.write_chunks(&mut &mut chunks[..]) {
                Ok(written) => unsent.offset += written as u64,
                Err(_) => return,
            }
        }
        let _ = output.finish();
        turn.state.remove(&stream);
    }

    fn closed(&mut self, turn: &mut Turn<'_, Streams>, _: &ConnectionError) {
        let lost = turn.cc.observe().map_or(0, |observation| observation.lost_bytes);
        self.lost.fetch_add(lost, Ordering::Relaxed);
    }
}

/// Asks for something on some streams, and looks at what comes.
#[derive(Clone)]
pub(crate) struct Asking {
    pub(crate) client: Client,
}

/// What is asked for.
#[derive(Clone)]
pub(crate) struct Ask {
    pub(crate) remote: SocketAddr,
    pub(crate) bytes: u64,
    pub(crate) streams: u64,
    /// Whether the bytes are looked at.
    pub(crate) looks: bool,
    pub(crate) tell: Sender<Told>,
}

/// What became of it.
#[derive(Debug)]
pub(crate) enum Told {
    /// The first byte arrived.
    Begun(#[expect(dead_code, reason = "seen in failures")] ConnectionKey),
    /// The connection is over: bytes received, whether all of them were right, and why.
    Over { bytes: u64, is_right: bool, finished: u64, reason: ConnectionError },
}

pub(crate) struct Asked {
    ask: Ask,
    offsets: BTreeMap<StreamId, u64>,
    bytes: u64,
    finished: u64,
    is_right: bool,
}

impl App for Asking {
    type State = Asked;
    type Command = Ask;

    fn incoming(&mut self, _: &Arrival<'_>) -> Verdict<Asked> {
        Verdict::Ignore
    }

    fn command(&mut self, host: &mut Host<'_, Asked>, ask: Ask) {
        let config = self.client.begin("cubic".parse().unwrap(), 1);
        let remote = ask.remote;
        let offsets = BTreeMap::new();
        let asked = Asked { ask, offsets, bytes: 0, finished: 0, is_right: true };
        host.connect(config, remote, identity::NAME, asked).unwrap();
    }

    fn connected(&mut self, turn: &mut Turn<'_, Asked>) {
        for _ in 0..turn.state.ask.streams {
            let stream = turn.connection.streams().open(Dir::Bi).unwrap();
            let mut output = turn.connection.send_stream(stream);
            output.write(&turn.state.ask.bytes.to_be_bytes()).unwrap();
            output.finish().unwrap();
            turn.state.offsets.insert(stream, 0);
        }
    }

    fn readable(&mut self, turn: &mut Turn<'_, Asked>, stream: StreamId) {
        let asked = &mut *turn.state;
        let Some(offset) = asked.offsets.get_mut(&stream) else { return };
        if asked.bytes == 0 {
            let _ = asked.ask.tell.send(Told::Begun(turn.key));
        }
        let is_over = read(turn.connection, stream, |bytes| {
            asked.is_right &= !asked.ask.looks || fits(*offset, bytes);
            *offset += bytes.len() as u64;
            asked.bytes += bytes.len() as u64;
        });
        if is_over {
            asked.is_right &= *offset == asked.ask.bytes;
            asked.finished += 1;
            if asked.finished == asked.ask.streams {
                turn.connection.close(turn.now, VarInt::from_u32(0), Bytes::new());
            }
        }
    }

    fn closed(&mut self, turn: &mut Turn<'_, Asked>, reason: &ConnectionError) {
        let Asked { bytes, is_right, finished, .. } = *turn.state;
        let told = Told::Over { bytes, is_right, finished, reason: reason.clone() };
        let _ = turn.state.ask.tell.send(told);
    }
}

/// Reads what there is; whether that was the end.
fn read(connection: &mut Connection, stream: StreamId, mut take: impl FnMut(&[u8])) -> bool {
    let mut input = connection.recv_stream(stream);
    let Ok(mut chunks) = input.read(true) else { return false };
    let is_over = loop {
        match chunks.next(usize::MAX) {
            Ok(Some(chunk)) => take(&chunk.bytes),
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    let _ = chunks.finalize();
    is_over
}

/// Waits, without counting on any time, until something is so.
pub(crate) fn until(what: &str, is_so: impl FnMut() -> bool) {
    uncork_testkit::wait_until(what, Duration::from_mins(2), is_so);
}
