//! Downloads: so many at a time, one after the other.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use tokio::sync::Mutex;
use tokio::task::JoinSet;
use uncork_units::{Time, TimeDelta};

use crate::ClientError;
use crate::clock::Clock;
use crate::connect::{ConnectSpec, Connector};
use crate::fetch::{Ask, Fetched, fetch};
use crate::line::Line;
use crate::range::ByteRange;
use crate::sink::Sink;
use crate::stop::Stop;
use crate::target::Target;

/// What is downloaded, and how.
#[derive(Clone, Debug)]
pub struct GetSpec {
    /// The files, in this order.
    pub targets: Vec<Target>,
    /// How connections are made.
    pub connect: ConnectSpec,
    /// Which bytes of each; `None` for all.
    pub range: Option<ByteRange>,
    /// How many downloads there are at a time.
    pub parallel: usize,
    /// How often all of them are fetched.
    pub repeat: usize,
    /// From the beginning of one download to that of the next, at least.
    pub gap: TimeDelta,
    /// Which connections they use.
    pub connections: Connections,
    /// Whether to tell the SHA-256 of each body.
    pub digest: bool,
    /// Where to keep what arrives, of one download.
    pub file: Option<PathBuf>,
}

/// Which connections downloads use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Connections {
    /// Each makes its own.
    #[default]
    Each,
    /// As many as there are downloads at a time, which are kept.
    Kept,
    /// One for all, at the same time.
    One,
}

/// How far it is, for somebody who looks from outside.
#[derive(Debug, Default)]
pub struct Tally {
    done: AtomicUsize,
    bytes: AtomicU64,
}

impl Tally {
    /// Downloads, or listeners, that have come to their end.
    pub fn done(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }

    /// Bytes of bodies that have arrived.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn end_one(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl GetSpec {
    /// Fetches each of `targets` once, one after the other, over connections of their own.
    pub fn of(targets: Vec<Target>) -> Self {
        Self {
            targets,
            connect: ConnectSpec::default(),
            range: None,
            parallel: 1,
            repeat: 1,
            gap: TimeDelta::ZERO,
            connections: Connections::Each,
            digest: false,
            file: None,
        }
    }

    /// How many downloads that makes.
    pub fn count(&self) -> usize {
        self.targets.len().saturating_mul(self.repeat)
    }
}

/// Downloads all, or what there is until `stop`. Gives what became of each, in the order of `spec`;
/// those that were not begun are not among them.
///
/// # Errors
///
/// If nothing can begin. A download that fails is told of with the others.
pub fn get(
    spec: &GetSpec,
    stop: &Arc<AtomicBool>,
    tally: &Arc<Tally>,
) -> Result<Vec<Fetched>, ClientError> {
    let connector = Connector::new(&spec.connect, &spec.targets)?;
    let parallel = spec.parallel.clamp(1, spec.count().max(1));
    runtime()?.block_on(async {
        let work = Arc::new(Work {
            spec: spec.clone(),
            shared: Mutex::new(Line::new(connector.clone())),
            connector,
            next: AtomicUsize::new(0),
            clock: Clock::start(),
            tally: Arc::clone(tally),
        });
        let stop = Stop::when(stop);
        let mut workers = JoinSet::new();
        for _ in 0..parallel {
            workers.spawn(Arc::clone(&work).work(stop.clone()));
        }
        let mut all: Vec<Fetched> = workers.join_all().await.into_iter().flatten().collect();
        all.sort_by_key(|fetched| fetched.number);
        Ok(all)
    })
}

/// Threads for as many clients as there are.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, ClientError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(ClientError::System)
}

/// What those who download share.
#[derive(Debug)]
struct Work {
    spec: GetSpec,
    connector: Connector,
    /// The connection of all, if they use one.
    shared: Mutex<Line>,
    next: AtomicUsize,
    clock: Clock,
    tally: Arc<Tally>,
}

impl Work {
    /// Takes the next download, until there is none.
    async fn work(self: Arc<Self>, mut stop: Stop) -> Vec<Fetched> {
        let mut line = Line::new(self.connector.clone());
        let mut all = Vec::new();
        while !stop.is_over() {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.spec.count() {
                break;
            }
            let due = Time::ZERO + self.spec.gap.times(number as u64);
            tokio::select! {
                () = self.clock.wait_until(due) => {}
                () = stop.over() => break,
            }
            all.push(Box::pin(self.download(number, &mut line, &mut stop)).await);
            self.tally.end_one();
        }
        all
    }

    async fn download(&self, number: usize, line: &mut Line, stop: &mut Stop) -> Fetched {
        let spec = &self.spec;
        let target = &spec.targets[number % spec.targets.len()];
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        let ask = Ask { target, number, range: spec.range, clock: self.clock };
        let mut fetched = Fetched::new(ask);
        let result = tokio::select! {
            result = self.fetch(ask, line, &mut fetched) => result,
            () = stop.over() => Err(ClientError::Interrupted),
        };
        if result.is_err() {
            // Nobody knows what a connection is still to bring whose response was broken off.
            line.hang_up();
        }
        fetched.end(self.clock.now(), result);
        fetched
    }

    async fn fetch(
        &self,
        ask: Ask<'_>,
        line: &mut Line,
        fetched: &mut Fetched,
    ) -> Result<Option<String>, ClientError> {
        let sink = Sink::open(self.spec.digest, self.spec.file.as_deref())?;
        match self.spec.connections {
            Connections::Each => line.hang_up(),
            Connections::Kept => {}
            Connections::One => {
                let mut shared = self.shared.lock().await;
                fetched.setup = shared.open(ask.target).await?;
                if let Some(own) = shared.share() {
                    *line = own;
                }
            }
        }
        fetch(ask, line, sink, fetched, |bytes| self.tally.add(bytes)).await
    }
}
