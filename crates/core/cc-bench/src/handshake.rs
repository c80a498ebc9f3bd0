//! RTT estimators of the other stacks.
//!
//! Their controllers receive the round-trip time as an `RttEstimator`, which only a connection can create. So
//! this module creates a connection: a client without cryptography sends its first packet, a hand-written
//! packet acknowledges it, and a recording controller keeps the estimator. Its value is the initial
//! round-trip
//! time that the client was configured with.

use std::any::Any;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::BytesMut;

use crate::RTT;

const PEER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1);

/// The controllers' time zero. The clock is not read again.
#[allow(clippy::disallowed_methods, reason = "the other stacks take times of this type only")]
pub(crate) fn epoch() -> Instant {
    Instant::now()
}

fn rtt() -> Duration {
    Duration::from_nanos(RTT.as_nanos())
}

/// An unprotected server Initial packet that acknowledges packet 0 of `initial` (RFC 9000 §17.2.2, §19.3).
fn acknowledgement(initial: &[u8]) -> BytesMut {
    const CID: usize = 5;
    let destination = &initial[CID..=CID + usize::from(initial[CID])];
    let source = &initial[CID + destination.len()..];
    let source = &source[..=usize::from(source[0])];
    let mut packet = vec![0xc0, 0, 0, 0, 1];
    packet.extend(source);
    packet.extend(destination);
    // No token; 1024 bytes follow: packet number 0, ACK of 0 after no delay, in one range, PADDING.
    packet.extend([0, 0x44, 0x00]);
    packet.extend([0, 0x02, 0, 0, 0, 0]);
    packet.resize(packet.len() + 1_024 - 6, 0);
    packet.as_slice().into()
}

/// A client session without cryptography, and a controller that keeps the estimator.
macro_rules! witness {
    ($lib:ident, $cid:ty, [$($path:ty)?], [$($receiver:tt)*], [$($number:ty)?], [$($event:ty),*]) => {
        use $lib::congestion::{Controller, ControllerFactory};
        use $lib::crypto::{self, CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys,
            PacketKey, Session};
        use $lib::transport_parameters::TransportParameters;
        use $lib::{ConnectError, RttEstimator, Side, TransportError};

        use super::*;

        /// Keys that do not encrypt.
        pub(super) struct Plain;

        /// A session; true until its ClientHello is written.
        struct Hello(bool);

        impl Session for Hello {
            fn initial_keys(&self, _: $cid, _: Side) -> Keys {
                let header = || -> Box<dyn HeaderKey> { Box::new(Plain) };
                let packet = || -> Box<dyn PacketKey> { Box::new(Plain) };
                Keys {
                    header: KeyPair { local: header(), remote: header() },
                    packet: KeyPair { local: packet(), remote: packet() },
                }
            }
            fn handshake_data(&self) -> Option<Box<dyn Any>> { None }
            fn peer_identity(&self) -> Option<Box<dyn Any>> { None }
            fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> { None }
            fn early_data_accepted(&self) -> Option<bool> { None }
            fn is_handshaking(&self) -> bool { true }
            fn read_handshake(&mut self, _: &[u8]) -> Result<bool, TransportError> { Ok(false) }
            fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
                Ok(None)
            }
            fn write_handshake(&mut self, buffer: &mut Vec<u8>) -> Option<Keys> {
                if std::mem::take(&mut self.0) {
                    buffer.push(1);
                }
                None
            }
            fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> { None }
            fn is_valid_retry(&self, _: $cid, _: &[u8], _: &[u8]) -> bool { false }
            fn export_keying_material(&self, _: &mut [u8], _: &[u8], _: &[u8])
                -> Result<(), ExportKeyingMaterialError> { Err(ExportKeyingMaterialError) }
        }

        impl crypto::ClientConfig for Plain {
            fn start_session($($receiver)*, _: u32, _: &str, _: &TransportParameters)
                -> Result<Box<dyn Session>, ConnectError> { Ok(Box::new(Hello(true))) }
        }

        impl HeaderKey for Plain {
            fn decrypt(&self, _: usize, _: &mut [u8]) {}
            fn encrypt(&self, _: usize, _: &mut [u8]) {}
            fn sample_size(&self) -> usize { 0 }
        }

        impl PacketKey for Plain {
            fn encrypt(&self, $(_: $path,)? _: u64, _: &mut [u8], _: usize) {}
            fn decrypt(&self, $(_: $path,)? _: u64, _: &[u8], _: &mut BytesMut)
                -> Result<(), CryptoError> { Ok(()) }
            fn tag_len(&self) -> usize { 0 }
            fn confidentiality_limit(&self) -> u64 { u64::MAX }
            fn integrity_limit(&self) -> u64 { u64::MAX }
        }

        impl crypto::HmacKey for Plain {
            fn sign(&self, _: &[u8], _: &mut [u8]) {}
            fn signature_len(&self) -> usize { 0 }
            fn verify(&self, _: &[u8], _: &[u8]) -> Result<(), CryptoError> { Ok(()) }
        }

        #[derive(Clone, Default)]
        pub(super) struct Witness(pub(super) Arc<Mutex<Option<RttEstimator>>>);

        impl std::fmt::Debug for Witness {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("Witness")
            }
        }

        impl Controller for Witness {
            fn on_ack(&mut self, _: Instant, _: Instant, _: u64, $(_: $number,)? _: bool,
                rtt: &RttEstimator) {
                *self.0.lock().expect("one thread") = Some(*rtt);
            }
            fn on_congestion_event(&mut self, _: Instant, _: Instant, _: bool, $(_: $event),*) {}
            fn on_mtu_update(&mut self, _: u16) {}
            fn window(&self) -> u64 { u64::MAX }
            fn clone_box(&self) -> Box<dyn Controller> { Box::new(self.clone()) }
            fn initial_window(&self) -> u64 { u64::MAX }
            fn into_any(self: Box<Self>) -> Box<dyn Any> { self }
        }

        impl ControllerFactory for Witness {
            fn build(self: Arc<Self>, _: Instant, _: u16) -> Box<dyn Controller> {
                Box::new((*self).clone())
            }
        }

        pub(super) fn client(witness: &Witness) -> $lib::ClientConfig {
            let mut transport = $lib::TransportConfig::default();
            transport.initial_rtt(rtt());
            transport.congestion_controller_factory(Arc::new(witness.clone()));
            let mut config = $lib::ClientConfig::new(Arc::new(Plain));
            config.transport_config(Arc::new(transport));
            config
        }
    };
}

mod quinn_witness {
    use quinn_proto::ConnectionId;
    witness!(quinn_proto, &ConnectionId, [], [self: Arc<Self>], [], [u64]);
}

mod noq_witness {
    use noq_proto::{ConnectionId, PathId};
    witness!(noq_proto, ConnectionId, [PathId], [&self], [u64], [bool, u64, u64]);
}

/// An estimator of `quinn-proto` with the value [`RTT`].
pub(crate) fn quinn_rtt(now: Instant) -> quinn_proto::RttEstimator {
    use quinn_proto::{DatagramEvent, Endpoint, EndpointConfig};

    let witness = quinn_witness::Witness::default();
    let config = EndpointConfig::new(Arc::new(quinn_witness::Plain));
    let mut endpoint = Endpoint::new(Arc::new(config), None, false, None);
    let client = quinn_witness::client(&witness);
    let (_, mut connection) = endpoint.connect(now, client, PEER, "peer").expect("a client");
    let mut initial = Vec::new();
    let sent = connection.poll_transmit(now, 1, &mut initial);
    assert!(sent.is_some(), "an Initial packet");
    let (now, ack) = (now + rtt(), acknowledgement(&initial));
    match endpoint.handle(now, PEER, None, None, ack, &mut Vec::new()) {
        Some(DatagramEvent::ConnectionEvent(_, event)) => connection.handle_event(event),
        _ => panic!("the packet is for the connection"),
    }
    witness.0.lock().expect("one thread").expect("the packet acknowledges")
}

/// An estimator of `noq-proto` with the value [`RTT`].
pub(crate) fn noq_rtt(now: Instant) -> noq_proto::RttEstimator {
    use noq_proto::{DatagramEvent, Endpoint, EndpointConfig, FourTuple};

    let witness = noq_witness::Witness::default();
    let config = EndpointConfig::new(Arc::new(noq_witness::Plain));
    let mut endpoint = Endpoint::new(Arc::new(config), None, false);
    let client = noq_witness::client(&witness);
    let (_, mut connection) = endpoint.connect(now, client, PEER, "peer").expect("a client");
    let mut initial = Vec::new();
    let sent = connection.poll_transmit(now, NonZeroUsize::MIN, &mut initial);
    assert!(sent.is_some(), "an Initial packet");
    let (now, ack) = (now + rtt(), acknowledgement(&initial));
    let path = FourTuple::new(PEER, None);
    match endpoint.handle(now, path, None, ack, &mut Vec::new()) {
        Some(DatagramEvent::ConnectionEvent(_, event)) => connection.handle_event(event),
        _ => panic!("the packet is for the connection"),
    }
    witness.0.lock().expect("one thread").expect("the packet acknowledges")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimators_have_the_round_trip_time() {
        let (quinn, noq) = (quinn_rtt(epoch()), noq_rtt(epoch()));
        assert_eq!([quinn.get(), quinn.min()], [rtt(); 2]);
        assert_eq!([noq.get(), noq.min()], [rtt(); 2]);
    }
}
