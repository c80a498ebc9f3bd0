//! Runs of downloads, several in parallel.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use tokio::sync::Mutex;
use tokio::task::JoinSet;
use uncork_units::{Time, TimeDelta};

use crate::ClientError;
use crate::clock::PlayClock;
use crate::connect::{ConnectSpec, Connector};
use crate::fetch::{Fetched, Job, fetch};
use crate::persistent::PersistentConnection;
use crate::range::ByteRange;
use crate::sink::BodySink;
use crate::stop::StopFlag;
use crate::target::Target;

/// A run of downloads.
#[derive(Clone, Debug)]
pub struct GetSpec {
    /// The files, in order.
    pub targets: Vec<Target>,
    /// Connection settings.
    pub connect: ConnectSpec,
    /// The range of each file to fetch; `None` for all of it.
    pub range: Option<ByteRange>,
    /// Number of parallel downloads.
    pub parallel: usize,
    /// Number of times to fetch all files.
    pub repeat: usize,
    /// Minimum time between the starts of consecutive downloads.
    pub gap: TimeDelta,
    /// Connection reuse.
    pub connections: Connections,
    /// Whether to compute the SHA-256 of each body.
    pub digest: bool,
    /// The file to write the body to, for a single download.
    pub file: Option<PathBuf>,
}

/// How downloads share connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Connections {
    /// A new connection per download.
    #[default]
    Each,
    /// A persistent connection per parallel download.
    Kept,
    /// One connection shared by all downloads.
    One,
}

/// Progress of a run, readable from other threads.
#[derive(Debug, Default)]
pub struct Tally {
    done: AtomicUsize,
    bytes: AtomicU64,
}

impl Tally {
    /// Downloads or listeners finished.
    pub fn done(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }

    /// Body bytes received.
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
    /// Fetches each of `targets` once, sequentially, over new connections.
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

    /// The number of downloads.
    pub fn count(&self) -> usize {
        self.targets.len().saturating_mul(self.repeat)
    }
}

/// Runs all downloads, or until `stop` is set. Returns the results in the order of `spec`, without
/// downloads that were not started.
///
/// # Errors
///
/// If the run cannot start. Failures of single downloads are in their results.
pub fn get(
    spec: &GetSpec,
    stop: &Arc<AtomicBool>,
    tally: &Arc<Tally>,
) -> Result<Vec<Fetched>, ClientError> {
    let connector = Connector::new(&spec.connect, &spec.targets)?;
    let parallel = spec.parallel.clamp(1, spec.count().max(1));
    runtime()?.block_on(async {
        let work = Arc::new(SharedDownloads {
            spec: spec.clone(),
            shared: Mutex::new(PersistentConnection::new(connector.clone())),
            connector,
            next: AtomicUsize::new(0),
            clock: PlayClock::start(),
            tally: Arc::clone(tally),
        });
        let stop = StopFlag::when(stop);
        let mut workers = JoinSet::new();
        for _ in 0..parallel {
            workers.spawn(Arc::clone(&work).work(stop.clone()));
        }
        let mut all: Vec<Fetched> = workers.join_all().await.into_iter().flatten().collect();
        all.sort_by_key(|fetched| fetched.number);
        Ok(all)
    })
}

/// A multi-threaded runtime.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, ClientError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(ClientError::System)
}

/// The state shared by the parallel downloads.
#[derive(Debug)]
struct SharedDownloads {
    spec: GetSpec,
    connector: Connector,
    /// The shared connection of [`Connections::One`].
    shared: Mutex<PersistentConnection>,
    next: AtomicUsize,
    clock: PlayClock,
    tally: Arc<Tally>,
}

impl SharedDownloads {
    /// Performs downloads until none is left.
    async fn work(self: Arc<Self>, mut stop: StopFlag) -> Vec<Fetched> {
        let mut persistent = PersistentConnection::new(self.connector.clone());
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
            all.push(Box::pin(self.download(number, &mut persistent, &mut stop)).await);
            self.tally.end_one();
        }
        all
    }

    async fn download(
        &self,
        number: usize,
        persistent: &mut PersistentConnection,
        stop: &mut StopFlag,
    ) -> Fetched {
        let spec = &self.spec;
        let target = &spec.targets[number % spec.targets.len()];
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        let job = Job { target, number, range: spec.range, clock: self.clock };
        let mut fetched = Fetched::new(job);
        let result = tokio::select! {
            result = self.fetch(job, persistent, &mut fetched) => result,
            () = stop.over() => Err(ClientError::Interrupted),
        };
        if result.is_err() {
            // The rest of the aborted response may still be on the connection: do not reuse it.
            persistent.hang_up();
        }
        fetched.end(self.clock.now(), result);
        fetched
    }

    async fn fetch(
        &self,
        job: Job<'_>,
        persistent: &mut PersistentConnection,
        fetched: &mut Fetched,
    ) -> Result<Option<String>, ClientError> {
        let sink = BodySink::open(self.spec.digest, self.spec.file.as_deref())?;
        match self.spec.connections {
            Connections::Each => persistent.hang_up(),
            Connections::Kept => {}
            Connections::One => {
                let mut shared = self.shared.lock().await;
                fetched.setup = shared.open(job.target).await?;
                if let Some(own) = shared.share() {
                    *persistent = own;
                }
            }
        }
        fetch(job, persistent, sink, fetched, |bytes| self.tally.add(bytes)).await
    }
}
