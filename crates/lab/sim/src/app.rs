//! The applications at both ends of a connection: the server's data and the client's requests.

use uncork_apps::{Action, Cbr, Client, ClientReport};
use uncork_cc::ControllerSpec;
use uncork_units::{Time, TimeDelta};

use crate::segments::{Receiver, Stream};
use crate::spec::{FlowSpec, RunSpec, Workload};

/// An unanswered request is retried after this time, then after twice as long, and so on.
const REQUEST_RETRY: TimeDelta = TimeDelta::from_secs(1);

/// The application that drives a flow.
#[derive(Debug)]
pub(crate) enum App {
    /// The server sends a fixed or unlimited amount of data.
    Fixed,
    /// The server writes at its own pace.
    Media { source: Cbr, written: u64 },
    /// The client makes requests.
    Client(Box<Requests>),
    /// Sends nothing: the workload is invalid, or a command, which the simulator does not run.
    Idle,
}

/// A client's requests on its connection.
#[derive(Debug)]
pub(crate) struct Requests {
    client: Client,
    /// The newest request.
    newest: Get,
    /// Whether none of its answer has arrived yet.
    unanswered: bool,
    retries: u32,
    /// Time of the next action.
    due: Time,
    /// Bytes of answers delivered to the client.
    delivered: u64,
    done: Option<Time>,
}

/// A request. The server answers each number once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Get {
    /// Counted from 1; 0 means no request.
    pub(crate) number: u64,
    /// Size of the answer.
    pub(crate) bytes: u64,
}

impl App {
    pub(crate) fn new<S: ControllerSpec>(run: &RunSpec<S>, spec: &FlowSpec<S>, index: u32) -> Self {
        match spec.workload {
            Workload::Transfer(_) | Workload::Until(_) => Self::Fixed,
            Workload::Media(media) => Cbr::new(media, spec.start)
                .map_or(Self::Idle, |source| Self::Media { source, written: 0 }),
            Workload::Client(_) => {
                let client = run.client_of(index);
                client.map_or(Self::Idle, |client| Self::Client(Box::new(Requests::new(client))))
            }
            Workload::Command(_) => Self::Idle,
        }
    }

    /// Its next deadline; [`Time::NEVER`] if it waits for data.
    pub(crate) fn next_timer(&self, now: Time) -> Time {
        match self {
            Self::Fixed | Self::Idle => Time::NEVER,
            Self::Media { source, .. } => source.poll(now).next.unwrap_or(Time::NEVER),
            Self::Client(requests) => requests.due,
        }
    }

    /// Bytes the server's application has written since the last call.
    pub(crate) fn newly_written(&mut self, now: Time) -> u64 {
        let Self::Media { source, written } = self else { return 0 };
        let total = source.poll(now).bytes;
        total - std::mem::replace(written, total)
    }

    /// Whether a server application with its own pace has finished writing.
    pub(crate) fn has_written_all(&self, now: Time) -> bool {
        let Self::Media { source, written } = self else { return false };
        let total = source.poll(now);
        total.next.is_none() && total.bytes == *written
    }

    /// The client's part, if it makes requests.
    pub(crate) fn requests(&self) -> Option<&Requests> {
        if let Self::Client(requests) = self { Some(requests) } else { None }
    }
}

/// The data a server sends without a request.
pub(crate) fn unasked(workload: Workload) -> Stream {
    match workload {
        Workload::Transfer(bytes) => Stream::of(bytes),
        Workload::Until(_) => Stream::endless(),
        Workload::Media(_) | Workload::Client(_) | Workload::Command(_) => Stream::default(),
    }
}

impl Requests {
    fn new(client: Client) -> Self {
        Self {
            client,
            newest: Get::default(),
            unanswered: false,
            retries: 0,
            due: Time::NEVER,
            delivered: 0,
            done: None,
        }
    }

    /// When the client had received everything.
    pub(crate) fn done(&self) -> Option<Time> {
        self.done
    }

    /// The user's experience until `now`.
    pub(crate) fn report(&self, now: Time) -> ClientReport {
        self.client.report(now)
    }

    /// Handles arrived data and due actions. Returns a request to send now, if any.
    pub(crate) fn advance(&mut self, now: Time, receiver: &mut Receiver) -> Option<Get> {
        let arrived = receiver.in_order_bytes() - self.delivered;
        if arrived > 0 {
            self.delivered += arrived;
            self.unanswered = false;
            self.client.on_body(now, arrived);
        }
        if self.unanswered && self.due > now {
            return None;
        }
        if self.unanswered {
            self.retries += 1;
            self.await_answer(now);
            return Some(self.newest);
        }
        self.due = Time::NEVER;
        match self.client.poll(now) {
            Action::Request { bytes } => {
                receiver.expect_message(bytes);
                self.newest = Get { number: self.newest.number + 1, bytes };
                (self.unanswered, self.retries) = (true, 0);
                self.await_answer(now);
                return Some(self.newest);
            }
            Action::WaitUntil(time) => self.due = time,
            Action::WaitForData => {}
            Action::Done => self.done = self.done.or(Some(now)),
        }
        None
    }

    fn await_answer(&mut self, now: Time) {
        self.due = now + REQUEST_RETRY.times(1 << self.retries.min(6));
    }

    /// The newest request again, for a repeated end of the handshake.
    pub(crate) fn repeat(&self) -> Option<Get> {
        self.unanswered.then_some(self.newest)
    }
}
