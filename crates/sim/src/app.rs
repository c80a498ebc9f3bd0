//! The applications on both ends of a connection: what a server writes, and what a client asks for.

use uncork_apps::{Action, Cbr, Client, ClientReport};
use uncork_cc::ControllerSpec;
use uncork_units::{Time, TimeDelta};

use crate::segments::{Receiver, Stream};
use crate::spec::{FlowSpec, RunSpec, Workload};

/// A request without an answer is sent again after this time, then after twice as long, and so on.
const REQUEST_RETRY: TimeDelta = TimeDelta::from_secs(1);

/// The application that drives a flow.
#[derive(Debug)]
pub(crate) enum App {
    /// The server has a fixed amount to send, or never too little.
    Fixed,
    /// The server writes at its own pace.
    Media { source: Cbr, written: u64 },
    /// The client makes requests.
    Client(Box<Requests>),
    /// Nothing is sent: the workload is invalid, or a command, which the simulator does not run.
    Idle,
}

/// A client's requests on its connection.
#[derive(Debug)]
pub(crate) struct Requests {
    client: Client,
    /// The newest request.
    newest: Get,
    /// Whether nothing of its answer has arrived yet.
    unanswered: bool,
    retries: u32,
    /// When to act next.
    due: Time,
    /// Bytes of answers that the client has been given.
    given: u64,
    done: Option<Time>,
}

/// A request: the server answers each number once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Get {
    /// From 1; 0 is no request.
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

    /// Bytes that the server's application has written since it was last asked.
    pub(crate) fn newly_written(&mut self, now: Time) -> u64 {
        let Self::Media { source, written } = self else { return 0 };
        let total = source.poll(now).bytes;
        total - std::mem::replace(written, total)
    }

    /// Whether a server's application that writes at its own pace has come to its end.
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

/// What a server sends without a request.
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
            given: 0,
            done: None,
        }
    }

    /// When the client had all it wanted.
    pub(crate) fn done(&self) -> Option<Time> {
        self.done
    }

    /// What its user experienced until `now`.
    pub(crate) fn report(&self, now: Time) -> ClientReport {
        self.client.report(now)
    }

    /// Something may have arrived, or it is time to act: gives the request that leaves now, if one
    /// does.
    pub(crate) fn advance(&mut self, now: Time, receiver: &mut Receiver) -> Option<Get> {
        let arrived = receiver.in_order_bytes() - self.given;
        if arrived > 0 {
            self.given += arrived;
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

    /// The newest request again, for the end of a handshake that is repeated.
    pub(crate) fn repeat(&self) -> Option<Get> {
        self.unanswered.then_some(self.newest)
    }
}
