//! Messages from other threads to a worker.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, eventfd};

use crate::app::ConnectionKey;
use crate::driver::{Datagram, ShutdownOptions};
use crate::relay::Inbox;
use crate::socket::Socket;
use crate::worker::Shared;

/// A message to a worker.
pub(crate) enum Mail<C> {
    /// A command for the application.
    Command(C),
    /// A connection has work to do.
    Wake(ConnectionKey),
    /// A datagram for one of its connections.
    Datagram(Datagram),
    /// A new socket to use instead of the current one.
    Rebind(Box<Socket>),
    /// Receive from this inbox instead of the socket, which another process reads from now on.
    /// Return the connection IDs that clients have chosen for their handshakes.
    GiveWay(Inbox, Sender<Vec<Vec<u8>>>),
    /// Receive from the socket again.
    Resume,
    /// Shut down.
    ShutDown(ShutdownOptions),
}

/// A queue of messages, with an eventfd that is readable while the queue is not empty.
pub(crate) struct Mailbox<C> {
    inner: Mutex<MailboxInner<C>>,
    wake: OwnedFd,
}

/// Sends messages to a worker from any thread. Clones send to the same worker.
pub struct Mailer<C> {
    workers: Arc<[Shared<C>]>,
    worker: usize,
}

impl<C> Clone for Mailer<C> {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.workers), self.worker)
    }
}

impl<C> Mailer<C> {
    pub(crate) fn new(workers: Arc<[Shared<C>]>, worker: usize) -> Self {
        Self { workers, worker }
    }

    /// The worker's index, from 0.
    pub fn worker(&self) -> usize {
        self.worker
    }

    /// Sends a command to its application.
    pub fn send(&self, command: C) {
        self.post(Mail::Command(command));
    }

    /// Schedules a turn of a connection, which calls [`crate::App::settle`].
    pub fn wake(&self, connection: ConnectionKey) {
        self.post(Mail::Wake(connection));
    }

    fn post(&self, mail: Mail<C>) {
        if let Some(shared) = self.workers.get(self.worker) {
            shared.mailbox.put(mail);
        }
    }
}

struct MailboxInner<C> {
    mail: Vec<Mail<C>>,
    datagrams: usize,
}

/// Most queued datagrams. Beyond that they are dropped, as in a full socket buffer.
const MAX_DATAGRAMS: usize = 4096;

impl<C> Mailbox<C> {
    pub(crate) fn new() -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let inner = Mutex::new(MailboxInner { mail: Vec::new(), datagrams: 0 });
        Ok(Self { inner, wake })
    }

    pub(crate) fn put(&self, mail: Mail<C>) {
        let mut inner = self.lock();
        inner.mail.push(mail);
        self.wake(&inner);
    }

    /// Returns false if the queue is full.
    pub(crate) fn put_datagram(&self, datagram: Datagram) -> bool {
        let mut inner = self.lock();
        if inner.datagrams == MAX_DATAGRAMS {
            return false;
        }
        inner.datagrams += 1;
        inner.mail.push(Mail::Datagram(datagram));
        self.wake(&inner);
        true
    }

    /// Moves all messages into `empty`.
    pub(crate) fn take(&self, empty: &mut Vec<Mail<C>>) {
        let mut inner = self.lock();
        // Reset under the lock, so that no message arrives without a wake-up.
        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
        inner.datagrams = 0;
        std::mem::swap(&mut inner.mail, empty);
    }

    /// Signals the eventfd for the first message; later ones find the worker awake.
    fn wake(&self, inner: &MailboxInner<C>) {
        if inner.mail.len() == 1 {
            // Writing to an eventfd fails only if its counter overflows.
            let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        }
    }

    fn lock(&self) -> MutexGuard<'_, MailboxInner<C>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C> AsFd for Mailbox<C> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}
