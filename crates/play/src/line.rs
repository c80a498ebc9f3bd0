//! What requests of one client go over: a connection that is made when it is needed.

use http::{HeaderMap, Method};

use crate::ClientError;
use crate::connect::{Connector, Setup};
use crate::connection::{Connection, Response, Version};
use crate::target::Target;

/// A connection to one origin at a time, kept from request to request.
#[derive(Debug)]
pub(crate) struct Line {
    connector: Connector,
    open: Option<(Target, Connection)>,
}

impl Line {
    pub(crate) fn new(connector: Connector) -> Self {
        Self { connector, open: None }
    }

    /// The line of somebody who uses the same connection at the same time, if it can be used so.
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

    /// Forgets the connection.
    pub(crate) fn hang_up(&mut self) {
        self.open = None;
    }

    /// Connects to where `target` is, unless that has been done: how that went.
    pub(crate) async fn open(&mut self, target: &Target) -> Result<Option<Setup>, ClientError> {
        let is_of_use = |(of, connection): &(Target, Connection)| {
            of.has_origin_of(target) && !connection.is_closed()
        };
        if self.open.as_ref().is_some_and(is_of_use) {
            return Ok(None);
        }
        self.open = None;
        let (connection, setup) = self.connector.connect(target).await?;
        self.open = Some((target.clone(), connection));
        Ok(Some(setup))
    }

    /// Asks for `target`. A server may close a connection that was kept, in the moment in which the
    /// request is on its way (RFC 9110 §9.2.2): then it is asked again on a new one.
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
        self.connector.patiently(response).await
    }
}
