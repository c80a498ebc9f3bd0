//! A client's persistent connection, opened on demand.

use http::{HeaderMap, Method};

use crate::ClientError;
use crate::connect::{Connector, Setup};
use crate::connection::{Connection, Response, Version};
use crate::target::Target;

/// A connection to one origin at a time, reused across requests.
#[derive(Debug)]
pub(crate) struct PersistentConnection {
    connector: Connector,
    open: Option<(Target, Connection)>,
}

impl PersistentConnection {
    pub(crate) fn new(connector: Connector) -> Self {
        Self { connector, open: None }
    }

    /// Another handle of the same connection, if it can multiplex requests.
    pub(crate) fn share(&self) -> Option<Self> {
        let (target, connection) = self.open.as_ref()?;
        let open = Some((target.clone(), connection.share()?));
        Some(Self { connector: self.connector.clone(), open })
    }

    pub(crate) fn connector(&self) -> &Connector {
        &self.connector
    }

    pub(crate) fn version(&self) -> Option<Version> {
        self.open.as_ref().map(|(_, connection)| connection.version())
    }

    /// Drops the connection.
    pub(crate) fn hang_up(&mut self) {
        self.open = None;
    }

    /// Connects to the origin of `target` unless already connected. Returns the setup of a new connection.
    pub(crate) async fn open(&mut self, target: &Target) -> Result<Option<Setup>, ClientError> {
        let is_usable = |(of, connection): &(Target, Connection)| {
            of.has_origin_of(target) && !connection.is_closed()
        };
        if self.open.as_ref().is_some_and(is_usable) {
            return Ok(None);
        }
        self.open = None;
        let (connection, setup) = self.connector.connect(target).await?;
        self.open = Some((target.clone(), connection));
        Ok(Some(setup))
    }

    /// Sends a request. If a reused connection fails, retries once on a new one: the server may
    /// have closed it while the request was in flight (RFC 9110 §9.2.2).
    pub(crate) async fn request(
        &mut self,
        method: Method,
        target: &Target,
        headers: &HeaderMap,
    ) -> Result<(Response, Option<Setup>), ClientError> {
        let setup = self.open(target).await?;
        match self.ask(method.clone(), target, headers).await {
            Err(ClientError::Broken { .. }) if setup.is_none() => {
                self.hang_up();
                let setup = self.open(target).await?;
                Ok((self.ask(method, target, headers).await?, setup))
            }
            response => Ok((response?, setup)),
        }
    }

    async fn ask(
        &mut self,
        method: Method,
        target: &Target,
        headers: &HeaderMap,
    ) -> Result<Response, ClientError> {
        let Some((_, connection)) = &mut self.open else {
            return Err(ClientError::Interrupted);
        };
        let response = connection.request(method, target, headers);
        self.connector.with_timeout(response).await
    }
}
