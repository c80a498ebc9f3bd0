//! The client's application.

use noq_proto::{Connection, Dir, StreamId, VarInt};
use uncork_apps::{Action, Client};
use uncork_path::Step;
use uncork_sim::{FlowSpec, Workload};
use uncork_units::Time;

/// The client's application of a flow.
pub(crate) struct ClientApp {
    wants: Wants,
    pub(crate) seen: ClientStats,
    /// The stream of the current answer.
    stream: Option<StreamId>,
    /// Later receive windows, and the next of them.
    windows: Vec<Step<u64>>,
    next_window: usize,
}

/// What the client has received.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClientStats {
    pub(crate) first_byte: Option<Time>,
    /// When everything had arrived.
    pub(crate) complete: Option<Time>,
    pub(crate) bytes: u64,
    /// Bytes before the end of the warm-up.
    pub(crate) early: u64,
}

enum Wants {
    /// A single request of this many bytes, and its end time.
    Bytes(u64, Time),
    /// The requests of a client.
    Requests(Box<Client>),
}

impl ClientApp {
    pub(crate) fn new(spec: &FlowSpec, client: Option<Client>, windows: &[Step<u64>]) -> Self {
        let wants = match (spec.workload, client) {
            (Workload::Client(_), Some(client)) => Wants::Requests(Box::new(client)),
            (Workload::Transfer(bytes), _) => Wants::Bytes(bytes, Time::NEVER),
            (Workload::Until(end), _) => Wants::Bytes(u64::MAX, end),
            (Workload::Media(_) | Workload::Client(_) | Workload::Command(_), _) => {
                Wants::Bytes(u64::MAX, Time::NEVER)
            }
        };
        let (seen, windows) = (ClientStats::default(), windows.to_vec());
        Self { wants, seen, stream: None, windows, next_window: 0 }
    }

    /// The client, if this flow has a requesting one.
    pub(crate) fn client(&self) -> Option<&Client> {
        match &self.wants {
            Wants::Requests(client) => Some(client),
            Wants::Bytes(..) => None,
        }
    }

    /// Whether data arriving at `now` no longer counts.
    pub(crate) fn is_over(&self, now: Time) -> bool {
        let is_late = matches!(self.wants, Wants::Bytes(_, end) if now >= end);
        is_late || self.seen.complete.is_some()
    }

    /// Reads arrived data and sends due requests. Returns the time of the next request or change of its window.
    pub(crate) fn act(&mut self, connection: &mut Connection, now: Time, warmup: Time) -> Time {
        if let Some(window) = Step::take_due(&self.windows, &mut self.next_window, now) {
            connection.set_receive_window(VarInt::from_u64(window).unwrap_or(VarInt::MAX));
        }
        let change = self.windows.get(self.next_window).map_or(Time::NEVER, |step| step.at);
        self.serve(connection, now, warmup).min(change)
    }

    fn serve(&mut self, connection: &mut Connection, now: Time, warmup: Time) -> Time {
        if connection.is_handshaking() || self.is_over(now) {
            return Time::NEVER;
        }
        self.read(connection, now, warmup);
        match &self.wants {
            Wants::Bytes(bytes, _) => {
                let bytes = *bytes;
                if self.stream.is_none() {
                    self.ask(connection, bytes);
                }
                if self.seen.bytes >= bytes {
                    self.seen.complete = Some(now);
                }
                Time::NEVER
            }
            Wants::Requests(_) => self.request(connection, now),
        }
    }

    fn request(&mut self, connection: &mut Connection, now: Time) -> Time {
        loop {
            let Wants::Requests(client) = &mut self.wants else { return Time::NEVER };
            match client.poll(now) {
                Action::Done => {
                    self.seen.complete = Some(now);
                    return Time::NEVER;
                }
                Action::Request { bytes } => self.ask(connection, bytes),
                Action::WaitUntil(time) => return time,
                Action::WaitForData => return Time::NEVER,
            }
        }
    }

    /// Sends a request, which is a number of bytes, on a new stream.
    fn ask(&mut self, connection: &mut Connection, bytes: u64) {
        let Some(stream) = connection.streams().open(Dir::Bi) else { return };
        let mut send = connection.send_stream(stream);
        // The window of a new connection is large enough.
        let _written = send.write(&bytes.to_be_bytes());
        let _finished = send.finish();
        self.stream = Some(stream);
    }

    fn read(&mut self, connection: &mut Connection, now: Time, warmup: Time) {
        let Some(stream) = self.stream else { return };
        let mut arrived = 0;
        let mut receive = connection.recv_stream(stream);
        if let Ok(mut chunks) = receive.read(true) {
            while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                arrived += chunk.bytes.len() as u64;
            }
            let _more_room = chunks.finalize();
        }
        if arrived == 0 {
            return;
        }
        self.seen.first_byte.get_or_insert(now);
        self.seen.bytes += arrived;
        if now < warmup {
            self.seen.early = self.seen.bytes;
        }
        if let Wants::Requests(client) = &mut self.wants {
            client.on_body(now, arrived);
        }
    }
}
