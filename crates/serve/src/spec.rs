//! What to serve, and what there must be before anything listens.

use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use tokio::runtime::{Builder, Runtime};
use tokio_rustls::TlsAcceptor;
use uncork_policy::{Origins, Policy, Settings};
use uncork_records::{RecordsSpec, writable};

use crate::admin::{AdminSpec, Bound};
use crate::choice::Chooser;
use crate::clock;
use crate::error::ServeError;
use crate::handover::{Inherited, InheritedListener};
use crate::identity::Identity;
use crate::keys::{self, Secret};
use crate::limits::Limits;
use crate::quic::{self, QlogFiles};
use crate::site::{Site, SiteOptions};
use crate::sources::Sources;
use crate::tcp::{self, Bound as TcpBound, ListenerSpec};
use crate::tickets::Ticketers;
use arc_swap::ArcSwap;

/// How many free ports of TCP are tried before there is one that is free over UDP, too.
const FREE_PORTS: u32 = 16;

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
    /// Whether to serve over QUIC, too, at the same addresses, if it has an identity.
    pub http3: bool,
    /// Plain HTTP may be served beyond this machine.
    pub plain_anywhere: bool,
    /// What clients may take.
    pub limits: Limits,
    /// Where a record of each response and each connection goes.
    pub records: Option<RecordsSpec>,
    /// The directory for a file of qlog for each connection over QUIC.
    pub qlog: Option<PathBuf>,
    /// Where operators are told what it does.
    pub admin: Option<AdminSpec>,
    /// The directory with keys that outlive the process, and that a fleet can share.
    pub keys: Option<PathBuf>,
    /// The Unix socket through which a new process takes over from the one that serves.
    pub handover: Option<PathBuf>,
}

impl ServerSpec {
    /// Finds out whether it can be served here and now: files, addresses, records, qlog. Leaves nothing
    /// behind. Gives the warnings about the policy.
    ///
    /// # Errors
    ///
    /// Those of [`crate::Server::start`].
    pub fn check(&self) -> Result<Vec<String>, ServeError> {
        let mut inherited = self.inherit()?;
        let keys = self.keys.as_deref().filter(|keys| !keys.exists());
        if let Some(missing) = keys {
            let wrong = |error| ServeError::Keys(missing.to_owned(), error);
            writable::directory(missing).map_err(|error| wrong(error.to_string()))?;
        }
        let known = keys.is_none().then_some(self.keys.as_deref()).flatten();
        let prepared = self.prepare(known, inherited.as_ref())?;
        let _bound = self.bind(&prepared, &runtime()?, inherited.as_mut())?;
        self.records.as_ref().map(RecordsSpec::check).transpose()?;
        self.qlog.as_deref().map(QlogFiles::check).transpose()?;
        Ok(self.warnings(prepared.policy.as_deref()))
    }

    pub(crate) fn warnings(&self, policy: Option<&ArcSwap<Policy>>) -> Vec<String> {
        let names: Vec<&str> = self.listeners.iter().map(|listener| &*listener.name).collect();
        policy.map_or(Vec::new(), |it| it.load().warnings(&names, !self.geo.is_empty()))
    }

    /// The sockets of a process that serves, if there is one.
    pub(crate) fn inherit(&self) -> Result<Option<Inherited>, ServeError> {
        let Some(path) = &self.handover else { return Ok(None) };
        Inherited::ask(path).map_err(|error| ServeError::TakeOver(path.clone(), error))
    }

    /// The sockets of all listeners, and the admin endpoint's. Together, as two of them may want the same address.
    pub(crate) fn bind(
        &self,
        prepared: &Prepared,
        runtime: &Runtime,
        mut inherited: Option<&mut Inherited>,
    ) -> Result<(Vec<Sockets>, Option<Bound>), ServeError> {
        // Sockets of tokio's need its runtime.
        let _context = runtime.enter();
        let bound = self.listeners.iter();
        let bound = bound.map(|listener| prepared.bind(listener, inherited.as_deref_mut()));
        let bound = bound.collect::<Result<Vec<_>, _>>()?;
        Ok((bound, self.listen_for_operators(inherited)?))
    }

    /// The admin endpoint's listener.
    fn listen_for_operators(
        &self,
        inherited: Option<&mut Inherited>,
    ) -> Result<Option<Bound>, ServeError> {
        let Some(admin) = &self.admin else { return Ok(None) };
        match inherited.and_then(|it| it.admin(&admin.address.to_string())) {
            Some(fd) => Bound::adopt(&admin.address, fd).map(Some),
            None => admin.listen().map(Some),
        }
    }

    /// What there must be; `keys` is a directory in which there are keys.
    pub(crate) fn prepare(
        &self,
        keys: Option<&Path>,
        inherited: Option<&Inherited>,
    ) -> Result<Prepared, ServeError> {
        let addresses: Vec<SocketAddr> = self.listeners.iter().map(|it| it.address).collect();
        let exposed = addresses.iter().find(|address| !address.ip().is_loopback());
        if let (Identity::Plain, false, Some(exposed)) =
            (&self.identity, self.plain_anywhere, exposed)
        {
            return Err(ServeError::Plain(*exposed));
        }
        if self.limits.connections == 0 {
            return Err(ServeError::NoConnections);
        }
        let site = Site::open(&self.root, self.site.clone())?;
        let mut sources = Sources::default();
        let certificates = sources.certificates(&self.identity, &addresses)?;
        let tickets = match keys {
            Some(keys) => sources.tickets(&keys::tickets_path(keys))?.ticketers(),
            None => Ticketers::own()?,
        };
        let secret = match (inherited, keys) {
            (Some(inherited), _) => inherited.secret,
            (None, Some(keys)) => keys::read_connections(keys)?,
            (None, None) => keys::random()?,
        };
        let acceptor = |certificates| tcp::acceptor(certificates, Arc::clone(&tickets.tcp));
        let tls = certificates.clone().map(acceptor).transpose()?;
        let epoch = clock::now();
        let server = |certificates| {
            quic::server(certificates, Arc::clone(&tickets.quic), &self.limits, epoch)
        };
        let quic = certificates.filter(|_| self.http3).map(server).transpose()?;
        if self.qlog.is_some() && quic.is_none() {
            return Err(ServeError::QlogWithoutHttp3);
        }
        if let (None, Some(cc)) = (&quic, self.listeners.iter().find_map(|it| it.quic_cc)) {
            return Err(ServeError::QuicCcWithoutHttp3(cc));
        }
        let policy = self.policy.as_deref().map(|path| sources.policy(path)).transpose()?;
        let origins = sources.origins(&self.geo)?;
        Ok(Prepared { site, tls, quic, policy, origins, sources, secret, epoch })
    }
}

pub(crate) fn runtime() -> Result<Runtime, ServeError> {
    let runtime = Builder::new_multi_thread().enable_all().thread_name("serve").build();
    runtime.map_err(|error| ServeError::System("start threads", error))
}

/// What there must be before anything listens.
pub(crate) struct Prepared {
    pub(crate) site: Site,
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) quic: Option<uncork_quic_io::Server>,
    pub(crate) policy: Option<Arc<ArcSwap<Policy>>>,
    origins: Arc<ArcSwap<Origins>>,
    pub(crate) sources: Sources,
    /// The secret of connection IDs.
    pub(crate) secret: Secret,
    pub(crate) epoch: Instant,
}

/// The sockets of a listener.
pub(crate) struct Sockets {
    pub(crate) tcp: TcpBound,
    pub(crate) udp: Vec<UdpSocket>,
    /// The number of the listener that the UDP sockets are taken over from.
    pub(crate) taken_from: Option<usize>,
}

impl Prepared {
    /// What chooses for connections over TCP and over QUIC of each listener.
    pub(crate) fn choosers(&self, listeners: &[ListenerSpec]) -> Vec<(Chooser, Chooser)> {
        listeners.iter().map(|it| (self.chooser(it), self.quic_chooser(it))).collect()
    }

    /// What chooses for connections over TCP.
    fn chooser(&self, listener: &ListenerSpec) -> Chooser {
        let cc = listener.cc.as_deref();
        let settings = Settings { tcp: cc.map(Into::into), ..Settings::default() };
        self.choose(listener, cc.is_some(), cc.unwrap_or("default"), settings)
    }

    /// What chooses for connections over QUIC.
    fn quic_chooser(&self, listener: &ListenerSpec) -> Chooser {
        let settings = Settings::default();
        let quic = listener.quic_cc.unwrap_or(settings.quic);
        let settings = Settings { quic, ..settings };
        self.choose(listener, listener.quic_cc.is_some(), &quic.to_string(), settings)
    }

    /// The policy, unless the listener has a choice of its own or there is none.
    fn choose(
        &self,
        listener: &ListenerSpec,
        has_chosen: bool,
        group: &str,
        settings: Settings,
    ) -> Chooser {
        let origins = Arc::clone(&self.origins);
        match &self.policy {
            Some(policy) if !has_chosen => {
                Chooser::by_policy(&listener.name, Arc::clone(policy), origins)
            }
            _ => Chooser::fixed(group, settings, origins),
        }
    }

    /// Listens at one address, over UDP as well if there is HTTP/3.
    pub(crate) fn bind(
        &self,
        listener: &ListenerSpec,
        inherited: Option<&mut Inherited>,
    ) -> Result<Sockets, ServeError> {
        if let Some(taken) = inherited.and_then(|it| it.listener(listener.address)) {
            return self.take_over(listener, taken);
        }
        let mut tries = if listener.address.port() == 0 { FREE_PORTS } else { 1 };
        loop {
            let bound = listener.listen()?;
            if self.quic.is_none() {
                return Ok(Sockets { tcp: bound, udp: Vec::new(), taken_from: None });
            }
            tries -= 1;
            match quic::bind(bound.address) {
                Ok(udp) => return Ok(Sockets { tcp: bound, udp, taken_from: None }),
                Err(error) if tries == 0 => {
                    return Err(ServeError::Datagrams(bound.address, error));
                }
                // Which port is free for TCP may not be for UDP.
                Err(_) => {}
            }
        }
    }

    fn take_over(
        &self,
        listener: &ListenerSpec,
        taken: InheritedListener,
    ) -> Result<Sockets, ServeError> {
        let tcp = listener.adopt(taken.tcp)?;
        if self.quic.is_none() {
            return Ok(Sockets { tcp, udp: Vec::new(), taken_from: None });
        }
        if taken.udp.is_empty() {
            let udp = quic::bind(tcp.address);
            let udp = udp.map_err(|error| ServeError::Datagrams(tcp.address, error))?;
            return Ok(Sockets { tcp, udp, taken_from: None });
        }
        let udp = taken.udp.into_iter().map(UdpSocket::from).collect();
        Ok(Sockets { tcp, udp, taken_from: Some(taken.index) })
    }
}
