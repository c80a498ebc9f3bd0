//! What a host holds of a connection's congestion control.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use noq_proto::congestion::ControllerFactory;
use noq_proto::crypto;
use uncork_cc::{CcSpec, Control, RttSample, Snapshot};
use uncork_units::{Rate, Time};

use crate::choice::Choice;
use crate::congestion::Congestion;
use crate::controller::Factory;
use crate::epoch::Epoch;
use crate::observed::Observed;
use crate::tls;
use crate::watch::{Watch, Watcher};

/// The congestion control of a connection, for those who choose and watch it. Clones are the same.
#[derive(Clone, Debug)]
pub struct Handle(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    epoch: Epoch,
    seed: u64,
    observed: Arc<Observed>,
    now: Mutex<Now>,
}

/// What was chosen, and the path that is in use.
#[derive(Debug)]
struct Now {
    choice: Choice,
    path: Option<Arc<Path>>,
    watcher: Watcher,
}

/// The congestion control of one path.
#[derive(Debug)]
pub(crate) struct Path(Mutex<Congestion>);

/// What can be seen of a connection's congestion control.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Observation {
    /// The algorithm.
    pub spec: CcSpec,
    /// How the connection may send.
    pub control: Control,
    /// The inside of the algorithm.
    pub snapshot: Snapshot,
    /// The last round-trip time measured, with the smoothed and the shortest one.
    pub rtt: Option<RttSample>,
    /// What the path delivered over the last round trip in which the application did not run dry, or over
    /// a later one in which it was more all the same.
    pub delivery_rate: Option<Rate>,
    /// Whether the last acknowledgement found nothing to send, or nothing that the peer's flow control
    /// lets go, and nothing was sent since.
    pub is_drained: bool,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Bytes sent so far in packets that want to be acknowledged, headers included.
    pub sent_bytes: u64,
    /// Of these, acknowledged.
    pub acked_bytes: u64,
    /// Of these, declared lost.
    pub lost_bytes: u64,
    /// In so many packets.
    pub lost_packets: u64,
    /// Of those sent, bytes of which nothing was or will be heard: of handshakes that went on without,
    /// of probes for larger packets, of a path that the connection left.
    pub unheard_bytes: u64,
    /// Packets that were declared lost and had arrived.
    pub spurious_packets: u64,
    /// Packets reported as Congestion Experienced.
    pub ce_packets: u64,
}

impl Handle {
    /// The congestion control of a connection that is yet to be made. Times count from `epoch`; each
    /// connection wants a `seed` of its own.
    pub fn new(choice: Choice, seed: u64, epoch: Instant) -> Self {
        Self(Arc::new(Inner {
            epoch: Epoch::new(epoch),
            seed,
            observed: Arc::default(),
            now: Mutex::new(Now { choice, path: None, watcher: Watcher::default() }),
        }))
    }

    /// What goes into the connection's `TransportConfig`.
    pub fn factory(&self) -> Arc<dyn ControllerFactory + Send + Sync> {
        Arc::new(Factory(self.clone()))
    }

    /// What goes into the connection's server configuration in place of `inner`, which it wraps. `choose`
    /// is asked once the client has said which server it wants; the answer holds before anything but
    /// the handshake is sent.
    pub fn server(
        &self,
        inner: Arc<dyn crypto::ServerConfig>,
        choose: impl Fn(Option<&str>) -> Option<Choice> + Send + Sync + 'static,
    ) -> Arc<dyn crypto::ServerConfig> {
        tls::server(inner, self.clone(), Arc::new(choose))
    }

    /// What a client's connection is started with in place of `inner`, which it wraps.
    pub fn client(&self, inner: Arc<dyn crypto::ClientConfig>) -> Arc<dyn crypto::ClientConfig> {
        tls::client(inner, self.clone())
    }

    /// Chooses how the connection sends from now on. As long as no more than a window to begin with has
    /// been sent, it begins anew, with the round-trip time that the handshake took. After that another
    /// algorithm goes on from what the connection has measured, and another initial window counts for
    /// the next path only.
    pub fn choose(&self, choice: Choice) {
        let mut now = self.now();
        now.choice = choice;
        if let Some(path) = &now.path {
            path.lock().choose(choice);
        }
    }

    /// Has somebody told of what happens from the next path on that the connection takes: of everything, if
    /// it is yet to be made.
    pub fn watch(&self, watch: Box<dyn Watch>) {
        self.now().watcher = Watcher::new(watch);
    }

    /// What can be seen now; `None` before the connection is made.
    pub fn observe(&self) -> Option<Observation> {
        let path = self.now().path.clone()?;
        let mut path = path.lock();
        path.settle(self.observed());
        Some(path.observation())
    }

    pub(crate) fn time(&self, instant: Instant) -> Time {
        self.0.epoch.time(instant)
    }

    pub(crate) fn observed(&self) -> &Arc<Observed> {
        &self.0.observed
    }

    /// A path of which nothing is known.
    pub(crate) fn new_path(&self, instant: Instant, mtu: u16) -> Arc<Path> {
        let mut now = self.now();
        let former = now.path.take();
        let mut congestion = Congestion::new(now.choice, self.0.seed, mtu, self.time(instant));
        congestion.watch(now.watcher.clone());
        if let Some(former) = former {
            congestion.count_from(&former.lock());
        }
        Arc::clone(now.path.insert(Arc::new(Path(Mutex::new(congestion)))))
    }

    /// A path of which as much is known as of `path`.
    pub(crate) fn same_path(&self, path: &Path) -> Arc<Path> {
        let congestion = path.lock().moved();
        Arc::clone(self.now().path.insert(Arc::new(Path(Mutex::new(congestion)))))
    }

    /// The connection sends on `path`: on a former one again if the newer one proved to lead nowhere.
    pub(crate) fn use_path(&self, path: &Arc<Path>) {
        let mut now = self.now();
        if !now.path.as_ref().is_some_and(|used| Arc::ptr_eq(used, path)) {
            let mut congestion = path.lock();
            if let Some(former) = &now.path {
                congestion.count_from(&former.lock());
            }
            congestion.choose(now.choice);
            now.path = Some(Arc::clone(path));
        }
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.0.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Path {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Congestion> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
