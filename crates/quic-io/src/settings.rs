//! Configurations of the stack with a congestion controller of the connection's own.

use std::sync::Arc;
use std::time::Instant;

use noq_proto::{ClientConfig, ServerConfig, TransportConfig, crypto};
use uncork_cc::CcSpec;
use uncork_quic::{Choice, Handle};

/// What all connections of a server have in common.
#[derive(Clone)]
pub struct Server {
    base: ServerConfig,
    transport: TransportConfig,
    epoch: Instant,
}

impl Server {
    /// Of `base` all but the transport is taken. Times of controllers count from `epoch`.
    pub fn new(base: ServerConfig, transport: TransportConfig, epoch: Instant) -> Self {
        Self { base, transport, epoch }
    }

    /// What [`crate::Config::server`] wants. It says how addresses are validated, so all workers must
    /// have the same.
    pub fn base(&self) -> Arc<ServerConfig> {
        Arc::new(self.base.clone())
    }

    /// What a connection is accepted with: it sends as `choice` says, until `choose` knows better
    /// when the client has said which server it wants. Each connection wants a `seed` of its own.
    pub fn accept(
        &self,
        choice: Choice,
        seed: u64,
        choose: impl Fn(Option<&str>) -> Option<Choice> + Send + Sync + 'static,
    ) -> (Handle, Arc<ServerConfig>) {
        let cc = Handle::new(choice, seed, self.epoch);
        let mut config = self.base.clone();
        config.crypto = cc.server(Arc::clone(&self.base.crypto), choose);
        config.transport = with(&self.transport, &cc);
        (cc, Arc::new(config))
    }
}

/// What all connections of a client have in common.
#[derive(Clone)]
pub struct Client {
    crypto: Arc<dyn crypto::ClientConfig>,
    transport: TransportConfig,
    epoch: Instant,
}

impl Client {
    /// Times of controllers count from `epoch`.
    pub fn new(
        crypto: Arc<dyn crypto::ClientConfig>,
        transport: TransportConfig,
        epoch: Instant,
    ) -> Self {
        Self { crypto, transport, epoch }
    }

    /// What [`crate::Host::connect`] wants. Each connection wants a `seed` of its own.
    pub fn begin(&self, spec: CcSpec, seed: u64) -> (Handle, ClientConfig) {
        let cc = Handle::new(spec.into(), seed, self.epoch);
        let mut config = ClientConfig::new(cc.client(Arc::clone(&self.crypto)));
        config.transport_config(with(&self.transport, &cc));
        (cc, config)
    }
}

fn with(transport: &TransportConfig, cc: &Handle) -> Arc<TransportConfig> {
    let mut transport = transport.clone();
    transport.congestion_controller_factory(cc.factory());
    Arc::new(transport)
}
