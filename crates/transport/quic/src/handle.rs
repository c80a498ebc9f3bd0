//! The handle of a connection's congestion control.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use noq_proto::congestion::ControllerFactory;
use noq_proto::crypto;
use uncork_cc::{CcSpec, Control, EcnMode, RttSample, Snapshot};
use uncork_ecn::FlowEvidence;
use uncork_units::{Rate, Time, TimeDelta};

use crate::choice::Choice;
use crate::congestion::PathCongestion;
use crate::controller::Factory;
use crate::epoch::Epoch;
use crate::observed::Observed;
use crate::start::ConnectionStart;
use crate::tls;
use crate::watch::{Watch, Watcher};

/// The congestion control of a connection: chooses and observes it. Clones refer to the same connection.
#[derive(Clone, Debug)]
pub struct Handle(Arc<HandleInner>);

#[derive(Debug)]
struct HandleInner {
    epoch: Epoch,
    seed: u64,
    observed: Arc<Observed>,
    now: Mutex<Current>,
}

/// The current choice and path.
#[derive(Debug)]
struct Current {
    choice: Choice,
    path: Option<Arc<SharedPath>>,
    watcher: Watcher,
}

/// The congestion control of one path.
#[derive(Debug)]
pub(crate) struct SharedPath(Mutex<PathCongestion>);

/// The observable state of a connection's congestion control.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Observation {
    /// The algorithm.
    pub spec: CcSpec,
    /// Window, pacing rate and send quantum.
    pub control: Control,
    /// The algorithm's state.
    pub snapshot: Snapshot,
    /// The latest, smoothed and smallest round-trip time.
    pub rtt: Option<RttSample>,
    /// The probe timeout (RFC 9002 §6.2.1): by then the peer should have acknowledged what it received.
    pub probe_timeout: TimeDelta,
    /// Delivery rate over the last round trip that was not application-limited, or over a later one
    /// if that was faster.
    pub delivery_rate: Option<Rate>,
    /// Whether nothing was left to send at the last acknowledgement, or flow control blocked the
    /// sender, and nothing has been sent since.
    pub is_drained: bool,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Bytes sent in ack-eliciting packets, headers included.
    pub sent_bytes: u64,
    /// Of these, bytes acknowledged.
    pub acked_bytes: u64,
    /// Of these, bytes declared lost.
    pub lost_bytes: u64,
    /// Packets declared lost.
    pub lost_packets: u64,
    /// Bytes sent with an unknown fate: packets of discarded handshake keys, MTU probes, packets of
    /// a path that the connection left.
    pub unheard_bytes: u64,
    /// Packets declared lost that arrived after all.
    pub spurious_packets: u64,
    /// Packets reported as Congestion Experienced.
    pub ce_packets: u64,
    /// How packets use ECN now: less than was chosen if a queue is not for L4S, or validation failed.
    pub ecn: EcnMode,
    /// Whether ECN validation failed (RFC 9000 §13.4.2.1).
    pub has_ecn_failed: bool,
    /// What the queues on the path have shown, if packets had ECT(1).
    pub ecn_evidence: Option<FlowEvidence>,
    /// How the start of the connection went; `None` before the first full packet after the handshake.
    pub start: Option<ConnectionStart>,
    /// Whether the connection is on its first path still.
    pub is_first_path: bool,
}

impl Handle {
    /// The congestion control of a new connection. Times count from `epoch`. Use a different `seed` per
    /// connection.
    pub fn new(choice: Choice, seed: u64, epoch: Instant) -> Self {
        Self(Arc::new(HandleInner {
            epoch: Epoch::new(epoch),
            seed,
            observed: Arc::default(),
            now: Mutex::new(Current { choice, path: None, watcher: Watcher::default() }),
        }))
    }

    /// For `TransportConfig::congestion_controller_factory`.
    pub fn factory(&self) -> Arc<dyn ControllerFactory + Send + Sync> {
        Arc::new(Factory(self.clone()))
    }

    /// Wraps the cryptography `inner` of a server configuration. `choose` is called with the client's
    /// server name (SNI); its answer applies before anything but the handshake is sent.
    pub fn server(
        &self,
        inner: Arc<dyn crypto::ServerConfig>,
        choose: impl Fn(Option<&str>) -> Option<Choice> + Send + Sync + 'static,
    ) -> Arc<dyn crypto::ServerConfig> {
        tls::server(inner, self.clone(), Arc::new(choose))
    }

    /// Wraps the cryptography `inner` of a client configuration.
    pub fn client(&self, inner: Arc<dyn crypto::ClientConfig>) -> Arc<dyn crypto::ClientConfig> {
        tls::client(inner, self.clone())
    }

    /// Changes the congestion control of the connection. Until more than an initial window was sent, this
    /// restarts it with the round-trip time of the handshake. Afterwards a new algorithm continues from the
    /// measurements, and a new initial window applies to the next path.
    pub fn choose(&self, choice: Choice) {
        let mut now = self.now();
        now.choice = choice;
        if let Some(path) = &now.path {
            path.lock().choose(choice);
        }
    }

    /// Reports events to `watch`, starting with the next path; all events if the connection does not
    /// exist yet.
    pub fn watch(&self, watch: Box<dyn Watch>) {
        self.now().watcher = Watcher::new(watch);
    }

    /// The current state; `None` before the connection exists.
    pub fn observe(&self) -> Option<Observation> {
        self.settled(PathCongestion::observation)
    }

    /// [`Observation::rtt`] alone, which costs less.
    pub fn rtt(&self) -> Option<RttSample> {
        self.settled(PathCongestion::rtt).flatten()
    }

    /// [`Observation::is_drained`] alone, which costs less; false before the connection exists.
    pub fn is_drained(&self) -> bool {
        self.settled(PathCongestion::is_drained).unwrap_or(false)
    }

    fn settled<T>(&self, of: impl FnOnce(&PathCongestion) -> T) -> Option<T> {
        let now = self.now();
        let mut path = now.path.as_ref()?.lock();
        path.settle(self.observed());
        Some(of(&path))
    }

    pub(crate) fn time(&self, instant: Instant) -> Time {
        self.0.epoch.time(instant)
    }

    pub(crate) fn observed(&self) -> &Arc<Observed> {
        &self.0.observed
    }

    /// A path without measurements.
    pub(crate) fn new_path(&self, instant: Instant, mtu: u16) -> Arc<SharedPath> {
        let mut now = self.now();
        let former = now.path.take();
        // What an earlier connection observed is about the first path.
        let resume = now.choice.resume.filter(|_| former.is_none());
        let choice = Choice { resume, ..now.choice };
        let mut congestion = PathCongestion::new(choice, self.0.seed, mtu, self.time(instant));
        congestion.watch(now.watcher.clone());
        if let Some(former) = former {
            congestion.count_from(&former.lock());
        }
        Arc::clone(now.path.insert(Arc::new(SharedPath(Mutex::new(congestion)))))
    }

    /// A path that starts with the measurements of `path`.
    pub(crate) fn same_path(&self, path: &SharedPath) -> Arc<SharedPath> {
        let congestion = path.lock().moved();
        Arc::clone(self.now().path.insert(Arc::new(SharedPath(Mutex::new(congestion)))))
    }

    /// The connection sends on `path`, or returns to it if a newer path failed.
    pub(crate) fn use_path(&self, path: &Arc<SharedPath>) {
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

    fn now(&self) -> MutexGuard<'_, Current> {
        self.0.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SharedPath {
    pub(crate) fn lock(&self) -> MutexGuard<'_, PathCongestion> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
