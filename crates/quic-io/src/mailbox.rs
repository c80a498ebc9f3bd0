//! What other threads tell a worker.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, eventfd};

use crate::app::ConnectionKey;
use crate::driver::{Datagram, ShutdownOptions};
use crate::socket::Socket;
use crate::worker::Shared;

/// What a worker can be told.
pub(crate) enum Mail<C> {
    /// Something for the application.
    Command(C),
    /// One of its connections has something to do.
    Wake(ConnectionKey),
    /// A datagram for one of its connections.
    Datagram(Datagram),
    /// Another socket to go on with.
    Rebind(Box<Socket>),
    /// To end.
    ShutDown(ShutdownOptions),
}

/// Where mail waits, with a file descriptor that is readable while some does.
pub(crate) struct Mailbox<C> {
    inner: Mutex<Inner<C>>,
    wake: OwnedFd,
}

/// What reaches a worker from any thread. Clones reach the same.
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

    /// The worker's number, from 0.
    pub fn worker(&self) -> usize {
        self.worker
    }

    /// Tells its application something.
    pub fn tell(&self, command: C) {
        self.post(Mail::Command(command));
    }

    /// Has it look at one of its connections, which ends with a call of [`crate::App::settle`].
    pub fn wake(&self, connection: ConnectionKey) {
        self.post(Mail::Wake(connection));
    }

    fn post(&self, mail: Mail<C>) {
        if let Some(shared) = self.workers.get(self.worker) {
            shared.mailbox.put(mail);
        }
    }
}

struct Inner<C> {
    mail: Vec<Mail<C>>,
    datagrams: usize,
}

/// Datagrams that wait at most: those of a worker that cannot keep up are lost, as in a socket.
const MOST_DATAGRAMS: usize = 4096;

impl<C> Mailbox<C> {
    pub(crate) fn new() -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let inner = Mutex::new(Inner { mail: Vec::new(), datagrams: 0 });
        Ok(Self { inner, wake })
    }

    pub(crate) fn put(&self, mail: Mail<C>) {
        let mut inner = self.lock();
        inner.mail.push(mail);
        self.wake(&inner);
    }

    /// Whether there was room for it.
    pub(crate) fn put_datagram(&self, datagram: Datagram) -> bool {
        let mut inner = self.lock();
        if inner.datagrams == MOST_DATAGRAMS {
            return false;
        }
        inner.datagrams += 1;
        inner.mail.push(Mail::Datagram(datagram));
        self.wake(&inner);
        true
    }

    /// Swaps all mail for what is in `empty`, which is nothing.
    pub(crate) fn take(&self, empty: &mut Vec<Mail<C>>) {
        let mut inner = self.lock();
        // Under the lock, so that no mail comes without a wake.
        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
        inner.datagrams = 0;
        std::mem::swap(&mut inner.mail, empty);
    }

    /// The first piece wakes; those that follow find the worker awake.
    fn wake(&self, inner: &Inner<C>) {
        if inner.mail.len() == 1 {
            // An eventfd takes a number unless it is full.
            let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner<C>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C> AsFd for Mailbox<C> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}
