//! The connections, indexed by the stack's connection handle.

use std::time::Instant;

use noq_proto::{Connection, ConnectionId};
use uncork_quic::Handle;

use crate::app::{ConnectionContext, ConnectionKey};
use crate::moderation::Moderation;

/// A connection and its driver state.
pub(crate) struct DriverEntry<S> {
    serial: u64,
    pub(crate) connection: Connection,
    pub(crate) cc: Handle,
    pub(crate) state: S,
    pub(crate) wake_at: Option<Instant>,
    /// When its timer fires.
    pub(crate) armed: Option<Instant>,
    pub(crate) moderation: Moderation,
    /// Whether it is in the ready queue.
    ready: bool,
    pub(crate) handshaking: bool,
    /// The connection ID that the client chose for its first packet.
    pub(crate) first_id: Option<ConnectionId>,
    /// Whether its close was reported to the application.
    pub(crate) is_close_reported: bool,
}

impl<S> DriverEntry<S> {
    /// Marks it as queued. Returns whether it was not queued before.
    pub(crate) fn mark_ready(&mut self) -> bool {
        !std::mem::replace(&mut self.ready, true)
    }

    pub(crate) fn unmark(&mut self) {
        self.ready = false;
    }

    pub(crate) fn context(&mut self, slot: usize, now: Instant) -> ConnectionContext<'_, S> {
        ConnectionContext {
            now,
            key: ConnectionKey { slot, serial: self.serial },
            connection: &mut self.connection,
            state: &mut self.state,
            cc: &self.cc,
            wake_at: &mut self.wake_at,
        }
    }
}

/// All connections of a driver.
pub(crate) struct Table<S> {
    entries: Vec<Option<Box<DriverEntry<S>>>>,
    length: usize,
    handshaking: usize,
    /// Connections that are not closed.
    open: usize,
    serial: u64,
}

impl<S> Default for Table<S> {
    fn default() -> Self {
        Self { entries: Vec::new(), length: 0, handshaking: 0, open: 0, serial: 0 }
    }
}

impl<S> Table<S> {
    pub(crate) fn insert(&mut self, slot: usize, connection: Connection, cc: Handle, state: S) {
        if self.entries.len() <= slot {
            self.entries.resize_with(slot + 1, || None);
        }
        self.serial += 1;
        self.length += 1;
        self.handshaking += 1;
        self.open += 1;
        self.entries[slot] = Some(Box::new(DriverEntry {
            serial: self.serial,
            connection,
            cc,
            state,
            wake_at: None,
            armed: None,
            moderation: Moderation::default(),
            ready: false,
            handshaking: true,
            first_id: None,
            is_close_reported: false,
        }));
    }

    pub(crate) fn remove(&mut self, slot: usize) -> Option<Box<DriverEntry<S>>> {
        let entry = self.entries.get_mut(slot)?.take()?;
        self.length -= 1;
        self.handshaking -= usize::from(entry.handshaking);
        self.open -= usize::from(!entry.is_close_reported);
        Some(entry)
    }

    /// Marks the connection as reported closed to the application. Returns it the first time.
    pub(crate) fn close(&mut self, slot: usize) -> Option<&mut DriverEntry<S>> {
        let entry = self.entries.get_mut(slot)?.as_deref_mut()?;
        if std::mem::replace(&mut entry.is_close_reported, true) {
            return None;
        }
        self.open -= 1;
        Some(entry)
    }

    /// Notes that the handshake ended, successfully or not.
    pub(crate) fn end_handshake(&mut self, slot: usize) {
        if let Some(entry) = self.get_mut(slot)
            && std::mem::take(&mut entry.handshaking)
        {
            self.handshaking -= 1;
        }
    }

    pub(crate) fn get_mut(&mut self, slot: usize) -> Option<&mut DriverEntry<S>> {
        self.entries.get_mut(slot)?.as_deref_mut()
    }

    pub(crate) fn find(&mut self, key: ConnectionKey) -> Option<&mut DriverEntry<S>> {
        self.get_mut(key.slot).filter(|entry| entry.serial == key.serial)
    }

    pub(crate) fn key(&mut self, slot: usize) -> Option<ConnectionKey> {
        self.get_mut(slot).map(|entry| ConnectionKey { slot, serial: entry.serial })
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut DriverEntry<S>)> {
        let slots = self.entries.iter_mut().enumerate();
        slots.filter_map(|(slot, entry)| Some((slot, entry.as_deref_mut()?)))
    }

    pub(crate) fn slots(&self) -> Vec<usize> {
        let taken = |(slot, entry): (usize, &Option<_>)| entry.as_ref().map(|_| slot);
        self.entries.iter().enumerate().filter_map(taken).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn open(&self) -> usize {
        self.open
    }

    pub(crate) fn handshaking(&self) -> usize {
        self.handshaking
    }
}
