//! Waking a connection, from its own thread or another.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Wake;

use std::sync::Arc;
use uncork_quic_io::{ConnectionKey, Mailer};

/// Rung when a future of a connection can go on.
pub(crate) struct ConnectionWaker<C> {
    mailer: Mailer<C>,
    key: OnceLock<ConnectionKey>,
    is_rung: AtomicBool,
    /// The connection has its turn: it will look before that ends, and needs no mail.
    is_attended: AtomicBool,
}

/// What a session needs of a bell, whatever its worker can be told.
pub(crate) trait Attend: Send + Sync {
    /// The connection has its turn.
    fn attend(&self, key: ConnectionKey);
    /// Whether it was rung since this was asked last.
    fn was_woken(&self) -> bool;
    /// The turn ends; whether it must not, because the bell was rung.
    fn leave(&self) -> bool;
}

impl<C> ConnectionWaker<C> {
    pub(crate) fn new(mailer: Mailer<C>) -> Self {
        let (is_rung, is_attended) = (AtomicBool::new(false), AtomicBool::new(true));
        Self { mailer, key: OnceLock::new(), is_rung, is_attended }
    }
}

impl<C: Send> Attend for ConnectionWaker<C> {
    fn attend(&self, key: ConnectionKey) {
        self.is_attended.store(true, Ordering::SeqCst);
        let _same = self.key.set(key);
    }

    fn was_woken(&self) -> bool {
        self.is_rung.swap(false, Ordering::SeqCst)
    }

    fn leave(&self) -> bool {
        // In this order: who rings after the first line sends mail, who rang before is seen below.
        self.is_attended.store(false, Ordering::SeqCst);
        let must_stay = self.is_rung.load(Ordering::SeqCst);
        self.is_attended.store(must_stay, Ordering::SeqCst);
        must_stay
    }
}

impl<C: Send> Wake for ConnectionWaker<C> {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let was_woken = self.is_rung.swap(true, Ordering::SeqCst);
        if !was_woken
            && !self.is_attended.load(Ordering::SeqCst)
            && let Some(key) = self.key.get()
        {
            self.mailer.wake(*key);
        }
    }
}
