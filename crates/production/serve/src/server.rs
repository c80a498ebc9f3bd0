//! The server: its listeners and their shared state.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use http::HeaderValue;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use uncork_policy::Policy;
use uncork_records::{Records, RecordsSummary, Writer};

use crate::access_log::{AccessLog, AccessLogWriter};
use crate::admin::{self, AdminAddress, AdminService, Bound};
use crate::admission::Admission;
use crate::choice::Chooser;
use crate::clock;
use crate::descriptors;
use crate::error::ServeError;
use crate::handover::{self, Offer, Predecessors};
use crate::keys;
use crate::live::Live;
use crate::quic::{self, QlogFiles, QlogWriter, QuicContext};
use crate::shared::{LINGER, Shared, Stop, Stopping};
use crate::site::Site;
use crate::sources::{Reloaded, Sources, described};
use crate::spec::{Prepared, ServerSpec, Sockets, runtime};
use crate::tcp::{self, Bound as TcpBound, ListenerSpec, Listening, TcpContext};
use crate::telemetry::{Metrics, Telemetry};
use arc_swap::ArcSwap;

/// How long disk reads in progress may delay the exit.
const LAST_READS: Duration = Duration::from_secs(1);

/// How long a shutdown waits for a QUIC client that makes no progress.
const LAST_STALL: Duration = Duration::from_secs(10);

/// A running server.
#[derive(Debug)]
pub struct Server {
    runtime: Runtime,
    listening: Vec<Listening>,
    listeners: Vec<JoinHandle<()>>,
    quic: Vec<quic::Listener>,
    /// Number of failed QUIC workers that [`Self::problem`] has reported.
    failures_reported: AtomicUsize,
    stop: watch::Sender<Option<Stopping>>,
    /// Whether another process has taken over.
    is_taken_over: bool,
    records: Option<Records>,
    metrics: Option<Arc<Metrics>>,
    writer: Option<Writer>,
    qlog: Option<QlogWriter>,
    access_log: Option<AccessLogWriter>,
    policy: Option<Arc<ArcSwap<Policy>>>,
    /// The active configuration.
    spec: ServerSpec,
    shared: Arc<Shared>,
    sources: Sources,
    admin: Option<Admin>,
    /// The offer to a process that takes over.
    offer: Option<Offer>,
}

/// The running admin endpoint.
#[derive(Debug)]
struct Admin {
    address: AdminAddress,
    task: JoinHandle<()>,
}

impl Server {
    /// Starts listening and serving.
    ///
    /// # Errors
    ///
    /// The configuration is invalid, or cannot be used on this machine: see [`ServeError`].
    pub fn start(spec: &ServerSpec) -> Result<Self, ServeError> {
        let account = spec.account()?;
        let mut inherited = spec.inherit()?;
        let runtime = runtime()?;
        let bound = spec.bind(&runtime, inherited.as_mut())?;
        if let Some(account) = account {
            let failed = |error| ServeError::User(spec.user.clone().unwrap_or_default(), error);
            account.adopt().map_err(failed)?;
        }
        if let Some(keys) = &spec.keys {
            keys::create_missing(keys)?;
        }
        let prepared = spec.prepare(spec.keys.as_deref(), inherited.as_ref())?;
        let admin = spec.listen_for_operators(&runtime, inherited.as_mut())?;
        let offer = handover::offer(spec, inherited.as_mut(), (&bound, &admin), prepared.secret)?;
        let generation = handover::generation(inherited.as_ref());
        let identity = quic::identity(&prepared.secret, generation)?;
        let (telemetry, writer) = telemetry(spec)?;
        let (qlog_files, qlog) = spec.qlog.as_deref().map(QlogFiles::open).transpose()?.unzip();
        let access_log = spec.access_log.as_deref().map(AccessLog::open).transpose()?;
        let choosers = prepared.choosers(&spec.listeners);
        let Prepared { live, tls, quic, policy, sources, epoch, .. } = prepared;
        let records = telemetry.as_ref().and_then(|telemetry| telemetry.records().cloned());
        let metrics = telemetry.as_ref().map(|telemetry| Arc::clone(telemetry.metrics()));
        let limits = spec.limits;
        let room = descriptors::for_connections() / spec.listeners.len().max(1);
        let tcp_connections = limits.connections.min(room.max(1));
        let (stop, stopped) = watch::channel(None);
        let shared = Arc::new(Shared {
            live: ArcSwap::from_pointee(live),
            limits,
            tcp_connections,
            stop: stopped.clone(),
            admission: Arc::new(Admission::new(&limits, tcp_connections, epoch)),
            telemetry,
            qlog: qlog_files,
            access_log: access_log.as_ref().map(|it| it.log().clone()),
            resume: Arc::default(),
            epoch,
            connections: AtomicU32::new(0),
        });
        let mut predecessors = handover::ready(spec, inherited.as_mut(), &bound)?;
        let mut server = Self {
            runtime,
            listening: Vec::new(),
            listeners: Vec::new(),
            quic: Vec::new(),
            failures_reported: AtomicUsize::new(0),
            stop,
            records,
            metrics,
            writer,
            qlog,
            access_log,
            policy,
            spec: spec.clone(),
            shared,
            sources,
            is_taken_over: false,
            admin: None,
            offer,
        };
        let listeners = choosers.into_iter().zip(&spec.listeners).zip(bound);
        server.serve_all(listeners, (tls.as_ref(), quic.as_ref(), &identity), &mut predecessors)?;
        server.admin = admin.and_then(|bound| server.serve_admin(bound, stopped));
        server.note_policy();
        handover::serving(spec, inherited, server.offer.as_ref())?;
        server.sources.accept();
        Ok(server)
    }

    /// Serves through the sockets of all listeners.
    fn serve_all<'a>(
        &mut self,
        listeners: impl Iterator<Item = (((Chooser, Chooser), &'a ListenerSpec), Sockets)>,
        (tls, quic, identity): (
            Option<&TlsAcceptor>,
            Option<&uncork_quic_io::Server>,
            &uncork_quic_io::Identity,
        ),
        predecessors: &mut Predecessors,
    ) -> Result<(), ServeError> {
        for (((tcp, quic_chooser), listener), sockets) in listeners {
            let Sockets { tcp: mut bound, udp, taken_from } = sockets;
            let (name, address) = (Arc::from(listener.name.as_str()), bound.address);
            listener.take_over(&mut bound)?;
            let https = self.listening.first().map_or(443, |first| first.address.port());
            let context = TcpContext {
                shared: Arc::clone(&self.shared),
                listener: Arc::clone(&name),
                chooser: tcp,
                tls: tls.filter(|_| !listener.to_https).cloned(),
                to_https: listener.to_https.then_some(https),
                alternative: quic
                    .filter(|_| !listener.to_https)
                    .and_then(|_| alternative(address.port())),
                stop: self.shared.stop.clone(),
            };
            self.serve_tcp(bound, context);
            if let Some(quic) = quic.filter(|_| !listener.to_https) {
                let before = taken_from.map_or_else(Vec::new, |index| predecessors.of(index));
                let identity = identity.clone();
                let workers = quic::Bound { address, sockets: udp, identity, predecessors: before };
                self.serve_quic((&name, quic_chooser), quic.clone(), workers)?;
            }
        }
        Ok(())
    }

    fn serve_tcp(&mut self, TcpBound { listener, address, cc }: TcpBound, context: TcpContext) {
        let is_tls = context.tls.is_some();
        let cc = if context.chooser.is_by_policy() { "policy".to_owned() } else { cc };
        self.listening.push(Listening { address, cc, is_tls, protocols: "http/1.1,h2" });
        let stop = context.stop.clone();
        self.listeners.push(self.runtime.spawn(tcp::accept(listener, context, stop)));
    }

    fn serve_quic(
        &mut self,
        (name, chooser): (&Arc<str>, Chooser),
        server: uncork_quic_io::Server,
        bound: quic::Bound,
    ) -> Result<(), ServeError> {
        let address = bound.address;
        let cc = chooser.fixed_quic().map_or("policy".to_owned(), |cc| cc.to_string());
        let (shared, runtime) = (Arc::clone(&self.shared), self.runtime.handle().clone());
        let (listener, port) = (Arc::clone(name), address.port());
        let context = QuicContext { shared, listener, port, chooser, server, runtime };
        self.quic.push(quic::Listener::start(bound, context)?);
        self.listening.push(Listening { address, cc, is_tls: true, protocols: "h3" });
        Ok(())
    }

    /// Starts the admin endpoint.
    fn serve_admin(&self, bound: Bound, stop: Stop) -> Option<Admin> {
        let metrics = Arc::clone(self.metrics.as_ref()?);
        let quic = self.quic.iter().map(quic::Listener::health).collect();
        let address = bound.address().ok()?;
        let is_loopback = bound.is_loopback();
        let service = AdminService { metrics, stop, quic, is_loopback };
        let task = self.runtime.spawn(admin::serve(bound, service));
        Some(Admin { address, task })
    }

    /// The listeners, in the configured order. QUIC listeners follow their TCP listener.
    pub fn listening(&self) -> &[Listening] {
        &self.listening
    }

    /// The active policy in one line, if any.
    pub fn policy(&self) -> Option<String> {
        self.policy.as_ref().map(|policy| described(&policy.load()))
    }

    /// Warnings about the active policy, such as rules that never match here. `spec` is the one
    /// given to [`Self::start`].
    pub fn warnings(&self, spec: &ServerSpec) -> Vec<String> {
        let mut warnings = spec.warnings(self.policy.as_deref());
        warnings.extend(self.sources.warnings().map(str::to_owned));
        warnings
    }

    /// Reads the policy, the databases and the certificates again, and opens the roots again. New connections use
    /// the new versions. A file with an error is ignored, and its old version stays active.
    pub fn reload(&mut self) -> Vec<Reloaded> {
        let mut files = self.sources.reload();
        files.extend(self.shared.live.load().sites.all().filter_map(reopened));
        self.note(&files);
        files
    }

    /// Serves as `spec` says from now on: roots, hosts, certificates, headers, limits of networks. All or nothing.
    ///
    /// What cannot be served, or not without a restart, is the result's error.
    pub fn reconfigure(&mut self, spec: &ServerSpec) -> Reloaded {
        let result = self.activate(spec).map(|()| "the configuration".to_owned());
        let reloaded = Reloaded { what: "configuration", result };
        self.note(std::slice::from_ref(&reloaded));
        reloaded
    }

    fn activate(&mut self, spec: &ServerSpec) -> Result<(), ServeError> {
        if let Some(setting) = self.spec.differs_for_good(spec) {
            return Err(ServeError::NeedsRestart(setting));
        }
        spec.check_hosts()?;
        let live = Live::new(spec, Some(&self.shared.live.load()), self.shared.epoch)?;
        let certificates = self.sources.read_certificates(spec)?;
        if let Some(read) = certificates {
            self.sources.activate_certificates(spec, read);
        }
        self.shared.live.store(Arc::new(live));
        self.shared.admission.limit(&spec.limits);
        self.spec = spec.clone();
        Ok(())
    }

    /// Like [`Self::reload`], but only for files that have changed since they were read and have
    /// not changed since the last call.
    pub fn reload_changed(&mut self) -> Vec<Reloaded> {
        let files = self.sources.reload_changed();
        self.note(&files);
        files
    }

    fn note(&self, files: &[Reloaded]) {
        let Some(metrics) = &self.metrics else { return };
        for reloaded in files {
            metrics.reloaded(reloaded.what, reloaded.result.is_ok());
        }
        if files.iter().any(|it| it.what == "policy" && it.result.is_ok()) {
            self.note_policy();
        }
    }

    fn note_policy(&self) {
        if let (Some(metrics), Some(policy)) = (&self.metrics, &self.policy) {
            metrics.policy(&format!("{:016x}", policy.load().fingerprint()));
        }
    }

    /// The address of the admin endpoint, if there is one.
    pub fn admin(&self) -> Option<&AdminAddress> {
        self.admin.as_ref().map(|admin| &admin.address)
    }

    /// Reopens the files of records and of the access log after log rotation has renamed them.
    pub fn reopen(&self) {
        if let Some(log) = &self.access_log {
            log.reopen();
        }
        if let Some(records) = &self.records {
            records.reopen();
        }
    }

    /// A problem that was not yet reported: a failed HTTP/3 worker, or lost records or qlog.
    pub fn problem(&self) -> Option<String> {
        let records = self.records.as_ref().and_then(|records| records.tally().problem());
        let problem = self.failed_worker().or(records).or_else(|| self.qlog.as_ref()?.problem());
        problem.or_else(|| self.access_log.as_ref()?.problem())
    }

    /// All failed workers, whenever there is a new one.
    fn failed_worker(&self) -> Option<String> {
        let failures: Vec<String> =
            self.quic.iter().flat_map(|it| it.health().failures()).collect();
        let before = self.failures_reported.swap(failures.len(), Ordering::Relaxed);
        (failures.len() > before).then(|| failures.join("; "))
    }

    /// Hands the sockets over if another process asks for them. After `Some(Ok)` that process
    /// serves, and [`Self::stop`] lets the responses of this one finish. After an error this
    /// process continues to serve.
    pub fn hand_over(&mut self) -> Option<Result<(), ServeError>> {
        let given = self.offer.as_ref()?.answer(&self.quic)?;
        if given.is_ok() {
            self.offer = None;
            self.is_taken_over = true;
            if let Some(admin) = self.admin.take() {
                admin.task.abort();
            }
        }
        Some(given.map_err(ServeError::NotTaken))
    }

    /// Stops accepting, lets responses finish for up to `patience`, and aborts the rest.
    pub fn stop(self, patience: Duration) -> RecordsSummary {
        let since = clock::now();
        // If another process serves, no service manager waits for this one to exit.
        let (stall, linger) =
            if self.is_taken_over { (patience, patience) } else { (LAST_STALL, LINGER) };
        let stopping = Stopping { since, at: since + patience, stall, linger };
        let _no_receiver = self.stop.send(Some(stopping));
        self.quic.iter().for_each(|listener| listener.shut_down(patience));
        self.runtime.block_on(async {
            for listener in self.listeners {
                let _ended = listener.await;
            }
        });
        for listener in self.quic {
            // A failed worker has already closed its connections.
            let _ended = listener.join();
        }
        if let Some(admin) = self.admin {
            admin.task.abort();
        }
        if let Some(qlog) = self.qlog {
            qlog.end();
        }
        self.runtime.shutdown_timeout(LAST_READS);
        if let Some(log) = self.access_log {
            log.end();
        }
        // The writer ends when no sender of records is left.
        drop((self.records, self.shared));
        self.writer.map_or_else(RecordsSummary::default, Writer::end)
    }
}

/// The root, if its path leads to another directory now.
fn reopened(site: &Site) -> Option<Reloaded> {
    let result = match site.reopen() {
        Ok(false) => return None,
        Ok(true) => Ok(format!("root '{}'", site.path().display())),
        Err(error) => Err(error),
    };
    Some(Reloaded { what: "root", result })
}

/// `Alt-Svc` of HTTP/3 at this port, for a day (RFC 7838 §3.1).
fn alternative(port: u16) -> Option<HeaderValue> {
    HeaderValue::try_from(format!("h3=\":{port}\"; ma=86400")).ok()
}

/// Skips telemetry when neither records nor an admin endpoint are configured.
fn telemetry(spec: &ServerSpec) -> Result<(Option<Arc<Telemetry>>, Option<Writer>), ServeError> {
    if spec.records.is_none() && spec.admin.is_none() {
        return Ok((None, None));
    }
    let (telemetry, writer) = Telemetry::open(spec.records.as_ref())?;
    Ok((Some(Arc::new(telemetry)), writer))
}
