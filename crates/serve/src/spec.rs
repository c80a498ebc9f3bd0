//! What to serve, and what there must be before anything listens.

use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use tokio::runtime::{Builder, Runtime};
use tokio_rustls::TlsAcceptor;
use uncork_policy::{Origins, Policy, Settings};
use uncork_records::RecordsSpec;

use crate::admin::AdminSpec;
use crate::choice::Chooser;
use crate::clock;
use crate::error::ServeError;
use crate::identity::Identity;
use crate::limits::Limits;
use crate::quic::{self, QlogFiles};
use crate::site::{Site, SiteOptions};
use crate::sources::Sources;
use crate::tcp::{self, Bound as TcpBound, ListenerSpec};
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
}

impl ServerSpec {
    /// Finds out whether it can be served here and now: files, addresses, records, qlog. Leaves nothing
    /// behind. Gives the warnings about the policy.
    ///
    /// # Errors
    ///
    /// Those of [`crate::Server::start`].
    pub fn check(&self) -> Result<Vec<String>, ServeError> {
        let prepared = self.prepare()?;
        // Sockets of tokio's need its runtime.
        let runtime = runtime()?;
        let _context = runtime.enter();
        // Together, as two of them may want the same address.
        let bound = self.listeners.iter().map(|listener| prepared.bind(listener));
        let _listeners = bound.collect::<Result<Vec<_>, _>>()?;
        let _admin = self.admin.as_ref().map(AdminSpec::listen).transpose()?;
        self.records.as_ref().map(RecordsSpec::check).transpose()?;
        self.qlog.as_deref().map(QlogFiles::check).transpose()?;
        Ok(self.warnings(prepared.policy.as_deref()))
    }

    pub(crate) fn warnings(&self, policy: Option<&ArcSwap<Policy>>) -> Vec<String> {
        let names: Vec<&str> = self.listeners.iter().map(|listener| &*listener.name).collect();
        policy.map_or(Vec::new(), |it| it.load().warnings(&names, !self.geo.is_empty()))
    }

    pub(crate) fn prepare(&self) -> Result<Prepared, ServeError> {
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
        let tls = certificates.clone().map(tcp::acceptor).transpose()?;
        let epoch = clock::now();
        let server = |certificates| quic::server(certificates, &self.limits, epoch);
        let quic = certificates.filter(|_| self.http3).map(server).transpose()?;
        if self.qlog.is_some() && quic.is_none() {
            return Err(ServeError::QlogWithoutHttp3);
        }
        if let (None, Some(cc)) = (&quic, self.listeners.iter().find_map(|it| it.quic_cc)) {
            return Err(ServeError::QuicCcWithoutHttp3(cc));
        }
        let policy = self.policy.as_deref().map(|path| sources.policy(path)).transpose()?;
        let origins = sources.origins(&self.geo)?;
        Ok(Prepared { site, tls, quic, policy, origins, sources, epoch })
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
    pub(crate) epoch: Instant,
}

impl Prepared {
    /// What chooses for connections over TCP.
    pub(crate) fn chooser(&self, listener: &ListenerSpec) -> Chooser {
        let cc = listener.cc.as_deref();
        let settings = Settings { tcp: cc.map(Into::into), ..Settings::default() };
        self.choose(listener, cc.is_some(), cc.unwrap_or("default"), settings)
    }

    /// What chooses for connections over QUIC.
    pub(crate) fn quic_chooser(&self, listener: &ListenerSpec) -> Chooser {
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
    ) -> Result<(TcpBound, Vec<UdpSocket>), ServeError> {
        let mut tries = if listener.address.port() == 0 { FREE_PORTS } else { 1 };
        loop {
            let bound = listener.listen()?;
            if self.quic.is_none() {
                return Ok((bound, Vec::new()));
            }
            tries -= 1;
            match quic::bind(bound.address) {
                Ok(sockets) => return Ok((bound, sockets)),
                Err(error) if tries == 0 => {
                    return Err(ServeError::Datagrams(bound.address, error));
                }
                // Which port is free for TCP may not be for UDP.
                Err(_) => {}
            }
        }
    }
}
