//! Wraps the stack's cryptography, to see packets just before encryption and just after decryption.

use std::any::Any;
use std::sync::Arc;

use bytes::BytesMut;
use noq_proto::crypto::rustls::HandshakeData;
use noq_proto::crypto::{
    ClientConfig, CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey,
    ServerConfig, Session, UnsupportedVersion,
};
use noq_proto::transport_parameters::TransportParameters;
use noq_proto::{ConnectError, ConnectionId, PathId, Side, TransportError};

use crate::choice::Choice;
use crate::handle::Handle;
use crate::observed::{Observed, Space};

/// Chooses the congestion control by the client's server name (SNI).
pub(crate) type Choose = Arc<dyn Fn(Option<&str>) -> Option<Choice> + Send + Sync>;

pub(crate) fn server(
    inner: Arc<dyn ServerConfig>,
    handle: Handle,
    choose: Choose,
) -> Arc<dyn ServerConfig> {
    Arc::new(TlsServer { inner, handle, choose })
}

pub(crate) fn client(inner: Arc<dyn ClientConfig>, handle: Handle) -> Arc<dyn ClientConfig> {
    Arc::new(TlsClient { inner, handle })
}

struct TlsServer {
    inner: Arc<dyn ServerConfig>,
    handle: Handle,
    choose: Choose,
}

impl ServerConfig for TlsServer {
    fn initial_keys(&self, version: u32, id: ConnectionId) -> Result<Keys, UnsupportedVersion> {
        // These keys are for packets sent before the connection exists, or that refuse it. They are
        // not observed.
        self.inner.initial_keys(version, id)
    }

    fn retry_tag(&self, version: u32, id: ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.inner.retry_tag(version, id, packet)
    }

    fn start_session(&self, version: u32, params: &TransportParameters) -> Box<dyn Session> {
        let inner = self.inner.start_session(version, params);
        let choose = Some(Arc::clone(&self.choose));
        Box::new(WatchedSession {
            inner,
            handle: self.handle.clone(),
            choose,
            next: Space::Handshake,
        })
    }
}

struct TlsClient {
    inner: Arc<dyn ClientConfig>,
    handle: Handle,
}

impl ClientConfig for TlsClient {
    fn start_session(
        &self,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        let inner = self.inner.start_session(version, server_name, params)?;
        let handle = self.handle.clone();
        Ok(Box::new(WatchedSession { inner, handle, choose: None, next: Space::Handshake }))
    }
}

/// A TLS session with observed packet keys.
struct WatchedSession {
    inner: Box<dyn Session>,
    handle: Handle,
    choose: Option<Choose>,
    /// The space of the next keys.
    next: Space,
}

impl WatchedSession {
    fn key(&self, inner: Box<dyn PacketKey>, space: Space, is_local: bool) -> Box<dyn PacketKey> {
        let observed = Arc::clone(self.handle.observed());
        if is_local {
            observed.on_key(space);
        }
        Box::new(WatchedKey { inner, observed, space, is_local })
    }

    fn pair(&self, keys: KeyPair<Box<dyn PacketKey>>, space: Space) -> KeyPair<Box<dyn PacketKey>> {
        KeyPair {
            local: self.key(keys.local, space, true),
            remote: self.key(keys.remote, space, false),
        }
    }

    fn keys(&self, keys: Keys, space: Space) -> Keys {
        Keys { header: keys.header, packet: self.pair(keys.packet, space) }
    }

    /// Calls `choose` when the client's server name is known.
    fn choose(&mut self) {
        let Some(choose) = self.choose.take() else { return };
        let data =
            self.inner.handshake_data().and_then(|data| data.downcast::<HandshakeData>().ok());
        let name = data.and_then(|data| data.server_name);
        if let Some(choice) = choose(name.as_deref()) {
            self.handle.choose(choice);
        }
    }
}

impl Session for WatchedSession {
    fn initial_keys(&self, id: ConnectionId, side: Side) -> Keys {
        self.keys(self.inner.initial_keys(id, side), Space::Initial)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.inner.handshake_data()
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.inner.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        // The client encrypts with these keys, the server decrypts.
        let (header, packet) = self.inner.early_crypto()?;
        Some((header, self.key(packet, Space::Data, true)))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.inner.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        let is_known = self.inner.read_handshake(buf)?;
        if is_known {
            self.choose();
        }
        Ok(is_known)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.inner.transport_parameters()
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let keys = self.inner.write_handshake(buf)?;
        let space = std::mem::replace(&mut self.next, Space::Data);
        Some(self.keys(keys, space))
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.inner.next_1rtt_keys()?;
        Some(self.pair(keys, Space::Data))
    }

    fn is_valid_retry(&self, id: ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.inner.is_valid_retry(id, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.inner.export_keying_material(output, label, context)
    }
}

struct WatchedKey {
    inner: Box<dyn PacketKey>,
    observed: Arc<Observed>,
    space: Space,
    /// Whether it is a sending key.
    is_local: bool,
}

impl PacketKey for WatchedKey {
    fn encrypt(&self, path: PathId, packet: u64, buf: &mut [u8], header_len: usize) {
        self.observed.on_encrypted(self.space);
        self.inner.encrypt(path, packet, buf, header_len);
    }

    fn decrypt(
        &self,
        path: PathId,
        packet: u64,
        header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        self.inner.decrypt(path, packet, header, payload)?;
        self.observed.on_decrypted(self.space, payload);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        self.inner.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.inner.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.inner.integrity_limit()
    }
}

impl Drop for WatchedKey {
    /// The stack drops the keys of a packet number space when it discards them (RFC 9001 §4.9).
    fn drop(&mut self) {
        if self.is_local {
            self.observed.on_key_gone(self.space);
        }
    }
}
