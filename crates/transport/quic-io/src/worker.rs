//! A worker thread: a socket and its connections.

use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use noq_proto::ServerConfig;

use crate::app::App;
use crate::driver::{Datagram, Driver, Limits, Progress};
use crate::identity::{Identity, destination};
use crate::mailbox::{Mail, Mailbox};
use crate::relay::{self, Inbox, Predecessor};
use crate::socket::{Socket, SocketOptions};
use crate::stats::Stats;
use crate::wait;

/// Receive calls and connection turns per iteration of the loop.
const READS: usize = 4;
const TURNS: usize = 16;

/// Configuration of workers.
#[derive(Clone)]
pub struct Config {
    /// Keys for connection IDs and stateless resets.
    pub identity: Identity,
    /// Answers connection requests. None: connections are refused.
    pub server: Option<Arc<ServerConfig>>,
    /// Limits of each worker.
    pub limits: Limits,
    /// Socket buffer sizes.
    pub socket: SocketOptions,
    /// Processes from which the sockets were taken over.
    pub predecessors: Arc<[Predecessor]>,
}

impl Config {
    /// A configuration for clients: accepts no connections.
    pub fn new(identity: Identity) -> Self {
        let (limits, socket) = (Limits::default(), SocketOptions::default());
        Self { identity, server: None, limits, socket, predecessors: Arc::default() }
    }
}

/// The part of a worker that other threads access.
pub(crate) struct Shared<C> {
    pub(crate) mailbox: Mailbox<C>,
    stats: Mutex<Stats>,
    failure: Mutex<Option<String>>,
}

impl<C> Shared<C> {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { mailbox: Mailbox::new()?, stats: Mutex::default(), failure: Mutex::default() })
    }

    pub(crate) fn stats(&self) -> Stats {
        *self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why the worker failed, if it did.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn fail(&self, reason: String) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
    }
}

/// Runs `work` for worker `index`, and records its failure: an error or a panic.
pub(crate) fn record_failure<C, T>(
    workers: &[Shared<C>],
    index: usize,
    work: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    struct AmplificationLimit<'a, C>(&'a Shared<C>);
    impl<C> Drop for AmplificationLimit<'_, C> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                self.0.fail("it panicked".to_owned());
            }
        }
    }
    let guard = AmplificationLimit(&workers[index]);
    let result = work();
    if let Err(error) = &result {
        guard.0.fail(error.to_string());
    }
    result
}

/// Reads the clock. Everything below takes time as an argument.
#[expect(clippy::disallowed_methods, reason = "this is the outermost layer")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// A socket and its driver.
pub(crate) struct Worker<A: App> {
    index: usize,
    socket: Socket,
    /// The source of datagrams while another process reads the socket.
    inbox: Option<Inbox>,
    driver: Driver<A>,
    identity: Identity,
    predecessors: Arc<[Predecessor]>,
    workers: Arc<[Shared<A::Command>]>,
    mail: Vec<Mail<A::Command>>,
    stats: Stats,
}

impl<A: App> Worker<A> {
    pub(crate) fn new(
        index: usize,
        app: A,
        socket: Socket,
        config: Config,
        workers: Arc<[Shared<A::Command>]>,
    ) -> Self {
        let Config { identity, server, mut limits, socket: _, predecessors } = config;
        limits.datagrams_per_batch = limits.datagrams_per_batch.min(socket.datagrams_per_batch());
        let endpoint = identity.endpoint_config(index as u8);
        let driver = Driver::new(app, endpoint, server, limits, socket.may_fragment());
        Self {
            index,
            socket,
            inbox: None,
            driver,
            identity,
            predecessors,
            workers,
            mail: Vec::new(),
            stats: Stats::default(),
        }
    }

    /// Runs until a shutdown is complete.
    pub(crate) fn run(mut self) -> io::Result<Stats> {
        wait::set_timer_slack()?;
        let result = self.work();
        self.driver.abandon(now());
        self.publish();
        result.map(|()| self.stats)
    }

    fn work(&mut self) -> io::Result<()> {
        while !self.driver.is_over(now()) {
            let is_blocked = self.driver.is_blocked();
            let timeout = if self.driver.is_ready() && !is_blocked {
                Some(std::time::Duration::ZERO)
            } else {
                self.driver.deadline().map(|deadline| deadline.saturating_duration_since(now()))
            };
            let mailbox = &self.workers[self.index].mailbox;
            let source = self.inbox.as_ref().map_or(self.socket.as_fd(), AsFd::as_fd);
            let sink = is_blocked.then(|| self.socket.as_fd());
            let woken = wait::wait(source, sink, mailbox, timeout)?;
            self.stats.wakes += 1;
            if woken.has_mail {
                self.read_mail();
            }
            if woken.has_datagrams {
                self.receive();
            }
            self.driver.expire(now());
            for _ in 0..TURNS {
                if self.driver.run_next(now(), &mut self.socket) != Progress::Worked {
                    break;
                }
            }
            self.publish();
        }
        Ok(())
    }

    fn read_mail(&mut self) {
        let mut mail = std::mem::take(&mut self.mail);
        self.workers[self.index].mailbox.take(&mut mail);
        let now = now();
        for mail in mail.drain(..) {
            match mail {
                Mail::Command(command) => self.driver.command(now, command),
                Mail::Wake(connection) => self.driver.wake(connection),
                Mail::Datagram(datagram) => {
                    self.stats.taken_over += 1;
                    self.driver.receive(now, datagram);
                }
                Mail::Rebind(socket) => {
                    self.socket.replace(*socket);
                    self.driver.rebound(now);
                }
                Mail::GiveWay(inbox, answer) => {
                    self.inbox = Some(inbox);
                    // If the caller has stopped waiting, it resumes this worker.
                    let _ = answer.send(self.driver.give_way());
                }
                Mail::Resume => {
                    self.inbox = None;
                    self.driver.resume();
                }
                Mail::ShutDown(shutdown) => self.driver.shut_down(now, shutdown),
            }
        }
        self.mail = mail;
    }

    fn receive(&mut self) {
        let Self { index, socket, driver, identity, workers, stats, predecessors, .. } = self;
        if let Some(inbox) = &mut self.inbox {
            return inbox.receive(|datagram| driver.receive(now(), datagram));
        }
        for _ in 0..READS {
            // One timestamp per batch: when it was read.
            let mut time = None;
            let has_more = socket.receive(|datagram| {
                let time = *time.get_or_insert_with(now);
                if relay::pass_on(predecessors, identity, &datagram) {
                    stats.passed_on += 1;
                    return;
                }
                match other_owner(identity, *index, workers, &datagram) {
                    None => driver.receive(time, datagram),
                    Some(owner) => {
                        stats.handed_over += 1;
                        if !owner.mailbox.put_datagram(datagram) {
                            stats.handed_over_dropped += 1;
                        }
                    }
                }
            });
            if !has_more {
                break;
            }
        }
    }

    fn publish(&mut self) {
        self.stats.socket = self.socket.stats();
        self.stats.driver = self.driver.stats();
        let shared = &self.workers[self.index];
        *shared.stats.lock().unwrap_or_else(PoisonError::into_inner) = self.stats;
    }
}

/// The other worker that owns the datagram's connection, if there is one. The kernel picks the
/// socket by client address, so a client that moves most likely reaches the wrong worker. The check
/// costs about 100 ns. Passing a datagram on costs 0.2 µs (in a batch) to 1.5 µs (alone); a
/// download server receives a few thousand datagrams per gigabyte sent. A BPF program could avoid
/// this, but requires a privilege.
fn other_owner<'a, C>(
    identity: &Identity,
    index: usize,
    workers: &'a [Shared<C>],
    datagram: &Datagram,
) -> Option<&'a Shared<C>> {
    if workers.len() == 1 {
        return None;
    }
    let owner = identity.owner_of(destination(&datagram.data)?)?;
    let worker = usize::from(owner.worker);
    workers.get(worker).filter(|_| owner.generation == identity.generation() && worker != index)
}
