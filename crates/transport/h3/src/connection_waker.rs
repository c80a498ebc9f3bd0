//! The waker of a connection's tasks, usable on any thread.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Wake;

use std::sync::Arc;
use uncork_quic_io::{ConnectionKey, Mailer};

/// Wakes a connection when one of its tasks can make progress.
pub(crate) struct ConnectionWaker<C> {
    mailer: Mailer<C>,
    key: OnceLock<ConnectionKey>,
    is_rung: AtomicBool,
    /// The connection is in its turn and will check `is_rung` before it ends, so no message is
    /// needed.
    is_attended: AtomicBool,
}

/// A session's view of its [`ConnectionWaker`], without the type of the worker's commands.
pub(crate) trait TurnTracker: Send + Sync {
    /// A turn of the connection begins. It will be attended to before it ends.
    fn begin_turn(&self);
    /// Runs the tasks of this turn.
    fn attend(&self, key: ConnectionKey);
    /// Whether it was woken since the last call.
    fn was_woken(&self) -> bool;
    /// Ends the turn. Returns true if the turn must continue because of a new wake-up.
    fn leave(&self) -> bool;
}

impl<C> ConnectionWaker<C> {
    pub(crate) fn new(mailer: Mailer<C>) -> Self {
        let (is_rung, is_attended) = (AtomicBool::new(false), AtomicBool::new(true));
        Self { mailer, key: OnceLock::new(), is_rung, is_attended }
    }
}

impl<C: Send> TurnTracker for ConnectionWaker<C> {
    fn begin_turn(&self) {
        self.is_attended.store(true, Ordering::SeqCst);
    }

    fn attend(&self, key: ConnectionKey) {
        self.begin_turn();
        let _same = self.key.set(key);
    }

    fn was_woken(&self) -> bool {
        self.is_rung.swap(false, Ordering::SeqCst)
    }

    fn leave(&self) -> bool {
        // The order matters: a wake-up after the first line sends a message; an earlier one is seen
        // below.
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
