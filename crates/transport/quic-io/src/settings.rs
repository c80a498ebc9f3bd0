//! Configurations of the stack with a congestion controller per connection.

use std::sync::Arc;
use std::time::Instant;

use noq_proto::{ClientConfig, ServerConfig, TransportConfig, crypto};
use uncork_cc::CcSpec;
use uncork_quic::{Choice, Handle};

/// The configuration shared by all connections of a server.
#[derive(Clone)]
pub struct Server {
    base: ServerConfig,
    transport: TransportConfig,
    epoch: Instant,
}

impl Server {
    /// Uses everything of `base` but its transport. Controller times count from `epoch`.
    pub fn new(base: ServerConfig, transport: TransportConfig, epoch: Instant) -> Self {
        Self { base, transport, epoch }
    }

    /// The configuration for [`crate::Config::server`]. It contains the key for address validation, so
    /// all workers must share it.
    pub fn base(&self) -> Arc<ServerConfig> {
        Arc::new(self.base.clone())
    }

    /// The configuration to accept one connection with. It starts with `choice`; `choose` may replace
    /// that once the client has sent its server name (SNI). Use a different `seed` per connection.
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

/// The configuration shared by all connections of a client.
#[derive(Clone)]
pub struct Client {
    crypto: Arc<dyn crypto::ClientConfig>,
    transport: TransportConfig,
    epoch: Instant,
}

impl Client {
    /// Controller times count from `epoch`.
    pub fn new(
        crypto: Arc<dyn crypto::ClientConfig>,
        transport: TransportConfig,
        epoch: Instant,
    ) -> Self {
        Self { crypto, transport, epoch }
    }

    /// The configuration of one connection, for [`crate::Host::connect`]. Use a different `seed` per
    /// connection.
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
