//! The server: listeners, and what they share.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use uncork_policy::{Origins, Policy, Settings};

use crate::admin::{self, AdminAddress, AdminSpec, Bound};
use crate::choice::Chooser;
use crate::clock;
use crate::error::ServeError;
use crate::evidence::{Evidence, Metrics, Records, RecordsSpec, RecordsSummary, Writer};
use crate::identity::Identity;
use crate::limits::Limits;
use crate::site::{Site, SiteOptions};
use crate::sources::{Reloaded, Sources, described};
use crate::swap::Swap;
use crate::tcp::{self, Accepted, ListenerSpec, Listening};

/// How long reads that wait for a disk may hold up the end.
const LAST_READS: Duration = Duration::from_secs(1);

/// What to serve, to whom and how.
#[derive(Clone, Debug)]
pub struct ServerSpec {
    /// The directory.
    pub root: PathBuf,
    /// How it is served.
    pub site: SiteOptions,
    /// Where.
    pub listeners: Vec<ListenerSpec>,
    /// The file with the policy that chooses for connections of listeners which do not.
    pub policy: Option<PathBuf>,
    /// Databases in MaxMind's format that tell where clients are, of which several are asked in turn.
    pub geo: Vec<PathBuf>,
    /// Who the server is.
    pub identity: Identity,
    /// Plain HTTP may be served beyond this machine.
    pub plain_anywhere: bool,
    /// What clients may take.
    pub limits: Limits,
    /// Where a record of each response and each connection goes.
    pub records: Option<RecordsSpec>,
    /// Where operators are told what it does.
    pub admin: Option<AdminSpec>,
}

/// A server that serves.
#[derive(Debug)]
pub struct Server {
    runtime: Runtime,
    listening: Vec<Listening>,
    listeners: Vec<JoinHandle<()>>,
    stop: watch::Sender<Option<Instant>>,
    records: Option<Records>,
    metrics: Option<Arc<Metrics>>,
    writer: Option<Writer>,
    policy: Option<Arc<Swap<Policy>>>,
    sources: Sources,
    admin: Option<Admin>,
}

/// Where operators are answered, and by whom.
#[derive(Debug)]
struct Admin {
    address: AdminAddress,
    task: JoinHandle<()>,
}

/// When to end: `None` while there is no reason to.
pub(crate) type Stop = watch::Receiver<Option<Instant>>;

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) site: Arc<Site>,
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) limits: Limits,
    pub(crate) evidence: Option<Arc<Evidence>>,
    pub(crate) epoch: Instant,
    connections: AtomicU32,
}

impl Shared {
    pub(crate) fn next_connection(&self) -> u32 {
        self.connections.fetch_add(1, Ordering::Relaxed)
    }
}

impl ServerSpec {
    /// Finds out whether it can be served here, but for the addresses being free, and tells what of the
    /// policy holds for nobody.
    ///
    /// # Errors
    ///
    /// Those of [`Server::start`].
    pub fn check(&self) -> Result<Vec<String>, ServeError> {
        let prepared = self.prepare()?;
        // Sockets of tokio's need its runtime.
        let runtime = runtime()?;
        let _context = runtime.enter();
        self.listeners.iter().try_for_each(|listener| listener.socket().map(drop))?;
        Ok(self.doubts(prepared.policy.as_deref()))
    }

    fn doubts(&self, policy: Option<&Swap<Policy>>) -> Vec<String> {
        let names: Vec<&str> = self.listeners.iter().map(|listener| &*listener.name).collect();
        policy.map_or(Vec::new(), |it| it.get().doubts(&names, !self.geo.is_empty()))
    }

    fn prepare(&self) -> Result<Prepared, ServeError> {
        let addresses: Vec<SocketAddr> = self.listeners.iter().map(|it| it.address).collect();
        let exposed = addresses.iter().find(|address| !address.ip().is_loopback());
        if let (Identity::Plain, false, Some(exposed)) =
            (&self.identity, self.plain_anywhere, exposed)
        {
            return Err(ServeError::Plain(*exposed));
        }
        let site = Site::open(&self.root, self.site.clone())?;
        let mut sources = Sources::default();
        let certificates = sources.certificates(&self.identity, &addresses)?;
        let tls = certificates.map(tcp::acceptor).transpose()?;
        let policy = self.policy.as_deref().map(|path| sources.policy(path)).transpose()?;
        let origins = sources.origins(&self.geo)?;
        Ok(Prepared { site, tls, policy, origins, sources })
    }
}

/// What there must be before anything listens.
struct Prepared {
    site: Site,
    tls: Option<TlsAcceptor>,
    policy: Option<Arc<Swap<Policy>>>,
    origins: Arc<Swap<Origins>>,
    sources: Sources,
}

impl Prepared {
    fn chooser(&self, listener: &ListenerSpec) -> Chooser {
        let origins = Arc::clone(&self.origins);
        match (&self.policy, &listener.cc) {
            (Some(policy), None) => Chooser::by_policy(&listener.name, Arc::clone(policy), origins),
            (_, cc) => {
                let tcp = cc.as_deref().map(Into::into);
                let settings = Settings { tcp, ..Settings::default() };
                Chooser::fixed(cc.as_deref().unwrap_or("default"), settings, origins)
            }
        }
    }
}

impl Server {
    /// Listens, and serves from then on.
    ///
    /// # Errors
    ///
    /// What cannot be served, or not here: see [`ServeError`].
    pub fn start(spec: &ServerSpec) -> Result<Self, ServeError> {
        let prepared = spec.prepare()?;
        let runtime = runtime()?;
        let bound = {
            let _context = runtime.enter();
            spec.listeners.iter().map(ListenerSpec::listen).collect::<Result<Vec<_>, _>>()?
        };
        let admin = {
            let _context = runtime.enter();
            spec.admin.as_ref().map(AdminSpec::listen).transpose()?
        };
        let (evidence, writer) = evidence(spec)?;
        let is_tls = prepared.tls.is_some();
        let choosers: Vec<_> = spec.listeners.iter().map(|it| prepared.chooser(it)).collect();
        let Prepared { site, tls, policy, sources, .. } = prepared;
        let records = evidence.as_ref().and_then(|evidence| evidence.records().cloned());
        let metrics = evidence.as_ref().map(|evidence| Arc::clone(evidence.metrics()));
        let shared = Arc::new(Shared {
            site: Arc::new(site),
            tls,
            limits: spec.limits,
            evidence,
            epoch: clock::now(),
            connections: AtomicU32::new(0),
        });
        let (stop, stopped) = watch::channel(None);
        let admin = administer(admin, shared.evidence.as_ref(), &stopped, &runtime);
        let (mut listening, mut listeners) = (Vec::new(), Vec::new());
        for ((chooser, spec), (listener, address, cc)) in
            choosers.into_iter().zip(&spec.listeners).zip(bound)
        {
            let cc = if chooser.is_by_policy() { "policy".to_owned() } else { cc };
            let accepted = Accepted {
                shared: Arc::clone(&shared),
                listener: spec.name.as_str().into(),
                chooser,
                stop: stopped.clone(),
            };
            listening.push(Listening { address, cc, is_tls });
            listeners.push(runtime.spawn(tcp::accept(listener, accepted, stopped.clone())));
        }
        let server = Self {
            runtime,
            listening,
            listeners,
            stop,
            records,
            metrics,
            writer,
            policy,
            sources,
            admin,
        };
        server.note_policy();
        Ok(server)
    }

    /// Where it listens, in the order asked for.
    pub fn listening(&self) -> &[Listening] {
        &self.listening
    }

    /// The policy in force, in a line, if there is one.
    pub fn policy(&self) -> Option<String> {
        self.policy.as_ref().map(|policy| described(&policy.get()))
    }

    /// What of the policy in force holds for nobody here, each in a line; `spec` is what it was started
    /// with.
    pub fn doubts(&self, spec: &ServerSpec) -> Vec<String> {
        spec.doubts(self.policy.as_deref())
    }

    /// Reads the policy, the databases and the certificate again. New connections have what is new;
    /// where something is wrong, what was in force stays so.
    pub fn reload(&mut self) -> Vec<Reloaded> {
        let files = self.sources.reload();
        self.note(&files);
        files
    }

    /// The same for those files that have changed by now, and have not since the last call.
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
            metrics.policy(&format!("{:016x}", policy.get().fingerprint()));
        }
    }

    /// Where operators are answered, if anywhere.
    pub fn admin(&self) -> Option<&AdminAddress> {
        self.admin.as_ref().map(|admin| &admin.address)
    }

    /// Goes on in a new file of records: whoever rotates logs has renamed this one.
    pub fn reopen(&self) {
        if let Some(records) = &self.records {
            records.reopen();
        }
    }

    /// Why records are being lost, once for each time that this begins.
    pub fn problem(&self) -> Option<String> {
        self.records.as_ref()?.tally().problem()
    }

    /// Accepts no more, lets responses come to their end for up to `patience`, and breaks off the rest.
    pub fn stop(self, patience: Duration) -> RecordsSummary {
        let _nobody_left = self.stop.send(Some(clock::now() + patience));
        self.runtime.block_on(async {
            for listener in self.listeners {
                let _ended = listener.await;
            }
        });
        if let Some(admin) = self.admin {
            admin.task.abort();
        }
        self.runtime.shutdown_timeout(LAST_READS);
        drop(self.records);
        self.writer.map_or_else(RecordsSummary::default, Writer::end)
    }
}

fn runtime() -> Result<Runtime, ServeError> {
    let runtime = Builder::new_multi_thread().enable_all().thread_name("serve").build();
    runtime.map_err(|error| ServeError::System("start threads", error))
}

/// Nothing is observed for nobody.
fn evidence(spec: &ServerSpec) -> Result<(Option<Arc<Evidence>>, Option<Writer>), ServeError> {
    if spec.records.is_none() && spec.admin.is_none() {
        return Ok((None, None));
    }
    let (evidence, writer) = Evidence::open(spec.records.as_ref())?;
    Ok((Some(Arc::new(evidence)), writer))
}

/// Answers operators from now on.
fn administer(
    bound: Option<Bound>,
    evidence: Option<&Arc<Evidence>>,
    stop: &Stop,
    runtime: &Runtime,
) -> Option<Admin> {
    let (bound, evidence) = bound.zip(evidence)?;
    let address = bound.address().ok()?;
    let metrics = Arc::clone(evidence.metrics());
    let task = runtime.spawn(admin::serve(bound, metrics, stop.clone()));
    Some(Admin { address, task })
}
