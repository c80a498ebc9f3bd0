//! Incoming datagrams and connection requests.

use std::time::Instant;

use noq_proto::{DatagramEvent, Incoming, Transmit};

use super::{Datagram, Driver};
use crate::app::{App, Arrival, Load, Verdict};

/// The smallest datagram that may ask for a connection (RFC 9000 §14.1).
const MIN_INITIAL: usize = 1200;

/// Whether it is a Version Negotiation packet: a long header with version 0 (RFC 9000 §17.2.1).
fn negotiates_version(packet: &[u8]) -> bool {
    matches!(packet, [first, 0, 0, 0, 0, ..] if first & 0x80 != 0)
}

impl<A: App> Driver<A> {
    /// Handles an incoming datagram.
    pub fn receive(&mut self, now: Instant, datagram: Datagram) {
        let Datagram { path, ecn, data } = datagram;
        let mut reply = Vec::new();
        let is_full_size = data.len() >= MIN_INITIAL;
        match self.endpoint.handle(now, path, ecn, data, &mut reply) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(entry) = self.table.get_mut(handle.0) {
                    entry.connection.handle_event(event);
                    if entry.mark_ready() {
                        self.ready.push_back(handle.0);
                    }
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.admit(now, incoming),
            // A short datagram that asks for another version may have a spoofed source address (RFC
            // 9000 §5.2.2).
            Some(DatagramEvent::Response(_)) if !is_full_size && negotiates_version(&reply) => {}
            Some(DatagramEvent::Response(transmit)) => self.replies.push(transmit, reply),
            None => {}
        }
    }

    fn admit(&mut self, now: Instant, incoming: Incoming) {
        let load = Load { connections: self.table.len(), handshaking: self.table.handshaking() };
        // A client that was asked to validate its address returns with a connection ID that names
        // this process.
        let is_expected = self.has_given_way && !incoming.may_retry();
        let is_over = self.shutdown.is_some() && !is_expected;
        let verdict = if is_over || load.connections >= self.limits.connections {
            Verdict::Refuse
        } else {
            self.app.incoming(&Arrival { now, incoming: &incoming, load })
        };
        let mut reply = Vec::new();
        let first_id = incoming.orig_dst_cid();
        match verdict {
            Verdict::Accept { config, cc, state } => {
                match self.endpoint.accept(incoming, now, &mut reply, Some(config)) {
                    Ok((handle, connection)) => {
                        self.stats.accepted += 1;
                        self.table.insert(handle.0, connection, cc, state);
                        if let Some(entry) = self.table.get_mut(handle.0) {
                            entry.first_id = Some(first_id);
                        }
                        self.mark_ready(handle.0);
                    }
                    Err(error) => {
                        self.stats.failed += 1;
                        self.reply(error.response, reply);
                    }
                }
            }
            Verdict::Retry if incoming.may_retry() => {
                self.stats.retried += 1;
                let retry = self.endpoint.retry(incoming, &mut reply).ok();
                self.reply(retry, reply);
            }
            Verdict::Retry | Verdict::Refuse => {
                self.stats.declined += 1;
                let refusal = self.endpoint.refuse(incoming, &mut reply);
                self.reply(Some(refusal), reply);
            }
            Verdict::Ignore => {
                self.stats.ignored += 1;
                self.endpoint.ignore(incoming);
            }
        }
    }

    fn reply(&mut self, transmit: Option<Transmit>, contents: Vec<u8>) {
        if let Some(transmit) = transmit {
            self.replies.push(transmit, contents);
        }
    }
}
