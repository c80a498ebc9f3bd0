//! What to serve, and what there must be before anything listens.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use tokio::runtime::{Builder, Runtime};
use tokio_rustls::TlsAcceptor;
use uncork_policy::{Origins, Policy, Prefixes, Settings};
use uncork_records::{RecordsSpec, writable};

use crate::activation::Activated;
use crate::admin::{AdminSpec, Bound};
use crate::choice::Chooser;
use crate::clock;
use crate::error::ServeError;
use crate::handover::{Inherited, InheritedListener};
use crate::identity::{CertificateFiles, Identity};
use crate::keys::{self, Secret};
use crate::limits::Limits;
use crate::live::Live;
use crate::quic::{self, QlogFiles};
use crate::server_timing::ServerTiming;
use crate::site::{HostPattern, SiteOptions};
use crate::sources::{Sources, table_fault};
use crate::tcp::{self, Bound as TcpBound, ListenerSpec};
use crate::tickets::Ticketers;
use crate::user::UserAccount;
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
    /// Virtual hosts. Requests for other names are for `root`.
    pub hosts: Vec<HostSpec>,
    /// Where.
    pub listeners: Vec<ListenerSpec>,
    /// The file with the policy that chooses for connections of listeners which do not.
    pub policy: Option<PathBuf>,
    /// The file with the public key of the signer of the policy and its table.
    pub policy_key: Option<PathBuf>,
    /// Databases of client locations in MaxMind's format. Several are asked in order.
    pub geo: Vec<PathBuf>,
    /// Who the server is.
    pub identity: Identity,
    /// Whether to serve over QUIC, too, at the same addresses, if it has an identity.
    pub http3: bool,
    /// Plain HTTP may be served beyond this machine.
    pub plain_anywhere: bool,
    /// What clients may take.
    pub limits: Limits,
    /// The clients that receive `Server-Timing`.
    pub server_timing: ServerTiming,
    /// Networks of proxies that say by the PROXY protocol for whom they connect.
    pub proxies: Prefixes,
    /// Where a record of each response and each connection goes.
    pub records: Option<RecordsSpec>,
    /// The file to which a line is appended for each response, with path and address.
    pub access_log: Option<PathBuf>,
    /// The directory for a file of qlog for each connection over QUIC.
    pub qlog: Option<PathBuf>,
    /// The endpoint for operators: status and metrics.
    pub admin: Option<AdminSpec>,
    /// The user, or `USER:GROUP`, to which it drops its privileges once it listens.
    pub user: Option<String>,
    /// The directory with keys that outlive the process, and that a fleet can share.
    pub keys: Option<PathBuf>,
    /// The Unix socket through which a new process takes over from the serving one.
    pub handover: Option<PathBuf>,
}

/// A virtual host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSpec {
    /// Its names.
    pub names: Vec<HostPattern>,
    /// Its directory.
    pub root: PathBuf,
    /// How that is served.
    pub site: SiteOptions,
    /// Its certificate, if it is not the server's.
    pub certificate: Option<CertificateFiles>,
}

impl ServerSpec {
    /// Certificates and their keys.
    pub(crate) fn certificate_paths(&self) -> Vec<PathBuf> {
        let own = match &self.identity {
            Identity::Files(files) => Some(files),
            Identity::Plain | Identity::SelfSigned => None,
        };
        let all = own.into_iter().chain(self.hosts.iter().filter_map(|it| it.certificate.as_ref()));
        all.flat_map(|files| [files.certificate.clone(), files.key.clone()]).collect()
    }

    /// Finds out whether it can be served here and now: files, addresses, records, qlog. Leaves nothing
    /// behind. Gives the warnings about the policy.
    ///
    /// # Errors
    ///
    /// Those of [`crate::Server::start`].
    pub fn check(&self) -> Result<Vec<String>, ServeError> {
        self.account()?;
        let mut inherited = self.inherit()?;
        let keys = self.keys.as_deref().filter(|keys| !keys.exists());
        if let Some(missing) = keys {
            let wrong = |error| ServeError::Keys(missing.to_owned(), error);
            writable::directory(missing).map_err(|error| wrong(error.to_string()))?;
        }
        let known = keys.is_none().then_some(self.keys.as_deref()).flatten();
        let runtime = runtime()?;
        let _bound = self.bind(&runtime, inherited.as_mut())?;
        let prepared = self.prepare(known, inherited.as_ref())?;
        let _admin = self.listen_for_operators(&runtime, inherited.as_mut())?;
        self.records.as_ref().map(RecordsSpec::check).transpose()?;
        if let Some(path) = &self.access_log {
            let failed = |error| ServeError::AccessLog(path.clone(), error);
            writable::file(path).map_err(failed)?;
        }
        self.qlog.as_deref().map(QlogFiles::check).transpose()?;
        Ok(self.warnings(prepared.policy.as_deref()))
    }

    pub(crate) fn warnings(&self, policy: Option<&ArcSwap<Policy>>) -> Vec<String> {
        let names: Vec<&str> = self.listeners.iter().map(|listener| &*listener.name).collect();
        let Some(policy) = policy.map(ArcSwap::load) else { return Vec::new() };
        let fault = self.policy.as_deref().and_then(|path| table_fault(path, &policy));
        fault
            .into_iter()
            .chain(policy.warnings(Some(&names), !self.geo.is_empty()))
            .chain(policy.window_warning())
            .collect()
    }

    /// The account to which the server drops its privileges once it listens.
    pub(crate) fn account(&self) -> Result<Option<UserAccount>, ServeError> {
        let Some(user) = &self.user else { return Ok(None) };
        let found =
            UserAccount::find(user).map_err(|error| ServeError::User(user.clone(), error))?;
        Ok(Some(found))
    }

    /// A host has a certificate only if the server has one.
    pub(crate) fn check_hosts(&self) -> Result<(), ServeError> {
        let own = self.hosts.iter().find(|host| host.certificate.is_some());
        match own.and_then(|host| host.names.first()) {
            Some(name) if self.identity == Identity::Plain => {
                Err(ServeError::HostCertificateAlone(name.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// The first setting that `other` has differently and that cannot change without a restart.
    pub(crate) fn differs_for_good(&self, other: &Self) -> Option<&'static str> {
        let kind = |spec: &Self| std::mem::discriminant(&spec.identity);
        let fixed = |limits: Limits| Limits {
            memory: 0,
            network_share: 0,
            network_connections: None,
            network_requests: None,
            network_rate: None,
            network_bits: (0, 0),
            ..limits
        };
        let differences = [
            ("listen` or `cc", self.listeners != other.listeners),
            ("policy", self.policy != other.policy),
            ("policy_key", self.policy_key != other.policy_key),
            ("geo", self.geo != other.geo),
            ("tls_cert` or `self_signed", kind(self) != kind(other)),
            ("no_http3", self.http3 != other.http3),
            ("plain", self.plain_anywhere != other.plain_anywhere),
            ("connections`, a time or `streams", fixed(self.limits) != fixed(other.limits)),
            ("records", self.records != other.records),
            ("access_log", self.access_log != other.access_log),
            ("qlog", self.qlog != other.qlog),
            ("admin", self.admin != other.admin),
            ("keys", self.keys != other.keys),
            ("user", self.user != other.user),
            ("handover", self.handover != other.handover),
        ];
        differences.into_iter().find_map(|(setting, differs)| differs.then_some(setting))
    }

    /// The sockets of a process that serves, if there is one.
    pub(crate) fn inherit(&self) -> Result<Option<Inherited>, ServeError> {
        let Some(path) = &self.handover else { return Ok(None) };
        Inherited::ask(path).map_err(|error| ServeError::TakeOver(path.clone(), error))
    }

    /// The sockets of all listeners.
    pub(crate) fn bind(
        &self,
        runtime: &Runtime,
        mut inherited: Option<&mut Inherited>,
    ) -> Result<Vec<Sockets>, ServeError> {
        // Sockets of tokio's need its runtime.
        let _context = runtime.enter();
        let failed = |error: io::Error| ServeError::Activation(error.to_string());
        let mut activated = Activated::from_env().map_err(failed)?;
        let bound = self.listeners.iter();
        let bound = bound.map(|it| self.bind_one(it, inherited.as_deref_mut(), &mut activated));
        let bound = bound.collect::<Result<_, _>>()?;
        if let Some((protocol, address)) = activated.left() {
            return Err(ServeError::Activation(format!(
                "nothing listens on {address} over {protocol}: give --listen {address}, or remove it from the socket \
                 unit"
            )));
        }
        Ok(bound)
    }

    fn has_http3(&self) -> bool {
        self.http3 && self.identity != Identity::Plain
    }

    /// Listens at one address, over UDP as well if there is HTTP/3.
    fn bind_one(
        &self,
        listener: &ListenerSpec,
        inherited: Option<&mut Inherited>,
        activated: &mut Activated,
    ) -> Result<Sockets, ServeError> {
        let has_http3 = self.has_http3() && !listener.to_https;
        if let Some(taken) = inherited.and_then(|it| it.listener(listener.address)) {
            return take_over(listener, taken, has_http3);
        }
        if let Some(tcp) = activated.tcp(listener.address) {
            let udp = if has_http3 { activated.udp(listener.address) } else { Vec::new() };
            return adopt(listener, (tcp, udp), None, has_http3);
        }
        let mut tries = if listener.address.port() == 0 { FREE_PORTS } else { 1 };
        loop {
            let bound = listener.listen()?;
            if !has_http3 {
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

    /// The admin endpoint's listener.
    pub(crate) fn listen_for_operators(
        &self,
        runtime: &Runtime,
        inherited: Option<&mut Inherited>,
    ) -> Result<Option<Bound>, ServeError> {
        let _context = runtime.enter();
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
        self.check_hosts()?;
        if self.identity == Identity::Plain && self.listeners.iter().any(|it| it.to_https) {
            return Err(ServeError::RedirectWithoutTls);
        }
        let epoch = clock::now();
        let live = Live::new(self, None, epoch)?;
        let mut sources = Sources::default();
        let certificates = sources.certificates(self, &addresses)?;
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
        let key = self.policy_key.as_deref();
        let policy = self.policy.as_deref().map(|path| sources.policy(path, key)).transpose()?;
        let origins = sources.origins(&self.geo)?;
        Ok(Prepared { live, tls, quic, policy, origins, sources, secret, epoch })
    }
}

pub(crate) fn runtime() -> Result<Runtime, ServeError> {
    let runtime = Builder::new_multi_thread().enable_all().thread_name("serve").build();
    runtime.map_err(|error| ServeError::System("start threads", error))
}

/// What there must be before anything listens.
pub(crate) struct Prepared {
    pub(crate) live: Live,
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
}

fn take_over(
    listener: &ListenerSpec,
    InheritedListener { index, tcp, udp, .. }: InheritedListener,
    has_http3: bool,
) -> Result<Sockets, ServeError> {
    let udp = if has_http3 { udp } else { Vec::new() };
    let udp = udp.into_iter().map(UdpSocket::from).collect();
    adopt(listener, (tcp, udp), Some(index), has_http3)
}

/// Uses sockets that are there, and opens those of UDP if there are none.
fn adopt(
    listener: &ListenerSpec,
    (tcp, udp): (OwnedFd, Vec<UdpSocket>),
    taken_from: Option<usize>,
    has_http3: bool,
) -> Result<Sockets, ServeError> {
    let tcp = listener.adopt(tcp)?;
    if udp.is_empty() && has_http3 {
        let udp = quic::bind(tcp.address);
        let udp = udp.map_err(|error| ServeError::Datagrams(tcp.address, error))?;
        return Ok(Sockets { tcp, udp, taken_from: None });
    }
    let taken_from = taken_from.filter(|_| has_http3);
    Ok(Sockets { tcp, udp, taken_from })
}
